package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// The line says how far the job is and what holds it, whatever the numbers.
func TestLine(t *testing.T) { synctest.Test(t, testLine) }

func testLine(t *testing.T) {
	p := newProgress(&bytes.Buffer{})
	p.begun = time.Now().Add(-10 * time.Second)
	p.sum = summary{Requests: 20, InputTokens: 15_000, OutputTokens: 5_000, Refused429: 3, Skipped: 5}
	for _, c := range []struct {
		total int64
		end   bool
		s     limit.Snapshot
		want  string
	}{
		{100, false, limit.Snapshot{Waiting: 7, InFlight: 4}, "[###---------] 25/100  left 38s  429s 3  2.0/s  2.0k tok/s  waiting 7  in flight 4"},
		{100, false, limit.Snapshot{PausedUntil: time.Now().Add(90 * time.Second)}, "[###---------] 25/100  paused 1m30s  429s 3  2.0/s  2.0k tok/s  waiting 0  in flight 0"},
		{100, true, limit.Snapshot{InFlight: 4}, "[###---------] 25/100  stopping  429s 3  2.0/s  2.0k tok/s  waiting 0  in flight 4"},
		{0, false, limit.Snapshot{}, "25 done  429s 3  2.0/s  2.0k tok/s  waiting 0  in flight 0"},
		{10, false, limit.Snapshot{}, "[############] 25/10  left 0s  429s 3  2.0/s  2.0k tok/s  waiting 0  in flight 0"}, // the file grew
	} {
		p.total, p.ending = c.total, c.end
		if got := p.line(c.s); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// In a terminal the line is drawn over itself, never wraps, and makes room for
// what is said.
func TestTerminal(t *testing.T) {
	var screen bytes.Buffer
	p := newProgress(&screen)
	p.terminal = true
	p.start(0, func() limit.Snapshot { return limit.Snapshot{} })
	p.show()
	p.say("something")
	p.show()
	p.stop()
	text := screen.String()
	if strings.Count(text, "\x1b[?7l") != strings.Count(text, "\x1b[?7h") || !strings.HasSuffix(text, "\r\x1b[K") {
		t.Errorf("%q", text)
	}
	if !strings.Contains(text, "\r\x1b[Kbatch: something\n") || strings.Count(text, "\n") != 1 {
		t.Errorf("%q", text)
	}
}

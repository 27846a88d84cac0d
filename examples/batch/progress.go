package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

// summary is the figures of a run.
type summary struct {
	Requests     int64   `json:"requests"`  // well-formed, and not answered by an earlier run
	Completed    int64   `json:"completed"` // answered with a 2xx
	Failed       int64   `json:"failed"`    // answered with anything else, or not at all
	Refused429   int64   `json:"refused_429"`
	WireAttempts int64   `json:"wire_attempts"`
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	Seconds      float64 `json:"seconds"`
	LongestWait  float64 `json:"longest_wait_s"` // in the line
	Skipped      int64   `json:"skipped"`        // answered by an earlier run
	BadLines     int64   `json:"bad_lines"`
}

// progress counts, and shows: a bar in a terminal, now and then a line
// elsewhere.
type progress struct {
	w        io.Writer
	terminal bool
	granted  func(*http.Request)
	held     chan struct{} // closed when the provider orders too long a wait
	heard    chan struct{} // closed at the first answer, or failure of an attempt

	mu       sync.Mutex
	sum      summary
	total    int64
	begun    time.Time
	snapshot func() limit.Snapshot
	shown    bool // a bar stands on the current line
	ending   bool // nothing more is begun
	quit     chan struct{}
	quitted  sync.WaitGroup
	holding  sync.Once
	hearing  sync.Once
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, held: make(chan struct{}), heard: make(chan struct{}), quit: make(chan struct{})}
	if f, ok := w.(*os.File); ok {
		if i, err := f.Stat(); err == nil {
			p.terminal = i.Mode()&os.ModeCharDevice != 0
		}
	}
	return p
}

// trace is the hooks that the figures come from.
func (p *progress) trace(maxWait time.Duration) transport.Trace {
	return transport.Trace{
		Queued: func(r *http.Request, _ limit.Cost) { sendingOf(r).queued() },
		Granted: func(r *http.Request, _ limit.Cost, wait time.Duration) {
			p.mu.Lock()
			p.sum.LongestWait = max(p.sum.LongestWait, wait.Seconds())
			p.mu.Unlock()
			p.granted(r)
		},
		Answered: func(a transport.Attempt) {
			p.mu.Lock()
			p.sum.WireAttempts++
			if a.Status == http.StatusTooManyRequests {
				p.sum.Refused429++
			}
			p.mu.Unlock()
			sendingOf(a.Request).wire.Add(1)
			p.hearing.Do(func() { close(p.heard) })
		},
		Settled: func(s transport.Settlement) {
			p.mu.Lock()
			p.sum.InputTokens += s.Usage.Input
			p.sum.OutputTokens += s.Usage.Output
			p.mu.Unlock()
		},
		Paused: func(_ *http.Request, d time.Duration) {
			if d > maxWait {
				p.holding.Do(func() { close(p.held) })
			}
		},
		Doubted: func(profile, seen string) {
			p.say(fmt.Sprintf("headers show charges by the rule %q, not %q; see -charge", seen, profile))
		},
	}
}

func (p *progress) start(total int64, snapshot func() limit.Snapshot) {
	p.total, p.snapshot, p.begun = total, snapshot, time.Now()
	every := 10 * time.Second
	if p.terminal {
		every = 200 * time.Millisecond
	}
	p.quitted.Go(func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				p.show()
			case <-p.quit:
				return
			}
		}
	})
}

func (p *progress) stop() {
	close(p.quit)
	p.quitted.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum.Seconds = time.Since(p.begun).Seconds()
	p.clear()
}

func (p *progress) answered(a answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum.Requests++
	if a.Response != nil && a.Response.StatusCode/100 == 2 {
		p.sum.Completed++
	} else {
		p.sum.Failed++
	}
}

func (p *progress) skipped() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum.Skipped++
}

func (p *progress) bad(line int, err error) {
	p.mu.Lock()
	p.sum.BadLines++
	p.mu.Unlock()
	p.say(fmt.Sprintf("line %d: %v", line, err))
}

// halting says that nothing more is begun, and why.
func (p *progress) halting(why string) {
	p.mu.Lock()
	p.ending = true
	p.mu.Unlock()
	p.say(why)
}

// say prints a line above the bar.
func (p *progress) say(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintln(p.w, "batch:", s)
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

func (p *progress) show() {
	s := p.snapshot()
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.line(s)
	if !p.terminal {
		fmt.Fprintln(p.w, "batch:", line)
		return
	}
	p.clear()
	// Without wrapping, a terminal cuts a line that is too long for it, and one
	// line is all that there is to clear. The cursor goes back to its beginning,
	// so that the ^C of a terminal does not begin another.
	fmt.Fprint(p.w, "\x1b[?7l"+line+" \x1b[?7h\r")
	p.shown = true
}

// line is the state in one line, what matters most first, as a narrow terminal
// cuts it:
//
//	[#####-------] 120/300  left 1m30s  429s 0  2.0/s  1.2k tok/s  waiting 64  in flight 12
func (p *progress) line(s limit.Snapshot) string {
	var b strings.Builder
	gone := time.Since(p.begun).Seconds()
	ended := p.sum.Requests + p.sum.Skipped + p.sum.BadLines
	rate := float64(p.sum.Requests) / max(gone, 0.001)
	if p.total > 0 {
		const width = 12
		full := int(min(ended, p.total) * width / p.total)
		fmt.Fprintf(&b, "[%s%s] %d/%d", strings.Repeat("#", full), strings.Repeat("-", width-full), ended, p.total)
	} else {
		fmt.Fprintf(&b, "%d done", ended)
	}
	switch pause := time.Until(s.PausedUntil); {
	case p.ending:
		b.WriteString("  stopping")
	case !s.PausedUntil.IsZero() && pause > 0:
		fmt.Fprintf(&b, "  paused %v", max(time.Second, pause.Round(time.Second)))
	case p.total > 0 && rate > 0:
		left := time.Duration(float64(p.total-min(ended, p.total)) / rate * float64(time.Second))
		fmt.Fprintf(&b, "  left %v", left.Round(time.Second))
	}
	fmt.Fprintf(&b, "  429s %d  %.1f/s  %s tok/s  waiting %d  in flight %d", p.sum.Refused429,
		rate, short(float64(p.sum.InputTokens+p.sum.OutputTokens)/max(gone, 0.001)), s.Waiting, s.InFlight)
	return b.String()
}

// short writes 1234 as 1.2k.
func short(n float64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.1fM", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1fk", n/1e3)
	}
	return fmt.Sprintf("%.0f", n)
}

// report is the end of a run, for a person.
func (p *progress) report() {
	s := p.sum
	fmt.Fprintf(p.w, "batch: %d of %d completed in %.1f s, %d failed; %d attempts, %d refused (429)\n",
		s.Completed, s.Requests, s.Seconds, s.Failed, s.WireAttempts, s.Refused429)
	fmt.Fprintf(p.w, "batch: %s tokens in, %s out; longest wait %.1f s",
		short(float64(s.InputTokens)), short(float64(s.OutputTokens)), s.LongestWait)
	if s.Skipped > 0 {
		fmt.Fprintf(p.w, "; %d answered before", s.Skipped)
	}
	if s.BadLines > 0 {
		fmt.Fprintf(p.w, "; %d bad lines", s.BadLines)
	}
	fmt.Fprintln(p.w)
}

func (p *progress) writeSummary(name string) error {
	b, err := json.MarshalIndent(p.sum, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(b, '\n'), 0o644)
}

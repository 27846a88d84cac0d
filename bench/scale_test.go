package bench

import (
	"bytes"
	"flag"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

var fleets = flag.Bool("fleets", false, "play the fleets at length and write their tables into docs/scale.md")

// The tables of docs/scale.md stand between these lines.
const (
	scaleBegin = "<!-- simulated: begin -->\n"
	scaleEnd   = "<!-- simulated: end -->\n"
)

// TestScaleTables writes the tables of docs/scale.md with -fleets. Without, it plays
// less, and checks that there is a place for them.
func TestScaleTables(t *testing.T) {
	span := 200 * time.Millisecond
	if *fleets {
		span = 20 * time.Second
	}
	var md bytes.Buffer
	if err := writeScale(&md, span); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(docs + "/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), scaleBegin)
	_, after, ok2 := strings.Cut(rest, scaleEnd)
	if !ok || !ok2 {
		t.Fatal("docs/scale.md has no place for the tables")
	}
	if *fleets {
		page := before + scaleBegin + "\n" + md.String() + "\n" + scaleEnd + after
		if err := os.WriteFile(docs+"/scale.md", []byte(page), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// At little load the simulation is what a pencil says: a call for each decision and
// heartbeat, and the wait is the way and the work.
func TestPlayAtLittleLoad(t *testing.T) {
	s := Measured
	x := Play(Fleet{Processes: 100, Rate: 100, Heartbeat: time.Second}, s, 60*time.Second, 3)
	if math.Abs(x.Calls-200) > 6 {
		t.Errorf("%.1f calls a second, want 100 decisions and 100 heartbeats", x.Calls)
	}
	want := s.Way + s.Call + s.Ask
	if x.P50 < want || x.P50 > want+5*time.Microsecond {
		t.Errorf("p50 %v, want %v", x.P50, want)
	}
	if b := 200*s.Call.Seconds() + 100*s.Ask.Seconds(); math.Abs(x.Busy-b) > 0.05*b {
		t.Errorf("busy %.5f, want %.5f", x.Busy, b)
	}
}

// The more calls come, the more callers go with one. So the server never has more
// to do than it can, as long as a caller costs it less work than a call.
func TestPlayCombinesUnderLoad(t *testing.T) {
	last := 0.0
	for _, rate := range []float64{1000, 10_000, 50_000, 200_000} {
		x := Play(Fleet{Processes: 10, Rate: rate, Heartbeat: time.Second}, Measured, 2*time.Second, 3)
		if x.PerCall < last {
			t.Errorf("%.0f a second: %.2f callers a call, after %.2f at less", rate, x.PerCall, last)
		}
		last = x.PerCall
		if x.P99 > 3*time.Millisecond {
			t.Errorf("%.0f a second: p99 %v", rate, x.P99)
		}
	}
	if last < 8 {
		t.Errorf("%.2f callers a call at the highest load", last)
	}
}

// Budgets over shards: one shard has all of one budget, and many budgets spread.
func TestCrowding(t *testing.T) {
	if c := Crowding(1, 8, 1); c != 8 {
		t.Errorf("one budget on 8 shards: %.2f", c)
	}
	if c := Crowding(1_000_000, 8, 1); c > 1.01 {
		t.Errorf("a million budgets on 8 shards: %.3f", c)
	}
}

package batch

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tripmeter/tripmeter/cmd/internal/meter"
	"github.com/tripmeter/tripmeter/limit"
)

// summary is the figures of a run.
type summary struct {
	Requests     int64            `json:"requests"`  // that ended in this run, with a line or without
	Completed    int64            `json:"completed"` // answered with a 2xx
	Failed       int64            `json:"failed"`    // answered with an error that speaks of the request
	Left         int64            `json:"left"`      // without a line; the next run sends them
	Refused429   int64            `json:"refused_429"`
	WireAttempts int64            `json:"wire_attempts"`
	InputTokens  int64            `json:"input_tokens"`
	OutputTokens int64            `json:"output_tokens"`
	Cost         float64          `json:"cost,omitempty"` // by -prices
	Seconds      float64          `json:"seconds"`
	LongestWait  float64          `json:"longest_wait_s"` // in the line
	Skipped      int64            `json:"skipped"`        // answered by an earlier run
	BadLines     int64            `json:"bad_lines"`
	Kinds        map[string]int64 `json:"kinds,omitempty"` // of what failed or was left
}

// progress counts, and shows: a bar in a terminal, now and then a line
// elsewhere.
type progress struct {
	w        io.Writer
	terminal bool
	states   func() limit.Snapshot

	mu      sync.Mutex
	sum     summary
	cost    nano
	priced  bool
	total   int64
	began   time.Time
	flying  int
	held    string // what holds the job, "" if nothing does
	next    func() time.Time
	outputs map[string][2]int64 // sum and number of outputs by model
	minute  [61]second          // the last minute, by second
	shown   bool                // a bar stands on the current line
	ending  bool                // nothing more is begun
	quit    chan struct{}
	ran     sync.WaitGroup
	others  *atomic.Int64 // lines of other workers that are waited for; nil: there are none
}

// second is what ended in one second.
type second struct{ at, requests, tokens int64 }

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, quit: make(chan struct{}), outputs: map[string][2]int64{}, began: time.Now()}
	if f, ok := w.(*os.File); ok {
		if i, err := f.Stat(); err == nil {
			p.terminal = i.Mode()&os.ModeCharDevice != 0
		}
	}
	return p
}

// start shows the state from now on: in a terminal five times a second; else
// five times every ten seconds, and then once a minute.
func (p *progress) start(total int64, states func() limit.Snapshot) {
	p.total, p.states, p.began = total, states, time.Now()
	every := 10 * time.Second
	if p.terminal {
		every = 200 * time.Millisecond
	}
	p.ran.Go(func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for n := 1; ; n++ {
			select {
			case <-t.C:
				p.show()
				if n == 5 && !p.terminal {
					t.Reset(time.Minute)
				}
			case <-p.quit:
				return
			}
		}
	})
}

func (p *progress) stop() {
	close(p.quit)
	p.ran.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum.Seconds = time.Since(p.began).Seconds()
	p.sum.Cost = float64(p.cost) / 1e9
	p.clear()
}

func (p *progress) nowLocked() *second {
	at := int64(time.Since(p.began) / time.Second)
	s := &p.minute[at%int64(len(p.minute))]
	if s.at != at {
		*s = second{at: at}
	}
	return s
}

// begun notes that a request was begun.
func (p *progress) begun() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flying++
}

// ended notes the end of one sending.
func (p *progress) ended() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flying--
}

// lined notes a request that gets its line.
func (p *progress) lined(o outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum.Requests++
	p.nowLocked().requests++
	if o.kind == good {
		p.sum.Completed++
		return
	}
	p.sum.Failed++
	p.countLocked(o)
}

// left notes a request that gets no line in this run.
func (p *progress) left(o outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum.Requests++
	p.sum.Left++
	p.countLocked(o)
}

func (p *progress) countLocked(o outcome) {
	if p.sum.Kinds == nil {
		p.sum.Kinds = map[string]int64{}
	}
	what := o.counted()
	if _, known := p.sum.Kinds[what]; !known && len(p.sum.Kinds) >= 100 {
		what = "others"
	}
	p.sum.Kinds[what]++
}

// granted notes how long a request waited in the line.
func (p *progress) granted(wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum.LongestWait = max(p.sum.LongestWait, wait.Seconds())
}

// answered notes an attempt on the wire.
func (p *progress) answered(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum.WireAttempts++
	if status == 429 {
		p.sum.Refused429++
	}
}

// settled notes what a call used and cost.
func (p *progress) settled(s meter.Settlement, cost nano) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum.InputTokens += s.Input
	p.sum.OutputTokens += s.Output
	p.nowLocked().tokens += s.Input + s.Output
	p.cost += cost
	if s.Reported {
		m := p.outputs[s.Model]
		p.outputs[s.Model] = [2]int64{m[0] + s.Output, m[1] + 1}
	}
}

// expected is the mean output of a model, once ten answers said theirs.
func (p *progress) expected(model string) (tokens int64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.outputs[model]
	if m[1] < 10 {
		return 0, false
	}
	return m[0]/m[1] + 1, true
}

// spent is the cost so far.
func (p *progress) spent() nano {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cost
}

func (p *progress) skipped() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum.Skipped++
}

// maxNamed is how many bad lines are named on the screen.
const maxNamed = 20

func (p *progress) bad(line int, err error) {
	p.mu.Lock()
	p.sum.BadLines++
	n := p.sum.BadLines
	p.mu.Unlock()
	switch {
	case n <= maxNamed:
		p.say(fmt.Sprintf("line %d: %v", line, err))
	case n == maxNamed+1:
		p.say("more bad lines are in the output only")
	}
}

// holding says what holds the job, "" if nothing does, until when.
func (p *progress) holding(what string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held, p.next = what, func() time.Time { return until }
}

// halting says that nothing more is begun, and why.
func (p *progress) halting(why string) {
	p.stopping()
	p.say(why)
}

func (p *progress) stopping() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ending = true
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
	s := p.states()
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.line(time.Now(), s)
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

// rates are requests and tokens a second over the last minute, or since the
// beginning.
func (p *progress) rates(now time.Time) (requests, tokens float64) {
	at := int64(now.Sub(p.began) / time.Second)
	var r, t int64
	for _, s := range p.minute {
		if s.at > at-60 && s.at <= at {
			r, t = r+s.requests, t+s.tokens
		}
	}
	span := max(0.2, min(59+now.Sub(p.began).Seconds()-float64(at), now.Sub(p.began).Seconds()))
	return float64(r) / span, float64(t) / span
}

// line is the state in one line, what matters most first, as a narrow terminal
// cuts it:
//
//	failed 3  [#####-------] 120/300  done 14:32 (in 1m30s)  2.0/s  1.2k tok/s  429s 0  $0.12  waiting for tokens per minute
func (p *progress) line(now time.Time, state limit.Snapshot) string {
	var b strings.Builder
	if p.sum.Failed > 0 {
		fmt.Fprintf(&b, "failed %d  ", p.sum.Failed)
	}
	if p.sum.Left > 0 {
		fmt.Fprintf(&b, "left %d  ", p.sum.Left)
	}
	ended := p.sum.Requests + p.sum.Skipped + p.sum.BadLines
	if p.total > 0 {
		const width = 12
		full := int(min(ended, p.total) * width / p.total)
		fmt.Fprintf(&b, "[%s%s] %d/%d", strings.Repeat("#", full), strings.Repeat("-", width-full), ended, p.total)
	} else {
		fmt.Fprintf(&b, "%d done", ended)
	}
	requests, tokens := p.rates(now)
	wait := p.waitsFor(now, state)
	if p.total > ended && requests > 0 && !p.ending && p.held == "" {
		left := time.Duration(float64(p.total-ended) / requests * float64(time.Second))
		fmt.Fprintf(&b, "  done %s (in %v)", clock(now, now.Add(left)), left.Round(time.Second))
	}
	fmt.Fprintf(&b, "  %.1f/s  %s tok/s  429s %d", requests, short(tokens), p.sum.Refused429)
	if p.priced {
		fmt.Fprintf(&b, "  %v", p.cost)
	}
	if wait != "" {
		b.WriteString("  " + wait)
	}
	return b.String()
}

// clock is a time of day, and the day if it is another one.
func clock(now, t time.Time) string {
	if t.YearDay() != now.YearDay() || t.Year() != now.Year() {
		return t.Format("Mon 2 Jan 15:04")
	}
	return t.Format("15:04")
}

// waitsFor says what the job waits for.
func (p *progress) waitsFor(now time.Time, state limit.Snapshot) string {
	if p.ending {
		return fmt.Sprintf("stopping: %d answers under way", p.flying)
	}
	if p.held != "" {
		if until := p.next(); until.After(now) {
			return fmt.Sprintf("held: %s; next try in %v", p.held, until.Sub(now).Round(time.Second))
		}
		return fmt.Sprintf("held: %s; trying", p.held)
	}
	waiting, inFlight := state.Waiting, state.InFlight
	limit, worst, owner := "", int64(-1), ""
	var paused time.Duration
	for _, s := range append(state.Scopes, state) {
		if d := s.PausedUntil.Sub(now); !s.PausedUntil.IsZero() && d > paused {
			_, owner, _ = strings.Cut(s.Scope, "/")
			paused = d
		}
		for _, l := range s.Limits {
			// The limit that the line needs longest for.
			if l.Waiting > 0 && l.Rate.N > 0 {
				if ns := (l.Waiting + l.Debt - min(l.Credit, l.Waiting)) * 1_000_000 / l.Rate.N; ns > worst {
					limit, worst = l.Name, ns
				}
			}
		}
	}
	switch {
	case paused > 0:
		return fmt.Sprintf("paused by the provider for %v%s", max(time.Second, paused.Round(time.Second)), of(owner))
	case waiting > 0 && limit != "":
		return fmt.Sprintf("waiting for %s; %d under way", limit, inFlight)
	case waiting > 0:
		return fmt.Sprintf("waiting for a place; %d under way", inFlight)
	case p.sum.Requests == 0 && inFlight > 0:
		return "waiting for the first answer"
	case p.flying == 0 && p.others != nil && p.others.Load() > 0:
		return fmt.Sprintf("waiting for %d requests of other workers", p.others.Load())
	case inFlight > 0:
		return fmt.Sprintf("%d under way", inFlight)
	}
	return ""
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
	fmt.Fprintf(p.w, "batch: %d answered in %.1f s, %d failed, %d left; %d attempts, %d refused (429)\n",
		s.Completed, s.Seconds, s.Failed, s.Left, s.WireAttempts, s.Refused429)
	type count struct {
		what string
		n    int64
	}
	var kinds []count
	for what, n := range s.Kinds {
		kinds = append(kinds, count{what, n})
	}
	slices.SortFunc(kinds, func(a, b count) int {
		if a.n != b.n {
			return int(b.n - a.n)
		}
		return strings.Compare(a.what, b.what)
	})
	for i, k := range kinds {
		if i == 5 {
			fmt.Fprintf(p.w, "batch: %8d more kinds\n", len(kinds)-i)
			break
		}
		fmt.Fprintf(p.w, "batch: %8d %s\n", k.n, k.what)
	}
	fmt.Fprintf(p.w, "batch: %s tokens in, %s out; longest wait %.1f s", short(float64(s.InputTokens)), short(float64(s.OutputTokens)), s.LongestWait)
	if p.priced {
		fmt.Fprintf(p.w, "; cost %v", p.cost)
	}
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

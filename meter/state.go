package meter

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A State is all that a [Meter] knows at one instant.
type State struct {
	At      time.Time     `json:"at"`
	Up      time.Duration `json:"up"`      // since the Meter was made, nanoseconds
	Why     string        `json:"why"`     // in a sentence: does anybody wait, and for what
	Hints   []string      `json:"hints"`   // what seems to be wrong, and what to do
	Budgets []Budget      `json:"budgets"` // in the order of their names' first use
	Tenants []Series      `json:"tenants"` // the heaviest first, the rest last
	Scopes  []Series      `json:"scopes"`  // the same of Options.Scope
	Line    []Waiter      `json:"line"`    // who waits, by arrival, at most as many as were asked for
	Events  []Event       `json:"events"`  // the newest first
	Chart   []Second      `json:"chart"`   // the present second last
}

// A Budget is one watched Transport.
type Budget struct {
	Series
	Scopes []Scope       `json:"scopes"` // the root first; none if the budget is not watched
	Pacing time.Duration `json:"pacing"` // how long somebody waited, in all
	Paused int64         `json:"paused"` // pauses asked for
	// MeanWait is that of the calls that were admitted in the last minute; 0 if none was.
	MeanWait time.Duration `json:"meanWait"`
	Askers   []Asker       `json:"askers"`  // by whom, in the order of their first; at most 17, the last is Rest
	Asked    time.Duration `json:"asked"`   // their sum
	Lowered  int64         `json:"lowered"` // credit that answers took
	Changed  int64         `json:"changed"` // limits that answers changed
	Doubted  int64         `json:"doubted"` // charge rules that answers contradicted
	Rule     [2]string     `json:"rule"`    // the last of them, and as the answers show it
	Left     []Headroom    `json:"left"`    // one for each unit
}

// An Asker is who asked for pauses: the host of a provider, or "provider" where
// its name is not known.
type Asker struct {
	By     string `json:"by"`
	Pauses int64  `json:"pauses"`
}

// A Headroom is what the provider last said is left.
type Headroom struct {
	Unit  string `json:"unit"`
	Known bool   `json:"known"` // false: it said nothing so far, and Left is 0
	Left  int64  `json:"left"`
}

// A Waiter is a call in the line.
type Waiter struct {
	Budget   string        `json:"budget"`
	Tenant   string        `json:"tenant"`
	Scope    string        `json:"scope"`
	Since    time.Duration `json:"since"`    // how long it has waited, nanoseconds
	Requests int64         `json:"requests"` // its cost
	Tokens   int64         `json:"tokens"`
	For      string        `json:"for"`      // what it waits for: the name of a limit, or words
	Of       string        `json:"of"`       // the scope of that limit
	Expected time.Duration `json:"expected"` // when it goes, from now; about, where tenants or several scopes wait
}

// Read returns the state now, with at most so many who wait, and the seconds of
// the chart from that one on. It asks every watched budget for its snapshot.
func (m *Meter) Read(waiters int, from int64) State {
	m.mu.Lock()
	budgets := slices.Clone(m.budgets)
	sources := make([]Snapshotter, len(budgets))
	for i, b := range budgets {
		sources[i] = b.source
	}
	m.mu.Unlock()
	states := make([][]Scope, len(budgets))
	for i, s := range sources {
		if s != nil { // the meter's lock is not held: a budget has its own
			states[i] = scopes(budgets[i].series.name, s.Snapshot())
		}
	}

	now := m.lock()
	defer m.mu.Unlock()
	out := State{
		At: m.time(now), Up: now, Line: []Waiter{},
		Tenants: m.tenants.list(), Scopes: m.scopes.list(),
		Events: m.events.list(), Chart: m.charts.since(from),
	}
	for i, b := range budgets {
		out.Budgets = append(out.Budgets, b.read(now, states[i]))
		out.Line = append(out.Line, b.line.read(b, now, out.At, states[i], waiters)...)
	}
	slices.SortStableFunc(out.Line, func(a, b Waiter) int { return cmp.Compare(b.Since, a.Since) })
	out.Line = out.Line[:min(len(out.Line), waiters)]
	out.Why = why(out.At, out.Budgets, out.Line)
	out.Hints = hints(out.Budgets, out.Tenants)
	return out
}

func (b *budget) read(now time.Duration, scopes []Scope) Budget {
	out := Budget{
		Series: b.series.series(), Scopes: scopes, Pacing: b.pacing, MeanWait: b.waits.mean(now),
		Paused: b.paused, Askers: append([]Asker{}, b.askers...), Asked: b.asked, Lowered: b.lowered, Changed: b.changed, Doubted: b.doubted, Rule: b.rule,
	}
	if out.Scopes == nil {
		out.Scopes = []Scope{}
	}
	if b.line.n > 0 {
		out.Pacing += now - b.since
	}
	for u := range b.left {
		out.Left = append(out.Left, Headroom{limit.Unit(u).String(), b.known[u], b.left[u]})
	}
	return out
}

// read returns the first of the line, with what each waits for: the limit that
// takes the longest to have what it and those before it cost.
func (l *line) read(b *budget, now time.Duration, at time.Time, scopes []Scope, most int) []Waiter {
	var out []Waiter
	var ahead limit.Cost
	for c := l.first; c != nil && len(out) < most; c = c.after {
		ahead.Requests += c.cost.Requests
		ahead.Input += c.cost.Input
		ahead.Output += c.cost.Output
		w := Waiter{
			Budget: b.series.name, Tenant: c.name, Scope: c.within, Since: max(0, now-c.queued),
			Requests: c.cost.Requests, Tokens: c.cost.Input + c.cost.Output,
		}
		w.For, w.Of, w.Expected = slowest(ahead, int64(len(out)), at, scopes)
		out = append(out, w)
	}
	return out
}

// slowest is what holds a call up whose cost, with that of those before it, is
// ahead.
func slowest(ahead limit.Cost, before int64, at time.Time, scopes []Scope) (name, of string, wait time.Duration) {
	name = "its turn"
	for _, s := range scopes {
		if s.Pause != nil { // named while it lasts, whatever lacks behind it
			name, wait = "the end of the pause", max(wait, s.Pause.Until.Sub(at))
		}
	}
	paused := name
	asked := func(l *Limit) bool { return l.Waiting > 0 }
	if !slices.ContainsFunc(scopes, func(s Scope) bool { return slices.ContainsFunc(s.Limits, func(l Limit) bool { return asked(&l) }) }) {
		asked = func(*Limit) bool { return true } // the line formed since the snapshot
	}
	for _, s := range scopes {
		for i := range s.Limits {
			l := &s.Limits[i]
			lacks := l.part(ahead) - l.Credit + l.Debt
			if lacks <= 0 || l.N <= 0 || l.part(ahead) == 0 || !asked(l) {
				continue
			}
			d := float64(lacks) / l.PerSecond()
			if w := time.Duration(min(d, 3e9) * float64(time.Second)); w > wait {
				wait = w
				if paused == "its turn" {
					name, of = l.Name, s.Name
				}
			}
		}
		if s.MaxInFlight > 0 && s.InFlight+before >= s.MaxInFlight && wait == 0 {
			name = "a place in flight"
		}
	}
	return name, of, wait
}

// why says in a sentence or two whether anybody waits, and for what.
func why(at time.Time, budgets []Budget, line []Waiter) string {
	waiting := int64(0)
	for _, b := range budgets {
		waiting += b.Waiting
		for _, s := range b.Scopes {
			if s.Pause == nil {
				continue
			}
			return fmt.Sprintf("%s is %s. %s.", scopeName(s), s.Pause.Say(at), waits(b.Waiting))
		}
	}
	if waiting == 0 || len(line) == 0 {
		return "Nobody waits."
	}
	text := waits(waiting) + ". "
	first := line[0]
	for _, w := range line {
		if w.Expected < first.Expected {
			first = w
		}
	}
	for _, b := range budgets {
		for _, s := range b.Scopes {
			for _, l := range s.Limits {
				if b.Name == first.Budget && s.Name == first.Of && l.Name == first.For {
					has := fmt.Sprintf("has %s of %s %s", Number(l.Credit), Number(l.Capacity), l.Unit)
					if l.Debt > 0 {
						has = fmt.Sprintf("is %s %s in debt", Number(l.Debt), l.Unit)
					}
					name := l.Name
					if s.Name != "" {
						name += " of " + s.Name
					}
					return text + fmt.Sprintf("The next goes in about %s: %s %s and earns %s a second.", Short(first.Expected), name, has, rate(l.PerSecond()))
				}
			}
		}
	}
	if first.Expected == 0 && first.For == "its turn" {
		return text + "The next goes now."
	}
	return text + "The next waits for " + first.For + "."
}

// Say describes a pause in words, such as "paused for 12 s more, because the
// provider refused a call".
func (p *Pause) Say(at time.Time) string {
	text := "paused until a probe succeeds"
	if d := p.Until.Sub(at); d > 0 {
		text = fmt.Sprintf("paused for %s more", Short(d))
	}
	if p.Probe {
		text += " (a probe is under way)"
	}
	switch {
	case p.By == "" && p.Why == "":
		return text + ", because the provider refused a call"
	case p.Why == "":
		return text + ", asked for by " + p.By
	case p.By == "":
		return text + ": " + p.Why
	}
	return text + ", asked for by " + p.By + ": " + p.Why
}

func waits(n int64) string {
	switch n {
	case 0:
		return "Nobody waits"
	case 1:
		return "1 call waits"
	}
	return Number(n) + " calls wait"
}

func scopeName(s Scope) string {
	if s.Name == "" {
		return s.Budget
	}
	return s.Budget + ", " + s.Name
}

// Number writes n with commas between thousands.
func Number(n int64) string {
	s := fmt.Sprint(n)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// rate writes a rate with two digits at least.
func rate(f float64) string {
	if f >= 10 || f == float64(int64(f)) {
		return Number(int64(f))
	}
	return fmt.Sprintf("%.2g", f)
}

// Short writes a duration with the digits that say something: "12 s", "1.4 s",
// "250 ms", "3 min", "2.5 h".
func Short(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 s"
	case d < time.Millisecond:
		return "1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}

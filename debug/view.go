package debug

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/meter"
)

// view is a State as the page tells it: texts, and lengths in per mille.
type view struct {
	Mood    string // "idle", "wait", "pause", "debt": the colour of the sentence
	Why     string
	Advice  string
	Hints   []string
	Up      string
	Tiles   []tile
	Scopes  []scope
	Charts  []graph
	Line    []waiter
	More    string // who waits beyond Line
	Tenants []tenant
	Ends    []count // attempts by outcome
	Refusal []count // local refusals by reason
	Events  []event
}

type tile struct{ Name, Value, Note string }

type scope struct {
	Name    string
	Limits  []gauge
	Flight  string
	Waiting string // "" if nobody waits
	Unknown bool   // there is no limit of any kind
	Pause   string // "" if there is none
	Left    string // headroom as the provider states it
}

type gauge struct {
	Name, Text, Law, Label string
	Full                   int // credit, or debt, of the capacity, in per mille
	Debt                   bool
	Asked                  string
}

type waiter struct{ Tenant, Budget, Since, Cost, For, Of, Expected string }

type tenant struct {
	Name, Share, Tokens, Calls, Waiting, Wait string
	Bar                                       int // per mille
}

type count struct {
	Name  string
	Value string
	Some  bool
}

type event struct{ Clock, Time, Text string }

// graph is a chart: up to two lines over the last minutes.
type graph struct {
	Name, Unit, Top, Label string
	Lines                  []curve
}

type curve struct {
	Name, Class, Now string
	Path             string // in a box of 300 by 100
}

func viewOf(s meter.State) view {
	v := view{Why: s.Why, Hints: s.Hints, Up: meter.Short(s.Up), Mood: "idle"}
	var all meter.Counts
	waiting, flight := int64(0), int64(0)
	debt, paused := false, false
	for _, b := range s.Budgets {
		waiting += b.Waiting
		flight += b.InFlight
		all.Estimated.Input += b.Estimated.Input
		all.Estimated.Output += b.Estimated.Output
		all.Used.Input += b.Used.Input
		all.Used.Output += b.Used.Output
		all.Settled += b.Settled
		all.Reported += b.Reported
		for i, n := range b.Attempts {
			all.Attempts[i] += n
		}
		for i, n := range b.Refused {
			all.Refused[i] += n
		}
		for _, sc := range shown(b.Scopes) {
			v.Scopes = append(v.Scopes, scopeOf(b, sc, s.At))
		}
		for _, sc := range b.Scopes {
			paused = paused || sc.Pause != nil
			for _, l := range sc.Limits {
				debt = debt || l.Debt > 0
			}
		}
	}
	switch {
	case paused:
		v.Mood = "pause"
	case waiting > 0 && debt:
		v.Mood = "debt"
	case waiting > 0:
		v.Mood = "wait"
	}
	past := s.Chart[:max(0, len(s.Chart)-1)] // whole seconds
	minute := past[max(0, len(past)-60):]
	v.Tiles = tiles(minute, past, waiting, flight, &all)
	v.Advice = advice(minute, waiting, paused, debt)
	v.Charts = charts(past)
	v.line(s, waiting)
	v.tenants(s.Tenants)
	for o := range meter.Outcomes {
		v.Ends = append(v.Ends, count{strings.ReplaceAll(o.String(), "_", " "), meter.Number(all.Attempts[o]), all.Attempts[o] > 0})
	}
	for r := range meter.Reasons {
		v.Refusal = append(v.Refusal, count{strings.ReplaceAll(r.String(), "_", " "), meter.Number(all.Refused[r]), all.Refused[r] > 0})
	}
	for _, e := range s.Events[:min(len(s.Events), 8)] {
		v.Events = append(v.Events, event{e.At.Format("15:04:05"), e.At.UTC().Format(time.RFC3339), eventText(e)})
	}
	return v
}

// mostScopes is how many scopes of a budget are shown.
const mostScopes = 24

// shown are the scopes of a budget that have something to show: a limit, a pause, a
// line, places of their own. There is always one. With many, those go first that
// hold somebody up, then those that have served most.
func shown(all []meter.Scope) []meter.Scope {
	some := slices.DeleteFunc(slices.Clone(all), func(s meter.Scope) bool {
		return len(s.Limits) == 0 && s.Pause == nil && s.MaxInFlight == 0 && s.Degraded == ""
	})
	if len(some) == 0 {
		some = all[:min(1, len(all))]
	}
	if len(some) > mostScopes {
		held := func(s meter.Scope) int64 {
			if s.Pause != nil {
				return 1 << 40
			}
			return s.Waiting
		}
		slices.SortStableFunc(some, func(a, b meter.Scope) int {
			return cmp.Or(cmp.Compare(held(b), held(a)), cmp.Compare(b.Served.Input+b.Served.Output, a.Served.Input+a.Served.Output))
		})
		some = some[:mostScopes]
	}
	return some
}

func scopeOf(b meter.Budget, s meter.Scope, at time.Time) scope {
	out := scope{Name: s.Budget}
	if s.Name != "" {
		out.Name += " / " + s.Name
	}
	out.Unknown = len(s.Limits) == 0 && s.MaxInFlight == 0
	out.Flight = meter.Number(s.InFlight)
	if s.Waiting > 0 {
		out.Waiting = fmt.Sprintf("%s wait, the first for %s", meter.Number(s.Waiting), meter.Short(s.Oldest))
	}
	if s.MaxInFlight > 0 {
		out.Flight += " of " + meter.Number(s.MaxInFlight)
	}
	if p := s.Pause; p != nil {
		text := p.Say(at)
		out.Pause = strings.ToUpper(text[:1]) + text[1:] + "."
	}
	for _, l := range s.Limits {
		out.Limits = append(out.Limits, gaugeOf(l))
	}
	var left []string
	for _, h := range b.Left {
		if h.Known {
			left = append(left, meter.Number(h.Left)+" "+h.Unit)
		}
	}
	if first := shown(b.Scopes)[0]; s.Name == first.Name {
		out.Left = strings.Join(left, ", ")
	}
	return out
}

func gaugeOf(l meter.Limit) gauge {
	g := gauge{
		Name: l.Name, Debt: l.Debt > 0,
		Law: fmt.Sprintf("%s %s in %s, as a %s; earns %s a second", meter.Number(l.N), l.Unit, span(l.Window), l.Kind, perSecond(l.PerSecond())),
	}
	if l.Wanted > 0 && l.N < l.Wanted {
		g.Law += "; configured are " + meter.Number(l.Wanted)
	}
	if l.Waiting > 0 {
		g.Asked = "the line asks for " + meter.Number(l.Waiting)
	}
	n := l.Credit
	g.Text = fmt.Sprintf("%s of %s", meter.Number(l.Credit), meter.Number(l.Capacity))
	if g.Debt {
		n = l.Debt
		g.Text = meter.Number(l.Debt) + " in debt"
		if p := l.PerSecond(); p > 0 {
			g.Text += ", paid off in " + meter.Short(time.Duration(min(float64(l.Debt)/p, 1e9)*float64(time.Second)))
		}
	}
	g.Full = share(n, l.Capacity)
	g.Label = g.Name + ": " + g.Text
	return g
}

// share is n of all, in per mille, between 0 and 1000.
func share(n, all int64) int {
	if all <= 0 {
		return 0
	}
	return int(min(1000, max(0, float64(n)/float64(all)*1000)))
}

func perSecond(f float64) string {
	if f >= 100 || f == math.Trunc(f) {
		return meter.Number(int64(f))
	}
	return fmt.Sprintf("%.2g", f)
}

func span(d time.Duration) string {
	switch d {
	case time.Second:
		return "a second"
	case time.Minute:
		return "a minute"
	case time.Hour:
		return "an hour"
	case 24 * time.Hour:
		return "a day"
	}
	return meter.Short(d)
}

func tiles(minute, past []meter.Second, waiting, flight int64, all *meter.Counts) []tile {
	var admitted, settled, refused int64
	var waits float64
	for _, s := range minute {
		admitted += s.Admitted
		settled += s.Settled
		waits += s.Waits
	}
	for _, s := range past {
		refused += s.RateLimited
	}
	mean, pace := "none", "0 %"
	if admitted > 0 {
		mean = meter.Short(time.Duration(waits / float64(admitted) * float64(time.Second)))
	}
	rate := "0"
	if len(minute) > 0 {
		rate = perSecond(math.Round(float64(admitted)/float64(len(minute))*10) / 10)
		pace = fmt.Sprintf("%.0f %%", pacing(minute)*100)
	}
	estimate, note := "unknown", "no answer has reported its usage yet"
	if all.Reported > 0 && all.Used.Sum() > 0 {
		estimate = fmt.Sprintf("%+.0f %%", (float64(all.Estimated.Sum())/float64(all.Used.Sum())-1)*100)
		note = fmt.Sprintf("%s tokens estimated with the output caps, %s used", meter.Number(all.Estimated.Sum()), meter.Number(all.Used.Sum()))
	}
	return []tile{
		{"Waiting", meter.Number(waiting), "calls in the line now"},
		{"Mean wait", mean, "of the last minute's calls"},
		{"Admitted", rate + " /s", "mean of the last minute"},
		{"In flight", meter.Number(flight), "calls under way"},
		{"Pacing", pace, "of the last minute somebody waited"},
		{"429 answers", meter.Number(refused), "in the last five minutes"},
		{"Estimate against use", estimate, note},
	}
}

func pacing(seconds []meter.Second) float64 {
	if len(seconds) == 0 {
		return 0
	}
	sum := 0.0
	for _, s := range seconds {
		sum += s.Paced
	}
	return sum / float64(len(seconds))
}

// advice answers whether one more worker would help.
func advice(minute []meter.Second, waiting int64, paused, debt bool) string {
	if len(minute) < 10 {
		return ""
	}
	switch p := pacing(minute); {
	case paused:
		return "More workers would only wait as well."
	case debt && waiting > 0:
		return "Calls cost more than was estimated. The debt is waited off first: more workers would only wait longer."
	case p > .95:
		return "Somebody has waited nearly all of the last minute: the limits are used, and more workers would only wait longer."
	case p > .3:
		return "Somebody waits part of the time: more workers would use what is left."
	case waiting == 0:
		return "The limits have room: more workers would be served at once."
	}
	return ""
}

func charts(past []meter.Second) []graph {
	return []graph{
		graphOf(past, "Calls", "a second",
			series{"asked", "two", func(s *meter.Second) int64 { return s.Queued }},
			series{"admitted", "one", func(s *meter.Second) int64 { return s.Admitted }}),
		graphOf(past, "Waiting", "calls", series{"in the line", "one", func(s *meter.Second) int64 { return s.Waiting }}),
		graphOf(past, "Tokens of settled calls", "a second",
			series{"estimated", "two", func(s *meter.Second) int64 { return s.Estimated }},
			series{"used", "one", func(s *meter.Second) int64 { return s.Used }}),
		graphOf(past, "Refused", "a second",
			series{"429 from the provider", "bad", func(s *meter.Second) int64 { return s.RateLimited }},
			series{"by the limiter", "two", func(s *meter.Second) int64 { return s.Refused }}),
	}
}

type series struct {
	name, class string
	of          func(*meter.Second) int64
}

// chartSpan is how many seconds a chart shows.
const chartSpan = 300

func graphOf(past []meter.Second, name, unit string, all ...series) graph {
	g := graph{Name: name, Unit: unit}
	top := int64(1)
	for i := range past {
		for _, s := range all {
			top = max(top, s.of(&past[i]))
		}
	}
	top = round(top)
	g.Top = meter.Number(top)
	var label strings.Builder
	fmt.Fprintf(&label, "%s, %s, the last five minutes, from 0 to %s.", name, unit, g.Top)
	for _, s := range all {
		c := curve{Name: s.name, Class: s.class, Now: "0"}
		var p strings.Builder
		for i := range past {
			x := chartSpan - len(past) + i
			y := 100 - float64(s.of(&past[i]))/float64(top)*100
			if i == 0 {
				fmt.Fprintf(&p, "M%d %.1f", x, y)
			} else {
				fmt.Fprintf(&p, "L%d %.1f", x, y)
			}
		}
		if n := len(past); n > 0 {
			c.Now = meter.Number(s.of(&past[n-1]))
		}
		c.Path = p.String()
		fmt.Fprintf(&label, " %s: now %s.", c.Name, c.Now)
		g.Lines = append(g.Lines, c)
	}
	g.Label = label.String()
	return g
}

// round raises n to 1, 2 or 5 times a power of ten.
func round(n int64) int64 {
	for p := int64(1); ; p *= 10 {
		for _, f := range []int64{1, 2, 5} {
			if p*f >= n {
				return p * f
			}
		}
	}
}

func (v *view) line(s meter.State, waiting int64) {
	for _, w := range s.Line {
		v.Line = append(v.Line, waiter{
			Tenant: name(w.Tenant), Budget: w.Budget, Since: meter.Short(w.Since),
			Cost: fmt.Sprintf("%s tokens", meter.Number(w.Tokens)), For: w.For, Of: w.Of, Expected: meter.Short(w.Expected),
		})
	}
	if more := waiting - int64(len(s.Line)); more > 0 && len(s.Line) > 0 {
		v.More = meter.Number(more) + " more wait behind them."
	}
}

func name(tenant string) string {
	if tenant == "" {
		return "(no name)"
	}
	return tenant
}

func (v *view) tenants(all []meter.Series) {
	total := int64(0)
	for _, t := range all {
		total += t.Charged.Sum()
	}
	for _, t := range all {
		if t.Queued == 0 {
			continue
		}
		wait := "none yet"
		if m, ok := t.Wait.Mean(); ok {
			wait = meter.Short(time.Duration(m * float64(time.Second)))
		}
		bar := share(t.Charged.Sum(), total)
		v.Tenants = append(v.Tenants, tenant{
			Name: name(t.Name), Bar: bar, Share: fmt.Sprintf("%.1f %%", float64(bar)/10),
			Tokens: meter.Number(t.Charged.Sum()), Calls: meter.Number(t.Admitted), Waiting: meter.Number(t.Waiting), Wait: wait,
		})
	}
	v.Tenants = slices.Clip(v.Tenants)
}

func eventText(e meter.Event) string {
	switch e.Kind {
	case "pause":
		text := fmt.Sprintf("%s: paused for %s", e.Budget, meter.Short(e.For))
		if e.By == "" {
			return text + ", as the provider asked"
		}
		if e.Why == "" {
			return fmt.Sprintf("%s, as %s asked", text, e.By)
		}
		return fmt.Sprintf("%s, as %s asked: %s", text, e.By, e.Why)
	case "limit":
		from := e.From
		if from == "unlimited" {
			return fmt.Sprintf("%s: learned the limit %s, %s", e.Budget, e.Limit, e.To)
		}
		return fmt.Sprintf("%s: %s is now %s, was %s", e.Budget, e.Limit, e.To, from)
	}
	return fmt.Sprintf("%s: calls seem to be charged by the rule %q, not %q", e.Budget, e.To, e.From)
}

package meter

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// A Kind says how a [Metric] moves.
type Kind uint8

// The kinds of metrics.
const (
	Counter     Kind = iota // a sum that only grows
	Gauge                   // a value now
	Distributed             // a histogram
)

// A Metric is one name with all its series, for packages that export metrics.
type Metric struct {
	Name   string // with dots, as OpenTelemetry has it: "tripmeter.calls.admitted"
	Unit   string // in UCUM, as OpenTelemetry has it: "s", "{call}", "1"
	Help   string
	Kind   Kind
	Labels []string
	Points []Point
}

// A Point is one series of a [Metric].
type Point struct {
	Values    []string   // of the labels, in their order
	Value     float64    // unless it is a histogram
	Histogram *Histogram // if it is
}

// GenAI says which names of OpenTelemetry's GenAI conventions are exported.
type GenAI uint8

// The sets of names.
const (
	Stable GenAI = iota // gen_ai.client.token.usage and gen_ai.client.operation.duration, which dashboards have
	Latest              // gen_ai.client.inference.*, of release v0.1.0 of the conventions
	Off                 // none
)

// GenAIFrom reads the switch of the conventions, the environment's value of
// OTEL_SEMCONV_STABILITY_OPT_IN: a list with commas, in which
// gen_ai_latest_experimental chooses [Latest].
func GenAIFrom(optIn string) GenAI {
	for s := range splitList(optIn) {
		if s == "gen_ai_latest_experimental" {
			return Latest
		}
	}
	return Stable
}

func splitList(s string) func(func(string) bool) {
	return func(yield func(string) bool) {
		start := 0
		for i := 0; i <= len(s); i++ {
			if i == len(s) || s[i] == ',' || s[i] == ' ' {
				if i > start && !yield(s[start:i]) {
					return
				}
				start = i + 1
			}
		}
	}
}

// Metrics returns every metric, always the same names in the same order. The
// series of the limiter are there from the start, at 0. Those of the GenAI
// conventions come with the first call, whose provider and operation are their
// labels.
func (m *Meter) Metrics(genAI GenAI) []Metric {
	s := m.Read(0, 1<<62)
	var t table
	t.calls(s.Budgets)
	t.state(m.bounded(s.Budgets))
	t.tenants(s.Tenants)
	if m.o.Scope == nil {
		s.Scopes = nil
	}
	t.scopes(s.Scopes)
	m.genAI(&t, genAI)
	out := make([]Metric, len(t.all))
	for i, v := range t.all {
		out[i] = *v
	}
	return out
}

type table struct{ all []*Metric }

func (t *table) add(kind Kind, name, unit, help string, labels ...string) *Metric {
	m := &Metric{Name: name, Unit: unit, Help: help, Kind: kind, Labels: labels}
	t.all = append(t.all, m)
	return m
}

func (m *Metric) set(v float64, values ...string) {
	m.Points = append(m.Points, Point{Values: values, Value: v})
}

func (m *Metric) spread(h Histogram, values ...string) {
	m.Points = append(m.Points, Point{Values: values, Histogram: &h})
}

// each adds a metric with one value a budget.
func each(t *table, budgets []Budget, kind Kind, name, unit, help string, of func(*Budget) float64) {
	m := t.add(kind, name, unit, help, "budget")
	for i := range budgets {
		m.set(of(&budgets[i]), budgets[i].Name)
	}
}

func (t *table) calls(bs []Budget) {
	each(t, bs, Counter, "tripmeter.calls.queued", "{call}", "Calls that asked to be admitted.", func(b *Budget) float64 { return float64(b.Queued) })
	each(t, bs, Counter, "tripmeter.calls.admitted", "{call}", "Calls that were admitted.", func(b *Budget) float64 { return float64(b.Admitted) })
	each(t, bs, Counter, "tripmeter.calls.settled", "{call}", "Calls that are over.", func(b *Budget) float64 { return float64(b.Settled) })
	each(t, bs, Counter, "tripmeter.calls.reported", "{call}", "Calls whose answer reported its usage.", func(b *Budget) float64 { return float64(b.Reported) })
	refused := t.add(Counter, "tripmeter.refusals", "{call}", "Calls, and further attempts, that the limiter refused before they were sent.", "budget", "reason")
	for i := range bs {
		for r := range Reasons {
			refused.set(float64(bs[i].Refused[r]), bs[i].Name, r.String())
		}
	}
	attempts := t.add(Counter, "tripmeter.attempts", "{attempt}", "Attempts on the wire, by how they ended.", "budget", "outcome")
	for i := range bs {
		for o := range Outcomes {
			attempts.set(float64(bs[i].Attempts[o]), bs[i].Name, o.String())
		}
	}
	wait := t.add(Distributed, "tripmeter.wait", "s", "How long admitted calls stood in the line. Waits are spread evenly under pacing: watch the mean, which is sum by count.", "budget")
	header := t.add(Distributed, "tripmeter.attempt.header", "s", "From the start of an attempt to its response header.", "budget")
	for i := range bs {
		wait.spread(bs[i].Wait, bs[i].Name)
		header.spread(bs[i].Header, bs[i].Name)
	}
	each(t, bs, Gauge, "tripmeter.wait.mean", "s", "The mean wait of the calls that were admitted in the last minute; 0 if none was.", func(b *Budget) float64 { return b.MeanWait.Seconds() })
	each(t, bs, Counter, "tripmeter.pacing", "s", "Time in which somebody waited. Its rate is the share of time: at 1 more workers do not help.", func(b *Budget) float64 { return b.Pacing.Seconds() })
	direction := func(name, help string, of func(*Budget) Tokens) {
		m := t.add(Counter, name, "{token}", help, "budget", "direction")
		for i := range bs {
			v := of(&bs[i])
			m.set(float64(v.Input), bs[i].Name, "input")
			m.set(float64(v.Output), bs[i].Name, "output")
		}
	}
	direction("tripmeter.tokens.charged", "Tokens of settled calls, as the ledger keeps them.", func(b *Budget) Tokens { return b.Charged })
	direction("tripmeter.tokens.estimated", "Tokens of calls that reported their usage, as estimated before they left.", func(b *Budget) Tokens { return b.Estimated })
	direction("tripmeter.tokens.used", "Tokens of calls that reported their usage, as reported.", func(b *Budget) Tokens { return b.Used })
	each(t, bs, Counter, "tripmeter.tokens.cached", "{token}", "Input tokens that were read from the provider's cache.", func(b *Budget) float64 { return float64(b.Cached) })
	ratio := t.add(Distributed, "tripmeter.estimate.ratio", "1", "What was estimated for what was used, of each call. 1 is exact, above it too much was reserved.", "budget", "direction")
	for i := range bs {
		ratio.spread(bs[i].InputError, bs[i].Name, "input")
		ratio.spread(bs[i].OutputError, bs[i].Name, "output")
	}
	pauses := t.add(Counter, "tripmeter.pauses", "{pause}", "Pauses, by the host that asked for them; \"provider\" where its name is not known.", "budget", "by")
	for i := range bs {
		unnamed := float64(0) // there from the start
		for _, a := range bs[i].Askers {
			if a.By == someProvider {
				unnamed = float64(a.Pauses)
				continue
			}
			pauses.set(float64(a.Pauses), bs[i].Name, a.By)
		}
		pauses.set(unnamed, bs[i].Name, someProvider)
	}
	each(t, bs, Counter, "tripmeter.pause.asked", "s", "The lengths of all pauses that were asked for. They may overlap.", func(b *Budget) float64 { return b.Asked.Seconds() })
	each(t, bs, Counter, "tripmeter.lowered", "{reading}", "Answers whose remaining quota took credit away.", func(b *Budget) float64 { return float64(b.Lowered) })
	each(t, bs, Counter, "tripmeter.limit.changes", "{change}", "Limits that answers changed.", func(b *Budget) float64 { return float64(b.Changed) })
	each(t, bs, Counter, "tripmeter.charge.doubts", "{doubt}", "Times that answers contradicted the charge rule.", func(b *Budget) float64 { return float64(b.Doubted) })
	left := t.add(Gauge, "tripmeter.headroom", "1", "What the provider last said is left, in units. Not to be read where tripmeter.headroom.known is 0.", "budget", "unit")
	for i := range bs {
		for _, h := range bs[i].Left {
			left.set(float64(h.Left), bs[i].Name, h.Unit)
		}
	}
	known := t.add(Gauge, "tripmeter.headroom.known", "1", "Whether the provider has said what is left, 0 or 1.", "budget", "unit")
	for i := range bs {
		for _, h := range bs[i].Left {
			known.set(flag(h.Known), bs[i].Name, h.Unit)
		}
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// bounded returns the scopes that have series of their own: each root, and of the
// others as many as Options.Scopes, those that served most. The others of a
// budget are one scope together, without limits.
func (m *Meter) bounded(bs []Budget) []Scope {
	var out []Scope
	for _, b := range bs {
		if len(b.Scopes) == 0 {
			continue
		}
		out = append(out, b.Scopes[0])
		others := slices.Clone(b.Scopes[1:])
		slices.SortStableFunc(others, func(a, b Scope) int {
			return cmp.Compare(b.Served.Input+b.Served.Output+b.Served.Requests, a.Served.Input+a.Served.Output+a.Served.Requests)
		})
		out = append(out, others[:min(len(others), m.o.Scopes)]...)
		if len(others) <= m.o.Scopes {
			continue
		}
		rest := Scope{Budget: b.Name, Name: Rest}
		for _, s := range others[m.o.Scopes:] {
			rest.Waiting += s.Waiting
			rest.InFlight += s.InFlight
			if s.Pause != nil {
				rest.Pause = s.Pause
			}
		}
		out = append(out, rest)
	}
	return out
}

func (t *table) state(all []Scope) {
	scope := func(name, unit, help string, of func(*Scope) float64) {
		m := t.add(Gauge, name, unit, help, "budget", "scope")
		for i := range all {
			m.set(of(&all[i]), all[i].Budget, all[i].Name)
		}
	}
	scope("tripmeter.waiting", "{call}", "Calls in the line now.", func(s *Scope) float64 { return float64(s.Waiting) })
	scope("tripmeter.waiting.oldest", "s", "How long the first of the line has waited.", func(s *Scope) float64 { return s.Oldest.Seconds() })
	scope("tripmeter.in_flight", "{call}", "Calls under way now.", func(s *Scope) float64 { return float64(s.InFlight) })
	scope("tripmeter.in_flight.limit", "{call}", "How many may be under way; 0 is any number.", func(s *Scope) float64 { return float64(s.MaxInFlight) })
	scope("tripmeter.paused", "1", "Whether a pause holds the scope now, 0 or 1.", func(s *Scope) float64 { return flag(s.Pause != nil) })
	scope("tripmeter.degraded", "1", "Whether the limits are not kept as they should be, such as when a shared store is away, 0 or 1.", func(s *Scope) float64 { return flag(s.Degraded != "") })
	limits := func(name, unit, help string, of func(*Limit) float64) {
		m := t.add(Gauge, name, unit, help, "budget", "scope", "limit", "unit")
		for _, s := range all {
			for i := range s.Limits {
				m.set(of(&s.Limits[i]), s.Budget, s.Name, s.Limits[i].Name, s.Limits[i].Unit)
			}
		}
	}
	limits("tripmeter.limit", "1", "Units that the limit allows in its window, as in force.", func(l *Limit) float64 { return float64(l.N) })
	limits("tripmeter.limit.configured", "1", "The same as configured; 0 if it was learned.", func(l *Limit) float64 { return float64(l.Wanted) })
	limits("tripmeter.limit.window", "s", "The window of the limit.", func(l *Limit) float64 { return l.Window.Seconds() })
	limits("tripmeter.limit.capacity", "1", "Most units that may be there at once.", func(l *Limit) float64 { return float64(l.Capacity) })
	limits("tripmeter.credit", "1", "Units there now.", func(l *Limit) float64 { return float64(l.Credit) })
	limits("tripmeter.debt", "1", "Units owed.", func(l *Limit) float64 { return float64(l.Debt) })
	limits("tripmeter.demand", "1", "Units that the line asks of the limit.", func(l *Limit) float64 { return float64(l.Waiting) })
	law := t.add(Gauge, "tripmeter.limit.law", "1", "How the limit is believed to count: 1 for that kind.", "budget", "scope", "limit", "kind")
	for _, s := range all {
		for _, l := range s.Limits {
			law.set(1, s.Budget, s.Name, l.Name, l.Kind)
		}
	}
}

func (t *table) tenants(all []Series) { t.sums("tripmeter.tenant", "tenant", "of the tenant", all) }
func (t *table) scopes(all []Series)  { t.sums("tripmeter.scope", "scope", "of the scope", all) }

// sums adds the metrics of series that are chosen by their weight.
func (t *table) sums(prefix, label, whose string, all []Series) {
	one := func(kind Kind, name, unit, help string, of func(*Series) float64) {
		m := t.add(kind, prefix+name, unit, help+" "+whose+".", label)
		for i := range all {
			m.set(of(&all[i]), all[i].Name)
		}
	}
	one(Counter, ".calls", "{call}", "Admitted calls", func(s *Series) float64 { return float64(s.Admitted) })
	one(Counter, ".tokens", "{token}", "Tokens as the ledger keeps them,", func(s *Series) float64 { return float64(s.Charged.Sum()) })
	one(Counter, ".refusals", "{call}", "Calls that the limiter refused,", func(s *Series) float64 {
		n := int64(0)
		for _, r := range s.Refused {
			n += r
		}
		return float64(n)
	})
	one(Counter, ".rate_limited", "{attempt}", "Attempts that the provider refused with 429,", func(s *Series) float64 { return float64(s.Attempts[RateLimited]) })
	one(Gauge, ".waiting", "{call}", "Calls in the line now,", func(s *Series) float64 { return float64(s.Waiting) })
	wait := t.add(Distributed, prefix+".wait", "s", "How long admitted calls stood in the line, "+whose+".", label)
	for i := range all {
		wait.spread(all[i].Wait, all[i].Name)
	}
}

// genAI adds the metrics of the GenAI conventions.
func (m *Meter) genAI(t *table, set GenAI) {
	if set == Off {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	labels := []string{"gen_ai.operation.name", "gen_ai.provider.name", "error.type"}
	visit := func(f func(name, provider string, o *operation)) {
		for _, b := range m.budgets {
			for i, o := range b.operations {
				if o != nil {
					f(operationName[i], b.provider, o)
				}
			}
		}
	}
	duration := func(name string) {
		d := t.add(Distributed, name, "s", "GenAI operation duration.", labels...)
		visit(func(name, provider string, o *operation) {
			for _, status := range slices.Sorted(maps.Keys(o.durations)) {
				kind := ""
				switch {
				case status < 0:
					kind = "_OTHER"
				case status > 0:
					kind = strconv.Itoa(status)
				}
				d.spread(o.durations[status].clone(), name, provider, kind)
			}
		})
	}
	first := func(name string) {
		d := t.add(Distributed, name, "s", "From the start of the last attempt to the first chunk of a stream.", labels[:2]...)
		visit(func(name, provider string, o *operation) { d.spread(o.first.clone(), name, provider) })
	}
	if set == Stable {
		duration("gen_ai.client.operation.duration")
		first("gen_ai.client.operation.time_to_first_chunk")
		usage := t.add(Distributed, "gen_ai.client.token.usage", "{token}", "Number of input and output tokens used.", append(labels[:2:2], "gen_ai.token.type")...)
		visit(func(name, provider string, o *operation) {
			usage.spread(o.input.clone(), name, provider, "input")
			usage.spread(o.output.clone(), name, provider, "output")
		})
		return
	}
	duration("gen_ai.client.inference.duration")
	first("gen_ai.client.inference.time_to_first_chunk")
	for _, c := range []struct {
		name, help string
		of         func(*operation) int64
	}{
		{"input_tokens", "Input tokens, as reported.", func(o *operation) int64 { return o.sums.Input }},
		{"output_tokens", "Output tokens, as reported.", func(o *operation) int64 { return o.sums.Output }},
		{"cache_read.input_tokens", "Input tokens read from the provider's cache.", func(o *operation) int64 { return o.cached }},
	} {
		u := t.add(Counter, "gen_ai.client.inference.usage."+c.name, "{token}", c.help, labels[:2]...)
		visit(func(name, provider string, o *operation) { u.set(float64(c.of(o)), name, provider) })
	}
}

package providertest

import (
	"maps"
	"slices"
	"time"
)

// price is what a call weighs before any rule is applied, in tokens.
type price struct {
	estimate int64 // prompt as estimated
	prompt   int64 // prompt as it is
	cap      int64 // output the call may have
	output   int64 // output it has
	reserve  int64 // what Beyond charges for it on arrival
	cached   int64 // of prompt, from a cache
	jitter   int64 // percent, added to what is charged
	model    string
	produces bool // whether it has output at all (embeddings do not)
}

// tokens is an amount charged to the token limits.
type tokens struct{ in, out int64 }

// onArrival is what is charged when a call comes.
func (o *Options) onArrival(p price) tokens {
	t := tokens{in: p.estimate, out: p.cap}
	switch o.Charge {
	case Actual:
		t = tokens{in: o.billed(p)}
	case PromptOnly:
		t = tokens{in: p.estimate}
	case Larger:
		t = tokens{in: p.estimate, out: max(0, p.cap-p.estimate)}
	case Beyond:
		t = tokens{in: p.estimate, out: p.reserve}
	case Afterwards:
		t = tokens{}
	}
	return t.jittered(p.jitter)
}

// inTheEnd is the whole charge of a call that is over.
func (o *Options) inTheEnd(p price) tokens {
	switch o.Charge {
	case Actual, Settle, Afterwards:
		return tokens{in: o.billed(p), out: p.output * o.OutputFactor}.jittered(p.jitter)
	case Beyond:
		return tokens{in: p.estimate, out: max(p.reserve, p.output*o.OutputFactor)}.jittered(p.jitter)
	}
	return o.onArrival(p)
}

// billed is the part of the actual prompt that counts.
func (o *Options) billed(p price) int64 {
	if o.CachedFree {
		return p.prompt - p.cached
	}
	return p.prompt
}

// jittered is t changed by that many percent.
func (t tokens) jittered(percent int64) tokens {
	return tokens{t.in * (100 + percent) / 100, t.out * (100 + percent) / 100}
}

// limit is one enforced limit: a gauge, and how it sees a call.
type limit struct {
	model  string // whose limit it is; "" is the account's
	name   string // "requests", "requests per day", "tokens", "input", "output"
	per    string // as refusals call it
	value  int64  // units per window
	window int64  // ns
	gauge  gauge
	units  func(requests int64, t tokens) int64
}

// engine decides. It does not lock and reads no clock: instants are
// nanoseconds since the provider's start.
type engine struct {
	o      Options
	limits []*limit
	wall   int64 // ns since 1970 at instant 0

	halved   bool
	inFlight int64
	others   []traffic

	coolUntil int64 // end of the cool-down
	coolNext  int64 // length of the next one, ns
}

func newEngine(o Options, start time.Time) *engine {
	e := &engine{o: o, wall: start.UnixNano(), halved: o.HalveAfter == 0, coolNext: int64(o.Penalty)}
	e.o.ModelLimits = nil
	e.set(0, "", o.Limits)
	for _, model := range slices.Sorted(maps.Keys(o.ModelLimits)) {
		e.set(0, model, o.ModelLimits[model])
	}
	for _, l := range e.limits {
		// Rounded up, so that "all spent" leaves nothing behind.
		holds := l.gauge.holds(0)
		spent, rem, _ := mulDiv(holds, int64(o.StartSpent), 100)
		if rem > 0 {
			spent++
		}
		l.gauge.take(0, spent)
		if b, ok := l.gauge.(*bucket); ok && o.StartSpent == 100 {
			b.rem = 0
		}
	}
	return e
}

// set puts new limits of a model, or of the account, in force at an instant. A
// limit that is new starts with nothing charged.
func (e *engine) set(at int64, model string, l Limits) {
	if model == "" {
		e.o.Limits = l
	} else {
		if e.o.ModelLimits == nil {
			e.o.ModelLimits = make(map[string]Limits)
		}
		e.o.ModelLimits[model] = l
	}
	var old []*limit
	kept := e.limits
	e.limits = nil
	for _, l := range kept {
		if l.model == model {
			old = append(old, l)
		} else {
			e.limits = append(e.limits, l)
		}
	}
	request := func(n int64, _ tokens) int64 { return n }
	for _, w := range []limit{
		{name: "requests", per: "requests per min (RPM)", value: l.RPM, window: minute, units: request},
		{name: "requests per day", per: "requests per day (RPD)", value: l.RPD, window: day, units: request},
		{name: "tokens", per: "tokens per min (TPM)", value: l.TPM, window: minute,
			units: func(_ int64, t tokens) int64 { return t.in + t.out }},
		{name: "input", per: "input tokens per min (ITPM)", value: l.InputTPM, window: minute,
			units: func(_ int64, t tokens) int64 { return t.in }},
		{name: "output", per: "output tokens per min (OTPM)", value: l.OutputTPM, window: minute,
			units: func(_ int64, t tokens) int64 { return t.out }},
	} {
		if w.value == 0 {
			continue
		}
		w.model = model
		for _, was := range old {
			if was.name == w.name {
				was.gauge.set(at, w.value)
				w.gauge = was.gauge
			}
		}
		if w.gauge == nil {
			w.gauge = e.newGauge(w)
			w.gauge.take(at, 0)
		}
		e.limits = append(e.limits, &w)
	}
}

func (e *engine) newGauge(l limit) gauge {
	algorithm, capacity := e.o.Algorithm, int64(e.o.Capacity)
	if l.name == "requests" {
		algorithm, capacity = e.o.RequestAlgorithm, int64(e.o.RequestCapacity)
	}
	if l.window == day {
		capacity = day
		if algorithm == Slices {
			algorithm = Bucket
		}
	}
	switch algorithm {
	case FixedMinute:
		return &fixed{limit: l.value, window: l.window, start: e.origin(), first: e.o.Phase == FirstCall}
	case WeightedMinutes:
		return &weighted{limit: l.value, window: l.window, start: e.origin(), first: e.o.Phase == FirstCall, edge: e.o.EdgeReset}
	case SlidingMinute:
		return &sliding{limit: l.value, window: l.window}
	case Slices:
		return &sliced{limit: l.value, window: l.window, slice: int64(e.o.Slice), start: e.wall}
	}
	return newBucket(l.value, l.window, capacity, e.o.Oversize)
}

// origin is the wall clock that windows are counted on.
func (e *engine) origin() int64 {
	if e.o.Phase == OwnPhase {
		return e.wall - int64(e.o.PhaseOffset)
	}
	return e.wall
}

// next is the instant of the next change that time alone brings, or never.
func (e *engine) next() int64 {
	at := int64(never)
	if !e.halved {
		at = int64(e.o.HalveAfter)
	}
	for i := range e.others {
		at = min(at, e.others[i].next)
	}
	return at
}

// advance brings what depends on time alone up to an instant, in order.
func (e *engine) advance(at int64) {
	for {
		next := e.next()
		if next > at || next == never {
			return
		}
		if !e.halved && next == int64(e.o.HalveAfter) {
			e.halved = true
			for model, l := range e.o.ModelLimits {
				e.set(next, model, l.halved())
			}
			e.set(next, "", e.o.Limits.halved())
		}
		for i := range e.others {
			if e.others[i].next == next {
				e.others[i].call(e)
			}
		}
	}
}

// need is what limit l must have room for to let the call in.
func (e *engine) need(l *limit, p price) int64 {
	if n := l.units(1, e.o.onArrival(p)); n > 0 {
		return n
	}
	// What will be charged here at the end: there must be something left.
	var later tokens
	if p.produces && (e.o.Charge == Actual || e.o.Charge == Afterwards) {
		later.out = 1
	}
	if e.o.Charge == Afterwards {
		later.in = 1
	}
	return min(1, l.units(0, later))
}

// judges says whether l is a limit of the model.
func (l *limit) judges(model string) bool { return l.model == "" || l.model == model }

// A verdict is why a call may not go now. The zero verdict admits.
type verdict struct {
	limit  *limit // that refuses, nil for a cool-down or calls in flight
	reason string // "" admits
	need   int64
	wait   int64 // ns until it could go; never
}

// judge says whether the call may go at an instant. It changes nothing. The
// wait is the first at which every limit has room, if nothing else is charged.
func (e *engine) judge(at int64, p price) verdict {
	var v verdict
	if at < e.coolUntil {
		v = verdict{reason: "cool-down", wait: e.coolUntil - at}
	}
	if m := e.o.MaxInFlight; m > 0 && e.inFlight >= m && v.wait < int64(time.Second) {
		v = verdict{reason: "in flight", wait: int64(time.Second)}
	}
	for {
		// Slices are not monotone: room in one slice may be gone in the next,
		// so the limits are asked again at the instant found.
		w := v
		for _, l := range e.limits {
			if !l.judges(p.model) {
				continue
			}
			n := e.need(l, p)
			if n == 0 {
				continue
			}
			wait := l.gauge.wait(at+v.wait, n)
			if wait == never {
				return verdict{limit: l, reason: l.name, need: n, wait: never}
			}
			if v.wait+wait > w.wait {
				w = verdict{limit: l, reason: l.name, need: n, wait: v.wait + wait}
			}
		}
		if w.wait == v.wait {
			return v
		}
		if w.wait > 400*day {
			return verdict{limit: w.limit, reason: w.reason, need: w.need, wait: never}
		}
		v = w
	}
}

// admit charges a call that judge let in.
func (e *engine) admit(at int64, p price) {
	t := e.o.onArrival(p)
	for _, l := range e.limits {
		if l.judges(p.model) {
			l.gauge.take(at, l.units(1, t))
		}
	}
	e.inFlight++
	e.coolNext = int64(e.o.Penalty)
}

// refuse does what a refusal costs, and returns the requests charged.
func (e *engine) refuse(at int64, model string, v *verdict) (requests int64) {
	if e.o.RefusedCount {
		requests = e.chargeRefused(at, model)
	}
	if e.o.Penalty > 0 {
		e.coolUntil = max(e.coolUntil, at+e.coolNext)
		e.coolNext = min(2*e.coolNext, int64(e.o.PenaltyMax))
		if v.wait < e.coolUntil-at {
			v.wait = e.coolUntil - at
		}
	}
	return requests
}

// chargeRefused charges one request to the request limits, unless one of them
// already owes a whole window.
func (e *engine) chargeRefused(at int64, model string) int64 {
	for _, l := range e.limits {
		if l.judges(model) && l.units(1, tokens{}) == 1 && l.gauge.level(at) <= -l.value {
			return 0
		}
	}
	for _, l := range e.limits {
		if l.judges(model) {
			l.gauge.take(at, l.units(1, tokens{}))
		}
	}
	return 1
}

// finish ends a call that was admitted at stamp and returns its whole charge. A
// failed call keeps its charge on arrival, unless it is free.
func (e *engine) finish(at, stamp int64, p price, failed, free bool) tokens {
	e.inFlight--
	before := e.o.onArrival(p)
	if failed && !free {
		return before
	}
	after := tokens{}
	if !free {
		after = e.o.inTheEnd(p)
	}
	diff := tokens{after.in - before.in, after.out - before.out}
	for _, l := range e.limits {
		if n := l.units(0, diff); n != 0 && l.judges(p.model) {
			l.gauge.correct(at, stamp, n)
		}
	}
	return after
}

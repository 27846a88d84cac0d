package transport

import (
	"time"

	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/limit"
)

// reading is one quota of a response, matched to a dimension of the budget.
type reading struct {
	limit     limit.Limit
	unit      limit.Unit
	remaining int64
}

// quotas lists what a response header says, by unit.
func (b *budget) quotas(i *headers.Info, visit func(limit.Unit, headers.Quota)) {
	visit(limit.Requests, i.Requests)
	visit(b.shape.tokens, i.Tokens)
	visit(limit.Input, i.Input)
	visit(limit.Output, i.Output)
	for _, w := range i.Windows {
		switch w.Dimension {
		case "requests":
			visit(limit.Requests, w.Quota)
		case "tokens":
			visit(b.shape.tokens, w.Quota)
		case "input_tokens":
			visit(limit.Input, w.Quota)
		case "output_tokens":
			visit(limit.Output, w.Quota)
		}
	}
}

// learn takes in what the header of an answer says of limits, and returns what
// it says is left. own is what the provider charged the attempt on arrival,
// zero if it refused it. Nothing here raises credit; the caller hands the
// readings to Lower.
func (b *budget) learn(i *headers.Info, own limit.Cost, linear bool) []reading {
	b.mu.Lock()
	var out []reading
	var changes [][2]limit.Limit
	swapped := b.swapped(i)
	b.quotas(i, func(u limit.Unit, q headers.Quota) {
		if !q.Limit.OK && !q.Remaining.OK || swapped && u != limit.Requests {
			return
		}
		window := b.window(u, q, linear, i.Unnamed && u == limit.Requests)
		if window == 0 {
			return
		}
		d := b.find(u, window)
		if d == nil {
			if !q.Limit.OK || q.Limit.N <= 0 {
				return
			}
			d = &dimension{limit: limit.Limit{Name: dimensionName(u, window), Unit: u, Rate: limit.Rate{Window: window}}}
			b.dims = append(b.dims, d)
		}
		ceiling := d.ceiling()
		if q.Limit.OK && q.Limit.N > 0 {
			d.said = min(q.Limit.N, limit.MaxUnits)
		}
		if most := d.most(); q.Remaining.OK && q.Remaining.N <= most && q.Remaining.N >= -most {
			if s := q.Remaining.N + part(u, own); s > d.shown {
				d.shown = min(s, d.most())
			}
			out = append(out, reading{d.limit, u, q.Remaining.N})
		}
		if old, changed := b.apply(d); changed && ceiling != d.ceiling() {
			changes = append(changes, [2]limit.Limit{old, d.limit})
		}
	})
	b.mu.Unlock()
	if b.trace.LimitChanged != nil {
		for _, c := range changes {
			b.trace.LimitChanged(c[0], c[1])
		}
	}
	return out
}

// most is the largest balance that the provider can hold, as far as is known.
func (d *dimension) most() int64 {
	if d.said > 0 {
		return d.said
	}
	return d.configured.Rate.N
}

// swapped reports whether a response says that fewer tokens than requests are
// allowed in one window. Every request takes a token at least, so the two
// fields have been mixed up, and neither is believed.
func (b *budget) swapped(i *headers.Info) bool {
	r, t := i.Requests, i.Tokens
	return r.Limit.OK && t.Limit.OK && t.Limit.N < r.Limit.N && r.Window == t.Window &&
		(r.Inferred == 0 || t.Inferred == 0 || r.Inferred == t.Inferred) && !b.day(r)
}

// day reports whether a quota's reset fits only a day's window.
func (b *budget) day(q headers.Quota) bool {
	return q.Inferred > time.Hour || q.Reset.OK && q.Reset.D > time.Minute
}

// window finds which window a quota speaks of, 0 if that cannot be told. What
// the header states or its arithmetic gives comes first. A limit seen or
// configured before keeps its window. Where the dialect's reset is the time to
// full of a continuous bucket (linear), it is the shortest window that explains
// the reset; elsewhere a reset above a minute is another period's, fields that
// name no dimension are a second's as often as a minute's, which only a longer
// reset tells apart, and everything else is per minute by the custom of all
// these APIs.
func (b *budget) window(u limit.Unit, q headers.Quota, linear, unnamed bool) time.Duration {
	if q.Window > 0 {
		return q.Window
	}
	if q.Inferred > 0 {
		return q.Inferred
	}
	if q.Limit.OK {
		for _, d := range b.dims {
			if d.limit.Unit == u && (d.said == q.Limit.N || d.configured.Rate.N == q.Limit.N) {
				return d.limit.Rate.Window
			}
		}
	}
	if linear && q.Reset.OK && q.Limit.OK && q.Remaining.OK && q.Remaining.N < q.Limit.N && q.Limit.N > 0 {
		missing := float64(q.Limit.N - q.Remaining.N)
		for _, w := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour} {
			full := time.Duration(missing / float64(q.Limit.N) * float64(w))
			if q.Reset.D <= full+full/50+2*time.Millisecond {
				return w
			}
		}
		return 0
	}
	if q.Reset.OK && q.Reset.D > time.Minute+time.Second || unnamed && q.Reset.D <= 10*time.Second {
		return 0
	}
	if u == limit.Requests && !q.Reset.OK && b.find(u, time.Minute) == nil {
		return 0 // requests are limited by the day as often as by the minute
	}
	return time.Minute
}

// part is what a limit counting u takes of c.
func part(u limit.Unit, c limit.Cost) int64 {
	switch u {
	case limit.Requests:
		return c.Requests
	case limit.Input:
		return c.Input
	case limit.Output:
		return c.Output
	}
	return c.Input + c.Output
}

// refused tells the budget that an attempt sent at sent was refused, that the
// next may leave after wait, and which kind of limit did it ("" unknown). It
// returns the limits concerned, to be drained. Where the budget has none of that
// kind, those that the pause empties stand in: what the refused calls give back
// would fill them again, and all leave at once when it opens.
//
// A refusal is explained when the attempt left before the last refusal was
// waited off, or when with it we have used up the limit ourselves in the window
// that ends now: then the provider only counts its windows from other instants
// than we do, and the drain is the whole answer. Otherwise somebody else uses
// the limit, or charges more for a call than we think, and the rate is cut.
func (b *budget) refused(sent time.Time, cost limit.Cost, wait time.Duration, kind string, i *headers.Info) (concerned []limit.Limit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	first, late := b.rest.IsZero(), sent.After(b.rest)
	if open := now.Add(wait); open.After(b.rest) {
		b.rest = open
	}
	for _, d := range b.dims {
		if !b.concerns(d, kind, wait, i) {
			continue
		}
		used := d.used.in(now, d.limit.Rate.Window) + part(d.limit.Unit, cost)
		if late && !first && used < d.ceiling() {
			d.cut.deepen(now, d.sustained(now, used))
			b.apply(d)
		}
		if late {
			d.refused = now
		}
		concerned = append(concerned, d.limit)
	}
	if concerned != nil || wait == 0 {
		return concerned
	}
	for _, d := range b.dims {
		if d.limit.Rate.Window <= time.Minute {
			concerned = append(concerned, d.limit)
		}
	}
	return concerned
}

// drain leaves keep of each of those limits after wait, and nothing beyond.
func (b *budget) drain(limits []limit.Limit, keep limit.Cost, wait time.Duration) {
	for _, l := range limits {
		b.limiter.Drain(l.Name, part(l.Unit, keep), wait)
	}
}

// concerns reports whether a refusal of that kind speaks of d. Of a unit's
// windows it is the short ones for a short wait, the long ones for a long one:
// a day's credit is not void because a minute's was.
func (b *budget) concerns(d *dimension, kind string, wait time.Duration, i *headers.Info) bool {
	if long := d.limit.Rate.Window > time.Minute; long != (wait > time.Minute) && b.hasBoth(d.limit.Unit) {
		return false
	} else if long && wait <= time.Minute {
		return false
	}
	u := d.limit.Unit
	switch kind {
	case "requests":
		return u == limit.Requests
	case "tokens":
		return u != limit.Requests
	case "input":
		return u == limit.Input || u == limit.Tokens
	case "output":
		return u == limit.Output || u == limit.Tokens
	}
	// The header may tell: a dimension with nothing left is the one.
	if r := i.Requests.Remaining; r.OK && r.N <= 0 {
		return u == limit.Requests
	}
	return u != limit.Requests
}

func (b *budget) hasBoth(u limit.Unit) bool {
	var short, long bool
	for _, d := range b.dims {
		if d.limit.Unit == u {
			if d.limit.Rate.Window > time.Minute {
				long = true
			} else {
				short = true
			}
		}
	}
	return short && long
}

// patience is how long everybody waits at least after an attempt was refused
// that left at sent: more than was named, when that was too little before.
func (b *budget) patience(sent time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.streak.refused(time.Now(), sent)
}

// answered takes in that the attempt that left at sent was not refused: cut
// rates grow back.
func (b *budget) answered(sent time.Time) {
	b.mu.Lock()
	b.streak.admitted(sent)
	for _, d := range b.dims {
		if d.cut.active() {
			b.apply(d)
		}
	}
	b.mu.Unlock()
}

package headers

import (
	"cmp"
	"slices"
	"time"
)

// mostSlots bounds how many quotas one header may name.
const mostSlots = 64

// slot gathers the fields of one quota: one dimension in one window. Fields
// come in the order of a map, so nothing is decided before all are there.
type slot struct {
	dim       dimension
	label     string // of other dimensions
	swapped   bool
	ietf      bool // from ratelimit-*; only tells two unsuffixed quotas apart
	window    time.Duration
	calendar  string
	stated    time.Duration // the window that only the dialect's documentation gives
	binding   bool          // named by the server as the one nearest to exhaustion
	limit     Count
	remaining Count
	reset     reset
	period    time.Duration // renewalperiod
}

// reader holds what has been read of one header.
type reader struct {
	clock   clock
	dialect *dialect
	status  int

	slots []slot
	room  [8]slot // enough for every provider known
	spill slot    // takes what is beyond mostSlots
	full  bool

	integerPolicies []integerPolicy
	policies        []Policy
	states          []Policy
	costs           []Cost
}

// slot returns the slot that n belongs to. The pointer is good until the next
// call.
func (r *reader) slot(n *name) *slot {
	s := slot{dim: n.dim, label: n.label, swapped: n.swapped && n.family.window == 0, window: n.window, calendar: n.calendar}
	s.ietf = n.dim == unsuffixed && n.family.prefix == "ratelimit-"
	return r.find(s)
}

func (r *reader) find(want slot) *slot {
	for i := range r.slots {
		s := &r.slots[i]
		if s.dim == want.dim && s.label == want.label && s.swapped == want.swapped && s.ietf == want.ietf &&
			s.window == want.window && s.calendar == want.calendar {
			return s
		}
	}
	if len(r.slots) == mostSlots {
		r.full = true
		r.spill = want
		return &r.spill
	}
	if want.window == 0 && want.calendar == "" {
		name := want.label
		if want.dim != other {
			name = dimensionNames[want.dim]
		}
		want.stated = r.dialect.window(name, want.swapped)
	}
	r.slots = append(r.slots, want)
	return &r.slots[len(r.slots)-1]
}

// name is the dimension's name in Info. What names no dimension counts requests.
func (s *slot) name() string {
	switch s.dim {
	case other:
		return s.label
	case unsuffixed:
		return dimensionNames[requests]
	}
	return dimensionNames[s.dim]
}

// quota settles what the fields of s say together.
//
//	no limit below zero             a sentinel for "none": unknown
//	a limit of zero                 known on a 429 only (not entitled); else a
//	                                placeholder, since a limit of zero cannot
//	                                have admitted the call: nothing is known
//	remaining below zero            debt; but without a limit and without a
//	                                reset ahead a sentinel: unknown
//	remaining above the limit       the limit
//	reset without unit, period known the unit that fits, see unitOf
//	window only in documentation    believed beside both a limit and a remaining,
//	                                as that provider sends them; a part of the
//	                                pair comes from somebody else
func (s *slot) quota(status int) Quota {
	if s.limit.OK && s.limit.N == 0 && status != 429 {
		return Quota{}
	}
	q := Quota{Limit: s.limit, Remaining: s.remaining, Reset: s.reset.Span, Window: s.window}
	if q.Limit.N < 0 {
		q.Limit = Count{}
	}
	if q.Remaining.N < 0 && !q.Limit.OK && q.Reset.D <= 0 {
		q.Remaining, q.Reset = Count{}, Span{}
	}
	if q.Limit.OK && q.Remaining.N > q.Limit.N {
		q.Remaining = q.Limit
	}
	if s.period > 0 {
		q.Window = s.period
		if s.reset.how == asNumber {
			q.Reset.D = unitOf(q, q.Reset.D)
		}
	}
	if !q.known() {
		return Quota{}
	}
	if q.Window == 0 && q.Limit.OK && q.Remaining.OK {
		q.Window = s.stated
	}
	if q.Window == 0 && s.calendar == "" && s.reset.how == asDuration {
		q.Inferred = infer(s.name(), q)
	}
	return q
}

// unitOf decides whether a reset without a unit, read as seconds, was meant as
// milliseconds. Azure OpenAI sends either, by API version. A linear refill takes
// (limit-remaining)/limit of the period; the unit that comes nearer is meant.
// On a tie it is seconds, the longer.
func unitOf(q Quota, seconds time.Duration) time.Duration {
	if !q.Limit.OK || !q.Remaining.OK || q.Limit.N <= 0 || seconds == 0 {
		return seconds
	}
	expected := float64(q.Limit.N-q.Remaining.N) / float64(q.Limit.N) * float64(q.Window)
	ms := float64(seconds) / 1000
	if expected < (ms+float64(seconds))/2 {
		return (seconds + 999) / 1000
	}
	return seconds
}

// integerPolicy is a quota and its window from "100;w=60".
type integerPolicy struct {
	quota  int64
	window time.Duration
}

// part is a settled quota on its way into Info.
type part struct {
	slot *slot
	Quota
	gone bool // counted under another part
}

// assemble turns the slots into Info.
func (r *reader) assemble(info *Info) {
	if r.full || len(r.integerPolicies) > mostSlots || len(r.costs) > mostSlots || len(r.policies)+len(r.states) > mostSlots {
		return
	}
	r.sortSlots()
	var room [8]part
	parts := room[:0]
	for i := range r.slots {
		if q := r.slots[i].quota(r.status); q.known() {
			parts = append(parts, part{slot: &r.slots[i], Quota: q})
		}
	}
	r.joinUnsuffixed(parts, info)

	for d := requests; d <= output; d++ {
		r.place(parts, d, "", info)
	}
	for i := range parts {
		if p := &parts[i]; p.slot.dim == other && !p.gone {
			r.place(parts, other, p.slot.label, info)
		}
	}
	r.assembleIETF(info)
	if len(r.costs) > 0 {
		info.QueryCost = r.costs
	}
	// The fields came in the order of a map; the lists must not.
	slices.SortFunc(info.Other, func(a, b Named) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(info.QueryCost, func(a, b Cost) int { return cmp.Compare(a.Dimension, b.Dimension) })
	slices.SortFunc(info.Windows, compareWindows)
}

// sortSlots puts the slots into an order that does not depend on the map's. It
// is an insertion sort: there are seldom more than four.
func (r *reader) sortSlots() {
	for i := 1; i < len(r.slots); i++ {
		for j := i; j > 0 && compareSlots(&r.slots[j], &r.slots[j-1]) < 0; j-- {
			r.slots[j], r.slots[j-1] = r.slots[j-1], r.slots[j]
		}
	}
}

func compareSlots(a, b *slot) int {
	switch {
	case a.dim != b.dim:
		return cmp.Compare(a.dim, b.dim)
	case a.label != b.label:
		return cmp.Compare(a.label, b.label)
	case a.calendar != b.calendar:
		return cmp.Compare(a.calendar, b.calendar)
	case a.window != b.window:
		return cmp.Compare(a.window, b.window)
	case a.swapped != b.swapped:
		return boolCompare(a.swapped, b.swapped)
	}
	return boolCompare(a.ietf, b.ietf)
}

// boolCompare puts false before true.
func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// joinUnsuffixed gives a quota that names no dimension its window, and counts
// it once where another field says the same. Kong sends RateLimit-* for the
// window nearest to exhaustion, which it also reports by name; Envoy and the
// early IETF drafts put the window into a list.
func (r *reader) joinUnsuffixed(parts []part, info *Info) {
	var first *part // the first of two unsuffixed spellings
	for i := range parts {
		g := &parts[i]
		if g.slot.dim != unsuffixed {
			continue
		}
		g.slot.binding = true
		if first != nil && sameOrSilent(first.Limit, g.Limit) && sameOrSilent(first.Remaining, g.Remaining) {
			first.fill(g.Quota)
			g.gone = true
			continue
		}
		if first == nil {
			first = g
		}
	}
	for i := range parts {
		g := &parts[i]
		if g.slot.dim != unsuffixed || g.gone {
			continue
		}
		if g.Window == 0 && g.Limit.OK {
			for _, p := range r.integerPolicies {
				if p.quota == g.Limit.N && (g.Window == 0 || p.window < g.Window) {
					g.Window, g.Inferred = p.window, 0
				}
			}
		}
		for j := range parts {
			w := &parts[j]
			if w.gone || w.slot.dim != requests || w.slot.calendar != "" ||
				w.Window != g.Window && w.Window != 0 && g.Window != 0 ||
				!sameOrSilent(w.Limit, g.Limit) || !sameOrSilent(w.Remaining, g.Remaining) ||
				!same(w.Limit, g.Limit) && !same(w.Remaining, g.Remaining) {
				continue
			}
			w.fill(g.Quota)
			w.slot.binding = true
			g.gone = true
			break
		}
	}
	for _, p := range r.integerPolicies {
		known := false
		for i := range parts {
			d := parts[i].slot.dim
			known = known || (d == requests || d == unsuffixed) && parts[i].Window == p.window && parts[i].Limit == Count{p.quota, true}
		}
		for _, w := range info.Windows {
			known = known || w.Window == p.window && w.Limit.N == p.quota
		}
		if !known {
			info.Windows = append(info.Windows, Window{Dimension: dimensionNames[requests], Quota: Quota{Limit: Count{p.quota, true}, Window: p.window}})
		}
	}
}

// same reports whether two counts are known and equal, sameOrSilent whether
// they do not contradict each other.
func same(a, b Count) bool         { return a.OK && b.OK && a.N == b.N }
func sameOrSilent(a, b Count) bool { return !a.OK || !b.OK || a.N == b.N }

// fill takes from q what p does not know.
func (p *part) fill(q Quota) {
	if !p.Limit.OK {
		p.Limit = q.Limit
	}
	if !p.Remaining.OK {
		p.Remaining = q.Remaining
	}
	if !p.Reset.OK {
		p.Reset = q.Reset
	}
	if p.Window == 0 {
		p.Window = q.Window
	}
	if p.Window != 0 {
		p.Inferred = 0
	} else if p.Inferred == 0 {
		p.Inferred = q.Inferred
	}
}

// place puts the parts of one dimension where they belong: the main one into
// its member, all others into Windows.
func (r *reader) place(parts []part, d dimension, label string, info *Info) {
	var main *part
	for i := range parts {
		if p := &parts[i]; p.counts(d, label) && (main == nil || p.before(main)) {
			main = p
		}
	}
	if main == nil {
		return
	}
	name := main.slot.name()
	if main.slot.calendar != "" {
		// A month has no length to report in Quota.
		main = nil
	} else {
		main.gone = true
		switch d {
		case requests:
			info.Requests = main.Quota
		case tokens:
			info.Tokens = main.Quota
		case input:
			info.Input = main.Quota
		case output:
			info.Output = main.Quota
		default:
			info.Other = append(info.Other, Named{name, main.Quota})
		}
	}
	for i := range parts {
		p := &parts[i]
		if !p.counts(d, label) {
			continue
		}
		p.gone = true
		if main != nil && p.Window == main.Window && p.slot.calendar == "" && same(p.Limit, main.Limit) && sameOrSilent(p.Remaining, main.Remaining) {
			continue // the same quota in two spellings
		}
		info.Windows = append(info.Windows, Window{Dimension: name, Name: p.slot.calendar, Quota: p.Quota})
	}
}

// counts reports whether p is still to be placed under the dimension.
func (p *part) counts(d dimension, label string) bool {
	if p.gone {
		return false
	}
	if p.slot.dim == unsuffixed {
		return d == requests
	}
	return p.slot.dim == d && p.slot.label == label
}

// before reports whether p is rather the main quota of its dimension than q: a
// field that names the dimension and no window, then what the server calls
// binding, then the shortest window.
func (p *part) before(q *part) bool {
	if a, b := p.rank(), q.rank(); a != b {
		return a < b
	}
	if p.Window != q.Window {
		return p.Window < q.Window
	}
	if p.slot.calendar != q.slot.calendar {
		return p.slot.calendar < q.slot.calendar // "month" before "year"
	}
	if p.Remaining != q.Remaining {
		return p.Remaining.OK && (!q.Remaining.OK || p.Remaining.N < q.Remaining.N)
	}
	return !p.slot.swapped && q.slot.swapped
}

func (p *part) rank() int {
	switch {
	case p.slot.dim != unsuffixed && p.Window == 0 && p.slot.calendar == "":
		return 0
	case p.slot.binding && (p.slot.dim == requests || p.slot.stated == 0):
		return 1 // an unsuffixed quota whose window only a dialect gives is an ordinary one
	case p.slot.calendar == "":
		return 2
	}
	return 3
}

// compareWindows sorts by dimension, then by length, a calendar's last.
func compareWindows(a, b Window) int {
	return cmp.Or(
		cmp.Compare(a.Dimension, b.Dimension),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Window, b.Window),
		cmp.Compare(a.Limit.N, b.Limit.N),
		cmp.Compare(a.Remaining.N, b.Remaining.N),
		cmp.Compare(a.Reset.D, b.Reset.D),
	)
}

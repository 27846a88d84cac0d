package headers

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/tripmeter/tripmeter/internal/retryafter"
)

// mostSlots bounds how many quotas one header may name.
const mostSlots = 64

// slot gathers the fields of one quota: one dimension in one window. Fields
// come in the order of a map, so nothing is decided before all are there; then
// settle turns the values as sent into the values as meant.
type slot struct {
	dim      dimension
	label    string // of other dimensions
	swapped  bool
	ietf     bool // from ratelimit-*; only tells two unsuffixed quotas apart
	window   time.Duration
	calendar string
	stated   time.Duration // the window that only the dialect's documentation gives
	period   time.Duration // renewalperiod
	spelled  spelling      // of Reset

	Quota
	binding bool // named by the server as the one nearest to exhaustion
	gone    bool // nothing known, counted under another slot, or placed
}

// reader holds what has been read of one header.
type reader struct {
	clock   retryafter.Clock
	dialect Dialect
	status  int

	// The first slots are an array, and not a slice of one, because a struct that
	// points into itself would be moved to the heap.
	room  [8]slot // enough for every provider known
	more  []slot
	used  int  // of both
	spill slot // takes what is beyond mostSlots
	full  bool

	integerPolicies []integerPolicy
	policies        []Policy
	states          []Policy
}

// slot returns the slot that n belongs to. The pointer is good until the next
// call.
func (r *reader) slot(n *name) *slot {
	s := slot{dim: n.dim, label: n.label, swapped: n.swapped && n.family.window == 0, window: n.window, calendar: n.calendar}
	s.ietf = n.dim == unsuffixed && n.family.prefix == "ratelimit-"
	return r.find(s)
}

func (r *reader) find(want slot) *slot {
	for i := range r.used {
		s := r.at(i)
		if s.dim == want.dim && s.label == want.label && s.swapped == want.swapped && s.ietf == want.ietf &&
			s.window == want.window && s.calendar == want.calendar {
			return s
		}
	}
	if r.used == mostSlots {
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
	if r.used >= len(r.room) {
		r.more = append(r.more, slot{})
	}
	r.used++
	s := r.at(r.used - 1)
	*s = want
	return s
}

// at returns the i'th slot.
func (r *reader) at(i int) *slot {
	if i < len(r.room) {
		return &r.room[i]
	}
	return &r.more[i-len(r.room)]
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

// settle decides what the fields of s say together.
//
//	a limit below zero              a sentinel for "none": unknown, and all with it
//	                                where remaining is below zero too
//	a limit of zero                 known on a 429 only (not entitled); else a
//	                                placeholder, since a limit of zero cannot
//	                                have admitted the call: nothing is known
//	remaining below zero            debt, of at most the limit: a lower number
//	                                is no balance and unknown. Without a limit
//	                                and without a reset ahead it is a sentinel:
//	                                unknown
//	remaining above the limit       the limit
//	reset without unit, period known the unit that fits, see unitOf
//	window only in documentation    believed beside both a limit and a remaining,
//	                                as that provider sends them; a part of the
//	                                pair comes from somebody else
func (s *slot) settle(status int) {
	if s.Limit == (Count{0, true}) && status != http.StatusTooManyRequests {
		s.Quota, s.gone = Quota{}, true
		return
	}
	if s.Limit.N < 0 {
		if s.Remaining.N < 0 {
			s.Remaining, s.Reset = Count{}, Span{}
		}
		s.Limit = Count{}
	}
	if s.Remaining.N < 0 && !s.Limit.OK && s.Reset.D <= 0 {
		s.Remaining, s.Reset = Count{}, Span{}
	}
	switch {
	case !s.Limit.OK: // the caller knows a limit, or has to bound the debt
	case s.Remaining.N > s.Limit.N:
		s.Remaining = s.Limit
	case s.Remaining.N < -s.Limit.N:
		s.Remaining = Count{}
	}
	if !s.known() {
		s.Quota, s.gone = Quota{}, true
		return
	}
	s.Window = s.window
	if s.period > 0 {
		s.Window = s.period
		if s.spelled == asNumber {
			s.Reset.D = unitOf(s.Quota, s.Reset.D)
		}
	}
	if s.Window == 0 && s.Limit.OK && s.Remaining.OK {
		s.Window = s.stated
	}
	if s.Window == 0 && s.calendar == "" && s.spelled == asDuration {
		s.Inferred = infer(s.name(), s.Quota)
	}
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

// assemble turns the slots into Info.
func (r *reader) assemble(info *Info) {
	if r.full || len(r.integerPolicies) > mostSlots || len(r.policies)+len(r.states) > mostSlots {
		return
	}
	r.sortSlots()
	for i := range r.used {
		r.at(i).settle(r.status)
	}
	r.joinUnsuffixed()
	r.listPolicies(info)
	for d := requests; d <= output; d++ {
		r.place(d, "", info)
	}
	for i := range r.used {
		if s := r.at(i); s.dim == other && !s.gone {
			r.place(other, s.label, info)
		}
	}
	r.assembleIETF(info)
	// The fields came in the order of a map; the lists must not.
	slices.SortFunc(info.Other, func(a, b Named) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(info.Windows, compareWindows)
}

// sortSlots puts the slots into an order that does not depend on the map's. It
// is an insertion sort: there are seldom more than four.
func (r *reader) sortSlots() {
	for i := 1; i < r.used; i++ {
		for j := i; j > 0; j-- {
			a, b := r.at(j-1), r.at(j)
			if compareSlots(a, b) <= 0 {
				break
			}
			*a, *b = *b, *a
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
func (r *reader) joinUnsuffixed() {
	var first *slot // x-ratelimit-limit; the second is ratelimit-limit
	for i := range r.used {
		g := r.at(i)
		if g.dim != unsuffixed || g.calendar != "" || g.window != 0 || g.gone {
			continue
		}
		g.binding = true
		switch {
		case first == nil:
			first = g
		case sameOrSilent(first.Limit, g.Limit) && sameOrSilent(first.Remaining, g.Remaining):
			first.fill(g.Quota)
			g.gone = true
			continue
		}
	}
	for i := range r.used {
		g := r.at(i)
		if !g.binding || g.gone || g.dim != unsuffixed {
			continue
		}
		if g.Window == 0 && g.Limit.OK {
			for _, p := range r.integerPolicies {
				if p.quota == g.Limit.N && (g.Window == 0 || p.window < g.Window) {
					g.Window, g.Inferred = p.window, 0
				}
			}
		}
		for j := range r.used {
			if w := r.at(j); w != g && w.agrees(g) {
				w.fill(g.Quota)
				w.binding = true
				g.gone = true
				break
			}
		}
	}
}

// agrees reports whether s is a quota of requests that says the same as g,
// which names no dimension.
func (s *slot) agrees(g *slot) bool {
	counted := s.dim == requests || s.dim == unsuffixed && s.window != 0
	return counted && !s.gone && s.calendar == "" &&
		(s.Window == g.Window || s.Window == 0 || g.Window == 0) &&
		sameOrSilent(s.Limit, g.Limit) && sameOrSilent(s.Remaining, g.Remaining) &&
		(same(s.Limit, g.Limit) || same(s.Remaining, g.Remaining))
}

// listPolicies reports the integer policies that no quota accounts for.
func (r *reader) listPolicies(info *Info) {
	for _, p := range r.integerPolicies {
		w := Window{Dimension: dimensionNames[requests], Quota: Quota{Limit: Count{p.quota, true}, Window: p.window}}
		known := p.quota == 0
		for i := range r.used {
			s := r.at(i)
			known = known || !s.gone && (s.dim == requests || s.dim == unsuffixed) && s.Window == w.Window && s.Limit == w.Limit
		}
		if !known && !slices.Contains(info.Windows, w) {
			info.Windows = append(info.Windows, w)
		}
	}
}

// same reports whether two counts are known and equal, sameOrSilent whether
// they do not contradict each other.
func same(a, b Count) bool         { return a.OK && b.OK && a.N == b.N }
func sameOrSilent(a, b Count) bool { return !a.OK || !b.OK || a.N == b.N }

// fill takes from q what s does not know.
func (s *slot) fill(q Quota) {
	if !s.Limit.OK {
		s.Limit = q.Limit
	}
	if !s.Remaining.OK {
		s.Remaining = q.Remaining
	}
	if !s.Reset.OK {
		s.Reset = q.Reset
	}
	if s.Window == 0 {
		s.Window = q.Window
	}
	if s.Window != 0 {
		s.Inferred = 0
	} else if s.Inferred == 0 {
		s.Inferred = q.Inferred
	}
}

// place puts the quotas of one dimension where they belong: the main one into
// its member, all others into Windows.
func (r *reader) place(d dimension, label string, info *Info) {
	var main *slot
	for i := range r.used {
		if s := r.at(i); s.counts(d, label) && (main == nil || s.before(main)) {
			main = s
		}
	}
	if main == nil {
		return
	}
	if main.calendar == "" { // a month has no length that Quota could hold
		main.gone = true
		switch d {
		case requests:
			info.Requests = main.Quota
			info.Unnamed = main.dim == unsuffixed && main.Window == 0
		case tokens:
			info.Tokens = main.Quota
		case input:
			info.Input = main.Quota
		case output:
			info.Output = main.Quota
		default:
			info.Other = append(info.Other, Named{main.label, main.Quota})
		}
	}
	for i := range r.used {
		s := r.at(i)
		if !s.counts(d, label) {
			continue
		}
		s.gone = true
		if main.calendar == "" && s.calendar == "" && s.Window == main.Window &&
			same(s.Limit, main.Limit) && sameOrSilent(s.Remaining, main.Remaining) {
			continue // the same quota in two spellings
		}
		info.Windows = append(info.Windows, Window{Dimension: main.name(), Name: s.calendar, Quota: s.Quota})
	}
}

// counts reports whether s is still to be placed under the dimension.
func (s *slot) counts(d dimension, label string) bool {
	if s.gone {
		return false
	}
	if s.dim == unsuffixed {
		return d == requests
	}
	return s.dim == d && s.label == label
}

// before reports whether s is rather the main quota of its dimension than t: a
// field that names the dimension and no window, then what the server calls
// binding, then the shortest window.
func (s *slot) before(t *slot) bool {
	if a, b := s.rank(), t.rank(); a != b {
		return a < b
	}
	if s.Window != t.Window {
		return s.Window < t.Window
	}
	if s.Remaining != t.Remaining {
		return s.Remaining.OK && (!t.Remaining.OK || s.Remaining.N < t.Remaining.N)
	}
	return !s.swapped && t.swapped
}

func (s *slot) rank() int {
	switch {
	case s.dim != unsuffixed && s.Window == 0 && s.calendar == "":
		return 0
	case s.binding && (s.dim == requests || s.stated == 0):
		return 1 // an unsuffixed quota whose window only a dialect gives is an ordinary one
	case s.calendar == "":
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

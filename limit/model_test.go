package limit

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A model is a limiter without cleverness: lists instead of heaps and sums,
// rational numbers instead of grains and tags, and an event at a time. The random
// programs below drive it and a Limiter side by side in fake time and compare
// everything after every step.
type model struct {
	scopes  map[string]*modelScope
	maxWait int64
	floor   int64
	now     int64
	age     int // counts everything that has an order
	lines   int
	claims  int
	start   time.Time
	waiting []*modelTicket // in order of arrival
	open    []*modelReservation
}

type modelScope struct {
	name         string
	limits       []*modelLimit
	opt          ScopeOptions
	inFlight     int
	refs         int
	pausedUntil  int64
	after        int64 // between probes
	probeAt      int64
	probe        *modelReservation
	places, door *modelLine
	debits       []modelEvent
	refunds      []modelEvent
	counts       bool // what is spent is in spends: it was charged under an allowance once
	spends       []*modelSpend
}

type modelLimit struct {
	*oracle
	cfg  Limit
	born int
	held int64    // until then it is set back
	took *big.Rat // so far
	line *modelLine

	read   int64             // the instant of the reading that lowered it last
	reader *modelReservation // that brought it
}

// knew reports whether the last reading that lowered x has the input of r in it.
func (x *modelLimit) knew(r *modelReservation) bool {
	switch {
	case !r.sent || x.reader == nil || x.cfg.Unit != Input && x.cfg.Unit != Tokens:
		return false
	case x.reader == r:
		return r.sentAt <= x.read
	}
	return r.sentAt+int64(250*time.Millisecond) <= x.read
}

// real is the level as if x had not been set back.
func (x *modelLimit) real(now int64) *big.Rat {
	real := new(big.Rat).Set(x.level)
	if now < x.held {
		real.Add(real, x.took)
	}
	if real.Cmp(x.burst) > 0 {
		real.Set(x.burst)
	}
	return real
}

// setBack lowers x so that it has n units at d after now.
func (x *modelLimit) setBack(now, n, d int64) {
	then := new(big.Rat).Mul(x.perNano, units(d))
	then.Sub(units(n), then)
	if then.Cmp(x.level) < 0 {
		real := x.real(now)
		x.oracle.lower(then)
		x.held, x.took = later(now, d), real.Sub(real, x.level)
	}
}

// lower applies the level that the other side states. A part that was set back
// beyond it is not real.
func (x *modelLimit) lower(to *big.Rat) {
	beyond := new(big.Rat).Sub(to, x.level)
	if beyond.Sign() < 0 {
		beyond.SetInt64(0)
	}
	if beyond.Cmp(x.took) < 0 {
		x.took = beyond
	}
	x.oracle.read(to)
}

// change changes the rate. The level to which x was set back for an instant stays
// the level of that instant. There are two exceptions: credit is not raised, and
// debt from elsewhere stays.
func (x *modelLimit) change(now int64, r Rate, burst, largest int64) {
	left := units(max(0, x.held-now))
	real := x.regrained(x.real(now), r)
	then := new(big.Rat).Mul(x.perNano, left)
	then = x.regrained(then.Add(then, x.level), r)
	x.setRate(r, burst, largest)
	if left.Sign() == 0 {
		return
	}
	then.Sub(then, new(big.Rat).Mul(x.perNano, left))
	if x.level.Sign() < 0 {
		x.level = new(big.Rat)
	}
	x.oracle.lower(then)
	x.oracle.lower(real)
	x.took = real.Sub(real, x.level)
}

// release ends now what setting back began.
func (x *modelLimit) release(now int64) {
	if now >= x.held {
		return
	}
	real := x.real(now)
	x.level.Add(x.level, new(big.Rat).Mul(x.perNano, units(x.held-now)))
	if real.Cmp(x.level) < 0 {
		x.level = real
	}
	x.held, x.took = 0, new(big.Rat)
}

// A modelLine is a set of lanes. The first is found by looking at all.
type modelLine struct {
	s     *modelScope
	limit *modelLimit // nil: places or door
	door  bool
	id    int
	at    int64
	lanes []*modelLane
	flows map[modelKey]*modelFlow
	v     [2]*big.Rat
	owed  *big.Rat // units
	mixed int
	claim *modelLane
}

type modelKey struct {
	tenant string
	class  Class
}

type modelFlow struct {
	start  *big.Rat
	served int64
	weight int64
	born   int
}

type modelLane struct {
	key     modelKey
	path    []*modelScope // innermost first, the root last
	needs   [3]bool
	place   bool
	tickets []*modelTicket // those who go first, then the others
	in      *modelLine
	left    *modelLine
	claimed int
}

type modelTicket struct {
	ticket  *Ticket
	lane    *modelLane
	cost    Cost
	spend   Spend
	first   bool
	order   int
	expires int64
	// outcome
	decided bool
	reason  error
	res     *modelReservation
}

type modelReservation struct {
	cost   Cost
	spend  Spend
	key    modelKey
	path   []*modelScope
	age    int
	real   Reservation
	ticket *Ticket // where real comes from, if it is not here yet
	sent   bool
	sentAt int64
	sentF  map[*modelScope]int // refunds before it was sent
}

// A modelSpend is what one reservation spent in one scope.
type modelSpend struct {
	at    int64
	spend Spend
	by    *modelReservation
}

// beyond is nil, or why a want goes beyond an allowance at this instant.
func (m *model) beyond(w modelWant) (reason error) {
	for _, s := range w.path {
		if s.opt.Allowances == nil {
			continue
		}
		for _, a := range s.opt.Allowances.all() {
			c := w.spend.of(a.money)
			if a.most == 0 || c == 0 {
				continue
			}
			if c > a.most {
				return ErrTooLarge
			}
			if new(big.Rat).Add(m.used(s, a), units(c)).Cmp(units(a.most)) > 0 {
				reason = ErrWaitTooLong
			}
		}
	}
	return reason
}

// used is what counts of an allowance now: of the calendar, what was spent in this
// day or month; of the last ones, what was spent in slots that ended less than one
// ago.
func (m *model) used(s *modelScope, a allowance) *big.Rat {
	sum := new(big.Rat)
	for _, p := range s.spends {
		then, now := m.start.Add(time.Duration(p.at)).UTC(), m.start.Add(time.Duration(m.now)).UTC()
		y, mo, d := then.Date()
		ny, nmo, nd := now.Date()
		in := y == ny && mo == nmo && (a.month || d == nd)
		if s.opt.Allowances.Rolling {
			window := 24 * time.Hour
			if a.month {
				window *= 30
			}
			slot := int64(window / RollingSlots)
			in = (p.at/slot+1)*slot+int64(window) > m.now
		}
		if in {
			sum.Add(sum, units(p.spend.of(a.money)))
		}
	}
	return sum
}

type modelEvent struct {
	at   int64
	cost Cost
}

// tag is where f has got to, in 2^-40 units, rounded down once.
func (f *modelFlow) tag() *big.Rat {
	n := new(big.Int).Mul(big.NewInt(f.served), new(big.Int).Lsh(big.NewInt(1), 40))
	n.Div(n, big.NewInt(f.weight)) // Euclidean: down
	return new(big.Rat).Add(f.start, new(big.Rat).SetInt(n))
}

// set are those that bound something.
func (a *Allowances) set() (set []allowance) {
	for _, one := range a.all() {
		if one.most > 0 {
			set = append(set, one)
		}
	}
	return set
}

func (m *model) next() int { m.age++; return m.age }

// units is what c takes of what q is about.
func (q *modelLine) units(c Cost) int64 {
	switch {
	case q.limit != nil:
		return count(q.limit.cfg.Unit, c)
	case q.door:
		return 0
	}
	return 1
}

// ranked are the lanes of a class, those first that go first.
func (q *modelLine) ranked(c Class) []*modelLane {
	var all []*modelLane
	for _, k := range q.lanes {
		if k.key.class == c {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b *modelLane) int {
		if a.key != b.key {
			if d := q.flows[a.key].tag().Cmp(q.flows[b.key].tag()); d != 0 {
				return d
			}
			// Of equal tags, the flow whose own first is earlier.
			return q.firstOf(a.key).order - q.firstOf(b.key).order
		}
		return compareTickets(a.tickets[0], b.tickets[0])
	})
	return all
}

func (q *modelLine) firstOf(key modelKey) (t *modelTicket) {
	for _, k := range q.lanes {
		if k.key == key && (t == nil || compareTickets(k.tickets[0], t) < 0) {
			t = k.tickets[0]
		}
	}
	return t
}

func compareTickets(a, b *modelTicket) int {
	if a.first != b.first {
		if a.first {
			return -1
		}
		return 1
	}
	return a.order - b.order
}

func (m *model) turn(q *modelLine) Class {
	batch := q.ranked(Batch)
	if len(batch) == 0 {
		return Interactive
	}
	if len(q.ranked(Interactive)) == 0 {
		return Batch
	}
	if m.earned(q, q.units(batch[0].tickets[0].cost)) {
		return Batch
	}
	return Interactive
}

func (m *model) first(q *modelLine) *modelLane {
	if all := q.ranked(m.turn(q)); len(all) > 0 {
		return all[0]
	}
	return nil
}

func (m *model) lift(q *modelLine, c Class) *big.Rat {
	v := q.v[c]
	if all := q.ranked(c); len(all) > 0 {
		if tag := q.flows[all[0].key].tag(); tag.Cmp(v) > 0 {
			v = tag
		}
	}
	return v
}

func (q *modelLine) waits(key modelKey) bool {
	return slices.ContainsFunc(q.lanes, func(k *modelLane) bool { return k.key == key })
}

func (m *model) flow(q *modelLine, key modelKey) *modelFlow {
	f := q.flows[key]
	weight := int64(max(1, m.scopes[key.tenant].opt.Weight))
	switch {
	case f == nil:
		f = &modelFlow{start: m.lift(q, key.class), weight: weight, born: m.next()}
		q.flows[key] = f
	case !q.waits(key):
		if v := m.lift(q, key.class); f.tag().Cmp(v) < 0 {
			*f = modelFlow{start: v, weight: f.weight, born: m.next()}
		}
	}
	if f.weight != weight {
		*f = modelFlow{start: f.tag(), weight: weight, born: m.next()}
	}
	return f
}

// earned reports whether the floor of Batch has earned c units.
func (m *model) earned(q *modelLine, c int64) bool {
	need := new(big.Rat).Mul(units(c), big.NewRat(100-m.floor, 100))
	return need.Sign() > 0 && q.owed.Cmp(need) >= 0
}

// goesBefore reports whether a lane of key, with that head, would be first in q.
func (m *model) goesBefore(q *modelLine, key modelKey, head *modelTicket, first bool, c int64) bool {
	if mine := q.ranked(key.class); len(mine) > 0 {
		best := mine[0]
		tag := m.lift(q, key.class)
		if f := q.flows[key]; f != nil && (q.waits(key) || f.tag().Cmp(tag) > 0) {
			tag = f.tag()
		}
		switch d := tag.Cmp(q.flows[best.key].tag()); {
		case d > 0,
			d == 0 && best.key != key && (head == nil || head.order > best.tickets[0].order),
			d == 0 && best.key == key && head != nil && compareTickets(head, best.tickets[0]) > 0,
			d == 0 && best.key == key && head == nil && !(first && !best.tickets[0].first):
			return false
		}
	}
	others := q.ranked(1 - key.class)
	switch {
	case len(others) == 0:
		return true
	case key.class == Batch:
		return m.earned(q, c)
	}
	return !m.earned(q, q.units(others[0].tickets[0].cost))
}

// modelWant is a call that is being decided.
type modelWant struct {
	cost  Cost
	spend Spend
	key   modelKey
	path  []*modelScope
	place bool
	first bool
}

type modelStop struct {
	s     *modelScope
	limit *modelLimit
	door  bool
	at    int64
	order int
}

func (st modelStop) line() *modelLine {
	switch {
	case st.limit != nil:
		return st.limit.line
	case st.door:
		return st.s.door
	}
	return st.s.places
}

func (s *modelScope) full() bool { return s.opt.MaxInFlight > 0 && s.inFlight >= s.opt.MaxInFlight }

// lacks is what w lacks now: where it stands, or else from the inside out.
func (m *model) lacks(w modelWant, k *modelLane) *modelStop {
	all := m.things(w)
	if k != nil {
		i := slices.IndexFunc(all, func(st *modelStop) bool { return st.line() == k.in })
		if i > 0 {
			all[0], all[i] = all[i], all[0]
			slices.SortFunc(all[1:], func(a, b *modelStop) int { return a.order - b.order })
		}
	}
	for _, st := range all {
		if m.stopped(st, w, k) {
			return st
		}
	}
	return nil
}

// things are all that a call may lack.
func (m *model) things(w modelWant) (all []*modelStop) {
	for _, s := range w.path {
		all = append(all, &modelStop{s: s})
		for _, x := range s.limits {
			all = append(all, &modelStop{s: s, limit: x})
		}
		all = append(all, &modelStop{s: s, door: true})
	}
	for i, st := range all {
		st.order = i
	}
	return all
}

func (m *model) stopped(st *modelStop, w modelWant, k *modelLane) bool {
	st.at = math.MaxInt64
	behind := func(c int64) bool {
		q := st.line()
		if q == nil {
			return false
		}
		if len(q.lanes) > 0 && (k == nil || k.in != q) {
			var head *modelTicket
			if k != nil {
				head = k.tickets[0]
			}
			if !m.goesBefore(q, w.key, head, w.first, c) {
				return true
			}
		}
		if q.claim == nil || q.claim == k {
			return false
		}
		at, keeps := m.keepsFrom(q, k, c)
		if keeps && at > m.now {
			st.at = at
		}
		return keeps
	}
	s := st.s
	switch {
	case st.limit != nil:
		c := count(st.limit.cfg.Unit, w.cost)
		if c == 0 {
			return false
		}
		if wait := st.limit.wait(c); wait > 0 {
			st.at = later(m.now, wait)
			return true
		}
		return behind(c)
	case !st.door:
		return w.place && s.opt.MaxInFlight > 0 && (s.full() || behind(1))
	case m.now >= s.pausedUntil:
		return false
	case s.after == 0 || s.probe != nil:
		st.at = s.pausedUntil
		return true
	case m.now < s.probeAt:
		st.at = min(s.probeAt, s.pausedUntil)
		return true
	case !w.place:
		st.at = s.pausedUntil
		return true
	}
	return behind(0) // else it is a probe
}

// keepsFrom reports whether the claim on q keeps k, or a newcomer, from c units.
// then is the instant at which the claimant can go.
func (m *model) keepsFrom(q *modelLine, k *modelLane, c int64) (then int64, keeps bool) {
	o := q.claim
	if k != nil && k.claimed > 0 && k.claimed < o.claimed || o.in == q || m.first(o.in) != o {
		return 0, false
	}
	then = m.now
	cost := o.tickets[0].cost
	for _, s := range o.path {
		if m.now < s.pausedUntil || o.place && s.full() {
			return 0, false
		}
		for _, x := range s.limits {
			then = max(then, later(m.now, x.wait(count(x.cfg.Unit, cost))))
		}
	}
	x := q.limit
	if x == nil {
		return then, q.s.opt.MaxInFlight-q.s.inFlight <= 1
	}
	rest := new(big.Rat).Sub(x.level, units(c))
	rest.Add(rest, new(big.Rat).Mul(x.perNano, units(then-m.now)))
	if rest.Cmp(x.burst) > 0 {
		rest = x.burst
	}
	return then, rest.Cmp(units(min(count(x.cfg.Unit, cost), x.cap))) < 0
}

// take spends what w wants everywhere.
func (m *model) take(w modelWant) *modelReservation {
	for _, s := range w.path {
		for _, x := range s.limits {
			x.add(-count(x.cfg.Unit, w.cost))
		}
		s.debits = append(s.debits, modelEvent{m.now, w.cost})
		for _, x := range s.limits { // each has its flow before the call has its age
			if count(x.cfg.Unit, w.cost) > 0 && x.line != nil && len(x.line.lanes) > 0 {
				m.flow(x.line, w.key)
			}
		}
		if w.place && s.places != nil && len(s.places.lanes) > 0 {
			m.flow(s.places, w.key)
		}
	}
	r := &modelReservation{spend: w.spend, cost: w.cost, key: w.key, path: w.path, age: m.age}
	if w.place {
		r.age = m.next()
		m.open = append(m.open, r)
	}
	for _, s := range w.path {
		if w.spend == (Spend{}) {
			break
		}
		if s.counts = s.counts || s.opt.Allowances != nil; s.counts {
			s.spends = append(s.spends, &modelSpend{m.now, w.spend, r})
		}
	}
	for _, s := range w.path {
		if w.place {
			s.inFlight++
			s.refs++
			if m.now < s.pausedUntil {
				s.probe = r
			}
		}
		for _, x := range s.limits {
			if c := count(x.cfg.Unit, w.cost); c > 0 && x.line != nil && len(x.line.lanes) > 0 {
				m.charge(x.line, w.key, c)
			}
		}
		if w.place && s.places != nil && len(s.places.lanes) > 0 {
			m.charge(s.places, w.key, 1)
		}
	}
	return r
}

func (m *model) charge(q *modelLine, key modelKey, c int64) {
	f := m.flow(q, key)
	if f.tag().Cmp(q.v[key.class]) > 0 {
		q.v[key.class] = f.tag()
	}
	f.served += c
	m.owe(q, key.class, c)
	m.look(q)
}

// owe notes that a class was granted c units: the floor's share of all that goes
// while Batch waits, less what goes to Batch.
func (m *model) owe(q *modelLine, class Class, c int64) {
	switch {
	case class == Batch:
		q.owed.Sub(q.owed, new(big.Rat).Mul(units(c), big.NewRat(100-m.floor, 100)))
	case len(q.ranked(Batch)) > 0:
		q.owed.Add(q.owed, new(big.Rat).Mul(units(c), big.NewRat(m.floor, 100)))
	}
}

func (m *model) look(q *modelLine) {
	if q != nil && len(q.lanes) > 0 {
		q.at = m.now
	}
}

func (m *model) park(k *modelLane, st *modelStop) {
	q := st.line()
	if q == nil {
		m.lines++
		q = &modelLine{
			s: st.s, limit: st.limit, door: st.door, id: m.lines, flows: map[modelKey]*modelFlow{},
			v: [2]*big.Rat{new(big.Rat), new(big.Rat)}, owed: new(big.Rat),
		}
		switch {
		case st.limit != nil:
			st.limit.line = q
		case st.door:
			st.s.door = q
		default:
			st.s.places = q
		}
	}
	m.flow(q, k.key)
	if k.key.class == Interactive && len(q.ranked(Interactive)) == 0 && q.owed.Sign() < 0 {
		q.owed, q.mixed = new(big.Rat), m.next()
	}
	k.in, q.lanes = q, append(q.lanes, k)
	if m.first(q) == k {
		if q.at = st.at; st.at == math.MaxInt64 {
			q.at = m.now
		}
	}
}

func (m *model) unpark(k *modelLane) {
	q := k.in
	q.lanes = slices.DeleteFunc(q.lanes, func(o *modelLane) bool { return o == k })
	k.in = nil
	if k.key.class == Batch && len(q.ranked(Batch)) == 0 && q.owed.Sign() > 0 {
		q.owed = new(big.Rat)
	}
	if len(q.lanes) == 0 {
		q.flows, q.owed = map[modelKey]*modelFlow{}, new(big.Rat)
		q.v = [2]*big.Rat{new(big.Rat), new(big.Rat)}
		return
	}
	m.look(q)
}

func (k *modelLane) want() modelWant {
	t := k.tickets[0]
	return modelWant{t.cost, t.spend, k.key, k.path, k.place, t.first}
}

// step does one thing that is due, and reports whether there was one.
func (m *model) step() bool {
	var q *modelLine
	for _, o := range m.occupied() {
		if o.at <= m.now && (q == nil || o.at < q.at || o.at == q.at && o.id < q.id) {
			q = o
		}
	}
	if q != nil {
		k := m.first(q)
		switch st := m.lacks(k.want(), k); {
		case st != nil && st.line() == q:
			q.at = st.at
		case m.beyond(k.want()) != nil:
			m.leave(k.tickets[0], m.beyond(k.want()))
		case st == nil:
			t := k.tickets[0]
			t.res = m.take(k.want())
			t.res.ticket = t.ticket
			m.unclaim(k)
			m.leave(t, nil)
		default:
			m.moveTo(k, st)
		}
		return true
	}
	if len(m.waiting) > 0 && m.waiting[0].expires <= m.now {
		m.leave(m.waiting[0], ErrWaitTooLong)
		return true
	}
	return false
}

func (m *model) moveTo(k *modelLane, st *modelStop) {
	from := k.in
	m.unpark(k)
	if to := st.line(); to != nil && to == k.left && k.claimed == 0 {
		m.claims++
		k.claimed = m.claims
	}
	k.left = from
	m.park(k, st)
	if k.claimed == 0 {
		return
	}
	cost := k.tickets[0].cost
	for _, s := range k.path {
		var all []*modelLine
		if k.place && s.opt.MaxInFlight > 0 {
			all = append(all, s.places)
		}
		for _, x := range s.limits {
			if count(x.cfg.Unit, cost) > 0 {
				all = append(all, x.line)
			}
		}
		for _, q := range all {
			if q != nil {
				if q.claim == nil || q.claim.claimed > k.claimed {
					q.claim = k
				}
				m.look(q)
			}
		}
	}
}

func (m *model) unclaim(k *modelLane) {
	k.left, k.claimed = nil, 0
	for _, q := range m.allLines() {
		if q.claim == k {
			q.claim = nil
			m.look(q)
		}
	}
}

func (m *model) allLines() (all []*modelLine) {
	for _, s := range m.scopes {
		all = append(all, s.places, s.door)
		for _, x := range s.limits {
			all = append(all, x.line)
		}
	}
	return slices.DeleteFunc(all, func(q *modelLine) bool { return q == nil })
}

func (m *model) occupied() []*modelLine {
	return slices.DeleteFunc(m.allLines(), func(q *modelLine) bool { return len(q.lanes) == 0 })
}

// forever reports whether a scope is paused without an end or a probe to come.
func (m *model) forever() bool {
	for _, s := range m.scopes {
		if s.pausedUntil == math.MaxInt64 {
			return true
		}
	}
	return false
}

// due is the instant of the next thing to happen by itself.
func (m *model) due() int64 {
	at := int64(math.MaxInt64)
	for _, q := range m.occupied() {
		at = min(at, q.at)
	}
	if len(m.waiting) > 0 {
		at = min(at, m.waiting[0].expires)
	}
	return at
}

// leave takes t out of its lane, for a reason or because it was granted.
func (m *model) leave(t *modelTicket, reason error) {
	k := t.lane
	head := k.tickets[0] == t
	if head && reason != nil {
		m.unclaim(k)
	}
	q := k.in
	if len(k.tickets) == 1 {
		m.unpark(k)
	}
	k.tickets = slices.DeleteFunc(k.tickets, func(o *modelTicket) bool { return o == t })
	if head && len(k.tickets) > 0 {
		m.look(q)
	}
	m.waiting = slices.DeleteFunc(m.waiting, func(o *modelTicket) bool { return o == t })
	for _, s := range k.path {
		m.release(s)
	}
	t.decided, t.reason = true, reason
}

// release lets go of s, which has no lines while nobody uses it.
func (m *model) release(s *modelScope) {
	if s.refs--; s.refs == 0 && s.name != "" {
		s.places, s.door = nil, nil
		for _, x := range s.limits {
			x.line = nil
		}
	}
}

func (m *model) settle() {
	for m.step() {
	}
}

// advance plays everything up to an instant.
func (m *model) advance(to int64) {
	m.settle()
	for {
		at := m.due()
		if at > to {
			break
		}
		m.move(max(at, m.now))
		m.settle()
	}
	m.move(to)
}

func (m *model) move(to int64) {
	m.now = to
	for _, s := range m.scopes {
		for _, x := range s.limits {
			x.advance(to)
		}
	}
}

func (m *model) newLimit(cfg Limit) *modelLimit {
	if cfg.Name == "" {
		cfg.Name = fmt.Sprintf("%v/%v", cfg.Unit, cfg.Rate.Window)
	}
	burst, largest := cfg.sizes()
	x := &modelLimit{oracle: newOracle(cfg.Rate, burst, largest), cfg: cfg, born: m.next(), took: new(big.Rat)}
	x.at = m.now
	if cfg.Empty {
		x.level = new(big.Rat)
	}
	return x
}

// possible is nil, or why cost can never go.
func possible(path []*modelScope, c Cost) error {
	if c.Requests < 0 || c.Input < 0 || c.Output < 0 {
		return ErrInvalid
	}
	for _, s := range path {
		for _, x := range s.limits {
			if count(x.cfg.Unit, c) > x.largest {
				return ErrTooLarge
			}
		}
	}
	return nil
}

// correct gives back diff, or charges it where negative.
func (m *model) correct(r *modelReservation, diff Cost) {
	for _, s := range slices.Backward(r.path) { // the root first
		s.refunds = append(s.refunds, modelEvent{m.now, diff})
		for _, x := range s.limits {
			d := count(x.cfg.Unit, diff)
			if x.born > r.age {
				x.earlier(m.now, r, diff)
				continue
			}
			if diff.Input < 0 && x.knew(r) {
				x.advance(m.now)
				x.found(-diff.Input)
			}
			if d == 0 {
				continue
			}
			x.add(d)
			q := x.line
			if q == nil || len(q.lanes) == 0 {
				continue
			}
			if r.age >= q.mixed {
				m.owe(q, r.key.class, -d)
				if len(q.ranked(Batch)) == 0 && q.owed.Sign() > 0 {
					q.owed = new(big.Rat)
				}
			}
			if f := q.flows[r.key]; f != nil && (q.waits(r.key) || f.tag().Cmp(q.v[r.key.class]) >= 0) {
				if w := int64(max(1, m.scopes[r.key.tenant].opt.Weight)); w != f.weight {
					*f = modelFlow{start: f.tag(), weight: w, born: m.next()}
				}
				if f.born <= r.age {
					f.served -= d
				}
			}
			m.look(q)
		}
	}
}

// earlier charges what r, which is older than x, has used beyond its reservation, once a
// balance has lowered x. Nothing comes back.
func (x *modelLimit) earlier(now int64, r *modelReservation, diff Cost) {
	d := count(x.cfg.Unit, diff)
	if diff.Input < 0 && x.knew(r) {
		d -= diff.Input
	}
	if x.reader != nil && d < 0 {
		x.advance(now)
		x.add(d)
	}
}

// end ends r, which opens, renews or keeps the pause it may be a probe of.
func (m *model) end(r *modelReservation, how ending, diff Cost) {
	m.open = slices.DeleteFunc(m.open, func(o *modelReservation) bool { return o == r })
	for _, s := range slices.Backward(r.path) { // the root first
		s.inFlight--
		if s.probe == r {
			s.probe = nil
			switch {
			case how == settled && m.now < s.pausedUntil:
				m.resume(s)
			case how == kept:
				s.probeAt = later(m.now, s.after)
			}
			m.look(s.door)
		}
		m.look(s.places)
	}
	if diff != (Cost{}) {
		m.correct(r, diff)
	}
	for _, s := range r.path {
		m.release(s)
	}
	m.settle()
}

func (m *model) resume(s *modelScope) {
	probed := m.now < s.pausedUntil && s.after > 0 && s.probeAt <= m.now
	s.pausedUntil, s.after, s.probeAt, s.probe = 0, 0, 0, nil
	for _, x := range s.limits {
		x.release(m.now)
		if probed && x.rate.Window <= time.Minute {
			x.setBack(m.now, x.fresh(), 0)
		}
		m.look(x.line)
	}
	m.look(s.door)
}

// fresh is what a limit holds when a pause ends, in units.
func (x *modelLimit) fresh() int64 {
	if x.cfg.Unit == Requests {
		return 1
	}
	return 0
}

func (m *model) pause(s *modelScope, p Pause) {
	forever := p.For <= 0
	if forever && p.ProbeAfter <= 0 {
		return
	}
	until := later(m.now, int64(p.For))
	if forever {
		until = math.MaxInt64
	}
	opens, probes := until, p.ProbeAfter > 0 && (forever || p.ProbeAfter < p.For)
	if probes {
		opens = later(m.now, int64(p.ProbeAfter))
	}
	switch paused := m.now < s.pausedUntil; {
	case paused && until <= s.pausedUntil && s.after == 0:
		return
	case paused && until <= s.pausedUntil:
		s.probe, s.probeAt = nil, max(s.probeAt, opens)
		opens = s.probeAt
	default:
		if paused {
			old := s.pausedUntil
			if s.after > 0 {
				old = min(old, s.probeAt)
			}
			opens = max(opens, old)
		}
		s.pausedUntil, s.probe, s.probeAt, s.after = until, nil, opens, 0
		if probes {
			s.after = int64(p.ProbeAfter)
		}
	}
	for _, x := range s.limits {
		if x.rate.Window <= time.Minute {
			x.setBack(m.now, x.fresh(), opens-m.now)
		}
	}
	m.look(s.door)
	m.settle()
}

var trialRates = append([]Rate{PerSecond(1000), PerMinute(60), PerSecond(1), {3, time.Millisecond}}, rates[:9]...)

func randomLimit(s source, i int) Limit {
	lim := Limit{
		Name: string(rune('a' + i)), Unit: Unit(upTo(s, 4)), Rate: pick(s, trialRates),
		Empty: upTo(s, 4) == 0,
	}
	if upTo(s, 3) > 0 {
		lim.Burst = 1 + spread(s, 1000)
	}
	if upTo(s, 3) == 0 {
		lim.Largest = 1 + spread(s, 1000)
	}
	return lim
}

// newTrial is a limiter with a few scopes and tenants, some of them limited.
func newTrial(t *testing.T, s source) *trial {
	o := Options{Floor: int(upTo(s, 3)) * 20}
	calm := upTo(s, 4) > 0
	m := &model{scopes: map[string]*modelScope{}, floor: int64(o.Floor)}
	if m.floor == 0 {
		m.floor = 10
	}
	if upTo(s, 3) == 0 {
		o.MaxWait = 1 + time.Duration(spread(s, int64(time.Hour)))
	}
	m.maxWait = int64(o.MaxWait)
	m.start = time.Now()
	x := &trial{t: t, start: m.start, m: m, calm: calm}
	for _, name := range trialScopes {
		m.scopes[name] = &modelScope{name: name}
		if name != "" && upTo(s, 2) == 0 {
			continue
		}
		var limits []Limit
		for i := range upTo(s, 3) {
			lim := randomLimit(s, int(i))
			if calm {
				lim = Limit{Name: lim.Name, Unit: Unit(upTo(s, 4)), Rate: PerSecond(1 + upTo(s, 50)), Burst: 20 + upTo(s, 100)}
				lim.Largest = lim.Burst + upTo(s, 50)
			}
			limits = append(limits, lim)
		}
		if name == "" {
			o.Limits = limits
		}
		for _, lim := range limits {
			m.scopes[name].limits = append(m.scopes[name].limits, m.newLimit(lim))
		}
	}
	x.l = mustNew(t, o)
	for _, name := range trialScopes[1:] {
		for _, lim := range m.scopes[name].limits {
			if err := x.l.SetScopeLimit(name, lim.cfg); err != nil {
				t.Fatal(err)
			}
		}
	}
	x.logf("%+v", o)
	return x
}

var trialScopes = []string{"", "account", "small", "large", "anna", "bert", "carl"}

// trial is a limiter and its model.
type trial struct {
	t     *testing.T
	m     *model
	l     *Limiter
	start time.Time
	all   []*modelTicket // undecided and just decided
	ended []Reservation  // may be ended again at any time, to no effect
	calm  bool           // many who wait for a few limits of like size
	log   []string
}

func (x *trial) logf(f string, a ...any) {
	x.log = append(x.log, fmt.Sprintf("%d: ", x.m.now)+fmt.Sprintf(f, a...))
	if len(x.log) > 60 {
		x.log = x.log[1:]
	}
}

func (x *trial) fatalf(f string, a ...any) {
	x.t.Helper()
	for _, line := range x.log {
		x.t.Log(line)
	}
	x.t.Fatalf("at %d: "+f, append([]any{x.m.now}, a...)...)
}

// scope is one of the trial's, the root most often.
func (x *trial) scope(s source) *modelScope {
	if upTo(s, 2) == 0 {
		return x.m.scopes[""]
	}
	return x.m.scopes[pick(s, trialScopes)]
}

// ask is a random ask, and what it wants in the model.
func (x *trial) ask(s source) (Ask, modelWant) {
	var a Ask
	switch upTo(s, 4) {
	case 1:
		a.Scopes = []string{"account"}
	case 2:
		a.Scopes = []string{"account", pick(s, []string{"small", "large"})}
	case 3:
		a.Scopes = []string{pick(s, []string{"small", "large"}), "account", "small"}[:1+upTo(s, 3)]
	}
	if upTo(s, 4) > 0 {
		a.Tenant = pick(s, []string{"anna", "bert", "carl", "small"})
	}
	if upTo(s, 3) == 0 {
		a.Class = Batch
	}
	a.First = upTo(s, 8) == 0
	w := modelWant{key: modelKey{a.Tenant, a.Class}, place: true, first: a.First, path: []*modelScope{x.m.scopes[""]}}
	for _, name := range append(slices.Clone(a.Scopes), a.Tenant) {
		if sc := x.m.scopes[name]; !slices.Contains(w.path, sc) {
			w.path = append(w.path, sc)
		}
	}
	slices.Reverse(w.path)
	a.Cost = x.cost(s, w.path)
	w.cost = a.Cost.bounded()
	if upTo(s, 3) > 0 {
		a.Spend = Spend{upTo(s, 60), upTo(s, 60)}
		w.spend = a.Spend
	}
	return a, w
}

// cost is one that fits all limits, most of the time.
func (x *trial) cost(s source, path []*modelScope) Cost {
	room := map[Unit]int64{Requests: 50, Input: 500, Output: 500, Tokens: 1000}
	for _, sc := range path {
		for _, lim := range sc.limits {
			room[lim.cfg.Unit] = min(room[lim.cfg.Unit], lim.largest)
		}
	}
	in := min(room[Input], room[Tokens])
	if x.calm {
		c := Cost{Requests: min(upTo(s, 3), room[Requests]), Input: upTo(s, 1+min(in, 20))}
		if upTo(s, 4) == 0 {
			c.Input = upTo(s, 1+in)
		}
		if upTo(s, 3) == 0 {
			c.Output = upTo(s, 1+min(room[Output], room[Tokens]-c.Input))
		}
		return c
	}
	c := Cost{Requests: spread(s, room[Requests]+1), Input: spread(s, in+1)}
	c.Output = spread(s, min(room[Output], room[Tokens]-c.Input)+1)
	switch upTo(s, 32) {
	case 0:
		c.Input = MaxUnits + 1 // more is counted as that
	case 1:
		c.Output = -1
	case 2:
		c = Cost{}
	case 3:
		c.Input = in + 1 + spread(s, 500) // above the largest, perhaps not the burst
	}
	return c
}

// expect compares a refusal with what the model says.
func (x *trial) expect(what string, err error, want error) {
	x.t.Helper()
	if (err == nil) != (want == nil) || want != nil && !errors.Is(err, want) {
		x.fatalf("%s: %v, want %v", what, err, want)
	}
}

// lane is the lane in which calls like w wait, or nil.
func (m *model) lane(w modelWant) *modelLane {
	for _, t := range m.waiting {
		if k := t.lane; k.key == w.key && k.place == w.place && slices.Equal(k.path, w.path) && k.needs == needs(w.cost) {
			return k
		}
	}
	return nil
}

func needs(c Cost) [3]bool { return [3]bool{c.Requests != 0, c.Input != 0, c.Output != 0} }

// alone is the instant at which w could go if nobody else waited.
func (m *model) alone(w modelWant) int64 {
	at := m.now
	for _, s := range w.path {
		if m.now < s.pausedUntil {
			opens := s.pausedUntil
			if s.after > 0 {
				opens = min(opens, s.probeAt)
			}
			at = max(at, opens)
		}
	}
	for _, s := range w.path {
		for _, x := range s.limits {
			if c := count(x.cfg.Unit, w.cost); c > 0 {
				at = max(at, later(m.now, x.wait(c)))
			}
		}
	}
	return at
}

func (m *model) use(path []*modelScope) func() {
	for _, s := range path {
		s.refs++
	}
	return func() {
		for _, s := range path {
			m.release(s)
		}
	}
}

func (x *trial) join(s source) {
	a, w := x.ask(s)
	m := x.m
	defer m.use(w.path)()
	var deadline time.Time
	if upTo(s, 4) == 0 {
		deadline = time.Now().Add(time.Duration(spread(s, int64(time.Minute))))
	}
	var want error
	exact := true // the wait is known, not only bounded
	k := m.lane(w)
	var st *modelStop
	if k == nil && possible(w.path, w.cost) == nil {
		st = m.lacks(w, nil)
	}
	goes := k == nil && st == nil
	switch {
	case possible(w.path, w.cost) != nil:
		want, goes = possible(w.path, w.cost), false
	case m.beyond(w) != nil:
		want, goes = m.beyond(w), false
	case goes:
	case m.crowded(w):
		want = ErrQueueFull
	case len(m.waiting) == 0:
		wait := m.alone(w) - m.now
		if m.maxWait > 0 && wait > m.maxWait || !deadline.IsZero() && time.Duration(wait) > max(0, time.Until(deadline)) && wait > 0 {
			want = ErrWaitTooLong
		}
	case m.maxWait > 0 || !deadline.IsZero():
		exact = false
	}
	x.l.mu.Lock()
	waits, r, err := x.l.ask(&a, true, deadline)
	x.l.mu.Unlock()
	x.logf("ask %+v deadline %v: %v", a, deadline, err)
	if exact {
		x.expect("ask", err, want)
	} else if err != nil {
		x.expect("ask behind others", err, ErrWaitTooLong)
	}
	if err != nil {
		return
	}
	if goes {
		if waits != nil && waits.lane != nil {
			x.fatalf("it waits")
		}
		m.take(w).real = r
		m.settle()
		return
	}
	if waits == nil {
		x.fatalf("it does not wait")
	}
	t := &modelTicket{ticket: &Ticket{w: waits}, cost: w.cost, spend: w.spend, first: w.first, order: m.next(), expires: math.MaxInt64}
	if m.maxWait > 0 {
		t.expires = later(m.now, m.maxWait)
	}
	x.all = append(x.all, t)
	m.waiting = append(m.waiting, t)
	for _, sc := range w.path {
		sc.refs++
	}
	if k == nil {
		k = &modelLane{key: w.key, path: w.path, needs: needs(w.cost), place: true, tickets: []*modelTicket{t}}
		t.lane = k
		m.park(k, st)
	} else {
		t.lane = k
		i := len(k.tickets)
		if w.first {
			for i = 0; i < len(k.tickets) && k.tickets[i].first; i++ {
			}
		}
		k.tickets = slices.Insert(k.tickets, i, t)
		if i == 0 {
			m.look(k.in)
		}
	}
	m.settle()
}

func (m *model) crowded(w modelWant) bool {
	return !w.first && slices.ContainsFunc(w.path, func(s *modelScope) bool {
		n := 0
		for _, t := range m.waiting {
			if slices.Contains(t.lane.path, s) {
				n++
			}
		}
		return s.opt.MaxQueue > 0 && n >= s.opt.MaxQueue
	})
}

func (x *trial) try(s source) {
	m := x.m
	a, w := x.ask(s)
	if w.place = upTo(s, 3) > 0; !w.place {
		a = Ask{Cost: a.Cost}
		w = modelWant{cost: w.cost, path: []*modelScope{m.scopes[""]}}
	}
	defer m.use(w.path)()
	want := possible(w.path, w.cost)
	if want == nil {
		want = m.beyond(w)
	}
	if want == nil && (m.lane(w) != nil || m.lacks(w, nil) != nil) {
		want = ErrLimited
	}
	if !w.place {
		ok := x.l.Allow(a.Cost)
		x.logf("allow %v: %v", a.Cost, ok)
		if ok != (want == nil) {
			x.fatalf("allow %v: %v, want %v", a.Cost, ok, want)
		}
		if want == nil {
			m.take(w)
			m.settle()
		}
		return
	}
	if f := x.l.Forecast(a); (f.Err != nil && !errors.Is(f.Err, ErrQueueFull)) != (want != nil && want != ErrLimited) ||
		want == nil && f != (Forecast{Known: true}) {
		x.fatalf("forecast of %+v: %+v, want %v", a, f, want)
	}
	r, err := x.l.TryAdmit(a)
	x.logf("try %+v: %v", a, err)
	x.expect("try", err, want)
	if err == nil {
		m.take(w).real = r
		m.settle()
		return
	}
	var e *Error
	if !errors.As(err, &e) {
		x.fatalf("%T is no *Error", err)
	}
	full := slices.ContainsFunc(w.path, (*modelScope).full)
	if want == ErrLimited && len(m.waiting) == 0 && !full {
		wait := m.alone(w)
		if wait < math.MaxInt64 {
			wait -= m.now
		}
		if int64(e.Wait) != wait || wait > 0 && wait < math.MaxInt64 && !e.Earliest.Equal(time.Now().Add(e.Wait)) {
			x.fatalf("try %+v: wait %d, earliest %v; want %d", a, e.Wait, e.Earliest, wait)
		}
	}
}

// act does one random thing at this instant.
func (x *trial) act(s source) {
	m := x.m
	var r *modelReservation
	if len(m.open) > 0 {
		if r = pick(s, m.open); r.real == (Reservation{}) {
			r.real, _ = r.ticket.Take()
		}
	}
	op := upTo(s, 26)
	if op > 15 && op != 18 && x.calm && upTo(s, 4) > 0 {
		op %= 16
	}
	switch {
	case op < 9:
		x.join(s)
	case op < 11:
		x.try(s)
	case op < 16 && r != nil:
		x.ended = append(x.ended, r.real)
		switch upTo(s, 3) {
		case 0:
			c := x.cost(s, r.path)
			x.logf("settle %v: %v", r.cost, c)
			if upTo(s, 2) == 0 {
				r.real.Settle(c)
			} else {
				spend := Spend{upTo(s, 80), upTo(s, 80)}
				r.real.SettleSpent(c, spend)
				m.respend(r, spend)
			}
			m.end(r, settled, Cost{0, r.cost.Input - max(0, min(c.Input, MaxUnits)), r.cost.Output - max(0, min(c.Output, MaxUnits))})
		case 1:
			x.logf("return %v", r.cost)
			r.real.Return()
			m.respend(r, Spend{})
			m.end(r, returned, r.cost)
		case 2:
			x.logf("keep %v", r.cost)
			r.real.Keep()
			m.end(r, kept, Cost{})
		}
	case op == 16:
		if len(m.waiting) > 0 {
			t := pick(s, m.waiting)
			x.logf("cancel %v", t.cost)
			t.ticket.w.leave(nil, nil)
			m.leave(t, ErrCanceled)
			m.settle()
		}
	case op == 17:
		p := Pause{For: time.Duration(spread(s, int64(time.Minute))) - time.Millisecond}
		if upTo(s, 2) == 0 {
			p.ProbeAfter = time.Duration(spread(s, int64(time.Minute))) - time.Millisecond
		}
		sc := x.scope(s)
		x.logf("pause %q %+v", sc.name, p)
		x.l.PauseScope(sc.name, p)
		m.pause(sc, p)
	case op == 18:
		x.set(s)
	case op == 19:
		sc := x.scope(s)
		if len(sc.limits) == 0 {
			break
		}
		lim, d := pick(s, sc.limits), time.Duration(spread(s, int64(time.Minute)))-time.Millisecond
		keep := spread(s, lim.cfg.Rate.N) - 1
		x.logf("drain %s of %q to %d in %v", lim.cfg.Name, sc.name, keep, d)
		x.l.DrainScope(sc.name, lim.cfg.Name, keep, d)
		lim.setBack(m.now, max(0, keep), max(0, int64(d)))
	case op == 20:
		sc := x.scope(s)
		x.logf("resume %q", sc.name)
		x.l.ResumeScope(sc.name)
		m.resume(sc)
		m.settle()
	case op >= 21 && r != nil:
		if upTo(s, 2) == 0 || !r.sent {
			x.logf("sent %v", r.cost)
			r.real.Sent()
			r.sent, r.sentAt, r.sentF = true, m.now, map[*modelScope]int{}
			for _, sc := range r.path {
				r.sentF[sc] = len(sc.refunds)
			}
		} else {
			x.lower(s, r)
		}
	}
	for _, old := range x.ended[max(0, len(x.ended)-3):] { // to no effect
		old.Settle(Cost{})
		old.Return()
		old.Keep()
		old.Sent()
		old.Lower("a", -5, Cost{})
	}
}

// respend corrects what r has spent.
func (m *model) respend(r *modelReservation, spend Spend) {
	for _, s := range m.scopes {
		for _, p := range s.spends {
			if p.by == r {
				p.spend = spend
			}
		}
	}
}

func (x *trial) lower(s source, r *modelReservation) {
	m, sc := x.m, pick(s, r.path)
	if len(sc.limits) == 0 {
		return
	}
	lim, remaining := pick(s, sc.limits), spread(s, 2000)-100
	var own Cost
	if upTo(s, 3) == 0 {
		own = r.cost
	}
	held := own
	if lim.born > r.age {
		held = Cost{} // it was not charged
	}
	u := lim.cfg.Unit
	bound := new(big.Rat).Mul(lim.perNano, units(m.now-r.sentAt))
	bound.Add(bound, units(remaining-count(u, held)))
	for _, e := range sc.debits {
		if e.at > r.sentAt+int64(250*time.Millisecond) {
			bound.Sub(bound, units(count(u, e.cost)))
		}
	}
	for _, e := range sc.refunds[r.sentF[sc]:] {
		c := e.cost
		c.Input = max(c.Input, 0) // more than was reserved was known when it came
		bound.Add(bound, units(count(u, c)))
	}
	fell := bound.Cmp(lim.level) < 0
	x.logf("lower %s of %q to %d own %v (bound %s)", lim.cfg.Name, sc.name, remaining, own, bound.FloatString(3))
	if got := r.real.LowerIn(sc.name, lim.cfg.Name, remaining, own); got != fell {
		x.fatalf("lower: %v, want %v", got, fell)
	}
	lim.lower(bound)
	if fell {
		lim.read, lim.reader = r.sentAt, r
	}
}

// set changes the options or a limit of a scope.
func (x *trial) set(s source) {
	m, sc := x.m, x.scope(s)
	if upTo(s, 2) == 0 {
		o := ScopeOptions{Weight: int(upTo(s, 5)), MaxInFlight: int(upTo(s, 6)), MaxQueue: int(upTo(s, 9))}
		if upTo(s, 2) == 0 {
			o.MaxInFlight, o.MaxQueue = 0, 0
		}
		if upTo(s, 3) > 0 {
			o.Allowances = &Allowances{
				DayTokens: upTo(s, 400), DayMoney: upTo(s, 400), MonthTokens: upTo(s, 1200), MonthMoney: upTo(s, 1200),
				Rolling: len(sc.name)%2 == 0,
			}
		}
		x.logf("set %q %+v", sc.name, o)
		if err := x.l.SetScope(sc.name, o); err != nil {
			x.fatalf("set: %v", err)
		}
		sc.opt = o
		m.look(sc.places)
		m.settle()
		return
	}
	lim := randomLimit(s, int(upTo(s, 3)))
	if x.calm {
		lim = Limit{Name: lim.Name, Unit: lim.Unit, Rate: PerSecond(1 + upTo(s, 50)), Burst: 20 + upTo(s, 100)}
	}
	i := slices.IndexFunc(sc.limits, func(o *modelLimit) bool { return o.cfg.Name == lim.Name })
	if i >= 0 && upTo(s, 3) > 0 { // a change of rate alone, most often
		cfg := sc.limits[i].cfg
		cfg.Rate = lim.Rate
		lim = cfg
	}
	if upTo(s, 8) == 0 {
		lim = Limit{Name: lim.Name}
	}
	x.logf("set %q %+v", sc.name, lim)
	if err := x.l.SetScopeLimit(sc.name, lim); err != nil {
		x.fatalf("set: %v", err)
	}
	var orphan *modelLine
	var changed *modelLimit
	switch {
	case lim.Rate == (Rate{}):
		if i >= 0 {
			orphan = sc.limits[i].line
			sc.limits = slices.Delete(sc.limits, i, i+1)
		}
	case i < 0:
		sc.limits = append(sc.limits, m.newLimit(lim))
	default:
		old := sc.limits[i]
		changed = old
		burst, largest := lim.sizes()
		old.change(m.now, lim.Rate, burst, largest)
		if old.cfg.Unit != lim.Unit {
			old.born, old.reader = m.next(), nil
			orphan, old.line = old.line, nil
		}
		old.cfg = lim
	}
	for _, t := range slices.Clone(m.waiting) {
		if possible(t.lane.path, t.cost) != nil {
			m.leave(t, ErrTooLarge)
		}
	}
	for orphan != nil && len(orphan.lanes) > 0 {
		k := m.first(orphan)
		if e := m.beyond(k.want()); e != nil {
			m.leave(k.tickets[0], e)
		} else if st := m.lacks(k.want(), k); st != nil {
			m.moveTo(k, st)
		} else {
			t := k.tickets[0]
			t.res = m.take(k.want())
			t.res.ticket = t.ticket
			m.unclaim(k)
			m.leave(t, nil)
		}
	}
	if changed != nil {
		m.look(changed.line)
	}
	m.settle()
}

// compare holds everything that can be seen of the limiter to the model. Not
// every time: looking brings buckets up to date and lets the timer run, and the
// answers must not depend on it.
func (x *trial) compare(s source) {
	x.t.Helper()
	m, l := x.m, x.l
	m.advance(m.now)
	if upTo(s, 2) == 0 {
		return
	}
	synctest.Wait()
	x.all = slices.DeleteFunc(x.all, func(t *modelTicket) bool {
		select {
		case <-t.ticket.Ready():
			if !t.decided {
				x.fatalf("%v went early: %v", t.cost, t.ticket.w.err)
			}
			r, err := t.ticket.w.r, t.ticket.w.err
			x.expect("turn", err, t.reason)
			if t.res != nil && t.res.real == (Reservation{}) {
				t.res.real = r
			}
			return true
		default:
			if t.decided {
				x.fatalf("%v was not decided, want %v", t.cost, t.reason)
			}
			return false
		}
	})
	if upTo(s, 2) == 0 {
		return
	}
	snap := l.Snapshot()
	scopes := map[string]Snapshot{"": snap}
	for _, one := range snap.Scopes {
		scopes[one.Scope] = one
	}
	if x.calm && len(m.waiting) > 0 && len(m.open) == 0 && m.due() == math.MaxInt64 && !m.forever() {
		for _, q := range m.occupied() {
			for _, k := range q.lanes {
				x.logf("%q door %v, limit %v: %+v %v claimed %d claim %v in %v first %v", q.s.name, q.door, q.limit != nil, k.key, k.tickets[0].cost, k.claimed, q.claim == k, q.at, m.first(q) == k)
			}
		}
		x.fatalf("nobody goes, and nothing is waited for")
	}
	if snap.Waiting != len(m.waiting) || snap.InFlight != len(m.open) {
		x.fatalf("%d waiting, %d in flight; want %d, %d", snap.Waiting, snap.InFlight, len(m.waiting), len(m.open))
	}
	for name, sc := range m.scopes {
		got, ok := scopes[name]
		if !ok {
			if len(sc.limits) > 0 || sc.refs > 0 || m.now < sc.pausedUntil {
				x.fatalf("scope %q is not there", name)
			}
			continue
		}
		x.compareScope(got, sc)
	}
}

func (x *trial) compareScope(got Snapshot, sc *modelScope) {
	x.t.Helper()
	m, l := x.m, x.l
	var asked, served Cost
	waiting := 0
	oldest := m.now
	for _, t := range m.waiting {
		if slices.Contains(t.lane.path, sc) {
			asked = asked.plus(t.cost)
			waiting++
		}
	}
	_ = oldest
	for _, e := range sc.debits {
		served = served.plus(e.cost)
	}
	for _, e := range sc.refunds {
		served = served.minus(e.cost)
	}
	var allowed []allowance
	if a := sc.opt.Allowances; a != nil {
		if b := got.Options.Allowances; b == nil || *a != *b {
			x.fatalf("%q: allowances %+v, want %+v", sc.name, b, a)
		}
		got.Options.Allowances = a
		allowed = a.set()
	}
	for i, a := range allowed {
		state := got.Limits[len(sc.limits)+i]
		used := new(big.Rat).SetInt64(a.most - state.Credit + state.Debt)
		if want := m.used(sc, a); state.Name != a.name || used.Cmp(want) != 0 {
			x.fatalf("%q: %s: %s used, want %s", sc.name, a.name, used, want)
		}
	}
	if got.InFlight != sc.inFlight || got.Waiting != waiting || len(got.Limits) != len(sc.limits)+len(allowed) || got.Served != served || got.Options != sc.opt {
		x.fatalf("%q: %+v; want %d in flight, %d waiting, served %v, %+v", sc.name, got, sc.inFlight, waiting, served, sc.opt)
	}
	if paused := sc.pausedUntil > m.now; paused == got.PausedUntil.IsZero() || paused && !got.PausedUntil.Equal(x.start.Add(time.Duration(sc.pausedUntil))) ||
		paused && (got.Probing != (sc.probe != nil) || sc.after > 0 && !got.ProbeAt.Equal(x.start.Add(time.Duration(sc.probeAt)))) {
		x.fatalf("%q paused until %v, probe at %v; want %d, %d", sc.name, got.PausedUntil, got.ProbeAt, sc.pausedUntil, sc.probeAt)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, lim := range sc.limits {
		state, b := got.Limits[i], l.lookup(sc.name).find(lim.cfg.Name)
		if b == nil || !lim.levelIs(&b.Bucket) || state.Credit-state.Debt != lim.credit() || state.Waiting != count(lim.cfg.Unit, asked) {
			x.fatalf("%q: limit %+v: want level %s, %v waiting", sc.name, state, lim.level.FloatString(9), asked)
		}
		x.compareLine(b.line, lim.line)
	}
	if q := l.lookup(sc.name).busy; q != nil {
		x.compareLine(q.places, sc.places)
		x.compareLine(q.door, sc.door)
	}
}

// compareLine holds the tags of all who wait in a line to the model, and the
// virtual time to its bound: it is the start tag of one that was granted, so no
// first of a line is more than its own largest call behind it.
func (x *trial) compareLine(got *line, want *modelLine) {
	x.t.Helper()
	if want == nil || len(want.lanes) == 0 {
		if got != nil && got.n != 0 {
			x.fatalf("%d lanes in a line, want none", got.n)
		}
		return
	}
	if got == nil || got.n != len(want.lanes) {
		x.fatalf("%+v is not there", want)
	}
	rat := func(w wide) *big.Rat { return new(big.Rat).SetInt(w.big()) }
	owed := new(big.Rat).Mul(want.owed, units(100))
	if owed.Cmp(units(got.owed)) != 0 {
		x.fatalf("owed %d, want %s", got.owed, owed)
	}
	for key, f := range want.flows {
		if !want.waits(key) {
			continue
		}
		g := got.flows[flowKey{x.l.lookup(key.tenant), key.class}]
		if g == nil || rat(g.tag).Cmp(f.tag()) != 0 || g.served != f.served {
			x.fatalf("flow %v: %+v, want tag %s", key, g, f.tag())
		}
	}
	for c := range want.v {
		if rat(got.class[c].v).Cmp(want.v[c]) != 0 {
			x.fatalf("virtual time %v, want %s", got.class[c].v, want.v[c])
		}
	}
	if k, o := got.first(), x.m.first(want); k.head.cost != o.tickets[0].cost || (got.claim == nil) != (want.claim == nil) {
		x.fatalf("first is %v, want %v", k.head.cost, o.tickets[0].cost)
	}
}

// pass lets time go by: often to just before the next event, and then to it.
func (x *trial) pass(s source) {
	d := int64(0)
	next := x.m.due()
	switch {
	case next < math.MaxInt64 && upTo(s, 2) == 0:
		d = next - x.m.now - 1 + upTo(s, 3)
	case len(x.m.open) > 0 && upTo(s, 3) == 0: // to where a mark settles
		d = pick(s, x.m.open).sentAt + int64(250*time.Millisecond) - x.m.now - 1 + upTo(s, 3)
	case upTo(s, 40) == 0: // so that days and months end
		d = spread(s, 10*int64(24*time.Hour))
	case x.calm && upTo(s, 2) == 0: // at once
	case upTo(s, 3) > 0:
		d = spread(s, int64(10*time.Second))
	}
	d = max(0, min(d, int64(month)))
	time.Sleep(time.Duration(d))
	x.m.advance(x.m.now + d)
}

func (x *trial) run(s source, steps int) {
	for range steps {
		if s.done() {
			break
		}
		x.act(s)
		x.compare(s)
		x.pass(s)
		x.compare(s)
	}
	// Everybody leaves: nothing may be left.
	for _, t := range x.all {
		t.ticket.w.leave(nil, nil)
	}
	for _, r := range slices.Clone(x.m.open) {
		r.real.Return()
	}
	synctest.Wait()
	empty(x.t, x.l)
}

// A whole Limiter against the model: scopes, tenants, classes, the fair line,
// places, pauses and probes, lowering, changes of limits and weights, all at
// random, everything compared after every step.
func TestOracleLimiter(t *testing.T) {
	s := newSeeded(*seedFlag)
	for done := 0; done < orQuick(*opsFlag, 20_000); done += 100 {
		synctest.Test(t, func(t *testing.T) { newTrial(t, s).run(s, 100) })
	}
}

func FuzzLimiter(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("acquire, settle, cancel, pause: in any order and at any instant"))
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 8 {
		b := make([]byte, 100*n)
		for i := range b {
			b[i] = byte(r.Uint32() >> 16)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		synctest.Test(t, func(t *testing.T) {
			s := &fuzzed{program}
			newTrial(t, s).run(s, 1000)
		})
	})
}

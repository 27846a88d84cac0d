package limit

import (
	"math"
	"math/bits"
)

const never = math.MaxInt64

// A line holds those who wait for one thing: a limit, a place in flight, or the
// end of a pause. Its members are lanes, grouped by tenant and class into flows.
// Only the first lane may go, and only its instant is timed.
type line struct {
	s    *scope
	b    *bound // the limit, nil for the two others
	door bool   // of the pause
	id   uint64 // order between lines at one instant

	at  int64 // instant at which the first is to be looked at
	pos int   // in Limiter.due

	n      int // lanes in it
	class  [classes]tier
	flows  map[flowKey]*flow
	recent *flow  // that was asked for last
	idle   *flow  // ring of flows without a lane; the oldest is idle.next
	owed   int64  // what Batch is behind its floor, in hundredths of a unit
	mixed  uint64 // table.seq from which on reservations count in owed

	claim *lane // see lane.claimed
	floor int64 // per cent
}

// tier is one class of a line.
type tier struct {
	flows  heap[*flow]
	v      wide  // virtual time: the largest start tag that was granted
	weight int64 // sum of the weights of flows
	likely Cost  // what they are expected to cost
}

type flowKey struct {
	tenant *scope
	class  Class
}

// A flow is one tenant and class in a line. Its tag is the virtual time up to
// which it was served:
//
//	tag = start + served / weight
//
// counted in 2^-40 units, rounded down once. So equal shares have equal tags at any
// weights, and no error adds up.
type flow struct {
	flowKey
	start  wide
	served int64 // units since start, as settled so far
	weight int64
	tag    wide
	born   uint64 // table.seq at start: older reservations do not count

	lanes  heap[*lane] // those in this line
	likely Cost        // what they are expected to cost
	pos    int         // in tier.flows; -1 without a lane

	prev, next *flow // ring of idle ones
}

const tagBits = 40

func (f *flow) place() *int { return &f.pos }

func (f *flow) before(g *flow) bool {
	if f.tag != g.tag {
		return f.tag.less(g.tag)
	}
	return f.lanes[0].head.seq < g.lanes[0].head.seq
}

func (f *flow) retag() { f.tag = f.start.add(perWeight(f.served, uint64(f.weight))) }

// perWeight is served / weight in 2^-40 units, rounded down.
func perWeight(served int64, weight uint64) wide {
	d := mulSigned(served, 1<<tagBits)
	if weight == 1 {
		return d
	}
	neg := d.hi < 0
	if neg {
		d = wide{}.sub(d)
	}
	hi, rest := uint64(d.hi)/weight, uint64(d.hi)%weight
	lo, rest := bits.Div64(rest, d.lo, weight)
	d = wide{int64(hi), lo}
	if !neg {
		return d
	}
	if rest != 0 {
		d = d.add(wide{0, 1})
	}
	return wide{}.sub(d)
}

// restart lets f begin anew at tag. Reservations up to now do not move it.
func (f *flow) restart(l *Limiter, tag wide) {
	l.open.seq++
	f.start, f.tag, f.served, f.born = tag, tag, 0, l.open.seq
}

// A lane is the waiting calls of one tenant and class that take from the same
// scopes and need the same units. They go first come, first served. The lane stands
// in the line of one thing that its head lacks.
type lane struct {
	laneKey
	path []*scope // outermost first, without the root
	twin *lane    // the next of the same key and another path
	slot int      // in Limiter.parked

	head, tail  *waiter
	last        *waiter // of those who go first
	n           int
	likely      Cost // what they are expected to cost
	firstLikely Cost // of those who go first

	in   *line
	flow *flow
	pos  int // in flow.lanes

	left    *line   // the last line it got through, for the present head
	claimed uint64  // order among lanes with claims; 0 = none
	claims  []*line // that it has, or had until an older one came
}

type laneKey struct {
	tenant *scope
	inner  *scope // the last of path, or the root
	depth  int    // length of path
	class  Class
	needs  uint8 // which units are not zero, and whether a place is needed
}

func (k *lane) place() *int { return &k.pos }

func (k *lane) before(o *lane) bool { return k.head.before(o.head) }

func (q *line) place() *int { return &q.pos }

func (q *line) before(p *line) bool {
	if q.at != p.at {
		return q.at < p.at
	}
	return q.id < p.id
}

// units is what c takes of the thing that q is about.
func (q *line) units(a *amounts) int64 {
	switch {
	case q.b != nil:
		return a.in(q.b.unit)
	case q.door:
		return 0
	}
	return 1
}

// turn is the class whose turn it is, if anybody waits.
func (q *line) turn() Class {
	f := q.class[Batch].flows.first()
	if f == nil {
		return Interactive
	}
	if len(q.class[Interactive].flows) == 0 {
		return Batch
	}
	a := f.lanes[0].head.cost.amounts()
	if q.earned(q.units(&a)) {
		return Batch
	}
	return Interactive
}

// earned reports whether the floor has earned c units: then Batch has its turn
// before Interactive.
func (q *line) earned(c int64) bool {
	need := c * (100 - q.floor)
	return need > 0 && q.owed >= need
}

// first is the lane that may go next, or nil.
func (q *line) first() *lane {
	f := q.class[q.turn()].flows.first()
	if f == nil {
		return nil
	}
	return f.lanes[0]
}

// lift is the tag at which a flow that comes, or comes back, begins: the present
// virtual time. It is that of the first flow that waits, which is being served.
func (q *line) lift(c Class) wide {
	t := &q.class[c]
	v := t.v
	if f := t.flows.first(); f != nil && v.less(f.tag) {
		v = f.tag
	}
	return v
}

// goesBefore reports whether a call that is not in q would be the first there: t
// of that flow, who wants c units, or a newcomer if t is nil.
func (q *line) goesBefore(key flowKey, t *waiter, first bool, c int64) bool {
	if f := q.class[key.class].flows.first(); f != nil {
		tag := q.lift(key.class)
		if own := q.find(key); own != nil && (own.pos >= 0 || tag.less(own.tag)) {
			tag = own.tag
		}
		before := false
		switch head := f.lanes[0].head; {
		case tag != f.tag:
			before = tag.less(f.tag)
		case f.flowKey != key:
			before = t != nil && t.seq < head.seq
		case t != nil:
			before = t.before(head)
		default:
			before = first && !head.first
		}
		if !before {
			return false
		}
	}
	other := q.class[1-key.class].flows.first()
	switch {
	case other == nil:
		return true
	case key.class == Batch:
		return q.earned(c)
	}
	a := other.lanes[0].head.cost.amounts()
	return !q.earned(q.units(&a))
}

// find is the flow of key, or nil.
func (q *line) find(key flowKey) *flow {
	if f := q.recent; f != nil && f.flowKey == key {
		return f
	}
	f := q.flows[key]
	if f != nil {
		q.recent = f
	}
	return f
}

// flowOf is the flow of key, lifted to the present virtual time if it was away.
func (q *line) flowOf(l *Limiter, key flowKey) *flow {
	f := q.find(key)
	switch {
	case f == nil:
		f = l.newFlow(key)
		f.restart(l, q.lift(key.class))
		if q.flows == nil {
			q.flows = map[flowKey]*flow{}
		}
		q.flows[key] = f
		q.rest(f)
		q.sweep(l)
	case f.pos < 0:
		if v := q.lift(key.class); f.tag.less(v) {
			f.restart(l, v)
		}
	}
	q.reweigh(l, f)
	return f
}

// reweigh takes over a changed weight from now on.
func (q *line) reweigh(l *Limiter, f *flow) {
	w := int64(max(1, f.tenant.opt.Weight))
	if w == f.weight {
		return
	}
	f.restart(l, f.tag)
	if f.pos >= 0 {
		q.class[f.class].weight += w - f.weight
	}
	f.weight = w
}

// rest puts f, which has no lane now, in the ring of idle ones.
func (q *line) rest(f *flow) {
	if q.idle == nil {
		f.prev, f.next = f, f
	} else {
		f.prev, f.next = q.idle, q.idle.next
		f.prev.next, f.next.prev = f, f
	}
	q.idle = f
}

func (q *line) rouse(f *flow) {
	f.prev.next, f.next.prev = f.next, f.prev
	if q.idle == f {
		q.idle = f.prev
	}
	if q.idle == f {
		q.idle = nil
	}
	f.prev, f.next = nil, nil
}

// sweep forgets idle flows that the virtual time has passed. It looks at two for
// each that comes, so their number stays in proportion without any scan.
func (q *line) sweep(l *Limiter) {
	for range 2 {
		if q.idle == nil {
			return
		}
		f := q.idle.next
		q.idle = f // the next one is looked at next time
		if q.passed(f) {
			q.rouse(f)
			delete(q.flows, f.flowKey)
			if q.recent == f {
				q.recent = nil
			}
			l.dropFlow(f)
		}
	}
}

// passed reports whether f waits for nothing and the virtual time has passed it:
// then dropping f changes nothing.
func (q *line) passed(f *flow) bool { return f.pos < 0 && f.tag.less(q.class[f.class].v) }

// enter puts k in q.
func (q *line) enter(l *Limiter, k *lane) {
	f := q.flowOf(l, flowKey{k.tenant, k.class})
	t := &q.class[k.class]
	k.in, k.flow = q, f
	f.lanes.push(k)
	if f.pos < 0 {
		q.rouse(f)
		t.flows.push(f)
		t.weight += f.weight
		if k.class == Interactive && len(t.flows) == 1 && q.owed < 0 {
			// What Batch got while nobody else waited is not held against it.
			l.open.seq++
			q.owed, q.mixed = 0, l.open.seq
		}
	} else {
		t.flows.fix(f)
	}
	q.n++
	q.count(k, k.likely)
}

// count notes that what the lanes of k's flow are expected to cost grew by c.
func (q *line) count(k *lane, c Cost) {
	k.flow.likely = k.flow.likely.plus(c)
	t := &q.class[k.class]
	t.likely = t.likely.plus(c)
}

// leave takes k out of q.
func (q *line) leave(l *Limiter, k *lane) {
	f := k.flow
	t := &q.class[k.class]
	q.count(k, Cost{}.minus(k.likely))
	f.lanes.remove(k)
	if len(f.lanes) == 0 {
		t.flows.remove(f)
		t.weight -= f.weight
		q.rest(f)
		if k.class == Batch && len(t.flows) == 0 {
			q.owed = min(q.owed, 0) // a class that does not wait is owed nothing
		}
	} else {
		t.flows.fix(f)
	}
	k.in, k.flow = nil, nil
	q.n--
	if q.n == 0 {
		q.reset(l)
	}
}

// moved puts k, whose head is another one, where it belongs in q.
func (q *line) moved(k *lane) {
	k.flow.lanes.fix(k)
	q.class[k.class].flows.fix(k.flow)
}

// reset forgets all flows: where nobody waits, nobody is behind.
func (q *line) reset(l *Limiter) {
	const few = 16
	if len(q.flows) > few {
		q.flows = nil // the collector takes them, not those who hold the lock
	}
	for _, f := range q.flows {
		f.prev, f.next = nil, nil
		l.dropFlow(f)
	}
	clear(q.flows)
	q.recent, q.idle, q.owed = nil, nil, 0
	for c := range q.class {
		q.class[c].v = wide{}
	}
}

// charge notes that f was granted c units of what q is about, while others wait
// for it.
func (q *line) charge(l *Limiter, f *flow, c int64) {
	t := &q.class[f.class]
	if t.v.less(f.tag) {
		t.v = f.tag
	}
	q.serve(l, f, c)
	switch {
	case f.class == Batch:
		q.owe(-c * (100 - q.floor))
	case len(q.class[Batch].flows) > 0:
		q.owe(c * q.floor)
	}
}

// settle notes that d units of what key was granted under seq came back, or,
// where negative, were taken on top.
func (q *line) settle(l *Limiter, key flowKey, seq uint64, d int64) {
	if seq >= q.mixed {
		switch {
		case key.class == Batch:
			q.owe(d * (100 - q.floor))
		case len(q.class[Batch].flows) > 0:
			q.owe(-d * q.floor)
		}
		if len(q.class[Batch].flows) == 0 {
			q.owed = min(q.owed, 0)
		}
	}
	f := q.find(key)
	if f == nil || q.passed(f) {
		return
	}
	if q.reweigh(l, f); f.born <= seq {
		q.serve(l, f, -d)
	}
}

// serve moves the tag of f by c units.
func (q *line) serve(l *Limiter, f *flow, c int64) {
	const most = 1 << 62
	if f.served > most || f.served < -most {
		f.restart(l, f.tag)
	}
	f.served += c
	f.retag()
	if f.pos >= 0 {
		q.class[f.class].flows.fix(f)
	}
}

// owe adds hundredths of units to owed. It saturates, at 46,000 times the
// largest cost.
func (q *line) owe(d int64) {
	const most = 1 << 62
	q.owed = max(-most, min(q.owed+d, most))
}

package redislimit

import (
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// An entry is an open reservation, or a free place for one.
type entry struct {
	seq   uint32 // 0: free
	index uint32
	id    int64 // the ask it was given for
	cost  limit.Cost
	spend limit.Spend
	path  *path
	epoch int64             // limits that came later did not charge it
	taken int64             // the store's instant of its admission
	probe bool              // it goes while its scope is paused
	over  bool              // end books have counted its end: with the share, or the member
	local limit.Reservation // of the share, while the store is away
	away  *away             // not nil if it is the share's

	sent  int64  // the store's instant, 0: not sent
	left  int64  // when the attempt left: sent, unless Made moved that
	made  bool   // the attempt is charged in full by sent
	marks []mark // of each scope of the path, then
	young bool   // sent less than 250 ms ago
}

// A table keeps open reservations in reused entries. A handle is the place and
// how often it was given.
type table struct {
	entries []*entry
	free    []uint32
	n       int
	seq     uint32
}

func (t *table) put() *entry {
	if len(t.free) == 0 {
		t.entries = append(t.entries, &entry{index: uint32(len(t.entries))})
		t.free = append(t.free, uint32(len(t.entries)-1))
	}
	e := t.entries[t.free[len(t.free)-1]]
	t.free = t.free[:len(t.free)-1]
	t.n++
	if t.seq++; t.seq == 0 {
		t.seq = 1
	}
	*e = entry{seq: t.seq, index: e.index, marks: e.marks[:0]}
	return e
}

func (t *table) drop(e *entry) {
	e.seq, e.path, e.away, e.local = 0, nil, nil, limit.Reservation{}
	t.free = append(t.free, e.index)
	t.n--
}

func (t *table) get(handle uint64) *entry {
	i := int(uint32(handle))
	if i >= len(t.entries) || t.entries[i].seq != uint32(handle>>32) || t.entries[i].seq == 0 {
		return nil
	}
	return t.entries[i]
}

func (t *table) all() []*entry {
	var open []*entry
	for _, e := range t.entries {
		if e.seq != 0 {
			open = append(open, e)
		}
	}
	return open
}

func (e *entry) handle() uint64 { return uint64(e.seq)<<32 | uint64(e.index) }

// An end is what the reservations of one path that ended come to. Reservations
// older than a change of limits are counted apart: a limit does not give back
// what it never charged.
type end struct {
	places  int64
	refund  limit.Cost
	held    limit.Cost  // what was reserved till then, where end books must know it
	unspent limit.Spend // less than was reserved of the allowances

	// Of one reservation that cost more than it held, after a reading: of its entry.
	left, sent int64
	made       bool
}

// Sums stop at mostSum either way. No level and no allowance reaches so far, so what is
// beyond changes none.
const mostSum = 1 << 61

// A call carries at most mostRefund of each sum, so that the script's own sums stay
// below 2^53. What is more goes with the next call.
const mostRefund = 1 << 50

// never is the instant of a note that was not made, after all others.
const never = 1 << 52

func sum(a, b int64) int64 { return max(-mostSum, min(a+b, mostSum)) }

// add notes more that came back.
func (x *end) add(more end) {
	x.places += more.places
	c, d := &x.refund, more.refund
	c.Requests, c.Input, c.Output = sum(c.Requests, d.Requests), sum(c.Input, d.Input), sum(c.Output, d.Output)
	x.held = plus(x.held, more.held)
	if more.left > 0 {
		x.left, x.sent, x.made = more.left, more.sent, more.made
	}
	p, q := &x.unspent, more.unspent
	p.Tokens, p.Money = sum(p.Tokens, q.Tokens), sum(p.Money, q.Money)
}

// piece takes out of x what one call may carry. Pieces of one sum have one sign, and
// those of two sums are taken alike. So where a level stops at its burst or its floor,
// it stops as for all of x.
func (x *end) piece() end {
	part := func(n *int64) int64 {
		p := max(-mostRefund, min(*n, mostRefund))
		*n -= p
		return p
	}
	p := end{places: x.places, held: x.held, left: x.left, sent: x.sent, made: x.made}
	p.refund = limit.Cost{Requests: part(&x.refund.Requests), Input: part(&x.refund.Input), Output: part(&x.refund.Output)}
	p.unspent = limit.Spend{Tokens: part(&x.unspent.Tokens), Money: part(&x.unspent.Money)}
	x.places, x.held, x.left, x.sent, x.made = 0, limit.Cost{}, 0, 0, false
	return p
}

type endKey struct {
	path  *path
	epoch int64
	taken int64 // the instant of admission, where a window or an allowance must know it; else 0, which charges an allowance now
	id    int64 // of the one reservation, where the store must know it; else 0
	ends  bool  // what they held goes with them, for the units of open reservations
}

// keyOf is the key of what comes back of e.
func (l *Limiter) keyOf(e *entry) endKey {
	key := endKey{path: e.path, epoch: e.epoch}
	if e.path.windowed(l.storeNow()) {
		key.taken, key.ends = e.taken, true
	}
	if e.path.endings() {
		key.id = e.id
	}
	return key
}

type cancel struct {
	path   *path
	id     int64
	seq    int64
	likely limit.Cost
}

// entry enters what the store has granted.
func (l *Limiter) entry(id int64, p *path, cost limit.Cost, spend limit.Spend, epoch, taken int64, probe bool) *entry {
	e := l.entries.put()
	e.id, e.cost, e.spend, e.path, e.epoch, e.taken, e.probe = id, cost, spend, p, epoch, taken, probe
	return e
}

// finish ends an entry with what comes back, which is negative where the call cost or
// spent more. The path's reference goes on to the end.
func (l *Limiter) finish(e *entry, refund limit.Cost, unspent limit.Spend) {
	if e.away != nil {
		e.away.spent(e.path, cost(e.cost, refund), less(e.spend, unspent))
		l.drop(e.path)
		l.entries.drop(e)
		return
	}
	key, x := l.keyOf(e), end{places: 1, refund: refund, unspent: unspent}
	if key.ends && !e.over {
		x.held = e.cost
	}
	if min(refund.Input, refund.Output) < 0 && e.path.heard() {
		key.id, x.left, x.sent, x.made = e.id, e.left, e.sent, e.made
		if e.sent == 0 {
			x.left, x.sent = never, never // readings of others have its input all the same
		}
	}
	if key.taken == 0 && unspent != (limit.Spend{}) {
		key.taken = e.taken - e.taken%spendGrain
	}
	l.addEnd(key, x)
	l.drop(e.path)
	l.entries.drop(e)
}

func cost(c, less limit.Cost) limit.Cost {
	return limit.Cost{Requests: c.Requests - less.Requests, Input: c.Input - less.Input, Output: c.Output - less.Output}
}

func plus(c, more limit.Cost) limit.Cost {
	return limit.Cost{Requests: c.Requests + more.Requests, Input: c.Input + more.Input, Output: c.Output + more.Output}
}

// addEnd notes an end, to leave with the next call, or at the latest after
// SettleWithin; at once while somebody waits.
func (l *Limiter) addEnd(key endKey, more end) {
	x := l.ends[key]
	if x == nil {
		x = &end{}
		l.ends[key] = x
		key.path.refs++
	}
	x.add(more)
	switch {
	case l.waiting > 0 || len(l.line) > 0 || len(l.pending) > 0:
		if !l.urgent {
			l.urgent = true
			l.wake()
		}
	case l.endsDue.IsZero():
		l.endsDue = time.Now().Add(l.o.SettleWithin)
		l.wake()
	}
}

// giveBack returns an entry whose caller is gone, or who never sent.
func (l *Limiter) giveBack(e *entry) {
	if e.probe {
		l.probed(e, 3)
	}
	l.finish(e, e.cost, e.spend)
}

// probed tells the store how a probe ended.
func (l *Limiter) probed(e *entry, how int64) {
	e.path.refs++
	l.control(&control{kind: ctlProbe, path: e.path, nums: []int64{e.id, how}})
}

func clamp(v int64) int64 { return max(0, min(v, limit.MaxUnits)) }

// Settle ends the reservation of handle: see [limit.Reservation.Settle].
func (l *Limiter) Settle(handle uint64, actual limit.Cost) { l.settle(handle, actual, nil) }

// settle ends a reservation. A nil spent is as reserved.
func (l *Limiter) settle(handle uint64, actual limit.Cost, spent *limit.Spend) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries.get(handle)
	if e == nil {
		return
	}
	var unspent limit.Spend
	if spent != nil {
		unspent = less(e.spend, *spent)
	}
	if e.away != nil {
		e.local.SettleSpent(actual, less(e.spend, unspent))
	}
	if e.probe {
		l.probed(e, 1)
	}
	l.finish(e, limit.Cost{Input: e.cost.Input - clamp(actual.Input), Output: e.cost.Output - clamp(actual.Output)}, unspent)
}

// Keep ends the reservation of handle: see [limit.Reservation.Keep].
func (l *Limiter) Keep(handle uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries.get(handle); e != nil {
		l.keep(e)
	}
}

func (l *Limiter) keep(e *entry) {
	if e.probe {
		l.probed(e, 2)
	}
	if e.away != nil {
		e.local.Keep()
	}
	l.finish(e, limit.Cost{}, limit.Spend{})
}

// Return ends the reservation of handle: see [limit.Reservation.Return].
func (l *Limiter) Return(handle uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries.get(handle); e != nil {
		if e.away != nil {
			e.local.Return()
		}
		l.giveBack(e)
	}
}

// Cost is what is reserved under handle; zero after the end.
func (l *Limiter) Cost(handle uint64) limit.Cost {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries.get(handle); e != nil {
		return e.cost
	}
	return limit.Cost{}
}

// Sent notes that an attempt leaves now: see [limit.Reservation.Sent].
func (l *Limiter) Sent(handle uint64) { l.mark(handle, false) }

// Made notes that all of the attempt is charged by now: see [limit.Reservation.Made].
func (l *Limiter) Made(handle uint64) { l.mark(handle, true) }

func (l *Limiter) mark(handle uint64, made bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries.get(handle)
	if e == nil {
		return
	}
	now := l.storeNow()
	if !made || e.sent == 0 {
		e.left = now
	}
	e.sent, e.made = now, made
	e.marks = e.marks[:0]
	for _, s := range e.path.all {
		e.marks = append(e.marks, mark{s.sums, s.trail.at(e.sent - settleTime)})
	}
	l.young.push(e)
}

// storeNow is the store's instant, at most a round trip early.
func (l *Limiter) storeNow() int64 {
	if l.lastAt.IsZero() {
		return 0
	}
	return l.lastSrv + int64(time.Since(l.lastAt)/time.Microsecond)
}

// local is an instant of the store, by the clock of this process.
func (l *Limiter) local(us int64) time.Time {
	return l.lastAt.Add(time.Duration(us-l.lastSrv) * time.Microsecond)
}

// young lists what was sent less than 250 ms ago: debits of that time may be in
// the reading already that the answer brings, and are not counted again.
type young struct{ list []youngEntry }

type youngEntry struct {
	e   *entry
	seq uint32
	at  int64
}

const settleTime = 250_000 // microseconds

func (y *young) push(e *entry) {
	e.young = true
	y.list = append(y.list, youngEntry{e, e.seq, e.sent})
}

// settle fixes the debits of those that are old enough by the instant now. It runs
// before the sums of that instant are taken over.
func (y *young) settle(now int64) {
	n := 0
	for _, x := range y.list {
		if now-x.at <= settleTime {
			break
		}
		n++
		if x.e.seq == x.seq && x.e.sent == x.at {
			for i, s := range x.e.path.all {
				x.e.marks[i].sums.debits = s.sums.debits
			}
			x.e.young = false
		}
	}
	y.list = y.list[n:]
	if len(y.list) == 0 {
		y.list = nil
	}
}

// Lower lowers a limit by what the other side had left: see
// [limit.Reservation.LowerIn]. It waits for the store, one round trip, bounded by
// the Timeout.
func (l *Limiter) Lower(handle uint64, scope, name string, remaining int64, own limit.Cost) bool {
	l.mu.Lock()
	e := l.entries.get(handle)
	if e == nil || e.sent == 0 {
		l.mu.Unlock()
		return false
	}
	at := -1
	for i, s := range e.path.all {
		if s.name == scope {
			at = i
		}
	}
	if at < 0 {
		l.mu.Unlock()
		return false
	}
	if e.away != nil {
		r := e.local
		l.mu.Unlock()
		return r.Lower(name, remaining, own)
	}
	m, s := e.marks[at].sums, e.path.all[at]
	before := e.marks[at].before
	if e.taken >= e.sent-settleTime { // its own charge is not what others may have sent
		for k, n := range [...]int64{e.cost.Requests, e.cost.Input, e.cost.Output} {
			before[k] = (before[k] + n) % wrap
		}
	}
	var unit limit.Unit
	for _, k := range s.limits {
		if k.Name == name {
			unit = k.Unit
		}
	}
	held := [...]int64{clamp(own.Requests), clamp(own.Input), clamp(own.Output), clamp(own.Input) + clamp(own.Output)}[unit&3]
	remaining = max(-limit.MaxUnits, min(remaining, limit.MaxUnits)) - held
	c := &control{kind: ctlLower, scope: s, name: name, done: make(chan struct{}), nums: []int64{
		remaining, e.sent, bit(held != 0), bit(e.young),
		m.debits[0], m.debits[1], m.debits[2], m.refunds[0], m.refunds[1], m.refunds[2],
		before[0], before[1], before[2],
		max(1, m.owed), e.id,
	}}
	l.control(c)
	l.mu.Unlock()
	return l.answer(c)
}

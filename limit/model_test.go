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

// A model is a limiter without cleverness: lists, rational numbers, and an
// event at a time. The random programs below drive it and a Limiter side by
// side in fake time and compare everything after every step.
type model struct {
	limits      []*modelLimit
	maxInFlight int
	maxQueue    int
	maxWait     int64
	inFlight    int
	pausedUntil int64
	now         int64
	age         int // counts grants and new limits
	first, line []*modelTicket
	open        []*modelReservation
	debits      []modelEvent
	refunds     []modelEvent
}

type modelLimit struct {
	*oracle
	cfg  Limit
	born int
	held int64    // until then it is set back
	took *big.Rat // so far
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

// setBack lowers x to what is to be n units, d after now.
func (x *modelLimit) setBack(now, n, d int64) {
	then := new(big.Rat).Mul(x.perNano, units(d))
	then.Sub(units(n), then)
	if then.Cmp(x.level) < 0 {
		real := x.real(now)
		x.oracle.lower(then)
		x.held, x.took = later(now, d), real.Sub(real, x.level)
	}
}

// lower is what the other side says: what was set back beyond it is not real.
func (x *modelLimit) lower(to *big.Rat) {
	beyond := new(big.Rat).Sub(to, x.level)
	if beyond.Sign() < 0 {
		beyond.SetInt64(0)
	}
	if beyond.Cmp(x.took) < 0 {
		x.took = beyond
	}
	x.oracle.lower(to)
}

// change changes the rate: what it was set back to be at an instant, it will be,
// but for credit, which is not raised, and debt from elsewhere, which stays.
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

type modelTicket struct {
	ticket  *Ticket
	cost    Cost
	slot    bool
	expires int64
	// outcome
	decided bool
	reason  error
	res     *modelReservation
}

type modelReservation struct {
	cost   Cost
	age    int
	real   Reservation
	ticket *Ticket // where real comes from, if it is not here yet
	sent   bool
	sentAt int64
	sentF  int // refunds before it was sent
}

type modelEvent struct {
	at   int64
	cost Cost
}

// count is what a unit makes of a cost, written out again.
func count(u Unit, c Cost) int64 {
	return map[Unit]int64{Requests: c.Requests, Input: c.Input, Output: c.Output, Tokens: c.Input + c.Output}[u]
}

func (m *model) newLimit(cfg Limit) *modelLimit {
	if cfg.Name == "" {
		cfg.Name = fmt.Sprintf("%v/%v", cfg.Unit, cfg.Rate.Window)
	}
	burst, largest := cfg.sizes()
	x := &modelLimit{newOracle(cfg.Rate, burst, largest), cfg, m.age, 0, new(big.Rat)}
	x.at = m.now
	if cfg.Empty {
		x.level = new(big.Rat)
	}
	return x
}

// possible is nil, or why cost can never go.
func (m *model) possible(c Cost) error {
	if c.Requests < 0 || c.Input < 0 || c.Output < 0 {
		return ErrInvalid
	}
	for _, x := range m.limits {
		if count(x.cfg.Unit, c) > x.largest {
			return ErrTooLarge
		}
	}
	return nil
}

// creditAt is the instant at which credit and pause let c go, under no other
// use; the oracles stand at m.now.
func (m *model) creditAt(c Cost) int64 {
	at := max(m.now, m.pausedUntil)
	for _, x := range m.limits {
		at = max(at, later(m.now, x.wait(count(x.cfg.Unit, c))))
	}
	return at
}

// turn is the instant at which c goes if nothing else happens.
func (m *model) turn(c Cost, slot bool) int64 {
	if slot && m.maxInFlight > 0 && m.inFlight >= m.maxInFlight {
		return math.MaxInt64
	}
	return m.creditAt(c)
}

func (m *model) grant(c Cost, slot bool) *modelReservation {
	for _, x := range m.limits {
		x.add(-count(x.cfg.Unit, c))
	}
	m.debits = append(m.debits, modelEvent{m.now, c})
	m.age++
	r := &modelReservation{cost: c, age: m.age}
	if slot {
		m.inFlight++
		m.open = append(m.open, r)
	}
	return r
}

// correct gives back diff, or charges it where negative.
func (m *model) correct(diff Cost, age int) {
	m.refunds = append(m.refunds, modelEvent{m.now, diff})
	for _, x := range m.limits {
		if x.born <= age {
			x.add(count(x.cfg.Unit, diff))
		}
	}
}

func (m *model) end(r *modelReservation) {
	m.inFlight--
	m.open = slices.DeleteFunc(m.open, func(o *modelReservation) bool { return o == r })
}

// next is the instant of the next thing to happen by itself, and does it if it
// is due.
func (m *model) next(do bool) int64 {
	var head *modelTicket
	switch {
	case len(m.first) > 0:
		head = m.first[0]
	case len(m.line) > 0:
		head = m.line[0]
	default:
		return math.MaxInt64
	}
	at := m.turn(head.cost, head.slot)
	if do && at <= m.now {
		m.leave(head)
		head.res = m.grant(head.cost, head.slot)
		head.res.ticket = head.ticket
		return at
	}
	for _, t := range append(slices.Clone(m.first), m.line...) {
		if do && t.expires <= m.now {
			m.leave(t)
			t.reason = ErrWaitTooLong
			return t.expires
		}
		at = min(at, t.expires)
	}
	return at
}

func (m *model) leave(t *modelTicket) {
	is := func(o *modelTicket) bool { return o == t }
	m.first, m.line = slices.DeleteFunc(m.first, is), slices.DeleteFunc(m.line, is)
	t.decided = true
}

// advance plays everything up to an instant.
func (m *model) advance(to int64) {
	for {
		at := m.next(false)
		if at > to {
			break
		}
		m.move(max(at, m.now))
		m.next(true)
	}
	m.move(to)
}

func (m *model) move(to int64) {
	m.now = to
	for _, x := range m.limits {
		x.advance(to)
	}
}

// trial is a limiter and its model.
type trial struct {
	t     *testing.T
	m     *model
	l     *Limiter
	start time.Time
	all   []*modelTicket // undecided and just decided
	ended []Reservation  // may be ended again at any time, to no effect
	log   []string
}

func (x *trial) logf(f string, a ...any) {
	x.log = append(x.log, fmt.Sprintf("%d: ", x.m.now)+fmt.Sprintf(f, a...))
	if len(x.log) > 40 {
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

func newTrial(t *testing.T, s source) *trial {
	o := Options{}
	for i := range upTo(s, 4) {
		o.Limits = append(o.Limits, randomLimit(s, int(i)))
	}
	if upTo(s, 2) == 0 {
		o.MaxInFlight = 1 + int(upTo(s, 5))
	}
	if upTo(s, 3) == 0 {
		o.MaxQueue = 1 + int(upTo(s, 6))
	}
	if upTo(s, 3) == 0 {
		o.MaxWait = 1 + time.Duration(spread(s, int64(time.Hour)))
	}
	x := &trial{t: t, l: mustNew(t, o), start: time.Now(), m: &model{
		maxInFlight: o.MaxInFlight, maxQueue: o.MaxQueue, maxWait: int64(o.MaxWait),
	}}
	for _, lim := range o.Limits {
		x.m.limits = append(x.m.limits, x.m.newLimit(lim))
	}
	x.logf("%+v", o)
	return x
}

// cost is one that fits all limits, most of the time.
func (x *trial) cost(s source) Cost {
	room := map[Unit]int64{Requests: 50, Input: 500, Output: 500, Tokens: 1000}
	for _, lim := range x.m.limits {
		room[lim.cfg.Unit] = min(room[lim.cfg.Unit], lim.largest)
	}
	in := min(room[Input], room[Tokens])
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

func (x *trial) join(s source) {
	where, list := &x.l.line, &x.m.line
	if upTo(s, 6) == 0 {
		where, list = &x.l.first, &x.m.first
	}
	c, slot := x.cost(s), upTo(s, 5) > 0
	var deadline time.Time
	if upTo(s, 4) == 0 {
		deadline = time.Now().Add(time.Duration(spread(s, int64(time.Minute))))
	}
	m := x.m
	var want error
	exact := true // the wait is known, not only bounded
	bounded := m.maxWait > 0 || !deadline.IsZero()
	switch {
	case m.possible(c) != nil:
		want = m.possible(c)
	case where == &x.l.line && m.maxQueue > 0 && len(m.line) >= m.maxQueue:
		want = ErrQueueFull
	case len(m.first) == 0 && (len(m.line) == 0 || where == &x.l.first):
		wait := m.creditAt(c) - m.now
		if m.maxWait > 0 && wait > m.maxWait || !deadline.IsZero() && time.Duration(wait) > max(0, time.Until(deadline)) && wait > 0 {
			want = ErrWaitTooLong
		}
	case bounded:
		exact = false
	}
	x.l.mu.Lock()
	ticket, err := x.l.join(c.bounded(), slot, deadline, where)
	x.l.mu.Unlock()
	x.logf("join %v slot %v first %v deadline %v: %v", c, slot, where == &x.l.first, deadline, err)
	if exact {
		x.expect("join", err, want)
	} else if err != nil {
		x.expect("join behind others", err, ErrWaitTooLong)
	}
	if err != nil {
		return
	}
	t := &modelTicket{ticket: ticket, cost: c, slot: slot, expires: math.MaxInt64}
	if m.maxWait > 0 {
		t.expires = later(m.now, m.maxWait)
	}
	*list = append(*list, t)
	x.all = append(x.all, t)
}

func (x *trial) try(s source) {
	c, slot := x.cost(s), upTo(s, 3) > 0
	m := x.m
	want := m.possible(c)
	if want == nil && (len(m.first)+len(m.line) > 0 || m.turn(c, slot) > m.now) {
		want = ErrLimited
	}
	if !slot {
		if ok := x.l.Allow(c); ok != (want == nil) {
			x.fatalf("allow %v: %v, want %v", c, ok, want)
		}
		if want == nil {
			m.grant(c, false)
		}
		x.logf("allow %v: %v", c, want)
		return
	}
	r, err := x.l.TryAcquire(c)
	x.logf("try %v: %v", c, err)
	x.expect("try", err, want)
	if err == nil {
		m.grant(c, true).real = r
		return
	}
	var e *Error
	if !errors.As(err, &e) {
		x.fatalf("%T is no *Error", err)
	}
	if want == ErrLimited && len(m.first)+len(m.line) == 0 && m.turn(c, true) < math.MaxInt64 {
		if wait := m.creditAt(c) - m.now; int64(e.Wait) != wait || !e.Earliest.Equal(time.Now().Add(e.Wait)) {
			x.fatalf("try %v: wait %d, earliest %v; want %d", c, e.Wait, e.Earliest, wait)
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
	switch op := upTo(s, 24); {
	case op < 7:
		x.join(s)
	case op < 10:
		x.try(s)
	case op < 14 && r != nil:
		x.ended = append(x.ended, r.real)
		switch upTo(s, 3) {
		case 0:
			c := x.cost(s)
			x.logf("settle %v: %v", r.cost, c)
			r.real.Settle(c)
			m.end(r)
			m.correct(Cost{0, r.cost.Input - max(0, min(c.Input, MaxUnits)), r.cost.Output - max(0, min(c.Output, MaxUnits))}, r.age)
		case 1:
			x.logf("return %v", r.cost)
			r.real.Return()
			m.end(r)
			m.correct(r.cost, r.age)
		case 2:
			x.logf("keep %v", r.cost)
			r.real.Keep()
			m.end(r)
		}
	case op == 15:
		if t := x.waiting(s); t != nil {
			x.logf("cancel %v", t.cost)
			t.ticket.Cancel()
			m.leave(t)
			t.reason = ErrCanceled
		}
	case op == 16:
		d := time.Duration(spread(s, int64(time.Minute))) - time.Millisecond
		x.logf("pause %v", d)
		x.l.Pause(d)
		if until := later(m.now, max(0, int64(d))); d > 0 && until > m.pausedUntil {
			m.pausedUntil = until
			for _, lim := range m.limits {
				if lim.rate.Window <= time.Minute {
					n := int64(0)
					if lim.cfg.Unit == Requests {
						n = 1
					}
					lim.setBack(m.now, n, int64(d))
				}
			}
		}
	case op == 17:
		x.setLimit(s)
	case op >= 20 && r != nil:
		if upTo(s, 2) == 0 || !r.sent {
			x.logf("sent %v", r.cost)
			r.real.Sent()
			r.sent, r.sentAt, r.sentF = true, m.now, len(m.refunds)
		} else {
			x.lower(s, r)
		}
	case op == 18 && len(m.limits) > 0:
		lim, d := pick(s, m.limits), time.Duration(spread(s, int64(time.Minute)))-time.Millisecond
		keep := spread(s, lim.cfg.Rate.N) - 1
		x.logf("drain %s to %d in %v", lim.cfg.Name, keep, d)
		x.l.Drain(lim.cfg.Name, keep, d)
		lim.setBack(m.now, max(0, keep), max(0, int64(d)))
	}
	for _, old := range x.ended[max(0, len(x.ended)-3):] { // to no effect
		old.Settle(Cost{})
		old.Return()
		old.Keep()
		old.Sent()
		old.Lower("a", -5, Cost{})
	}
}

func (x *trial) lower(s source, r *modelReservation) {
	m := x.m
	if len(m.limits) == 0 {
		return
	}
	lim, remaining := pick(s, m.limits), spread(s, 2000)-100
	var own Cost
	if upTo(s, 3) == 0 {
		own = r.cost
	}
	u := lim.cfg.Unit
	bound := new(big.Rat).Mul(lim.perNano, units(m.now-r.sentAt))
	bound.Add(bound, units(remaining-count(u, own)))
	for _, e := range m.debits {
		if e.at > r.sentAt+int64(250*time.Millisecond) {
			bound.Sub(bound, units(count(u, e.cost)))
		}
	}
	for _, e := range m.refunds[r.sentF:] {
		bound.Add(bound, units(count(u, e.cost)))
	}
	fell := bound.Cmp(lim.level) < 0
	x.logf("lower %s to %d own %v (bound %s)", lim.cfg.Name, remaining, own, bound.FloatString(3))
	if got := r.real.Lower(lim.cfg.Name, remaining, own); got != fell {
		x.fatalf("lower: %v, want %v", got, fell)
	}
	lim.lower(bound)
}

func (x *trial) setLimit(s source) {
	m := x.m
	if upTo(s, 4) == 0 {
		m.maxInFlight = int(upTo(s, 6))
		x.logf("max in flight %d", m.maxInFlight)
		x.l.SetMaxInFlight(m.maxInFlight)
		return
	}
	lim := randomLimit(s, int(upTo(s, 4)))
	i := slices.IndexFunc(m.limits, func(o *modelLimit) bool { return o.cfg.Name == lim.Name })
	if i >= 0 && upTo(s, 3) > 0 { // a change of rate alone, most often
		cfg := m.limits[i].cfg
		cfg.Rate = lim.Rate
		lim = cfg
	}
	if upTo(s, 8) == 0 {
		lim = Limit{Name: lim.Name}
	}
	x.logf("set %+v", lim)
	if err := x.l.SetLimit(lim); err != nil {
		x.fatalf("set: %v", err)
	}
	m.age++
	switch {
	case lim.Rate == (Rate{}):
		if i >= 0 {
			m.limits = slices.Delete(m.limits, i, i+1)
		}
	case i < 0:
		m.limits = append(m.limits, m.newLimit(lim))
	default:
		old := m.limits[i]
		burst, largest := lim.sizes()
		old.change(m.now, lim.Rate, burst, largest)
		if old.cfg.Unit != lim.Unit {
			old.born = m.age
		}
		old.cfg = lim
	}
	for _, t := range append(slices.Clone(m.first), m.line...) {
		if m.possible(t.cost) != nil {
			m.leave(t)
			t.reason = ErrTooLarge
		}
	}
}

func (x *trial) waiting(s source) *modelTicket {
	all := append(slices.Clone(x.m.first), x.m.line...)
	if len(all) == 0 {
		return nil
	}
	return pick(s, all)
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
				x.fatalf("%v went early", t.cost)
			}
			r, err := t.ticket.Take()
			x.expect("turn", err, t.reason)
			if t.res != nil {
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
	if snap.InFlight != m.inFlight || snap.Waiting != len(m.first)+len(m.line) || len(snap.Limits) != len(m.limits) {
		x.fatalf("%+v; want %d in flight, %d waiting", snap, m.inFlight, len(m.first)+len(m.line))
	}
	if paused := m.pausedUntil > m.now; paused == snap.PausedUntil.IsZero() || paused && !snap.PausedUntil.Equal(x.start.Add(time.Duration(m.pausedUntil))) {
		x.fatalf("paused until %v, want %d", snap.PausedUntil, m.pausedUntil)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, lim := range m.limits {
		var ahead int64
		for _, t := range append(slices.Clone(m.first), m.line...) {
			ahead += count(lim.cfg.Unit, t.cost)
		}
		got, b := snap.Limits[i], l.find(lim.cfg.Name)
		if b == nil || !lim.levelIs(&b.Bucket) || got.Credit-got.Debt != lim.credit() || got.Waiting != ahead {
			x.fatalf("limit %+v: want level %s, %d waiting", got, lim.level.FloatString(9), ahead)
		}
	}
}

// pass lets time go by: often to just before the next event, and then to it.
func (x *trial) pass(s source) {
	d := int64(0)
	next := x.m.next(false)
	switch {
	case next < math.MaxInt64 && upTo(s, 2) == 0:
		d = next - x.m.now - 1 + upTo(s, 3)
	case len(x.m.open) > 0 && upTo(s, 3) == 0: // to where a mark settles
		d = pick(s, x.m.open).sentAt + int64(250*time.Millisecond) - x.m.now - 1 + upTo(s, 3)
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
		t.ticket.Cancel()
	}
	for _, r := range slices.Clone(x.m.open) {
		r.real.Return()
	}
	synctest.Wait()
	empty(x.t, x.l)
}

// A whole Limiter against the model: line, gate, pauses, lowering, changes of
// limits, all at random, everything compared after every step.
func TestOracleLimiter(t *testing.T) {
	s := newSeeded(*seedFlag)
	for done := 0; done < orQuick(*opsFlag, 60_000); done += 100 {
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

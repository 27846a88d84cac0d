package redislimit

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A Limiter is a [limit.Ledger] whose state lies in Redis or Valkey, shared by
// every process that names the same budget. It keeps one goroutine, which sends
// one script call at a time for all callers of the process; Close ends it.
//
// The zero Limiter is not usable; call [New]. A Limiter may be used by any number
// of goroutines and must not be copied.
type Limiter struct {
	o      Options
	config string
	ctx    context.Context
	stop   context.CancelFunc
	kick   chan struct{} // something is to be sent
	ended  chan struct{} // the goroutine is gone

	// waiters are used anew. They are of this limiter alone: a channel that is made in a
	// bubble of synctest is of no use in another one.
	waiters sync.Pool

	mu      sync.Mutex // guards all below; never held across a call
	closed  bool
	scopes  map[string]*scope
	paths   map[string]*path
	root    *scope
	key     []byte
	lastID  int64
	lastSrv int64     // the store's instant in the last answer, microseconds
	lastAt  time.Time // and when that came
	entries table
	young   young

	pending  []*waiter // asks that no call has taken yet
	line     map[int64]*waiter
	ends     map[endKey]*end
	endsDue  time.Time // when they must leave; zero: there are none
	urgent   bool      // or at once
	cancels  []cancel
	controls []*control
	pricing  []*path // on which callers in the line have prices to ask for

	// The member as the store knows it.
	pid     string
	number  int64 // of the last call
	hello   bool  // the next call enters the member
	had     bool  // it was a member before
	holds   map[*scope]int64
	rev     int64
	gen     int64
	epoch   int64
	members int
	waiting int64 // in the line, of all members
	due     time.Time
	more    bool
	touched time.Time // the last call
	hears   bool      // the listener is connected

	keys     []string
	serial   int64 // of calls, over all names of this process
	scratch  call
	query    *query
	left     map[int64]asked1 // gave up in the line, and may have been granted
	gap      bool
	gone     bool // the store has heard that this process leaves
	unlisten context.CancelFunc

	away  *away // not nil while the store does not answer
	err   error
	gaps  int
	since time.Time
}

// A waiter is one ask.
type waiter struct {
	id       int64
	order    int64 // of coming
	path     *path
	cost     limit.Cost
	likely   limit.Cost // what it will probably cost
	spend    limit.Spend
	pricer   limit.Pricer // nil: cost stays
	waited   bool         // it stood in the line
	priced   int64        // the last call for which the pricer was asked
	mode     int64
	deadline time.Time // zero: none
	arrived  time.Time
	seq      int64 // place in the line
	state    int8
	done     chan struct{} // one token at the decision

	r      limit.Reservation
	handle uint64 // of r, for who is gone when it comes
	err    error
	again  bool // ask anew: the store went or came
}

const (
	modeNow   = 0
	modeWait  = 1
	modeFirst = 2
	modeAsk   = 3
)

const (
	queued  = iota // in pending
	asked          // in the call under way
	inLine         // in the store's line
	decided        // told, or gone
)

// New returns the limiter of a budget and enters this process as a member. It
// makes one call to the store, bounded by four Timeouts; where that fails, it
// returns why, unless Options.Members says by how many to divide meanwhile.
func New(o Options) (*Limiter, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	l := &Limiter{
		o: o, config: o.fingerprint(),
		kick: make(chan struct{}, 1), ended: make(chan struct{}),
		scopes: map[string]*scope{}, paths: map[string]*path{},
		line: map[int64]*waiter{}, ends: map[endKey]*end{}, holds: map[*scope]int64{},
		left: map[int64]asked1{}, keys: []string{prefix + o.Name + "}:"},
		members: max(1, o.Members), since: time.Now(),
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.root = l.scopeOf("")
	l.root.refs, l.root.pinned = 1, true
	l.root.def = &definition{
		options: limit.ScopeOptions{MaxInFlight: o.MaxInFlight, MaxQueue: o.MaxQueue},
		limits:  o.Limits,
	}
	for _, lim := range o.Limits {
		l.root.limits = append(l.root.limits, known{Limit: lim})
	}
	l.root.open = o.MaxInFlight
	l.enter()
	c := l.build()
	reply, err := l.once(c)
	switch {
	case err == nil:
		if err := l.apply(c, reply); err != nil {
			l.stop()
			return nil, advise(err)
		}
	case o.Members == 0:
		l.stop()
		return nil, advise(err)
	default:
		l.goAway(err, nil)
	}
	go l.loop(c, err != nil)
	return l, nil
}

// once sends c until it is answered, for the Timeout; where nothing else would be
// left, for four of them, since a server may be slow when a program begins.
func (l *Limiter) once(c *call) (string, error) {
	bound := l.o.Timeout
	if l.o.Members == 0 {
		bound *= 4
	}
	answers := make(chan answer, mostSent)
	late := time.NewTimer(bound)
	defer late.Stop()
	for range mostSent {
		l.send(c, answers)
		select {
		case a := <-answers:
			if a.err == nil || !errors.Is(a.err, context.DeadlineExceeded) {
				return a.s, a.err
			}
		case <-late.C:
			return "", fmt.Errorf("no answer within %v: %w", bound, context.DeadlineExceeded)
		}
	}
	return "", fmt.Errorf("no answer within %v: %w", bound, context.DeadlineExceeded)
}

// enter gives the process a new name in the store.
func (l *Limiter) enter() {
	l.pid = rand.Text()[:16]
	l.number, l.hello = 0, true
}

// Close ends the limiter. Open reservations are kept, callers in the line are
// refused with [ErrClosed], and settlements are sent, within the Timeout.
func (l *Limiter) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		<-l.ended
		return nil
	}
	l.closed = true
	for _, e := range l.entries.all() {
		l.keep(e)
	}
	l.urgent = true
	l.mu.Unlock()
	l.wake()
	select {
	case <-l.ended:
	case <-time.After(l.o.Timeout):
		l.stop()
		<-l.ended
	}
	l.stop()
	return nil
}

func (l *Limiter) wake() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// Admit waits until a is admitted. See [limit.Ledger]; besides the errors named
// there it returns an [*AwayError] while the store is away, and [ErrClosed].
func (l *Limiter) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	if ctx.Err() != nil {
		return limit.Reservation{}, &limit.Error{Reason: limit.ErrCanceled, Cause: cause(ctx), Dimension: "line", Cost: 1}
	}
	mode := int64(modeWait)
	if a.First {
		mode = modeFirst
	}
	return l.admit(ctx, a, mode)
}

// TryAdmit admits a now or refuses it. It waits for the answer of the store, one
// round trip, bounded by the Timeout.
func (l *Limiter) TryAdmit(a limit.Ask) (limit.Reservation, error) {
	return l.admit(context.Background(), a, modeNow)
}

// Acquire is Admit of cost in the root scope for the common tenant.
func (l *Limiter) Acquire(ctx context.Context, cost limit.Cost) (limit.Reservation, error) {
	return l.Admit(ctx, limit.Ask{Cost: cost})
}

// TryAcquire is TryAdmit of cost in the root scope for the common tenant.
func (l *Limiter) TryAcquire(cost limit.Cost) (limit.Reservation, error) {
	return l.TryAdmit(limit.Ask{Cost: cost})
}

// bounded keeps a cost within what the script can add up. One above MaxUnits
// stays above it, and every limit refuses it.
func bounded(c limit.Cost) limit.Cost {
	const most = limit.MaxUnits + 1
	return limit.Cost{Requests: min(c.Requests, most), Input: min(c.Input, most), Output: min(c.Output, most)}
}

func sound(c limit.Cost) bool { return c.Requests >= 0 && c.Input >= 0 && c.Output >= 0 }

func (l *Limiter) checkAsk(a *limit.Ask) error {
	c := a.Cost
	if !sound(c) {
		return &limit.Error{Reason: limit.ErrInvalid, Dimension: "cost", Cost: min(c.Requests, c.Input, c.Output)}
	}
	if a.Class > limit.Batch {
		return &limit.ConfigError{Field: "Class", Value: uint8(a.Class), Problem: "is no class"}
	}
	if err := checkScope(a.Tenant); err != nil {
		return err
	}
	for _, s := range a.Scopes {
		if err := checkScope(s); err != nil {
			return err
		}
	}
	return nil
}

func (l *Limiter) admit(ctx context.Context, a limit.Ask, mode int64) (limit.Reservation, error) {
	if err := l.checkAsk(&a); err != nil {
		return limit.Reservation{}, err
	}
	w, _ := l.waiters.Get().(*waiter)
	if w == nil {
		w = &waiter{done: make(chan struct{}, 1)}
	}
	*w = waiter{done: w.done, cost: bounded(a.Cost), spend: boundedSpend(a.Spend), pricer: a.Pricer, mode: mode}
	w.likely = likelyOf(a.Likely, w.cost)
	if mode != modeNow {
		w.arrived = time.Now()
		w.deadline, _ = ctx.Deadline()
		if l.o.MaxWait > 0 {
			if late := w.arrived.Add(l.o.MaxWait); w.deadline.IsZero() || late.Before(w.deadline) {
				w.deadline = late
			}
		}
	}
	for {
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return limit.Reservation{}, ErrClosed
		}
		if away := l.away; away != nil {
			w.path = l.pathOf(&a)
			w.path.refs++
			l.mu.Unlock()
			r, back, err := l.admitAway(ctx, away, w, &a)
			if back {
				w.waited = true
				continue
			}
			return r, err
		}
		l.ask(w, &a)
		l.mu.Unlock()
		l.wake()
		if !l.await(ctx, w) {
			return l.leave(ctx, w)
		}
		if w.again {
			w.again, w.waited = false, true
			continue
		}
		r, err := w.r, w.err
		w.pricer = nil
		l.waiters.Put(w)
		return r, err
	}
}

// await reports whether w was decided before its context or its longest wait.
func (l *Limiter) await(ctx context.Context, w *waiter) bool {
	if w.mode == modeNow {
		<-w.done // bounded: the store answers, or is away
		return true
	}
	if l.o.MaxWait == 0 {
		select {
		case <-w.done:
			return true
		case <-ctx.Done():
			return false
		}
	}
	timer := time.NewTimer(time.Until(w.arrived.Add(l.o.MaxWait)))
	defer timer.Stop()
	select {
	case <-w.done:
		return true
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
}

// ask puts w where the next call will take it.
func (l *Limiter) ask(w *waiter, a *limit.Ask) {
	l.lastID++ // anew each time: what became of an earlier place is known by its number
	w.id = l.lastID
	if w.order == 0 {
		w.order = w.id
	}
	w.path = l.pathOf(a)
	w.path.refs++
	w.state = queued
	l.pending = append(l.pending, w)
}

// leave ends the wait of w. Where grant and cancel meet the cancel wins, and the
// grant is returned; a turn that met its deadline wins.
func (l *Limiter) leave(ctx context.Context, w *waiter) (limit.Reservation, error) {
	cause := cause(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.state == decided {
		<-w.done
		if w.err != nil || w.again && cause == nil {
			return w.r, w.err
		}
		if !w.again {
			if cause == nil || errors.Is(cause, context.DeadlineExceeded) {
				return w.r, nil
			}
			if e := l.entries.get(w.handle); e != nil {
				l.giveBack(e)
			}
		}
	} else {
		l.abandon(w)
	}
	e := &limit.Error{Reason: limit.ErrCanceled, Cause: cause, Dimension: "line", Cost: 1, Waited: time.Since(w.arrived)}
	if cause == nil {
		e.Reason = limit.ErrWaitTooLong
	}
	return limit.Reservation{}, e
}

// cause is why ctx ended, which is both its error and its cause; nil if it has not.
func cause(ctx context.Context) error {
	err, why := ctx.Err(), context.Cause(ctx)
	if err == nil || err == why {
		return err
	}
	return fmt.Errorf("%w (%w)", why, err)
}

// abandon takes w out of wherever it stands.
func (l *Limiter) abandon(w *waiter) {
	switch w.state {
	case queued:
		l.drop(w.path)
	case inLine:
		delete(l.line, w.id)
		l.leaveLine(w)
		defer l.wake()
	}
	w.state = decided // the call under way finds nobody, and gives back
}

// leaveLine has the store take w out of its line. It may have granted already; then
// the grant comes by mail, and is given back. It takes w's use of its path.
func (l *Limiter) leaveLine(w *waiter) {
	l.quit(asked1{w.id, w.path, w.cost, w.likely, w.spend, w.mode}, w.seq)
}

func (l *Limiter) quit(a asked1, seq int64) {
	a.path.refs++
	l.left[a.id] = a
	l.cancels = append(l.cancels, cancel{a.path, a.id, seq, a.likely})
	l.urgent = true
}

// tell decides w. The caller has seen to its path.
func (w *waiter) tell(r limit.Reservation, err error) {
	w.r, w.err, w.state = r, err, decided
	w.done <- struct{}{}
}

// Forecast is what a would have to wait if it came now.
func (l *Limiter) Forecast(a limit.Ask) limit.Forecast {
	_, err := l.admit(context.Background(), a, modeAsk)
	e := (*limit.Error)(nil)
	switch {
	case err == nil:
		return limit.Forecast{Known: true}
	case !errors.As(err, &e):
		return limit.Forecast{Err: err}
	case !errors.Is(err, limit.ErrLimited):
		return limit.Forecast{Err: e, Wait: e.Wait, Known: e.Wait > 0, Scope: e.Scope, Dimension: e.Dimension}
	}
	return limit.Forecast{Wait: e.Wait, Known: e.Wait > 0, Scope: e.Scope, Dimension: e.Dimension, By: e.By, Why: e.Why}
}

// HashKey is the key by which every process that shares the budget hashes credentials:
// [Options.Secret], or one made of its name. See [limit.Keyed].
func (l *Limiter) HashKey() []byte {
	if len(l.o.Secret) > 0 {
		return slices.Clone(l.o.Secret)
	}
	sum := sha256.Sum256([]byte("tripmeter budget " + l.o.Name))
	return sum[:]
}

// State is how the limiter stands to its store.
func (l *Limiter) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state()
}

func (l *Limiter) state() State {
	return State{Away: l.away != nil, Policy: l.o.Away, Since: l.since, Members: l.members, Err: l.err, Gaps: l.gaps}
}

var _ limit.Ledger = (*Limiter)(nil)
var _ limit.Holder = (*Limiter)(nil)
var _ limit.Keyed = (*Limiter)(nil)

func (l *Limiter) String() string { return fmt.Sprintf("redislimit.Limiter(%s)", l.o.Name) }

// GoString is String, for %#v.
func (l *Limiter) GoString() string { return l.String() }

// granted tells w of its reservation.
func (w *waiter) granted(l *Limiter, e *entry) {
	w.handle = e.handle()
	w.tell(limit.Hold(l, w.handle), nil)
}

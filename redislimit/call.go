package redislimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A call is one script call: what this process has to say, in one array. It is
// sent again, byte for byte, until the store has answered: the script knows it by
// its number and decides it once.
type call struct {
	number   int64
	pid      string
	asks     []*waiter // nil: gone meanwhile
	ids      []asked1
	ends     []endKey
	ended    []*end
	cancels  []cancel
	controls []*control
	scopes   []*scope
	paths    []*path
	query    *query
	bye      bool // the last call of this process
	args     [1]string
	w        writer
}

// asked1 is an ask without its caller, who may be gone when the answer comes.
type asked1 struct {
	id     int64
	path   *path
	cost   limit.Cost
	likely limit.Cost
	mode   int64
}

const (
	mostEnds     = 64
	mostCancels  = 64
	mostControls = 16
	steps        = 8 // admissions out of the line, per call
)

func (c *call) scope(s *scope) {
	if s.call != c.number {
		s.call, s.at = c.number, len(c.scopes)+1
		c.scopes = append(c.scopes, s)
	}
}

func (c *call) path(p *path) {
	if p.call != c.number {
		p.call, p.at = c.number, len(c.paths)+1
		c.paths = append(c.paths, p)
		for _, s := range p.all {
			c.scope(s)
		}
	}
}

// build makes a call of everything that waits to leave. It is called with the lock held, or
// before the limiter is known to anybody.
func (l *Limiter) build() *call {
	l.serial++
	l.number++
	c := &l.scratch
	*c = call{number: l.serial, pid: l.pid,
		asks: c.asks[:0], ids: c.ids[:0], ends: c.ends[:0], ended: c.ended[:0], cancels: c.cancels[:0],
		controls: c.controls[:0], scopes: c.scopes[:0], paths: c.paths[:0], w: c.w}
	c.scope(l.root)
	for key, x := range l.ends {
		if len(c.ends) == mostEnds {
			break
		}
		delete(l.ends, key)
		c.path(key.path)
		c.ends = append(c.ends, key)
		c.ended = append(c.ended, x)
	}
	n := min(len(l.cancels), mostCancels)
	c.cancels = append(c.cancels, l.cancels[:n]...)
	l.cancels = append(l.cancels[:0], l.cancels[n:]...)
	for _, x := range c.cancels {
		c.path(x.path)
	}
	n = min(len(l.controls), mostControls)
	c.controls = append(c.controls, l.controls[:n]...)
	l.controls = append(l.controls[:0], l.controls[n:]...)
	for _, x := range c.controls {
		if x.path != nil {
			c.path(x.path)
		} else {
			c.scope(x.scope)
		}
	}
	taken, most := 0, l.o.Batch
	if l.waiting > 0 { // one who joins the line costs some eight times as much
		most = (most + 7) / 8
	}
	for _, w := range l.pending {
		if len(c.asks) == most {
			break
		}
		taken++
		if w.state != queued {
			continue // gave up before it was sent
		}
		w.state = asked
		c.path(w.path)
		c.asks = append(c.asks, w)
		c.ids = append(c.ids, asked1{w.id, w.path, w.cost, w.likely, w.mode})
	}
	rest := copy(l.pending, l.pending[taken:])
	clear(l.pending[rest:])
	l.pending = l.pending[:rest]
	if l.query != nil {
		c.query, l.query = l.query, nil
		for _, s := range c.query.scopes {
			c.scope(s)
		}
	}
	for s := range l.holds {
		c.scope(s)
	}
	l.urgent = len(l.ends)+len(l.cancels)+len(l.controls) > 0
	if len(l.ends) == 0 {
		l.endsDue = time.Time{}
	}
	l.more = len(l.pending) > 0

	w := &c.w
	w.reset()
	w.str(l.pid)
	w.num(l.number)
	w.num(l.rev)
	w.num(l.epoch)
	w.flag(l.hello)
	w.flag(l.had)
	w.num(micros(l.o.MemberTTL))
	w.num(micros(l.o.Learning))
	w.num(int64(len(l.line) + len(l.left)))
	w.num(steps)
	w.str(l.config)
	w.flag(c.query != nil || slices.ContainsFunc(c.scopes, func(s *scope) bool { return s.told != l.epoch }))
	w.num(l.gen)
	c.bye = l.closed && len(l.ends)+len(l.cancels)+len(l.controls) == 0
	w.flag(c.bye)

	w.num(int64(len(c.scopes)))
	for _, s := range c.scopes {
		w.str(s.name)
		switch {
		case s.def == nil:
			w.num(0)
		case s.there && !l.hello:
			w.num(2)
		default:
			w.num(1)
			s.def.write(w, l.storeNow())
		}
	}
	w.num(int64(len(c.paths)))
	for _, p := range c.paths {
		w.num(int64(p.class))
		if p.tenant != nil {
			w.num(int64(p.tenant.at))
		} else {
			w.num(0)
		}
		w.num(int64(len(p.scopes)))
		for _, s := range p.scopes {
			w.num(int64(s.at))
		}
	}
	w.num(int64(len(l.holds)))
	for s, n := range l.holds {
		w.num(int64(s.at))
		w.num(n)
	}
	clear(l.holds)
	w.num(int64(len(c.ends)))
	for i, key := range c.ends {
		x := c.ended[i]
		w.num(int64(key.path.at))
		w.num(key.epoch)
		w.num(key.taken)
		w.num(x.places)
		writeCost(w, x.refund)
	}
	w.num(int64(len(c.cancels)))
	for _, x := range c.cancels {
		w.num(int64(x.path.at))
		w.num(x.seq)
		writeCost(w, x.likely)
	}
	w.num(int64(len(c.controls)))
	for _, x := range c.controls {
		w.num(x.kind)
		if x.path != nil {
			w.num(1)
		} else {
			w.num(int64(x.scope.at))
		}
		x.write(w, l.storeNow())
	}
	w.num(int64(len(c.asks)))
	for _, x := range c.asks {
		w.num(int64(x.path.at))
		w.num(x.mode)
		w.num(x.id)
		if x.deadline.IsZero() {
			w.num(-1)
		} else {
			w.num(max(0, int64(time.Until(x.deadline)/time.Microsecond)))
		}
		writeCost(w, x.cost)
		writeCost(w, x.likely)
	}
	w.flag(c.query != nil)
	c.args[0] = string(w.bytes())
	l.touched = time.Now()
	return c
}

func writeCost(w *writer, c limit.Cost) {
	w.num(c.Requests)
	w.num(c.Input)
	w.num(c.Output)
}

func (d *definition) write(w *writer, store int64) {
	w.num(int64(d.options.MaxInFlight))
	w.num(int64(d.options.MaxQueue))
	w.num(int64(max(1, d.options.Weight)))
	w.num(int64(len(d.limits)))
	for _, lim := range d.limits {
		w.str(lim.Name)
		writeLimit(w, lim, store)
	}
}

// An answer is what a client returned for a call.
type answer struct {
	s   string
	err error
}

// send has the client send c. Clients bound a call in ways of their own: go-redis
// ignores the context unless an option says otherwise. So nobody waits for them
// longer than the Timeout.
func (l *Limiter) send(c *call, to chan<- answer) {
	args := c.args // the array is the next call's when this one is answered
	ctx, cancel := context.WithTimeout(l.ctx, l.o.Timeout)
	go func() {
		defer cancel()
		s, err := l.o.Runner.Run(ctx, ledger, l.keys, args[:])
		to <- answer{s, err}
	}()
}

const (
	probeEvery = 100 * time.Millisecond // how often the store is asked while it is away
	sendAfter  = time.Second            // and if a client does not return
	mostSent   = 4
)

// exec sends c until the store answers. One that has not answered within the
// Timeout is away; c is sent on, since nobody knows whether it was decided.
func (l *Limiter) exec(c *call, away bool) (string, bool) {
	answers := make(chan answer, mostSent)
	start := time.Now()
	timer := time.NewTimer(l.o.Timeout)
	defer timer.Stop()
	sent, last := 1, start
	l.send(c, answers)
	pause := 2 * time.Millisecond
	why := fmt.Errorf("no answer within %v: %w", l.o.Timeout, context.DeadlineExceeded)
	lost := func(err error) {
		l.mu.Lock()
		l.err = err
		if away || time.Since(start) < l.o.Timeout {
			l.mu.Unlock()
			return
		}
		away = true
		l.goAway(err, c)
		st := l.state()
		l.mu.Unlock()
		if f := l.o.Trace.Away; f != nil {
			f(st)
		}
	}
	for {
		select {
		case a := <-answers:
			sent--
			if a.err == nil {
				return a.s, true
			}
			why = a.err
			lost(why)
			if d := l.o.Timeout - time.Since(start); !away && d < pause {
				pause = max(d, time.Millisecond)
			}
			timer.Reset(pause)
			pause = min(2*pause, probeEvery)
		case <-timer.C:
			lost(why)
			if sent == 0 || sent < mostSent && time.Since(last) > sendAfter {
				sent, last = sent+1, time.Now()
				l.send(c, answers)
			}
			switch {
			case !away:
				timer.Reset(max(time.Millisecond, l.o.Timeout-time.Since(start)))
			default:
				timer.Reset(probeEvery)
			}
		case <-l.ctx.Done():
			return "", false
		}
		if l.isClosed() && away {
			return "", false
		}
	}
}

func (l *Limiter) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// loop sends one call after the other while there is something to send. c is the
// call that New made; away says that it was not answered.
func (l *Limiter) loop(c *call, away bool) {
	defer close(l.ended)
	defer l.refuseAll()
	l.listen()
	timer := time.NewTimer(0)
	for again := away; ; {
		if !again {
			l.mu.Lock()
			at, closed := l.next(), l.gone
			l.mu.Unlock()
			if closed {
				return
			}
			if d := time.Until(at); d > 0 {
				timer.Reset(d)
				select {
				case <-l.kick:
				case <-timer.C:
				case <-l.ctx.Done():
					return
				}
			}
			l.mu.Lock()
			if time.Until(l.next()) > 0 { // nothing for now
				l.mu.Unlock()
				continue
			}
			c = l.build()
			l.mu.Unlock()
		}
		s, ok := l.exec(c, again)
		again = false
		if !ok {
			return
		}
		l.mu.Lock()
		was := l.away
		err := l.apply(c, s)
		st, pid := l.state(), l.pid
		gap := l.gap
		l.gap = false
		l.mu.Unlock()
		if err != nil { // an answer that cannot be read; the next one may
			time.Sleep(probeEvery)
		}
		if pid != c.pid {
			l.listen()
		}
		if was != nil && !st.Away && l.o.Trace.Back != nil {
			st.Since = was.since
			l.o.Trace.Back(st)
		}
		if gap && l.o.Trace.Gap != nil {
			l.o.Trace.Gap(st)
		}
	}
}

// next is the instant of the next call; the past means now.
func (l *Limiter) next() time.Time {
	if l.closed || l.urgent || l.more || l.hello || len(l.pending) > 0 || l.query != nil {
		return time.Time{}
	}
	at := l.touched.Add(l.o.MemberTTL / 5)
	soonest := func(t time.Time) {
		if !t.IsZero() && t.Before(at) {
			at = t
		}
	}
	soonest(l.endsDue)
	if len(l.line) > 0 {
		soonest(l.due)
		if !l.hears {
			soonest(l.touched.Add(l.o.Refresh))
		}
	}
	return at
}

// listen hears of turns, where the client can.
func (l *Limiter) listen() {
	x, ok := l.o.Runner.(Listener)
	if !ok {
		return
	}
	if l.unlisten != nil {
		l.unlisten()
	}
	ctx, cancel := context.WithCancel(l.ctx)
	l.unlisten = cancel
	channel := l.keys[0] + "w:" + l.pid
	hears := func(yes bool) {
		l.mu.Lock()
		l.hears = yes && ctx.Err() == nil
		l.mu.Unlock()
		l.wake()
	}
	go func() {
		for ctx.Err() == nil {
			x.Listen(ctx, channel, func() { hears(true) }, l.heard)
			hears(false)
			select {
			case <-time.After(probeEvery):
			case <-ctx.Done():
			}
		}
	}()
}

// heard takes a message: the microseconds until this process should call.
func (l *Limiter) heard(message string) {
	var us int64
	if _, err := fmt.Sscan(message, &us); err != nil {
		return
	}
	l.mu.Lock()
	if us <= 0 {
		l.urgent = true
	} else if at := time.Now().Add(time.Duration(us) * time.Microsecond); l.due.IsZero() || at.Before(l.due) {
		l.due = at
	}
	l.mu.Unlock()
	l.wake()
}

// refuseAll tells everybody that the limiter is closed.
func (l *Limiter) refuseAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	all := l.pending
	for _, w := range l.scratch.asks {
		if w != nil && w.state == asked {
			all = append(all, w)
		}
	}
	for _, w := range l.line {
		all = append(all, w)
	}
	l.pending, l.line = nil, nil
	for _, w := range all {
		if w.state != decided {
			w.tell(limit.Reservation{}, ErrClosed)
		}
	}
	for _, c := range append(l.controls, l.scratch.controls...) {
		c.close()
	}
	if q := l.query; q != nil {
		close(q.done)
	}
	if l.away != nil {
		l.away.end()
	}
}

// close lets go who waits for the answer. It is called with the lock held, perhaps
// again when the answer comes after all.
func (c *control) close() {
	if c.done != nil && !c.closed {
		close(c.done)
	}
	c.closed = true
}

// apply takes over what the store answered. It is called with the lock held.
func (l *Limiter) apply(c *call, s string) error {
	r := &reader{b: s}
	r.array()
	switch what := r.str(); {
	case r.err != nil:
		l.err = r.err
		l.rejoin(c, true)
		return r.err
	case what == "ok":
	default: // "dead", "unknown", "stale": this process is no member
		l.rejoin(c, what != "dead")
		return nil
	}
	now := r.num()
	rev, gen, epoch, members, waiting := r.num(), r.num(), r.num(), r.num(), r.num()
	due, mine, more, gap := r.num(), r.num(), r.num(), r.num()
	l.young.settle(now)
	lost := l.lastSrv
	l.lastSrv, l.lastAt = now, time.Now()
	l.rev, l.gen, l.epoch, l.members, l.waiting = rev, gen, epoch, int(max(1, members)), waiting
	l.hello, l.had, l.err, l.since = false, true, nil, l.lastAt
	l.more = l.more || more == 1
	if gap == 1 {
		l.gap = true
		l.gaps++
	}

	for _, key := range c.ends {
		l.drop(key.path)
	}
	for _, x := range c.cancels {
		removed := r.num() == 1
		if a, ok := l.left[x.id]; ok && removed { // else it was granted: mail comes
			delete(l.left, x.id)
			l.drop(a.path)
		}
		l.drop(x.path)
	}
	for _, x := range c.controls {
		if x.kind == ctlDrain || x.kind == ctlLower {
			if fell := r.num() == 1; !x.closed {
				x.fell = fell
			}
		}
		if x.path != nil {
			l.drop(x.path)
		}
		x.close()
	}
	for i, a := range c.ids {
		l.answered(c.asks[i], a, r, epoch)
	}
	for n := r.num(); n > 0 && r.err == nil; n-- {
		l.delivered(r)
	}
	full := r.num() == 1
	learn := r.num()
	for _, s := range c.scopes {
		if r.num() == 0 {
			s.there, s.told = false, epoch // nothing to be told of
			continue
		}
		s.there = true
		s.paused = r.num()
		for k := range 3 {
			s.sums.debits[k] = r.num()
		}
		for k := range 3 {
			s.sums.refunds[k] = r.num()
		}
		s.trail.note(now, s.sums.debits)
		s.spent = r.num()
		if full {
			s.told = epoch
			s.open = int(r.num())
			s.limits, s.windowed = s.limits[:0], false
			for n := r.num(); n > 0 && r.err == nil; n-- {
				k := l.readKnown(r, now)
				s.limits = append(s.limits, k)
				s.windowed = s.windowed || k.Law.Shape.Windowed()
			}
			s.readNotes(r)
		}
	}
	if c.query != nil {
		c.query.read(r, l, c)
	}
	l.due = time.Time{}
	if due > 0 {
		d := time.Duration(due-now) * time.Microsecond
		switch {
		case mine == 1:
		case l.hears: // its owner was told; this is for an owner that is gone
			d += l.o.Refresh
		default:
			d += l.o.Refresh / 5
		}
		l.due = l.lastAt.Add(max(0, d))
	}
	if l.away != nil {
		l.comeBack(learn > lost)
	}
	l.gone = c.bye
	clear(c.asks) // their callers may use them anew
	return r.err
}

func (l *Limiter) readKnown(r *reader, now int64) known {
	k := known{at: now}
	k.Name = r.str()
	k.Unit = limit.Unit(r.num())
	k.Rate.N = r.num()
	k.Rate.Window = time.Duration(r.num()) * time.Microsecond
	r.num()
	r.num()
	k.Burst = r.num()
	k.Largest = r.num()
	k.level = r.num()
	readMore(r.str(), &k.Limit, l.local)
	return k
}

var statuses = map[int64]error{
	3: limit.ErrTooLarge,
	4: limit.ErrLimited,
	5: limit.ErrQueueFull,
	6: limit.ErrWaitTooLong,
}

// answered takes the store's answer to one ask. w is nil if its caller was sent
// elsewhere meanwhile.
func (l *Limiter) answered(w *waiter, a asked1, r *reader, epoch int64) {
	here := w != nil && w.state == asked
	switch code := r.num(); code {
	case 0:
		probe := r.num() == 1
		switch {
		case a.mode == modeAsk:
			l.drop(a.path)
			if here {
				w.tell(limit.Reservation{}, nil)
			}
		case here:
			w.granted(l, l.entry(w.id, w.path, w.cost, epoch, l.lastSrv, probe))
		default:
			l.giveBack(l.entry(a.id, a.path, a.cost, epoch, l.lastSrv, probe))
		}
	case 1:
		seq := r.num()
		r.num() // the turn, as far as it can be told: the answer's due says when to ask
		if !here {
			l.quit(a, seq)
			return
		}
		w.seq, w.state = seq, inLine
		l.line[w.id] = w
	case 7: // a scope of it was dropped: once more, with its definition
		for _, s := range a.path.all {
			s.there = false
		}
		if here {
			w.state = queued
			l.pending = append(l.pending, w)
			return
		}
		l.drop(a.path)
	default:
		e := &limit.Error{Reason: statuses[code]}
		e.Scope = r.str()
		e.Dimension = r.str()
		e.Cost, e.Capacity = r.num(), r.num()
		if d := r.num(); d > 0 {
			e.Wait = time.Duration(min(d, int64(1<<63-1)/1000)) * time.Microsecond
			e.Earliest = l.lastAt.Add(e.Wait)
		}
		e.By, e.Why = r.str(), r.str()
		if e.Reason == nil {
			r.err = errReply
			e.Reason = errReply
		}
		l.drop(a.path)
		if here {
			if code == 6 && !w.deadline.IsZero() && (l.o.MaxWait == 0 || w.deadline.Before(w.arrived.Add(l.o.MaxWait))) {
				e.Cause = context.DeadlineExceeded
			}
			w.tell(limit.Reservation{}, e)
		}
	}
}

// delivered takes what became of somebody in the line.
func (l *Limiter) delivered(r *reader) {
	id, epoch := r.num(), r.num()
	w := l.line[id]
	delete(l.line, id)
	if epoch < 0 { // a limit was lowered below it
		name := r.str()
		r.num()
		if w != nil {
			e := &limit.Error{Reason: limit.ErrTooLarge, Dimension: name, Waited: time.Since(w.arrived)}
			for _, s := range w.path.all {
				for _, k := range s.limits {
					if k.Name == name {
						c := w.cost
						e.Cost = [...]int64{c.Requests, c.Input, c.Output, c.Input + c.Output}[k.Unit&3]
						_, e.Capacity = k.Sizes()
					}
				}
			}
			l.drop(w.path)
			w.tell(limit.Reservation{}, e)
		}
		return
	}
	probe, taken := r.num() == 1, r.num()
	if w != nil {
		w.granted(l, l.entry(w.id, w.path, w.cost, epoch, taken, probe))
		return
	}
	// It gave up while the grant was on its way.
	if a, ok := l.left[id]; ok {
		delete(l.left, id)
		l.giveBack(l.entry(a.id, a.path, a.cost, epoch, taken, probe))
	}
}

// rejoin makes this process a new member: the store does not know it, or took it
// for dead. lost says that nobody knows whether c was decided: then its charges are
// sent again, and its refunds are not.
func (l *Limiter) rejoin(c *call, lost bool) {
	l.enter()
	for _, s := range l.scopes {
		s.there = false
	}
	clear(l.holds)
	for _, e := range l.entries.all() {
		if e.away == nil {
			for _, s := range e.path.all {
				l.holds[s]++
			}
		}
	}
	for i, key := range c.ends {
		x := c.ended[i]
		if lost {
			x.refund = limit.Cost{Requests: min(0, x.refund.Requests), Input: min(0, x.refund.Input), Output: min(0, x.refund.Output)}
		}
		l.addEnd(key, 0, x.refund)
		l.drop(key.path)
	}
	for _, x := range l.ends { // its places went with the member
		x.places = 0
	}
	for _, x := range append(c.cancels, l.cancels...) {
		l.drop(x.path)
	}
	l.cancels = l.cancels[:0]
	for _, a := range l.left {
		l.drop(a.path)
	}
	clear(l.left)
	l.controls = append(append([]*control(nil), c.controls...), l.controls...)
	for _, k := range l.root.limits { // what a long window had spent, the new state cannot know
		if k.Rate.Window > time.Minute && lost {
			l.controls = append(l.controls, &control{kind: ctlKnown, scope: l.root, name: k.Name, nums: []int64{k.level, k.at}})
		}
	}
	if c.query != nil {
		l.query = c.query
	}
	back := make([]*waiter, 0, len(l.line)+len(c.asks))
	for _, w := range l.line {
		back = append(back, w)
	}
	clear(l.line)
	for i, w := range c.asks {
		if w != nil && w.state == asked {
			back = append(back, w)
		} else {
			l.drop(c.ids[i].path)
		}
	}
	sortByOrder(back)
	for _, w := range back {
		w.state = queued
	}
	l.pending = append(back, l.pending...)
	l.urgent = true
}

func sortByOrder(all []*waiter) {
	slices.SortFunc(all, func(a, b *waiter) int { return cmp.Compare(a.order, b.order) })
}

const noTime = "the user must be allowed every command of the script, among them TIME: without the server's clock there is no common one"

// advise tells what to do about an error that New found.
func advise(err error) error {
	for _, a := range []struct{ has, advice string }{
		{"ACL failure in script", noTime},
		{"can't run this command", noTime},
		{"NOPERM", "the user must be allowed evalsha, eval, publish, and every command of the script on the keys tripmeter:*"},
		{"unknown command", "the server must run scripts: Redis 6.2 or later, or Valkey"},
		{"Unknown Redis command called from", "the server must allow the script's commands, among them TIME and LPOP with a count: Redis 6.2 or later, or Valkey"},
		{"Write commands not allowed after non deterministic", "the server must replicate effects: Redis 6.2 or later, or Valkey"},
		{"non local key", "the server must keep keys of one hash tag together"},
		{"READONLY", "the client must talk to the master"},
		{"OOM", "the server has no memory left, and must not evict: set maxmemory higher"},
	} {
		if strings.Contains(err.Error(), a.has) {
			return &StoreError{err, a.advice}
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &StoreError{err, "is the server up, and the address right? Options.Members lets a limiter begin without it"}
	}
	return &StoreError{err, ""}
}

package redislimit

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

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
	lost := l.lastSrv
	now := r.num()
	due := l.readHead(r, now)
	l.readOutcomes(r, c)
	for i, a := range c.ids {
		l.answered(c.asks[i], a, r, l.epoch)
	}
	for n := r.num(); n > 0 && r.err == nil; n-- {
		l.delivered(r, c.number)
	}
	full := r.num() == 1
	learn := r.num()
	for _, s := range c.scopes {
		l.readNews(r, s, now, full)
	}
	if c.query != nil {
		c.query.read(r, l, c)
	}
	l.due = due
	if l.away != nil {
		l.comeBack(learn > lost)
	}
	l.gone = c.bye
	clear(c.asks) // their callers may use them anew
	return r.err
}

// readHead reads what is of no scope, and returns when to ask again for a turn.
func (l *Limiter) readHead(r *reader, now int64) (again time.Time) {
	rev, gen, epoch, members, waiting := r.num(), r.num(), r.num(), r.num(), r.num()
	due, mine, more, gap := r.num(), r.num(), r.num(), r.num()
	l.young.settle(now)
	l.lastSrv, l.lastAt = now, time.Now()
	l.rev, l.gen, l.epoch, l.members, l.waiting = rev, gen, epoch, int(max(1, members)), waiting
	l.hello, l.had, l.err, l.since = false, true, nil, l.lastAt
	l.more = l.more || more == 1
	if gap == 1 {
		l.gap = true
		l.gaps++
	}
	if due <= 0 {
		return time.Time{}
	}
	d := time.Duration(due-now) * time.Microsecond
	switch {
	case mine == 1:
	case l.hears: // its owner was told; this is for an owner that is gone
		d += l.o.Refresh
	default:
		d += l.o.Refresh / 5
	}
	return l.lastAt.Add(max(0, d))
}

// readOutcomes reads what became of those who gave up, and of controls.
func (l *Limiter) readOutcomes(r *reader, c *call) {
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
	l.readPrices(r, c)
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
}

// readNews reads how a scope stands, and its limits if the answer has them.
func (l *Limiter) readNews(r *reader, s *scope, now int64, full bool) {
	if r.num() == 0 {
		s.there, s.told = false, l.epoch // nothing to be told of
		return
	}
	s.there = true
	s.paused = r.num()
	for k := range 3 {
		s.sums.debits[k] = r.num()
	}
	for k := range 3 {
		s.sums.refunds[k] = r.num()
	}
	s.sums.owed = r.num()
	s.trail.note(now, s.sums.debits)
	s.spent = r.num()
	s.readSpending(r, now)
	if !full {
		return
	}
	s.told = l.epoch
	s.open = int(r.num())
	s.limits, s.ends = s.limits[:0], false
	for n := r.num(); n > 0 && r.err == nil; n-- {
		k := l.readKnown(r, now)
		s.limits = append(s.limits, k)
		s.ends = s.ends || k.Law.AtEnd || k.Law.Shape == limit.ShapeSliding
	}
	s.windows(now)
	s.readNotes(r)
}

// windows notes until when the limits of s are asked as windows. One that is the law no
// more may be asked for a sixth of its length.
func (s *scope) windows(now int64) {
	rest := time.Duration(0)
	for _, k := range s.limits {
		if k.Law.Shape.Windowed() {
			s.windowed = math.MaxInt64
			return
		}
		rest = max(rest, k.Rate.Window/6)
	}
	if s.windowed == math.MaxInt64 {
		s.windowed = now + micros(rest)
	}
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
			w.granted(l, l.entry(w.id, w.path, w.cost, w.spend, epoch, l.lastSrv, probe))
		default:
			l.giveBack(l.entry(a.id, a.path, a.cost, a.spend, epoch, l.lastSrv, probe))
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
		l.watch(w)
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
		e := l.readRefusal(r, code)
		l.drop(a.path)
		if here {
			if code == 6 && !w.deadline.IsZero() && (l.o.MaxWait == 0 || w.deadline.Before(w.arrived.Add(l.o.MaxWait))) {
				e.Cause = context.DeadlineExceeded
			}
			w.tell(limit.Reservation{}, e)
		}
	}
}

// readRefusal reads why a call is not admitted.
func (l *Limiter) readRefusal(r *reader, code int64) *limit.Error {
	if code == codeSpent || code == codeTooMuch {
		return l.beyond(r, code)
	}
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
	return e
}

// delivered takes what became of somebody in the line. The answer is that of a call.
func (l *Limiter) delivered(r *reader, call int64) {
	id, epoch := r.num(), r.num()
	w := l.line[id]
	delete(l.line, id)
	if epoch < 0 { // refused when its turn came
		e := l.readOusted(r, epoch, w)
		if w != nil {
			e.Waited = time.Since(w.arrived)
			l.drop(w.path)
			w.tell(limit.Reservation{}, e)
		} else if a, ok := l.left[id]; ok {
			delete(l.left, id)
			l.drop(a.path)
		}
		return
	}
	probe, taken := r.num() == 1, r.num()
	if w != nil {
		e := l.entry(w.id, w.path, w.cost, w.spend, epoch, taken, probe)
		if w.pricer != nil && w.priced != call {
			l.charge(w, e)
		}
		w.granted(l, e)
		return
	}
	// It gave up while the grant was on its way.
	if a, ok := l.left[id]; ok {
		delete(l.left, id)
		l.giveBack(l.entry(a.id, a.path, a.cost, a.spend, epoch, taken, probe))
	}
}

// Why one in the line was refused, in place of an epoch.
const (
	oustedBelow  = -1 // a limit was lowered below its cost
	oustedBeyond = -2 // an allowance was used up meanwhile
)

// readOusted reads why the caller w, or one that is gone, was refused in the line.
func (l *Limiter) readOusted(r *reader, why int64, w *waiter) *limit.Error {
	if why == oustedBeyond {
		r.num()
		r.num()
		return l.beyond(r, r.num())
	}
	name := r.str()
	r.num()
	e := &limit.Error{Reason: limit.ErrTooLarge, Dimension: name}
	if w == nil {
		return e
	}
	for _, s := range w.path.all {
		for _, k := range s.limits {
			if k.Name == name {
				c := w.cost
				e.Cost = inUnit(c, k.Unit)
				_, e.Capacity = k.Sizes()
			}
		}
	}
	return e
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
	l.endAgain(c, lost)
	if !lost {
		for _, e := range l.entries.all() {
			e.over = e.away == nil
		}
	}
	l.controls = append(append([]*control(nil), c.controls...), l.controls...)
	if lost {
		l.remind()
	}
	if c.query != nil {
		l.query = c.query
	}
	l.askAgain(c)
	l.urgent = true
}

// endAgain has the new member send the ends.
func (l *Limiter) endAgain(c *call, lost bool) {
	for i, key := range c.ends {
		x := c.ended[i]
		charged := cost(x.held, x.refund)
		if lost {
			x.refund = limit.Cost{Requests: min(0, x.refund.Requests), Input: min(0, x.refund.Input), Output: min(0, x.refund.Output)}
			x.held = plus(charged, x.refund)
			x.unspent = limit.Spend{Tokens: min(0, x.unspent.Tokens), Money: min(0, x.unspent.Money)}
			key.taken = 0
		} else {
			x.held = limit.Cost{} // it ended with the member
		}
		x.places = 0
		l.addEnd(key, x)
		l.drop(key.path)
	}
	for _, x := range l.ends { // its places went with the member
		x.places = 0
		if !lost {
			x.held = limit.Cost{}
		}
	}
	for _, x := range append(c.cancels, l.cancels...) {
		l.drop(x.path)
	}
	l.cancels = l.cancels[:0]
	for _, a := range l.left {
		l.drop(a.path)
	}
	clear(l.left)
}

// remind tells a state that may be new what it cannot know: what long windows had spent,
// and allowances.
func (l *Limiter) remind() {
	for _, k := range l.root.limits {
		if k.Rate.Window > time.Minute {
			l.controls = append(l.controls, &control{kind: ctlKnown, scope: l.root, name: k.Name, nums: []int64{k.level, k.at}})
		}
	}
	for _, s := range l.scopes {
		if p := s.spends; p.at > 0 {
			l.controls = append(l.controls, &control{kind: ctlSpent, scope: s, nums: []int64{
				p.day.Tokens, p.day.Money, p.month.Tokens, p.month.Money, p.at, l.gen,
			}})
		}
	}
}

// askAgain puts those who wait for an answer, or stood in the line, before all others.
func (l *Limiter) askAgain(c *call) {
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
}

func sortByOrder(all []*waiter) {
	slices.SortFunc(all, func(a, b *waiter) int { return cmp.Compare(a.order, b.order) })
}

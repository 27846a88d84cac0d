package redislimit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

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
		if err == nil && strings.HasPrefix(s, layoutReply) {
			s, err = "", l.otherLayout(s)
		}
		to <- answer{s, err}
	}()
}

// layoutReply begins the answer of a script that found the layout of another version.
const layoutReply = "\x93\xa6layout"

// otherLayout is the error for that answer. As long as the store gives it, it is away.
func (l *Limiter) otherLayout(s string) error {
	r := &reader{b: s[len(layoutReply):]}
	e := &LayoutError{Budget: l.o.Name, Found: r.num(), Want: r.num()}
	if r.err != nil {
		return r.err
	}
	return e
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

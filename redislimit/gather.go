package redislimit

import (
	"slices"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// build makes a call of everything that waits to leave. It is called with the lock held, or
// before the limiter is known to anybody.
func (l *Limiter) build() *call {
	l.serial++
	l.number++
	c := &l.scratch
	*c = call{number: l.serial, pid: l.pid,
		asks: c.asks[:0], ids: c.ids[:0], ends: c.ends[:0], ended: c.ended[:0], cancels: c.cancels[:0], prices: c.prices[:0],
		controls: c.controls[:0], scopes: c.scopes[:0], paths: c.paths[:0], w: c.w}
	c.scope(l.root)
	l.gatherEnds(c)
	l.gatherCancels(c)
	l.gatherPrices(c)
	l.gatherControls(c)
	l.gatherAsks(c)
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
	c.bye = l.closed && !l.urgent
	l.encode(c)
	l.touched = time.Now()
	return c
}

func (l *Limiter) gatherEnds(c *call) {
	for key, x := range l.ends {
		if len(c.ends) == mostEnds {
			return
		}
		c.path(key.path)
		c.ends = append(c.ends, key)
		c.ended = append(c.ended, x.piece())
		if *x == (end{}) {
			delete(l.ends, key)
		} else {
			key.path.refs++ // the rest stays, for the next call
		}
	}
}

func (l *Limiter) gatherCancels(c *call) {
	n := min(len(l.cancels), mostCancels)
	c.cancels = append(c.cancels, l.cancels[:n]...)
	l.cancels = append(l.cancels[:0], l.cancels[n:]...)
	for _, x := range c.cancels {
		c.path(x.path)
	}
}

func (l *Limiter) gatherControls(c *call) {
	n := min(len(l.controls), mostControls)
	c.controls = append(c.controls, l.controls[:n]...)
	l.controls = append(l.controls[:0], l.controls[n:]...)
	for _, x := range c.controls {
		if x.path != nil {
			c.path(x.path)
		} else {
			c.scope(x.scope)
		}
	}
}

// gatherAsks takes as many callers as a call may decide for.
func (l *Limiter) gatherAsks(c *call) {
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
		l.reprice(w)
		c.path(w.path)
		c.asks = append(c.asks, w)
		c.ids = append(c.ids, asked1{w.id, w.path, w.cost, w.likely, w.spend, w.mode})
	}
	rest := copy(l.pending, l.pending[taken:])
	clear(l.pending[rest:])
	l.pending = l.pending[:rest]
}

// encode writes c as the script reads it.
func (l *Limiter) encode(c *call) {
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
	w.flag(c.bye)
	l.encodeScopes(c)
	c.encodePaths()
	w.num(int64(len(l.holds)))
	for s, n := range l.holds {
		w.num(int64(s.at))
		w.num(n)
	}
	clear(l.holds)
	c.encodeEnds()
	c.encodePrices()
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
	c.encodeAsks()
	w.flag(c.query != nil)
	c.args[0] = string(w.bytes())
}

func (l *Limiter) encodeScopes(c *call) {
	w := &c.w
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
}

func (c *call) encodePaths() {
	w := &c.w
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
}

// encodeEnds writes what ended, and who gave up.
func (c *call) encodeEnds() {
	w := &c.w
	w.num(int64(len(c.ends)))
	for i, key := range c.ends {
		x := c.ended[i]
		w.num(int64(key.path.at))
		w.num(key.epoch)
		w.num(key.taken)
		w.num(4*x.places + 2*bit(x.left > 0) + bit(key.ends))
		w.cost(x.refund)
		if key.ends {
			w.cost(x.held)
		}
		if x.left > 0 {
			w.num(x.left)
			w.num(x.sent)
			w.num(bit(x.made))
			w.num(key.id)
		}
		w.spend(x.unspent)
	}
	w.num(int64(len(c.cancels)))
	for _, x := range c.cancels {
		w.num(int64(x.path.at))
		w.num(x.seq)
		w.cost(x.likely)
	}
}

func (c *call) encodeAsks() {
	w := &c.w
	w.num(int64(len(c.asks)))
	for _, x := range c.asks {
		w.num(int64(x.path.at))
		likely, spends := x.likely != x.cost, x.spend != limit.Spend{}
		w.num(x.mode + 4*bit(likely) + 8*bit(spends))
		w.num(x.id)
		if x.deadline.IsZero() {
			w.num(-1)
		} else {
			w.num(max(0, int64(time.Until(x.deadline)/time.Microsecond)))
		}
		w.cost(x.cost)
		if spends {
			w.spend(x.spend)
		}
		if likely {
			w.cost(x.likely)
		}
	}
}

func (d *definition) write(w *writer, store int64) {
	w.options(d.options)
	w.num(int64(len(d.limits)))
	for _, lim := range d.limits {
		w.str(lim.Name)
		writeLimit(w, lim, store)
	}
}

package redislimit

import (
	"slices"

	"github.com/tripmeter/tripmeter/limit"
)

// A call that waits is priced anew by [limit.Ask.Pricer]. That is when this process calls
// the store, and the call is one of the first of its path. The store then keeps the new
// price in its place of the line. Where the call of another process has admitted it meanwhile, it
// took the price that the store knew. The difference is settled at once.

const (
	mostPrices = 4 // new prices in a call
	mostAsked  = 8 // prices asked for a call
)

// A price is what a caller in the line costs now.
type price struct {
	id     int64
	path   *path
	seq    int64
	cost   limit.Cost
	likely limit.Cost
}

// price asks what w costs now. A price in other units is not used.
func (w *waiter) price() (cost, likely limit.Cost, ok bool) {
	cost, likely = w.pricer.Price()
	if !sound(cost) {
		return cost, likely, false
	}
	units := func(c limit.Cost) [3]bool { return [3]bool{c.Requests == 0, c.Input == 0, c.Output == 0} }
	if cost = bounded(cost); units(cost) != units(w.cost) {
		return cost, likely, false
	}
	return cost, likelyOf(likely, cost), true
}

// likelyOf is what a call of that cost will probably cost.
func likelyOf(likely, cost limit.Cost) limit.Cost {
	if likely = bounded(likely); likely == (limit.Cost{}) || !sound(likely) {
		return cost
	}
	return likely
}

// reprice has w ask again at its present price, if it has waited before.
func (l *Limiter) reprice(w *waiter) {
	if w.pricer == nil || !w.waited {
		return
	}
	if cost, likely, ok := w.price(); ok && l.possible(w.path, cost) {
		w.cost, w.likely = cost, likely
	}
}

// watch remembers that w stands in the line and has a price to ask for.
func (l *Limiter) watch(w *waiter) {
	w.waited = true
	if w.pricer == nil {
		return
	}
	p := w.path
	if len(p.priced) == 0 {
		l.pricing = append(l.pricing, p)
	}
	if w.mode == modeFirst {
		p.priced = slices.Insert(p.priced, 0, w.id)
	} else {
		p.priced = append(p.priced, w.id)
	}
}

// gatherPrices asks the first of each path for their prices, each path in its turn.
func (l *Limiter) gatherPrices(c *call) {
	asks := mostAsked
	for n := len(l.pricing); n > 0 && asks > 0 && len(c.prices) < mostPrices; n-- {
		p := l.pricing[0]
		l.pricing = l.pricing[1:]
		for len(p.priced) > 0 && l.line[p.priced[0]] == nil { // it went, or gave up
			p.priced = p.priced[1:]
		}
		if len(p.priced) == 0 {
			p.priced = nil
			continue
		}
		l.pricing = append(l.pricing, p)
		for _, id := range p.priced[:min(mostAsked, len(p.priced))] {
			w := l.line[id]
			if w == nil {
				continue
			}
			if asks == 0 || len(c.prices) == mostPrices {
				break
			}
			asks--
			w.priced = c.number
			cost, likely, ok := w.price()
			if ok && (cost != w.cost || likely != w.likely) {
				c.path(p)
				c.prices = append(c.prices, price{id, p, w.seq, cost, likely})
			}
		}
	}
}

func (c *call) encodePrices() {
	w := &c.w
	w.num(int64(len(c.prices)))
	for _, x := range c.prices {
		w.num(int64(x.path.at))
		w.num(x.seq)
		w.cost(x.cost)
		w.cost(x.likely)
	}
}

// readPrices reads which prices the store has taken over. One that it has not was too
// large for a limit, or its caller was admitted before.
func (l *Limiter) readPrices(r *reader, c *call) {
	for _, x := range c.prices {
		taken, w := r.num() == 1, l.line[x.id]
		switch {
		case !taken && w != nil:
			w.priced = 0 // its grant may be in this answer, at the old price
			continue
		case !taken:
			continue
		case w != nil:
			w.cost, w.likely = x.cost, x.likely
			continue
		}
		if a, ok := l.left[x.id]; ok { // it gave up meanwhile
			a.cost, a.likely = x.cost, x.likely
			l.left[x.id] = a
		}
		for i := range l.cancels {
			if l.cancels[i].id == x.id {
				l.cancels[i].likely = x.likely
			}
		}
	}
}

// charge settles what w, who was admitted as e, costs now beside what the store took.
func (l *Limiter) charge(w *waiter, e *entry) {
	now, _, ok := w.price()
	if !ok || now == e.cost || !l.possible(e.path, now) {
		return
	}
	more := cost(e.cost, now)
	l.addEnd(l.keyOf(e), end{refund: more, held: more})
	e.cost = now
}

// possible reports whether no limit of the path, as last known, refuses c for good.
func (l *Limiter) possible(p *path, c limit.Cost) bool {
	for _, s := range p.all {
		for _, k := range s.limits {
			if _, largest := k.Sizes(); inUnit(c, k.Unit) > largest {
				return false
			}
		}
	}
	return true
}

func inUnit(c limit.Cost, u limit.Unit) int64 {
	return [...]int64{c.Requests, c.Input, c.Output, c.Input + c.Output}[u&3]
}

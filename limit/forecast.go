package limit

import "time"

// Forecast is what a would have to wait if it came now, and for what. It changes
// nothing. It takes O(log n) for n tenants that wait, and waits for nobody.
//
// With others of the same tenant before it, they are priced at their Likely.
// With other tenants, it is assumed that nobody leaves and nobody comes, and that
// each gets its share. The instant at which a place in flight comes free is not
// known.
func (l *Limiter) Forecast(a Ask) Forecast {
	l.lock()
	defer l.mu.Unlock()
	var w want
	if err := l.want(&w, &a, true); err != nil {
		return Forecast{Err: err}
	}
	defer l.unwant(&w)
	if e := l.impossible(&w); e != nil {
		return Forecast{Known: true, Scope: e.Scope, Dimension: e.Dimension, Err: e}
	}
	now := l.catchUp()
	if e := l.beyond(&w, now); e != nil {
		return Forecast{Wait: e.Wait, Known: true, Scope: e.Scope, Dimension: e.Dimension, Err: e}
	}
	k := l.laneOf(&w)
	lacks := k != nil
	if !lacks {
		_, lacks = l.lacks(&w, nil, now)
	}
	if !lacks {
		return Forecast{Known: true}
	}
	o := l.estimate(&w, k, now, false)
	e := l.refusal(ErrLimited, &w, o)
	f := Forecast{
		Wait: time.Duration(o.at - now), Known: o.known,
		Scope: e.Scope, Dimension: e.Dimension, By: e.By, Why: e.Why,
	}
	if s := l.crowded(&w); s != nil {
		e := l.refusal(ErrQueueFull, &w, o)
		e.Scope, e.Dimension, e.Cost, e.Capacity = s.name, "line", 1, int64(s.most())
		f.Err = e
	}
	return f
}

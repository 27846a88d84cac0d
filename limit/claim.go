package limit

// A call that needs two limits can be passed for ever, with fairness at each:
// while it waits for the one, calls that need only the other take that, and the
// other way round. So a lane whose head comes back to a line that it had got
// through already claims everything that it needs. Others may then take only
// what leaves its start where it is: after them there is still enough at the
// instant at which it gets all it lacks, which is known. What would be earned
// until then anyway, or overflow, they may take.
//
// Claims are ordered by their number. An older one is not held up by a newer
// one, so they cannot block each other in a ring. A lane that lacks something
// without a known instant, such as a place in flight or the end of a pause,
// claims only that: it would keep others waiting for as long as it takes.

// move takes k, which got through its line, to the line of what it lacks now.
func (l *Limiter) move(k *lane, st stop, now int64) {
	from := k.in
	l.unpark(k, now)
	if to := st.line(); to != nil && to == k.left && k.claimed == 0 {
		l.claims++
		k.claimed = l.claims
	}
	k.left = from
	l.park(k, st, now)
	if k.claimed > 0 {
		l.claim(k, now)
	}
}

// claim marks what k needs as claimed by it, unless an older claim is there.
func (l *Limiter) claim(k *lane, now int64) {
	var w want
	k.want(&w)
	l.needed(&w, func(st stop) {
		q := st.line()
		if q == nil {
			return // nobody else was ever short of it
		}
		if q.claim == nil || q.claim.claimed > k.claimed {
			q.claim = k
			k.claims = append(k.claims, q)
		}
		l.look(q, now)
	})
}

// unclaim takes the claims of k back, for its head goes.
func (l *Limiter) unclaim(k *lane, now int64) {
	k.left = nil
	if k.claimed == 0 {
		return
	}
	for _, q := range k.claims {
		if q.claim == k {
			q.claim = nil
			l.look(q, now)
		}
	}
	k.claimed, k.claims = 0, nil
}

// needed calls f with everything that w needs.
func (l *Limiter) needed(w *want, f func(stop)) {
	for i := 0; i <= len(w.path); i++ {
		s := l.at(w.path, i)
		if w.place && s.places() > 0 {
			f(stop{s: s})
		}
		for j := range s.limits {
			if b := &s.limits[j]; w.a.in(b.unit) > 0 {
				f(stop{s: s, b: b})
			}
		}
	}
}

// claimed reports whether the claim on q keeps k from c units there, and when to
// look again. A nil k is a newcomer.
//
// A claim counts only while its lane is the first of the line where it stands:
// otherwise it is those before it whose turn it is, and they are not to wait for
// it.
func (l *Limiter) claimed(q *line, k *lane, now, c int64) (at int64, blocked bool) {
	o := q.claim
	if k != nil && k.claimed > 0 && k.claimed < o.claimed || o.in == q || o.in.first() != o {
		return 0, false
	}
	var w want
	o.want(&w)
	start := now
	for i := 0; i <= len(w.path); i++ {
		s := l.at(w.path, i)
		if now < s.pausedUntil || w.place && s.full() {
			return 0, false
		}
		for j := range s.limits {
			if at, short := s.limits[j].short(now, w.a.in(s.limits[j].unit)); short {
				start = max(start, at)
			}
		}
	}
	at = never // if it may go at once, its going is what to wait for
	if start > now {
		at = start
	}
	if q.b == nil {
		return at, q.s.places()-q.s.busy.open <= 1
	}
	return at, !q.b.leaves(now, c, start, w.a.in(q.b.unit))
}

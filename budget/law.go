package budget

import (
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/law"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

// lawful is what is known of the law of one limit: how it gives back what was
// used. The zero lawful knows nothing, and learns nothing.
//
//	law                   the ledger meters               a guard
//	not known             a bucket, and from the first    yes
//	                      balance on a sliding window,
//	                      or what that balance covers
//	a bucket, recorded    a bucket of the whole window    no, until a refusal
//	a bucket, learned     a bucket of what was shown      yes
//	a window              that window                     no
//	a window, recorded,   that window, from the start     no
//	of ends of calls      and from the end of calls
//	the same, cut or      a bucket of a short burst       no
//	given up
//	ends of calls, found  a window that is a guess, and   no
//	by answers            then the one that is learned,
//	                      both from the end of calls too
//	a burst by the user   a bucket of that burst          no
//	a share of a limit    a bucket of a short burst       no
//	further out than all  a bucket of the whole window    no, until a refusal
//	that answers name
//	the rate is cut       a bucket                        yes
//	named waits of        that window: see waits          a fixed one, until
//	refusals alone                                        it is sure
type lawful struct {
	learner *law.Learner
	row     profile.Law
	full    bool          // recorded traffic shows that the whole window may go at once
	precise time.Duration // the unit of resets; 0 is not known
	until   time.Time     // when the row is to be read again; zero is never
	fixed   law.Belief    // of a limit without a learner
	atEnd   bool          // calls are charged when they end, and the ledger counts so
	ends    *ends         // looks whether they are, or has found it; nil: neither
	share   bool          // of a limit that answers name
	inner   bool          // answers speak of limits further in, and not of this one
}

// stale reports whether the law must be studied again: another day has begun, or a
// forgotten limit has earned what it lacked.
func (l *lawful) stale(now time.Time) bool { return !l.until.IsZero() && !now.Before(l.until) }

// epoch is the instant from which limits count edges.
var epoch = time.Unix(0, 0)

// recordsBegin and recordsEnd bound the days of which laws are known. A clock that
// shows an earlier day is wrong, and the last laws count.
var recordsBegin = time.Date(2023, 3, 1, 0, 0, 0, 0, time.UTC)

// dated is the day by which the profile's data is read.
func dated(now time.Time, p *profile.Profile) time.Time {
	if now.Before(recordsBegin) {
		if t, err := time.Parse("2006-01", p.AsOf); err == nil {
			return t
		}
	}
	return now
}

// fields are what header fields of a unit and a window are called, in the order
// in which they are looked for.
func fields(u limit.Unit, window time.Duration) []string {
	of := map[time.Duration]string{time.Second: "second", time.Minute: "minute", time.Hour: "hour", 24 * time.Hour: "day"}[window]
	switch {
	case window == 10*time.Second && u == limit.Requests:
		return []string{"req-10-second", "requests"}
	case u == limit.Requests && window > time.Minute:
		return []string{"requests-" + of, "requests"}
	case u == limit.Requests:
		return []string{"requests", "req-" + of}
	case u == limit.Input:
		return []string{"input-tokens", "tokens"}
	case u == limit.Output:
		return []string{"output-tokens"}
	}
	return []string{"tokens", "tokens-" + of}
}

// recorded is the law that recorded traffic shows of a limit.
func recorded(p *profile.Profile, u limit.Unit, window time.Duration, now time.Time) (profile.Law, bool) {
	if p == nil {
		return profile.Law{}, false
	}
	now = dated(now, p)
	for _, f := range fields(u, window) {
		l, ok := profile.LawFor(p.Name, f, now)
		if ok && (l.Window == 0 || l.Window == window) {
			return l, true
		}
	}
	return profile.Law{}, false
}

// learns reports whether a limit is one whose law is learned. What a burst by the
// user may do at once the user has said, and of days no program sees enough.
func (d *dimension) learns(s *Scope) bool {
	w := d.limit.Rate.Window
	return s.meters() && (!d.unsteady() || d.law.atEnd) && d.configured.Burst == 0 && s.burst == 0 && w >= 10*time.Second && w <= time.Minute
}

// meters reports whether the ledger keeps a guard and counts by windows. Without
// them a full bucket would go out at once.
func (s *Scope) meters() bool {
	m := limit.MetersOf(s.ledger)
	return m.Windows && m.Guards
}

// unsteady reports whether balances of d are read at another instant than the
// admission, so that own sends since are not what is missing. Such a limit keeps
// the pace of a short burst, unless its window is known and the ledger counts calls from
// their ends: [lawful.atEnd]. Counted from their starts alone by the window that was
// recorded, against an emulator of Mistral in 2025, 42 calls of 1,000 were refused.
func (d *dimension) unsteady() bool {
	when := d.law.row.When
	return when == profile.WhenBefore || when == profile.WhenAnswered
}

// study begins to learn the law of d. The caller holds s.mu.
func (s *Scope) study(d *dimension, now time.Time) {
	d.law = lawful{}
	s.countEnds()
	row, ok := recorded(s.profile, d.limit.Unit, d.limit.Rate.Window, now)
	if ok {
		d.law.row, d.law.precise = row, row.Precise
		d.law.atEnd = d.unsteady() && row.Shape.Windowed() && d.limit.Unit != limit.Requests && limit.MetersOf(s.ledger).Ends
	}
	known, why := d.configured.Law, "configured"
	base := epoch
	if known.Shape == limit.ShapeUnknown {
		base = now
		if known = row.At(now); ok {
			why = row.Source
		}
		if row.Clock && row.Window >= 24*time.Hour {
			d.law.until = now.Add(nextDay(known, row.Window))
		}
	}
	d.law.full = row.FullWindow() || d.configured.Law.Shape == limit.ShapeBucket
	if !d.learns(s) {
		if known.Shape != limit.ShapeUnknown && d.configured.Burst == 0 && !d.unsteady() && s.meters() {
			d.law.fixed = law.Belief{Law: known, Base: base, Since: now, Why: why}
		}
		return
	}
	o := law.Options{Window: d.limit.Rate.Window, Known: known, Why: why, Base: base, Round: row.Round, Before: row.When == profile.WhenBefore}
	o.NamesEdge = d.configured.Law.Shape == limit.ShapeUnknown && known == limit.Law{Shape: limit.ShapeFixed} && row.Reset == profile.ResetEdge
	if d.limit.Unit != limit.Requests {
		o.Unsure = 25
		o.Guessed = s.profile != nil && s.profile.Name == unknown && !s.ruled.Load()
	}
	d.law.learner = law.New(o)
	s.looks(d, o)
}

// unknown is the name of a profile that says nothing.
var unknown = profile.Unknown().Name

// rule notes that balances show the charge rule in force, and whether another was in
// force before.
func (s *Scope) rule(now time.Time, changed bool) {
	s.ruled.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.dims {
		if d.law.learner != nil && !d.law.found() && d.limit.Unit != limit.Requests {
			d.law.learner.Rule(now, changed)
		}
	}
}

// uncut ends the cuts of token limits at now: a rule that charges more is followed from
// now on, and explains the refusals that brought the cuts. They took minutes to grow back:
// of a bucket of 3 s that charges by estimate 90 % of the ideal were used, and 98 % now.
func (s *Scope) uncut(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.dims {
		if d.limit.Unit != limit.Requests && d.cut.active() {
			s.endCut(d, now)
			s.apply(d, now)
		}
	}
}

// endCut ends the cut of d at now, for all processes. What was noted of it before now
// counts no more. The caller holds s.mu.
func (s *Scope) endCut(d *dimension, now time.Time) {
	d.cut, d.newest.agrees = cut{since: now}, false
	s.note(noteCut+d.limit.Name, d.cut.String())
}

// nextDay is the time until the next edge of a law that was made now.
func nextDay(l limit.Law, window time.Duration) time.Duration {
	d := l.Edge % window
	if d <= 0 {
		d += window
	}
	return d
}

// belief is the law that is believed of d now.
func (d *dimension) belief() law.Belief {
	if d.law.learner != nil {
		return d.law.learner.Belief()
	}
	return d.law.fixed
}

// The instants at which a fixed window begins and ends are as sure as a call's way
// there: what leaves at the edge must not be there before it, and what leaves just
// before must not be there after it.
const (
	afterEdge  = 100 * time.Millisecond
	beforeEdge = 200 * time.Millisecond
	logMargin  = 100 * time.Millisecond
	oneIn      = 200 // of a window's units is left unused: half a per cent

	// Where calls are charged when they end, some end while another is on its way. With
	// one and a half per cent 0.1 to 0.3 calls of 1,000 were refused at Mistral, with none
	// 0.6 to 1.8.
	oneOnTheWay = 67

	// Where answers have shown it, one per cent: 0.2 to 0.7 calls of 1,000 were refused.
	oneOnTheWayFound = 100
)

// obey adds the law to the limit l to run d with. l has the rate, and what may go at
// once while nothing is known.
func (d *dimension) obey(l *limit.Limit) {
	l.Law, l.Guard, l.Margin, l.LawSince, l.LawWhy = limit.Law{}, 0, 0, time.Time{}, ""
	l.ReadAt = limit.ReadAtSending
	b := d.belief()
	if d.law.learner == nil {
		if b.Law.Shape.Windowed() {
			l.Law, l.LawSince, l.LawWhy = timed(b.At(epoch), d.law.precise), b.Since, b.Why
		}
		return
	}
	l.LawSince, l.LawWhy = b.Since, b.Why
	l.ReadAt = d.readAt()
	if d.law.atEnd && (b.Law.Shape == limit.ShapeUnknown || d.cut.active()) {
		return // the pace of a short burst: its readings lift no guard
	}
	careful := min(l.Burst, l.Rate.N)
	l.Margin = min(max(0, d.shown-careful), l.Rate.In(time.Second))
	if d.shown > 0 {
		careful = min(careful, d.shown-l.Rate.In(unseen))
	}
	careful = max(1, careful)
	whole := l.Rate.N
	guess := b.Law.Shape == limit.ShapeUnknown && d.shown > 0
	if (guess || b.Law.Shape.Windowed() && d.law.row.Shape != b.Law.Shape) && d.shown < d.most()/2 {
		// A window holds all of its limit now and then. This one never did: it is a
		// small bucket, or others use most of it. Both are kept to by the pace. On a
		// window that is a guess, the first balance of a bucket of ten seconds would
		// stand for a minute.
		b.Law = limit.Law{Shape: limit.ShapeBucket}
	}
	switch {
	case d.waits.n > 0:
		d.waits.obey(l, careful)
	case d.shared():
		l.Margin = 0
	case d.law.inner && d.shown == 0:
		l.Burst = whole // the user's ceiling for all: what is held back is further in
	case d.cut.active():
		l.Burst, l.Guard = whole, careful
	case b.Law.Shape == limit.ShapeBucket:
		l.Law, l.Burst = b.Law, whole
		if !d.law.full {
			l.Guard = careful
		}
	default:
		d.windows(l, b, careful)
	}
}

// windows makes l the window that is believed, or all that may be one behind a guard of
// careful units.
func (d *dimension) windows(l *limit.Limit, b law.Belief, careful int64) {
	at := b.At(epoch)
	if at.Shape == limit.ShapeUnknown {
		at, l.Guard = limit.Law{Shape: limit.ShapeSliding, FirstCall: true}, careful
	}
	l.Law, l.Burst = timed(at, d.law.precise), l.Rate.N
	if s := l.Law.Shape; s.Windowed() && (s != limit.ShapeLog || b.Learned && l.Rate.N == d.ceiling()) {
		// A log that was recorded has its debits recorded too: a spare there cost
		// 1 % of the quota and spared nothing. One that is learned was refused 0.9
		// times in 1,000 calls for want of some units, instead of 0.2. Headroom is enough.
		// Lifted while most readings are what the books hold, the spare came and went
		// ten times in six minutes. No drain ended sooner.
		// A rounded balance may show as much too much. Balances of a limit that was higher
		// may all be multiples of more than this one: no ledger takes such a spare.
		l.Law.Spare = min(l.Rate.N/oneIn+d.grain.hides(), l.Rate.N/2)
	}
	if d.law.atEnd {
		l.Law.AtEnd, l.Law.Spare = true, l.Rate.N/oneOnTheWay
		if d.law.found() {
			l.Law.Spare = l.Rate.N / oneOnTheWayFound
		}
	}
}

// readAt is the instant of which readings of d speak. Fields that name an edge come with
// the answer: taken for those of the sending, what left since counts twice.
func (d *dimension) readAt() limit.ReadAt {
	row := &d.law.row
	if row.Lag > 0 || row.When == profile.WhenAnswered || row.When == profile.WhenMade || row.Reset == profile.ResetEdge || d.law.learner.AtAnswer() {
		return limit.ReadAtAnswer
	}
	return limit.ReadUnsure
}

// shared reports whether the limit is the user's share of a larger one. The balance
// of the larger limit is not for this budget alone. So nothing that answers show
// lets more go at once.
func (d *dimension) shared() bool {
	n := d.configured.Rate.N
	return d.law.share || n > 0 && d.said >= 2*n
}

// outside notes that answers speak of a limit of that unit and window further in,
// of n units.
func (s *Scope) outside(u limit.Unit, window time.Duration, n int64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.find(u, window)
	if d == nil || d.shown > 0 || d.law.inner || d.law.share || !d.refused.IsZero() {
		return
	}
	d.law.share = n >= 2*d.configured.Rate.N
	d.law.inner = !d.law.share
	s.apply(d, now)
}

// timed adds to a law what a call's way makes unsure.
func timed(l limit.Law, precise time.Duration) limit.Law {
	switch l.Shape {
	case limit.ShapeLog, limit.ShapeSliding:
		l.Margin = logMargin
	case limit.ShapeFixed:
		l.Quiet = beforeEdge
		if precise >= time.Second {
			l.Quiet += precise
		}
		if !l.FirstCall || l.Edge != 0 {
			l.Edge += afterEdge
		}
	}
	return l
}

// A mark is what the books of a limit's law held when an attempt left.
type mark struct {
	d    *dimension
	m    law.Mark
	ends endMarks
}

// marks are those of an attempt, one of each limit whose law is learned. The nil marks
// have none.
type marks struct{ all []mark }

// usedMarks are used again: two were half of what a call took from the heap.
var usedMarks = sync.Pool{New: func() any { return new(marks) }}

// add is the mark of d, to be written.
func (m *marks) add(d *dimension) *mark {
	if n := len(m.all); n < cap(m.all) {
		m.all = m.all[:n+1]
	} else {
		m.all = append(m.all, mark{})
	}
	k := &m.all[len(m.all)-1]
	k.d, k.ends.of = d, nil
	return k
}

// free lets go of the limits, and of the marks for another attempt. m may be nil.
func (m *marks) free() {
	if m == nil {
		return
	}
	for i := range m.all {
		m.all[i].d, m.all[i].ends.of = nil, nil
	}
	m.all = m.all[:0]
	usedMarks.Put(m)
}

func (m *marks) of(d *dimension) *law.Mark {
	if m == nil {
		return nil
	}
	for i := range m.all {
		if k := &m.all[i]; k.d == d {
			if e := d.law.ends; e != nil && e.found {
				return k.ends.right(e)
			}
			return &k.m
		}
	}
	return nil
}

// ends are those of d, nil if the attempt left before its books were kept.
func (m *marks) ends(d *dimension) *endMarks {
	if m == nil {
		return nil
	}
	for i := range m.all {
		if k := &m.all[i]; k.d == d && k.ends.of == d.law.ends {
			return &k.ends
		}
	}
	return nil
}

// enter enters in the books of the laws what the provider charges at now, and returns
// the call's place in them. It writes to m, if that is not nil.
func (p *Path) enter(now time.Time, c limit.Cost, m *marks) *marks {
	if m != nil {
		m.all = m.all[:0]
	}
	for _, s := range p.scopes {
		if s.some.Load() {
			s.mu.Lock()
			m = s.enter(now, limit.Cost{}, c, m)
			s.mu.Unlock()
		}
	}
	return m
}

// enter is what [Path.enter] does in one scope. The caller holds s.mu.
func (s *Scope) enter(now time.Time, held, c limit.Cost, m *marks) *marks {
	for _, d := range s.dims {
		if d.law.learner != nil {
			if m == nil {
				m = usedMarks.Get().(*marks)
			}
			k := m.add(d)
			if e := d.law.ends; e != nil {
				e.leave(&k.ends, now, part(d.limit.Unit, held))
			}
			if !d.law.found() {
				d.law.learner.Enter(&k.m, now, part(d.limit.Unit, c))
			}
		}
	}
	return m
}

// correct corrects the entry made at sent: a refund counts from sent, a further
// charge counts from now.
func (p *Path) correct(sent, now time.Time, c limit.Cost) {
	for _, s := range p.scopes {
		if s.some.Load() {
			s.mu.Lock()
			s.correct(sent, now, c)
			s.mu.Unlock()
		}
	}
}

// correct is what [Path.correct] does in one scope. The caller holds s.mu.
func (s *Scope) correct(sent, now time.Time, c limit.Cost) {
	for _, d := range s.dims {
		if d.law.learner != nil && !d.law.found() {
			d.law.learner.Corrected(sent, now, part(d.limit.Unit, c))
		}
	}
}

// saw shows a quota to the learner of d, and reports whether another law is
// believed now.
func (d *dimension) saw(now time.Time, m *law.Mark, q headers.Quota) (changed bool) {
	if d.law.learner == nil || m == nil || d.law.atEnd {
		return false // a law of charges at the end is recorded, or found by ends, and ends by refusals
	}
	precise := d.law.precise
	if precise == 0 && q.Reset.OK && q.Reset.D > 0 && q.Reset.D%time.Second == 0 {
		precise = time.Second
	}
	e := law.Evidence{
		Mark: *m, Answered: now, Limit: law.Count(q.Limit), Remaining: law.Count(q.Remaining),
		Reset: law.Span(q.Reset), Precise: precise,
	}
	if !q.Limit.OK && d.said > 0 {
		e.Limit = law.Count{N: d.said, OK: true}
	}
	switch d.law.row.Reset {
	case profile.ResetNone:
		if d.law.row.Source != "" {
			e.Reset = law.Span{} // it tells nothing there
		}
	}
	_, changed = d.law.learner.Saw(e)
	return changed
}

// doubted takes in that an attempt was refused that left with those marks. The
// limits concerned may lose their law; all others were not asked.
func (d *dimension) doubted(now time.Time, m *law.Mark, concerned bool) (changed bool) {
	if concerned {
		d.law.full, d.law.inner = false, false
	}
	if d.law.learner == nil || m == nil {
		return false
	}
	room := concerned && d.law.learner.Room(m)
	b, changed := d.law.learner.Saw(law.Evidence{Mark: *m, Answered: now, Refused: true, Room: room})
	if changed && d.law.atEnd {
		d.law.until = b.Until // no reading will teach it again
	}
	return changed
}

// full reports whether the books of a window that is believed were full when an attempt
// left with that mark: they explain its refusal.
func (d *dimension) full(m *law.Mark) bool {
	return d.law.learner != nil && m != nil && d.belief().Law.Shape.Windowed() && !d.law.learner.Room(m)
}

package limit

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"
)

// A Snapshot is the state of one scope at one instant, for people and metrics.
// That of a [Limiter] is the root scope, and has the others in Scopes.
type Snapshot struct {
	Scope   string // name; empty for the root
	Options ScopeOptions
	Limits  []LimitState

	Waiting int           // callers in the line that take from the scope
	Oldest  time.Duration // how long the one who came first of them has waited

	InFlight    int // open reservations
	MaxInFlight int // 0 = unlimited

	PausedUntil time.Time // zero = not paused
	PausedBy    string    // who asked for the pause, as said in [Pause]
	PausedWhy   string    // and the reason
	ProbeAt     time.Time // when a single call goes during the pause; zero = never
	Probing     bool      // such a call is under way

	// Degraded says why the limits are not kept as they should be; empty: they are.
	// An example is a store that is away, so that each process keeps to its share.
	// The state is then that of what stands in for it. A [Limiter] is never
	// degraded; only the root has it.
	Degraded string

	// Served is what was admitted over all time, as settled so far: open
	// reservations count in full, ended ones with what they really cost.
	Served Cost

	// Scopes are the other scopes that the limiter keeps now, in order of their
	// names. Only the root has them.
	Scopes []Snapshot
}

// LimitState is one limit in a [Snapshot].
type LimitState struct {
	Limit            // in force
	Configured Limit // as configured; the zero Rate if it was only put in force
	Law        Law   // how it counts; the zero Law is a bucket
	Capacity   int64 // burst in force, units
	Credit     int64 // units there now, rounded down; 0 in debt
	Held       int64 // of Credit, what a guard holds back now
	Debt       int64 // units owed, rounded up; 0 with credit
	Waiting    int64 // units asked for by those who wait for this limit
}

// Snapshot returns the state now, and changes nothing. It takes the lock for a few
// scopes at a time. So with very many of them the last were read a little later
// than the first; each scope is read at one instant.
func (l *Limiter) Snapshot() Snapshot {
	root, n := l.rootSnapshot()
	if n == 0 {
		return root
	}
	scopes, limits := l.allScopes(n)
	root.Scopes = l.snapshots(scopes, limits, l.oldestOf())
	return root
}

// few is how many scopes or lanes a snapshot visits while it holds the lock once.
const few = 64

// rootSnapshot is the snapshot of the root alone, and how many scopes there are.
func (l *Limiter) rootSnapshot() (root Snapshot, n int) {
	l.lock()
	defer l.mu.Unlock()
	now := l.now()
	l.root.snapshot(l, &root, make([]LimitState, 0, len(l.root.limits)), now)
	if l.oldest != nil {
		root.Oldest = time.Duration(now - l.oldest.joined)
	}
	return root, l.scopes.n
}

// allScopes returns the scopes by name, and how many limits they have. There are about
// n of them.
func (l *Limiter) allScopes(n int) (scopes []*scope, limits int) {
	l.lock()
	l.scopes.walks++
	l.mu.Unlock()
	scopes = make([]*scope, 0, n+few)
	for at, more := 0, true; more; more = at > 0 {
		l.lock()
		before := len(scopes)
		at, scopes = l.scopes.walk(at, few, scopes)
		for _, s := range scopes[before:] {
			limits += len(s.limits)
		}
		if at == 0 {
			l.scopes.walks--
		}
		l.mu.Unlock()
	}

	// Pointers are sorted, and not the larger snapshots. Names never change.
	slices.SortFunc(scopes, func(a, b *scope) int { return strings.Compare(a.name, b.name) })
	return scopes, limits
}

// oldestOf is when the call that waits longest came, for each scope in which one waits.
func (l *Limiter) oldestOf() map[*scope]int64 {
	type came struct {
		s  *scope
		at int64
	}
	oldest, part := map[*scope]int64{}, make([]came, 0, few)
	// From the back: a lane that goes leaves its place to the last one, which was seen.
	for at := math.MaxInt; at > 0; {
		part = part[:0]
		l.lock()
		at = min(at, len(l.parked))
		first := max(0, at-few)
		for _, k := range l.parked[first:at] {
			for _, s := range k.path {
				part = append(part, came{s, k.head.joined})
			}
		}
		l.scopes.count(at - first)
		at = first
		l.mu.Unlock()
		for _, c := range part { // a map that grows is no work to do under the lock
			if t, ok := oldest[c.s]; !ok || c.at < t {
				oldest[c.s] = c.at
			}
		}
	}
	return oldest
}

// snapshots are those of scopes, which have about so many limits. Under the lock they
// are written to the same small memory over and over. New memory is slow to write to:
// the system hands out each page of it at the first write.
func (l *Limiter) snapshots(scopes []*scope, limits int, oldest map[*scope]int64) []Snapshot {
	all := make([]Snapshot, 0, len(scopes))
	states := make([]LimitState, 0, limits)
	var some [few]Snapshot
	var theirs []LimitState
	for part := range slices.Chunk(scopes, few) {
		theirs = theirs[:0]
		l.lock()
		now := l.now()
		for i, s := range part {
			theirs = s.snapshot(l, &some[i], theirs, now)
		}
		l.mu.Unlock()
		for i, s := range part {
			one, before := &some[i], len(states)
			states = append(states, one.Limits...)
			one.Limits = states[before:len(states):len(states)]
			if at, ok := oldest[s]; ok && one.Waiting > 0 {
				one.Oldest = time.Duration(now - at)
			}
			all = append(all, *one)
		}
	}
	// A scope that went and came again while they were collected is there twice.
	return slices.CompactFunc(all, func(a, b Snapshot) bool { return a.Scope == b.Scope })
}

// SnapshotOf returns the state of one scope now, without others in it, and changes
// nothing. It takes the same time for any number of scopes and callers. A scope that
// the limiter does not keep has no limits. The empty name is the root, and only of the
// root is Oldest known.
func (l *Limiter) SnapshotOf(scope string) Snapshot {
	l.lock()
	defer l.mu.Unlock()
	s := &l.root
	if scope != "" {
		if s = l.scopes.find(scope); s == nil {
			return Snapshot{Scope: scope}
		}
	}
	var one Snapshot
	now := l.now()
	s.snapshot(l, &one, nil, now)
	if s == &l.root && l.oldest != nil {
		one.Oldest = time.Duration(now - l.oldest.joined)
	}
	return one
}

// snapshot writes the state of s to one, and appends those of its limits.
func (s *scope) snapshot(l *Limiter, one *Snapshot, states []LimitState, now int64) []LimitState {
	*one = Snapshot{
		Scope: s.name, Options: s.opt, Waiting: s.waiting(),
		MaxInFlight: s.places(), Served: s.served,
	}
	if s.pausedUntil > now {
		one.PausedUntil = l.base.Add(time.Duration(s.pausedUntil))
		if p := s.pause; p != nil {
			one.PausedBy, one.PausedWhy = p.by, p.why
			if p.after > 0 {
				one.ProbeAt, one.Probing = l.base.Add(time.Duration(p.probeAt)), p.probe != 0
			}
		}
	}
	var asked amounts
	if b := s.busy; b != nil {
		one.InFlight, one.Served = b.open, s.served.plus(b.debits).minus(b.refunds)
		asked = b.asked.amounts()
	}
	before := len(states)
	for i := range s.limits {
		b := &s.limits[i]
		b.advance(now)
		c := b.credit()
		state := LimitState{
			Limit: *b.cfg, Law: b.cfg.Law, Capacity: b.capacity(),
			Credit: max(0, c), Held: max(0, c-max(0, b.atOnce(now))), Debt: max(0, -c), Waiting: asked.in(b.unit),
		}
		if b.conf != nil {
			state.Configured = *b.conf
		}
		states = append(states, state)
	}
	states = s.snapshotSpent(l, states, now)
	one.Limits = states[before:len(states):len(states)]
	return states
}

// String reads like "tpm: 30000/1m0s, 4200 of 5000 left, 900 waiting".
func (s LimitState) String() string {
	text := fmt.Sprintf("%s: %v, ", s.Name, s.Rate)
	if s.Debt > 0 {
		text += fmt.Sprintf("%d owed", s.Debt)
	} else {
		whole := s.Capacity
		if s.Guard > 0 { // the limit is there whole, and the guard lets less go at once
			whole = max(whole, s.Rate.N)
		}
		text += fmt.Sprintf("%d of %d left", s.Credit, whole)
	}
	if s.Held > 0 {
		text += fmt.Sprintf(" (%d at once)", s.Credit-s.Held)
	}
	if shape := s.Law.Shape; shape != ShapeUnknown {
		text += ", " + shape.String()
	}
	if s.Waiting > 0 {
		text += fmt.Sprintf(", %d waiting", s.Waiting)
	}
	if s.Configured != (Limit{}) && s.Configured.Rate != s.Rate {
		text += fmt.Sprintf(" (%v configured)", s.Configured.Rate)
	}
	return text
}

// LogValue is the state as a group for [log/slog].
func (s LimitState) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("name", s.Name),
		slog.String("rate", s.Rate.String()),
		slog.Int64("capacity", s.Capacity),
		slog.Int64("credit", s.Credit),
		slog.Int64("held", s.Held),
		slog.Int64("debt", s.Debt),
		slog.Int64("waiting", s.Waiting),
	}
	if s.Law.Shape != ShapeUnknown {
		attrs = append(attrs, slog.String("law", s.Law.Shape.String()), slog.String("law_why", s.LawWhy))
	}
	if s.Configured.Rate != s.Rate {
		attrs = append(attrs, slog.String("configured", s.Configured.Rate.String()))
	}
	return slog.GroupValue(attrs...)
}

// shown is how many scopes of a snapshot texts and logs name.
const shown = 10

// String has a line for each scope, such as
//
//	root: tpm: 30000/1m0s, 4200 of 5000 left; 3 in flight, 2 waiting
//
// and at most ten scopes.
func (s Snapshot) String() string {
	var b strings.Builder
	s.line(&b)
	for i, one := range s.Scopes {
		if i == shown {
			fmt.Fprintf(&b, "\nand %d more scopes", len(s.Scopes)-shown)
			break
		}
		b.WriteByte('\n')
		one.line(&b)
	}
	return b.String()
}

func (s *Snapshot) line(b *strings.Builder) {
	name := s.Scope
	if name == "" {
		name = "root"
	}
	b.WriteString(name + ": ")
	for i, state := range s.Limits {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(state.String())
	}
	if len(s.Limits) == 0 {
		b.WriteString("no limits")
	}
	fmt.Fprintf(b, "; %d", s.InFlight)
	if s.MaxInFlight > 0 {
		fmt.Fprintf(b, " of %d", s.MaxInFlight)
	}
	fmt.Fprintf(b, " in flight, %d waiting", s.Waiting)
	if s.Oldest > 0 {
		fmt.Fprintf(b, " for up to %v", round(s.Oldest))
	}
	if s.Degraded != "" {
		b.WriteString("; degraded: " + s.Degraded)
	}
	if !s.PausedUntil.IsZero() {
		fmt.Fprintf(b, "; paused until %v", s.PausedUntil.Format(time.RFC3339))
		if s.PausedBy != "" {
			b.WriteString(" by " + s.PausedBy)
		}
		if s.PausedWhy != "" {
			b.WriteString(" (" + s.PausedWhy + ")")
		}
	}
}

// LogValue is the state as a group for [log/slog], with a group for each scope in it, ten
// at most, and their number.
func (s Snapshot) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.Int("in_flight", s.InFlight),
		slog.Int("waiting", s.Waiting),
	}
	if s.Scope != "" {
		attrs = append(attrs, slog.String("scope", s.Scope))
	}
	if s.Oldest > 0 {
		attrs = append(attrs, slog.Duration("oldest", s.Oldest))
	}
	if s.Degraded != "" {
		attrs = append(attrs, slog.String("degraded", s.Degraded))
	}
	if !s.PausedUntil.IsZero() {
		attrs = append(attrs, slog.Time("paused_until", s.PausedUntil), slog.String("paused_by", s.PausedBy), slog.String("paused_why", s.PausedWhy))
	}
	for _, state := range s.Limits {
		attrs = append(attrs, slog.Any(state.Name, state.LogValue()))
	}
	if len(s.Scopes) > 0 {
		attrs = append(attrs, slog.Int("scopes", len(s.Scopes)))
		for _, one := range s.Scopes[:min(len(s.Scopes), shown)] {
			attrs = append(attrs, slog.Any(one.Scope, one.LogValue()))
		}
	}
	return slog.GroupValue(attrs...)
}

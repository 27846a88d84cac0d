package budget

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

// A Scope is what some limits of a provider have in common, and everything that
// answers taught about them: limits, cuts, drains, the streak of refusals, the
// charge rule. It is an account, a model of an account, or the root, which every
// call takes from. [Budget.Path] finds those of a call.
//
// It may be used by any number of goroutines.
type Scope struct {
	ledger limit.Ledger
	name   string        // in the ledger; "" is the root
	host   string        // of the provider, as people know it
	burst  time.Duration // Options.Burst

	maxPause time.Duration // Options.MaxPause
	own      bool          // the ledger asks for what it has forgotten
	shared   atomic.Bool   // its limits are known to be those of several models
	prices   *Prices       // of the provider

	options atomic.Pointer[limit.ScopeOptions] // nil: the zero ones

	busy    atomic.Bool            // a call used it lately
	gone    atomic.Bool            // the budget dropped it
	some    atomic.Bool            // it has a limit or a streak: else it has nothing to note
	opened  atomic.Bool            // its opening is over
	places  places                 // calls at once
	crowds  atomic.Bool            // places are not zero
	periods map[limit.Unit]*period // of limits whose fields name no window
	taught  atomic.Bool            // it has or had a limit: nothing is tallied for a guess
	inForce atomic.Pointer[[]limit.Limit]

	adopt   sync.Once
	profile *profile.Profile // set once, before the first call
	records bool             // what recorded traffic shows of charges holds for it
	charge  atomic.Uint32    // an estimate.Charge that headers show, plus 1; 0: none
	unmade  atomic.Int64     // output reserved by attempts under way, tokens
	ruled   atomic.Bool      // balances have shown the charge rule
	settles atomic.Bool      // balances have shown that what is reserved is charged, and given back
	looking atomic.Bool      // a limit has books of charges at the end, or had some
	atEnd   atomic.Int32     // charges at the end were found, with balances of readBefore or readAfter: plus 1; 0: no

	doubt  doubt
	others shared // guarded by mu

	// Of an account: who was answered last, and when that attempt left, in
	// nanoseconds since Budget.born.
	answered     atomic.Pointer[Scope]
	answeredSent atomic.Int64

	mu         sync.Mutex // guards below
	kinds      []kind     // of limits, and what they speak of
	dims       []*dimension
	configured []limit.Limit // by the user
	account    bool          // it is one
	of         belongs       // the zero value: no models
	started    bool          // with these
	shape      shape
	rest       time.Time // when the last drain opens or opened
	unused     []quota   // that are no counters
	streak     streak
	blames     blames
	overload   overload
	opening    opening
	tally      *tally // nil until something was used, and where limits are known
	usedUp     allowances
	probing    time.Time // until then a pause may be in force that has probes
	asked      time.Time // when it began, or was renewed
	ended      rows      // by the last answer that ended one
	gate       gate
}

// Adopt gives the scope the profile of its provider. The first profile counts;
// later ones change nothing, so that Transports that share a budget cannot undo
// each other's limits or empty credit that is in use. It reports whether p was
// the first.
func (s *Scope) Adopt(now time.Time, p profile.Profile) (first bool) {
	s.adopt.Do(func() {
		first = true
		s.mu.Lock()
		defer s.mu.Unlock()
		s.profile, s.records = &p, p.AsRecorded()
		s.shape = shapeOf(&p, s.burst)
		s.start()
		for _, d := range s.dims {
			if d.configured.Unit == limit.Tokens {
				d.configured.Unit = s.shape.tokens
			}
			s.study(d, now)
			s.apply(d, now)
			if p.StartEmpty {
				s.ledger.EnforceScopeLimit(s.name, d.limit) // makes the scope, if it is not there
				s.ledger.DrainScope(s.name, d.limit.Name, 0, 0)
			}
		}
	})
	return first
}

// Rule is the charge rule in force at now for a request. In this order:
//
//   - what headers have shown, if that is followed
//   - what recorded traffic shows of the endpoint and the model: [profile.DebitFor]
//   - the profile's
func (s *Scope) Rule(now time.Time, r *estimate.Request) estimate.Rule {
	rule, _ := s.rules(r, func() time.Time { return now })
	return rule
}

// rules is Rule, which asks for the time only where the rule depends on it. atEnd is
// true if recorded traffic shows that the token fields of the answer are of its end.
func (s *Scope) rules(r *estimate.Request, now func() time.Time) (rule estimate.Rule, atEnd bool) {
	rule = s.profile.Rule
	if len(s.profile.Factors) > 0 { // few have any: the others need not be copied as a whole
		rule = s.profile.RuleFor(r.Model)
	}
	if c := s.charge.Load(); c > 0 {
		return learned(rule, estimate.Charge(c-1)), false
	}
	if s.records {
		if d, ok := profile.DebitFor(s.profile.Name, r.Kind, r.Model, r.Stream, dated(now(), s.profile)); ok {
			return d.Rule(rule, r.Traits&estimate.WithTools != 0), d.AtEnd
		}
	}
	return rule, false
}

// inForceFor is the charge of the rule that a call of that price is under now.
func (s *Scope) inForceFor(p *Price) estimate.Charge {
	if c := s.charge.Load(); c > 0 {
		return estimate.Charge(c - 1)
	}
	return p.rule.Charge
}

// learned is a rule as headers show it: they tell the charge, and nothing beside.
func learned(r estimate.Rule, c estimate.Charge) estimate.Rule {
	if c != r.Charge {
		r.Charge, r.ReserveCap = c, c == estimate.ChargeSettle || c == estimate.ChargeEstimate
	}
	return r
}

// configure says what start gives to a new scope.
func (s *Scope) configure(limits []limit.Limit, o limit.ScopeOptions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.configured = limits
		s.options.Store(&o)
	}
}

// opt is how the scope was configured beside its limits.
func (s *Scope) opt() limit.ScopeOptions {
	if o := s.options.Load(); o != nil {
		return *o
	}
	return limit.ScopeOptions{}
}

// isOf notes which models s is of.
func (s *Scope) isOf(of belongs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of = of
}

// isAccount notes that limits of accounts are those of s.
func (s *Scope) isAccount() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.account = true
}

// start gives a new account the limits that the user configured, with the capacity
// that they start with: credit can be cut later, but not raised. The caller holds
// s.mu.
func (s *Scope) start() {
	if s.started {
		return
	}
	s.started = true
	for i, l := range s.starts(s.configured) {
		if slices.ContainsFunc(s.dims, func(d *dimension) bool { return d.limit.Name == l.Name }) {
			continue // another budget over the ledger has set it
		}
		s.add(&dimension{limit: l, configured: s.configured[i]})
		if !s.own {
			s.ledger.SetScopeLimit(s.name, l)
		}
	}
	s.publish()
	if o := s.opt(); !s.own && o != (limit.ScopeOptions{}) {
		s.ledger.SetScope(s.name, o)
	}
}

// inherit takes over the limits that the scope has in a ledger already: as they
// were configured, and as another budget has put them in force. A copy of a limit
// that is configured further out is known by its unit and window.
func (s *Scope) inherit(snap limit.Snapshot, outer []*Scope) {
	for _, l := range snap.Limits {
		d := &dimension{limit: l.Limit, configured: l.Configured}
		for _, o := range outer {
			for _, of := range o.configuredDims() {
				if l.Configured.Rate.N == 0 && of.limit.Unit == l.Unit && of.limit.Rate.Window == l.Rate.Window {
					d.configured, d.copied = of.configured, true
				}
			}
		}
		if d.configured.Rate.N == 0 {
			d.said = l.Rate.N
		}
		s.mu.Lock()
		if s.find(l.Unit, l.Rate.Window) == nil {
			s.add(d)
			s.publish()
		}
		s.mu.Unlock()
	}
}

// complete writes what was configured into the state of the scope, which the
// ledger knows no more once it has forgotten the scope.
func (s *Scope) complete(snap *limit.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range snap.Limits {
		l := &snap.Limits[i]
		for _, d := range s.dims {
			if d.limit.Name == l.Name {
				l.Configured = d.configured
			}
		}
	}
}

// add adds a dimension. The caller holds s.mu.
func (s *Scope) add(d *dimension) {
	s.dims = append(s.dims, d)
	s.some.Store(true)
	s.study(d, time.Now())
}

// publish keeps the limits in force for a ledger that has forgotten the scope. It
// cannot ask for s.mu, which is held while the ledger is called. The caller holds
// s.mu.
func (s *Scope) publish() {
	ls := make([]limit.Limit, len(s.dims))
	for i, d := range s.dims {
		ls[i] = d.limit
	}
	s.inForce.Store(&ls)
}

// limits are those in force.
func (s *Scope) limits() []limit.Limit {
	if ls := s.inForce.Load(); ls != nil {
		return *ls
	}
	return nil
}

// apply brings the ledger to what is known of d. It reports a change. The caller
// holds s.mu.
func (s *Scope) apply(d *dimension, now time.Time) (old limit.Limit, changed bool) {
	old = d.limit
	s.heed(now)
	if d.law.stale(now) {
		s.study(d, now)
	}
	if l := d.effective(s.shape, now); l != old {
		d.limit = l
		s.publish()
		s.ledger.EnforceScopeLimit(s.name, l) // cannot fail: every value is within bounds
		if old.Rate.N == 0 && s.settles.Load() {
			s.early(d)
		}
		return old, true
	}
	return old, false
}

// A quota is the unit and the window of a header's fields.
type quota struct {
	unit   limit.Unit
	window time.Duration
}

// counts reports whether fields of a unit and a window are a counter, as far as is
// known. The caller holds s.mu.
func (s *Scope) counts(u limit.Unit, window time.Duration, now time.Time) bool {
	if d := s.find(u, window); d != nil {
		return !d.law.row.Unused
	}
	if slices.Contains(s.unused, quota{u, window}) {
		return false
	}
	if row, ok := recorded(s.profile, u, window, now); ok && row.Unused {
		s.unused = append(s.unused, quota{u, window})
		return false
	}
	return true
}

// mirror adds a limit like d, which belongs to the scope from, unless there is one
// of its unit and window. It reports whether it did. The provider drains a limit that
// open calls give back to, so they give back to the copy as well.
func (s *Scope) mirror(now time.Time, from *Scope, d dimension) (copied bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(d.limit.Unit, d.limit.Rate.Window) != nil {
		return false
	}
	d.copied = true
	of := d.law.learner
	s.add(&d)
	if of != nil && d.law.learner != nil {
		// Books that began with the refusal would count twice what was used before it.
		from.mu.Lock()
		d.law.learner = of.Copy()
		from.mu.Unlock()
	}
	s.publish()
	if l, ok := s.ledger.(interface {
		CopyScopeLimit(from, scope string, l limit.Limit) error
	}); ok && from.ledger == s.ledger {
		l.CopyScopeLimit(from.name, s.name, d.limit)
	} else {
		s.ledger.EnforceScopeLimit(s.name, d.limit)
		s.dims[len(s.dims)-1].born = now
	}
	return true
}

// configuredDims are copies of the dimensions that are configured.
func (s *Scope) configuredDims() []dimension {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []dimension
	for _, d := range s.dims {
		if d.configured.Rate.N > 0 {
			all = append(all, *d)
		}
	}
	return all
}

// copies reports whether the limit of that unit and window is a copy.
func (s *Scope) copies(u limit.Unit, window time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.find(u, window)
	return d != nil && d.copied
}

// has reports whether there is a limit of that unit and window and, unless n is 0,
// of that size.
func (s *Scope) has(u limit.Unit, window time.Duration, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.find(u, window)
	return d != nil && (n == 0 || d.configured.Rate.N == n || d.said == n)
}

// sized is the window of the limit of that unit and size, seen or configured
// before; 0 if there is none.
func (s *Scope) sized(u limit.Unit, n int64) time.Duration {
	if !s.some.Load() {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.dims {
		if d.limit.Unit == u && (d.said == n || d.configured.Rate.N == n) {
			return d.limit.Rate.Window
		}
	}
	return 0
}

// inWindow is what was used of the limit of that unit and window, in the window
// that ends now.
func (s *Scope) inWindow(now time.Time, u limit.Unit, window time.Duration) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.find(u, window); d != nil {
		return d.used.in(now, window)
	}
	return 0
}

// find returns the dimension of a unit and a window, nil if there is none. The
// caller holds s.mu.
func (s *Scope) find(u limit.Unit, window time.Duration) *dimension {
	for _, d := range s.dims {
		if d.limit.Unit == u && d.limit.Rate.Window == window {
			return d
		}
	}
	return nil
}

// ask makes room for a call of cost c where the provider has shown to hold less.
// Such a call must wait until as much as it costs has been refilled. At a smaller
// capacity it would go when the bucket is full, long before that, and leave debt.
func (s *Scope) ask(now time.Time, c limit.Cost) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.dims {
		if n := part(d.limit.Unit, c); n > d.asked {
			d.asked = n
			if d.shown > 0 && n > d.limit.Burst {
				s.apply(d, now)
			}
		}
	}
}

// use notes what an attempt that left at sent takes: its cost when it leaves, less when
// it is refused or settled.
func (s *Scope) use(now, sent time.Time, c limit.Cost) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes(now, sent, c)
}

// notes is use. The caller holds s.mu.
func (s *Scope) notes(now, sent time.Time, c limit.Cost) {
	for _, d := range s.dims {
		if n := part(d.limit.Unit, c); n != 0 {
			d.used.add(now, d.limit.Rate.Window, n)
			if r := d.waits.sends; r != nil {
				r.addAt(now, sent, d.limit.Rate.Window, n)
			}
		}
		if d.renews(now) {
			s.apply(d, now)
		}
	}
}

// settled is what [Path.settled] does in one scope. Learned limits that are over come
// back in gone, for [Scope.forget].
func (s *Scope) settled(now, sent time.Time, wrong, rest limit.Cost) (changes []change, gone []forgotten) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear(sent)
	changes, gone = s.silence(now, sent)
	if wrong != (limit.Cost{}) {
		s.correct(sent, now, wrong)
	}
	if rest != (limit.Cost{}) {
		s.notes(now, sent, rest)
	}
	return changes, gone
}

// admitted notes that the attempt that left at sent was not refused. It ends the
// streak, and cut rates grow back. An answer of a server that is busy ends no row of
// overloads.
func (s *Scope) admitted(now, sent time.Time, number uint64, busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = rows{number, s.streak.n, s.usedUp.probes, s.overload.row}
	s.streak.admitted(sent)
	s.blames = blames{}
	if !busy {
		s.overload.answered(sent)
	}
	s.usedUp.answered(sent)
	for i := 0; i < len(s.dims); i++ {
		d := s.dims[i]
		if d.grow(now) {
			s.drop(i)
			i--
		} else if d.cut.active() || d.waits.n > 0 || d.law.stale(now) {
			s.apply(d, now)
		}
	}
}

// rows are the refusals in a row that the header of an answer has ended. The body of
// that answer may turn out to be a refusal: then the rows go on.
type rows struct {
	by               uint64 // the number of the attempt
	refusals, probes int
	overloaded       bool
}

// takeBack makes the rows go on that the attempt of that number has ended. The caller
// holds s.mu.
func (s *Scope) takeBack(number uint64) {
	r := s.ended
	if r.by != number || number == 0 {
		return
	}
	s.ended = rows{}
	s.streak.n = max(s.streak.n, r.refusals)
	s.usedUp.probes = max(s.usedUp.probes, r.probes)
	s.overload.row = s.overload.row || r.overloaded
}

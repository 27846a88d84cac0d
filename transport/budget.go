package transport

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

// Limiter is what a Transport needs of a limiter. [*limit.Limiter] is one.
type Limiter interface {
	Acquire(context.Context, limit.Cost) (limit.Reservation, error)
	AcquireFirst(context.Context, limit.Cost) (limit.Reservation, error)
	SetLimit(limit.Limit) error
	Pause(time.Duration)
	Drain(name string, keep int64, d time.Duration) bool
	Snapshot() limit.Snapshot
}

// A dimension is one limit of the budget and what is known of it: what the user
// configured, what the provider last said, and what it has shown to hold.
type dimension struct {
	limit      limit.Limit // as handed to the limiter last
	configured limit.Limit // zero Rate: learned
	said       int64       // the provider's own limit, 0 unknown
	shown      int64       // largest remaining plus own debit seen, 0 unknown
	asked      int64       // largest cost asked of it
	cut        cut
	used       recent // of it, by us

	// refused is when an attempt was refused last that left after the refusal
	// before was waited off; zero: not yet.
	refused time.Time
}

// budget joins the limiter with what responses teach about it.
type budget struct {
	limiter Limiter
	trace   *Trace
	burst   time.Duration // Options.Burst

	mu     sync.Mutex // guards below
	dims   []*dimension
	shape  shape
	rest   time.Time // when the last drain opens or opened
	streak streak
}

// shape is how a provider's limits behave, in plain values.
type shape struct {
	requestBurst, tokenBurst time.Duration // capacity, as a time of the rate
	headroom                 int64         // per cent of each limit that is used
	tokens                   limit.Unit    // what a limit on tokens counts
	refusedFree              bool          // a refused call is not counted as a request
}

// shapeOf reads a profile.
func shapeOf(p profile.Profile) shape {
	s := shape{requestBurst: time.Second, tokenBurst: 10 * time.Second, headroom: 100, tokens: limit.Tokens}
	if p.RequestBurst > 0 {
		s.requestBurst = p.RequestBurst
	}
	if p.TokenBurst > 0 {
		s.tokenBurst = p.TokenBurst
	}
	if p.Headroom > 0 {
		s.headroom = p.Headroom
	}
	s.refusedFree = p.RefusedFree
	if p.InputOnly {
		s.tokens = limit.Input
	}
	return s
}

// reshape takes on a profile's shape. A burst set by hand goes before it, for
// learned limits too.
func (b *budget) reshape(p profile.Profile) {
	b.shape = shapeOf(p)
	if b.burst > 0 {
		b.shape.requestBurst, b.shape.tokenBurst = b.burst, b.burst
	}
}

// configure makes the limiter, or takes the one that was given.
func (b *budget) configure(o *Options) error {
	b.trace, b.burst, b.limiter = &o.Trace, o.Burst, o.Limiter
	b.reshape(o.Provider)
	var configured []limit.Limit
	if b.limiter == nil {
		configured = limits(o)
		l, err := limit.New(limit.Options{
			Limits: b.shape.shaped(configured), MaxInFlight: o.MaxInFlight, MaxQueue: o.MaxQueue, MaxWait: o.MaxWait,
		})
		if err != nil {
			return err
		}
		b.limiter = l
	}
	for _, s := range b.limiter.Snapshot().Limits {
		d := &dimension{limit: s.Limit, configured: s.Limit}
		for _, c := range configured {
			if c.Unit == s.Unit && c.Rate == s.Rate && (c.Name == s.Name || c.Name == "") {
				d.configured.Burst, d.configured.Largest = c.Burst, c.Largest
			}
		}
		b.dims = append(b.dims, d)
	}
	return nil
}

// shaped gives the limits whose burst nobody set the burst of the profile, so
// that they start with as much as the provider is known to hold: credit can be
// cut later, but not raised.
func (s shape) shaped(configured []limit.Limit) []limit.Limit {
	ls := slices.Clone(configured)
	for i := range ls {
		if l := &ls[i]; l.Burst == 0 && l.Rate.N > 0 && l.Rate.Window > 0 {
			l.Burst = s.burst(*l)
			if l.Largest == 0 {
				l.Largest = l.Rate.N
			}
		}
	}
	return ls
}

// limits are those that the options set.
func limits(o *Options) []limit.Limit {
	var ls []limit.Limit
	for _, f := range []struct {
		n      int64
		unit   limit.Unit
		window time.Duration
	}{
		{o.RPM, limit.Requests, time.Minute},
		{o.RPD, limit.Requests, 24 * time.Hour},
		{o.TPM, limit.Tokens, time.Minute},
		{o.TPD, limit.Tokens, 24 * time.Hour},
		{o.InputTPM, limit.Input, time.Minute},
		{o.OutputTPM, limit.Output, time.Minute},
	} {
		if f.n > 0 {
			ls = append(ls, limit.Limit{
				Name: dimensionName(f.unit, f.window), Unit: f.unit, Rate: limit.Rate{N: f.n, Window: f.window},
			})
		}
	}
	ls = append(ls, o.Limits...)
	for i := range ls {
		if l := &ls[i]; o.Burst > 0 && l.Burst == 0 && l.Rate.Window <= time.Minute {
			l.Burst = max(1, l.Rate.In(o.Burst))
		}
	}
	return ls
}

// adopt gives every limit the shape that the provider's profile has.
func (b *budget) adopt(p profile.Profile) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reshape(p)
	for _, d := range b.dims {
		if d.configured.Unit == limit.Tokens {
			d.configured.Unit = b.shape.tokens
		}
		b.apply(d)
		if p.StartEmpty {
			b.limiter.Drain(d.limit.Name, 0, 0)
		}
	}
}

// dimensionName is how errors and snapshots call a limit.
func dimensionName(u limit.Unit, window time.Duration) string {
	switch window {
	case time.Second:
		return u.String() + " per second"
	case time.Minute:
		return u.String() + " per minute"
	case time.Hour:
		return u.String() + " per hour"
	case 24 * time.Hour:
		return u.String() + " per day"
	}
	return u.String() + " per " + window.String()
}

// ceiling is the provider's limit as far as is known, in units per window: the
// lower of what was configured and what it says. 0 is unknown.
func (d *dimension) ceiling() int64 {
	n := d.configured.Rate.N
	if n == 0 || d.said > 0 && d.said < n {
		n = d.said
	}
	return n
}

// ask makes room for a call of cost c where what was shown is less: the call
// must wait until as much as it costs has been refilled. Left at a smaller
// capacity it would leave debt when the bucket is full, long before that.
func (b *budget) ask(c limit.Cost) {
	b.mu.Lock()
	for _, d := range b.dims {
		if n := part(d.limit.Unit, c); n > d.asked {
			d.asked = n
			if d.shown > 0 && n > d.limit.Burst {
				b.apply(d)
			}
		}
	}
	b.mu.Unlock()
}

// use notes what an attempt takes of the budget: its cost when it leaves, less
// when it is refused or settled.
func (b *budget) use(now time.Time, c limit.Cost) {
	b.mu.Lock()
	for _, d := range b.dims {
		d.used.add(now, d.limit.Rate.Window, part(d.limit.Unit, c))
	}
	b.mu.Unlock()
}

// sustained is the share of the ceiling, in parts, that used units in the
// window that ends now are; whole if that does not tell what the provider
// allows. It does when the refusal before this one was about a window ago: then
// we have been held back all the time.
func (d *dimension) sustained(now time.Time, used int64) int64 {
	span, window := now.Sub(d.refused), d.limit.Rate.Window
	if ceiling := d.ceiling(); used < ceiling && span > window*3/4 && span < window*2 {
		return int64(float64(max(0, used)) / float64(ceiling) * whole)
	}
	return whole
}

// effective is the limit to run a dimension with. Its rate is never above what
// was configured, nor above what the provider says. Its capacity is never above
// what the provider has shown to hold, less what may have been refilled unseen.
// Only what the user configured refuses a cost for its size: a header that says
// little may be wrong, and would never be put right if nothing were sent.
func (d *dimension) effective(s shape) limit.Limit {
	l := d.limit
	l.Unit = d.configured.Unit
	burst := d.configured.Burst
	switch n := d.configured.Rate.N; {
	case n == 0:
		l.Largest, l.Unit = limit.MaxUnits, d.limit.Unit
	case d.configured.Largest > 0:
		l.Largest = d.configured.Largest
	case burst > 0:
		l.Largest = burst
	default:
		l.Largest = n
	}
	l.Rate.N = max(1, d.cut.of(d.ceiling())*s.headroom/100)
	if burst == 0 {
		burst = s.burst(l)
	}
	if d.shown > 0 {
		burst = min(burst, max(d.shown-l.Rate.In(unseen), d.asked))
	}
	l.Burst = max(1, burst)
	return l
}

// unseen is for how long a balance may have been refilled between the two
// moments at which provider and client looked at their clocks.
const unseen = 250 * time.Millisecond

// burst is the capacity where none was set: a time of the rate for windows of a
// minute or less, the whole window for longer ones, since a day's allowance is
// there to be used in bursts.
func (s shape) burst(l limit.Limit) int64 {
	if l.Rate.Window > time.Minute {
		return l.Rate.N
	}
	span := s.tokenBurst
	if l.Unit == limit.Requests {
		span = s.requestBurst
	}
	return max(1, min(l.Rate.In(span), l.Rate.N))
}

// apply brings the limiter to what is known of d, and reports a change. It is
// called with b.mu held.
func (b *budget) apply(d *dimension) (old limit.Limit, changed bool) {
	old = d.limit
	if now := d.effective(b.shape); now != old {
		d.limit = now
		b.limiter.SetLimit(now) // cannot fail: every value is within bounds
		return old, true
	}
	return old, false
}

func (b *budget) find(u limit.Unit, window time.Duration) *dimension {
	for _, d := range b.dims {
		if d.limit.Unit == u && d.limit.Rate.Window == window {
			return d
		}
	}
	return nil
}

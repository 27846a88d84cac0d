package budget

import (
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A dimension is one limit of a scope: as the user configured it, as the provider
// last named it, and the largest balance that the provider has shown.
type dimension struct {
	limit      limit.Limit // in force: as handed to the ledger last
	configured limit.Limit // zero Rate: learned
	said       int64       // the provider's own limit, 0 unknown
	shown      int64       // largest remaining plus own debit seen, 0 unknown
	grain      grain       // of the balances shown
	asked      int64       // largest cost asked of it
	copied     bool        // like one of an outer scope: see Path.mirror
	born       time.Time   // when it was learned: calls from before are not in it
	named      time.Time   // when a header said so last
	times      int         // how often
	silent     int         // answers since then that did not
	answered   bool        // one that was no refusal did
	cut        cut
	newest     newest
	law        lawful
	used       recent    // of it, by this budget
	guessed    time.Time // when a refusal taught it; zero: it was not
	waits      waits     // of a guess

	// refused is when an attempt was refused last that left after the wait of
	// the refusal before; zero: not yet.
	refused time.Time
}

// NameOf is the name of a limit that is configured by [transport.Options] or
// learned from headers, such as "tokens per minute". Errors and snapshots use
// it, and a limiter of your own must use it for a limit that headers shall lower.
//
// [transport.Options]: https://pkg.go.dev/github.com/tripmeter/tripmeter/transport#Options
func NameOf(u limit.Unit, window time.Duration) string {
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

// part is what a limit that counts u takes of c.
func part(u limit.Unit, c limit.Cost) int64 {
	switch u {
	case limit.Requests:
		return c.Requests
	case limit.Input:
		return c.Input
	case limit.Output:
		return c.Output
	}
	return c.Input + c.Output
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

// explains is the use in a window from which on a refusal is this budget's own doing.
// Where calls are charged when they end, the use that has left is an eighth off what
// the provider counts, now and then.
func (d *dimension) explains() int64 {
	n := d.ceiling()
	if d.law.atEnd {
		n -= n / 8
	}
	return n
}

// most is the largest balance that the provider can hold, as far as is known.
func (d *dimension) most() int64 {
	if d.said > 0 {
		return d.said
	}
	return d.configured.Rate.N
}

// unseen is for how long a balance may have been refilled between the two
// moments at which provider and client looked at their clocks.
const unseen = 250 * time.Millisecond

// effective returns the limit to run d with at now. Its rate is never above what
// was configured, nor above what the provider says. Its capacity is never above
// what the provider has shown to hold, less what may have been refilled unseen.
//
// Only a configured limit refuses a cost for its size. A header may be wrong
// about the limit, and if nothing were sent no other header would correct it.
func (d *dimension) effective(s shape, now time.Time) limit.Limit {
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
	headroom := s.headroom
	if d.law.atEnd && d.belief().Law.Shape.Windowed() {
		headroom = 100 // its books see the edges
	}
	l.Rate.N = max(1, d.paced(now)*headroom/100)
	if burst == 0 {
		burst = s.burst(l)
	}
	l.Burst = burst
	d.obey(&l)
	if d.shown > 0 && (!d.law.full || l.Law.Shape != limit.ShapeBucket) {
		l.Burst = min(l.Burst, max(d.shown-l.Rate.In(unseen), d.asked))
	}
	l.Burst = max(1, l.Burst)
	return l
}

// sustained is the share of the ceiling, in parts, that used units in the window
// that ends now are. It is whole if that does not tell what the provider allows.
// It does tell if the refusal before was about a window ago: then the provider
// held us back all the time.
func (d *dimension) sustained(now time.Time, used int64) int64 {
	span, window := now.Sub(d.refused), d.limit.Rate.Window
	if ceiling := d.ceiling(); used < ceiling && span > window*3/4 && span < window*2 {
		return int64(float64(max(0, used)) / float64(ceiling) * whole)
	}
	return whole
}

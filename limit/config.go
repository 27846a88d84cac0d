package limit

import (
	"fmt"
	"time"
)

// A Limit is one bound of a scope: so many units in so long.
type Limit struct {
	// Name is the dimension as errors and snapshots call it, unique within a
	// scope. Empty means unit and window, such as "tokens/1m0s".
	Name string

	// Unit says what is counted. The zero value counts requests.
	Unit Unit

	// Rate is the refill. The zero Rate means unset: no limit.
	Rate Rate

	// Burst is how much may go in one instant after idling, in units. It is
	// not an allowance per window: see [Limit.Most]. Set by hand it is also
	// the largest admissible cost: more is refused at once.
	//
	// Zero means the default: for windows up to a minute, one second of the
	// rate for requests and ten seconds for tokens, at least 1; the whole
	// window for longer ones, since a day's allowance is spent in bursts.
	// Costs above a default burst but within the rate's N wait for a full
	// bucket and leave debt; only a cost above N is refused.
	Burst int64

	// Largest is the largest admissible cost, in units. Zero means the Burst
	// where that is set by hand, else the rate's N. It may be above the burst:
	// such a cost waits for a full bucket and leaves debt.
	Largest int64

	// Empty starts the limit with no credit instead of a full burst.
	Empty bool

	// Law is how the limit gives back what was used: in one of the windows of
	// [Shape], or as a bucket, which the zero Law is too. Its Edge is counted from
	// the beginning of 1970 in UTC: time.Duration(t.UnixNano()). A ledger without
	// windows may meter a bucket instead.
	//
	// Under a window the Burst is not read, and Rate.N may be used in each window. A
	// cost above it goes alone, in a window without other use.
	Law Law

	// Guard is how much may go at once, in units, until evidence shows more: see
	// [Guard]. What answers say is left lifts it ([Reservation.Lower]), and attempts
	// that were not refused ([Reservation.Passed]). [Limiter.Drain] brings it back.
	// Zero means no guard.
	Guard int64

	// Margin is how much of what an answer says is left is not used, in units.
	// Windows do not read it. Without a margin the ledger follows the other side's so
	// closely that a call which overtakes another on the way is refused.
	Margin int64

	// ReadAt is the instant of which answers speak that say what is left.
	ReadAt ReadAt

	// LawSince and LawWhy say since when the Law is believed, or was given up, and
	// for what reason. They are for people, and must hold no secret.
	LawSince time.Time
	LawWhy   string
}

// A ReadAt is an instant of which an answer speaks when it says what is left.
type ReadAt uint8

const (
	// ReadAtSending: the balance is that of the instant at which the call was
	// admitted on the other side. It is the zero ReadAt.
	ReadAtSending ReadAt = iota

	// ReadUnsure: it is that of one of the two, until answers agree which. The credit of
	// a bucket falls to the higher of the two bounds. A guard and a window take the lower.
	ReadUnsure

	// ReadAtAnswer: the balance is that of the answer, until answers agree on
	// another instant.
	ReadAtAnswer
)

// Most is the real bound: the most units admitted in any span of time d,
// wherever it begins and both ends included. It is the burst (or the largest
// admissible cost, where that is more) plus what the rate earns in d. So a
// limit of 1 a minute with a burst of 20 may admit 21 in a minute, not 1 and
// not 20. For at most the rate in any window, with room for both ends to be
// counted, use a burst of 1: strict pacing. An unlimited Limit, or a bound
// above [MaxUnits], is MaxUnits.
//
// A Limit whose Law is a window admits its rate in each window that the span touches:
// d/Window rounded down and one more, or two more if windows have edges.
func (l Limit) Most(d time.Duration) int64 {
	if l.Rate.N <= 0 || l.Rate.Window <= 0 {
		return MaxUnits
	}
	if l.Law.Shape.Windowed() {
		windows := int64(max(d, 0)/l.Rate.Window) + 1
		if l.edged() {
			windows++
		}
		if windows > MaxUnits/l.Rate.N {
			return MaxUnits
		}
		return windows * l.Rate.N
	}
	burst, largest := l.sizes()
	return min(max(burst, largest)+l.Rate.In(d), MaxUnits)
}

// edged reports whether windows of the Law have edges: the end of one and the beginning of
// the next lie together.
func (l Limit) edged() bool { return l.Law.Shape == ShapeFixed || l.Law.Shape == ShapeTwoWindows }

// String states the limit and its real bound, such as
// "requests: 60/1m0s after a burst of 1: at most 61 in any 1m0s". Where one cost
// may be larger than the burst, it says so, as the bound is then another one. Of a window
// it says "requests: 60/1m0s by fixed window: at most 60 from one edge to the next".
func (l Limit) String() string {
	name := l.Name
	if name == "" {
		name = l.Unit.String()
	}
	if l.Rate.N <= 0 || l.Rate.Window <= 0 {
		return name + ": unlimited"
	}
	switch {
	case l.edged():
		return fmt.Sprintf("%s: %v by %v: at most %d from one edge to the next", name, l.Rate, l.Law.Shape, l.Rate.N)
	case l.Law.Shape.Windowed():
		return fmt.Sprintf("%s: %v by %v: at most %d in any %v", name, l.Rate, l.Law.Shape, l.Rate.N, l.Rate.Window)
	}
	burst, largest := l.sizes()
	s := fmt.Sprintf("%s: %v after a burst of %d: at most %d in any %v", name, l.Rate, burst, min(burst+l.Rate.N, MaxUnits), l.Rate.Window)
	switch {
	case largest >= MaxUnits && burst < MaxUnits:
		s += "; a larger cost waits for the full burst and is paid off before the next"
	case largest > burst:
		s += fmt.Sprintf("; a larger cost, up to %d, waits for the full burst and is paid off before the next", largest)
	}
	return s
}

// sizes are the burst and the largest admissible cost, in units.
func (l Limit) sizes() (burst, largest int64) {
	burst, largest = l.Burst, l.Burst
	if burst == 0 {
		burst, largest = l.defaultBurst(), l.Rate.N
	}
	if l.Largest > 0 {
		largest = l.Largest
	}
	return burst, largest
}

// defaultBurst is the burst of a Limit that names none.
func (l Limit) defaultBurst() int64 {
	span := l.Rate.Window
	if span <= time.Minute {
		span = 10 * time.Second
		if l.Unit == Requests {
			span = time.Second
		}
	}
	return max(1, min(l.Rate.In(span), l.Rate.N))
}

// checked validates and fills in the name.
func (l Limit) checked(field string) (Limit, error) {
	if l.Unit > Tokens {
		return l, &ConfigError{field + ".Unit", uint8(l.Unit), "must be Requests, Input, Output or Tokens"}
	}
	if l.Burst < 0 || l.Burst > MaxUnits {
		return l, &ConfigError{field + ".Burst", l.Burst, fmt.Sprintf("must be from 0 to %d", int64(MaxUnits))}
	}
	if l.Largest < 0 || l.Largest > MaxUnits {
		return l, &ConfigError{field + ".Largest", l.Largest, fmt.Sprintf("must be from 0 to %d", int64(MaxUnits))}
	}
	if l.Guard < 0 || l.Guard > MaxUnits {
		return l, &ConfigError{field + ".Guard", l.Guard, fmt.Sprintf("must be from 0 to %d", int64(MaxUnits))}
	}
	if l.Margin < 0 || l.Margin > MaxUnits {
		return l, &ConfigError{field + ".Margin", l.Margin, fmt.Sprintf("must be from 0 to %d", int64(MaxUnits))}
	}
	if l.Rate != (Rate{}) {
		if err := l.Rate.check(field); err != nil {
			return l, err
		}
		if l.Law.Shape.Windowed() {
			if err := l.Law.check(l.Rate); err != nil {
				return l, err
			}
		}
	}
	if l.Name == "" {
		l.Name = fmt.Sprintf("%v/%v", l.Unit, l.Rate.Window)
	}
	return l, nil
}

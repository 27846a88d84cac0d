package budget

import (
	"errors"
	"fmt"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

// Options configure a [Budget]. Every field may be zero, which is unset:
// unlimited for a limit. The zero Options learn the limits from headers.
type Options struct {
	// Limits are what the user configured. Each is a ceiling: headers may lower
	// it, nothing raises it. A limit without a name gets that of [NameOf].
	Limits []limit.Limit

	// Burst is the capacity of every limit of a minute or less, as a time of its
	// rate. Unset, the profile says.
	Burst time.Duration

	// MaxInFlight, MaxQueue and MaxWait are those of [limit.Options].
	MaxInFlight, MaxQueue int
	MaxWait               time.Duration

	// Profile is the provider's, if it is known before the first call. The zero
	// Profile waits for [Scope.Adopt].
	Profile profile.Profile

	// Ledger is used instead of a [limit.Limiter] made from the fields above.
	// Limits, MaxInFlight, MaxQueue and MaxWait must then be unset. The limits
	// that it has configured when it is handed over are those of the budget.
	Ledger limit.Ledger
}

// A Budget is the credit of one account and what was configured for it. Several
// Transports may share it. Make it with [New]; it may be used by any number of
// goroutines.
type Budget struct {
	ledger limit.Ledger
	root   Scope
}

// New returns a Budget. Errors are a [*limit.ConfigError], or name a field of
// Options.
func New(o Options) (*Budget, error) {
	b := &Budget{ledger: o.Ledger}
	s := &b.root
	s.burst, s.shape = o.Burst, shapeOf(&o.Profile, o.Burst)
	if o.Burst < 0 {
		return nil, fmt.Errorf("budget: Options.Burst is %v: it must not be negative; zero is unset", o.Burst)
	}
	configured := make([]limit.Limit, len(o.Limits))
	for i, l := range o.Limits {
		if o.Burst > 0 && l.Burst == 0 && l.Rate.Window <= time.Minute {
			l.Burst = max(1, l.Rate.In(o.Burst))
		}
		configured[i] = l
	}
	if o.Ledger != nil {
		if isNil(o.Ledger) {
			return nil, fmt.Errorf("budget: Options.Ledger is a nil %T: make it first, or leave the field unset", o.Ledger)
		}
		if len(o.Limits) > 0 || o.MaxInFlight|o.MaxQueue != 0 || o.MaxWait != 0 {
			return nil, errors.New("budget: Options.Ledger is set, and so are limits: set the limits of the ledger itself")
		}
	} else {
		l, err := limit.New(limit.Options{
			Limits: s.start(configured), MaxInFlight: o.MaxInFlight, MaxQueue: o.MaxQueue, MaxWait: o.MaxWait,
		})
		if err != nil {
			return nil, err
		}
		b.ledger = l
	}
	s.ledger = b.ledger
	for _, l := range b.ledger.Snapshot().Limits {
		was := l.Configured
		for _, c := range configured {
			if c.Unit == l.Unit && c.Rate == l.Rate && (c.Name == l.Name || c.Name == "") {
				was = c // without what start filled in
				was.Name, was.Unit = l.Configured.Name, l.Configured.Unit
			}
		}
		s.configure(was, l.Limit)
	}
	if o.Profile.Name != "" {
		s.Adopt(time.Now(), o.Profile)
	}
	return b, nil
}

// Scope returns the scope that a call takes from. A budget has one scope today.
func (b *Budget) Scope() *Scope { return &b.root }

// Snapshot is the state of the budget now, for people and metrics.
func (b *Budget) Snapshot() limit.Snapshot { return b.ledger.Snapshot() }

// String says what this is, and nothing of what it holds.
func (b *Budget) String() string { return "tripmeter budget" }

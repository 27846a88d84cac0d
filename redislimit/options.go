package redislimit

import (
	"fmt"
	"hash/fnv"
	"log/slog"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// Options configure a [Limiter]. Name and Runner are required; zero means the
// default in every other field. A contradictory value is a [*limit.ConfigError].
type Options struct {
	// Name is the budget. Processes that give the same name to the same server
	// share it. All of its keys begin with "tripmeter:{Name}:", so a cluster keeps
	// a budget in one slot, and different budgets in different ones. Versions that
	// keep the state in different layouts cannot share it: see [LayoutError].
	Name string

	// Runner is the client of the program, through package goredis or rueidis.
	Runner Runner

	// Secret is the key of the hash that stands for a credential in the names of
	// scopes. Processes that share a budget need the same. Unset, it is made of Name:
	// who sees the names of scopes could then recognise a credential by guessing it.
	// An API key is too long to be guessed; a password may not be.
	Secret []byte

	// Limits, MaxInFlight, MaxQueue and MaxWait are those of [limit.Options], for
	// all processes together. MaxWait holds for the callers of this process. The
	// process that comes last with other Limits than before changes them for all;
	// credit is kept.
	Limits      []limit.Limit
	MaxInFlight int
	MaxQueue    int
	MaxWait     time.Duration

	// Open says how a scope other than the root begins: when its name is first
	// used, and again after the store has dropped it. The store drops a scope that
	// is full, unpaused and without a caller for an hour. Open must give the same
	// answer in every process. It is called with a lock held: it must be quick, and
	// not use the limiter. Nil means without limits.
	Open func(scope string) (limit.ScopeOptions, []limit.Limit)

	// Away says what happens when the store does not answer. The zero value is
	// Share.
	Away Away

	// Members is the number of processes that the local share assumes when the
	// store has not been seen yet. With zero, [New] fails if the store is away.
	Members int

	// Timeout bounds every call to the store; zero means 250 ms. A store that has
	// not answered for so long is away.
	Timeout time.Duration

	// SettleWithin bounds how long a settlement waits for a call to ride along
	// with; zero means 10 ms. While somebody waits for credit it does not wait.
	SettleWithin time.Duration

	// Refresh bounds how long a process with callers in the line goes without
	// asking, where it cannot listen; zero means 50 ms.
	Refresh time.Duration

	// MemberTTL is how long a process may be silent before its places and turns
	// go to others; zero means 3 s. A process calls at least four times as often.
	MemberTTL time.Duration

	// Learning is how long nothing is admitted after a gap in the state, so that
	// each member can hand back what it holds; zero means 500 ms.
	Learning time.Duration

	// Batch is how many callers one script call decides for at most; zero means
	// 32. It bounds how long one call holds the server: below 100 microseconds.
	Batch int

	// Trace has hooks.
	Trace Trace
}

// String is the name of the budget, and shows nothing of Secret and Runner.
func (o Options) String() string { return fmt.Sprintf("redislimit options of %q", o.Name) }

// GoString is String, for %#v.
func (o Options) GoString() string { return o.String() }

// LogValue is String, for package log/slog.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

// Away says what a process does while the store does not answer.
type Away uint8

const (
	// Share gives the process its share of the budget: every rate and every
	// number of places divided by the members last known, beginning with no
	// credit.
	Share Away = iota

	// Closed refuses every call, with an error that is [ErrAway].
	Closed

	// Open gives each process the whole budget, beginning with no credit: n
	// processes may then send n times as much. It is never without a limit.
	Open
)

// String is "share", "closed" or "open".
func (a Away) String() string {
	switch a {
	case Share:
		return "share"
	case Closed:
		return "closed"
	case Open:
		return "open"
	}
	return "unknown"
}

// Trace has functions that may be nil. They are called with no lock held, in the
// order of events, by the goroutine that talks to the store, and must be quick.
type Trace struct {
	// Away says that the store does not answer, and what the process does.
	Away func(State)

	// Back says that it answers again. State.Since is when it was lost.
	Back func(State)

	// Gap says that the store had lost what happened last, or everything, or was
	// away from all members at once. Nothing is admitted for the learning period.
	Gap func(State)
}

// A State is how a [Limiter] stands to its store.
type State struct {
	Away    bool      // the store does not answer
	Policy  Away      // what happens meanwhile
	Since   time.Time // when it was seen last
	Members int       // processes that share the budget, as last known
	Err     error     // why the last call failed; nil if it did not
	Gaps    int       // gaps in the state that this process found
}

// Split is the one line of a budget without a store: each of n processes takes
// l divided by n. Rates are divided exactly, by making the window longer where
// the number of units cannot be divided. Limits that count by windows are rounded down
// instead. Bursts and guards are divided and at least 1.
//
// It costs what idle processes do not use: see docs/scale.md. For Kubernetes n is
// the replica count.
func Split(l limit.Limit, n int) limit.Limit {
	if n <= 1 || l.Rate == (limit.Rate{}) {
		return l
	}
	burst, largest := l.Sizes()
	part := func(units int64) int64 { return units / int64(n) }
	l.Margin, l.Law.Spare = part(l.Margin), part(l.Law.Spare)
	if l.Guard > 0 {
		l.Guard = max(1, part(l.Guard))
	}
	if l.Rate.N%int64(n) == 0 || l.Law.Shape.Windowed() { // a longer window would let n times as much go at once
		l.Rate.N = max(1, part(l.Rate.N))
	} else if w := l.Rate.Window * time.Duration(n); w <= limit.MaxWindow && w > 0 {
		l.Rate.Window = w
	} else {
		l.Rate.N = max(1, part(l.Rate.N))
	}
	l.Burst, l.Largest = max(1, part(burst)), largest
	return l
}

// Alone is a ledger of this process with these limits, such as those of [Split]. It
// panics for limits that [limit.New] refuses.
func Alone(limits ...limit.Limit) limit.Ledger { return newShare(limits, 0, 0) }

const prefix = "tripmeter:{"

func (o *Options) check() error {
	fail := func(field string, value any, problem string) error {
		return &limit.ConfigError{Field: field, Value: value, Problem: problem}
	}
	switch {
	case o.Name == "" || strings.ContainsAny(o.Name, "{}\x00"):
		return fail("Name", fmt.Sprintf("%q", o.Name), "must not be empty, nor hold a brace or a zero byte")
	case o.Runner == nil:
		return fail("Runner", "nil", "must be set: see packages goredis and rueidis")
	case o.MaxInFlight < 0:
		return fail("MaxInFlight", o.MaxInFlight, "must not be negative")
	case o.MaxQueue < 0:
		return fail("MaxQueue", o.MaxQueue, "must not be negative")
	case o.MaxWait < 0:
		return fail("MaxWait", o.MaxWait, "must not be negative")
	case o.Away > Open:
		return fail("Away", uint8(o.Away), "is no policy")
	case o.Members < 0:
		return fail("Members", o.Members, "must not be negative")
	case o.Batch < 0 || o.Batch > 256:
		return fail("Batch", o.Batch, "must be from 0 to 256")
	}
	if o.Batch == 0 {
		o.Batch = 32
	}
	if err := o.checkSpans(fail); err != nil {
		return err
	}
	return o.checkLimits(fail)
}

// A failure makes the error of a field.
type failure func(field string, value any, problem string) error

// checkSpans puts defaults in.
func (o *Options) checkSpans(fail failure) error {
	for _, d := range []struct {
		name string
		at   *time.Duration
		def  time.Duration
	}{
		{"Timeout", &o.Timeout, 250 * time.Millisecond},
		{"SettleWithin", &o.SettleWithin, 10 * time.Millisecond},
		{"Refresh", &o.Refresh, 50 * time.Millisecond},
		{"MemberTTL", &o.MemberTTL, 3 * time.Second},
		{"Learning", &o.Learning, 500 * time.Millisecond},
	} {
		switch {
		case *d.at < 0:
			return fail(d.name, *d.at, "must not be negative")
		case *d.at == 0:
			*d.at = d.def
		}
	}
	if o.MemberTTL < 2*o.Timeout {
		return fail("MemberTTL", o.MemberTTL, fmt.Sprintf("must be at least twice the Timeout, %v", o.Timeout))
	}
	return nil
}

// checkLimits copies the limits, without those that are unset.
func (o *Options) checkLimits(fail failure) error {
	names := map[string]bool{}
	limits := make([]limit.Limit, 0, len(o.Limits))
	for i, l := range o.Limits {
		l, err := checked(l, fmt.Sprintf("Limits[%d]", i))
		if err != nil {
			return err
		}
		if l.Rate == (limit.Rate{}) {
			continue
		}
		if names[l.Name] {
			return fail(fmt.Sprintf("Limits[%d].Name", i), l.Name, "is already used")
		}
		names[l.Name] = true
		limits = append(limits, l)
	}
	o.Limits = limits
	return nil
}

// checked is limit's own check, and one more: the store counts microseconds.
func checked(l limit.Limit, field string) (limit.Limit, error) {
	l, err := l.Checked(field)
	if err != nil {
		return l, err
	}
	if l.Rate.Window%time.Microsecond != 0 {
		return l, &limit.ConfigError{Field: field + ".Rate.Window", Value: l.Rate.Window,
			Problem: "must be whole microseconds, the clock of the store"}
	}
	if strings.Contains(l.Name, "\x00") {
		return l, &limit.ConfigError{Field: field + ".Name", Value: fmt.Sprintf("%q", l.Name), Problem: "must not hold a zero byte"}
	}
	return l, nil
}

func checkScope(name string) error {
	if len(name) > limit.MaxName {
		return &limit.ConfigError{Field: "Scope", Value: fmt.Sprintf("%.20q...", name), Problem: fmt.Sprintf("must be at most %d bytes long", limit.MaxName)}
	}
	if strings.Contains(name, "\x00") {
		return &limit.ConfigError{Field: "scope", Value: fmt.Sprintf("%q", name), Problem: "must not hold a zero byte"}
	}
	return nil
}

func checkOptions(o limit.ScopeOptions) error {
	fail := func(field string, value any, problem string) error {
		return &limit.ConfigError{Field: field, Value: value, Problem: problem}
	}
	switch {
	case o.Weight < 0 || o.Weight > limit.MaxWeight:
		return fail("Weight", o.Weight, fmt.Sprintf("must be from 0 to %d", limit.MaxWeight))
	case o.MaxInFlight < 0:
		return fail("MaxInFlight", o.MaxInFlight, "must not be negative")
	case o.MaxQueue < 0:
		return fail("MaxQueue", o.MaxQueue, "must not be negative")
	}
	if a := o.Allowances; a != nil && min(a.DayTokens, a.DayMoney, a.MonthTokens, a.MonthMoney) < 0 {
		return fail("Allowances", *a, "must not be negative; zero is any amount")
	}
	return nil
}

// fingerprint tells one configuration of the root scope from another.
func (o *Options) fingerprint() string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %v", o.MaxInFlight, o.MaxQueue, o.Limits)
	return fmt.Sprintf("%016x", h.Sum64())
}

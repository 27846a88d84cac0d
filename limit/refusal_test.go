package limit

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// state is all that a refusal must leave as it was: what people see, and the
// ledger itself, to the grain.
type state struct {
	snap            Snapshot
	levels          []wide
	debits, refunds Cost
	line            Cost
	inFlight        int
	armed           int64
	seq             uint64
}

func stateOf(l *Limiter) state {
	snap := l.Snapshot()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := state{snap: snap, debits: l.root.busy.debits, refunds: l.root.busy.refunds,
		inFlight: l.open.n, armed: l.armed, seq: l.open.seq}
	s.line = l.root.busy.asked
	for i := range l.root.limits {
		s.levels = append(s.levels, l.root.limits[i].level)
	}
	return s
}

// inLine lets a call wait that nobody holds a ticket of.
func inLine(l *Limiter, tokens int64) {
	l.lock()
	defer l.mu.Unlock()
	l.ask(&Ask{Cost: Cost{Input: tokens}}, true, time.Time{})
}

// Every refusal: the sentinel, the context's error, every field, the message,
// and nothing changed. The limiter: 60 requests a minute with a burst of 10 and
// 600 tokens a minute with a burst of 100, of which 10 are left.
func TestRefusals(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	type ask func(l *Limiter) error
	acquire := func(c Cost, timeout time.Duration) ask {
		return func(l *Limiter) error {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			_, err := l.Acquire(ctx, c)
			return err
		}
	}
	try := func(c Cost) ask { return func(l *Limiter) error { _, err := l.TryAcquire(c); return err } }
	reserve := func(c Cost) ask { return func(l *Limiter) error { _, err := l.Reserve(c); return err } }

	for _, c := range []struct {
		name   string
		before func(l *Limiter)
		ask    ask
		want   Error
		also   error  // errors.Is as well
		not    error  // errors.Is not
		text   string // of the message
	}{
		{name: "too large", ask: acquire(Cost{Requests: 1, Input: 60, Output: 41}, time.Hour),
			want: Error{Reason: ErrTooLarge, Dimension: "tpm", Cost: 101, Capacity: 100},
			not:  context.DeadlineExceeded,
			text: "limit: cost can never be admitted: tpm: cost 101, capacity 100"},
		{name: "too large, not waiting", ask: try(Cost{Requests: 11}),
			want: Error{Reason: ErrTooLarge, Dimension: "rpm", Cost: 11, Capacity: 10}, not: ErrLimited},
		{name: "too large, reserved", ask: reserve(Cost{Input: math.MaxInt64}),
			want: Error{Reason: ErrTooLarge, Dimension: "tpm", Cost: MaxUnits + 1, Capacity: 100}},
		{name: "negative", ask: acquire(Cost{Requests: 1, Input: 5, Output: -3}, time.Hour),
			want: Error{Reason: ErrInvalid, Dimension: "cost", Cost: -3},
			text: "limit: negative cost: cost: cost -3"},
		{name: "negative sum of nothing", ask: try(Cost{Input: 5, Output: -5}),
			want: Error{Reason: ErrInvalid, Dimension: "cost", Cost: -5}},
		{name: "no credit", ask: try(Cost{Requests: 1, Input: 50}),
			want: Error{Reason: ErrLimited, Dimension: "tpm", Cost: 50, Capacity: 100, Wait: 4 * time.Second},
			not:  ErrWaitTooLong,
			text: "limit: no credit now: tpm: cost 50, capacity 100, could go in 4s"},
		{name: "deadline too near", ask: acquire(Cost{Requests: 1, Input: 50}, 4*time.Second-1),
			want: Error{Reason: ErrWaitTooLong, Cause: context.DeadlineExceeded, Dimension: "tpm", Cost: 50, Capacity: 100, Wait: 4 * time.Second},
			also: context.DeadlineExceeded, not: ErrCanceled,
			text: "limit: the wait is too long: tpm: cost 50, capacity 100, could go in 4s: context deadline exceeded"},
		{name: "longest wait too short", ask: reserve(Cost{Input: 100}),
			want: Error{Reason: ErrWaitTooLong, Dimension: "tpm", Cost: 100, Capacity: 100, Wait: 9 * time.Second},
			not:  context.DeadlineExceeded},
		{name: "both too short", ask: acquire(Cost{Input: 100}, time.Second),
			want: Error{Reason: ErrWaitTooLong, Cause: context.DeadlineExceeded, Dimension: "tpm", Cost: 100, Capacity: 100, Wait: 9 * time.Second},
			also: context.DeadlineExceeded},
		{name: "the slower limit decides", before: func(l *Limiter) { l.Allow(Cost{Requests: 10}) },
			ask:  try(Cost{Requests: 5, Input: 50}),
			want: Error{Reason: ErrLimited, Dimension: "rpm", Cost: 5, Capacity: 10, Wait: 5 * time.Second}},
		{name: "ended before", ask: func(l *Limiter) error { _, err := l.Acquire(canceled, Cost{Requests: 1}); return err },
			want: Error{Reason: ErrCanceled, Cause: context.Canceled, Dimension: "line", Cost: 1},
			also: context.Canceled, not: context.DeadlineExceeded},
		{name: "deadline in the past", ask: func(l *Limiter) error {
			past, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
			defer cancel()
			return l.Wait(past, Cost{})
		}, want: Error{Reason: ErrCanceled, Cause: context.DeadlineExceeded, Dimension: "line", Cost: 1}, also: context.DeadlineExceeded},
		{name: "no place in flight", before: func(l *Limiter) { l.TryAcquire(Cost{}); l.TryAcquire(Cost{}) },
			ask:  try(Cost{Requests: 1, Input: 50}), // when it could go, nobody knows
			want: Error{Reason: ErrLimited, Dimension: "in-flight", Cost: 1, Capacity: 2},
			text: "limit: no credit now: in-flight: cost 1, capacity 2"},
		{name: "paused", before: func(l *Limiter) { l.Pause(2 * time.Second) },
			ask:  try(Cost{}),
			want: Error{Reason: ErrLimited, Dimension: "pause", Wait: 2 * time.Second},
			text: "limit: no credit now: pause, could go in 2s"},
		{name: "paused, and the limit is slower", before: func(l *Limiter) { l.Pause(2 * time.Second) },
			ask:  try(Cost{Input: 30}),
			want: Error{Reason: ErrLimited, Dimension: "tpm", Cost: 30, Capacity: 100, Wait: 5 * time.Second}},
		{name: "behind others", before: func(l *Limiter) { inLine(l, 20); inLine(l, 10) },
			ask:  try(Cost{Input: 5}),
			want: Error{Reason: ErrLimited, Dimension: "tpm", Cost: 5, Capacity: 100, Wait: 2500 * time.Millisecond}},
		{name: "behind others, deadline too near", before: func(l *Limiter) { inLine(l, 30) },
			ask:  acquire(Cost{Input: 10}, 3*time.Second-1),
			want: Error{Reason: ErrWaitTooLong, Cause: context.DeadlineExceeded, Dimension: "tpm", Cost: 10, Capacity: 100, Wait: 3 * time.Second},
			also: context.DeadlineExceeded},
		{name: "line full", before: func(l *Limiter) {
			for range 3 {
				inLine(l, 15)
			}
		}, ask: reserve(Cost{Input: 5}),
			want: Error{Reason: ErrQueueFull, Dimension: "line", Cost: 1, Capacity: 3, Wait: 4 * time.Second},
			text: "limit: the line is full: line: cost 1, capacity 3, could go in 4s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := mustNew(t, Options{
					Limits: []Limit{
						{Name: "rpm", Rate: PerMinute(60), Burst: 10},
						{Name: "tpm", Unit: Tokens, Rate: PerMinute(600), Burst: 100},
					},
					MaxInFlight: 2, MaxQueue: 3, MaxWait: 8 * time.Second,
				})
				l.Allow(Cost{Input: 90})
				if c.before != nil {
					c.before(l)
				}
				before := stateOf(l)
				err := c.ask(l)
				if after := stateOf(l); !reflect.DeepEqual(before, after) {
					t.Errorf("the refusal changed\n%+v to\n%+v", before, after)
				}
				var e *Error
				if !errors.As(err, &e) {
					t.Fatalf("%T %v", err, err)
				}
				if c.want.Wait > 0 {
					c.want.Earliest = time.Now().Add(c.want.Wait)
				}
				if !e.Earliest.Equal(c.want.Earliest) {
					t.Errorf("earliest %v, want %v", e.Earliest, c.want.Earliest)
				}
				e.Earliest, c.want.Earliest = time.Time{}, time.Time{}
				if *e != c.want {
					t.Errorf("%+v\nwant %+v", *e, c.want)
				}
				if !errors.Is(err, c.want.Reason) || c.also != nil && !errors.Is(err, c.also) {
					t.Errorf("%v is not %v and %v", err, c.want.Reason, c.also)
				}
				if c.not != nil && errors.Is(err, c.not) {
					t.Errorf("%v is %v", err, c.not)
				}
				if c.text != "" && err.Error() != c.text {
					t.Errorf("%q\nwant %q", err, c.text)
				}
			})
		})
	}
}

// Ends in the line: the longest wait, the caller's deadline, a cancel, and a
// limit lowered below the cost. Nothing but the place in the line changes.
func TestRefusedInTheLine(t *testing.T) {
	for _, c := range []struct {
		name    string
		maxWait time.Duration
		timeout time.Duration
		during  func(l *Limiter, cancel func())
		want    Error
		also    error
	}{
		{"longest wait", 3 * time.Second, time.Hour, nil,
			Error{Reason: ErrWaitTooLong, Dimension: "in-flight", Cost: 1, Capacity: 1, Waited: 3 * time.Second}, ErrWaitTooLong},
		{"deadline", 0, 4 * time.Second, nil,
			Error{Reason: ErrCanceled, Cause: context.DeadlineExceeded, Dimension: "in-flight", Cost: 1, Capacity: 1, Waited: 4 * time.Second}, context.DeadlineExceeded},
		{"cancel", 0, time.Hour, func(l *Limiter, cancel func()) { cancel() },
			Error{Reason: ErrCanceled, Cause: context.Canceled, Dimension: "in-flight", Cost: 1, Capacity: 1, Waited: time.Second}, context.Canceled},
		{"limit lowered", 0, time.Hour, func(l *Limiter, cancel func()) {
			l.SetLimit(Limit{Name: "tpm", Unit: Tokens, Rate: PerMinute(10), Burst: 4})
		}, Error{Reason: ErrTooLarge, Dimension: "tpm", Cost: 5, Capacity: 4, Waited: time.Second}, ErrTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := mustNew(t, Options{Limits: []Limit{{Name: "tpm", Unit: Tokens, Rate: PerMinute(60), Burst: 100}}, MaxInFlight: 1, MaxWait: c.maxWait})
				held, _ := l.TryAcquire(Cost{Input: 10})
				ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
				defer cancel()
				before := stateOf(l)
				if c.during != nil {
					time.AfterFunc(time.Second, func() { c.during(l, cancel) })
				}
				_, err := l.Acquire(ctx, Cost{Requests: 1, Input: 5})
				var e *Error
				if !errors.As(err, &e) || *e != c.want || !errors.Is(err, c.also) {
					t.Errorf("%+v, want %+v", e, c.want)
				}
				after := stateOf(l)
				if after.debits != before.debits || after.refunds != before.refunds || after.line != (Cost{}) || after.inFlight != 1 {
					t.Errorf("%+v to %+v", before, after)
				}
				held.Keep()
				empty(t, l)
			})
		})
	}
}

// A named instant is never too late: a caller that comes back then could not have
// gone before, with any calls ahead of it. And with one limit it is exact, for
// every place in the line, where the costs are below the burst.
func TestNamedWaitsInTheLine(t *testing.T) {
	s := newSeeded(11)
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			limits := []Limit{{Name: "a", Unit: Tokens, Rate: pick(s, rates[:6]), Burst: 2 + spread(s, 500), Empty: true}}
			one := upTo(s, 2) == 0
			if !one {
				limits = append(limits, Limit{Name: "b", Rate: pick(s, rates[:6]), Burst: 1 + spread(s, 5), Largest: 1 + spread(s, 20)},
					Limit{Name: "c", Unit: Input, Rate: pick(s, rates[:6]), Burst: 1 + spread(s, 500), Largest: 500})
			}
			l := mustNew(t, Options{Limits: limits})
			if upTo(s, 2) == 0 {
				l.Pause(time.Duration(spread(s, int64(time.Minute))))
			}
			type place struct {
				ticket *Ticket
				named  time.Time
			}
			var places []place
			for range 1 + upTo(s, 12) {
				c := Cost{Requests: spread(s, 3), Input: spread(s, limits[0].Burst)}
				if one {
					c = Cost{Input: 1 + c.Input%(limits[0].Burst-1)}
				}
				now := time.Now()
				_, err := l.TryAcquire(c)
				if err == nil {
					continue
				}
				var e *Error
				if !errors.As(err, &e) || !errors.Is(err, ErrLimited) {
					continue // larger than some limit
				}
				ticket, err := l.Reserve(c)
				if err != nil {
					t.Fatal(err)
				}
				if e.Wait <= 0 && one {
					t.Errorf("refused with a wait of %v", e.Wait)
				}
				places = append(places, place{ticket, now.Add(e.Wait)})
			}
			for i, p := range places {
				<-p.ticket.Ready()
				now := time.Now()
				if now.Before(p.named) || one && !now.Equal(p.named) {
					t.Errorf("place %d went at %v, named was %v (%v)", i, now, p.named, limits)
				}
			}
		})
	}
}

// A cost of the whole burst loses what is earned in the nanosecond in which the
// bucket fills. So under strict pacing each place may go that much later than
// was named to it, and never earlier; the head goes as named.
func TestNamedWaitsUnderStrictPacing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{{Rate: PerMinute(7), Burst: 1, Empty: true}}}) // one in 8.571428571428... s
		later := []time.Duration{0, 1, 1, 2, 2}                                                // k*ceil(60e9/7) - ceil(k*60e9/7)
		var line []*Ticket
		var named []time.Time
		for range later {
			_, err := l.TryAcquire(Cost{Requests: 1})
			var e *Error
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			ticket, err := l.Reserve(Cost{Requests: 1})
			if err != nil {
				t.Fatal(err)
			}
			line, named = append(line, ticket), append(named, e.Earliest)
		}
		for i, ticket := range line {
			<-ticket.Ready()
			if got := time.Since(named[i]); got != later[i] {
				t.Errorf("place %d went %d ns after the named instant, want %d", i, got, later[i])
			}
			r, _ := ticket.Take()
			r.Keep()
		}
	})
}

// Ends of options: each names its field, and nothing is built.
func TestConfigErrors(t *testing.T) {
	ok := Limit{Rate: PerMinute(60)}
	for field, o := range map[string]Options{
		"MaxInFlight":           {MaxInFlight: -1},
		"MaxQueue":              {MaxQueue: -1},
		"MaxWait":               {MaxWait: -1},
		"Limits[0].Rate.N":      {Limits: []Limit{{Rate: Rate{-1, time.Minute}}}},
		"Limits[1].Rate.N":      {Limits: []Limit{ok, {Rate: Rate{0, time.Minute}}}},
		"Limits[0].Rate.Window": {Limits: []Limit{{Rate: Rate{1, 0}}}},
		"Limits[1].Rate.Window": {Limits: []Limit{ok, {Rate: Rate{1, MaxWindow + 1}}}},
		"Limits[2].Rate.Window": {Limits: []Limit{ok, {}, {Rate: Rate{1, -time.Minute}}}},
		"Limits[0].Burst":       {Limits: []Limit{{Rate: PerMinute(1), Burst: -1}}},
		"Limits[1].Burst":       {Limits: []Limit{ok, {Burst: 1}}}, // a burst of what?
		"Limits[1].Largest":     {Limits: []Limit{ok, {Largest: 1}}},
		"Limits[0].Largest":     {Limits: []Limit{{Rate: PerMinute(1), Largest: -1}}},
		"Limits[0].Unit":        {Limits: []Limit{{Unit: 4, Rate: PerMinute(1)}}},
		"Limits[1].Name":        {Limits: []Limit{ok, ok}},
	} {
		l, err := New(o)
		var e *ConfigError
		if l != nil || !errors.As(err, &e) || e.Field != field || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v, %v", field, l, err)
		}
	}
	named := Limit{Name: "tpm", Rate: PerMinute(60)}
	const same = "limit: Limits[1].Name is tpm: must not be the name of two limits"
	if _, err := New(Options{Limits: []Limit{named, named}}); err == nil || err.Error() != same {
		t.Errorf("%v, want %s", err, same)
	}
	over := Options{Limits: []Limit{{Rate: Rate{MaxUnits + 1, time.Second}}}}
	if _, err := New(over); err == nil {
		t.Error("N above MaxUnits was taken")
	}
	l := mustNew(t, Options{Limits: []Limit{ok}})
	before := stateOf(l)
	for _, err := range []error{
		l.SetMaxInFlight(-1), l.SetLimit(Limit{Unit: 9}), l.SetLimit(Limit{Rate: Rate{1, 1}}),
		l.SetLimit(Limit{Name: "requests/1m0s", Rate: PerMinute(0)}),
		func() error { _, err := NewBucket(Rate{}, 1); return err }(),
		func() error { _, err := NewBucket(PerMinute(1), 0); return err }(),
		func() error { _, err := NewGCRA(PerMinute(1), MaxUnits+1); return err }(),
		func() error { b, _ := NewBucket(PerMinute(1), 1); return b.SetRate(5, PerMinute(-1), 1) }(),
		func() error { g, _ := NewGCRA(PerMinute(1), 1); return g.SetRate(5, PerMinute(1), -1) }(),
	} {
		if e := new(ConfigError); !errors.As(err, &e) || e.Field == "" || e.Problem == "" {
			t.Errorf("%v", err)
		}
	}
	after := stateOf(l)
	before.snap, after.snap = Snapshot{}, Snapshot{}
	if !reflect.DeepEqual(before.debits, after.debits) || !reflect.DeepEqual(before.levels, after.levels) {
		t.Error("a refused change changed something")
	}
}

// Unlimited never errs and never waits; a removed limit is no limit.
func TestUnlimited(t *testing.T) {
	for _, l := range []*Limiter{mustNew(t, Options{}), mustNew(t, Options{Limits: []Limit{{}, {Unit: Tokens}}})} {
		for range 1000 {
			r, err := l.TryAcquire(Cost{math.MaxInt64, math.MaxInt64, math.MaxInt64})
			if err != nil {
				t.Fatal(err)
			}
			r.Settle(Cost{Input: math.MaxInt64})
		}
		if s := l.Snapshot(); len(s.Limits) != 0 || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	}
}

// A limit that comes while calls are open was not charged for them, so their
// ends give nothing back to it: else a learned limit would be minted twice.
func TestLateLimitMintsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{})
		old, _ := l.TryAcquire(Cost{Input: 5000})
		early := l.Wait(context.Background(), Cost{Input: 1000})
		if err := l.SetLimit(Limit{Name: "learned", Unit: Tokens, Rate: PerMinute(60), Burst: 10}); err != nil || early != nil {
			t.Fatal(err, early)
		}
		if !l.Allow(Cost{Input: 10}) {
			t.Fatal("a new limit is not full")
		}
		old.Settle(Cost{})
		if l.Allow(Cost{Input: 1}) {
			t.Fatal("an old call's refund was credited to a limit that never charged it")
		}
		young, err := l.Acquire(context.Background(), Cost{Input: 5})
		if err != nil {
			t.Fatal(err)
		}
		young.Return()
		if s := l.Snapshot().Limits[0]; s.Credit != 5 {
			t.Errorf("%+v", s)
		}
	})
}

// The remaining wait of a ticket is named at the head, and is unknown behind it.
func TestNamedWaitOfATicket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{{Name: "rps", Rate: PerSecond(1), Burst: 1, Empty: true}}})
		head, _ := l.Reserve(Cost{Requests: 1})
		next, _ := l.Reserve(Cost{Requests: 1})
		time.Sleep(250 * time.Millisecond)
		for ticket, want := range map[*Ticket]time.Duration{head: 750 * time.Millisecond, next: 0} {
			_, err := ticket.Take()
			var e *Error
			if !errors.As(err, &e) || !errors.Is(err, ErrLimited) || e.Wait != want || e.Earliest.IsZero() != (want == 0) || e.Waited != 250*time.Millisecond {
				t.Errorf("%+v, want a wait of %v", e, want)
			}
		}
		head.Cancel()
		var e *Error
		if _, err := next.Take(); !errors.As(err, &e) || e.Wait != 750*time.Millisecond {
			t.Errorf("at the head now: %v", err)
		}
	})
}

// The largest cost may be set below the burst. A larger cost is refused by every
// way in, although the bucket holds more than it asks for.
func TestLargestBelowTheBurst(t *testing.T) {
	l := mustNew(t, Options{Limits: []Limit{{Name: "tpm", Unit: Tokens, Rate: PerMinute(6000), Largest: 500}}}) // a burst of 1000
	refused := func(how string, err error) {
		t.Helper()
		var e *Error
		if !errors.Is(err, ErrTooLarge) || !errors.As(err, &e) || e.Cost != 501 || e.Capacity != 500 {
			t.Errorf("%s: %v", how, err)
		}
	}
	_, err := l.TryAcquire(Cost{Input: 501})
	refused("try", err)
	_, err = l.Acquire(context.Background(), Cost{Input: 500, Output: 1})
	refused("acquire", err)
	_, err = l.Reserve(Cost{Output: 501})
	refused("reserve", err)
	refused("wait", l.Wait(context.Background(), Cost{Input: 501}))
	if l.Allow(Cost{Input: 501}) {
		t.Error("allowed")
	}
	if c := l.Snapshot().Limits[0].Credit; c != 1000 {
		t.Errorf("credit %d after refusals", c)
	}
	if !l.Allow(Cost{Input: 500}) {
		t.Error("the largest itself is refused")
	}
}

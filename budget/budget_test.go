package budget

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/usage"
)

// silent observes nothing.
type silent struct{}

func (silent) Lowered(string, int64)                      {}
func (silent) Paused(limit.Pause)                         {}
func (silent) LimitChanged(_, _ limit.Limit)              {}
func (silent) LawChanged(_, _ limit.Limit)                {}
func (silent) Doubted(_, _ estimate.Charge) (follow bool) { return false }

const tpm, rpm = "tokens per minute", "requests per minute"

// perMinute are the limits of most tests: 60,000 tokens and 600 requests.
func perMinute() []limit.Limit {
	return []limit.Limit{
		{Name: tpm, Unit: limit.Tokens, Rate: limit.PerMinute(60_000)},
		{Name: rpm, Unit: limit.Requests, Rate: limit.PerMinute(600)},
	}
}

func newBudget(t testing.TB, o Options) *Budget {
	t.Helper()
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ruled is a profile with a rule, whose prompts are what their Input says.
func ruled(c estimate.Charge) profile.Profile {
	p := profile.Unknown()
	p.Rule = estimate.Rule{Charge: c, ReserveCap: c != estimate.ChargeActual}
	return p
}

// request costs input and, at most, output.
func request(input, output int64) *estimate.Request {
	return &estimate.Request{Model: "m", Input: input, OutputCap: output, Understood: true, Choices: 1}
}

// open makes a call that is admitted and leaves now.
func open(t testing.TB, b *Budget, r *estimate.Request) *Call {
	t.Helper()
	c := new(Call)
	c.Open(b.Scope(), silent{}, r, 1)
	if err := c.Admit(context.Background(), time.Now()); err != nil {
		t.Fatal(err)
	}
	c.Leave(time.Now())
	return c
}

// Scope is the path of most tests.
func (b *Budget) Scope() *Path { return b.Path(Address{Host: "api.test", Model: "m"}) }

// state is that of the limit of that name on the path of most tests: of several
// scopes the lowest, with the least credit of any.
func state(t testing.TB, b *Budget, name string) (state limit.LimitState) {
	t.Helper()
	b.Scope().start()
	b.ledger.Forecast(limit.Ask{Scopes: b.Scope().names}) // the scopes are there when a call names them
	snap := b.Snapshot()
	for _, s := range append([]limit.Snapshot{snap}, snap.Scopes...) {
		for _, l := range s.Limits {
			if l.Name != name {
				continue
			}
			least := l
			if state.Name != "" && balance(state) < balance(l) {
				least = state
			}
			if state.Name == "" || l.Rate.N < state.Rate.N {
				state = l
			}
			state.Credit, state.Debt = least.Credit, least.Debt
		}
	}
	if state.Name == "" {
		t.Fatalf("no limit %q in %v", name, snap)
	}
	return state
}

// pausedUntil is the latest end of a pause of any scope; zero: there is none.
func pausedUntil(b *Budget) (at time.Time) {
	for _, s := range b.Snapshot().Scopes {
		if s.PausedUntil.After(at) {
			at = s.PausedUntil
		}
	}
	return at
}

func balance(l limit.LimitState) int64 { return l.Credit - l.Debt }

// What each ending does to the ledger, for every kind of rule: this is the table
// of the package comment. The call costs one request, 300 tokens of prompt and
// 100 of output; the answer says 11 and 7.
func TestEndings(t *testing.T) {
	counts, free := ruled(estimate.ChargeSettle), ruled(estimate.ChargeSettle)
	counts.Rule.RefusedCount = true
	free.RefusedFree = true
	for _, row := range []struct {
		ending           Ending
		profile          profile.Profile
		requests, tokens int64 // kept
	}{
		{Unsent, ruled(estimate.ChargeSettle), 0, 0},
		{Refused, ruled(estimate.ChargeSettle), 1, 0},
		{Refused, counts, 1, 400},
		{Refused, free, 0, 0},
		{Free, ruled(estimate.ChargeSettle), 1, 0},
		{Free, counts, 1, 0},
		{Unknown, ruled(estimate.ChargeSettle), 1, 400},
		{Unknown, free, 1, 400},
		{Answered, ruled(estimate.ChargeSettle), 1, 18},
		{Answered, ruled(estimate.ChargeEstimate), 1, 400},
		{Answered, ruled(estimate.ChargeActual), 1, 18},
	} {
		t.Run(fmt.Sprintf("%v, %v, refused calls count %v, are free %v", row.ending, row.profile.Rule.Charge, row.profile.Rule.RefusedCount, row.profile.RefusedFree), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBudget(t, Options{Limits: perMinute(), Profile: row.profile})
				tokens, requests := balance(state(t, b, tpm)), balance(state(t, b, rpm))
				c := open(t, b, request(300, 100))
				if row.ending == Answered {
					r := usage.Result{Found: true, Complete: true}
					r.Input, r.Output = usage.Count{N: 11, OK: true}, usage.Count{N: 7, OK: true}
					c.Settle(time.Now(), &r)
				} else {
					c.End(row.ending)
				}
				if got := tokens - balance(state(t, b, tpm)); got != row.tokens {
					t.Errorf("the ledger keeps %d tokens, want %d", got, row.tokens)
				}
				if got := requests - balance(state(t, b, rpm)); got != row.requests {
					t.Errorf("the ledger keeps %d requests, want %d", got, row.requests)
				}
				if got := c.Charged(); got.Requests != row.requests || got.Input+got.Output != row.tokens {
					t.Errorf("charged %v", got)
				}
				if !c.Between() || b.Snapshot().InFlight != 0 {
					t.Errorf("in flight %d", b.Snapshot().InFlight)
				}
				before := c.Charged()
				for e := range Ending(len(endings)) { // an end after the end does nothing
					c.End(e)
				}
				if c.Charged() != before {
					t.Errorf("a second end changed %v to %v", before, c.Charged())
				}
			})
		})
	}
}

// The ending of an attempt by what came back.
func TestEndingOf(t *testing.T) {
	for status := range 1000 {
		want := Free
		switch {
		case status == 0:
			want = Unknown
		case status == 429:
			want = Refused
		case status == 503, status == 529:
			want = Overloaded
		case status >= 500:
			want = Unknown
		case status >= 200 && status < 300:
			want = Answered
		}
		if got := EndingOf(status, true, true); got != want {
			t.Errorf("%d: %v, want %v", status, got, want)
		}
		if want == Answered {
			want = Free
		}
		if got := EndingOf(status, true, false); got != want {
			t.Errorf("%d without a body: %v, want %v", status, got, want)
		}
	}
	if got := EndingOf(0, false, true); got != Unsent {
		t.Errorf("never dialled: %v", got)
	}
}

// A refusal pauses, drains the limit that refused to what the refused call needs
// after the wait, and leaves the other limit alone.
func TestARefusalDrainsWhatRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, Options{Limits: perMinute(), Profile: ruled(estimate.ChargeEstimate)})
		c := open(t, b, request(300, 100))
		c.Hear(time.Now(), &headers.Info{}, true)
		c.Refuse(time.Now(), Refusal{Wait: 7 * time.Second, Dimension: "tokens"})
		if until := time.Until(pausedUntil(b)); until != 7*time.Second {
			t.Errorf("nothing leaves for %v", until)
		}
		time.Sleep(7 * time.Second)
		if got := balance(state(t, b, tpm)); got != 400 {
			t.Errorf("%d tokens after the wait, want what the refused call needs", got)
		}
	})
}

// A refusal that has nothing to do with the balance takes nothing from it.
func TestARefusalThatIsNotOfTheRateDrainsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, Options{Limits: perMinute(), Profile: ruled(estimate.ChargeEstimate)})
		full := balance(state(t, b, tpm))
		c := open(t, b, request(300, 100))
		c.Refuse(time.Now(), Refusal{Wait: time.Minute, NotRate: true})
		if got := balance(state(t, b, tpm)); got != full || !pausedUntil(b).IsZero() {
			t.Errorf("%d tokens of %d, paused until %v", got, full, pausedUntil(b))
		}
	})
}

// No header lifts a rate above the configured one, and none raises credit.
func TestNoHeaderRaisesAnything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, Options{Limits: perMinute(), Profile: ruled(estimate.ChargeEstimate)})
		n := func(n int64) headers.Count { return headers.Count{N: n, OK: true} }
		for _, limit := range []int64{-1, 0, 1, 59_999, 60_000, 60_001, 1 << 60} {
			for _, left := range []int64{-1, 0, 1, 9_000, 60_000, 1 << 60} {
				c := open(t, b, request(1, 0))
				before := balance(state(t, b, tpm))
				i := headers.Info{Tokens: headers.Quota{Limit: n(limit), Remaining: n(left), Window: time.Minute}}
				c.Hear(time.Now(), &i, false)
				if l := state(t, b, tpm); l.Rate.N > 60_000 || balance(l) > before {
					t.Fatalf("limit %d, remaining %d: %v, credit from %d to %d", limit, left, l.Rate, before, balance(l))
				}
				c.End(Unsent)
			}
		}
	})
}

// What a header says of a window is found in this order; the package comment of
// Scope.window lists it.
func TestTheWindowOfAQuota(t *testing.T) {
	n := func(n int64) headers.Count { return headers.Count{N: n, OK: true} }
	in := func(d time.Duration) headers.Span { return headers.Span{D: d, OK: true} }
	const day = 24 * time.Hour
	linear := profile.Unknown()
	linear.Linear = true
	for _, row := range []struct {
		name    string
		profile profile.Profile
		unit    limit.Unit
		q       headers.Quota
		unnamed bool
		want    time.Duration
	}{
		{"stated", profile.Unknown(), limit.Tokens, headers.Quota{Limit: n(5), Window: time.Hour}, false, time.Hour},
		{"by arithmetic", profile.Unknown(), limit.Tokens, headers.Quota{Limit: n(5), Inferred: day}, false, day},
		{"of a limit of the same size", profile.Unknown(), limit.Requests, headers.Quota{Limit: n(14_400), Reset: in(time.Hour)}, false, day},
		{"the time to full of a minute", linear, limit.Tokens, headers.Quota{Limit: n(6000), Remaining: n(3000), Reset: in(30 * time.Second)}, false, time.Minute},
		{"the time to full of a day", linear, limit.Tokens, headers.Quota{Limit: n(6000), Remaining: n(3000), Reset: in(12 * time.Hour)}, false, day},
		{"a reset that no bucket explains", linear, limit.Tokens, headers.Quota{Limit: n(6000), Remaining: n(5999), Reset: in(23 * time.Hour)}, false, 0},
		{"a reset above a minute", profile.Unknown(), limit.Tokens, headers.Quota{Limit: n(5), Reset: in(2 * time.Minute)}, false, 0},
		{"no dimension, a short reset", profile.Unknown(), limit.Requests, headers.Quota{Limit: n(5), Reset: in(time.Second)}, true, 0},
		{"no dimension, a longer reset", profile.Unknown(), limit.Requests, headers.Quota{Limit: n(5), Reset: in(45 * time.Second)}, true, time.Minute},
		{"by custom", profile.Unknown(), limit.Tokens, headers.Quota{Limit: n(5)}, false, time.Minute},
	} {
		b := newBudget(t, Options{Limits: []limit.Limit{
			{Name: "a day", Unit: limit.Requests, Rate: limit.Rate{N: 14_400, Window: day}},
			{Name: rpm, Unit: limit.Requests, Rate: limit.PerMinute(600)},
		}, Profile: row.profile})
		if got, _ := b.Scope().window(row.unit, row.q, row.unnamed); got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// Transports that come and go on one budget leave the user's limits as they are.
// Neither a cut nor the headroom of a profile is taken for configured. A profile
// that starts empty does not empty credit that is in use.
func TestWhatWasConfiguredOutlivesItsTransports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, Options{Limits: perMinute()})
		headroom := ruled(estimate.ChargeEstimate)
		headroom.Headroom = 95
		if !b.Scope().Adopt(time.Now(), headroom) {
			t.Fatal("the first profile was not adopted")
		}
		for range 20 {
			again := headroom
			again.StartEmpty, again.InputOnly = true, true
			if b.Scope().Adopt(time.Now(), again) {
				t.Fatal("a second profile was adopted")
			}
		}
		l := state(t, b, tpm)
		if l.Rate.N != 57_000 || l.Unit != limit.Tokens || balance(l) == 0 {
			t.Errorf("after twenty Transports: %v of %v, balance %d", l.Rate, l.Unit, balance(l))
		}
		// Refusals that nothing explains cut the rate; it grows back to all of it.
		for range 6 {
			time.Sleep(70 * time.Second)
			c := open(t, b, request(300, 100))
			c.Hear(time.Now(), &headers.Info{}, true)
			c.Refuse(time.Now(), Refusal{Wait: time.Second, Dimension: "tokens"})
		}
		if n := state(t, b, tpm).Rate.N; n >= 57_000 {
			t.Errorf("the rate is %d after six refusals", n)
		}
		time.Sleep(time.Hour)
		c := open(t, b, request(300, 100))
		c.Pass(time.Now())
		if n := state(t, b, tpm).Rate.N; n != 57_000 {
			t.Errorf("the rate is %d after an hour; 60,000 were configured, less the headroom", n)
		}
	})
}

// Several budgets follow one another over one limiter. Each reads the user's
// limit, not the limit that the budget before put in force.
func TestTwentyBudgetsOverOneLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := limit.New(limit.Options{Limits: perMinute()})
		if err != nil {
			t.Fatal(err)
		}
		headroom := ruled(estimate.ChargeEstimate)
		headroom.Headroom = 95
		for i := range 20 {
			b := newBudget(t, Options{Ledger: l, Profile: headroom})
			for range 3 {
				time.Sleep(70 * time.Second)
				c := open(t, b, request(300, 100))
				c.Hear(time.Now(), &headers.Info{}, true)
				c.Refuse(time.Now(), Refusal{Wait: time.Second, Dimension: "tokens"})
			}
			if s := state(t, b, tpm); s.Configured.Rate.N != 60_000 || s.Rate.N >= 57_000 {
				t.Fatalf("budget %d: %d in force after three refusals, %d configured", i, s.Rate.N, s.Configured.Rate.N)
			}
		}
		b := newBudget(t, Options{Ledger: l, Profile: headroom})
		if s := state(t, b, tpm); s.Rate.N != 57_000 {
			t.Errorf("the last budget starts at %d", s.Rate.N)
		}
	})
}

// A step of the wall clock changes nothing: use is counted on the monotonic one.
func TestRecentUseIsMonotonic(t *testing.T) {
	var r recent
	start := time.Now()
	r.add(start, time.Minute, 100)
	if n := r.in(start.Add(30*time.Second), time.Minute); n != 100 {
		t.Errorf("%d within the window", n)
	}
	if n := r.in(start.Add(-time.Hour), time.Minute); n != 100 {
		t.Errorf("%d at an older instant", n)
	}
	if n := r.in(start.Add(62*time.Second), time.Minute); n != 0 {
		t.Errorf("%d after the window", n)
	}
}

// The sum of the last window is never off by more than one part of sixty.
func TestRecentUseAgainstAList(t *testing.T) {
	type use struct {
		at time.Duration
		n  int64
	}
	var all []use
	var r recent
	start, at := time.Now(), time.Duration(0)
	for i := range 5000 {
		at += time.Duration(i*7919%2500) * time.Millisecond
		n := int64(i * 31 % 97)
		r.add(start.Add(at), time.Minute, n)
		all = append(all, use{at, n})
		var least, most int64
		for _, u := range all {
			if age := at - u.at; age < 59*time.Second {
				least += u.n
			}
			if age := at - u.at; age <= 61*time.Second {
				most += u.n
			}
		}
		if got := r.in(start.Add(at), time.Minute); got < least || got > most {
			t.Fatalf("at %v: %d, want %d to %d", at, got, least, most)
		}
	}
}

// A cut grows back at its pace, never above the limit, and each refusal at the
// same rate makes the passage slower.
func TestACutGrowsBack(t *testing.T) {
	var c cut
	at := time.Now()
	if c.active() || c.of(1000, at) != 1000 {
		t.Fatal("the zero cut cuts")
	}
	last := time.Duration(0)
	for i := range 4 {
		c.deepen(at, whole)
		if left := c.of(1_000_000, at); left > 800_000 {
			t.Errorf("after refusal %d: %d of a million run", i+1, left)
		}
		var took time.Duration
		before := int64(0)
		for took = 0; c.left(at.Add(took)) > 0; took += time.Second {
			n := c.of(1_000_000, at.Add(took))
			if n < before || n > 1_000_000 {
				t.Fatalf("%d after %d", n, before)
			}
			before = n
			if took > 10*time.Minute {
				t.Fatal("it never grows back")
			}
		}
		if took < last {
			t.Errorf("refusal %d: back after %v, sooner than the %v before", i+1, took, last)
		}
		last, at = took, at.Add(took)
	}
}

// The first refusal is waited off as it says; further ones in a row double what
// everybody waits, up to a minute. Refused together is refused once.
func TestAStreak(t *testing.T) {
	var s streak
	at := time.Now()
	want := []time.Duration{0, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute}
	for i, w := range want {
		sent := at.Add(time.Millisecond) // after the wait of the one before
		at = at.Add(time.Second)
		if got := s.refused(at, sent); got != w {
			t.Errorf("refusal %d: wait %v, want %v", i+1, got, w)
		}
		if got := s.refused(at, sent); got != w {
			t.Errorf("refusal %d, together with another: wait %v, want %v", i+1, got, w)
		}
		at = at.Add(w)
	}
	old := s
	for range 9 { // hours apart, without an answer between
		at := at.Add(6 * time.Hour)
		if got := old.refused(at, at.Add(-time.Second)); got != 0 {
			t.Errorf("six hours later: wait %v", got)
		}
		old.last = old.last.Add(-6 * time.Hour)
	}
	s.admitted(at.Add(-time.Hour)) // it left before
	if got := s.refused(at.Add(time.Second), at); got == 0 {
		t.Error("an answer from before the refusal ended the streak")
	}
	s.admitted(at.Add(2 * time.Second))
	if got := s.refused(at.Add(4*time.Second), at.Add(3*time.Second)); got != 0 {
		t.Errorf("after an answer: wait %v", got)
	}
}

// A Ledger that cannot be is an error that names the field.
func TestOptionsThatCannotBe(t *testing.T) {
	l, err := limit.New(limit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{
		"Options.Ledger is a nil *limit.Limiter": {Ledger: (*limit.Limiter)(nil)},
		"Options.Ledger is set":                  {Ledger: l, MaxQueue: 3},
		"Rate.N is -1":                           {Limits: []limit.Limit{{Rate: limit.PerMinute(-1)}}},
		"Options.Burst is -1s":                   {Burst: -time.Second},
		"MaxQueue":                               {MaxQueue: -1},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v", want, err)
		}
	}
}

// A foreign ledger keeps its own books: it is asked for the price, and each
// reservation of its own gets its one end, with the tokens that were really used.
func TestALedgerOfAnotherMaking(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(*Call)
		want string
	}{
		"answered": {func(c *Call) {
			r := usage.Result{Found: true, Complete: true}
			r.Input, r.Output = usage.Count{N: 7, OK: true}, usage.Count{N: 3, OK: true}
			c.Settle(time.Now(), &r)
		}, "take 8+500, sent, settle 7+3"},
		"unsent":  {func(c *Call) { c.End(Unsent) }, "take 8+500, sent, return"},
		"unknown": {func(c *Call) { c.End(Unknown) }, "take 8+500, sent, keep"},
		"free":    {func(c *Call) { c.End(Free) }, "take 8+500, sent, settle 0+0"},
	} {
		l := &foreign{names: map[string]bool{"not": true}}
		b := newBudget(t, Options{Ledger: l, Profile: ruled(estimate.ChargeSettle)})
		c := open(t, b, request(8, 500))
		row.end(c)
		c.End(Unknown)
		if got := strings.Join(l.log, ", "); got != row.want || !c.Between() {
			t.Errorf("%s: %s; want %s", name, got, row.want)
		}
	}
}

// foreign is a ledger that writes down its calls. It cannot be compared.
type foreign struct {
	log   []string
	names map[string]bool
}

func (f *foreign) note(format string, args ...any) {
	f.log = append(f.log, fmt.Sprintf(format, args...))
}

func (f *foreign) Admit(_ context.Context, a limit.Ask) (limit.Reservation, error) {
	f.note("take %d+%d", a.Cost.Input, a.Cost.Output)
	return limit.Hold(handles{f, f.names}, 7), nil
}

func (f *foreign) TryAdmit(a limit.Ask) (limit.Reservation, error) {
	return f.Admit(context.Background(), a)
}
func (f *foreign) Forecast(limit.Ask) limit.Forecast                    { return limit.Forecast{} }
func (f *foreign) SetScope(string, limit.ScopeOptions) error            { return nil }
func (f *foreign) SetScopeLimit(string, limit.Limit) error              { return nil }
func (f *foreign) EnforceScopeLimit(string, limit.Limit) error          { return nil }
func (f *foreign) PauseScope(string, limit.Pause)                       {}
func (f *foreign) ResumeScope(string)                                   {}
func (f *foreign) DrainScope(string, string, int64, time.Duration) bool { return false }
func (f *foreign) Snapshot() limit.Snapshot                             { return limit.Snapshot{} }

// handles are its reservations.
type handles struct {
	*foreign
	names map[string]bool
}

func (h handles) Settle(_ uint64, c limit.Cost)                        { h.note("settle %d+%d", c.Input, c.Output) }
func (h handles) Keep(uint64)                                          { h.note("keep") }
func (h handles) Return(uint64)                                        { h.note("return") }
func (h handles) Cost(uint64) limit.Cost                               { return limit.Cost{} }
func (h handles) Sent(uint64)                                          { h.note("sent") }
func (h handles) Lower(uint64, string, string, int64, limit.Cost) bool { return false }

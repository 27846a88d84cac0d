package redislimit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/redislimit"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

// An answer that is lost after the store has decided: the call is sent again, and
// counts once. So the credit at the end is the credit at the start, less the real
// use.
func TestALostAnswerCountsOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	runner := viaRueidis(t, server.Addr)
	var lost atomic.Int64
	var m []*redislimit.Limiter
	for i := range 3 {
		var n atomic.Int64
		w := &wire{Runner: runner}
		m = append(m, open(t, redislimit.Options{Runner: w, MaxInFlight: 20, Limits: []limit.Limit{
			{Name: "tokens", Unit: limit.Tokens, Rate: limit.PerDay(1), Burst: 1_000_000},
		}}))
		w.lose = func() bool { // every third, from now on
			if n.Add(1)%3 == int64(i) {
				lost.Add(1)
				return true
			}
			return false
		}
	}
	var used atomic.Int64
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 3))
			for range 40 {
				ctx, stop := context.WithTimeout(context.Background(), time.Duration(r.IntN(20_000))*time.Microsecond)
				cost := tokens(1 + r.Int64N(100))
				got, err := m[i%3].Admit(ctx, limit.Ask{Cost: cost, Tenant: strconv.Itoa(i % 5)})
				stop()
				if err != nil {
					continue
				}
				switch r.IntN(3) {
				case 0:
					actual := r.Int64N(150)
					used.Add(actual)
					got.Settle(tokens(actual))
					got.Settle(tokens(0))
				case 1:
					used.Add(cost.Input)
					got.Keep()
				default:
					got.Return()
				}
			}
		})
	}
	all.Wait()
	eventually(t, 5*time.Second, "all is settled", func() bool {
		s := m[0].Snapshot()
		return s.InFlight == 0 && s.Waiting == 0 && s.Limits[0].Credit == 1_000_000-used.Load()
	})
	if lost.Load() < 20 || used.Load() == 0 {
		t.Fatalf("only %d answers were lost, %d tokens used", lost.Load(), used.Load())
	}
	t.Logf("%d answers lost, %d tokens used", lost.Load(), used.Load())
}

// Report: upstash/ratelimit-js#122
func TestAScriptFlushIsNotSeen(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, via := range clients {
		t.Run(name, func(t *testing.T) {
			l := open(t, redislimit.Options{Runner: via(t, server.Addr), Limits: tokenLimit(limit.PerDay(1), 100, false)})
			for range 5 {
				take(t, l, limit.Ask{Cost: tokens(7)}).Keep()
				server.Must(t, "SCRIPT", "FLUSH")
			}
			if c := credit(t, l, "tokens"); c != 65 {
				t.Errorf("credit %d after 5 of 7 out of 100", c)
			}
		})
	}
}

// Report: PatchMon/PatchMon#955
func TestEveryKeyEndsAndNoneBeforeItsDebt(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	runner := viaRueidis(t, server.Addr)
	m := members(t, 2, func() redislimit.Runner { return runner }, redislimit.Options{
		Limits: tokenLimit(limit.PerHour(10), 10, false), MaxInFlight: 3})
	take(t, m[0], limit.Ask{Cost: tokens(10), Tenant: "t"}).Settle(tokens(40)) // three hours of debt
	queue(t, m[0], limit.Ask{Cost: tokens(1), Tenant: "t"})
	queue(t, m[1], limit.Ask{Cost: tokens(1), Tenant: "u"})
	queue(t, m[1], limit.Ask{Cost: tokens(1), Class: limit.Batch})
	m[1].PauseScope("elsewhere", limit.Pause{For: 5 * time.Hour})
	lim := limit.Limit{Name: "log", Rate: limit.Rate{N: 100, Window: time.Second}, Guard: 10, Law: limit.Law{Shape: limit.ShapeLog}}
	m[0].EnforceScopeLimit("windowed", lim)
	for range 3 {
		take(t, m[0], limit.Ask{Cost: requests(1), Scopes: []string{"windowed"}}).Keep()
		time.Sleep(5 * time.Millisecond) // another slot
	}
	m[0].Note("windowed", "key", "text")
	m[0].Snapshot()
	keys := strings.Split(server.Must(t, "KEYS", "*"), "\n")
	if len(keys) < 8 {
		t.Fatalf("only %q", keys)
	}
	for _, k := range keys {
		ms, _ := strconv.Atoi(server.Must(t, "PTTL", k))
		least := time.Minute
		if strings.HasSuffix(k, ":s:") {
			least = 4 * time.Hour // three of debt, and one until it is full
		}
		if strings.HasSuffix(k, ":s:elsewhere") {
			least = 5 * time.Hour
		}
		if d := time.Duration(ms) * time.Millisecond; d < least {
			t.Errorf("%q ends in %v, before %v", k, d, least)
		}
		if !strings.HasPrefix(k, "tripmeter:{"+t.Name()+"}:") {
			t.Errorf("%q lies outside the budget's slot", k)
		}
	}
}

// The state is gone (FLUSHALL, eviction, a restart without persistence): members
// remember that there was one, nothing is admitted for the learning period, and
// then it begins from nothing.
func TestLostStateIsNoFreshBurst(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"flush", "evicted", "restart"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			onTime(t, func(t testing.TB) { theLostState(t, how) })
		})
	}
}

func theLostState(t testing.TB, how string) {
	server := redistest.Start(t)
	var gaps atomic.Int64
	runner := viaGoRedis(t, server.Addr)
	m := members(t, 3, func() redislimit.Runner { return runner }, redislimit.Options{Timeout: 1500 * time.Millisecond, MemberTTL: 3 * time.Second,
		Limits: append(tokenLimit(limit.PerSecond(1000), 10_000, false), limit.Limit{Name: "day", Unit: limit.Tokens, Rate: limit.PerDay(50_000), Burst: 50_000}),
		Trace:  redislimit.Trace{Gap: func(redislimit.State) { gaps.Add(1) }}})
	held := take(t, m[0], limit.Ask{Cost: tokens(6000)})
	take(t, m[1], limit.Ask{Cost: tokens(4000)}).Keep()
	m[0].Snapshot()
	m[1].Snapshot()
	switch how {
	case "flush":
		server.Must(t, "FLUSHALL")
	case "evicted":
		server.Must(t, "DEL", "tripmeter:{"+t.Name()+"}:s:")
	default:
		server.Kill()
		server.Run(t)
	}
	start := time.Now()
	eventually(t, 3*time.Second, "members are back", func() bool {
		return !m[0].State().Away && !m[1].State().Away && !m[2].State().Away && gaps.Load() > 0 && m[2].Snapshot().InFlight == 1
	})
	admitted := int64(0)
	for time.Since(start) < 2*time.Second {
		for _, l := range m {
			if r, err := l.TryAdmit(limit.Ask{Cost: tokens(100)}); err == nil {
				admitted += 100
				r.Keep()
			}
		}
		time.Sleep(time.Millisecond)
	}
	if most := int64(1000*time.Since(start).Seconds()) + 100; admitted > most {
		t.Errorf("%d tokens after the state was lost, of at most %d", admitted, most)
	}
	if admitted < 500 {
		t.Errorf("only %d tokens in %v", admitted, time.Since(start))
	}
	if d := credit(t, m[0], "day"); d > 40_100-admitted {
		t.Errorf("the day has %d left; 10,000 were spent before, %d after", d, admitted)
	}
	held.Settle(tokens(6000))
	eventually(t, time.Second, "its place came back", func() bool { return m[1].Snapshot().InFlight == 0 })
}

func TestARestartWithPersistenceKeepsDebt(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	l := open(t, redislimit.Options{Runner: viaGoRedis(t, server.Addr), Limits: tokenLimit(limit.PerHour(1), 10, false)})
	take(t, l, limit.Ask{Cost: tokens(10)}).Settle(tokens(25))
	eventually(t, time.Second, "the debt is known", func() bool { return credit(t, l, "tokens") == -15 })
	server.Kill()
	server.Run(t)
	eventually(t, 3*time.Second, "it answers", func() bool { return !l.State().Away && l.State().Err == nil })
	if c := credit(t, l, "tokens"); c != -15 {
		t.Errorf("credit %d after a restart, 15 were owed", c)
	}
}

// Of the eviction policies noeviction alone keeps budgets: all keys end, so any
// other may take them. With it a full server refuses the call, before it changes
// anything, and the local share goes on.
func TestAFullServerRefusesAndChangesNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	l := open(t, redislimit.Options{Timeout: brisk, Runner: viaGoRedis(t, server.Addr), Limits: tokenLimit(limit.PerHour(1), 100, false)})
	take(t, l, limit.Ask{Cost: tokens(10)}).Keep()
	server.Must(t, "CONFIG", "SET", "maxmemory", "1")
	_, err := l.TryAdmit(limit.Ask{Cost: tokens(10)})
	if !errors.Is(err, redislimit.ErrAway) || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("from a server without memory: %v", err)
	}
	server.Must(t, "CONFIG", "SET", "maxmemory", "0")
	eventually(t, 2*time.Second, "it answers", func() bool { return !l.State().Away })
	if c := credit(t, l, "tokens"); c > 90 {
		t.Errorf("credit %d", c)
	}
}

func TestKeysOfAnotherProgramAreAnErrorAndNoHang(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	runner := viaGoRedis(t, server.Addr)
	server.Must(t, "SET", "tripmeter:{"+t.Name()+"}:s:", "of another program")
	_, err := redislimit.New(redislimit.Options{Name: t.Name(), Runner: runner, Limits: tokenLimit(limit.PerHour(1), 1, false)})
	var e *redislimit.StoreError
	if !errors.As(err, &e) {
		t.Errorf("%v", err)
	}
}

// A state in another layout, of a version before or after this one, is not read and not
// changed. The error says what to do. Where it comes while a process runs, that has
// its local share until the state is gone.
func TestAnotherLayoutIsAnError(t *testing.T) {
	t.Parallel()
	for found, change := range map[int64]func(state string) string{
		0:  func(state string) string { return state[1:] }, // before layouts had numbers
		99: func(state string) string { return "\x63" + state[1:] },
	} {
		t.Run(fmt.Sprint(found), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			runner := viaRueidis(t, server.Addr)
			o := redislimit.Options{Name: t.Name(), Runner: runner, Timeout: brisk, Limits: tokenLimit(limit.PerSecond(1000), 100, false),
				Open: func(string) (limit.ScopeOptions, []limit.Limit) {
					return limit.ScopeOptions{}, tokenLimit(limit.PerSecond(1000), 100, false)
				}}
			l := open(t, o)
			for _, scope := range []string{"", "model"} {
				t.Run("scope "+scope, func(t *testing.T) { theLayout(t, server, l, o, scope, found, change) })
			}
		})
	}
}

func theLayout(t *testing.T, server *redistest.Server, l *redislimit.Limiter, o redislimit.Options, scope string, found int64, change func(string) string) {
	a := limit.Ask{Cost: tokens(10), Tenant: "model"}
	goes := func() bool {
		r, err := l.TryAdmit(a)
		r.Return()
		return err == nil && !l.State().Away
	}
	eventually(t, 3*time.Second, "it begins", goes)
	l.Snapshot()
	key := "tripmeter:{" + o.Name + "}:s:" + scope
	other := change(server.Must(t, "GET", key))
	server.Must(t, "SET", key, other)
	var e *redislimit.LayoutError
	if scope == "" {
		if l, err := redislimit.New(o); !errors.As(err, &e) || e.Found != found || e.Want == found || e.Budget != o.Name {
			t.Errorf("a process that begins: %v", err)
			if err == nil {
				l.Close()
			}
		}
	}
	_, err := l.TryAdmit(a)
	if !errors.Is(err, redislimit.ErrAway) || !errors.As(err, &e) || e.Found != found {
		t.Errorf("a process that runs: %v", err)
	}
	if now := server.Must(t, "GET", key); now != other {
		t.Error("the state was changed")
	}
	server.Must(t, "DEL", key)
	eventually(t, 3*time.Second, "it goes on", goes)
}

// Report: otovo/redis-rate-limiters#11
func TestAServerThatRefusesTheScriptIsNamedAtTheStart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Must(t, "ACL", "SETUSER", "default", "-time")
	_, err := redislimit.New(redislimit.Options{Name: t.Name(), Runner: viaGoRedis(t, server.Addr), Limits: tokenLimit(limit.PerHour(1), 1, false)})
	var e *redislimit.StoreError
	if !errors.As(err, &e) || e.Advice == "" {
		t.Errorf("%v", err)
	}
	if err != nil {
		t.Log(err)
	}
}

// Report: Future-House/ldp#464
func TestAStoreThatNeverAnswersIsBounded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	runner := viaGoRedis(t, server.Addr)
	server.Freeze()
	start := time.Now()
	_, err := redislimit.New(redislimit.Options{Name: t.Name(), Runner: runner, Timeout: 200 * time.Millisecond, Limits: tokenLimit(limit.PerHour(1), 1, false)})
	if err == nil || time.Since(start) > 1200*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	// With the number of Members set, it begins with its share.
	l := open(t, redislimit.Options{Runner: runner, Timeout: 200 * time.Millisecond, Members: 4, Limits: tokenLimit(limit.PerSecond(4000), 4000, false)})
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	start = time.Now()
	if _, err := l.Admit(ctx, limit.Ask{Cost: tokens(500)}); err != nil || time.Since(start) < 450*time.Millisecond {
		t.Errorf("500 tokens at a quarter of 4,000 a second: %v after %v", err, time.Since(start))
	}
	server.Thaw()
	eventually(t, 2*time.Second, "it is back", func() bool { return !l.State().Away })
}

func TestThePolicyWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	for _, p := range []redislimit.Away{redislimit.Closed, redislimit.Share, redislimit.Open} {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			runner := viaGoRedis(t, server.Addr)
			var away, back atomic.Int64
			m := members(t, 2, func() redislimit.Runner { return runner }, redislimit.Options{Timeout: brisk,
				Away: p, Limits: tokenLimit(limit.PerSecond(1000), 1000, false), MaxInFlight: 10,
				Trace: redislimit.Trace{
					Away: func(s redislimit.State) {
						if s.Away && s.Err != nil && s.Members == 2 {
							away.Add(1)
						}
					},
					Back: func(s redislimit.State) { back.Add(1) },
				}})
			m[0].Snapshot()
			server.Freeze()
			start := time.Now()
			_, err := m[0].TryAdmit(limit.Ask{Cost: tokens(500)})
			var e *redislimit.AwayError
			if !errors.As(err, &e) || e.Members != 2 || time.Since(start) > time.Second {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
			if s := m[0].Snapshot(); !strings.Contains(s.Degraded, "away") {
				t.Errorf("the snapshot says %q", s.Degraded)
			}
			start = time.Now()
			got := map[redislimit.Away]time.Duration{redislimit.Share: 500 * time.Millisecond, redislimit.Open: 250 * time.Millisecond}[p]
			r, err := m[0].Admit(context.Background(), limit.Ask{Cost: tokens(250)})
			switch {
			case p == redislimit.Closed:
				if !errors.Is(err, redislimit.ErrAway) {
					t.Errorf("%v", err)
				}
			case err != nil || time.Since(start) > got+400*time.Millisecond || time.Since(start) < got-300*time.Millisecond:
				t.Errorf("250 tokens after %v: %v", time.Since(start), err)
			}
			eventually(t, 2*time.Second, "both know", func() bool { return m[0].State().Away && m[1].State().Away })
			server.Thaw()
			eventually(t, 2*time.Second, "both are back", func() bool { return !m[0].State().Away && !m[1].State().Away })
			if away.Load() != 2 || back.Load() != 2 {
				t.Errorf("%d went away and %d came back, of two", away.Load(), back.Load())
			}
			if p != redislimit.Closed {
				eventually(t, time.Second, "the call under way is known to all", func() bool { return m[1].Snapshot().InFlight == 1 })
				r.Settle(tokens(250))
				eventually(t, time.Second, "and its end", func() bool { return m[1].Snapshot().InFlight == 0 })
			}
		})
	}
}

// One process alone loses the store. It goes on with its share, and its spending
// is charged when the store is back: nothing is admitted twice in the long run.
func TestOneProcessCutOffIsChargedForItsShare(t *testing.T) {
	t.Parallel()
	o := redislimit.Options{Limits: tokenLimit(limit.PerDay(1000), 1000, false), Timeout: 100 * time.Millisecond}
	bubble(t, 2, o, theOneProcessCutOffIsChargedForItsShare)
}

func theOneProcessCutOffIsChargedForItsShare(t *testing.T, _ *redistest.Server, m []*redislimit.Limiter, lines []*wire) {
	m[0].Snapshot()
	lines[0].cut.Store(true)
	eventually(t, 3*time.Second, "it is away", func() bool { return m[0].State().Away })
	if err := m[0].SetScopeLimit("", limit.Limit{Name: "tokens", Unit: limit.Tokens, Rate: limit.PerSecond(1000), Burst: 1000}); !errors.Is(err, redislimit.ErrAway) {
		t.Fatalf("a change that only this process knows of: %v", err)
	}
	r, err := m[0].Admit(context.Background(), limit.Ask{Cost: tokens(100)})
	if err != nil {
		t.Fatal(err)
	}
	r.Settle(tokens(70))
	if err := m[0].SetScopeLimit("", limit.Limit{Name: "tokens", Unit: limit.Tokens, Rate: limit.PerDay(1000), Burst: 1000}); !errors.Is(err, redislimit.ErrAway) {
		t.Fatal(err)
	}
	lines[0].cut.Store(false)
	eventually(t, 3*time.Second, "its 70 tokens are charged", func() bool { return credit(t, m[1], "tokens") <= 930 })
	if c := credit(t, m[1], "tokens"); c < 925 {
		t.Errorf("credit %d, and 70 were used", c)
	}
}

type admission struct {
	at     time.Time
	tokens int64
}

// hammer keeps every member busy for d. It returns the admissions in order of
// time, and the longest time of a call. Each call is bound to one second.
func hammer(m []*redislimit.Limiter, callers int, cost int64, d time.Duration) (all []admission, longest time.Duration) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for _, l := range m {
		for range callers {
			wg.Go(func() {
				for time.Now().Before(end) {
					start := time.Now()
					ctx, stop := context.WithTimeout(context.Background(), time.Second)
					r, err := l.Admit(ctx, limit.Ask{Cost: tokens(cost)})
					stop()
					at := time.Now()
					mu.Lock()
					longest = max(longest, at.Sub(start))
					if err == nil {
						all = append(all, admission{at, cost})
					}
					mu.Unlock()
					if err == nil {
						r.Keep()
					} else {
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
	}
	wg.Wait()
	return all, longest
}

// most is the largest excess of any span over burst + rate*span, in tokens.
func excess(all []admission, rate, burst float64) float64 {
	over, level := 0.0, burst
	last := time.Time{}
	for _, a := range all {
		if !last.IsZero() {
			level = min(burst, level+rate*a.at.Sub(last).Seconds())
		}
		last = a.at
		level -= float64(a.tokens)
		over = max(over, -level)
	}
	return over
}

func between(all []admission, from, to time.Time) (sum float64) {
	for _, a := range all {
		if a.at.After(from) && a.at.Before(to) {
			sum += float64(a.tokens)
		}
	}
	return sum
}

// Report: JuanLunaIA/aegis-latent-core#67
func TestThirtySecondsWithoutTheStore(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"stopped", "frozen"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			onTime(t, func(t testing.TB) { thirtySeconds(t, how) })
		})
	}
}

func thirtySeconds(t testing.TB, how string) {
	const rate, burst, outage = 2000, 4000, 30 * time.Second
	server := redistest.Start(t)
	m := members(t, 4, func() redislimit.Runner { return viaGoRedis(t, server.Addr) }, redislimit.Options{Timeout: brisk, Limits: tokenLimit(limit.PerSecond(rate), burst, true)})
	for _, l := range m {
		l.Snapshot()
	}
	begun := time.Now()
	var down, up time.Time
	go func() {
		time.Sleep(3 * time.Second)
		down = time.Now()
		if how == "stopped" {
			server.Kill()
		} else {
			server.Freeze()
		}
		time.Sleep(outage)
		if how == "stopped" {
			server.Run(t)
		} else {
			server.Thaw()
		}
		up = time.Now()
	}()
	all, longest := hammer(m, 8, 20, outage+8*time.Second)
	if over := excess(all, rate, burst+rate/4); over > 0 {
		t.Errorf("%.0f tokens over the limit", over)
	}
	before := between(all, begun.Add(time.Second), down) / (rate * down.Sub(begun.Add(time.Second)).Seconds())
	during := between(all, down.Add(time.Second), up) / (rate * up.Sub(down.Add(time.Second)).Seconds())
	back := time.Duration(0)
	for _, l := range m {
		if l.State().Away {
			t.Error("still away")
		}
	}
	for _, a := range all {
		if a.at.After(up.Add(600 * time.Millisecond)) {
			back = a.at.Sub(up)
			break
		}
	}
	after := between(all, up.Add(time.Second), up.Add(4*time.Second)) / (rate * 3)
	t.Logf("used: before %.3f, during %.3f, after %.3f; the longest call %v; first after the learning period %v", before, during, after, longest, back)
	if longest > 1500*time.Millisecond {
		t.Errorf("a call bound to one second took %v", longest)
	}
	if during > 1.01 { // TestSharesUseTheRate has how little it may be
		t.Errorf("the shares used %.3f of the rate", during)
	}
	if back > time.Second {
		t.Errorf("back after %v", back)
	}
	if after < 0.75 || after > 1.2 { // that it is no burst, excess has shown
		t.Errorf("%.3f of the rate after it", after)
	}
}

// Thirty seconds without the store in fake time, where nothing is late: the shares of
// four members use nine tenths of the rate and more, together, and not more than it gives.
func TestSharesUseTheRate(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"stopped", "frozen"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			const rate, burst, outage = 2000, 4000, 30 * time.Second
			o := redislimit.Options{Timeout: brisk, Limits: tokenLimit(limit.PerSecond(rate), burst, true)}
			bubble(t, 4, o, func(t *testing.T, _ *redistest.Server, m []*redislimit.Limiter, lines []*wire) {
				for _, l := range m {
					l.Snapshot()
				}
				set := func(away bool) {
					for _, w := range lines {
						if how == "stopped" {
							w.cut.Store(away)
						} else {
							w.frozen.Store(away)
						}
					}
				}
				down := time.Now().Add(3 * time.Second)
				up := down.Add(outage)
				time.AfterFunc(time.Until(down), func() { set(true) })
				time.AfterFunc(time.Until(up), func() { set(false) })
				all, longest := hammer(m, 8, 50, outage+6*time.Second)
				if over := excess(all, rate, burst); over > 0 {
					t.Errorf("%.0f tokens over the limit", over)
				}
				during := between(all, down.Add(time.Second), up) / (rate * (outage - time.Second).Seconds())
				t.Logf("the shares used %.3f of the rate, the longest call took %v", during, longest)
				if during < 0.9 || during > 1.01 || longest > time.Second+brisk {
					t.Errorf("the shares used %.3f of the rate; the longest call took %v", during, longest)
				}
			})
		})
	}
}

func TestACluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.Addr)
	}
	for name, via := range clients {
		t.Run(name, func(t *testing.T) {
			runner := via(t, addrs...)
			for i := range 9 {
				budget := fmt.Sprint(t.Name(), i)
				m := members(t, 2, func() redislimit.Runner { return runner }, redislimit.Options{Name: budget, Limits: tokenLimit(limit.PerHour(1), 10, false)})
				r := take(t, m[0], limit.Ask{Cost: tokens(10), Tenant: "t", Scopes: []string{"a", "b"}})
				x := queue(t, m[1], limit.Ask{Cost: tokens(4), Tenant: "t"})
				r.Settle(tokens(6))
				x.within(t, 2*time.Second)
			}
		})
	}
	used := 0
	for _, n := range nodes {
		if n.Must(t, "DBSIZE") != "0" {
			used++
		}
	}
	if used < 2 {
		t.Errorf("18 budgets lie on %d of 3 nodes", used)
	}
}

// A program that ends and begins again finds the budget as it left it: nobody takes
// the time between for a gap.
func TestAProgramThatEndsInPeaceLeavesNoGap(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	runner := viaGoRedis(t, server.Addr)
	o := redislimit.Options{Runner: runner, Limits: tokenLimit(limit.PerDay(1), 100, false), MemberTTL: 600 * time.Millisecond}
	l := open(t, o)
	take(t, l, limit.Ask{Cost: tokens(10)})
	take(t, l, limit.Ask{Cost: tokens(20)}).Settle(tokens(5))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.TryAdmit(limit.Ask{}); !errors.Is(err, redislimit.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	time.Sleep(1200 * time.Millisecond)
	l = open(t, o)
	if c := credit(t, l, "tokens"); c != 85 {
		t.Errorf("credit %d, of 100 less 15", c)
	}
	if s := l.State(); s.Members != 1 || s.Gaps != 0 {
		t.Errorf("%+v", s)
	}
	if s := l.Snapshot(); s.InFlight != 0 {
		t.Errorf("%d in flight", s.InFlight)
	}
}

// The share is of every scope: its limits, configured here or learned by another
// process, its places and its pause.
func TestTheShareIsOfEveryScope(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	runner := viaGoRedis(t, server.Addr)
	m := members(t, 2, func() redislimit.Runner { return runner }, redislimit.Options{Timeout: brisk,
		Open: func(scope string) (limit.ScopeOptions, []limit.Limit) {
			if scope == "model" {
				return limit.ScopeOptions{MaxInFlight: 4}, tokenLimit(limit.PerHour(1000), 1000, false)
			}
			return limit.ScopeOptions{}, nil
		}})
	if err := m[1].SetScopeLimit("account", limit.Limit{Name: "learned", Rate: limit.PerHour(60), Burst: 60}); err != nil {
		t.Fatal(err)
	}
	m[1].PauseScope("held", limit.Pause{For: time.Hour})
	for _, scope := range []string{"model", "account"} {
		take(t, m[0], limit.Ask{Scopes: []string{scope}}).Return()
	}
	if _, err := m[0].TryAdmit(limit.Ask{Scopes: []string{"held"}}); !errors.Is(err, limit.ErrLimited) {
		t.Fatal(err)
	}
	server.Freeze()
	defer server.Thaw()
	eventually(t, 3*time.Second, "it is away", func() bool { return m[0].State().Away })

	var e *limit.Error
	_, err := m[0].TryAdmit(limit.Ask{Cost: tokens(1), Scopes: []string{"model"}})
	if !errors.As(err, &e) || e.Scope != "model" || e.Wait < 7*time.Second || e.Wait > 7300*time.Millisecond { // 1 of 500 an hour
		t.Errorf("a token of the share: %v", err)
	}
	for range 2 {
		take(t, m[0], limit.Ask{Scopes: []string{"model"}})
	}
	if _, err := m[0].TryAdmit(limit.Ask{Scopes: []string{"model"}}); !errors.As(err, &e) || e.Dimension != "in-flight" || e.Capacity != 2 {
		t.Errorf("a third place of half of four: %v", err)
	}
	_, err = m[0].TryAdmit(limit.Ask{Cost: requests(1), Scopes: []string{"account"}})
	if !errors.As(err, &e) || e.Scope != "account" || e.Wait < 115*time.Second || e.Wait > 120*time.Second { // 1 of 30 an hour
		t.Errorf("a request under what the other process learned: %v", err)
	}
	if _, err := m[0].TryAdmit(limit.Ask{Scopes: []string{"held"}}); !errors.As(err, &e) || e.Dimension != "pause" {
		t.Errorf("in a pause that is known: %v", err)
	}
}

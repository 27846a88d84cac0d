package limittest

import (
	"context"
	"errors"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// perSecond configures one limit on tokens of a scope.
func (s *script) perSecond(l ledger, scope string, n, burst int64) {
	err := l.SetScopeLimit(scope, limit.Limit{Name: "tokens", Unit: limit.Tokens, Rate: limit.PerSecond(n), Burst: burst})
	s.must(err == nil, "%v", err)
}

func (s *script) perHour(l ledger, scope string, n int64) {
	err := l.SetScopeLimit(scope, limit.Limit{Name: "tokens", Unit: limit.Tokens, Rate: limit.PerHour(n), Burst: n})
	s.must(err == nil, "%v", err)
}

// of is the state of a scope in a snapshot.
func of(l ledger, scope string) limit.Snapshot {
	snap := l.Snapshot()
	for _, one := range snap.Scopes {
		if one.Scope == scope {
			return one
		}
	}
	if scope == "" {
		return snap
	}
	return limit.Snapshot{}
}

var scopePromises = []promise{
	{"a call takes from its whole path", func(s *script) {
		l := s.limiter(tokensPer(limit.PerHour(100), 100, false))
		s.perHour(l, "model", 50)
		s.perHour(l, "tenant", 30)
		a := limit.Ask{Cost: tokens(20), Scopes: []string{"model"}, Tenant: "tenant"}
		s.takeAs(l, a).Keep()
		_, err := l.TryAdmit(a)
		var e *limit.Error
		s.check(errors.Is(err, limit.ErrLimited) && errors.As(err, &e) && e.Scope == "tenant" && e.Dimension == "tokens", "%v", err)
		a.Tenant = ""
		s.takeAs(l, a).Keep()
		_, err = l.TryAdmit(a)
		s.check(errors.Is(err, limit.ErrLimited) && errors.As(err, &e) && e.Scope == "model", "%v", err)
		s.take(l, tokens(60)).Keep() // nothing was spent by the refusals
		_, err = l.TryAcquire(tokens(1))
		s.check(errors.Is(err, limit.ErrLimited) && errors.As(err, &e) && e.Scope == "", "%v", err)
	}},

	{"a refusal in one scope spends nothing in another", func(s *script) {
		l := s.limiter(tokensPer(limit.PerHour(100), 100, false))
		s.perHour(l, "model", 10)
		for range 20 {
			_, err := l.TryAdmit(limit.Ask{Cost: tokens(11), Scopes: []string{"model"}})
			var e *limit.Error
			s.check(errors.Is(err, limit.ErrTooLarge) && errors.As(err, &e) && e.Scope == "model" && e.Capacity == 10, "%v", err)
		}
		s.take(l, tokens(100)).Keep()
	}},

	{"what is given back is given back in every scope", func(s *script) {
		l := s.limiter(tokensPer(limit.PerHour(100), 100, false))
		s.perHour(l, "model", 100)
		a := limit.Ask{Cost: tokens(100), Scopes: []string{"model"}}
		s.takeAs(l, a).Return()
		s.takeAs(l, a).Settle(tokens(40))
		a.Cost = tokens(60)
		s.takeAs(l, a).Keep()
		for _, scope := range []string{"", "model"} {
			got := of(l, scope)
			s.check(len(got.Limits) == 1 && got.Limits[0].Credit == 0 && got.InFlight == 0, "%q: %+v", scope, got)
		}
	}},

	{"a scope named twice counts once", func(s *script) {
		l := s.limiter(limit.Options{})
		s.perHour(l, "model", 10)
		s.takeAs(l, limit.Ask{Cost: tokens(10), Scopes: []string{"model", "model"}, Tenant: "model"}).Keep()
	}},

	{"those who wait for different limits do not wait for each other", func(s *script) {
		l := s.limiter(limit.Options{})
		s.perHour(l, "slow", 1)
		s.perSecond(l, "fast", 20, 1)
		s.takeAs(l, limit.Ask{Cost: tokens(1), Scopes: []string{"slow"}}).Keep()
		s.takeAs(l, limit.Ask{Cost: tokens(1), Scopes: []string{"fast"}}).Keep()
		slow := s.waitAs(l, limit.Ask{Cost: tokens(1), Scopes: []string{"slow"}}, 0)
		fast := s.waitAs(l, limit.Ask{Cost: tokens(1), Scopes: []string{"fast"}}, 0)
		s.end(100*time.Millisecond+4*s.clock.Slack, fast)
		s.check(fast.err == nil && slow.waiting(), "fast: %v", fast.err)
		slow.stop()
		<-slow.done
	}},

	{"a call that needs nothing of a limit passes those who wait for it", func(s *script) {
		l := s.limiter(tokensPer(limit.PerHour(1), 10, true))
		w := s.wait(l, tokens(5), 0)
		s.check(w.waiting(), "admitted without credit")
		s.take(l, requests(1)).Keep()
		w.stop()
		<-w.done
	}},

	{"a pause holds its scope and no other", func(s *script) {
		l := s.limiter(limit.Options{})
		l.PauseScope("model", limit.Pause{For: 300 * time.Millisecond, By: "the server", Why: "busy"})
		l.PauseScope("model", limit.Pause{For: 100 * time.Millisecond, By: "nobody"}) // shortens nothing
		_, err := l.TryAdmit(limit.Ask{Scopes: []string{"model"}})
		var e *limit.Error
		s.check(errors.Is(err, limit.ErrLimited) && errors.As(err, &e) && e.Scope == "model" && e.Dimension == "pause" && e.By == "the server" && e.Why == "busy", "%v", err)
		s.takeAs(l, limit.Ask{Scopes: []string{"other"}}).Keep()
		got := of(l, "model")
		s.check(got.PausedBy == "the server" && got.PausedWhy == "busy" && !got.PausedUntil.IsZero(), "%+v", got)
		w := s.waitAs(l, limit.Ask{Scopes: []string{"model"}}, 0)
		<-w.done
		s.check(w.err == nil && w.at >= 300*time.Millisecond && w.at <= 300*time.Millisecond+4*s.clock.Slack, "at %v: %v", w.at, w.err)
	}},

	{"a pause that is resumed is over", func(s *script) {
		l := s.limiter(limit.Options{})
		s.perSecond(l, "model", 10, 100)
		a := limit.Ask{Cost: tokens(50), Scopes: []string{"model"}}
		l.PauseScope("model", limit.Pause{For: time.Hour})
		w := s.waitAs(l, limit.Ask{Scopes: []string{"model"}}, 0)
		s.check(w.waiting(), "admitted in a pause")
		l.ResumeScope("model")
		s.end(8*s.clock.Slack+time.Second, w)
		s.check(w.err == nil, "%v", w.err)
		// It holds what it should have held when the pause ended: nothing.
		_, err := l.TryAdmit(a)
		s.check(errors.Is(err, limit.ErrLimited), "a herd: %v", err)
	}},

	{"one probe at a time goes after the ceiling", func(s *script) {
		l := s.limiter(limit.Options{})
		a := limit.Ask{Scopes: []string{"model"}}
		l.PauseScope("model", limit.Pause{For: time.Hour, ProbeAfter: 200 * time.Millisecond})
		ws := []*waiter{s.waitAs(l, a, 0), s.waitAs(l, a, 0), s.waitAs(l, a, 0)}
		went := func() (out []*waiter) {
			for _, w := range ws {
				if !w.waiting() {
					out = append(out, w)
				}
			}
			return out
		}
		s.check(len(went()) == 0, "admitted in a pause")
		s.clock.Sleep(200*time.Millisecond + 4*s.clock.Slack)
		s.clock.Settled()
		first := went()
		s.must(len(first) == 1 && first[0].err == nil && first[0].at >= 200*time.Millisecond, "%d probes", len(first))
		s.clock.Sleep(300*time.Millisecond + 4*s.clock.Slack)
		s.clock.Settled()
		s.must(len(went()) == 1, "a second probe before the end of the first")
		l.PauseScope("model", limit.Pause{For: time.Hour, ProbeAfter: 200 * time.Millisecond}) // it was refused
		first[0].r.Keep()
		s.clock.Settled()
		s.must(len(went()) == 1, "a probe before the renewed ceiling")
		s.clock.Sleep(200*time.Millisecond + 4*s.clock.Slack)
		s.clock.Settled()
		second := went()
		s.must(len(second) == 2, "%d probes", len(second))
		for _, w := range second {
			w.r.Settle(limit.Cost{}) // the second succeeds; the first has ended
		}
		s.end(time.Hour, ws...)
		s.check(len(went()) == 3 && ws[0].err == nil && ws[1].err == nil && ws[2].err == nil, "the pause goes on after a success")
	}},

	{"a probe earns its credit by the ceiling, and no herd follows it", func(s *script) {
		l := s.limiter(limit.Options{})
		s.perSecond(l, "model", 20, 20)
		l.PauseScope("model", limit.Pause{For: time.Hour, ProbeAfter: 200 * time.Millisecond})
		// The deadline is long before the end of the pause, and after the ceiling.
		w := s.waitAs(l, limit.Ask{Cost: tokens(1), Scopes: []string{"model"}}, time.Minute)
		<-w.done
		s.must(w.err == nil && w.at >= 200*time.Millisecond && w.at <= 300*time.Millisecond+6*s.clock.Slack, "at %v: %v", w.at, w.err)
		s.clock.Sleep(300 * time.Millisecond)
		w.r.Settle(tokens(1))
		s.clock.Settled()
		_, err := l.TryAdmit(limit.Ask{Cost: tokens(20), Scopes: []string{"model"}})
		s.check(errors.Is(err, limit.ErrLimited), "a herd: %v", err)
	}},

	{"a drained limit holds what is to be kept", func(s *script) {
		l := s.limiter(limit.Options{})
		s.perSecond(l, "model", 100, 100)
		a := limit.Ask{Cost: tokens(10), Scopes: []string{"model"}}
		s.check(l.DrainScope("model", "tokens", 10, 200*time.Millisecond), "credit did not fall")
		s.check(!l.DrainScope("model", "other", 0, time.Second), "an unknown limit was drained")
		w := s.waitAs(l, a, 0)
		<-w.done
		s.check(w.err == nil && w.at >= 200*time.Millisecond && w.at <= 200*time.Millisecond+4*s.clock.Slack, "at %v: %v", w.at, w.err)
	}},

	{"a reading lowers the limit of its scope", func(s *script) {
		l := s.limiter(tokensPer(limit.PerHour(100), 100, false))
		s.perHour(l, "model", 100)
		r := s.takeAs(l, limit.Ask{Cost: tokens(10), Scopes: []string{"model"}})
		r.Sent()
		s.check(!r.LowerIn("other", "tokens", 5, limit.Cost{}), "a scope off the path was lowered")
		s.check(r.LowerIn("model", "tokens", 5, limit.Cost{}), "credit did not fall")
		s.check(!r.LowerIn("model", "tokens", 50, limit.Cost{}), "a reading raised credit")
		r.Keep()
		s.check(of(l, "model").Limits[0].Credit == 5 && of(l, "").Limits[0].Credit == 90, "%+v", l.Snapshot())
	}},

	{"places in flight are counted in each scope", func(s *script) {
		l := s.limiter(limit.Options{MaxInFlight: 3})
		err := l.SetScope("model", limit.ScopeOptions{MaxInFlight: 1})
		s.must(err == nil, "%v", err)
		a := limit.Ask{Scopes: []string{"model"}}
		r := s.takeAs(l, a)
		w := s.waitAs(l, a, 0)
		s.check(w.waiting(), "a second of one")
		s.take(l, limit.Cost{}).Keep() // others need no place of the model
		r.Return()
		<-w.done
		s.check(w.err == nil && of(l, "model").InFlight == 1 && of(l, "").InFlight == 1, "%v %+v", w.err, l.Snapshot())
		w.r.Keep()
	}},

	{"a tenant's full line refuses, and no other tenant", func(s *script) {
		l := s.limiter(tokensPer(limit.PerHour(1), 1, true))
		err := l.SetScope("one", limit.ScopeOptions{MaxQueue: 1})
		s.must(err == nil, "%v", err)
		ws := []*waiter{
			s.waitAs(l, limit.Ask{Cost: tokens(1), Tenant: "one"}, 0),
			s.waitAs(l, limit.Ask{Cost: tokens(1), Tenant: "one"}, 0),
			s.waitAs(l, limit.Ask{Cost: tokens(1), Tenant: "two"}, 0),
		}
		var e *limit.Error
		s.check(!ws[1].waiting() && errors.Is(ws[1].err, limit.ErrQueueFull) && errors.As(ws[1].err, &e) && e.Scope == "one", "%v", ws[1].err)
		s.check(ws[0].waiting() && ws[2].waiting(), "two do not wait")
		s.check(of(l, "one").Waiting == 1 && of(l, "").Waiting == 2, "%+v", l.Snapshot())
		for _, w := range ws {
			w.stop()
			<-w.done
		}
	}},

	{"tenants share by weight", func(s *script) {
		l := s.limiter(tokensPer(limit.PerSecond(100), 10, true))
		err := l.SetScope("heavy", limit.ScopeOptions{Weight: 3})
		s.must(err == nil, "%v", err)
		l.PauseScope("", limit.Pause{For: time.Hour}) // until all stand in the line
		var light, heavy []*waiter
		for range 30 {
			light = append(light, s.waitAs(l, limit.Ask{Cost: tokens(10), Tenant: "light"}, 0))
			heavy = append(heavy, s.waitAs(l, limit.Ask{Cost: tokens(10), Tenant: "heavy"}, 0))
		}
		start := s.since()
		l.ResumeScope("")
		s.clock.Sleep(2 * time.Second)
		n := [2]int{}
		for i, ws := range [][]*waiter{light, heavy} {
			for _, w := range ws {
				if !w.waiting() && w.at > start {
					n[i]++
				}
			}
		}
		s.check(n[0] >= 4 && n[1] >= 12 && n[1] >= 3*n[0]-3 && n[1] <= 3*n[0]+3, "light %d, heavy %d of 20", n[0], n[1])
		for _, w := range append(light, heavy...) {
			w.stop()
			<-w.done
		}
	}},

	{"a tenant is served first come first served", func(s *script) {
		l := s.limiter(tokensPer(limit.PerSecond(50), 10, true))
		var ws []*waiter
		for _, n := range []int64{10, 1, 5} {
			ws = append(ws, s.waitAs(l, limit.Ask{Cost: tokens(n), Tenant: "one"}, 0))
		}
		for i, w := range ws {
			<-w.done
			s.check(w.err == nil && (i == 0 || w.at >= ws[i-1].at), "%d at %v: %v", i, w.at, w.err)
		}
	}},

	{"a call that goes first is before the others of its tenant", func(s *script) {
		l := s.limiter(tokensPer(limit.PerSecond(10), 10, true))
		next := s.waitAs(l, limit.Ask{Cost: tokens(2), Tenant: "one"}, 0)
		again := s.waitAs(l, limit.Ask{Cost: tokens(2), Tenant: "one", First: true}, 0)
		<-next.done
		<-again.done
		s.check(next.err == nil && again.err == nil && again.at <= next.at-200*time.Millisecond+s.clock.Slack, "the retry at %v, the other at %v", again.at, next.at)
	}},

	{"interactive before batch, and batch gets its floor", func(s *script) {
		l := s.limiter(tokensPer(limit.PerSecond(100), 10, true))
		l.PauseScope("", limit.Pause{For: time.Hour})
		var people, batch []*waiter
		for range 40 {
			batch = append(batch, s.waitAs(l, limit.Ask{Cost: tokens(10), Class: limit.Batch}, 0))
			people = append(people, s.waitAs(l, limit.Ask{Cost: tokens(10)}, 0))
		}
		start := s.since()
		l.ResumeScope("")
		s.clock.Sleep(3 * time.Second)
		n := [2]int{}
		for i, ws := range [][]*waiter{people, batch} {
			for _, w := range ws {
				if !w.waiting() && w.at > start {
					n[i]++
				}
			}
		}
		s.check(n[1] >= 1 && n[0] >= 6*n[1], "interactive %d, batch %d of 30", n[0], n[1])
		for _, w := range append(people, batch...) {
			w.stop()
			<-w.done
		}
	}},

	{"a forecast is what is waited", func(s *script) {
		l := s.limiter(tokensPer(limit.PerSecond(10), 10, true))
		a := limit.Ask{Cost: tokens(5)}
		f := l.Forecast(a)
		s.check(f.Known && f.Err == nil && f.Dimension == "tokens" && f.Wait <= 500*time.Millisecond && f.Wait >= 500*time.Millisecond-s.clock.Slack, "%+v", f)
		s.check(of(l, "").Waiting == 0 && of(l, "").Served == limit.Cost{}, "a forecast changed something")
		w := s.waitAs(l, a, 0)
		f = l.Forecast(a)
		s.check(f.Known && f.Wait <= time.Second && f.Wait >= time.Second-2*s.clock.Slack, "behind one: %+v", f)
		<-w.done
		s.check(w.err == nil && w.at >= 500*time.Millisecond, "%v %v", w.at, w.err)
		f = l.Forecast(limit.Ask{Cost: tokens(11)})
		s.check(errors.Is(f.Err, limit.ErrTooLarge), "%+v", f)
		f = l.Forecast(limit.Ask{})
		s.check(f == limit.Forecast{Known: true}, "%+v", f)
	}},

	{"those ahead are priced at what they will probably cost", func(s *script) {
		l := s.limiter(tokensPer(limit.PerSecond(100), 100, true))
		a := limit.Ask{Cost: tokens(100), Likely: tokens(10)}
		var ws []*waiter
		for range 4 {
			ws = append(ws, s.waitAs(l, a, 0))
		}
		// Four of a hundred take 4 s; of ten, and one of a hundred, 1.4 s.
		in := s.waitAs(l, a, 2*time.Second)
		s.check(in.waiting(), "refused: %v", in.err)
		out := s.waitAs(l, a, 500*time.Millisecond)
		s.check(!out.waiting() && errors.Is(out.err, limit.ErrWaitTooLong), "waits for what cannot be: %v", out.err)
		for _, w := range ws {
			<-w.done
			w.r.Settle(tokens(10))
		}
		<-in.done
		s.check(in.err == nil, "%v", in.err)
	}},

	{"what is in force leaves what is configured", func(s *script) {
		l := s.limiter(tokensPer(limit.PerHour(100), 100, false))
		state := func() limit.LimitState {
			all := of(l, "").Limits
			s.must(len(all) == 1, "%d limits", len(all))
			return all[0]
		}
		cut := limit.Limit{Name: "tokens", Unit: limit.Tokens, Rate: limit.PerHour(50), Burst: 50}
		s.must(l.EnforceScopeLimit("", cut) == nil, "not enforced")
		got := state()
		s.check(got.Rate.N == 50 && got.Capacity == 50 && got.Configured.Rate.N == 100, "%+v", got)
		s.must(l.EnforceScopeLimit("", limit.Limit{Name: "tokens"}) == nil, "not lifted")
		got = state()
		s.check(got.Rate.N == 100 && got.Capacity == 100 && got.Credit == 50, "%+v", got)
		s.must(l.EnforceScopeLimit("", limit.Limit{Name: "learned", Rate: limit.PerHour(5)}) == nil, "not enforced")
		s.check(len(of(l, "").Limits) == 2 && of(l, "").Limits[1].Configured.Rate == limit.Rate{}, "%+v", l.Snapshot())
		s.must(l.EnforceScopeLimit("", limit.Limit{Name: "learned"}) == nil, "not lifted")
		s.check(len(of(l, "").Limits) == 1, "%+v", l.Snapshot())
	}},

	{"impossible options are refused", func(s *script) {
		l := s.limiter(limit.Options{})
		var e *limit.ConfigError
		s.check(errors.As(l.SetScope("a", limit.ScopeOptions{Weight: -1}), &e), "a negative weight")
		s.check(errors.As(l.SetScope("a", limit.ScopeOptions{MaxInFlight: -1}), &e), "a negative number in flight")
		s.check(errors.As(l.SetScopeLimit("a", limit.Limit{Rate: limit.PerSecond(-1)}), &e), "a negative rate")
	}},

	{"the cause of a context is found", func(s *script) {
		l := s.limiter(tokensPer(limit.PerHour(1), 10, true))
		why := errors.New("the user left")
		ctx, cancel := context.WithCancelCause(context.Background())
		done := make(chan error)
		go func() {
			_, err := l.Acquire(ctx, tokens(5))
			done <- err
		}()
		s.clock.Settled()
		cancel(why)
		err := <-done
		s.check(errors.Is(err, why) && errors.Is(err, context.Canceled) && errors.Is(err, limit.ErrCanceled), "%v", err)
		_, err = l.Acquire(ctx, tokens(5))
		s.check(errors.Is(err, why) && errors.Is(err, context.Canceled), "%v", err)
	}},
}

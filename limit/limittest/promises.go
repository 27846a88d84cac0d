package limittest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

func requests(n int64) limit.Cost { return limit.Cost{Requests: n} }
func tokens(n int64) limit.Cost   { return limit.Cost{Input: n} }

// tokensPer is one limit on tokens, which starts empty or full.
func tokensPer(r limit.Rate, burst int64, empty bool) limit.Options {
	return limit.Options{Limits: []limit.Limit{{Name: "tokens", Unit: limit.Tokens, Rate: r, Burst: burst, Empty: empty}}}
}

var promises = slices.Concat(rootPromises, scopePromises, meterPromises, pricePromises)

var rootPromises = []promise{
	{"a burst and no more", func(s *script) {
		l := s.limiter(tokensPer(limit.PerHour(1), 3, false))
		for range 3 {
			s.take(l, tokens(1)).Keep()
		}
		_, err := l.TryAcquire(tokens(1))
		s.check(errors.Is(err, limit.ErrLimited), "a fourth of three: %v", err)
	}},

	{"a burst under contention", func(s *script) {
		l := s.limiter(tokensPer(limit.Rate{N: 1, Window: limit.MaxWindow}, 300, false))
		var granted atomic.Int64
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for range 50 {
					if r, err := l.TryAcquire(tokens(1)); err == nil {
						granted.Add(1)
						r.Keep()
					}
				}
			})
		}
		all.Wait()
		s.check(granted.Load() == 300, "%d granted of 300", granted.Load())
	}},

	{"the named wait suffices", func(s *script) {
		l := s.limiter(tokensPer(limit.PerMinute(7*60), 7, true)) // a seventh of a second each
		_, err := l.TryAcquire(tokens(2))
		var e *limit.Error
		s.must(errors.Is(err, limit.ErrLimited) && errors.As(err, &e), "%v", err)
		want := 285_714_286 * time.Nanosecond
		s.check(e.Wait <= want && e.Wait >= want-s.clock.Slack, "wait %v, want %v", e.Wait, want)
		s.clock.Sleep(e.Wait)
		s.take(l, tokens(2)).Keep()
		s.check(s.since() >= want, "admitted after %v, earned after %v", s.since(), want)
	}},

	{"nothing before its instant", func(s *script) {
		l := s.limiter(tokensPer(limit.PerSecond(20), 1, true))
		for i := range 10 {
			r, err := l.Acquire(context.Background(), tokens(1))
			s.must(err == nil, "%v", err)
			want := time.Duration(i+1) * 50 * time.Millisecond
			s.check(s.since() >= want && s.since() <= want+time.Duration(i+1)*s.clock.Slack, "unit %d at %v, want %v", i, s.since(), want)
			r.Keep()
		}
	}},

	{"first come first served", func(s *script) {
		l := s.limiter(tokensPer(limit.PerSecond(20), 20, false))
		s.take(l, tokens(20)).Keep()
		var mu sync.Mutex
		var order []int
		var line []*waiter
		for i, cost := range []int64{10, 1, 5, 1} { // small ones do not overtake
			w := s.wait(l, tokens(cost), 0)
			line = append(line, w)
			go func() {
				<-w.done
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
			}()
			if w.waiting() {
				_, err := l.TryAcquire(tokens(1))
				s.check(errors.Is(err, limit.ErrLimited), "overtook the line: %v", err)
			}
		}
		for _, w := range line {
			<-w.done
			s.check(w.err == nil, "%v", w.err)
		}
		s.clock.Settled()
		mu.Lock()
		defer mu.Unlock()
		last := time.Duration(-1)
		for i, w := range line {
			s.check(w.at >= last, "waiter %d went at %v, after %v: %v", i, w.at, last, order)
			last = w.at
		}
	}},

	{"all limits or none", func(s *script) {
		l := s.limiter(limit.Options{Limits: []limit.Limit{
			{Name: "requests", Rate: limit.PerHour(5), Burst: 5},
			{Name: "tokens", Unit: limit.Tokens, Rate: limit.PerHour(10), Burst: 10},
		}})
		s.take(l, tokens(8)).Keep()
		for range 20 {
			_, err := l.TryAcquire(limit.Cost{Requests: 1, Input: 5})
			s.check(errors.Is(err, limit.ErrLimited), "%v", err)
		}
		s.take(l, requests(5)).Keep() // all five are there
	}},

	{"a refusal names what decided", func(s *script) {
		l := s.limiter(limit.Options{Limits: []limit.Limit{
			{Name: "requests", Rate: limit.PerHour(5), Burst: 5},
			{Name: "tokens", Unit: limit.Tokens, Rate: limit.PerHour(10), Burst: 10},
		}})
		var e *limit.Error
		_, err := l.TryAcquire(limit.Cost{Requests: 1, Input: 6, Output: 5})
		s.check(errors.Is(err, limit.ErrTooLarge) && errors.As(err, &e) && e.Dimension == "tokens" && e.Cost == 11 && e.Capacity == 10, "%v", err)
		_, err = l.Acquire(context.Background(), requests(6))
		s.check(errors.Is(err, limit.ErrTooLarge) && errors.As(err, &e) && e.Dimension == "requests" && e.Cost == 6 && e.Capacity == 5, "%v", err)
		_, err = l.TryAcquire(tokens(-1))
		s.check(errors.Is(err, limit.ErrInvalid), "%v", err)
		s.take(l, limit.Cost{Requests: 5, Input: 10}).Keep() // nothing was charged
	}},

	{"a deadline too near is refused at once", func(s *script) {
		l := s.limiter(tokensPer(limit.PerHour(1), 10, true))
		w := s.wait(l, tokens(5), 10*time.Second+s.clock.Slack)
		<-w.done
		s.check(w.at <= s.clock.Slack, "it waited %v", w.at)
		s.check(errors.Is(w.err, limit.ErrWaitTooLong) && errors.Is(w.err, context.DeadlineExceeded), "%v", w.err)
	}},

	{"an ended context gets nothing", func(s *script) {
		l := s.limiter(tokensPer(limit.PerHour(1), 10, false))
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for range 20 {
			_, err := l.Acquire(ctx, tokens(1))
			s.check(errors.Is(err, limit.ErrCanceled) && errors.Is(err, context.Canceled), "%v", err)
		}
		s.take(l, tokens(10)).Keep()
	}},

	{"a cancelled waiter leaves no trace", func(s *script) {
		l := s.limiter(tokensPer(limit.PerSecond(10), 10, true))
		gone := s.wait(l, tokens(10), 0)
		next := s.wait(l, tokens(2), 0)
		s.clock.Sleep(50 * time.Millisecond)
		gone.stop()
		<-gone.done
		s.check(errors.Is(gone.err, limit.ErrCanceled) && errors.Is(gone.err, context.Canceled), "%v", gone.err)
		<-next.done
		s.check(next.err == nil && next.at >= 200*time.Millisecond && next.at <= 200*time.Millisecond+3*s.clock.Slack, "the next went at %v: %v", next.at, next.err)
	}},

	{"returned is as if never taken", func(s *script) {
		l := s.limiter(tokensPer(limit.PerHour(1), 10, false))
		for range 20 {
			s.take(l, tokens(10)).Return()
		}
		r := s.take(l, tokens(10))
		_, err := l.TryAcquire(tokens(1))
		s.check(errors.Is(err, limit.ErrLimited), "%v", err)
		r.Keep()
	}},

	{"a refund lets the head go", func(s *script) {
		l := s.limiter(tokensPer(limit.PerHour(1), 10, false))
		r := s.take(l, tokens(10))
		w := s.wait(l, tokens(4), 0)
		s.check(w.waiting(), "admitted without credit")
		r.Settle(tokens(6))
		<-w.done
		s.check(w.err == nil && w.at <= 4*s.clock.Slack, "went at %v: %v", w.at, w.err)
	}},

	{"settled once", func(s *script) {
		l := s.limiter(tokensPer(limit.PerHour(1), 10, false))
		r := s.take(l, tokens(10))
		r.Settle(tokens(7))
		r.Settle(tokens(0))
		r.Return()
		r.Keep()
		s.take(l, tokens(3)).Keep()
		_, err := l.TryAcquire(tokens(1))
		s.check(errors.Is(err, limit.ErrLimited), "a second end gave back: %v", err)
	}},

	{"debt is paid off", func(s *script) {
		l := s.limiter(tokensPer(limit.PerSecond(20), 10, false))
		s.take(l, tokens(10)).Settle(tokens(13))
		r, err := l.Acquire(context.Background(), tokens(1))
		s.must(err == nil, "%v", err)
		want := 200 * time.Millisecond // 3 of debt and 1
		s.check(s.since() >= want && s.since() <= want+4*s.clock.Slack, "after %v, want %v", s.since(), want)
		r.Keep()
	}},

	{"a place in flight is held and given back", func(s *script) {
		l := s.limiter(limit.Options{MaxInFlight: 2})
		a, b := s.take(l, requests(1)), s.take(l, requests(1))
		_, err := l.TryAcquire(requests(1))
		s.check(errors.Is(err, limit.ErrLimited), "a third of two: %v", err)
		w := s.wait(l, requests(1), 0)
		s.check(w.waiting(), "a third of two waits not")
		a.Keep()
		<-w.done
		s.check(w.err == nil, "%v", w.err)
		b.Return()
		w.r.Settle(limit.Cost{})
		s.take(l, requests(1)).Keep()
		s.take(l, requests(1)).Keep()
	}},

	{"a pause is kept", func(s *script) {
		l := s.limiter(tokensPer(limit.PerSecond(100), 100, false))
		l.Pause(300 * time.Millisecond)
		l.Pause(100 * time.Millisecond) // shortens nothing
		_, err := l.TryAcquire(tokens(1))
		s.check(errors.Is(err, limit.ErrLimited), "admitted in a pause: %v", err)
		r, err := l.Acquire(context.Background(), tokens(10))
		s.must(err == nil, "%v", err)
		want := 400 * time.Millisecond // and no herd: ten tokens are earned after it
		s.check(s.since() >= want && s.since() <= want+4*s.clock.Slack, "after %v, want %v", s.since(), want)
		r.Keep()
	}},

	{"a full line refuses", func(s *script) {
		o := tokensPer(limit.PerHour(1), 1, true)
		o.MaxQueue = 3
		l := s.limiter(o)
		var line []*waiter
		for range 3 {
			line = append(line, s.wait(l, tokens(1), 0))
		}
		w := s.wait(l, tokens(1), 0)
		s.check(!w.waiting() && errors.Is(w.err, limit.ErrQueueFull), "a fourth of three")
		for _, w := range append(line, w) {
			w.stop()
			<-w.done
		}
		again := s.wait(l, tokens(1), 0)
		s.check(again.waiting(), "the line is still full")
		again.stop()
		<-again.done
	}},

	{"a longest wait is kept", func(s *script) {
		o := limit.Options{MaxInFlight: 1, MaxWait: 200 * time.Millisecond}
		l := s.limiter(o)
		r := s.take(l, requests(1))
		w := s.wait(l, requests(1), 0)
		<-w.done
		s.check(errors.Is(w.err, limit.ErrWaitTooLong) && w.at >= o.MaxWait && w.at <= o.MaxWait+4*s.clock.Slack, "after %v: %v", w.at, w.err)
		r.Keep()
	}},

	{"a changed limit re-times the line", func(s *script) {
		l := s.limiter(tokensPer(limit.PerHour(1), 10, true))
		w := s.wait(l, tokens(2), 0)
		s.check(w.waiting(), "admitted without credit")
		err := l.SetLimit(limit.Limit{Name: "tokens", Unit: limit.Tokens, Rate: limit.PerSecond(20), Burst: 10})
		s.must(err == nil, "%v", err)
		<-w.done
		s.check(w.err == nil && w.at <= 100*time.Millisecond+4*s.clock.Slack, "went at %v: %v", w.at, w.err)
		err = l.SetLimit(limit.Limit{Name: "tokens", Unit: limit.Tokens, Rate: limit.PerSecond(-1)})
		var e *limit.ConfigError
		s.check(errors.As(err, &e), "an impossible limit: %v", err)
	}},

	{"at most the burst and the rate in any window", func(s *script) {
		lim := limit.Limit{Name: "tokens", Unit: limit.Tokens, Rate: limit.PerSecond(200), Burst: 10}
		l := s.limiter(limit.Options{Limits: []limit.Limit{lim}})
		type went struct {
			before, after time.Duration
			n             int64
		}
		var all []went
		for i := int64(0); s.since() < time.Second; i++ {
			before, n := s.since(), 1+i%3
			r, err := l.Acquire(context.Background(), tokens(n))
			s.must(err == nil, "%v", err)
			all = append(all, went{before, s.since(), n})
			r.Settle(tokens(n))
			s.clock.Sleep(time.Duration(i%7) * time.Millisecond)
		}
		for i := range all {
			sum := int64(0)
			for _, w := range all[i:] {
				sum += w.n
				// Each was admitted between its question and its answer.
				if most := lim.Most(w.after - all[i].before); sum > most {
					s.must(false, "%d in %v, at most %d", sum, w.after-all[i].before, most)
				}
			}
		}
		s.check(len(all) > 20, "only %d went", len(all))
	}},

	{"an unset limit is none", func(s *script) {
		l := s.limiter(limit.Options{})
		for range 50 {
			s.take(l, limit.Cost{Requests: 1 << 40, Input: 1 << 62, Output: 1 << 62}).Keep()
		}
	}},
}

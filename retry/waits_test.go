package retry

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
)

// A wait above the ceiling is neither slept nor shortened.
// Report: hashicorp/go-retryablehttp#247, hashicorp/go-retryablehttp#283
// Report: hashicorp/go-retryablehttp#295, hashicorp/go-retryablehttp#298
// Report: openai/openai-python#3555, cenkalti/backoff#159
// Report: just-every/code#421, agent0ai/agent-zero#711
// Report: github/copilot-cli#2144, github/copilot-cli#2754
// Report: basecamp/basecamp-sdk#798
func TestAWaitAboveTheCeilingIsNeitherSleptNorShortened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name   string
			o      Options
			fields []string
			body   string
			reason Reason
		}{
			{"an hour, ten seconds allowed", Options{MaxRetryAfter: 10 * time.Second}, []string{"Retry-After", "3600"}, "", TooLong},
			{"a second too much", Options{MaxRetryAfter: 60 * time.Second}, []string{"Retry-After", "61"}, "", TooLong},
			{"a nanosecond too much", Options{MaxRetryAfter: 60 * time.Second}, []string{"Retry-After", "60.000000001"}, "", TooLong},
			{"longer than the elapsed budget", Options{MaxRetryAfter: time.Hour, MaxElapsed: 900 * time.Second}, []string{"Retry-After", "1800"}, "", Elapsed},
			{"larger than the limit", Options{}, nil, `{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 61337.","code":"rate_limit_exceeded"}}`, Refused},
			{"two hours", Options{}, []string{"Retry-After", "7200"}, "", TooLong},
			{"epoch", Options{}, []string{"Retry-After", "1790000000"}, "", TooLong},
			{"large", Options{}, []string{"Retry-After", "99999999999"}, "", TooLong},
			{"overflow", Options{}, []string{"Retry-After", "9223372036854775807"}, "", TooLong},
			{"ms", Options{}, []string{"Retry-After-Ms", "3600000", "Retry-After", "1"}, "", TooLong},
			{"body", Options{}, nil, `{"error":{"message":"Rate limit reached. Please try again in 17m31.056s.","code":"rate_limit_exceeded"}}`, TooLong},
		} {
			s := play(answer(429, c.body, c.fields...))
			tr := new(Tally)
			r := send(t, mustNew(t, s, c.o), post(WithTally(t.Context(), tr), t, chat))
			if r.status != 429 || r.body != c.body || r.elapsed != 0 || s.calls() != 1 || tr.Reason() != c.reason {
				t.Errorf("%s: %+v after %d calls, %v", c.name, r, s.calls(), tr.Reason())
			}
		}
	})
}

// Report: openai/openai-node#1840
func TestTheDefaultCeilingIsAMinute(t *testing.T) {
	if DefaultMaxRetryAfter != time.Minute || DefaultAttempts != 3 {
		t.Errorf("the defaults changed: %v, %d", DefaultMaxRetryAfter, DefaultAttempts)
	}
	synctest.Test(t, func(t *testing.T) {
		s := play(answer(429, "", "Retry-After", "1800"))
		if r := send(t, mustNew(t, s, Options{}), post(t.Context(), t, chat)); r.elapsed != 0 || r.status != 429 {
			t.Errorf("1800 s: %+v", r)
		}
		s = play(answer(429, "", "Retry-After", "60"), answer(200, ""))
		if r := send(t, mustNew(t, s, Options{}), post(t.Context(), t, chat)); r.elapsed < time.Minute || r.status != 200 {
			t.Errorf("60 s: %+v", r)
		}
	})
}

// Report: openai/openai-node#1841
func TestAWaitOfZeroIsAnOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(answer(429, "", "Retry-After", "0"))
		// MinBackoff is the floor of our own waits, not of the server's.
		r := send(t, mustNew(t, s, Options{MinBackoff: time.Second, MaxBackoff: time.Second}), post(t.Context(), t, chat))
		if s.calls() != 3 || r.status != 429 || r.elapsed > 2*time.Second {
			t.Errorf("%d calls, %+v", s.calls(), r)
		}
		fast := false
		for range 50 {
			s := play(answer(429, "", "Retry-After", "0"), answer(200, ""))
			r := send(t, mustNew(t, s, Options{MinBackoff: time.Second, MaxBackoff: time.Second}), post(t.Context(), t, chat))
			fast = fast || r.elapsed < time.Second/2
		}
		if !fast {
			t.Error("never at once")
		}
	})
}

// Report: oras-project/oras-go#1210
func TestNobodyIsEarlyAndACrowdIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{began: time.Now()}
		s.answers = make([]answerFunc, 21)
		for i := range 20 {
			s.answers[i] = answer(429, tooFast, "Retry-After", "7")
		}
		s.answers[20] = answer(200, "ok")
		rt := mustNew(t, s, Options{})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { send(t, rt, post(t.Context(), t, chat)) })
		}
		wg.Wait()
		at := map[time.Duration]bool{}
		for _, d := range s.at[20:] {
			at[d] = true
			if d < 7*time.Second || d > 7*time.Second+DefaultMinBackoff {
				t.Errorf("second attempt at %v", d)
			}
		}
		if len(at) < 15 {
			t.Errorf("20 calls came back at %d instants", len(at))
		}
	})
}

// Every spelling of a wait is kept, on every status that is tried again; one that
// cannot be read is not taken for zero.
func TestEverySpellingOfAWait(t *testing.T) {
	for i, w := range rttest.Waits(time.Time{}) {
		for _, status := range []int{429, 503, 529, 500} {
			if w.Order == rttest.Reset && status != 429 {
				continue
			}
			t.Run(fmt.Sprint(w.Name, " on ", status), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(4 * 365 * 24 * time.Hour) // an epoch is told from seconds by its size
					w := rttest.Waits(time.Now())[i]
					s := play(answer(status, w.Body, w.Header...), answer(200, ""))
					r := send(t, mustNew(t, s, Options{}), post(t.Context(), t, chat))
					least, most := w.Want, w.Want+DefaultMinBackoff
					if w.Order == rttest.Unreadable {
						least, most = DefaultMinBackoff, 2*DefaultMinBackoff
					}
					if s.calls() != 2 || r.elapsed < least || r.elapsed > most {
						t.Errorf("waited %v, want %v to %v; %d calls", r.elapsed, least, most, s.calls())
					}
				})
			})
		}
	}
}

// Report: openai/openai-node#1108, cline/cline#5202
func TestABodysWaitCanBeIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(answer(429, `{"error":{"message":"Please retry after 33 seconds."}}`), answer(200, ""))
		r := send(t, mustNew(t, s, Options{IgnoreBodyWait: true}), post(t.Context(), t, chat))
		if r.elapsed < DefaultMinBackoff || r.elapsed > 2*DefaultMinBackoff {
			t.Errorf("waited %v", r.elapsed)
		}
	})
}

// A base that has read the header itself is asked once for each refusal, and its
// order is kept as the header's own would be.
func TestABaseThatHasReadTheHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			order Order
			lo    time.Duration
			calls int
		}{
			{Order{Wait: 20 * time.Second, Named: true}, 20 * time.Second, 2},
			{Order{Wait: 3 * time.Second, Named: true, Reset: time.Hour}, 3 * time.Second, 2},
			{Order{Reset: 7 * time.Second}, 7 * time.Second, 2},
			{Order{Named: true}, 0, 2},
			{Order{Wait: 6 * time.Minute, Named: true}, 0, 1},
			{Order{Wait: 1<<63 - 1, Named: true}, 0, 1},
			{Order{Forbidden: true}, 0, 1},
		} {
			s := play(answer(429, "", "Retry-After", "99"), answer(200, ""))
			base := &reader{script: s, order: c.order}
			r := send(t, mustNew(t, base, Options{}), post(t.Context(), t, chat))
			if s.calls() != c.calls || base.asked != 1 || r.elapsed < c.lo || r.elapsed > c.lo+DefaultMinBackoff {
				t.Errorf("%+v: %d calls, asked %d times, waited %v", c.order, s.calls(), base.asked, r.elapsed)
			}
		}
	})
}

// reader is a base that has read the header.
type reader struct {
	*script
	order Order
	asked int
}

func (r *reader) Order(*http.Request, *http.Response) Order {
	r.asked++
	return r.order
}

// Under all options, the wait of every attempt lies where the package comment
// says, and the ceiling doubles.
func TestBackoffStaysInItsBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lo, hi = 100 * time.Millisecond, time.Second
		longest := make([]time.Duration, 6)
		for range 300 {
			s := play(answer(503, ""))
			send(t, mustNew(t, s, Options{Attempts: 7, MinBackoff: lo, MaxBackoff: hi}), post(t.Context(), t, chat))
			for i := range 6 {
				w := s.at[i+1] - s.at[i]
				if w < lo || w > min(hi, lo<<(i+1)) {
					t.Fatalf("wait %d is %v", i+1, w)
				}
				longest[i] = max(longest[i], w)
			}
		}
		for i, w := range longest {
			if ceiling := min(hi, lo<<(i+1)); w < ceiling*9/10 {
				t.Errorf("wait %d reached %v of %v in 300 draws", i+1, w, ceiling)
			}
		}
	})
}

func TestCeiling(t *testing.T) {
	const top = time.Duration(1<<63 - 1)
	for _, c := range []struct {
		lo, hi time.Duration
		n      int
		want   time.Duration
	}{
		{1, 8, 0, 1}, {1, 8, 2, 4}, {1, 8, 3, 8}, {1, 8, 1000, 8}, {3, 8, 2, 8},
		{1, top, 1 << 30, top}, {top, top, 5, top}, {top - 1, top, 1, top}, {5, 5, 9, 5},
	} {
		if got := ceiling(c.lo, c.hi, c.n); got != c.want {
			t.Errorf("ceiling(%d, %d, %d) = %d, want %d", c.lo, c.hi, c.n, got, c.want)
		}
	}
}

// Jitter is the part that gives way to a deadline; the order is not.
func TestJitterGivesWayToTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			s := play(answer(429, "", "Retry-After", "2"), answer(200, ""))
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second+2*time.Millisecond)
			r := send(t, mustNew(t, s, Options{MinBackoff: time.Minute, MaxBackoff: time.Minute}), post(ctx, t, chat))
			if r.status != 200 || r.elapsed < 2*time.Second {
				t.Fatalf("%+v", r)
			}
			cancel()
			s = play(answer(429, "", "Retry-After", "2"), answer(200, ""))
			o := Options{MinBackoff: time.Minute, MaxBackoff: time.Minute, MaxElapsed: 2*time.Second + 2*time.Millisecond}
			r = send(t, mustNew(t, s, o), post(t.Context(), t, chat))
			if r.status != 200 || r.elapsed < 2*time.Second || r.elapsed > o.MaxElapsed {
				t.Fatalf("MaxElapsed: %+v", r)
			}
		}
		// At the deadline is too late.
		s := play(answer(429, "", "Retry-After", "2"))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if r := send(t, mustNew(t, s, Options{}), post(ctx, t, chat)); r.status != 429 || r.elapsed != 0 {
			t.Errorf("%+v", r)
		}
	})
}

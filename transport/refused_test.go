package transport_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// tooLate holds everybody until MaxElapsed is over, so that the second attempt
// is admitted and must not leave.
func tooLate(t *testing.T, d *desk) {
	d.o.Retry.MaxElapsed = 5 * time.Second
	d.o.Retry.Deciding = func(retry.Event) { d.limiter.Pause(10 * time.Second) }
	read(t, d)
}

// The balance that a refusal shows is taken as it is. Only the part that the
// ledger will still give back comes off it.
func TestLeftAfterARefusal(t *testing.T) {
	for name, change := range map[string]func(*profile.Profile){
		"a refusal counts as a request":     func(p *profile.Profile) {},
		"a refusal counts, with its tokens": func(p *profile.Profile) { p.Rule.RefusedCount = true },
		"a refusal is free":                 func(p *profile.Profile) { p.RefusedFree = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := limit.Rate{N: 1000, Window: 100 * time.Hour}
				tokens := limit.Rate{N: 100_000, Window: 100 * time.Hour}
				p := profile.Unknown()
				change(&p)
				rt := gate(t, transport.Options{
					Base: script("429;X-Ratelimit-Limit-Requests=1000;X-Ratelimit-Remaining-Requests=500;X-Ratelimit-Limit-Tokens=100000;X-Ratelimit-Remaining-Tokens=50000"),
					Limits: []limit.Limit{
						{Name: "requests", Unit: limit.Requests, Rate: requests, Burst: 1000},
						{Name: "tokens", Unit: limit.Tokens, Rate: tokens, Burst: 100_000},
					},
					Provider: p, Attempts: 1,
				})
				finish(rt.RoundTrip(ask(t, t.Context(), letter)))
				if r, k := balance(state(t, rt, "requests")), balance(state(t, rt, "tokens")); r != 500 || k != 50_000 {
					t.Errorf("%d requests and %d tokens are there; the provider has 500 and 50000", r, k)
				}
			})
		})
	}
}

// Twenty calls are refused at once by a limit that the budget does not have.
// When the wait is over the line moves at the pace of its limits. It does not move
// all at once with the tokens that the twenty gave back.
func TestManyRefusedByAnUnknownLimit(t *testing.T) {
	free := profile.Unknown()
	free.RefusedFree = true
	for name, o := range map[string]transport.Options{
		"requests refused, tokens known": {TPM: 60_000, Attempts: 3},
		"tokens refused, requests known": {RPM: 1200, Attempts: 3, Provider: free},
	} {
		kind, _, _ := strings.Cut(name, " ")
		synctest.Test(t, func(t *testing.T) {
			arrived, start := make(chan struct{}), time.Now()
			var mu sync.Mutex
			var left []time.Duration
			o.Base = rttest.Func(func(r *http.Request) (*http.Response, error) {
				rttest.Drain(r)
				mu.Lock()
				left = append(left, time.Since(start))
				n := len(left)
				mu.Unlock()
				if n > 20 {
					return response(r, 200, "", ""), nil
				}
				<-arrived
				return rttest.Response(r, 429, http.Header{"Retry-After": {"10"}}, `{"error":{"type":"`+kind+`","code":"rate_limit_exceeded"}}`), nil
			})
			rt := gate(t, o)
			var all sync.WaitGroup
			for i := range 40 {
				all.Go(func() {
					if i >= 20 {
						time.Sleep(5 * time.Second) // and stand in line
					}
					finish(rt.RoundTrip(ask(t, t.Context(), letter)))
				})
			}
			synctest.Wait()
			close(arrived)
			all.Wait()
			if len(left) != 60 {
				t.Fatalf("%s: %d attempts", name, len(left))
			}
			if at := left[20]; at < 10*time.Second {
				t.Errorf("%s: the next left after %v", name, at)
			}
			if gap := left[30] - left[20]; gap < 400*time.Millisecond { // ten, of a twentieth of a second or more
				t.Errorf("%s: ten left in %v", name, gap)
			}
		})
	}
}

// An account without credit has nothing to do with the balance, and neither has a
// request too large for the limit. That holds for a final refusal too.
func TestFinalRefusalThatIsNotOfTheRate(t *testing.T) {
	for _, row := range []struct {
		words    string
		attempts int
	}{
		{"429;Body=quota", 1}, {"429;Body=large", 1}, {"500 429;Body=quota", 2}, {"429;Body=quota;X-Should-Retry=false", 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := script(row.words)
			w.took = 200 * time.Millisecond
			b := new(books)
			rt := gate(t, transport.Options{TPM: 60_000, Attempts: row.attempts, Base: w, Trace: b.trace()})
			full := balance(state(t, rt, tokenLimit))
			for i := range 10 {
				start := time.Now()
				finish(rt.RoundTrip(ask(t, t.Context(), letter)))
				if d := time.Since(start); i > 0 && d != w.took {
					t.Errorf("%s: call %d was answered after %v", row.words, i, d)
				}
			}
			if s := state(t, rt, tokenLimit); balance(s) != full || s.Rate.N != 60_000 {
				t.Errorf("%s: %d tokens left of %d, at %v", row.words, balance(s), full, s.Rate)
			}
			b.closed(t, rt)
		})
	}
}

// An account without credit says so in gzip, if the caller asked for that, as
// the clients behind a gateway do: it is still no matter of the balance.
func TestPackedRefusalIsRead(t *testing.T) {
	for _, encoding := range []string{"", "gzip"} {
		synctest.Test(t, func(t *testing.T) {
			text := errorBodies["quota"]
			if encoding != "" {
				var packed bytes.Buffer
				z := gzip.NewWriter(&packed)
				z.Write([]byte(text))
				z.Close()
				text = packed.String()
			}
			rt := gate(t, transport.Options{TPM: 60_000, Base: rttest.Func(func(r *http.Request) (*http.Response, error) {
				rttest.Drain(r)
				return rttest.Response(r, 429, http.Header{"Content-Encoding": {encoding}, "Content-Length": {strconv.Itoa(len(text))}}, text), nil
			})})
			full := balance(state(t, rt, tokenLimit))
			for range 3 {
				if _, body, err := finish(rt.RoundTrip(ask(t, t.Context(), letter))); body != text || err != nil {
					t.Errorf("%q: the caller got %q, %v", encoding, body, err)
				}
			}
			if s := whole(rt); balance(s.Limits[0]) != full || !s.PausedUntil.IsZero() {
				t.Errorf("%q: %d tokens left of %d, paused until %v", encoding, balance(s.Limits[0]), full, s.PausedUntil)
			}
		})
	}
}

// A wait that the body named is over when the next attempt is not admitted
// after it. Reading the body then does not start it anew.
func TestABodysWaitIsWaitedOnce(t *testing.T) {
	for _, status := range []int{429, 503} {
		synctest.Test(t, func(t *testing.T) {
			o := transport.Options{Base: script(fmt.Sprint(status, ";Body=wait")), RPM: 60}
			o.Retry.Admit = func(context.Context, retry.Event) error { return errors.New("no more") }
			rt := gate(t, o)
			resp, err := rt.RoundTrip(ask(t, t.Context(), letter))
			if err != nil {
				t.Fatal(err)
			}
			finish(resp, nil)
			if until := whole(rt).PausedUntil; !until.IsZero() {
				t.Errorf("%d: nothing leaves for another %v", status, time.Until(until))
			}
		})
	}
}

// A wait that the retry layer found in a body may be too long for it. It holds
// everybody, also if the caller does not read the body.
func TestABodysLongWaitNeedsNoReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := transport.Options{Base: script("429;Body=wait"), RPM: 60}
		o.Retry.MaxRetryAfter = 10 * time.Second
		rt := gate(t, o)
		resp, err := rt.RoundTrip(ask(t, t.Context(), letter))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if until := time.Until(whole(rt).PausedUntil); until != 33*time.Second {
			t.Errorf("nothing leaves for %v; the provider said 33s", until)
		}
	})
}

// A Retry-After that is not obeyed, since the answer is no refusal, does not
// stand before the wait of an error inside the stream.
func TestAStreamsWaitBesideRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := gate(t, transport.Options{RPM: 60, Base: rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			h := http.Header{"Content-Type": {"text/event-stream"}, "Retry-After": {"5"}}
			return rttest.Response(r, 200, h, "data: "+errorBodies["wait"]+"\n\n"), nil
		})})
		finish(rt.RoundTrip(ask(t, t.Context(), letter)))
		if until := time.Until(whole(rt).PausedUntil); until != 33*time.Second {
			t.Errorf("nothing leaves for %v; the provider said 33s", until)
		}
	})
}

// A hook may panic each time it is called. The ledger takes in the refusal all the
// same, and the call ends.
func TestAPanicOfAHookLosesNoRefusal(t *testing.T) {
	boom := func() { panic("a hook") }
	for name, set := range map[string]func(*transport.Options){
		"Paused":       func(o *transport.Options) { o.Trace.Paused = func(*http.Request, limit.Pause) { boom() } },
		"Lowered":      func(o *transport.Options) { o.Trace.Lowered = func(*http.Request, string, int64) { boom() } },
		"LimitChanged": func(o *transport.Options) { o.Trace.LimitChanged = func(_, _ limit.Limit) { boom() } },
		"Answered":     func(o *transport.Options) { o.Trace.Answered = func(transport.Attempt) { boom() } },
		"Deciding":     func(o *transport.Options) { o.Retry.Deciding = func(retry.Event) { boom() } },
		"Done":         func(o *transport.Options) { o.Retry.Done = func(retry.Event) { boom() } },
	} {
		for _, words := range []string{
			"429;Retry-After=7;X-Ratelimit-Limit-Requests=500;X-Ratelimit-Remaining-Requests=0",
			"429;Body=wait",
			"429",
		} {
			t.Run(name+" "+words, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := new(books)
					o := transport.Options{Base: script(words), RPM: 6000, TPM: 1e6, MaxInFlight: 1, Trace: b.trace()}
					set(&o)
					rt := gate(t, o)
					for range 4 {
						func() {
							defer func() { recover() }()
							finish(rt.RoundTrip(ask(t, t.Context(), letter)))
						}()
						if strings.Contains(words, "Retry-After") && !whole(rt).PausedUntil.After(time.Now()) {
							t.Error("others may leave before Retry-After")
						}
					}
					b.closed(t, rt)
				})
			})
		}
	}
}

// A refusal of one budget does not stop another; an exhausted account is
// not tried again, and takes nothing from the balance.
// Report: openclaw/openclaw#7941, openclaw/openclaw#49834, LionSR/TeXRA#9101
func TestARefusalOfOneBudgetStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &scripted{answer: reply{status: 429}.with("Retry-After", "20"), then: reply{200, nil, ok}}
		y := &scripted{answer: reply{200, nil, ok}}
		one := gate(t, transport.Options{Base: x, TPM: 60_000, Provider: ruled(estimate.ChargeEstimate)})
		two := gate(t, transport.Options{Base: y, TPM: 60_000, Provider: ruled(estimate.ChargeEstimate)})
		var all sync.WaitGroup
		all.Go(func() { post(&http.Client{Transport: one}, chatOf(1, 97, 100)) })
		synctest.Wait()
		start := time.Now()
		post(&http.Client{Transport: two}, chatOf(2, 97, 100))
		if d := time.Since(start); d > 0 {
			t.Errorf("the other budget waited %v", d)
		}
		all.Wait()

		z := &scripted{answer: reply{429, nil, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`}}
		three := gate(t, transport.Options{Base: z, TPM: 60_000, Provider: ruled(estimate.ChargeEstimate)})
		post(&http.Client{Transport: three}, chatOf(3, 97, 100))
		if len(z.at) != 1 {
			t.Errorf("an exhausted account was asked %d times", len(z.at))
		}
		if got := balance(state(t, three, tokenLimit)); got != 60_000 {
			t.Errorf("balance %d after it; want all", got)
		}
	})
}

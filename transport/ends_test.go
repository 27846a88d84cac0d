package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

var errWhy = errors.New("why")

// The cause of an end is found wherever the call stood: in line, for a place in flight,
// in a pause, between attempts, on the wire, and behind the first call of a model.
func TestTheCauseIsFoundWhereverACallStands(t *testing.T) {
	for where, o := range map[string]transport.Options{
		"line":     {RPM: 1, Base: script("200")},
		"flight":   {MaxInFlight: 1, Base: script("stall")},
		"pause":    {RPM: 600, Base: script("429;Retry-After=40"), Attempts: 1},
		"attempts": {RPM: 600, Base: script("503;Retry-After=8 dial"), Attempts: 3},
		"wire":     {RPM: 600, Base: script("hang")},
		"opening":  {Base: script("hang")},
	} {
		for _, tenant := range []string{"", "a"} {
			t.Run(where+tenant, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rt := gate(t, o)
					before, stop := context.WithCancel(t.Context())
					defer stop()
					switch where {
					case "line", "pause":
						finish(rt.RoundTrip(ask(t, before, chat)))
					case "flight":
						resp, err := rt.RoundTrip(ask(t, before, chat))
						if err != nil {
							t.Fatal(err)
						}
						defer resp.Body.Close()
					case "opening":
						go func() { finish(rt.RoundTrip(ask(t, before, chat))) }()
						synctest.Wait()
					}
					ctx, end := context.WithCancelCause(t.Context())
					if tenant != "" {
						ctx = transport.WithTenant(ctx, tenant)
					}
					time.AfterFunc(time.Second, func() { end(errWhy) })
					status, _, err := finish(rt.RoundTrip(ask(t, ctx, chat)))
					if !errors.Is(err, errWhy) && status != 503 { // between attempts the last answer is the call's
						t.Errorf("%d, %v", status, err)
					}
				})
			})
		}
	}
}

// Refusals that lie minutes apart are no row, and neither are those between failures of
// another kind.
func TestRowsEnd(t *testing.T) {
	for _, gap := range []time.Duration{11 * time.Minute, time.Hour, 25 * time.Hour} {
		t.Run(gap.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := gate(t, transport.Options{RPM: 600, TPM: 1e6, Attempts: 1, Base: script("429")})
				for range 9 {
					finish(rt.RoundTrip(ask(t, t.Context(), chat)))
					time.Sleep(gap)
				}
				finish(rt.RoundTrip(ask(t, t.Context(), chat)))
				if s := whole(rt); time.Until(s.PausedUntil) > 3*time.Second {
					t.Errorf("paused for %v", time.Until(s.PausedUntil))
				}
			})
		})
	}
	for _, words := range []string{"429 reset 429 reset 429 reset 200", "429 500 429 500 200", "429 dial 429 dial 429 dial 200", "429 529 429 529 200", "429 200 429 200 429 200 429 200"} {
		t.Run(words, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := gate(t, transport.Options{RPM: 600, TPM: 1e6, Base: script(words), Attempts: 8})
				at := time.Now()
				for range 4 {
					finish(rt.RoundTrip(ask(t, t.Context(), chat)))
				}
				if d := time.Since(at); d > 40*time.Second {
					t.Errorf("four calls took %v", d)
				}
			})
		})
	}
}

// A day that begins at any midnight is configured by its law: all of it is used, and
// nothing is refused.
func TestADayOfEveryZone(t *testing.T) {
	for _, edge := range []time.Duration{0, 5*time.Hour + 30*time.Minute, 8 * time.Hour, 14 * time.Hour, 23*time.Hour + 45*time.Minute} {
		t.Run(fmt.Sprint(edge), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var day int64 = -1
				used, refused, served := 0, 0, 0
				base := rttest.Func(func(r *http.Request) (*http.Response, error) {
					rttest.Drain(r)
					mu.Lock()
					defer mu.Unlock()
					d := int64(time.Now().Add(-edge).Sub(time.Unix(0, 0)) / (24 * time.Hour))
					if d != day {
						day, used = d, 0
					}
					if used >= 100 {
						refused++
						return response(r, 429, "application/json", `{"error":{"message":"daily limit reached","type":"rate_limit_error"}}`), nil
					}
					used++
					served++
					return response(r, 200, "application/json", `{"usage":{"prompt_tokens":14,"completion_tokens":2}}`), nil
				})
				rt := gate(t, transport.Options{Base: base, Attempts: 1, Limits: []limit.Limit{{Name: "requests per day", Unit: limit.Requests, Rate: limit.Rate{N: 100, Window: 24 * time.Hour}, Law: limit.Law{Shape: limit.ShapeFixed, Edge: edge}}}})
				ctx, cancel := context.WithTimeout(t.Context(), 72*time.Hour)
				defer cancel()
				var wg sync.WaitGroup
				lost := 0
				for range 600 {
					wg.Go(func() {
						st, _, err := finish(rt.RoundTrip(ask(t, ctx, chat)))
						if ctx.Err() == nil && (err != nil || st != 200) {
							mu.Lock()
							lost++
							mu.Unlock()
						}
					})
					time.Sleep(6 * time.Minute)
				}
				<-ctx.Done()
				wg.Wait()
				if refused > 0 || served < 300 {
					t.Errorf("refused %d served %d lost %d", refused, served, lost)
				}
			})
		})
	}
}

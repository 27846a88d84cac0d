package transport_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/transport"
)

// A model that refuses everything gets one call a pause, from the second pause on. With
// limits that let a crowd go, each pause brought 20 refusals before. Once it answers,
// everybody goes.
func TestASickModelGetsOneCallAPause(t *testing.T) {
	const sick = 5 * time.Minute
	for _, callers := range []int{1, 20} {
		for _, after := range []string{"", "1"} {
			for _, took := range []time.Duration{200 * time.Millisecond, 3 * time.Second} {
				for _, o := range []transport.Options{{}, {RPM: 6000}, {TPM: 600_000}} {
					t.Run(fmt.Sprintf("%d callers, Retry-After %q, %v, %d and %d a minute", callers, after, took, o.RPM, o.TPM), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							most := 7 * time.Second
							if o.RPM+o.TPM == 0 {
								most = 20 * time.Second // the guess that refusals teach paces them
							}
							var mu sync.Mutex
							var at []time.Duration
							start := time.Now()
							o.Base = rttest.Func(func(r *http.Request) (*http.Response, error) {
								rttest.Drain(r)
								left := time.Since(start)
								mu.Lock()
								at = append(at, left)
								mu.Unlock()
								time.Sleep(took)
								if left > sick {
									return response(r, 200, "application/json", `{"usage":{"prompt_tokens":20,"completion_tokens":4}}`), nil
								}
								resp := response(r, 429, "application/json", errorBodies["error"])
								if after != "" {
									resp.Header.Set("Retry-After", after)
								}
								return resp, nil
							})
							rt := gate(t, o)
							var all sync.WaitGroup
							var first, last time.Duration // answers
							for range callers {
								all.Go(func() {
									for {
										status, _, err := finish(rt.RoundTrip(ask(t, t.Context(), chat)))
										if err != nil {
											t.Error(err)
										}
										if status == 200 {
											break
										}
										time.Sleep(10 * time.Millisecond)
									}
									mu.Lock()
									defer mu.Unlock()
									if last = time.Since(start); first == 0 {
										first = last
									}
								})
							}
							all.Wait()
							crowds, before := 0, -time.Minute
							for _, d := range at {
								if d > sick {
									break
								}
								if d-before > 4*time.Second {
									crowds = 0
								}
								if crowds++; crowds > 1 && d > 2*took+4*time.Second {
									t.Errorf("%d calls around %v", crowds, d)
									break
								}
								before = d
							}
							if first > sick+2*time.Minute || last-first > took+most {
								t.Errorf("the first answer came at %v and the last %v later", first, last-first)
							}
						})
					})
				}
			}
		}
	}
}

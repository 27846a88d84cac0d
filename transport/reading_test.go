package transport_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/refusal"
	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// The header of each refused attempt is parsed once and its body is classified
// once. That holds if it is tried again or handed over, and if the caller reads
// it or not.
func TestARefusalIsReadOnce(t *testing.T) {
	for _, row := range []struct {
		words           string
		attempts, reads int
	}{
		{"429", 1, 1},
		{"429", 3, 3},
		{"429;Retry-After=2;X-Ratelimit-Remaining-Requests=0", 3, 3},
		{"429;Body=wait", 1, 1},
		{"429;Body=wait", 2, 2},
		{"429;Body=quota", 3, 1},
		{"429;X-Should-Retry=false", 3, 1},
		{"503;Retry-After=1", 3, 3},
		{"503;Retry-After=1", 1, 1},
		{"403;Retry-After=7200;Body=gateway", 3, 1},
	} {
		t.Run(fmt.Sprint(row.words, " in ", row.attempts), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				heard := 0
				o := transport.Options{Base: script(row.words), RPM: 6000, Attempts: row.attempts}
				o.Retry.Refused = func(e retry.Event) {
					heard++
					if !e.Refusal.Read || e.Wait > 0 != (heard < row.reads) {
						t.Errorf("refusal %d: body read %v, next attempt in %v", heard, e.Refusal.Read, e.Wait)
					}
				}
				rt := gate(t, o)
				parsed, stop := transport.CountParsedHeaders()
				defer stop()
				before := refusal.Classified()
				finish(rt.RoundTrip(ask(t, t.Context(), letter)))
				if n := int(refusal.Classified() - before); n != row.reads || *parsed != row.reads || heard != row.reads {
					t.Errorf("%d headers parsed, %d bodies classified, %d refusals announced; want %d each", *parsed, n, heard, row.reads)
				}
			})
		})
	}
}

// A wait in GitHub Models' own field is a wait like any other: the call that may
// not wait for two hours gets its 429 at once, and nothing else leaves.
// Report: github/gh-models internal/azuremodels.
func TestEveryFieldThatNamesAWaitEndsACallThatMayNotWait(t *testing.T) {
	for _, field := range []string{"X-Ratelimit-Timeremaining", "Retry-After"} {
		synctest.Test(t, func(t *testing.T) {
			w := script("429;" + field + "=7200")
			rt := gate(t, transport.Options{Base: w, RPM: 600})
			start := time.Now()
			if status, _, err := finish(rt.RoundTrip(ask(t, t.Context(), letter))); status != 429 || err != nil {
				t.Fatal(status, err)
			}
			if d := time.Since(start); d > 0 || w.attempts() != 1 {
				t.Errorf("%s: %d attempts, answered after %v", field, w.attempts(), d)
			}
			if until := time.Until(whole(rt).PausedUntil); until != 2*time.Hour {
				t.Errorf("%s: nothing leaves for %v", field, until)
			}
		})
	}
}

// A gateway that answers 403 when a quota is used up, and names the wait, holds
// everybody. A 403 that speaks of something else holds nobody, and neither does a
// failure of the server that only its own call has to wait for.
// Report: MicrosoftDocs/azure-docs#96103
func TestAGatewaysQuotaPauses(t *testing.T) {
	for words, want := range map[string]time.Duration{
		"403;Retry-After=7200;Body=gateway": 2 * time.Hour,
		"403;Retry-After=7200":              0,
		"403;Body=gateway":                  0,
		"501;Retry-After=7200":              0,
		"500;Retry-After=7200":              0,
		"502;Retry-After=7200":              0, // RFC 9110, section 10.2.3: 503 speaks of the service
		"504;Retry-After=7200":              0,
		"503;Retry-After=7200":              2 * time.Hour,
		"529;Retry-After=7200":              2 * time.Hour,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := script(words)
			rt := gate(t, transport.Options{Base: w, RPM: 600})
			if status, _, err := finish(rt.RoundTrip(ask(t, t.Context(), letter))); status < 400 || err != nil || w.attempts() != 1 {
				t.Fatal(status, err, w.attempts())
			}
			var until time.Duration
			if at := whole(rt).PausedUntil; !at.IsZero() {
				until = time.Until(at)
			}
			if until != want {
				t.Errorf("%s: nothing leaves for %v, want %v", words, until, want)
			}
		})
	}
}

// The steps of a call are a table: every state but the first leads to the end,
// nothing follows it, and each state can be reached.
func TestTheStepsOfACall(t *testing.T) {
	legal := transport.LegalSteps()
	reached := map[string]bool{"queued": true}
	for from, to := range legal {
		for _, s := range to {
			if _, ok := legal[s]; !ok {
				t.Errorf("%s leads to %s, which is no state", from, s)
			}
			reached[s] = true
		}
		if ends := slices.Contains(to, "ended"); ends == (from == "queued" || from == "ended") {
			t.Errorf("%s leads to %v", from, to)
		}
	}
	if len(legal["ended"]) > 0 || len(reached) != len(legal) {
		t.Errorf("steps %v", legal)
	}
}

// panicCounter panics when it counts.
type panicCounter struct{}

func (panicCounter) CountJSON(string, []byte) int64 { panic("a counter") }

// What a hook that panics leaves behind: no body is open, of the request or of a
// response, and no place is taken.
func TestAPanicOfAHookClosesBothBodies(t *testing.T) {
	boom := func() { panic("a hook") }
	for name, set := range map[string]func(*transport.Options){
		"Skip":   func(o *transport.Options) { o.Skip = func(*http.Request) bool { boom(); return false } },
		"Queued": func(o *transport.Options) { o.Trace.Queued = func(*http.Request, limit.Cost) { boom() } },
		"Granted": func(o *transport.Options) {
			o.Trace.Granted = func(*http.Request, limit.Cost, time.Duration) { boom() }
		},
		"Refused": func(o *transport.Options) {
			o.RPM, o.MaxWait = 1, 1
			o.Trace.Refused = func(*http.Request, error) { boom() }
		},
		"Answered":      func(o *transport.Options) { o.Trace.Answered = func(transport.Attempt) { boom() } },
		"Paused":        func(o *transport.Options) { o.Trace.Paused = func(*http.Request, limit.Pause) { boom() } },
		"Lowered":       func(o *transport.Options) { o.Trace.Lowered = func(*http.Request, string, int64) { boom() } },
		"LimitChanged":  func(o *transport.Options) { o.Trace.LimitChanged = func(_, _ limit.Limit) { boom() } },
		"Retry.Refused": func(o *transport.Options) { o.Retry.Refused = func(retry.Event) { boom() } },
		"Deciding":      func(o *transport.Options) { o.Retry.Deciding = func(retry.Event) { boom() } },
		"Who":           func(o *transport.Options) { o.Trace.Who = func(*http.Request, string, limit.Class) { boom() } },
		"Settled":       func(o *transport.Options) { o.Trace.Settled = func(transport.Settlement) { boom() } },
		"LawChanged": func(o *transport.Options) {
			o.Trace.LawChanged, o.Trace.Paused = func(_, _ limit.Limit) { boom() }, func(*http.Request, limit.Pause) { boom() }
		},
		"Account": func(o *transport.Options) { o.Scopes.Account = func(*http.Request) string { boom(); return "" } },
		"Tenant":  func(o *transport.Options) { o.Scopes.Tenant = func(*http.Request) string { boom(); return "" } },
		"Tenants": func(o *transport.Options) {
			o.Scopes.Tenant = func(*http.Request) string { return "t" }
			o.Scopes.Tenants = func(string) transport.TenantOptions { boom(); return transport.TenantOptions{} }
		},
		"Class":   func(o *transport.Options) { o.Scopes.Class = func(*http.Request) limit.Class { boom(); return 0 } },
		"Counter": func(o *transport.Options) { o.Counter = panicCounter{} },
		"Admit": func(o *transport.Options) {
			o.Retry.Admit = func(context.Context, retry.Event) error { boom(); return nil }
		},
		"the base, after a hook": func(o *transport.Options) {
			o.Base = rttest.Func(func(r *http.Request) (*http.Response, error) { rttest.Drain(r); panic("the base") })
		},
		"Done": func(o *transport.Options) { o.Retry.Done = func(retry.Event) { boom() } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ledger := new(bodies)
				o := transport.Options{
					Base: ledger.watch(script("429;Retry-After=1;X-Ratelimit-Limit-Requests=500;X-Ratelimit-Remaining-Requests=0")),
					RPM:  6000, TPM: 1e6, MaxInFlight: 1,
				}
				set(&o)
				rt := gate(t, o)
				panics := 0
				for range 2 {
					req := ask(t, t.Context(), letter)
					req.Body = ledger.body(req.Body)
					func() {
						defer func() {
							if recover() != nil {
								panics++
							}
						}()
						finish(rt.RoundTrip(req))
					}()
				}
				synctest.Wait()
				if panics == 0 || ledger.open() > 0 || rt.Snapshot().InFlight > 0 {
					t.Errorf("%d panics, %d bodies open, %d in flight", panics, ledger.open(), rt.Snapshot().InFlight)
				}
			})
		})
	}
}

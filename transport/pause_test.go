package transport_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

// sender answers the first call with first, and the others with answer. It notes when
// each came.
type sender struct {
	first  func(*http.Request) *http.Response
	answer func(n int, r *http.Request) (*http.Response, error)
	took   time.Duration

	mu sync.Mutex
	at []time.Time
}

func (s *sender) RoundTrip(r *http.Request) (*http.Response, error) {
	rttest.Drain(r)
	s.mu.Lock()
	s.at = append(s.at, time.Now())
	n := len(s.at)
	s.mu.Unlock()
	if n == 1 {
		return s.first(r), nil
	}
	time.Sleep(s.took)
	if s.answer != nil {
		return s.answer(n, r)
	}
	return response(r, 200, "application/json", `{"choices":[],"usage":{"prompt_tokens":14,"completion_tokens":2}}`), nil
}

func (s *sender) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.at)
}

func waitOf(status int, value string) func(*http.Request) *http.Response {
	return func(r *http.Request) *http.Response {
		resp := response(r, status, "application/json", errorBodies["error"])
		resp.Header.Set("Retry-After", value)
		return resp
	}
}

// A wait of a year holds everybody for a day. Then one call goes; the others go when
// it is answered.
func TestALongWaitEndsWithOneProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sender{first: waitOf(503, "31536000"), took: 10 * time.Second}
		rt := gate(t, transport.Options{Base: s, Attempts: 1, RPM: 6000})
		start := time.Now()
		finish(rt.RoundTrip(ask(t, t.Context(), chat)))
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { finish(rt.RoundTrip(ask(t, t.Context(), chat))) })
		}
		time.Sleep(ceiling - time.Second)
		if n := s.count(); n != 1 {
			t.Errorf("%d left before the ceiling", n-1)
		}
		time.Sleep(6 * time.Second)
		if n := s.count(); n != 2 {
			t.Errorf("%d left as probes", n-1)
		}
		all.Wait()
		if d := time.Since(start); d > ceiling+time.Minute {
			t.Errorf("all were through after %v", d)
		}
	})
}

// A probe that fails does not cost another day, and opens nothing. A refusal without
// a wait, a server error and a broken connection are alike; a new wait is kept.
func TestAProbeThatFails(t *testing.T) {
	for _, c := range []struct {
		name        string
		answer      func(*http.Request) (*http.Response, error)
		least, most time.Duration // from the first probe to the second
	}{
		{"server error", func(r *http.Request) (*http.Response, error) { return response(r, 500, "", ""), nil }, time.Minute, 2 * time.Minute},
		{"broken", func(*http.Request) (*http.Response, error) { return nil, errReset }, time.Minute, 2 * time.Minute},
		{"refused", func(r *http.Request) (*http.Response, error) { return response(r, 429, "", ""), nil }, time.Second, 2 * time.Minute},
		{"a wait of an hour", func(r *http.Request) (*http.Response, error) { return waitOf(503, "3600")(r), nil }, time.Hour, time.Hour + time.Minute},
		{"a wait of two years", func(r *http.Request) (*http.Response, error) { return waitOf(503, "63072000")(r), nil }, ceiling, ceiling + time.Minute},
		{"answered", func(r *http.Request) (*http.Response, error) { return response(r, 404, "", ""), nil }, 0, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &sender{first: waitOf(503, "31536000"), answer: func(n int, r *http.Request) (*http.Response, error) {
					if n == 2 {
						return c.answer(r)
					}
					return response(r, 200, "", ""), nil
				}}
				rt := gate(t, transport.Options{Base: s, Attempts: 1, RPM: 600})
				for range 3 {
					finish(rt.RoundTrip(ask(t, t.Context(), chat)))
				}
				if d := s.at[1].Sub(s.at[0]); d < ceiling || d > ceiling+time.Minute {
					t.Errorf("the first probe left after %v", d)
				}
				if d := s.at[2].Sub(s.at[1]); d < c.least || d > c.most {
					t.Errorf("the next call left %v after the probe; want %v to %v", d, c.least, c.most)
				}
			})
		})
	}
}

// MaxPause moves the ceiling, and a wait below it is kept.
func TestTheCeilingIsAnOption(t *testing.T) {
	for _, c := range []struct{ most, want time.Duration }{
		{time.Hour, time.Hour}, {2 * time.Hour, 2 * time.Hour}, {48 * time.Hour, 3 * time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &sender{first: waitOf(503, "10800")}
			rt := gate(t, transport.Options{Base: s, Attempts: 1, Scopes: transport.Scopes{MaxPause: c.most}})
			finish(rt.RoundTrip(ask(t, t.Context(), chat)))
			finish(rt.RoundTrip(ask(t, t.Context(), chat)))
			if d := s.at[1].Sub(s.at[0]); d < c.want || d > c.want+time.Minute {
				t.Errorf("MaxPause %v: the next call left after %v", c.most, d)
			}
		})
	}
	var config *transport.ConfigError
	if _, err := transport.New(transport.Options{Scopes: transport.Scopes{MaxPause: -1}}); !errors.As(err, &config) || config.Field != "Scopes.MaxPause" {
		t.Errorf("a negative MaxPause: %v", err)
	}
}

// Resume lets everybody go who waits for a pause.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sender{first: waitOf(503, "7200")}
		rt := gate(t, transport.Options{Base: s, Attempts: 1, RPM: 600})
		finish(rt.RoundTrip(ask(t, t.Context(), chat)))
		go func() {
			time.Sleep(time.Minute)
			rt.Resume()
		}()
		finish(rt.RoundTrip(ask(t, t.Context(), chat)))
		if d := s.at[1].Sub(s.at[0]); d < time.Minute || d > 2*time.Minute {
			t.Errorf("the next call left after %v", d)
		}
		if snap := whole(rt); !snap.PausedUntil.IsZero() {
			t.Errorf("still paused until %v", snap.PausedUntil)
		}
	})
}

// A held call is visible: the pause, who asked for it, why, and until when.
func TestAPauseIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sender{first: waitOf(503, "3600")}
		var paused time.Duration
		rt := gate(t, transport.Options{Base: s, Attempts: 1, TPM: 200_000,
			Trace: transport.Trace{Paused: func(_ *http.Request, p limit.Pause) { paused = p.For }}})
		finish(rt.RoundTrip(ask(t, t.Context(), chat)))
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := rt.RoundTrip(ask(t, ctx, chat))
		var e *limit.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		if e.By != "api.example.com" || !strings.Contains(e.Why, "1h0m0s") || e.Wait < time.Hour || e.Wait > time.Hour+time.Minute {
			t.Errorf("%+v", e)
		}
		for _, want := range []string{"pause", "asked for by api.example.com", "1h0m0s", "Transport.Resume"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not name %s", err, want)
			}
		}
		if strings.Contains(err.Error(), "send less") {
			t.Errorf("%q", err)
		}
		found := false
		for _, snap := range append(rt.Snapshot().Scopes, rt.Snapshot()) {
			found = found || snap.PausedUntil.Equal(start.Add(time.Hour)) && snap.PausedBy == e.By && snap.PausedWhy == e.Why
		}
		if !found {
			t.Errorf("the snapshot does not name the pause: %v", rt.Snapshot())
		}
		if paused != time.Hour {
			t.Errorf("the hook says %v", paused)
		}
	})
}

// A limit that one answer named, and none repeats, is forgotten.
func TestALimitThatIsNotRepeatedIsForgotten(t *testing.T) {
	for _, c := range []struct {
		name   string
		fields map[string]string
		o      transport.Options
	}{
		{"requests of a day", map[string]string{"X-Ratelimit-Limit-Requests-Day": "50", "X-Ratelimit-Remaining-Requests-Day": "0"}, transport.Options{RPM: 600}},
		{"tokens of an hour", map[string]string{"X-Ratelimit-Limit-Tokens-Hour": "50", "X-Ratelimit-Remaining-Tokens-Hour": "0"}, transport.Options{RPM: 600}},
		{"a policy", map[string]string{"Ratelimit-Policy": `"d";q=50;w=86400`, "Ratelimit": `"d";r=0;t=86400`}, transport.Options{RPM: 600}},
		{"less than configured", map[string]string{"X-Ratelimit-Limit-Tokens": "1000", "X-Ratelimit-Remaining-Tokens": "0"}, transport.Options{RPM: 600, TPM: 200_000}},
		{"less than configured, requests", map[string]string{"X-Ratelimit-Limit-Requests": "2", "X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "30s"}, transport.Options{RPM: 600}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &sender{first: func(r *http.Request) *http.Response {
					resp := response(r, 200, "application/json", `{"choices":[],"usage":{"prompt_tokens":14,"completion_tokens":2}}`)
					for k, v := range c.fields {
						resp.Header.Set(k, v)
					}
					return resp
				}}
				c.o.Base = s
				rt := gate(t, c.o)
				for range 5 {
					finish(rt.RoundTrip(ask(t, t.Context(), chat)))
				}
				start := time.Now()
				for range 100 {
					finish(rt.RoundTrip(ask(t, t.Context(), chat)))
				}
				if d := time.Since(start); d > time.Minute {
					t.Errorf("a hundred calls took %v\n%v", d, rt.Snapshot())
				}
			})
		})
	}
}

// A limit that every second answer names is kept.
func TestALimitThatIsRepeatedNowAndThenIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		rt := gate(t, transport.Options{Base: rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			resp := response(r, 200, "application/json", `{"choices":[],"usage":{"prompt_tokens":14,"completion_tokens":2}}`)
			if n++; n%2 == 1 {
				resp.Header.Set("X-Ratelimit-Limit-Tokens", "60000")
				resp.Header.Set("X-Ratelimit-Remaining-Tokens", "59000")
			}
			return resp, nil
		})})
		for range 50 {
			finish(rt.RoundTrip(ask(t, t.Context(), chat)))
			state(t, rt, "tokens per minute")
		}
	})
}

// Every answer names another window. The number of windows kept is bounded.
func TestWindowsWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		rt := gate(t, transport.Options{Base: rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			resp := response(r, 429, "", "")
			if n++; n%2 == 1 {
				resp = response(r, 200, "application/json", `{"choices":[],"usage":{"prompt_tokens":14,"completion_tokens":2}}`)
			}
			resp.Header.Set("Ratelimit-Policy", windowsFrom(n))
			return resp, nil
		}), Attempts: 1})
		for range 300 {
			finish(rt.RoundTrip(ask(t, t.Context(), chat)))
		}
		if limits := whole(rt).Limits; len(limits) > 32 {
			t.Errorf("%d limits", len(limits))
		}
	})
}

// windowsFrom is a policy of four windows that no other n has.
func windowsFrom(n int) string {
	var b strings.Builder
	for i := range 4 {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(`"p` + string(rune('a'+i)) + `";q=1000000;w=` + strconv.Itoa(100+4*n+i))
	}
	return b.String()
}

// A call of 2^31 tokens that ends in a server error leaves a debt of one window.
func TestWhatIsKeptIsALimitAtMost(t *testing.T) {
	for _, body := range []string{
		`{"model":"m","max_tokens":2147483647,"messages":[{"role":"user","content":"hi"}]}`,
		`{"model":"m","max_tokens":9223372036854775807,"messages":[{"role":"user","content":"hi"}]}`,
		`{"model":"m","max_tokens":1000000,"n":100,"messages":[{"role":"user","content":"hi"}]}`,
		`{"model":"m","max_tokens":16,"messages":[{"role":"user","content":"` + strings.Repeat("words and ", 200_000) + `"}]}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &sender{first: func(r *http.Request) *http.Response {
				resp := response(r, 200, "application/json", `{"choices":[],"usage":{"prompt_tokens":14,"completion_tokens":2}}`)
				resp.Header.Set("X-Ratelimit-Limit-Tokens", "200000")
				resp.Header.Set("X-Ratelimit-Remaining-Tokens", "199000")
				return resp
			}, answer: func(n int, r *http.Request) (*http.Response, error) {
				if n == 2 {
					return response(r, 500, "", ""), nil
				}
				return response(r, 200, "", "{}"), nil
			}}
			rt := gate(t, transport.Options{Base: s, Attempts: 1})
			finish(rt.RoundTrip(ask(t, t.Context(), strings.Replace(chat, "gpt-4o", "m", 1))))
			start := time.Now()
			finish(rt.RoundTrip(ask(t, t.Context(), body)))
			finish(rt.RoundTrip(ask(t, t.Context(), strings.Replace(chat, "gpt-4o", "m", 1))))
			if d := time.Since(start); d > 3*time.Minute+time.Second {
				t.Errorf("%.60s: the next call left after %v", body, d)
			}
		})
	}
}

// A call that stands in net/http's own line for a connection when a pause begins does not
// send before its end. Resume lets it go at once.
func TestAPauseHoldsThoseWithoutAConnection(t *testing.T) {
	for _, c := range []struct {
		name   string
		first  string // the header of the refusal
		value  string
		conns  int
		resume time.Duration // 0: never
		want   time.Duration // when the others leave, from the refusal on
	}{
		{"one connection", "Retry-After", "7", 1, 0, 7 * time.Second},
		{"three connections", "Retry-After", "7", 3, 0, 7 * time.Second},
		{"milliseconds", "Retry-After-Ms", "7500", 1, 0, 7500 * time.Millisecond},
		{"until Resume", "Retry-After", "3600", 1, 20 * time.Second, 20 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				holdBehind(t, c.conns, 20, c.resume, c.want, func(w http.ResponseWriter) {
					w.Header().Set(c.first, c.value)
					w.WriteHeader(429)
				})
			})
		})
	}
}

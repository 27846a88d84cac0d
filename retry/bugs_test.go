package retry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
)

// The names say which public report each test answers: "B..." are threads about
// retrying clients, "D..." are defects reproduced in other libraries.

func TestB001_EveryAttemptHasTheBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(answer(503, ""), answer(500, ""), answer(200, "ok"))
		var lengths []int64
		rt := mustNew(t, rttest.Func(func(r *http.Request) (*http.Response, error) {
			lengths = append(lengths, r.ContentLength)
			return s.RoundTrip(r)
		}), Options{})
		body := strings.Repeat("x", 358)
		if r := send(t, rt, post(t.Context(), t, body)); r.status != 200 {
			t.Fatalf("%+v", r)
		}
		if want := []string{body, body, body}; !reflect.DeepEqual(s.bodies, want) {
			t.Errorf("bodies %.30q", s.bodies)
		}
		if want := []int64{358, 358, 358}; !reflect.DeepEqual(lengths, want) {
			t.Errorf("lengths %v", lengths)
		}
		s.allClosed(t)
	})
}

func TestB001_OneShotBodyHasOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, length := range []int64{-1, 0, int64(len(chat))} {
			s := play(answer(503, "busy"), answer(200, "ok"))
			req := post(t.Context(), t, chat)
			req.Body, req.GetBody, req.ContentLength = rttest.NewBody(chat), nil, length
			tr := new(Trace)
			r := send(t, mustNew(t, s, Options{}), req.WithContext(WithTrace(t.Context(), tr)))
			if r.status != 503 || r.body != "busy" || s.calls() != 1 || tr.Reason() != OneShot {
				t.Errorf("%+v after %d calls, %v", r, s.calls(), tr.Reason())
			}
		}
	})
}

func TestB002_TheLastAnswerSurvivesTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A deadline is known beforehand: the caller has the answer at once.
		s := play(answer(429, tooFast, "Retry-After", "30"))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if r := send(t, mustNew(t, s, Options{}), post(ctx, t, chat)); r.status != 429 || r.body != tooFast || r.elapsed != 0 {
			t.Errorf("deadline: %+v", r)
		}
		// A cancel is not: the error has the answer.
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		r := send(t, mustNew(t, s, Options{}), post(ctx, t, chat))
		var e *Error
		if !errors.As(r.err, &e) || !errors.Is(r.err, context.Canceled) || r.elapsed != 2*time.Second {
			t.Fatalf("cancel: %+v", r)
		}
		if e.Status != 429 || string(e.Body) != tooFast || e.Header.Get("Retry-After") != "30" || e.Attempts != 1 || e.Reason != Ended {
			t.Errorf("cancel: %+v", e)
		}
		s.allClosed(t)
		// The same when the context ends the attempt after.
		s = play(answer(503, "why"), after(time.Hour, answer(200, "")))
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r = send(t, mustNew(t, s, Options{}), post(ctx, t, chat))
		if !errors.As(r.err, &e) || !errors.Is(r.err, context.DeadlineExceeded) || e.Status != 503 || string(e.Body) != "why" || e.Attempts != 2 {
			t.Errorf("in flight: %+v, %+v", r, e)
		}
		if !e.Timeout() {
			t.Error("a deadline is not a timeout")
		}
	})
}

func TestB003_HooksCanReadTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const body = `{"error":{"message":"Rate limit reached. Please try again in 33s.","code":"rate_limit_exceeded"}}`
		s := play(answer(429, body), answer(200, "ok"))
		var seen []string
		read := func(r *http.Response) {
			b, err := io.ReadAll(r.Body)
			seen = append(seen, fmt.Sprint(string(b), err))
			r.Body.Close()
		}
		rt := mustNew(t, s, Options{
			ResetHint: func(r *http.Response) time.Duration { read(r); return 0 },
			Deciding:  func(e Event) { read(e.Response) },
			Admit:     func(_ context.Context, e Event) error { read(e.Response); return errors.New("no") },
		})
		r := send(t, rt, post(t.Context(), t, chat))
		if want := body + "<nil>"; !reflect.DeepEqual(seen, []string{want, want, want}) {
			t.Errorf("hooks saw %q", seen)
		}
		if r.status != 429 || r.body != body || r.elapsed < 33*time.Second {
			t.Errorf("%+v", r)
		}
	})
}

func TestB004_CancelIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(after(time.Hour, answer(200, "")))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		r := send(t, mustNew(t, s, Options{Attempts: 5}), post(ctx, t, chat))
		if s.calls() != 1 || r.elapsed != time.Second || r.err != context.Canceled {
			t.Errorf("%d calls, %+v", s.calls(), r)
		}
	})
}

func TestB005_CancelEndsTheWait(t *testing.T) {
	for name, cancelIt := range map[string]func(*http.Request) *http.Request{
		"context": func(r *http.Request) *http.Request {
			ctx, cancel := context.WithCancel(r.Context())
			time.AfterFunc(500*time.Millisecond, cancel)
			return r.WithContext(ctx)
		},
		"Request.Cancel": func(r *http.Request) *http.Request {
			ch := make(chan struct{})
			time.AfterFunc(500*time.Millisecond, func() { close(ch) })
			r.Cancel = ch //lint:ignore SA1019 it still has to work
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			// The bubble fails the test when a goroutine is left.
			synctest.Test(t, func(t *testing.T) {
				s := play(answer(503, "busy"))
				rt := mustNew(t, s, Options{MinBackoff: 30 * time.Second, MaxBackoff: 30 * time.Second})
				r := send(t, rt, cancelIt(post(t.Context(), t, chat)))
				if r.elapsed != 500*time.Millisecond || !errors.Is(r.err, context.Canceled) || s.calls() != 1 {
					t.Errorf("%+v after %d calls", r, s.calls())
				}
				s.allClosed(t)
			})
		})
	}
}

func TestB006_BothErrorsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tlsError := &net.OpError{Op: "read", Net: "tcp", Err: errors.New("tls: bad record MAC")}
		why := errors.New("the user left")
		s := play(fail(tlsError))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
		r := send(t, mustNew(t, s, Options{}), post(ctx, t, chat))
		for _, want := range []error{context.Canceled, tlsError, why} {
			if !errors.Is(r.err, want) {
				t.Errorf("%v does not match %v", r.err, want)
			}
		}
		// Cancelled while the attempt after it runs.
		s = play(fail(tlsError), after(time.Hour, answer(200, "")))
		ctx, cancel2 := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel2()
		r = send(t, mustNew(t, s, Options{}), post(ctx, t, chat))
		if !errors.Is(r.err, tlsError) || !errors.Is(r.err, context.DeadlineExceeded) || s.calls() != 2 {
			t.Errorf("%v after %d calls", r.err, s.calls())
		}
	})
}

func TestB007_ExhaustedAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fields := range [][]string{
			nil,
			{"Retry-After", "1"},
			{"X-Should-Retry", "true"},
		} {
			s := play(answer(429, noCredit, fields...))
			tr := new(Trace)
			r := send(t, mustNew(t, s, Options{Attempts: 5}), post(WithTrace(t.Context(), tr), t, chat))
			if s.calls() != 1 || r.status != 429 || r.body != noCredit || r.elapsed != 0 || tr.Reason() != Refused {
				t.Errorf("%v: %d calls, %+v, %v", fields, s.calls(), r, tr.Reason())
			}
			s.allClosed(t)
		}
	})
}

func TestB007_ExhaustedAccountInGzip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		packed := pack(noCredit)
		s := play(answer(429, packed, "Content-Encoding", "gzip"))
		r := send(t, mustNew(t, s, Options{}), post(t.Context(), t, chat))
		if s.calls() != 1 || r.body != packed {
			t.Errorf("%d calls, %+v", s.calls(), r)
		}
	})
}

func TestB008_B009_D22_TheLastAnswerIsTheProviders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, status := range []int{429, 500, 503, 529, 408, 409} {
			s := play(answer(status, "first"), answer(status, "middle"), answer(status, tooFast, "X-Request-Id", "r1", "X-Ratelimit-Remaining-Tokens", "0"))
			tr := new(Trace)
			r := send(t, mustNew(t, s, Options{}), post(WithTrace(t.Context(), tr), t, chat))
			if r.err != nil || r.status != status || r.body != tooFast || r.header.Get("X-Request-Id") != "r1" || s.calls() != 3 {
				t.Errorf("%d: %+v after %d calls", status, r, s.calls())
			}
			if tr.Attempts() != 3 || tr.Reason() != Exhausted || tr.Waited() != r.elapsed {
				t.Errorf("%d: trace %d attempts, %v, waited %v of %v", status, tr.Attempts(), tr.Reason(), tr.Waited(), r.elapsed)
			}
			s.allClosed(t)
		}
	})
}

func TestB010_NoResponseNoPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
		s := play(fail(dial), answer(200, "ok"))
		var events []Event
		rt := mustNew(t, s, Options{
			Deciding:  func(e Event) { events = append(events, e) },
			Admit:     func(_ context.Context, e Event) error { events = append(events, e); return nil },
			ResetHint: func(r *http.Response) time.Duration { t.Error("asked without a response"); return 0 },
		})
		if r := send(t, rt, post(t.Context(), t, chat)); r.status != 200 {
			t.Errorf("%+v", r)
		}
		if len(events) != 2 || events[0].Response != nil || events[0].Err != dial || events[1].Attempt != 1 {
			t.Errorf("events %+v", events)
		}
	})
}

// A wait above the ceiling is neither slept nor shortened.
func TestB011_B014_B018_B021_B022_D23_OverTheCeiling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name   string
			o      Options
			fields []string
			body   string
			reason Reason
		}{
			{"B011", Options{MaxWait: 10 * time.Second}, []string{"Retry-After", "3600"}, "", TooLong},
			{"B014", Options{MaxWait: 60 * time.Second}, []string{"Retry-After", "61"}, "", TooLong},
			{"B014 by a nanosecond", Options{MaxWait: 60 * time.Second}, []string{"Retry-After", "60.000000001"}, "", TooLong},
			{"B018", Options{MaxWait: time.Hour, MaxElapsed: 900 * time.Second}, []string{"Retry-After", "1800"}, "", Elapsed},
			{"B021", Options{}, nil, `{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 61337.","code":"rate_limit_exceeded"}}`, Refused},
			{"B022", Options{}, []string{"Retry-After", "7200"}, "", TooLong},
			{"D23 epoch", Options{}, []string{"Retry-After", "1790000000"}, "", TooLong},
			{"D23 large", Options{}, []string{"Retry-After", "99999999999"}, "", TooLong},
			{"B028 overflow", Options{}, []string{"Retry-After", "9223372036854775807"}, "", TooLong},
			{"D23 ms", Options{}, []string{"Retry-After-Ms", "3600000", "Retry-After", "1"}, "", TooLong},
			{"body", Options{}, nil, `{"error":{"message":"Rate limit reached. Please try again in 17m31.056s.","code":"rate_limit_exceeded"}}`, TooLong},
		} {
			s := play(answer(429, c.body, c.fields...))
			tr := new(Trace)
			r := send(t, mustNew(t, s, c.o), post(WithTrace(t.Context(), tr), t, chat))
			if r.status != 429 || r.body != c.body || r.elapsed != 0 || s.calls() != 1 || tr.Reason() != c.reason {
				t.Errorf("%s: %+v after %d calls, %v", c.name, r, s.calls(), tr.Reason())
			}
		}
	})
}

func TestB012_DefaultCeiling(t *testing.T) {
	if DefaultMaxWait != time.Minute || DefaultAttempts != 3 {
		t.Errorf("the defaults changed: %v, %d", DefaultMaxWait, DefaultAttempts)
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

func TestB013_ZeroIsAnAnswer(t *testing.T) {
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

func TestB015_B016_AttemptsMeanAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ option, call, want int }{
			{1, 0, 1}, {2, 0, 2}, {0, 0, 3}, {5, 0, 5},
			{5, 1, 1}, {1, 4, 4}, {0, 2, 2}, {2, -3, 2},
		} {
			s := play(answer(503, ""))
			tr := new(Trace)
			done := 0
			rt := mustNew(t, s, Options{Attempts: c.option, Done: func(e Event) { done = e.Attempt }})
			ctx := WithTrace(WithAttempts(t.Context(), c.call), tr)
			r := send(t, rt, post(ctx, t, chat))
			if s.calls() != c.want || tr.Attempts() != c.want || done != c.want || r.status != 503 {
				t.Errorf("%+v: %d on the wire, %d traced, %d done, %+v", c, s.calls(), tr.Attempts(), done, r)
			}
		}
	})
}

func TestB017_NobodyIsEarlyAndTheHerdIsSpread(t *testing.T) {
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

func TestB019_CertificatesDoNotMend(t *testing.T) {
	handshakes := new(atomic.Int32)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = nil
	server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { handshakes.Add(1); return nil, nil }}
	server.Config.ErrorLog = discard
	server.StartTLS()
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	r := send(t, mustNew(t, base, Options{MinBackoff: time.Millisecond}), get(t, server.URL))
	if !errors.As(r.err, new(x509.UnknownAuthorityError)) || handshakes.Load() != 1 {
		t.Errorf("%v after %d handshakes", r.err, handshakes.Load())
	}

	synctest.Test(t, func(t *testing.T) {
		for _, err := range []error{
			x509.UnknownAuthorityError{}, x509.HostnameError{Certificate: &x509.Certificate{}},
			x509.CertificateInvalidError{Cert: &x509.Certificate{}}, x509.SystemRootsError{}, x509.ConstraintViolationError{},
			x509.UnhandledCriticalExtension{}, x509.InsecureAlgorithmError(1),
			&tls.CertificateVerificationError{Err: errors.New("pinned key differs")},
			tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"},
			&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")},
			&net.DNSError{Err: "no such host", Name: "api.example.invalid", IsNotFound: true},
			http.ErrSchemeMismatch,
		} {
			for _, err := range []error{err, fmt.Errorf("moved: %w", err)} {
				s := play(fail(err))
				if r := send(t, mustNew(t, s, Options{}), post(t.Context(), t, chat)); r.err != err || s.calls() != 1 {
					t.Errorf("%v: %d calls, %v", err, s.calls(), r.err)
				}
			}
		}
	})
}

func TestB020_StatusTable(t *testing.T) {
	again := map[int]bool{408: true, 409: true, 429: true}
	for s := 500; s < 600; s++ {
		again[s] = s != 501 && s != 505
	}
	synctest.Test(t, func(t *testing.T) {
		for status := 200; status < 1000; status++ {
			s := play(answer(status, "x"), answer(200, ""))
			send(t, mustNew(t, s, Options{}), post(t.Context(), t, chat))
			if (s.calls() == 2) != again[status] {
				t.Errorf("%d: %d calls", status, s.calls())
			}
		}
	})
}

func TestB023_TheDeadlineIsOverEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(after(4*time.Second, answer(503, "busy")))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		tr := new(Trace)
		rt := mustNew(t, s, Options{MinBackoff: 3 * time.Second, MaxBackoff: 3 * time.Second})
		r := send(t, rt, post(WithTrace(ctx, tr), t, chat))
		if r.status != 503 || r.elapsed != 4*time.Second || s.calls() != 1 || tr.Reason() != OutOfTime {
			t.Errorf("%+v after %d calls, %v", r, s.calls(), tr.Reason())
		}
		// A wait in Admit counts.
		s = play(answer(503, "busy"))
		rt = mustNew(t, s, Options{Admit: func(ctx context.Context, _ Event) error { <-ctx.Done(); return ctx.Err() }})
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r = send(t, rt, post(ctx, t, chat))
		if !errors.Is(r.err, context.DeadlineExceeded) || r.elapsed != 5*time.Second || s.calls() != 1 {
			t.Errorf("%+v after %d calls", r, s.calls())
		}
		// So it does when Admit does not look at the context.
		rt = mustNew(t, s, Options{Admit: func(context.Context, Event) error { time.Sleep(time.Minute); return nil }})
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if r = send(t, rt, post(ctx, t, chat)); !errors.Is(r.err, context.DeadlineExceeded) || s.calls() != 2 {
			t.Errorf("%+v after %d calls", r, s.calls())
		}
		s.allClosed(t)
		// MaxElapsed is the same promise without a context.
		s = play(after(4*time.Second, answer(503, "busy")))
		rt = mustNew(t, s, Options{Attempts: 9, MaxElapsed: 9500 * time.Millisecond, MinBackoff: time.Second, MaxBackoff: time.Second})
		send(t, rt, post(t.Context(), t, chat))
		if n := s.calls(); n != 2 || s.at[1] > 9500*time.Millisecond {
			t.Errorf("%d calls at %v", n, s.at)
		}
	})
}

func TestB024_B025_B026_D18_EverySpellingOfAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in5 := time.Now().Add(5 * time.Second).UTC()
		for _, c := range []struct {
			name   string
			fields []string
			body   string
			want   time.Duration
		}{
			{"B024 IMF-fixdate", []string{"Retry-After", in5.Format(http.TimeFormat)}, "", 5 * time.Second},
			{"B024 RFC 850", []string{"Retry-After", in5.Format("Monday, 02-Jan-06 15:04:05 GMT")}, "", 5 * time.Second},
			{"B024 asctime", []string{"Retry-After", in5.Format(time.ANSIC)}, "", 5 * time.Second},
			{"B025", []string{"Retry-After", "2"}, "", 2 * time.Second},
			{"B026", []string{"Retry-After", "1.5"}, "", 1500 * time.Millisecond},
			{"D18", []string{"Retry-After", "0.5"}, "", 500 * time.Millisecond},
			{"ms", []string{"Retry-After-Ms", "2500"}, "", 2500 * time.Millisecond},
			{"longest", []string{"Retry-After-Ms", "100", "Retry-After", "3"}, "", 3 * time.Second},
			{"Azure, ms 0", []string{"Retry-After-Ms", "0", "Retry-After", "1"}, "", time.Second},
			{"blanks", []string{"Retry-After", " 2 "}, "", 2 * time.Second},
			{"B029", nil, `{"error":{"message":"Please retry after 33 seconds.","code":"429"}}`, 33 * time.Second},
			{"B029 longer in the body", []string{"Retry-After", "1"}, `{"error":{"message":"Please retry after 33 seconds.","code":"429"}}`, 33 * time.Second},
		} {
			for _, status := range []int{429, 503, 529, 500} {
				now := time.Now()
				fields := c.fields
				if strings.HasPrefix(c.name, "B024") { // the bubble's clock has moved on
					fields = append([]string{"Date", now.Add(-now.Sub(in5) - 5*time.Second).UTC().Format(http.TimeFormat)}, fields...)
				}
				s := play(answer(status, c.body, fields...), answer(200, ""))
				r := send(t, mustNew(t, s, Options{}), post(t.Context(), t, chat))
				if s.calls() != 2 || r.elapsed < c.want || r.elapsed > c.want+DefaultMinBackoff {
					t.Errorf("%s on %d: waited %v, want %v and a jitter; %d calls", c.name, status, r.elapsed, c.want, s.calls())
				}
			}
		}
	})
}

// What cannot be read is not zero.
func TestB027_B028_UnreadableWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, v := range []string{"+3", "3s", "1e3", "", "-1", "NaN", "soon", "1,000"} {
			s := play(answer(429, "", "Retry-After", v), answer(200, ""))
			r := send(t, mustNew(t, s, Options{}), post(t.Context(), t, chat))
			if r.elapsed < DefaultMinBackoff || s.calls() != 2 {
				t.Errorf("%q: waited %v, %d calls", v, r.elapsed, s.calls())
			}
		}
	})
}

func TestB029_BodyWaitsCanBeIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(answer(429, `{"error":{"message":"Please retry after 33 seconds."}}`), answer(200, ""))
		r := send(t, mustNew(t, s, Options{IgnoreBodyWait: true}), post(t.Context(), t, chat))
		if r.elapsed < DefaultMinBackoff || r.elapsed > 2*DefaultMinBackoff {
			t.Errorf("waited %v", r.elapsed)
		}
	})
}

func TestB030_ResetHintOnlyLengthens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			hint, lo time.Duration
			calls    int
		}{
			{20 * time.Second, 20 * time.Second, 2},
			{time.Second, 3 * time.Second, 2},
			{-time.Hour, 3 * time.Second, 2},
			{6 * time.Minute, 0, 1},
			{1<<63 - 1, 0, 1},
		} {
			s := play(answer(429, "", "Retry-After", "3"), answer(200, ""))
			rt := mustNew(t, s, Options{ResetHint: func(*http.Response) time.Duration { return c.hint }})
			r := send(t, rt, post(t.Context(), t, chat))
			if s.calls() != c.calls || r.elapsed < c.lo || r.elapsed > c.lo+DefaultMinBackoff {
				t.Errorf("hint %v: %d calls, waited %v", c.hint, s.calls(), r.elapsed)
			}
		}
	})
}

func TestB089_B090_BodiesOnEveryPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := func(context.Context, Event) error { return errors.New("no") }
		for name, c := range map[string]struct {
			o       Options
			answers []answerFunc
		}{
			"exhausted":        {Options{}, []answerFunc{answer(503, "")}},
			"errors":           {Options{}, []answerFunc{fail(errReset)}},
			"not admitted":     {Options{Admit: refuse}, []answerFunc{answer(503, "")}},
			"not admitted err": {Options{Admit: refuse}, []answerFunc{fail(errReset)}},
			"too long":         {Options{}, []answerFunc{answer(429, "", "Retry-After", "99")}},
			"refused":          {Options{}, []answerFunc{answer(429, noCredit)}},
			"cancelled":        {Options{Deciding: nil}, []answerFunc{answer(503, "")}},
		} {
			s := play(c.answers...)
			ctx, cancel := context.WithCancel(t.Context())
			if name == "cancelled" {
				c.o.Deciding = func(Event) { cancel() }
			}
			first := rttest.NewBody(chat)
			bodies := []*rttest.Body{first}
			req := post(ctx, t, chat)
			req.Body = first
			req.GetBody = func() (io.ReadCloser, error) {
				b := rttest.NewBody(chat)
				bodies = append(bodies, b)
				return b, nil
			}
			send(t, mustNew(t, s, c.o), req)
			for i, b := range bodies {
				if _, closes, late := b.Counts(); closes == 0 || late > 0 {
					t.Errorf("%s: body %d closed %d times, read %d times after", name, i, closes, late)
				}
			}
			s.allClosed(t)
			cancel()
		}
	})
}

func TestB092_HeadersAreNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		rt := mustNew(t, rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			seen = append(seen, strings.Join(r.Header["Traceparent"], ","))
			r.Header.Add("Traceparent", "a")
			return rttest.Response(r, 503, nil, ""), nil
		}), Options{})
		req := post(t.Context(), t, chat)
		before := req.Header.Clone()
		send(t, rt, req)
		if !reflect.DeepEqual(seen, []string{"", "", ""}) || !reflect.DeepEqual(req.Header, before) {
			t.Errorf("attempts saw %q, the caller %v", seen, req.Header)
		}
	})
}

func TestB093_ParallelCallsOnAFreshTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(answer(503, ""), answer(503, ""), answer(503, ""), answer(200, ""))
		rt := mustNew(t, s, Options{Attempts: 5})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if r := send(t, rt, post(t.Context(), t, chat)); r.status != 200 {
					t.Errorf("%+v", r)
				}
			})
		}
		wg.Wait()
		s.allClosed(t)
	})
}

// A server that leaves with GOAWAY while a request is under way is net/http's own
// to retry; it needs the GetBody that we pass on.
func TestB096_GetBodyReachesTheBase(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		req  func(*http.Request)
	}{
		{"the caller's", Options{}, func(*http.Request) {}},
		{"of a buffered body", Options{MaxBuffer: 1 << 10}, func(r *http.Request) { r.Body, r.GetBody = rttest.NewBody(chat), nil }},
	} {
		req := post(t.Context(), t, chat)
		c.req(req)
		before := *req
		rt := mustNew(t, rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			b, err := r.GetBody()
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := io.ReadAll(b); string(got) != chat {
				t.Errorf("%s: GetBody gives %q", c.name, got)
			}
			return rttest.Response(r, 200, nil, ""), nil
		}), c.o)
		send(t, rt, req)
		if req.Body != before.Body || (req.GetBody == nil) != (before.GetBody == nil) {
			t.Errorf("%s: the caller's request was altered", c.name)
		}
	}
}

func TestB098_NothingIsRewound(t *testing.T) {
	name := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(name, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, buffer := range []int64{0, 3, 100} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		f.Seek(5, io.SeekStart)
		s := play(answer(503, ""), answer(200, ""))
		req, _ := http.NewRequest("POST", "https://api.example.com/", f)
		send(t, mustNew(t, s, Options{MaxBuffer: buffer, MinBackoff: time.Nanosecond, MaxBackoff: time.Nanosecond}), req)
		want := []string{"56789"}
		if buffer == 100 {
			want = append(want, "56789")
		}
		if !reflect.DeepEqual(s.bodies, want) {
			t.Errorf("buffer %d: %q", buffer, s.bodies)
		}
		if _, err := f.Read(nil); !errors.Is(err, os.ErrClosed) {
			t.Errorf("buffer %d: the file is open", buffer)
		}
	}
}

// failsafehttp opened 81 connections for this and left 248 goroutines.
func TestD16_D17_B097_OneConnection(t *testing.T) {
	var n atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%5 != 0 {
			w.WriteHeader(429)
			io.WriteString(w, tooFast)
			return
		}
		io.WriteString(w, "ok")
	}))
	defer server.Close()
	base := server.Client().Transport.(*http.Transport)
	rt := mustNew(t, base, Options{Attempts: 5, MinBackoff: 1, MaxBackoff: 1})
	dialled := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if !i.Reused {
			dialled++
		}
	}})
	for range 20 {
		req, _ := http.NewRequestWithContext(ctx, "POST", server.URL, strings.NewReader(chat))
		if r := send(t, rt, req); r.status != 200 {
			t.Fatalf("%+v", r)
		}
	}
	if dialled != 1 {
		t.Errorf("%d connections", dialled)
	}
	rt.CloseIdleConnections()
	rttest.NoLeaks(t)
}

func TestD20_NoBodyIsSentEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, length := range []int64{-1, int64(len(chat))} {
			for buffer, want := range map[int64]int{0: 1, 10: 1, 1 << 10: 2} {
				s := play(answer(429, "", "Retry-After", "1"), answer(200, ""))
				req := post(t.Context(), t, chat)
				req.Body, req.GetBody, req.ContentLength = rttest.NewBody(chat), nil, length
				send(t, mustNew(t, s, Options{MaxBuffer: buffer}), req)
				if s.calls() != want {
					t.Errorf("length %d, buffer %d: %d calls", length, buffer, s.calls())
				}
				for _, b := range s.bodies {
					if b != chat {
						t.Errorf("length %d, buffer %d: sent %q", length, buffer, b)
					}
				}
			}
		}
	})
}

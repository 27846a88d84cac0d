package transport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// canaries must never appear in a text. Each is somewhere in the request of
// secretive.
var canaries = []string{"sk-bearer-canary", "api-key-canary", "x-api-key-canary", "goog-canary", "cookie-canary", "prompt-canary", "query-canary", "user-canary", "password-canary"}

func secretive(t *testing.T, ctx context.Context) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", "https://user-canary:password-canary@api.example.com/v1/chat/completions?key=query-canary&api-key=query-canary",
		strings.NewReader(strings.Replace(letter, "a letter", "prompt-canary", 1)))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Authorization": "Bearer sk-bearer-canary", "Api-Key": "api-key-canary",
		"X-Api-Key": "x-api-key-canary", "X-Goog-Api-Key": "goog-canary", "Cookie": "session=cookie-canary",
	} {
		req.Header.Set(name, value)
	}
	return req
}

// telling fails the test if a canary is in text.
func telling(t *testing.T, where, text string) {
	t.Helper()
	for _, c := range canaries {
		if strings.Contains(text, c) {
			t.Errorf("%s tells %q: %s", where, c, text)
		}
	}
}

// every prints v in every way that a log might, and the errors inside it.
func every(t *testing.T, where string, v any) {
	t.Helper()
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		telling(t, where+" as "+format, fmt.Sprintf(format, v))
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
	telling(t, where+" in a log", log.String())
	if err, ok := v.(error); ok {
		for e := errors.Unwrap(err); e != nil; e = errors.Unwrap(e) {
			telling(t, where+", unwrapped", fmt.Sprintf("%+v", e))
		}
	}
}

// No error holds a key, prompt, query value or userinfo. Nor does an argument of a
// hook, except the request itself, or one of our types when printed. That holds on
// every path that ends in an error or a refusal.
// Report: golang/vulndb#2947, hashicorp/go-retryablehttp#133
// Report: vllm-project/semantic-router#2132, BerriAI/litellm#22424
// Report: ls1intum/edutelligence#358, infinigence/octollm#93
// Report: valentinfrlch/ha-llmvision#334
func TestNoSecretIsInAnErrorAHookOrAType(t *testing.T) {
	// keyed carries a key by value, as the transports of many programs do.
	type keyed struct {
		http.RoundTripper
		key string
	}
	for name, scene := range map[string]struct {
		words string
		o     transport.Options
		ctx   func(context.Context) (context.Context, context.CancelFunc)
	}{
		"answered":                     {words: "200"},
		"refused, three times":         {words: "429"},
		"failed, three times":          {words: "503"},
		"reset, three times":           {words: "reset"},
		"never dialled":                {words: "dial"},
		"cut":                          {words: "cut"},
		"too large":                    {words: "200", o: transport.Options{TPM: 50}},
		"too long a line":              {words: "200", o: transport.Options{RPM: 1, MaxWait: time.Second}},
		"cancelled in line":            {words: "200", o: transport.Options{RPM: 1}, ctx: after(time.Second)},
		"cancelled on the wire":        {words: "hang", ctx: after(time.Second)},
		"cancelled between":            {words: "429;Retry-After=30", ctx: after(time.Second)},
		"cancelled between, after 503": {words: "503;Retry-After=30", ctx: after(time.Second)},
		"not admitted again":           {words: "429;Retry-After=20", o: transport.Options{RPM: 60, MaxWait: time.Second}},
		"echoed by the base":           {words: "echo"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := script(scene.words)
			o := scene.o
			o.Base = keyed{rttest.Func(func(r *http.Request) (*http.Response, error) {
				every(t, name+": the context", r.Context())
				if scene.words == "echo" { // a base that quotes what it was asked
					rttest.Drain(r)
					return nil, fmt.Errorf("%s %q: %s: connection refused", r.Method, r.URL, r.Header.Get("Authorization"))
				}
				return w.RoundTrip(r)
			}), "sk-bearer-canary"}
			o.Trace = transport.Trace{
				Queued:  func(_ *http.Request, c limit.Cost) { every(t, name+": Queued", c) },
				Granted: func(_ *http.Request, c limit.Cost, d time.Duration) { every(t, name+": Granted", c) },
				Refused: func(_ *http.Request, err error) { every(t, name+": Refused", err) },
				Answered: func(a transport.Attempt) {
					if scene.words != "echo" { // the base's own words
						every(t, name+": Answered", a)
					}
				},
				Settled: func(s transport.Settlement) { every(t, name+": Settled", s) },
			}
			event := func(e retry.Event) { every(t, name+": a retry event", e) }
			o.Retry.Deciding, o.Retry.Done = event, event
			every(t, name+": the options", o)
			rt := gate(t, o)
			if o.RPM == 1 {
				finish(rt.RoundTrip(ask(t, t.Context(), letter)))
			}
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if scene.ctx != nil {
				ctx, cancel = scene.ctx(ctx)
			}
			defer cancel()
			_, _, err := finish(rt.RoundTrip(secretive(t, ctx)))
			if err != nil {
				every(t, name+": the error", err)
			}
			synctest.Wait()
			every(t, name+": the transport", rt)
			every(t, name+": the snapshot", rt.Snapshot())
		})
	}
	if _, err := transport.New(transport.Options{Base: keyed{nil, "sk-bearer-canary"}, RPM: -1}); err == nil {
		t.Error("no error")
	} else {
		every(t, "a configuration error", err)
	}
}

func after(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(d, cancel)
		return ctx, cancel
	}
}

// Over net/http, whose errors quote addresses.
// Report: golang/vulndb#2947, hashicorp/go-retryablehttp#133
func TestNoSecretIsInAnErrorOfNetHTTP(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }))
	closed := httptest.NewServer(nil)
	closed.Close()
	defer s.Close()
	for name, host := range map[string]string{"aborted": s.Listener.Addr().String(), "nobody listens": closed.Listener.Addr().String()} {
		var log bytes.Buffer
		o := transport.Options{Base: &http.Transport{}}
		o.Retry = retry.Options{MinBackoff: 1, MaxBackoff: 1, Deciding: func(e retry.Event) { fmt.Fprintln(&log, e.Err) }}
		rt := gate(t, o)
		req := secretive(t, t.Context())
		req.URL.Scheme, req.URL.Host = "http", host
		_, err := rt.RoundTrip(req)
		if err == nil {
			t.Fatal(name, "no error")
		}
		every(t, name, err)
		telling(t, name+": hooks", log.String())
		rt.CloseIdleConnections()
	}
}

// A base that quotes a header that carries a key, or one escaped value of the query, tells
// no secret, with one attempt or several.
func TestNoSecretIsInAnErrorThatQuotesAPart(t *testing.T) {
	for _, attempts := range []int{1, 2} {
		for _, name := range []string{
			"Authorization", "Proxy-Authorization", "Cookie", "Api-Key", "X-Api-Key", "X-Goog-Api-Key", "Ocp-Apim-Subscription-Key", "X-Amz-Security-Token",
			"X-Functions-Key", "Xi-Api-Key", "Helicone-Auth", "X-Portkey-Api-Key", "X-Auth-Token", "X-Access-Token", "Apikey", "X-Client-Secret", "X-Signature",
			"?key", "?escaped", "?whole", "user",
		} {
			synctest.Test(t, func(t *testing.T) {
				o := transport.Options{Attempts: attempts, Base: rttest.Func(func(r *http.Request) (*http.Response, error) {
					rttest.Drain(r)
					quoted := map[string]string{"?key": r.URL.Query().Get("key"), "?escaped": "api%2Fkey%2Dcanary", "?whole": r.URL.RequestURI(), "user": r.URL.User.String()}[name]
					if quoted == "" {
						quoted = r.Header.Get(name)
					}
					return nil, fmt.Errorf("proxy refused %q", quoted)
				})}
				req := secretive(t, t.Context())
				req.URL.RawQuery = "alt=sse&key=query-canary&other=api%2Fkey%2Dcanary"
				if name[0] >= 'A' && name[0] <= 'Z' {
					req.Header.Set(name, "Bearer sk-bearer-canary")
				}
				_, err := gate(t, o).RoundTrip(req)
				if err == nil {
					t.Fatal("no error")
				}
				every(t, name, err)
				if strings.Contains(err.Error(), "key%2Dcanary") {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
}

// A scope has the name of a host, of a keyed hash of the credential and of
// a model; nothing else of a request becomes a name.
// Report: utksh1/SecuScan#1758
func TestNoKeyBecomesAName(t *testing.T) {
	rt := gate(t, transport.Options{Base: script("200;X-Ratelimit-Limit-Tokens=1000;X-Ratelimit-Remaining-Tokens=900")})
	finish(rt.RoundTrip(secretive(t, t.Context())))
	if len(whole(rt).Limits) == 0 {
		t.Fatal("nothing was learned")
	}
	telling(t, "the snapshot", fmt.Sprintf("%+v", rt.Snapshot()))
}

// The second hop of a redirect carries nothing that the transport added.
// Whether the caller's own key goes to another host is the client's redirect
// policy: net/http drops Authorization and Cookie there, and no other field.
// Report: go-resty/resty#1128, imroc/req#489
// Report: alpha-omega-security/scrutineer#670
func TestRedirectsCarryNothingOfOurs(t *testing.T) {
	var second http.Header
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { second = r.Header.Clone() }))
	defer there.Close()
	elsewhere := strings.Replace(there.URL, "127.0.0.1", "localhost", 1)
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
	}))
	defer here.Close()
	hop := func(rt http.RoundTripper) http.Header {
		req, _ := http.NewRequest("POST", here.URL, strings.NewReader(letter))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer sk-bearer-canary")
		resp, err := (&http.Client{Transport: rt}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return second
	}
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	bare := hop(base)
	b := new(books)
	rt := gate(t, transport.Options{Base: base, Limits: slow(10, 1e6), StopSDKRetries: true, Trace: b.trace()})
	ours := hop(rt)
	if fmt.Sprint(bare) != fmt.Sprint(ours) || ours.Get("Authorization") != "" {
		t.Errorf("the second hop carries %v, without us %v", ours, bare)
	}
	if got := spent(rt).Requests; got != 2 {
		t.Errorf("two hops were charged %d requests", got)
	}
	b.balanced(t, rt)
}

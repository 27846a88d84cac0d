package retry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Report: golang/vulndb#2947, hashicorp/go-retryablehttp#133
// Report: vllm-project/semantic-router#2132, BerriAI/litellm#22424
// Report: ls1intum/edutelligence#358, infinigence/octollm#93
// Report: valentinfrlch/ha-llmvision#334
func TestErrorsKeepSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const target = "https://user:pa55word@api.example.com/v1/chat?key=SECRET1&api-key=SECRET2"
		for name, err := range map[string]error{
			"url.Error":   &url.Error{Op: "Post", URL: target, Err: errReset},
			"wrapped":     fmt.Errorf("proxy: %w", &url.Error{Op: "Post", URL: target, Err: errReset}),
			"other URL":   &url.Error{Op: "Post", URL: "http://u2:SECRET3@gw.example.com/?token=SECRET4#SECRET5", Err: errReset},
			"bare query":  errors.New("cannot send key=SECRET1&api-key=SECRET2"),
			"bare value":  errors.New("cannot use SECRET2"),
			"bare user":   errors.New("no such user user:pa55word"),
			"header":      errors.New("malformed header: Bearer sk-SECRET6"),
			"header part": errors.New("bad token sk-SECRET6 or gk-SECRET7"),
		} {
			for _, o := range []Options{
				{},
				{Attempts: 1},
				{Admit: func(context.Context, Event) error { return err }},
				{MaxElapsed: 1},
			} {
				req := post(t.Context(), t, chat)
				req.URL, _ = url.Parse(target)
				req.Header.Set("Authorization", "Bearer sk-SECRET6")
				req.Header.Set("X-Goog-Api-Key", "gk-SECRET7")
				r := send(t, mustNew(t, play(fail(err)), o), req)
				var e *Error
				if !errors.As(r.err, &e) || !errors.Is(r.err, err) {
					t.Fatalf("%s: %v", name, r.err)
				}
				for _, text := range []string{r.err.Error(), fmt.Sprintf("%v %+v %s %q", r.err, r.err, r.err, r.err)} {
					for _, secret := range []string{"SECRET", "pa55word"} {
						if strings.Contains(text, secret) {
							t.Errorf("%s: %s", name, text)
						}
					}
				}
			}
		}
	})
}

// Many programs' transports carry a key by value.
// Report: vllm-project/semantic-router#2132, BerriAI/litellm#22424
// Report: ls1intum/edutelligence#358, infinigence/octollm#93
func TestATransportKeepsItsBasesKey(t *testing.T) {
	tr := mustNew(t, struct {
		http.RoundTripper
		key string
	}{key: "SECRET"}, Options{})
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "t", tr)
	if text := fmt.Sprintf("%v %+v %#v %s %s", tr, tr, tr, tr, log.String()); strings.Contains(text, "SECRET") {
		t.Error(text)
	}
}

func TestErrorSaysWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		oneShot := func(r *http.Request) { r.GetBody = nil }
		same := func(*http.Request) {}
		for want, c := range map[string]struct {
			o    Options
			a    answerFunc
			edit func(*http.Request)
			ctx  time.Duration
		}{
			"retry: 3 attempts: read tcp: connection reset by peer; no attempts left, raise Options.Attempts or call again later":                                                                {Options{}, fail(errReset), same, 0},
			"retry: 1 attempt: read tcp: connection reset by peer; not tried again because the body can be sent only once: set Request.GetBody or Options.MaxBuffer":                             {Options{}, fail(errReset), oneShot, 0},
			"retry: 1 attempt: read tcp: connection reset by peer; not tried again because the request may have arrived: set an Idempotency-Key, or clear Options.IdempotentOnly if that is set": {Options{IdempotentOnly: true}, fail(errReset), same, 0},
			"retry: 1 attempt: read tcp: connection reset by peer; not tried again because the wait would outlast the context's deadline":                                                        {Options{}, fail(errReset), same, time.Millisecond},
			"retry: 1 attempt: read tcp: connection reset by peer; not tried again because the wait would outlast Options.MaxElapsed":                                                            {Options{MaxElapsed: 1}, fail(errReset), same, 0},
			"retry: 1 attempt: full; before that: read tcp: connection reset by peer; the next attempt was not admitted":                                                                         {Options{Admit: func(context.Context, Event) error { return errors.New("full") }}, fail(errReset), same, 0},
			"retry: 1 attempt, last status 503: context deadline exceeded; it was waiting 1s to try again; the response is in Error.Status, Header and Body":                                     {Options{MinBackoff: time.Second, MaxBackoff: time.Second, Admit: func(ctx context.Context, _ Event) error { <-ctx.Done(); return ctx.Err() }}, answer(503, "x"), same, time.Minute},
			"retry: 1 attempt: context deadline exceeded; before that: read tcp: connection reset by peer; it was waiting 1s to try again":                                                       {Options{MinBackoff: time.Second, MaxBackoff: time.Second, Admit: func(ctx context.Context, _ Event) error { <-ctx.Done(); return nil }}, fail(errReset), same, time.Minute},
		} {
			ctx, cancel := t.Context(), func() {}
			if c.ctx > 0 {
				ctx, cancel = context.WithTimeout(ctx, c.ctx)
			}
			req := post(ctx, t, chat)
			c.edit(req)
			r := send(t, mustNew(t, play(c.a), c.o), req)
			if r.err == nil || r.err.Error() != want {
				t.Errorf("got  %v\nwant %s", r.err, want)
			}
			cancel()
		}
	})
}

// An attempt that was the only one, by choice or by nature, fails as the base does.
func TestFirstErrorsAreTheBases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			o   Options
			err error
		}{
			{Options{Attempts: 1}, errReset},
			{Options{}, http.ErrSchemeMismatch},
			{Options{}, context.Canceled},
		} {
			if r := send(t, mustNew(t, play(fail(c.err)), c.o), post(t.Context(), t, chat)); r.err != c.err {
				t.Errorf("%v became %v", c.err, r.err)
			}
		}
	})
}

func TestErrorOfTheZeroValue(t *testing.T) {
	e := new(Error)
	if e.Error() == "" || e.Timeout() || len(e.Unwrap()) != 0 {
		t.Errorf("%v", e)
	}
	e = &Error{Attempts: 2, Err: &url.Error{Op: "Get", URL: "http://h/?k=SECRET", Err: errReset}}
	if strings.Contains(e.Error(), "SECRET") {
		t.Error(e)
	}
}

func FuzzRedact(f *testing.F) {
	for _, s := range []string{
		"", "plain", "http://h", `Get "https://u:p@h/x?key=K#f": EOF`, "a://b://c?d", "://", "x://@?", "http://h/p@q?r http://u@h",
		"http://a?b://c@d", "socks5://u:p@h:1", "://://@", "https://gw/http://u:p@h/?k=v",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := redact(s)
		if redact(got) != got {
			t.Errorf("%q becomes %q, then %q", s, got, redact(got))
		}
		if !strings.Contains(s, "://") && got != s {
			t.Errorf("%q has no URL and becomes %q", s, got)
		}
		// No URL of the result has a user or a query of its own.
		for rest := got; ; {
			_, after, ok := strings.Cut(rest, "://")
			if !ok {
				break
			}
			rest = after
			if j := strings.Index(after, "://"); j >= 0 {
				after = after[:j] // the next one's turn
			}
			end := strings.IndexAny(after, " \t\r\n\"'<>`")
			if end < 0 {
				end = len(after)
			}
			u := after[:end]
			if host, _, _ := strings.Cut(u, "/"); strings.Contains(host, "@") {
				t.Errorf("%q keeps a user: %q", s, got)
			}
			if _, q, ok := strings.Cut(u, "?"); ok && q != "redacted" {
				t.Errorf("%q keeps a query: %q", s, got)
			}
		}
	})
}

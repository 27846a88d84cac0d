package retry

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// steps is a call as its engine sees it: what to do, in which order, is the
// engine's; what it means is the call's.
type steps interface {
	attempt()                    // send once; the outcome stays with the call
	judge() bool                 // shall it be sent again?
	pause() time.Duration        // how long to wait before that
	admit(context.Context) error // the wait is over; may it go?
}

// An engine repeats attempt, judge, pause, admit until judge says no (nil), the
// wait is cut by the context (its error) or admit refuses (its error).
//
// The first attempt has been made and judged when run is called: most calls
// need no second one, and so need no engine.
type engine interface {
	run(ctx context.Context, s steps) error
}

// library is the engine: the loop of go-retryablehttp, with its timer and its
// watch over the context.
//
// The library turns the crank and never touches the goods. What it carries
// through its loop is a blank request and a blank response; the real ones stay
// with the call. As a plain client it would read the body into memory, replace
// the caller's request, follow redirects, drain refused responses for as long as
// they trickle, flush the connection pool at each failure and turn the last
// response into an error. It cannot do to a blank what it would do to a call.
type library struct {
	client *retryablehttp.Client
}

func newLibrary() library {
	return library{&retryablehttp.Client{
		HTTPClient: &http.Client{Transport: crank{}},
		// The number of attempts is judge's business. The library looks at its own
		// limit only after CheckRetry, when the hooks have been told already.
		RetryMax: math.MaxInt,
		CheckRetry: func(ctx context.Context, _ *http.Response, _ error) (bool, error) {
			return turnOf(ctx).judge(), nil
		},
		Backoff: func(_, _ time.Duration, _ int, blank *http.Response) time.Duration {
			return turnOf(blank.Request.Context()).pause()
		},
		PrepareRetry: func(blank *http.Request) error {
			return turnOf(blank.Context()).admit(blank.Context())
		},
		ErrorHandler: func(_ *http.Response, err error, _ int) (*http.Response, error) {
			return nil, err
		},
	}}
}

func (l library) run(ctx context.Context, s steps) error {
	t := &turn{steps: s}
	blank := (&http.Request{Method: http.MethodGet, URL: nowhere, Header: http.Header{}}).
		WithContext(context.WithValue(ctx, turnKey{}, t))
	_, err := l.client.Do(&retryablehttp.Request{Request: blank}) // the response is a blank without a body
	return err
}

var nowhere = &url.URL{Scheme: "http", Host: "nowhere.invalid"}

// turn is one call in the library's loop. The library begins with an attempt and
// a judgement that have been made already; turn answers those from memory.
type turn struct {
	steps
	sent, judged bool
}

type turnKey struct{}

func turnOf(ctx context.Context) *turn { return ctx.Value(turnKey{}).(*turn) }

func (t *turn) judge() bool {
	if !t.judged {
		t.judged = true
		return true
	}
	return t.steps.judge()
}

// crank is the library's transport: one round trip is one attempt of the call.
// It has no CloseIdleConnections, so that the library cannot flush the pool.
type crank struct{}

func (crank) RoundTrip(blank *http.Request) (*http.Response, error) {
	t := turnOf(blank.Context())
	if t.sent {
		t.attempt()
	}
	t.sent = true
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: blank}, nil
}

package retry

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// steps is a call as its engine sees it. The engine decides the order of the
// steps, and the call does them.
type steps interface {
	attempt()                    // send once; the outcome stays with the call
	judge() bool                 // shall it be sent again?
	pause() time.Duration        // how long to wait before that
	admit(context.Context) error // the wait is over; may it go?
}

// An engine repeats attempt, judge, pause, admit. It stops if judge says no (nil),
// the context ends in the wait (its error), or admit refuses (its error).
//
// The first attempt has been made and judged when run is called. Most calls need
// no second attempt, and so no engine.
type engine interface {
	run(ctx context.Context, s steps) error
}

// library is the engine: go-retryablehttp runs the loop, with its timer and its
// watch over the context.
//
// Its loop gets a blank request and a blank response. The real ones stay with the
// call. As a plain client the library would change both (library_test.go shows
// each point on it):
//
//   - it reads the request body into memory and replaces the caller's request
//   - it follows redirects
//   - it drains refused responses for as long as they trickle
//   - it flushes the connection pool at each failure
//   - it turns the last response into an error
type library struct {
	client *retryablehttp.Client
}

func newLibrary() library {
	return library{&retryablehttp.Client{
		HTTPClient: &http.Client{Transport: roundTripper{}},
		// judge counts the attempts. The library compares its own limit only after
		// CheckRetry, when the hooks have been called already.
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

// roundTripper is the library's transport: one round trip is one attempt of the call.
// It has no CloseIdleConnections, so that the library cannot flush the pool.
type roundTripper struct{}

func (roundTripper) RoundTrip(blank *http.Request) (*http.Response, error) {
	t := turnOf(blank.Context())
	if t.sent {
		t.attempt()
	}
	t.sent = true
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: blank}, nil
}

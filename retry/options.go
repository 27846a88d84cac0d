package retry

import (
	"context"
	"fmt"
	"time"
)

// The values that zero stands for in [Options].
const (
	DefaultAttempts      = 3
	DefaultMinBackoff    = 500 * time.Millisecond
	DefaultMaxBackoff    = 8 * time.Second
	DefaultMaxRetryAfter = 60 * time.Second
)

// DefaultRateLimitFor is the RateLimitFor of package transport where neither the
// attempts nor RateLimitFor are set. In [Options] zero does not stand for it.
const DefaultRateLimitFor = 10 * time.Minute

// Options say how often, how long and for what a [Transport] tries again. They
// are copied by [New]. The zero value is ready for use. A negative number is an
// error of New, and so is a MinBackoff above MaxBackoff.
type Options struct {
	// Attempts is the number of times a call may go out, the first included.
	// 0 means DefaultAttempts; 1 means no retry.
	Attempts int

	// RateLimitFor bounds a call that is refused for its rate by time instead of
	// attempts, from its first such refusal on: it was too fast, nothing failed, and
	// it can go when there is room. Such refusals then do not count as attempts. A 429
	// without a word about a rate is one of them if other calls are answered. Other
	// failures keep theirs, and a call with one attempt has only that. So have the calls
	// of a [WithAttempts] context, and those that make a lasting thing: refusals count
	// among their attempts. 0 means that they count.
	RateLimitFor time.Duration

	// MinBackoff and MaxBackoff bound the wait when the server orders none.
	// 0 means DefaultMinBackoff and DefaultMaxBackoff.
	MinBackoff, MaxBackoff time.Duration

	// MaxRetryAfter is the longest wait ordered by the server that is slept. When the
	// order is longer, the response is returned at once. 0 means DefaultMaxRetryAfter.
	MaxRetryAfter time.Duration

	// MaxElapsed bounds a call from its start: no attempt after the first begins
	// later than that. It does not cut an attempt that is running. 0 means no
	// bound but the context's.
	MaxElapsed time.Duration

	// MaxBuffer, in bytes, is the largest body without a GetBody that is read
	// into memory so that it can be sent again. A larger one is streamed, and the
	// call has one attempt. 0 means that no body is ever buffered.
	MaxBuffer int64

	// IdempotentOnly limits what is tried again after a connection that broke
	// when the request may already have reached the server. When set, only GET,
	// HEAD, OPTIONS, TRACE, PUT, DELETE and requests with an Idempotency-Key
	// header are. The zero value tries every method again, as openai-go and
	// anthropic-sdk-go do: a model call changes nothing on the server, but it
	// costs tokens a second time, which is why each attempt is announced to the
	// hooks. Connections that were never made, and responses, are not concerned.
	IdempotentOnly bool

	// Unbudgeted gives every call all its attempts. The zero value bounds the further
	// attempts of all calls together: a server that fails everything gets 50 further
	// requests, and then one in two seconds. See the package comment.
	Unbudgeted bool

	// IgnoreBodyWait stops waits from being read out of error bodies ("try again
	// in 20s"). The zero value honours them, as several providers send the wait
	// nowhere else.
	IgnoreBodyWait bool

	// Refused is called for every attempt that the server refused, final or not,
	// once its header and the beginning of its body were read: a 429, 503 or 529,
	// and any other status of 400 or more whose header names a wait. Event.Wait is
	// the wait before the next attempt, 0 if there is none. It comes before
	// Deciding. If it is nil, the body of a final refusal is not read.
	Refused func(Event)

	// Deciding is called when another attempt has been decided, before the wait.
	Deciding func(Event)

	// Admit is called after the wait, before the attempt leaves. It may block and
	// should return when the context ends. An error ends the call: the caller gets
	// the last response as it is. If the last attempt had no response, the caller
	// gets an error that matches both this one and the attempt's own.
	Admit func(context.Context, Event) error

	// Done is called once at the end of every call, before RoundTrip returns. The
	// body of its Event.Response is empty, as the real one is the caller's.
	Done func(Event)
}

// withDefaults returns o with every unset field filled in.
func (o Options) withDefaults() (Options, error) {
	for _, f := range []struct {
		name  string
		value any
		below bool // zero
	}{
		{"Attempts", o.Attempts, o.Attempts < 0},
		{"MinBackoff", o.MinBackoff, o.MinBackoff < 0},
		{"MaxBackoff", o.MaxBackoff, o.MaxBackoff < 0},
		{"MaxRetryAfter", o.MaxRetryAfter, o.MaxRetryAfter < 0},
		{"MaxElapsed", o.MaxElapsed, o.MaxElapsed < 0},
		{"RateLimitFor", o.RateLimitFor, o.RateLimitFor < 0},
		{"MaxBuffer", o.MaxBuffer, o.MaxBuffer < 0},
	} {
		if f.below {
			return o, fmt.Errorf("retry: Options.%s is %v; it must be zero (unset) or more", f.name, f.value)
		}
	}
	if o.MinBackoff > 0 && o.MaxBackoff > 0 && o.MinBackoff > o.MaxBackoff {
		return o, fmt.Errorf("retry: Options.MinBackoff %v is above Options.MaxBackoff %v", o.MinBackoff, o.MaxBackoff)
	}
	if o.Attempts == 0 {
		o.Attempts = DefaultAttempts
	}
	// One bound set by hand moves the other one's default, so that the pair is
	// never contradictory without the caller's doing.
	switch {
	case o.MinBackoff == 0 && o.MaxBackoff == 0:
		o.MinBackoff, o.MaxBackoff = DefaultMinBackoff, DefaultMaxBackoff
	case o.MinBackoff == 0:
		o.MinBackoff = min(DefaultMinBackoff, o.MaxBackoff)
	case o.MaxBackoff == 0:
		o.MaxBackoff = max(DefaultMaxBackoff, o.MinBackoff)
	}
	if o.MaxRetryAfter == 0 {
		o.MaxRetryAfter = DefaultMaxRetryAfter
	}
	return o, nil
}

// perCall is what one context asks for. Both fields share a key, so that a call
// without any costs one look-up.
type perCall struct {
	attempts int // 0: the transport's own
	tally    *Tally
}

type perCallKey struct{}

func perCallFrom(ctx context.Context) perCall {
	p, _ := ctx.Value(perCallKey{}).(perCall)
	return p
}

// WithAttempts returns a context whose calls have n attempts instead of
// Options.Attempts, the first included. Refusals for the rate are among them, also
// with Options.RateLimitFor. n below 1 means the transport's own.
func WithAttempts(ctx context.Context, n int) context.Context {
	p := perCallFrom(ctx)
	p.attempts = max(n, 0)
	return context.WithValue(ctx, perCallKey{}, p)
}

// WithTally returns a context whose calls are counted in t.
func WithTally(ctx context.Context, t *Tally) context.Context {
	p := perCallFrom(ctx)
	p.tally = t
	return context.WithValue(ctx, perCallKey{}, p)
}

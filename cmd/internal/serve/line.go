package serve

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// MaxWaitHeader is the request field that says how long a client can wait in
// the line: seconds, or a time such as 90s. It is not passed on.
const MaxWaitHeader = "X-Tripmeter-Max-Wait"

// PriorityHeader is the request field with which a client lets others go first:
// "batch". It is not passed on.
const PriorityHeader = "X-Tripmeter-Priority"

// bearable is how long a client can wait by its header; ok is false if it does
// not say. The official SDKs state their own time-out in seconds.
func bearable(h http.Header) (d time.Duration, ok bool) {
	for _, name := range []string{MaxWaitHeader, "X-Stainless-Timeout", "X-Stainless-Read-Timeout"} {
		v := strings.TrimSpace(h.Get(name))
		if v == "" {
			continue
		}
		var x time.Duration
		if s, err := strconv.ParseFloat(v, 64); err == nil && s >= 0 && s < 1e9 {
			x = time.Duration(s * float64(time.Second))
		} else if x, err = time.ParseDuration(v); err != nil || x < 0 {
			continue
		}
		if !ok || x < d {
			d, ok = x, true
		}
	}
	return d, ok
}

// inLine is a context that has a deadline until the call leaves the line, and
// none after that: an answer may take as long as it takes.
type inLine struct {
	context.Context // the client's

	mu       sync.Mutex // guards below
	deadline time.Time  // zero: it has left the line
	err      error
	done     chan struct{}
	timer    *time.Timer
	stop     func() bool // stops watching the client's context
}

// waitFor makes a context for a call that may wait d. The caller calls leave when
// the call is over.
func waitFor(parent context.Context, d time.Duration) (ctx *inLine, leave func()) {
	c := &inLine{Context: parent, deadline: time.Now().Add(d), done: make(chan struct{})}
	c.timer = time.AfterFunc(d, func() { c.end(context.DeadlineExceeded, true) })
	c.stop = context.AfterFunc(parent, func() { c.end(parent.Err(), false) })
	return c, func() { c.granted(); c.stop(); c.end(context.Canceled, false) }
}

func (c *inLine) end(err error, waiting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || waiting && c.deadline.IsZero() {
		return
	}
	c.err = err
	close(c.done)
}

// granted takes the deadline away.
func (c *inLine) granted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = time.Time{}
	c.timer.Stop()
}

// Deadline is that of the line, while the call is there, or the client's.
func (c *inLine) Deadline() (time.Time, bool) {
	c.mu.Lock()
	mine := c.deadline
	c.mu.Unlock()
	theirs, ok := c.Context.Deadline()
	if mine.IsZero() || ok && theirs.Before(mine) {
		return theirs, ok
	}
	return mine, true
}

// Done is closed when the client has left, the line took too long, or the call
// is over.
func (c *inLine) Done() <-chan struct{} { return c.done }

func (c *inLine) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

type lineKey struct{}

// Value finds the context itself for the hook that is called when it leaves the
// line.
func (c *inLine) Value(key any) any {
	if _, ok := key.(lineKey); ok {
		return c
	}
	return c.Context.Value(key)
}

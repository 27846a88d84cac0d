// Package record writes down a run, so that it can be looked at afterwards: which
// attempts went out, which were refused, how long calls took, what they cost.
//
//	r := record.New(file)
//	rt, err := transport.New(transport.Options{Base: r.Wire(base), Trace: r.Trace()})
//	client := &http.Client{Transport: r.Calls(rt)}
//
// [Recorder.Wire] sees the attempts, [Recorder.Calls] the calls as the program
// sees them, [Recorder.Trace] what tripmeter decided. The first two work around
// any client, so that a run without tripmeter can be recorded too. [Read] reads a
// recording, [Draw] draws one or two of them as a picture.
//
// # The promise
//
// A recording has instants, lengths, counts and statuses. It has no key, no URL,
// no header and nothing of a body. Requests and responses pass unchanged.
package record

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
	"github.com/tripmeter/tripmeter/usage"
)

// An Event is one line of a recording.
type Event struct {
	At   time.Duration `json:"t"`              // since the recording began, ns
	Kind string        `json:"kind"`           // see the constants
	Call int64         `json:"call,omitempty"` // which call, from 1; 0 is unknown

	Status  int           `json:"status,omitempty"` // of Answer and Return; 0: no response
	Took    time.Duration `json:"took,omitempty"`   // Answer: of the attempt to its header; Return: of the call; Grant: the wait; Pause: its length
	Input   int64         `json:"input,omitempty"`  // tokens: Usage as reported, Grant as estimated
	Output  int64         `json:"output,omitempty"`
	Text    string        `json:"text,omitempty"`    // Refuse: the error; Limit: its name; Pause: why
	By      string        `json:"by,omitempty"`      // Pause: who asked for it
	Scope   string        `json:"scope,omitempty"`   // Pause: whom it holds; empty is everybody
	Until   time.Duration `json:"until,omitempty"`   // Pause: its end, since the recording began, ns
	PerUnit int64         `json:"perUnit,omitempty"` // Limit: units in its window
}

// The kinds of events.
const (
	Send   = "send"   // an attempt leaves
	Answer = "answer" // its header came, or it failed
	Usage  = "usage"  // its body ended and reported what it cost
	Start  = "start"  // the program calls
	Return = "return" // it has the header, or an error
	Grant  = "grant"  // the limiter admitted a call
	Refuse = "refuse" // the limiter refused one
	Pause  = "pause"  // nothing of Scope leaves for Took
	Limit  = "limit"  // a limit changed
)

// A Recorder writes a recording. It may be used by any number of goroutines.
type Recorder struct {
	start time.Time
	calls atomic.Int64

	mu  sync.Mutex // guards below
	w   *bufio.Writer
	err error
}

// New returns a Recorder that writes JSON to w, an event a line. Call Close at
// the end.
func New(w io.Writer) *Recorder {
	return &Recorder{start: time.Now(), w: bufio.NewWriter(w)}
}

// Close writes out what is held back and returns the first error of writing.
// Events after it are lost. It does not close the writer.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = r.w.Flush()
	}
	err := r.err
	if err == nil {
		r.err = errClosed
	}
	return err
}

var errClosed = fmt.Errorf("record: closed")

func (r *Recorder) write(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	e.At = time.Since(r.start) // behind the lock, so lines are in order
	if e.Kind == Pause {
		e.Until = e.At + e.Took
	}
	b, err := json.Marshal(e)
	if err == nil {
		_, err = r.w.Write(append(b, '\n'))
	}
	r.err = err
}

type callKey struct{}

func callOf(ctx context.Context) int64 {
	n, _ := ctx.Value(callKey{}).(int64)
	return n
}

type roundTripper struct {
	trip func(*http.Request) (*http.Response, error)
	next http.RoundTripper
}

func (r *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r.trip(req) }

// CloseIdleConnections closes the idle connections of the next, if it can.
func (r *roundTripper) CloseIdleConnections() {
	if c, ok := r.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Calls records the calls that a program makes through next, which may try them
// several times.
func (r *Recorder) Calls(next http.RoundTripper) http.RoundTripper {
	return &roundTripper{func(req *http.Request) (*http.Response, error) {
		n := r.calls.Add(1)
		began := time.Now()
		r.write(Event{Kind: Start, Call: n})
		out := req.WithContext(context.WithValue(req.Context(), callKey{}, n))
		resp, err := next.RoundTrip(out)
		e := Event{Kind: Return, Call: n, Took: time.Since(began)}
		if err == nil {
			e.Status = resp.StatusCode
			if resp.Request == out {
				resp.Request = req
			}
		}
		r.write(e)
		return resp, err
	}, next}
}

// Wire records the attempts that base sends.
func (r *Recorder) Wire(base http.RoundTripper) http.RoundTripper {
	return &roundTripper{func(req *http.Request) (*http.Response, error) {
		n := callOf(req.Context())
		began := time.Now()
		r.write(Event{Kind: Send, Call: n})
		resp, err := base.RoundTrip(req)
		e := Event{Kind: Answer, Call: n, Took: time.Since(began)}
		if err != nil {
			r.write(e)
			return resp, err
		}
		e.Status = resp.StatusCode
		r.write(e)
		if resp.StatusCode/100 == 2 && resp.Body != nil {
			resp.Body = &body{ReadCloser: resp.Body, r: r, call: n, m: usage.NewMeter(resp.Header.Get("Content-Type"), resp.Header.Get("Content-Encoding"))}
		}
		return resp, nil
	}, base}
}

// body reads the usage as the bytes pass.
type body struct {
	io.ReadCloser
	r    *Recorder
	call int64

	mu   sync.Mutex // Close may come while Read runs
	m    *usage.Meter
	done bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	if !b.done {
		b.m.Write(p[:n])
	}
	b.mu.Unlock()
	if err != nil {
		b.end()
	}
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

func (b *body) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return
	}
	b.done = true
	if u := b.m.Close(); u.Found {
		b.r.write(Event{Kind: Usage, Call: b.call, Input: u.Input.N, Output: u.Output.N})
	}
}

// Trace records what a Transport decides.
func (r *Recorder) Trace() transport.Trace {
	return transport.Trace{
		Granted: func(req *http.Request, c limit.Cost, wait time.Duration) {
			r.write(Event{Kind: Grant, Call: callOf(req.Context()), Took: wait, Input: c.Input, Output: c.Output})
		},
		Refused: func(req *http.Request, err error) {
			r.write(Event{Kind: Refuse, Call: callOf(req.Context()), Text: err.Error()})
		},
		Paused: func(req *http.Request, p limit.Pause) {
			r.write(Event{Kind: Pause, Call: callOf(req.Context()), Took: p.For, By: p.By, Scope: p.Scope, Text: p.Why})
		},
		LimitChanged: func(old, now limit.Limit) {
			if old.Rate != now.Rate {
				r.write(Event{Kind: Limit, Text: now.Name, PerUnit: now.Rate.N, Took: now.Rate.Window})
			}
		},
	}
}

// ReadFile reads the recording in a file, as [Read] does. Its errors begin with the
// name of the file.
func ReadFile(name string) ([]Event, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	events, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return events, nil
}

// Read reads a recording. A last line that is cut is left out, as a program may
// have ended in the middle of it.
func Read(r io.Reader) ([]Event, error) {
	var out []Event
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("record: line %d is no event: %w", n, err)
		}
		if e.Kind == "" || e.At < 0 {
			return nil, fmt.Errorf("record: line %d is no event", n)
		}
		out = append(out, e)
	}
}

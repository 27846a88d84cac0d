package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

// ahead is how many requests stand in the limiter's line at once. The line is
// fair, so a few are enough to keep it moving, and the rest of the file stays
// on disk.
const ahead = 64

// maxAnswer bounds an answer that is kept, in bytes.
const maxAnswer = 256 << 20

// job sends the requests of a file.
type job struct {
	config
	client   *http.Client
	requests io.Reader
	answers  *answers
	done     map[string]bool // custom_ids that have their line
	progress *progress

	mu      sync.Mutex
	waiting map[*sending]bool // not yet admitted
	halted  bool              // nothing more is to be admitted
}

// sending is one request on its way. It is carried in its context, so that the
// transport's hooks find it.
type sending struct {
	cancel context.CancelFunc
	turn   func() // gives its place in the line to the next
}

type sendingKey struct{}

// run sends everything that has no line yet. It reports whether it came to the
// end of the file: not if it was stopped.
func (j *job) run(ctx context.Context, stop <-chan os.Signal) (finished bool, err error) {
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	j.waiting = map[*sending]bool{}
	j.progress.granted = j.admitted
	halt := make(chan struct{})
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-stop:
			j.progress.say("finishing what is under way; once more stops at once")
		case <-j.progress.held:
			j.progress.say("the provider orders a wait above -max-wait; finishing what is under way")
		case <-over:
			return
		}
		close(halt)
		j.halt()
		select {
		case <-stop:
			abort()
		case <-over:
		}
	}()

	room := make(chan struct{}, ahead)
	var under sync.WaitGroup
	defer under.Wait()
	in := newLines(j.requests)
	seen := map[string]bool{}
	for n := 1; ; n++ {
		line, long, readErr := in.next()
		if len(bytes.TrimSpace(line)) > 0 {
			r, err := read(line, long)
			switch {
			case err == nil && seen[r.CustomID]:
				err = fmt.Errorf("custom_id %q was there before", r.CustomID)
				fallthrough
			case err != nil:
				j.progress.bad(n, err)
			case j.done[r.CustomID]:
				seen[r.CustomID] = true
				j.progress.skipped()
			default:
				seen[r.CustomID] = true
				select {
				case room <- struct{}{}:
				case <-halt:
					under.Wait()
					return false, nil
				}
				under.Go(func() { j.send(ctx, n, r, room) })
			}
		}
		if readErr == io.EOF {
			under.Wait()
			return !j.stopped(), j.answers.err
		}
		if readErr != nil {
			return false, readErr
		}
		if j.failed() {
			return false, j.answers.err
		}
	}
}

func read(line []byte, long bool) (request, error) {
	var r request
	if long {
		return r, fmt.Errorf("longer than %d bytes", maxLine)
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("not JSON of the Batch format: %w", err)
	}
	if err := r.check(); err != nil {
		return r, err
	}
	return r, nil
}

// halt lets go of everything that has not been admitted.
func (j *job) halt() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.halted = true
	for s := range j.waiting {
		s.cancel()
	}
}

func (j *job) stopped() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.halted
}

func (j *job) failed() bool {
	j.answers.mu.Lock()
	defer j.answers.mu.Unlock()
	return j.answers.err != nil
}

// admitted is told by the transport that a request left the line.
func (j *job) admitted(r *http.Request) {
	s, _ := r.Context().Value(sendingKey{}).(*sending)
	j.mu.Lock()
	delete(j.waiting, s)
	j.mu.Unlock()
	s.turn()
}

// send sends one request and writes its line. One that was stopped before it
// had an answer gets none: the next run sends it.
func (j *job) send(ctx context.Context, n int, r request, room <-chan struct{}) {
	var once sync.Once
	s := &sending{turn: func() { once.Do(func() { <-room }) }}
	defer s.turn()
	ctx, s.cancel = context.WithCancel(context.WithValue(ctx, sendingKey{}, s))
	defer s.cancel()
	j.mu.Lock()
	if j.halted {
		j.mu.Unlock()
		return
	}
	j.waiting[s] = true
	j.mu.Unlock()
	defer func() {
		j.mu.Lock()
		delete(j.waiting, s)
		j.mu.Unlock()
	}()

	a := answer{ID: fmt.Sprintf("batch_req_%d", n), CustomID: r.CustomID}
	resp, err := j.exchange(ctx, r)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		a.Error = describe(err)
	} else {
		a.Response = resp
	}
	j.progress.answered(a)
	if j.answers.write(a) != nil {
		j.halt()
	}
}

func (j *job) exchange(ctx context.Context, r request) (*response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, join(j.baseURL, r.URL), bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if j.key != "" {
		req.Header.Set("Authorization", "Bearer "+j.key)
		switch j.provider {
		case "anthropic":
			req.Header.Set("X-Api-Key", j.key)
			req.Header.Set("Anthropic-Version", "2023-06-01")
		case "azure":
			req.Header.Set("Api-Key", j.key)
		}
	}
	resp, err := j.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("the answer broke off: %w", err)
	}
	if !json.Valid(body) { // a stream, an error page: kept as text
		body, _ = json.Marshal(string(body))
	}
	return &response{StatusCode: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id"), Body: body}, nil
}

// join puts a request's path behind the base, which may end in the /v1 that
// the path begins with.
func join(base, path string) string {
	base = strings.TrimSuffix(base, "/")
	if v := "/v1"; strings.HasSuffix(base, v) && (path == v || strings.HasPrefix(path, v+"/")) {
		base = strings.TrimSuffix(base, v)
	}
	return base + path
}

// describe makes the error of a line. http.Client's own wrapping is left out,
// as it repeats the URL.
func describe(err error) *failure {
	f := &failure{Code: "request_failed"}
	var refused *transport.Error
	switch {
	case errors.Is(err, limit.ErrTooLarge):
		f.Code = "too_large_for_limit"
	case errors.As(err, &refused):
		f.Code = "not_sent"
	}
	for {
		inner, ok := err.(interface{ Timeout() bool })
		if !ok {
			break
		}
		u, ok := inner.(interface{ Unwrap() error })
		if !ok || u.Unwrap() == nil {
			break
		}
		err = u.Unwrap()
	}
	f.Message = err.Error()
	return f
}

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// ahead is how many requests stand in the limiter's line at once. The line is
// fair, so a few are enough to keep it moving, and the rest of the file stays
// on disk.
const ahead = 64

// maxAnswer bounds an answer that is kept, in bytes. A longer one is an error.
const maxAnswer = 256 << 20

// job sends the requests of a file.
type job struct {
	config
	client   *http.Client
	requests io.Reader
	answers  *answers
	done     map[string]bool // custom_ids that have their line
	progress *progress
	stop     func() // ends the job when what is under way has ended

	mu      sync.Mutex
	waiting map[*sending]bool // not yet admitted
	halted  bool              // nothing more is to be admitted
	left    int               // requests that were read and got no line
}

// sending is one request on its way. It is carried in its context, so that the
// transport's hooks find it.
type sending struct {
	cancel context.CancelFunc
	queued func()       // lets the next request step up behind it
	turn   func()       // gives its place in the line to the next
	wire   atomic.Int64 // attempts on the wire
}

type sendingKey struct{}

func sendingOf(r *http.Request) *sending {
	s, _ := r.Context().Value(sendingKey{}).(*sending)
	return s
}

// run sends everything that has no line yet. It reports whether it came to the
// end of the file, and every request of it has its line.
func (j *job) run(ctx context.Context, stop <-chan os.Signal) (finished bool, err error) {
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	j.waiting = map[*sending]bool{}
	j.progress.granted = j.admitted
	halt := make(chan struct{})
	j.stop = sync.OnceFunc(func() { close(halt); j.halt() })
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-stop:
			j.progress.halting("finishing what is under way; once more stops at once")
		case <-j.progress.held:
			j.progress.halting("the provider orders a wait above -max-wait; finishing what is under way")
		case <-over:
			return
		}
		j.stop()
		select {
		case <-stop:
			abort()
		case <-over:
		}
	}()

	room := make(chan struct{}, ahead)
	var under sync.WaitGroup
	defer under.Wait()
	// With no limit set, limits are learned from the first answer. Until it is
	// there, one request a second leaves, as nothing else would hold them.
	blind := j.rpm|j.tpm|j.itpm|j.otpm == 0
	items := make(chan item)
	go j.read(items, over)
	for {
		var next item
		select {
		case next = <-items:
		case <-halt: // also while standard input says nothing
			return false, j.answers.failed()
		}
		switch {
		case next.bad != nil:
			j.progress.bad(next.line, next.bad)
		case next.skip:
			j.progress.skipped()
		case next.end != nil:
			under.Wait()
			if next.end != io.EOF {
				return false, next.end
			}
			return j.left == 0, j.answers.failed()
		default:
			select {
			case room <- struct{}{}:
			case <-halt:
				return false, j.answers.failed()
			}
			// The next one is not begun before this one is at the line, so that
			// they stand in the order of the file.
			queued := make(chan struct{})
			s := &sending{
				queued: sync.OnceFunc(func() { close(queued) }),
				turn:   sync.OnceFunc(func() { <-room }),
			}
			under.Go(func() { j.send(ctx, s, next) })
			<-queued
			if blind {
				select {
				case <-j.progress.heard:
					blind = false
				case <-time.After(time.Second):
				case <-halt:
				}
			}
		}
		if err := j.answers.failed(); err != nil {
			return false, err
		}
	}
}

// item is a line of the input: a request, one that has its answer, a bad line,
// or the end.
type item struct {
	line    int
	request request
	skip    bool
	bad     error
	end     error // io.EOF, or why no more can be read
}

// read reads the input, on a goroutine of its own since standard input may
// never say anything.
func (j *job) read(items chan<- item, over <-chan struct{}) {
	in := newLines(j.requests)
	seen := map[string]bool{}
	for n := 1; ; n++ {
		line, long, err := in.next()
		if len(bytes.TrimSpace(line)) > 0 && (err == nil || err == io.EOF) {
			it := item{line: n}
			it.request, it.bad = read(line, long)
			if id := it.request.CustomID; it.bad == nil {
				if seen[id] {
					it.bad = fmt.Errorf("custom_id %q was there before", id)
				}
				seen[id], it.skip = true, j.done[id]
			}
			select {
			case items <- it:
			case <-over:
				return
			}
		}
		if err != nil {
			select {
			case items <- item{line: n, end: err}:
			case <-over:
			}
			return
		}
	}
}

func read(line []byte, long bool) (request, error) {
	var r request
	if long {
		return r, fmt.Errorf("longer than %d bytes", maxLine)
	}
	err := json.Unmarshal(line, &r)
	var other *json.UnmarshalTypeError
	switch {
	case errors.As(err, &other) && other.Field == "":
		return r, fmt.Errorf("must be an object, not a JSON %s", other.Value)
	case errors.As(err, &other):
		return r, fmt.Errorf("%s must be a string, not a JSON %s", other.Field, other.Value)
	case err != nil:
		return r, fmt.Errorf("not JSON: %w", err)
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

// admitted is told by the transport that a request left the line.
func (j *job) admitted(r *http.Request) {
	s := sendingOf(r)
	j.mu.Lock()
	delete(j.waiting, s)
	j.mu.Unlock()
	s.turn()
}

// step puts a request among those that wait, unless the job was halted.
func (j *job) step(s *sending) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.halted {
		j.waiting[s] = true
	}
	return !j.halted
}

// send sends one request and writes its line. One that was stopped before it
// had an answer gets none: the next run sends it.
func (j *job) send(ctx context.Context, s *sending, it item) {
	defer s.turn()
	defer s.queued()
	ctx, s.cancel = context.WithCancel(context.WithValue(ctx, sendingKey{}, s))
	defer s.cancel()
	defer func() {
		j.mu.Lock()
		delete(j.waiting, s)
		j.mu.Unlock()
	}()

	a := answer{ID: fmt.Sprintf("batch_req_%d", it.line), CustomID: it.request.CustomID}
	var err error
	a.Response, err = j.exchange(ctx, s, it.request)
	switch {
	case err != nil && ctx.Err() != nil, errors.Is(err, errHalted):
		j.mu.Lock()
		j.left++
		j.mu.Unlock()
		return
	case err != nil:
		a.Error = describe(err)
	}
	j.progress.answered(a)
	if j.answers.write(a) != nil {
		j.stop()
	}
}

var (
	errHalted = errors.New("halted")
	errBroken = errors.New("the answer broke off")
)

// exchange gets the answer to a request. The transport tries again until an
// answer begins; one that then breaks off is tried again here, as nobody below
// can know that it is wanted whole.
func (j *job) exchange(ctx context.Context, s *sending, r request) (*response, error) {
	for wait := retry.DefaultMinBackoff; ; wait = min(2*wait, retry.DefaultMaxBackoff) {
		if !j.step(s) {
			return nil, errHalted
		}
		left := j.attempts - int(s.wire.Load())
		resp, err := j.once(retry.WithAttempts(ctx, left), r)
		if !errors.Is(err, errBroken) || ctx.Err() != nil || int(s.wire.Load()) >= j.attempts {
			return resp, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (j *job) once(ctx context.Context, r request) (*response, error) {
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
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errBroken, err)
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	return &response{StatusCode: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id"), Body: asJSON(body)}, nil
}

// asJSON is a body as a JSON value: itself; or a string, of a stream or an
// error page; or a data URL, of what is no text.
func asJSON(body []byte) json.RawMessage {
	if utf8.Valid(body) && json.Valid(body) {
		return body
	}
	text := string(body)
	if !utf8.Valid(body) {
		text = "data:application/octet-stream;base64," + base64.StdEncoding.EncodeToString(body)
	}
	return encode(text)
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
// as it repeats the URL, whose query may hold a key.
func describe(err error) *failure {
	f := &failure{Code: "request_failed"}
	var refused *transport.Error
	switch {
	case errors.Is(err, limit.ErrTooLarge):
		f.Code = "too_large_for_limit"
	case errors.As(err, &refused):
		f.Code = "not_sent"
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	f.Message = err.Error()
	return f
}

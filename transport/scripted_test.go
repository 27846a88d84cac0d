package transport_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A reply is one answer of a scripted provider.
type reply struct {
	status int
	header map[string]string
	body   string
}

// ok is an answer that costs what it was priced at.
const ok = `{"usage":{}}`

// quota is a good answer that says what is left of the tokens. An empty field
// is not sent.
func quota(limit, remaining, reset string) reply {
	r := reply{200, map[string]string{}, ok}
	for k, v := range map[string]string{"limit": limit, "remaining": remaining, "reset": reset} {
		if v != "" {
			r.header["x-ratelimit-"+k+"-tokens"] = v
		}
	}
	return r
}

// with adds fields, as name, value, name, value.
func (r reply) with(fields ...string) reply {
	h := map[string]string{}
	for k, v := range r.header {
		h[k] = v
	}
	for i := 0; i+1 < len(fields); i += 2 {
		h[fields[i]] = fields[i+1]
	}
	r.header = h
	return r
}

// scripted answers the first call with answer and all others with then (with
// answer too, if then is not set), or whatever pick says. It notes when each
// call came.
type scripted struct {
	answer, then reply
	pick         func(n int, req *http.Request) reply // n from 1
	delay        func(n int) time.Duration

	mu sync.Mutex
	at []time.Time
}

func (s *scripted) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		io.Copy(io.Discard, req.Body)
		req.Body.Close()
	}
	s.mu.Lock()
	s.at = append(s.at, time.Now())
	n := len(s.at)
	s.mu.Unlock()
	r := s.answer
	if n > 1 && s.then.status != 0 {
		r = s.then
	}
	if s.pick != nil {
		r = s.pick(n, req)
	}
	if s.delay != nil {
		time.Sleep(s.delay(n))
	}
	h := http.Header{"Content-Type": {"application/json"}}
	for k, v := range r.header {
		h.Set(k, v)
	}
	return &http.Response{
		StatusCode: r.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(strings.NewReader(r.body)), ContentLength: int64(len(r.body)), Request: req,
	}, nil
}

// gap is the time between the first two calls.
func (s *scripted) gap() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.at) < 2 {
		return -1
	}
	return s.at[1].Sub(s.at[0])
}

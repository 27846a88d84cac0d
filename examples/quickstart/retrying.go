package main

import (
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// retrying is what most programs do today: try again after a refusal, with a
// growing wait, or the one that the server names.
type retrying struct {
	base http.RoundTripper
}

const attempts = 8

func (r *retrying) RoundTrip(req *http.Request) (*http.Response, error) {
	for n := 1; ; n++ {
		out := req.Clone(req.Context())
		if req.GetBody != nil {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			out.Body = body
		}
		resp, err := r.base.RoundTrip(out)
		if err != nil || resp.StatusCode != http.StatusTooManyRequests || n == attempts {
			return resp, err
		}
		wait := min(500*time.Millisecond<<(n-1), 8*time.Second)
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
			wait = time.Duration(s) * time.Second
		}
		wait += rand.N(wait/4 + 1)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		select {
		case <-time.After(wait):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
}

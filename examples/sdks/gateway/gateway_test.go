package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/limit"
)

// Each event reaches the client when it was sent: the server sends the next one
// only when the client has the last.
func TestStreamsAreNotHeld(t *testing.T) {
	const events = 20
	got := make(chan int)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+box.Key {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range events {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			select {
			case <-got:
			case <-r.Context().Done():
				return
			}
		}
	}))
	defer upstream.Close()
	proxy, err := gateway(upstream.URL, box.Key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(proxy)
	defer server.Close()
	resp, err := http.Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	seen := 0
	for lines.Scan() {
		if lines.Text() == fmt.Sprintf("data: %d", seen) {
			got <- seen
			seen++
		}
	}
	if seen != events || lines.Err() != nil {
		t.Fatalf("%d events of %d, %v", seen, events, lines.Err())
	}
}

// A refusal looks like a provider's, and names no key.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		wait   string
	}{
		{&limit.Error{Reason: limit.ErrTooLarge}, 413, ""},
		{&limit.Error{Reason: limit.ErrQueueFull, Wait: 1500 * time.Millisecond}, 429, "2"},
		{&limit.Error{Reason: limit.ErrWaitTooLong, Wait: time.Nanosecond}, 429, "1"},
		{&limit.Error{Reason: limit.ErrQueueFull}, 429, ""},
		{io.ErrUnexpectedEOF, 502, ""},
	} {
		w := httptest.NewRecorder()
		refuse(w, nil, fmt.Errorf("wrapped: %w", c.err))
		if w.Code != c.status || w.Header().Get("Retry-After") != c.wait {
			t.Errorf("%v: %d, Retry-After %q; want %d, %q", c.err, w.Code, w.Header().Get("Retry-After"), c.status, c.wait)
		}
	}
}

// The client may send any key: the provider gets the gateway's.
func TestKeyStaysInTheGateway(t *testing.T) {
	seen := make(chan http.Header, 1)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { seen <- r.Header }))
	defer upstream.Close()
	proxy, err := gateway(upstream.URL, box.Key)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/v1/models", nil)
	r.Header.Set("Authorization", "Bearer of the client")
	proxy.ServeHTTP(w, r)
	if got := (<-seen).Get("Authorization"); got != "Bearer "+box.Key || strings.Contains(fmt.Sprint(w.Header(), w.Body), box.Key) {
		t.Errorf("sent on: %d bytes that are not the gateway's key, or the answer holds it", len(got))
	}
}

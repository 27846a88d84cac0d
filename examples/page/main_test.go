package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// The stream has something to see, the page shows it, and the program ends when it is
// asked to, with the stream open. The stream is read first: a page that is asked for
// before the first call has no limit to show.
func TestPageOfARunningProgram(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error)
	r, w := io.Pipe()
	go func() { done <- run(ctx, l, 40, w) }()
	url, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url = strings.TrimSpace(url)
	events, err := http.Get(url + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	s := bufio.NewScanner(events.Body)
	s.Buffer(nil, 1<<20)
	for found := false; !found; {
		if !s.Scan() {
			t.Fatalf("the stream ended: %v", s.Err())
		}
		found = strings.Contains(s.Text(), "search") && strings.Contains(s.Text(), "wait")
	}
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 || !strings.Contains(string(page), "tokens per minute") {
		t.Fatalf("%d, %v: %s", resp.StatusCode, err, page)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

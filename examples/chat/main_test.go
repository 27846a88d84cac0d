package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func server(t *testing.T) *Server {
	t.Helper()
	p, err := provider()
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewServer(p.RoundTripper(), "http://api.example.com", "sk-shared")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Users get tokens by their plan, with any number of open chats; batch gets the
// floor; and nothing is held for users that have left.
func TestUsersShareTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server(t)
		var out bytes.Buffer
		play(&out, s, 5*time.Minute)
		t.Log(out.String())
		answers := func(user string) float64 {
			m := regexp.MustCompile(user + ` +(\d+)`).FindStringSubmatch(out.String())
			n, _ := strconv.Atoi(m[1])
			return float64(n)
		}
		ann, bob, eve, nightly := answers("ann"), answers("bob"), answers("paying-eve"), answers("nightly")
		if bob < ann*0.95 || bob > ann*1.05 || eve < ann*3.8 || eve > ann*4.2 {
			t.Errorf("ann %v, bob %v, eve %v", ann, bob, eve)
		}
		if share := nightly / (ann + bob + eve + nightly); share < 0.08 || share > 0.14 {
			t.Errorf("the batch got %.3f of the answers", share)
		}
		if n := s.rt.Snapshot(); n.InFlight != 0 || n.Waiting != 0 {
			t.Errorf("%d in flight, %d waiting", n.InFlight, n.Waiting)
		}
	})
}

// One chat: a stream, piece by piece, and no key in what is shown.
func TestOneChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server(t)
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "/chat", strings.NewReader(`{"message":"Name a colour."}`))
		r.Header.Set("X-User", "ann")
		s.ServeHTTP(w, r)
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") || !w.Flushed || !strings.Contains(w.Body.String(), "[DONE]") {
			t.Errorf("status %d, %v, %.200s", w.Code, w.Header(), w.Body)
		}
		w = httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/limits", nil))
		if text := w.Body.String(); !strings.Contains(text, "@ann") || strings.Contains(text, "sk-shared") {
			t.Error(text)
		}
		w = httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("POST", "/chat", strings.NewReader(`{}`)))
		if w.Code != http.StatusBadRequest {
			t.Errorf("status %d for no message", w.Code)
		}
	})
}

// Who cannot be served in time learns when to come back.
func TestALateChatIsToldWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server(t)
		ctx, stop := context.WithCancel(t.Context())
		for range 300 {
			go talk(ctx, s, "crowd", "")
		}
		synctest.Wait()
		full := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "/chat", strings.NewReader(`{"message":"Name a colour."}`))
		r.Header.Set("X-User", "crowd")
		s.ServeHTTP(full, r)
		if full.Code != http.StatusTooManyRequests || !strings.Contains(full.Body.String(), "line is full") {
			t.Errorf("status %d, %s", full.Code, full.Body)
		}
		stop()
		synctest.Wait()
	})
}

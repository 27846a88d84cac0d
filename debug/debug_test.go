package debug

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/meter"
)

func get(h http.Handler, method, path, from, host string, more http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.RemoteAddr, r.Host = from, host
	for k, v := range more {
		r.Header[k] = v
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestOnlyThisMachineMayLookByDefault(t *testing.T) {
	h := Handler(meter.New(meter.Options{}), Options{})
	for _, c := range []struct {
		from, host string
		header     http.Header
		want       int
	}{
		{"127.0.0.1:1", "localhost:80", nil, 200},
		{"127.0.0.1:1", "localhost", nil, 200},
		{"127.9.9.9:1", "127.0.0.1:6060", nil, 200},
		{"[::1]:1", "[::1]:6060", nil, 200},
		{"[::1]:1", "[::1]", nil, 200},
		{"192.0.2.1:1", "localhost", nil, 403},
		{"192.0.2.1:1", "192.0.2.1", nil, 403},
		{"127.0.0.1:1", "evil.example", nil, 403}, // a name that somebody points at this machine
		{"127.0.0.1:1", "localhost.evil.example:6060", nil, 403},
		{"127.0.0.1:1", "", nil, 403},
		{"", "localhost", nil, 403},
		{"127.0.0.1:1", "localhost", http.Header{"X-Forwarded-For": {"192.0.2.1"}}, 403},
		{"127.0.0.1:1", "localhost", http.Header{"Forwarded": {"for=192.0.2.1"}}, 403},
	} {
		for _, path := range []string{"/debug/tripmeter/", "/debug/tripmeter/state.json"} {
			if w := get(h, "GET", path, c.from, c.host, c.header); w.Code != c.want {
				t.Errorf("%s from %q for %q %v: %d, want %d", path, c.from, c.host, c.header, w.Code, c.want)
			} else if c.want == 403 && strings.Contains(w.Body.String(), "budgets") {
				t.Errorf("a refusal tells the state: %s", w.Body)
			}
		}
	}
}

func TestAuthorizeDecidesInstead(t *testing.T) {
	h := Handler(meter.New(meter.Options{}), Options{Authorize: func(r *http.Request) bool { return r.Header.Get("X-Team") == "us" }})
	if w := get(h, "GET", "/", "127.0.0.1:1", "localhost", nil); w.Code != 403 {
		t.Errorf("a request without X-Team: status %d, want 403", w.Code)
	}
	if w := get(h, "GET", "/", "192.0.2.1:1", "x.example", http.Header{"X-Team": {"us"}}); w.Code != 200 {
		t.Errorf("ours: %d", w.Code)
	}
}

func TestThePageOnlyReads(t *testing.T) {
	h := Handler(meter.New(meter.Options{}), Options{})
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		if w := get(h, method, "/", "127.0.0.1:1", "localhost", nil); w.Code != 405 || w.Header().Get("Allow") == "" {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
	if w := get(h, "GET", "/other", "127.0.0.1:1", "localhost", nil); w.Code != 404 {
		t.Errorf("another path: %d", w.Code)
	}
}

// Any tenant's name is shown as text, and a fresh nonce names the page's own
// script.
func TestNamesCannotBecomeMarkup(t *testing.T) {
	const evil = `<script>alert(1)</script><img src=x onerror=y>'"`
	m := meter.New(meter.Options{Tenant: func(*http.Request) string { return evil }})
	m.Trace(evil).Queued(&http.Request{}, limit.Cost{Requests: 1})
	h := Handler(m, Options{})
	w := get(h, "GET", "/", "127.0.0.1:1", "localhost", nil)
	if strings.Contains(w.Body.String(), "<script>alert") || strings.Contains(w.Body.String(), "<img") {
		t.Errorf("a name became markup: %s", w.Body)
	}
	nonces := regexp.MustCompile(`nonce="([^"]+)"`).FindAllStringSubmatch(w.Body.String(), -1)
	policy := w.Header().Get("Content-Security-Policy")
	if len(nonces) != 2 || !strings.Contains(policy, "default-src 'none'; script-src 'nonce-"+nonces[0][1]+"'") {
		t.Errorf("nonces %q, policy %q", nonces, policy)
	}
	if again := get(h, "GET", "/", "127.0.0.1:1", "localhost", nil).Header().Get("Content-Security-Policy"); again == policy {
		t.Error("the nonce came twice")
	}
	w = get(Handler(meter.New(meter.Options{}), Options{}), "GET", "/", "127.0.0.1:1", "localhost", nil)
	if n := strings.Count(w.Body.String(), " src="); n > 0 || strings.Contains(w.Body.String(), "http:") || strings.Contains(w.Body.String(), "https:") {
		t.Error("the page names something elsewhere")
	}
}

func TestJSONHasWhatThePageShows(t *testing.T) {
	m := meter.New(meter.Options{Tenant: func(*http.Request) string { return "team-a" }})
	l, err := limit.New(limit.Options{Limits: []limit.Limit{{Name: "tpm", Unit: limit.Tokens, Rate: limit.PerMinute(6000)}}})
	if err != nil {
		t.Fatal(err)
	}
	m.Watch("openai", l)
	tr := m.Trace("openai")
	tr.Queued(&http.Request{}, limit.Cost{Requests: 1, Input: 900})
	w := get(Handler(m, Options{}), "GET", "/x/state.json", "127.0.0.1:1", "localhost", nil)
	var s meter.State
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	if text := w.Body.String(); strings.Contains(text, `"Requests"`) || !strings.Contains(strings.Join(strings.Fields(text), ""), `"served":{"requests":`) {
		t.Errorf("a name is not spelled as the others are: %s", text)
	}
	if len(s.Line) != 1 || s.Line[0].Tenant != "team-a" || s.Line[0].Tokens != 900 || s.Budgets[0].Scopes[0].Limits[0].Capacity != 1000 {
		t.Errorf("%s", w.Body)
	}
}

// The stream sends a whole page first and then what changed, and ends with its
// client.
func TestStreamSendsWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := meter.New(meter.Options{})
		tr := m.Trace("a")
		h := Handler(m, Options{Streams: 1})
		pr, pw := io.Pipe()
		r := httptest.NewRequest("GET", "/events", nil)
		r.RemoteAddr, r.Host = "127.0.0.1:1", "localhost"
		ctx, leave := context.WithCancel(r.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.ServeHTTP(&streamWriter{header: http.Header{}, w: pw}, r.WithContext(ctx))
		}()
		next := func() map[string]string {
			var b strings.Builder
			buf := make([]byte, 1)
			for !strings.HasSuffix(b.String(), "\n\n") {
				if _, err := pr.Read(buf); err != nil {
					t.Fatal(err)
				}
				b.Write(buf)
			}
			var got map[string]string
			if err := json.Unmarshal([]byte(strings.TrimPrefix(b.String(), "data: ")), &got); err != nil {
				t.Fatalf("%v: %s", err, b.String())
			}
			return got
		}
		if got := next(); len(got) != len(sections) {
			t.Errorf("first %d sections, want %d", len(got), len(sections))
		}
		if w := get(h, "GET", "/events", "127.0.0.1:1", "localhost", nil); w.Code != 503 {
			t.Errorf("a second stream: %d", w.Code)
		}
		tr.Queued(&http.Request{}, limit.Cost{Requests: 1})
		time.Sleep(every)
		got := next()
		if !strings.Contains(got["line"], "<table>") || got["happened"] != "" {
			t.Errorf("after one second: %v", got)
		}
		leave()
		<-done
	})
}

func TestPauseIsNamedWithItsReason(t *testing.T) {
	at := time.Now()
	v := viewOf(meter.State{At: at, Budgets: []meter.Budget{{Scopes: []meter.Scope{{Budget: "b", Name: "model/x", Pause: &meter.Pause{
		Until: at.Add(12 * time.Second), By: "429", Why: "tokens per minute",
	}}}}}})
	if v.Mood != "pause" || v.Scopes[0].Pause != "Paused for 12 s more, asked for by 429: tokens per minute." || v.Scopes[0].Name != "b / model/x" {
		t.Errorf("%s: %q of %q", v.Mood, v.Scopes[0].Pause, v.Scopes[0].Name)
	}
}

// Credit, debt and a limit without a capacity have bars that fit.
func TestBarsFit(t *testing.T) {
	for _, c := range []struct {
		l    meter.Limit
		full int
		text string
	}{
		{meter.Limit{N: 60, Window: time.Minute, Capacity: 10, Credit: 4}, 400, "4 of 10"},
		{meter.Limit{N: 60, Window: time.Minute, Capacity: 10, Debt: 30}, 1000, "30 in debt, paid off in 30 s"},
		{meter.Limit{N: 60, Window: time.Minute}, 0, "0 of 0"},
		{meter.Limit{N: 1, Window: 366 * 24 * time.Hour, Capacity: 1, Debt: math.MaxInt64 / 2}, 1000, "4,611,686,018,427,387,903 in debt, paid off in 11574 days"},
	} {
		if g := gaugeOf(c.l); g.Full != c.full || g.Text != c.text {
			t.Errorf("%+v: %d, %q", c.l, g.Full, g.Text)
		}
	}
}

func TestAdviceOnMoreWorkers(t *testing.T) {
	minute := func(paced float64) []meter.Second {
		s := make([]meter.Second, 60)
		for i := range s {
			s[i].Paced = paced
		}
		return s
	}
	for want, got := range map[string]string{
		"The limits have room": advice(minute(0), 0, false, false),
		"Somebody has waited":  advice(minute(1), 5, false, false),
		"Somebody waits part":  advice(minute(.5), 1, false, false),
		"Calls cost more than": advice(minute(.5), 3, false, true),
		"More workers would":   advice(minute(0), 0, true, false),
	} {
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := advice(minute(1)[:5], 5, false, false); got != "" {
		t.Errorf("%q after five seconds", got)
	}
}

// Text stands out from what is behind it by 4.5 to 1, lines and bars by 3 to 1
// (WCAG 2.2, 1.4.3 and 1.4.11), in both schemes.
func TestContrast(t *testing.T) {
	blocks := regexp.MustCompile(`(?s)--bg:.*?}`).FindAllString(css, -1)
	if len(blocks) != 3 || strings.Join(strings.Fields(blocks[1]), "") != strings.Join(strings.Fields(blocks[2]), "") {
		t.Fatalf("%d palettes, want a light one and a dark one twice", len(blocks))
	}
	for _, block := range blocks {
		colour := map[string]float64{}
		for _, m := range regexp.MustCompile(`--(\w+): #(\w{6})`).FindAllStringSubmatch(block, -1) {
			colour[m[1]] = luminance(t, m[2])
		}
		check := func(front, back string, least float64) {
			a, b := colour[front], colour[back]
			if _, ok := colour[front]; !ok {
				t.Fatalf("no colour %s", front)
			}
			if r := (max(a, b) + .05) / (min(a, b) + .05); r < least {
				t.Errorf("%s on %s: %.2f to 1, want %.1f", front, back, r, least)
			}
		}
		for _, front := range []string{"text", "soft", "bad", "one", "two"} {
			for _, back := range []string{"bg", "card"} {
				check(front, back, 4.5)
			}
		}
		for _, back := range []string{"wait", "pause", "idle"} {
			check("text", back, 4.5)
		}
		check("one", "empty", 3)
		check("bad", "empty", 3)
	}
}

func luminance(t *testing.T, hex string) float64 {
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	part := func(shift int) float64 {
		c := float64(n>>shift&255) / 255
		if c <= .03928 {
			return c / 12.92
		}
		return math.Pow((c+.055)/1.055, 2.4)
	}
	return .2126*part(16) + .7152*part(8) + .0722*part(0)
}

// What the page costs: one drawing a second, with a thousand tenants and ten
// thousand in the line.
func BenchmarkDraw(b *testing.B) {
	m := meter.New(meter.Options{Tenant: func(r *http.Request) string { return r.Host }})
	tr := m.Trace("a")
	for i := range 10_000 {
		tr.Queued(&http.Request{Host: fmt.Sprint(i % 1000)}, limit.Cost{Requests: 1, Input: 100})
	}
	b.ReportAllocs()
	for b.Loop() {
		v := viewOf(m.Read(waiters, 0))
		for _, name := range sections {
			if err := pages.ExecuteTemplate(io.Discard, name, v); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// streamWriter is a connection's end.
type streamWriter struct {
	header http.Header
	w      io.Writer
}

func (s *streamWriter) Header() http.Header         { return s.header }
func (s *streamWriter) WriteHeader(int)             {}
func (s *streamWriter) Write(p []byte) (int, error) { return s.w.Write(p) }
func (s *streamWriter) Flush()                      {}

// All open pages share what is drawn: a second page costs a copy of the bytes.
func TestPagesShareWhatIsDrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := meter.New(meter.Options{})
		tr := m.Trace("a")
		h := Handler(m, Options{}).(*handler)
		first, err := h.now()
		if err != nil {
			t.Fatal(err)
		}
		tr.Queued(&http.Request{}, limit.Cost{Requests: 1})
		if again, _ := h.now(); !again.at.Equal(first.at) {
			t.Error("the page is drawn twice in a second")
		}
		time.Sleep(every)
		second, err := h.now()
		if err != nil {
			t.Fatal(err)
		}
		a, _ := second.since(&first)
		b, _ := second.since(&first)
		if len(a) < 3 || &a[0] != &b[0] {
			t.Errorf("%q is made for each page", a)
		}
		whole, _ := second.since(&frame{})
		if len(whole) <= len(a) {
			t.Errorf("a page that shows nothing gets %d bytes, one that is open %d", len(whole), len(a))
		}
	})
}

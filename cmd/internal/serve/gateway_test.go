package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/cmd/internal/boxtest"
	"github.com/tripmeter/tripmeter/providertest"
)

const chat = `{"model":"gpt-4o-mini","max_tokens":50,"messages":[{"role":"user","content":"Say abc."}]}`

func secrets1(name string) string {
	return map[string]string{"PROVIDER_KEY": "sk-canary-provider", "TOKEN_A": "token-canary-aaaaaaaa", "TOKEN_B": "token-canary-bbbbbbbb"}[name]
}

// open starts a gateway with a configuration in which URL is the upstream's.
func open(t testing.TB, config, upstream string) (g *gateway, url string, logged *bytes.Buffer) {
	t.Helper()
	c, err := Parse([]byte(strings.ReplaceAll(config, "URL", upstream)), secrets1)
	if err != nil {
		t.Fatal(err)
	}
	logged = &bytes.Buffer{}
	base := baseTransport()
	if g, err = newGateway(c, base, log.New(logged, "", 0), nil); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(g)
	t.Cleanup(func() { s.Close(); base.CloseIdleConnections() })
	return g, s.URL, logged
}

const plain = `
[[upstream]]
name = "one"
url = "URL"
`

type answer struct {
	status int
	header http.Header
	body   string
}

func post(t testing.TB, url, body string, header ...string) answer {
	t.Helper()
	r, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// Bodies, encodings and fields pass as they are, in both directions.
func TestBytesPassUnchanged(t *testing.T) {
	var got struct {
		body, query string
		header      http.Header
		length      int64
	}
	random := make([]byte, 200_000)
	rnd := rand.NewChaCha8([32]byte{1})
	rnd.Read(random)
	for name, c := range map[string]struct {
		kind, encoding string
		body           []byte
	}{
		"JSON":    {"application/json", "", []byte("{\"a\" : \"\u2028<&>\",\n \"usage\":null}")},
		"gzip":    {"application/json", "gzip", random},
		"binary":  {"audio/mpeg", "", random},
		"nothing": {"text/plain", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				got.body, got.header, got.length, got.query = string(b), r.Header.Clone(), r.ContentLength, r.URL.RequestURI()
				w.Header().Set("Content-Type", c.kind)
				if c.encoding != "" {
					w.Header().Set("Content-Encoding", c.encoding)
				}
				w.Header().Set("X-Ratelimit-Remaining-Requests", "7")
				w.WriteHeader(201)
				w.Write(c.body)
			}))
			defer up.Close()
			_, url, _ := open(t, plain, up.URL)
			body := " " + chat + "\n\t"
			a := post(t, url+"/v1/x%2Fy?a=b&a=c%20d", body, "Authorization", "Bearer mine", "Accept-Encoding", "gzip, br", MaxWaitHeader, "30")
			if a.status != 201 || a.body != string(c.body) || a.header.Get("X-Ratelimit-Remaining-Requests") != "7" || a.header.Get("Content-Encoding") != c.encoding {
				t.Errorf("status %d, %d bytes of %d, %v", a.status, len(a.body), len(c.body), a.header)
			}
			if got.body != body || got.length != int64(len(body)) || got.query != "/v1/x%2Fy?a=b&a=c%20d" || got.header.Get("Authorization") != "Bearer mine" ||
				got.header.Get("Accept-Encoding") != "gzip, br" || got.header.Get(MaxWaitHeader) != "" || got.header.Get("X-Forwarded-For") != "" {
				t.Errorf("upstream got %q of %d bytes at %s, %v", got.body, got.length, got.query, got.header)
			}
		})
	}
}

// Each event reaches the client when it was sent: the server sends the next one
// only when the client has the last.
func TestEventsAreNotHeld(t *testing.T) {
	const events = 20
	got := make(chan bool)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson") // not only event streams
		for i := range events {
			fmt.Fprintf(w, "{\"event\":%d}\n", i)
			w.(http.Flusher).Flush()
			select {
			case <-got:
			case <-r.Context().Done():
				return
			}
		}
	}))
	defer up.Close()
	_, url, _ := open(t, plain, up.URL)
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(chat))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 100)
	for i := range events {
		n, err := resp.Body.Read(buf)
		if want := fmt.Sprintf("{\"event\":%d}\n", i); string(buf[:n]) != want || err != nil && err != io.EOF {
			t.Fatalf("%q, %v; want %q", buf[:n], err, want)
		}
		got <- true
	}
}

// A client that leaves ends the call at the provider, and the output so far is
// charged.
func TestClientLeaves(t *testing.T) {
	p, up := boxtest.Start(t, providertest.Options{
		Output: providertest.Constant(10_000), StreamUsage: providertest.UsageAlways,
		Latency: func(providertest.Call) providertest.Timing { return providertest.Timing{PerToken: time.Millisecond} },
	})
	g, url, _ := open(t, plain, up)
	ctx, leave := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, "POST", url+"/v1/chat/completions",
		strings.NewReader(strings.Replace(chat, `"max_tokens":50`, `"max_tokens":10000,"stream":true`, 1)))
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	io.ReadFull(resp.Body, make([]byte, 2000))
	leave()
	resp.Body.Close()
	eventually(t, "the provider saw the client leave", func() bool { return p.Stats().Gone == 1 })
	eventually(t, "the place in flight came back", func() bool {
		return g.now.Load().upstreams[0].m.State().InFlight == 0
	})
}

// eventually waits for what another goroutine is about to do.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not in ten seconds: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// A wait that the client cannot bear is refused at once, with the time after
// which the call could have gone; after that time it goes.
func TestEarlyRefusal(t *testing.T) {
	p, up := boxtest.Start(t, providertest.Options{})
	_, url, _ := open(t, plain+"rpm = 30\nburst = \"2s\"\n", up) // one each two seconds
	if a := post(t, url+"/v1/chat/completions", chat); a.status != 200 {
		t.Fatal(a)
	}
	asked := time.Now()
	a := post(t, url+"/v1/chat/completions", chat, MaxWaitHeader, "0.5")
	ms, _ := strconv.Atoi(a.header.Get("Retry-After-Ms"))
	if a.status != 429 || a.header.Get("Retry-After") != "2" || ms < 1000 || ms > 2000 || a.header.Get("X-Should-Retry") != "false" ||
		!strings.Contains(a.body, "gateway_wait_too_long") || time.Since(asked) > 400*time.Millisecond {
		t.Fatalf("%+v after %v", a, time.Since(asked))
	}
	time.Sleep(time.Duration(ms)*time.Millisecond - time.Since(asked))
	if a = post(t, url+"/v1/chat/completions", chat, MaxWaitHeader, "0.1"); a.status != 200 {
		t.Errorf("at the time that was named: %+v", a)
	}
	if a = post(t, url+"/v1/messages", chat, "X-Stainless-Timeout", "1"); a.status != 429 || !strings.Contains(a.body, `"rate_limit_error"`) {
		t.Errorf("an Anthropic client gets %+v", a)
	}
	if n := p.Stats().Requests; n != 2 {
		t.Errorf("%d calls reached the provider", n)
	}
}

// An answer may take longer than the call could bear to wait in the line.
func TestAnswersMayTakeLong(t *testing.T) {
	_, up := boxtest.Start(t, providertest.Options{Latency: func(providertest.Call) providertest.Timing {
		return providertest.Timing{FirstByte: 300 * time.Millisecond}
	}})
	_, url, _ := open(t, plain, up)
	if a := post(t, url+"/v1/chat/completions", chat, MaxWaitHeader, "0.1"); a.status != 200 {
		t.Errorf("%+v", a)
	}
}

const tenants = `
[[upstream]]
name = "one"
url = "URL"
path = "/one"
key_env = "PROVIDER_KEY"

[[upstream]]
name = "two"
url = "URL"
path = "/two/deep"
models = ["gpt-*"]
key_env = "PROVIDER_KEY"

[[tenant]]
name = "a"
token_env = "TOKEN_A"

[[tenant]]
name = "b"
token_sha256 = "SHA"
upstreams = ["two"]
`

// Tenants get in by their tokens, to their upstreams only. The provider sees its
// own key, wherever the client put its token, and nobody else sees either.
func TestTenants(t *testing.T) {
	seen := make(chan *http.Request, 1)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { seen <- r; w.Write([]byte("{}")) }))
	defer up.Close()
	sum := sha256.Sum256([]byte(secrets1("TOKEN_B")))
	_, url, logged := open(t, strings.Replace(tenants, "SHA", hex.EncodeToString(sum[:]), 1), up.URL)
	a, b := secrets1("TOKEN_A"), secrets1("TOKEN_B")
	for _, c := range []struct {
		path, name, value string
		status            int
		reached           string
	}{
		{"/one/v1/x", "Authorization", "Bearer " + a, 200, "/v1/x"},
		{"/one/v1/x?key=" + a, "X-Api-Key", a, 200, "/v1/x"},
		{"/one", "Api-Key", a, 200, "/"},
		{"/two/deep/v1/x", "X-Goog-Api-Key", a, 200, "/v1/x"},
		{"/two/deep/v1/x", "Authorization", "bearer " + b, 200, "/v1/x"},
		{"/one/v1/x", "Authorization", "Bearer " + b, 404, ""},
		{"/onelier", "Authorization", "Bearer " + a, 404, ""},
		{"/two/deep/v1/x", "Authorization", "Bearer " + a + "x", 401, ""},
		{"/two/deep/v1/x", "Authorization", "", 401, ""},
		{"/two/deep/v1/x", "Authorization", "Bearer " + secrets1("PROVIDER_KEY"), 401, ""},
	} {
		got := post(t, url+c.path, chat, c.name, c.value)
		if got.status != c.status {
			t.Errorf("%s %s: %d, want %d: %s", c.path, c.name, got.status, c.status, got.body)
		}
		if strings.Contains(got.body+fmt.Sprint(got.header), "canary") {
			t.Errorf("%s: the answer holds a secret", c.path)
		}
		if c.reached == "" {
			continue
		}
		r := <-seen
		if r.URL.Path != c.reached || r.Header.Get("Authorization") != "Bearer "+secrets1("PROVIDER_KEY") ||
			strings.Contains(fmt.Sprint(r.Header, r.URL), "token-canary") {
			t.Errorf("%s reached %s with %d fields", c.path, r.URL.Path, len(r.Header))
		}
	}
	if strings.Contains(logged.String(), "canary") {
		t.Error("the log holds a secret")
	}
}

// A tenant's limits are its own: another one still has all of its budget. The
// field with which a client lets others go first is not passed on.
func TestTenantsHaveBudgets(t *testing.T) {
	_, up := boxtest.Start(t, providertest.Options{})
	_, url, _ := open(t, plain+`key_env = "PROVIDER_KEY"
rpm = 600
max_wait = "1s"

[[tenant]]
name = "a"
token_env = "TOKEN_A"
rpm = 1

[[tenant]]
name = "b"
token_env = "TOKEN_B"
`, up)
	got := ""
	for _, token := range []string{"TOKEN_A", "TOKEN_A", "TOKEN_B", "TOKEN_B"} {
		a := post(t, url+"/v1/chat/completions", chat, "Authorization", "Bearer "+secrets1(token), PriorityHeader, "batch")
		got += fmt.Sprint(a.status, " ")
	}
	if got != "200 429 200 200 " {
		t.Error(got)
	}
}

// Each key that passes through has a budget of its own, unless they share one.
func TestBudgetOfAKey(t *testing.T) {
	_, up := boxtest.Start(t, providertest.Options{})
	for budget, want := range map[string]string{"key": "200 429 200 429 ", "upstream": "200 429 429 429 "} {
		_, url, _ := open(t, plain+"rpm = 1\nburst = \"1m\"\nmax_wait = \"1s\"\nbudget = \""+budget+"\"\n", up)
		got := ""
		for _, key := range []string{"k1", "k1", "k2", "k2"} {
			got += fmt.Sprint(post(t, url+"/v1/chat/completions", chat, "Authorization", "Bearer "+key).status, " ")
		}
		if got != want {
			t.Errorf("budget of the %s: %s, want %s", budget, got, want)
		}
	}
}

// A model with limits of its own does not hold up another.
func TestModelsHaveLimitsOfTheirOwn(t *testing.T) {
	_, up := boxtest.Start(t, providertest.Options{})
	_, url, _ := open(t, plain+"rpm = 600\nmax_wait = \"1s\"\n[upstream.limits.small]\nrpm = 1\n", up)
	got := ""
	for _, model := range []string{"small", "small", "gpt-4o-mini"} {
		got += fmt.Sprint(post(t, url+"/v1/chat/completions", strings.Replace(chat, "gpt-4o-mini", model, 1)).status, " ")
	}
	if got != "200 429 200 " {
		t.Error(got)
	}
}

// Twelve workers ask for three times what the provider allows. None is refused, here
// or there, and the quota is used.
func TestNobodyIsRefused(t *testing.T) {
	const rpm = 1200
	// The provider's bucket holds more than the gateway's burst of a second. A machine
	// that stalls brings calls late, and the next ones no earlier than their time.
	p, up := boxtest.Start(t, providertest.Options{Limits: providertest.Limits{RPM: rpm}, Capacity: 10 * time.Second})
	_, url, _ := open(t, plain+fmt.Sprintf("rpm = %d\nburst = \"1s\"\nbudget = \"upstream\"\n", rpm), up)
	begin := time.Now()
	var refused, served atomic.Int64
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			for time.Since(begin) < 4*time.Second {
				if post(t, url+"/v1/chat/completions", chat).status == 200 {
					served.Add(1)
				} else {
					refused.Add(1)
				}
			}
		})
	}
	all.Wait()
	q, ok := p.QuotaUsed(p.Start(), p.Start().Add(time.Since(p.Start())))
	used := float64(served.Load()) / (float64(rpm) / 60 * (time.Since(begin).Seconds() + 1))
	t.Logf("%d served, quota %.3f, with the burst %.3f", served.Load(), q.Requests, used)
	if refused.Load() != 0 || p.Stats().Refused != 0 || !ok || used < 0.5 {
		t.Errorf("%d refused here, %d there, quota %.3f", refused.Load(), p.Stats().Refused, used)
	}
}

// A reload that changes an upstream's limits makes no credit; one that does not
// keeps its budget.
func TestReloadMakesNoCredit(t *testing.T) {
	_, up := boxtest.Start(t, providertest.Options{})
	config := plain + "rpm = 2\nburst = \"1m\"\nmax_wait = \"1s\"\n"
	g, url, _ := open(t, config, up)
	got := ""
	send := func() { got += fmt.Sprint(post(t, url+"/v1/chat/completions", chat).status, " ") }
	reload := func(config string) {
		c, err := Parse([]byte(strings.ReplaceAll(config, "URL", up)), secrets1)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.load(c); err != nil {
			t.Fatal(err)
		}
	}
	send()
	reload(config + "# the same\n")
	send()
	send()
	reload(strings.Replace(config, "rpm = 2", "rpm = 20", 1))
	send()
	reload(config)
	send()
	if got != "200 200 429 429 429 " {
		t.Error(got)
	}
}

// Pauses and debts outlive a reload, also one that changes the limits.
func TestReloadKeepsPausesAndDebts(t *testing.T) {
	p, up := boxtest.Start(t, providertest.Options{Output: providertest.Constant(3000)})
	config := plain + "key_env = \"PROVIDER_KEY\"\nrpm = 6000\ntpm = 6000\nburst = \"10s\"\ncharge = \"settle\"\n"
	g, url, _ := open(t, config, up)
	reload := func(config string) {
		t.Helper()
		c, err := Parse([]byte(strings.ReplaceAll(config, "URL", up)), secrets1)
		if err == nil {
			err = g.load(c)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	owed := func() (debt int64, until time.Time) {
		all := g.now.Load().upstreams[0].m.State()
		for _, s := range append(all.Scopes, all) {
			if s.PausedUntil.After(until) {
				until = s.PausedUntil
			}
			for _, l := range s.Limits {
				debt = max(debt, l.Debt)
			}
		}
		return debt, until
	}
	// 3,000 tokens of output where no cap is stated: more than was held for them.
	if a := post(t, url+"/v1/chat/completions", strings.Replace(chat, `"max_tokens":50,`, "", 1)); a.status != 200 {
		t.Fatal(a)
	}
	before, _ := owed()
	reload(strings.Replace(config, "rpm = 6000", "rpm = 5000", 1))
	if after, _ := owed(); before <= 0 || after <= 0 || after > before {
		t.Errorf("a debt of %d tokens is %d after the reload; %+v", before, after, g.now.Load().upstreams[0].m.State())
	}
	config = plain + "key_env = \"PROVIDER_KEY\"\nrpm = 6000\nattempts = 1\n"
	g, url, _ = open(t, config, up) // one without debt
	p.Script(providertest.Step{Kind: providertest.Refuse, RetryAfter: time.Hour})
	if a := post(t, url+"/v1/chat/completions", chat); a.status != 429 {
		t.Fatal(a)
	}
	_, before1 := owed()
	reload(strings.Replace(config, "rpm = 6000", "rpm = 60000", 1))
	_, after1 := owed()
	sent := p.Stats().Requests
	a := post(t, url+"/v1/chat/completions", chat, MaxWaitHeader, "5")
	if before1.IsZero() || !after1.Equal(before1) || a.status != 429 || !strings.Contains(a.body, "gateway_wait_too_long") || p.Stats().Requests != sent {
		t.Errorf("a pause until %v is one until %v after the reload; the next call: %+v", before1, after1, a)
	}
}

// A request that is too large, or does not come, is answered and never sent on.
func TestBodiesThatCannotBe(t *testing.T) {
	p, up := boxtest.Start(t, providertest.Options{})
	_, url, _ := open(t, "max_body = \"1kb\"\nread_timeout = \"100ms\"\n"+plain+"tpm = 1000\n", up)
	if a := post(t, url+"/v1/chat/completions", strings.Repeat("x", 1025)); a.status != 413 {
		t.Errorf("%+v", a)
	}
	above := post(t, url+"/v1/chat/completions", `{"model":"m","max_tokens":5000,"messages":[{"role":"user","content":"hi"}]}`)
	if above.status != 413 || strings.Count(above.body, "tripmeter:") != 1 || !strings.Contains(above.body, "no wait can admit it") {
		t.Errorf("a cost above the limit: %+v", above)
	}
	slow, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	io.WriteString(slow, "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"model\":")
	slow.SetReadDeadline(time.Now().Add(10 * time.Second))
	if line, err := bufio.NewReader(slow).ReadString('\n'); !strings.Contains(line, "408") {
		t.Errorf("%q, %v", line, err)
	}
	if n := p.Stats().Requests; n != 0 {
		t.Errorf("%d reached the provider", n)
	}
}

// A provider that is not there gives an error in the client's shape, without
// the address in it.
func TestProviderAway(t *testing.T) {
	_, url, _ := open(t, plain+"attempts = 1\n", "http://127.0.0.1:1")
	a := post(t, url+"/v1/chat/completions?key=canary", chat)
	if a.status != 502 || !strings.Contains(a.body, "upstream_unreachable") || strings.Contains(a.body, "127.0.0.1") || a.header.Get("X-Should-Retry") != "false" {
		t.Errorf("%+v", a)
	}
}

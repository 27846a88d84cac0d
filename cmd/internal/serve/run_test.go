package serve

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tripmeter/tripmeter/cmd/internal/boxtest"
	"github.com/tripmeter/tripmeter/cmd/internal/meter"
	"github.com/tripmeter/tripmeter/providertest"
)

// port is a free address of this machine.
func port(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Under streams without end, ten reloads and then SIGTERM: every stream that
// was begun comes whole, /readyz says that it drains, and the exit code is 0.
func TestReloadAndTermCutNoStream(t *testing.T) {
	p, up := boxtest.Start(t, providertest.Options{
		Output: providertest.Uniform(20, 60), ChunkTokens: 2,
		Latency: func(providertest.Call) providertest.Timing {
			return providertest.Timing{PerToken: 5 * time.Millisecond}
		},
	})
	listen, admin := port(t), port(t)
	config := filepath.Join(t.TempDir(), "tripmeter.toml")
	write := func(rpm int) {
		text := fmt.Sprintf("listen = %q\nadmin = %q\n", listen, admin) + strings.Replace(plain, "URL", up, 1) + fmt.Sprintf("rpm = %d\n", rpm)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(600_000)
	signals, code := make(chan os.Signal, 4), make(chan int, 1)
	var logged lines
	go func() { code <- Run([]string{"-config", config}, secrets1, signals, &logged) }()
	eventually(t, "it is ready", func() bool { return get("http://"+admin+"/readyz") == "ready\n" })

	var whole, cut, turned atomic.Int64
	stop := make(chan struct{})
	var all sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	body := strings.Replace(chat, `"max_tokens"`, `"stream":true,"max_tokens"`, 1)
	for range 32 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				resp, err := client.Post("http://"+listen+"/v1/chat/completions", "application/json", strings.NewReader(body))
				if err != nil {
					turned.Add(1) // it takes no new calls any more
					continue
				}
				b, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != 200 || !bytes.HasSuffix(b, []byte("data: [DONE]\n\n")) {
					cut.Add(1)
					t.Logf("cut: status %d, %v, %d bytes", resp.StatusCode, err, len(b))
				} else {
					whole.Add(1)
				}
			}
		})
	}
	for i := range 10 {
		eventually(t, "streams come", func() bool { return whole.Load() > int64(20*i) })
		write(600_000 + i%3)
		signals <- syscall.SIGHUP
	}
	os.WriteFile(config, []byte("nonsense"), 0o600)
	signals <- syscall.SIGHUP
	eventually(t, "it says that nonsense is not taken", func() bool { return strings.Contains(logged.String(), "not reloaded") })
	if turned.Load() != 0 {
		t.Errorf("%d calls were turned away by a reload", turned.Load())
	}
	draining := make(chan string, 1)
	signals <- syscall.SIGTERM
	go func() {
		for {
			if got := get("http://" + admin + "/readyz"); got != "ready\n" {
				draining <- got
				return
			}
		}
	}()
	if got := <-draining; !strings.Contains(got, "draining") && got != "" {
		t.Errorf("/readyz says %q", got)
	}
	if got := <-code; got != ExitDone {
		t.Errorf("exit code %d\n%s", got, logged.String())
	}
	close(stop)
	all.Wait()
	if cut.Load() != 0 || whole.Load() < 100 {
		t.Errorf("%d whole, %d cut\n%s", whole.Load(), cut.Load(), logged.String())
	}
	if s := p.Stats(); s.Gone != 0 {
		t.Errorf("the provider saw %d clients leave", s.Gone)
	}
}

func get(url string) string {
	resp, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return string(b)
}

// The metrics count what happened and name no key.
func TestMetrics(t *testing.T) {
	_, up := boxtest.Start(t, providertest.Options{})
	g, url, _ := open(t, plain+"rpm = 600\nbudget = \"upstream\"\n", up)
	s := httptest.NewServer((&server{g: g}).admin())
	defer s.Close()
	post(t, url+"/v1/chat/completions", chat, "Authorization", "Bearer sk-canary")
	text := get(s.URL + "/metrics")
	for _, want := range []string{
		`tripmeter_gateway_calls_total{status="200",upstream="one"} 1`,
		"# TYPE tripmeter_gateway_calls_total counter",
		`tripmeter_attempts_total{budget="one",outcome="success"} 1`,
		`tripmeter_calls_settled_total{budget="one"} 1`,
		`limit="requests per minute",scope="` + strings.TrimPrefix(up, "http://") + `#all",unit="requests"} 9`,
		`tripmeter_in_flight{budget="one",scope=""} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if page := get(s.URL + "/debug/tripmeter/"); !strings.Contains(page, "<html") || !strings.Contains(page, "one") || strings.Contains(page, "canary") {
		t.Errorf("/debug/tripmeter/ is\n%s", page)
	}
	if strings.Contains(text, "canary") || get(s.URL+"/healthz") != "ok\n" {
		t.Error("a key is shown, or /healthz is not ok")
	}
}

// Flags and files that cannot be used are said before anything listens.
func TestUsage(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.toml")
	os.WriteFile(good, []byte(strings.Replace(plain, "URL", "http://h", 1)), 0o600)
	for want, args := range map[int][][]string{
		ExitUsage: {{"-config", filepath.Join(dir, "none")}, {"-nonsense"}, {"-config", good, "extra"}, {"-config", dir}},
		ExitDone:  {{"-h"}, {"-config", good, "-check"}},
	} {
		for _, a := range args {
			var stderr bytes.Buffer
			if code := Run(a, secrets1, nil, &stderr); code != want || stderr.Len() == 0 {
				t.Errorf("%v: code %d, %q", a, code, stderr.String())
			}
		}
	}
}

// A file without -config before it is not taken for the configuration.
func TestUsageNamesTheFlag(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.toml")
	os.WriteFile(good, []byte(strings.Replace(plain, "URL", "http://h", 1)), 0o600)
	var stderr bytes.Buffer
	code := Run([]string{"-config", good, "my.toml"}, secrets1, nil, &stderr)
	if want := `unexpected argument "my.toml": the file is named by -config`; code != ExitUsage || !strings.Contains(stderr.String(), want) {
		t.Errorf("code %d, %q, want %q", code, stderr.String(), want)
	}
}

// For any bytes that come, the provider sees whole requests with its own key only,
// and the gateway goes on.
func FuzzRequests(f *testing.F) {
	for _, s := range []string{
		"POST /one/v1/x HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer token-canary-aaaaaaaa\r\nContent-Length: 2\r\n\r\n{}",
		"POST /one/v1/x HTTP/1.1\r\nHost: h\r\nX-Api-Key: token-canary-aaaaaaaa\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
		"POST /one/v1/x HTTP/1.1\r\nHost: h\r\nX-Api-Key: token-canary-aaaaaaaa\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"GET /one/../two HTTP/1.1\r\nHost: h\r\nConnection: upgrade, x-api-key\r\nX-Api-Key: token-canary-aaaaaaaa\r\n\r\n",
		"CONNECT evil:443 HTTP/1.1\r\nHost: evil\r\n\r\n",
		"GET http://evil/one HTTP/1.1\r\nHost: evil\r\nX-Api-Key: token-canary-aaaaaaaa\r\n\r\n",
		"GET /one HTTP/1.1\r\nHost: h\r\nX-Api-Key: token-canary-aaaaaaaa\r\nX: " + strings.Repeat("x", 70_000) + "\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	var wrong atomic.Value
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.Header.Get("Authorization") != "Bearer "+secrets1("PROVIDER_KEY") || strings.Contains(fmt.Sprint(r.Header), "token-canary") {
			wrong.Store(fmt.Sprintf("%s %s without the provider's key alone", r.Method, r.URL.Path))
		}
	}))
	defer up.Close()
	c, err := Parse([]byte(strings.ReplaceAll(strings.Replace(tenants, "SHA", strings.Repeat("ab", 32), 1), "URL", up.URL)), secrets1)
	if err != nil {
		f.Fatal(err)
	}
	base := baseTransport()
	defer base.CloseIdleConnections()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	g, err := newGateway(c, base, log.New(io.Discard, "", 0), nil)
	if err != nil {
		f.Fatal(err)
	}
	s := &http.Server{Handler: g, ErrorLog: log.New(io.Discard, "", 0), MaxHeaderBytes: 64 << 10}
	go s.Serve(l)
	defer s.Close()
	f.Fuzz(func(t *testing.T, data []byte) {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(5 * time.Second))
		go func() {
			conn.Write(data)
			conn.(*net.TCPConn).CloseWrite()
		}()
		r := bufio.NewReader(conn)
		resp, err := http.ReadResponse(r, nil)
		if err == nil {
			b, _ := io.ReadAll(resp.Body)
			if strings.Contains(string(b), secrets1("PROVIDER_KEY")) {
				t.Fatal("the provider's key came back")
			}
			resp.Body.Close()
		}
		if w := wrong.Load(); w != nil {
			t.Fatal(w)
		}
	})
}

// tenantSeen is a provider in the gateway's own process, which says whose call came.
type tenantSeen struct{ name, authorization string }

func (t *tenantSeen) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	t.name, t.authorization = meter.TenantOf(r), r.Header.Get("Authorization")
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// A client may send anything where a token belongs: a tenant's budget is charged only
// if its whole token is there, and the token does not travel on.
func FuzzTokens(f *testing.F) {
	a, b := secrets1("TOKEN_A"), secrets1("TOKEN_B")
	for _, s := range [][2]string{
		{"Bearer " + a, ""}, {"bearer  " + b, ""}, {"Bearer " + a, b}, {a, a}, {"Basic " + a, ""}, {"Bearer " + a + "x", ""}, {"Bearer " + a[:20], b[1:]},
		{"Bearer " + a + "," + b, ""}, {strings.ToUpper(a), ""}, {"Bearer", a + " "}, {"", "a"}, {secrets1("PROVIDER_KEY"), "b"}, {"Bearer " + a + "\x00", ""},
	} {
		f.Add(s[0], s[1], byte(len(s[0])))
	}
	c, err := Parse([]byte(strings.Replace(plain, "URL", "http://provider", 1)+`key_env = "PROVIDER_KEY"

[[tenant]]
name = "a"
token_env = "TOKEN_A"

[[tenant]]
name = "b"
token_env = "TOKEN_B"
`), secrets1)
	if err != nil {
		f.Fatal(err)
	}
	var base tenantSeen
	g, err := newGateway(c, &base, log.New(io.Discard, "", 0), nil)
	if err != nil {
		f.Fatal(err)
	}
	served := g.stats.calls.WithLabelValues("one", "200")
	f.Fuzz(func(t *testing.T, authorization, other string, field byte) {
		r := httptest.NewRequest("GET", "http://gateway/v1/models", nil)
		name := secrets[1+int(field)%(len(secrets)-1)]
		r.Header.Set("Authorization", authorization)
		r.Header.Set(name, other)
		base = tenantSeen{}
		before := testutil.ToFloat64(served)
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		shown := func(token string) bool {
			_, bearer, _ := strings.Cut(authorization, " ")
			return other == token || authorization == token || strings.TrimSpace(bearer) == token
		}
		switch passed := testutil.ToFloat64(served) > before; {
		case passed != (w.Code == 200) || passed != (base.name != ""):
			t.Fatalf("status %d, passed %v, as %q", w.Code, passed, base.name)
		case !passed && w.Code != 401:
			t.Fatalf("status %d", w.Code)
		case passed && !shown(map[string]string{"a": a, "b": b}[base.name]):
			t.Fatalf("%q and %s %q went as %q", authorization, name, other, base.name)
		case passed && base.authorization != "Bearer "+secrets1("PROVIDER_KEY"):
			t.Fatalf("the provider got %q", base.authorization)
		}
	})
}

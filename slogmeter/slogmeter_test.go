package slogmeter_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/slogmeter"
	"github.com/tripmeter/tripmeter/transport"
)

func client(t testing.TB, l *slog.Logger, o slogmeter.Options, more transport.Options) (*http.Client, *providertest.Provider) {
	p, err := providertest.New(providertest.Options{Output: providertest.Constant(10)})
	if err != nil {
		t.Fatal(err)
	}
	more.Base, more.Trace = p.RoundTripper(), slogmeter.Trace(l, o)
	rt, err := transport.New(more)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: rt}, p
}

func post(t testing.TB, c *http.Client) {
	resp, err := c.Post("http://u:pw@box/v1/chat/completions?key=secret", "application/json",
		strings.NewReader(`{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"private"}]}`))
	if err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

func logger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey:
			return slog.Attr{}
		case "estimated": // as good as the estimate is
			return slog.String(a.Key, "about")
		}
		return a
	}}))
}

// Each level has its lines, and no line has anything of the request.
func TestLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for level, want := range map[slog.Level]string{
			slog.LevelDebug: `level=DEBUG msg=call budget=b status=200 attempts=1 estimated=about charged=14 complete=true tenant=us input=4 output=10
level=INFO msg=paused budget=b for=2s by=box why="it named a wait of 2s" tenant=us
level=DEBUG msg=call budget=b status=200 attempts=2 estimated=about charged=14 complete=true tenant=us input=4 output=10
`,
			slog.LevelInfo: "level=INFO msg=paused budget=b for=2s by=box why=\"it named a wait of 2s\" tenant=us\n",
			slog.LevelWarn: "",
		} {
			var out bytes.Buffer
			c, p := client(t, logger(&out, level), slogmeter.Options{Budget: "b", Tenant: func(*http.Request) string { return "us" }}, transport.Options{RPM: 60})
			post(t, c)
			p.Script(providertest.Step{Kind: providertest.Refuse, RetryAfter: 2 * time.Second})
			post(t, c)
			if out.String() != want {
				t.Errorf("%v:\n%s\nwant\n%s", level, out.String(), want)
			}
		}
	})
}

func TestRefusalsAreWarnings(t *testing.T) {
	var out bytes.Buffer
	c, _ := client(t, logger(&out, slog.LevelWarn), slogmeter.Options{}, transport.Options{TPM: 10, Burst: time.Second})
	post(t, c)
	if got := out.String(); !strings.HasPrefix(got, `level=WARN msg="call refused by the limiter" error="tripmeter: request not sent: limit: cost can never be admitted`) {
		t.Errorf("%q", got)
	}
	for _, secret := range []string{"secret", "private", "pw"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("the log tells %q", secret)
		}
	}
}

func TestLimitsAndDoubtsAreTold(t *testing.T) {
	var out bytes.Buffer
	tr := slogmeter.Trace(logger(&out, slog.LevelInfo), slogmeter.Options{})
	a := limit.Limit{Name: "rpm", Rate: limit.PerMinute(60)}
	b := a
	b.Burst = 7
	tr.LimitChanged(a, b) // the burst alone
	b.Rate = limit.PerMinute(30)
	tr.LimitChanged(a, b)
	tr.Doubted("settle", "actual")
	want := `level=INFO msg="limit changed" limit=rpm from=60/1m0s to=30/1m0s
level=WARN msg="answers contradict the charge rule" rule=settle seen=actual do="set Provider to a profile.Charging what was seen, or FollowRule"
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}

// What a call costs at info, where its line is off.
func BenchmarkCallAtInfo(b *testing.B) {
	tr := slogmeter.Trace(slog.New(slog.NewTextHandler(io.Discard, nil)), slogmeter.Options{})
	r, err := http.NewRequestWithContext(context.Background(), "POST", "http://box/", nil)
	if err != nil {
		b.Fatal(err)
	}
	s := transport.Settlement{Request: r, Status: 200, Attempts: 1}
	b.ReportAllocs()
	for b.Loop() {
		tr.Settled(s)
	}
}

func Example() {
	l := logger(os.Stdout, slog.LevelDebug)
	provider, err := providertest.New(providertest.Options{Output: providertest.Constant(7)})
	if err != nil {
		fmt.Println(err)
		return
	}
	rt, err := transport.New(transport.Options{Base: provider.RoundTripper(), RPM: 500, Trace: slogmeter.Trace(l, slogmeter.Options{})})
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := (&http.Client{Transport: rt}).Post("http://box/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"Hello"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	// Output: level=DEBUG msg=call status=200 attempts=1 estimated=about charged=11 complete=true input=4 output=7
}

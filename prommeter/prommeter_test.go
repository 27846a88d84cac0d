package prommeter_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/meter"
	"github.com/tripmeter/tripmeter/prommeter"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

func setup(t testing.TB, o meter.Options, p providertest.Options) (*meter.Meter, *transport.Transport, *providertest.Provider) {
	provider, err := providertest.New(p)
	if err != nil {
		t.Fatal(err)
	}
	m := meter.New(o)
	rt, err := transport.New(transport.Options{Base: provider.RoundTripper(), RPM: 60, TPM: 6000, Trace: m.Trace("box")})
	if err != nil {
		t.Fatal(err)
	}
	m.Watch("box", rt)
	return m, rt, provider
}

func post(t testing.TB, rt http.RoundTripper) {
	resp, err := (&http.Client{Transport: rt}).Post("http://box/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"hello there"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

func scrape(t testing.TB, m *meter.Meter, o prommeter.Options) string {
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(prommeter.New(m, o)); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// Before the first call every series is there, at 0, and none is negative or
// enormous.
func TestEverySeriesIsThereAtZero(t *testing.T) {
	m, _, _ := setup(t, meter.Options{}, providertest.Options{})
	text := scrape(t, m, prommeter.Options{})
	for _, want := range []string{
		`tripmeter_calls_admitted_total{budget="box"} 0`,
		`tripmeter_refusals_total{budget="box",reason="wait_too_long"} 0`,
		`tripmeter_attempts_total{budget="box",outcome="rate_limited"} 0`,
		`tripmeter_pauses_total{budget="box",by="provider"} 0`,
		`tripmeter_wait_seconds_count{budget="box"} 0`,
		`tripmeter_waiting{budget="box",scope=""} 0`,
		`tripmeter_headroom_known{budget="box",unit="tokens"} 0`,
		`tripmeter_tenant_calls_total{tenant="(rest)"} 0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^(\S+) (\S+)$`).FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(m[2], "-") || strings.Contains(m[2], "e+1") || strings.Contains(m[2], "NaN") {
			t.Errorf("%s is %s", m[1], m[2])
		}
	}
}

// The counts agree with the calls: four at one a second.
func TestScrapeAfterCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, rt, provider := setup(t, meter.Options{}, providertest.Options{Output: providertest.Constant(10)})
		provider.Script(providertest.Step{Kind: providertest.Refuse, RetryAfter: 2 * time.Second})
		for range 4 {
			post(t, rt)
		}
		want := `
# HELP tripmeter_attempts_total Attempts on the wire, by how they ended.
# TYPE tripmeter_attempts_total counter
tripmeter_attempts_total{budget="box",outcome="client_error"} 0
tripmeter_attempts_total{budget="box",outcome="no_response"} 0
tripmeter_attempts_total{budget="box",outcome="overloaded"} 0
tripmeter_attempts_total{budget="box",outcome="rate_limited"} 1
tripmeter_attempts_total{budget="box",outcome="server_error"} 0
tripmeter_attempts_total{budget="box",outcome="success"} 4
# HELP tripmeter_pause_asked_seconds_total The lengths of all pauses that were asked for. They may overlap.
# TYPE tripmeter_pause_asked_seconds_total counter
tripmeter_pause_asked_seconds_total{budget="box"} 2
# HELP tripmeter_tokens_used_total Tokens of calls that reported their usage, as reported.
# TYPE tripmeter_tokens_used_total counter
tripmeter_tokens_used_total{budget="box",direction="input"} 20
tripmeter_tokens_used_total{budget="box",direction="output"} 40
`
		c := prommeter.New(m, prommeter.Options{})
		if err := testutil.CollectAndCompare(c, strings.NewReader(want), "tripmeter_attempts_total", "tripmeter_pause_asked_seconds_total", "tripmeter_tokens_used_total"); err != nil {
			t.Error(err)
		}
		text := scrape(t, m, prommeter.Options{})
		for _, want := range []string{
			`gen_ai_client_operation_duration_seconds_count{error_type="",gen_ai_operation_name="chat",gen_ai_provider_name="box"} 4`,
			`gen_ai_client_operation_time_to_first_chunk_seconds_count{gen_ai_operation_name="chat",gen_ai_provider_name="box"} 0`,
			`tripmeter_wait_mean_seconds{budget="box"} 0.75`,
			`gen_ai_client_token_usage_sum{gen_ai_operation_name="chat",gen_ai_provider_name="box",gen_ai_token_type="output"} 40`,
		} {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("no %s in\n%s", want, text)
			}
		}
		latest := scrape(t, m, prommeter.Options{GenAI: meter.Latest})
		if !strings.Contains(latest, `gen_ai_client_inference_usage_output_tokens_total{gen_ai_operation_name="chat",gen_ai_provider_name="box"} 40`) || strings.Contains(latest, "gen_ai_client_token_usage") ||
			!strings.Contains(latest, "gen_ai_client_inference_time_to_first_chunk_seconds_count") {
			t.Error("the latest conventions have other names")
		}
	})
}

func TestNamesPassTheLinter(t *testing.T) {
	m, rt, _ := setup(t, meter.Options{}, providertest.Options{})
	post(t, rt)
	p := promlint.New(strings.NewReader(scrape(t, m, prommeter.Options{})))
	problems, err := p.Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// A tenant's name that is no UTF-8 does not cost the scrape; a thousand tenants
// are twenty series and the rest.
func TestTenantsAreBounded(t *testing.T) {
	m := meter.New(meter.Options{Tenant: func(r *http.Request) string { return r.Host }})
	tr := m.Trace("a")
	for i := range 1000 {
		r := &http.Request{Host: fmt.Sprintf("\xff%d", i)}
		tr.Queued(r, limit.Cost{Requests: 1})
		tr.Granted(r, limit.Cost{Requests: 1}, 0)
	}
	text := scrape(t, m, prommeter.Options{})
	if n := strings.Count(text, "\ntripmeter_tenant_calls_total{"); n != 21 {
		t.Errorf("%d series of tenants, want 21", n)
	}
	if !strings.Contains(text, `tripmeter_tenant_calls_total{tenant="(rest)"} 980`) {
		t.Error("the rest is not 980")
	}
}

// What one scrape costs; between scrapes the exporter does nothing.
func BenchmarkScrape(b *testing.B) {
	m, rt, _ := setup(b, meter.Options{}, providertest.Options{})
	post(b, rt)
	c := prommeter.New(m, prommeter.Options{})
	b.ReportAllocs()
	for b.Loop() {
		testutil.CollectAndCount(c)
	}
}

func Example() {
	m := meter.New(meter.Options{})
	rt, err := transport.New(transport.Options{RPM: 500, Trace: m.Trace("openai")})
	if err != nil {
		fmt.Println(err)
		return
	}
	m.Watch("openai", rt)
	reg := prometheus.NewRegistry()
	reg.MustRegister(prommeter.New(m, prommeter.Options{}))
	families, err := reg.Gather()
	fmt.Println(len(families) > 30, err)
	// Output: true <nil>
}

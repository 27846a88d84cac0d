package otelmeter_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/meter"
	"github.com/tripmeter/tripmeter/otelmeter"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"
)

func request(ctx context.Context) *http.Request {
	r, err := http.NewRequestWithContext(ctx, "POST", "http://api.openai.com/v1/chat/completions?key=secret",
		strings.NewReader(`{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"a private prompt"}]}`))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bearer secret")
	return r
}

func send(t *testing.T, rt http.RoundTripper, r *http.Request) {
	resp, err := rt.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Request != r {
		t.Error("the response names another request")
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

// collect reads a whole export: name to metric.
func collect(t *testing.T, m *meter.Meter, o otelmeter.Options) map[string]metricdata.Metrics {
	reader := metric.NewManualReader(metric.WithProducer(otelmeter.NewProducer(m, o)))
	p := metric.NewMeterProvider(metric.WithReader(reader))
	defer p.Shutdown(t.Context())
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	out := map[string]metricdata.Metrics{}
	for _, s := range rm.ScopeMetrics {
		if s.Scope.Name != otelmeter.ScopeName {
			t.Errorf("scope %q", s.Scope.Name)
		}
		for _, m := range s.Metrics {
			out[m.Name] = m
		}
	}
	return out
}

func TestMetricsOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := providertest.New(providertest.Options{Output: providertest.Constant(10)})
		if err != nil {
			t.Fatal(err)
		}
		m := meter.New(meter.Options{})
		rt, err := transport.New(transport.Options{Base: p.RoundTripper(), RPM: 60, Burst: time.Second, Trace: m.Trace("box")})
		if err != nil {
			t.Fatal(err)
		}
		m.Watch("box", rt)
		for name, v := range collect(t, m, otelmeter.Options{}) { // there at the start, at 0
			if strings.HasPrefix(name, "gen_ai.") {
				continue
			}
			switch d := v.Data.(type) {
			case metricdata.Sum[float64]:
				if len(d.DataPoints) == 0 && !strings.HasPrefix(name, "tripmeter.scope") || !d.IsMonotonic {
					t.Errorf("%s has no series", name)
				}
				for _, p := range d.DataPoints {
					if p.Value != 0 {
						t.Errorf("%s starts at %v", name, p.Value)
					}
				}
			}
		}
		for range 3 {
			send(t, rt, request(t.Context()))
		}
		got := collect(t, m, otelmeter.Options{})
		wait := got["tripmeter.wait"].Data.(metricdata.Histogram[float64]).DataPoints[0]
		if wait.Count != 3 || wait.Sum != 2 || got["tripmeter.wait"].Unit != "s" {
			t.Errorf("waits: %d, sum %v s; want 3 of 2 s in all", wait.Count, wait.Sum)
		}
		if v := got["tripmeter.pacing"].Data.(metricdata.Sum[float64]).DataPoints[0].Value; v != 2 {
			t.Errorf("pacing %v s, want 2", v)
		}
		usage := got["gen_ai.client.token.usage"].Data.(metricdata.Histogram[float64]).DataPoints
		if len(usage) != 2 || usage[1].Sum != 30 || !usage[1].Attributes.HasValue("gen_ai.token.type") {
			t.Errorf("token usage %+v", usage)
		}
		if v, _ := usage[0].Attributes.Value("gen_ai.provider.name"); v.AsString() != "openai" {
			t.Errorf("provider %q", v.AsString())
		}
		d := got["gen_ai.client.operation.duration"].Data.(metricdata.Histogram[float64]).DataPoints[0]
		if _, ok := got["tripmeter.wait.mean"].Data.(metricdata.Gauge[float64]); !ok || got["gen_ai.client.operation.time_to_first_chunk"].Name == "" {
			t.Error("the mean wait or the time to the first chunk is missing")
		}
		if d.Count != 3 || d.Attributes.HasValue("error.type") {
			t.Errorf("duration %+v", d)
		}
	})
}

func TestSwitchOfTheConventions(t *testing.T) {
	m := meter.New(meter.Options{})
	m.Trace("box")
	if got := collect(t, m, otelmeter.Options{}); got["gen_ai.client.operation.duration"].Name == "" && len(got) == 0 {
		t.Error("nothing is exported")
	}
	t.Setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "http,gen_ai_latest_experimental")
	r := request(t.Context())
	tr := m.Trace("box")
	tr.Queued(r, limit.Cost{Requests: 1})
	tr.Granted(r, limit.Cost{}, 0)
	tr.Settled(transport.Settlement{Request: r, Status: 429, FirstChunk: 250 * time.Millisecond, Usage: transport.Usage{Input: 3, Output: 4, CachedInput: 2, Found: true}})
	got := collect(t, m, otelmeter.Options{})
	if got["gen_ai.client.token.usage"].Name != "" || got["gen_ai.client.operation.duration"].Name != "" {
		t.Error("the old names are there too")
	}
	for name, want := range map[string]float64{"input_tokens": 3, "output_tokens": 4, "cache_read.input_tokens": 2} {
		s, ok := got["gen_ai.client.inference.usage."+name].Data.(metricdata.Sum[float64])
		if !ok || s.DataPoints[0].Value != want {
			t.Errorf("%s is %+v, want %v", name, s, want)
		}
	}
	if h, ok := got["gen_ai.client.inference.time_to_first_chunk"].Data.(metricdata.Histogram[float64]); !ok || h.DataPoints[0].Count != 1 || h.DataPoints[0].Sum != .25 {
		t.Errorf("time to the first chunk: %+v", h)
	}
	d := got["gen_ai.client.inference.duration"].Data.(metricdata.Histogram[float64]).DataPoints[0]
	if v, _ := d.Attributes.Value("error.type"); v.AsString() != "429" {
		t.Errorf("error.type %q", v.AsString())
	}
}

// One span for the logical call: two attempts are two events, and the span ends
// with the body, not with the header.
func TestSpanCoversTheLogicalCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := tracetest.NewSpanRecorder()
		tp := trace.NewTracerProvider(trace.WithSpanProcessor(rec))
		p, err := providertest.New(providertest.Options{Output: providertest.Constant(10)})
		if err != nil {
			t.Fatal(err)
		}
		p.Script(providertest.Step{Kind: providertest.Refuse, RetryAfter: 5 * time.Second})
		spans := otelmeter.NewSpans(otelmeter.Options{TracerProvider: tp})
		var inner string // the span that the base sees
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			inner = oteltrace.SpanContextFromContext(r.Context()).SpanID().String()
			return p.RoundTripper().RoundTrip(r)
		})
		rt, err := transport.New(transport.Options{Base: base, RPM: 600, Trace: spans.Trace()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, parent := tp.Tracer("test").Start(t.Context(), "parent")
		r := request(ctx)
		resp, err := spans.Wrap(rt).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if len(rec.Ended()) != 0 {
			t.Fatal("the span ended before the body")
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		ended := rec.Ended()
		if len(ended) != 1 {
			t.Fatalf("%d spans", len(ended))
		}
		s := ended[0]
		if s.Name() != "chat" || s.Parent().SpanID() != parent.SpanContext().SpanID() || s.EndTime().Sub(s.StartTime()) < 5*time.Second {
			t.Errorf("span %q of %v", s.Name(), s.EndTime().Sub(s.StartTime()))
		}
		if inner != s.SpanContext().SpanID().String() {
			t.Error("what happens below is no child of the call's span")
		}
		var attempts []map[attribute.Key]attribute.Value
		for _, e := range s.Events() {
			if e.Name == "attempt" {
				m := map[attribute.Key]attribute.Value{}
				for _, kv := range e.Attributes {
					m[kv.Key] = kv.Value
				}
				attempts = append(attempts, m)
			}
		}
		if len(attempts) != 2 || attempts[0]["http.response.status_code"].AsInt64() != 429 || attempts[1]["http.request.resend_count"].AsInt64() != 1 {
			t.Errorf("attempts %v", attempts)
		}
		if _, ok := attempts[0]["http.request.resend_count"]; ok {
			t.Error("the first attempt has a resend_count")
		}
		text := fmt.Sprintf("%v %v", s.Attributes(), s.Events())
		for _, secret := range []string{"secret", "private", "Bearer", "?"} {
			if strings.Contains(text, secret) {
				t.Errorf("the span tells %q: %s", secret, text)
			}
		}
		if !strings.Contains(text, "gen_ai.usage.output_tokens") {
			t.Errorf("no usage in %s", text)
		}
	})
}

// Spans end with every outcome of a call.
func TestSpansAlwaysEnd(t *testing.T) {
	rec := tracetest.NewSpanRecorder()
	tp := trace.NewTracerProvider(trace.WithSpanProcessor(rec))
	spans := otelmeter.NewSpans(otelmeter.Options{TracerProvider: tp})
	broken := errors.New("broken")
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, broken
	})
	for _, c := range []struct {
		name string
		o    transport.Options
	}{
		{"connection", transport.Options{Attempts: 1}},
		{"refused locally", transport.Options{TPM: 1, Burst: time.Second}},
		{"skipped", transport.Options{Skip: func(*http.Request) bool { return true }}},
	} {
		o := c.o
		o.Base, o.Trace = base, spans.Trace()
		rt, err := transport.New(o)
		if err != nil {
			t.Fatal(err)
		}
		before := len(rec.Ended())
		if _, err := spans.Wrap(rt).RoundTrip(request(t.Context())); err == nil {
			t.Errorf("%s: no error", c.name)
		}
		if ended := rec.Ended(); len(ended) != before+1 || ended[before].Status().Code != codes.Error {
			t.Errorf("%s: %d spans ended, want 1 with an error", c.name, len(ended)-before)
		}
	}
	func() {
		defer func() { recover() }()
		spans.Wrap(roundTripper(func(*http.Request) (*http.Response, error) { panic("below") })).RoundTrip(request(t.Context()))
	}()
	if len(rec.Started()) != len(rec.Ended()) {
		t.Errorf("%d spans started, %d ended", len(rec.Started()), len(rec.Ended()))
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func Example() {
	m := meter.New(meter.Options{})
	reader := metric.NewManualReader(metric.WithProducer(otelmeter.NewProducer(m, otelmeter.Options{})))
	metrics := metric.NewMeterProvider(metric.WithReader(reader))
	defer metrics.Shutdown(context.Background())

	spans := otelmeter.NewSpans(otelmeter.Options{})
	rt, err := transport.New(transport.Options{RPM: 500, Trace: meter.Join(m.Trace("openai"), spans.Trace())})
	if err != nil {
		fmt.Println(err)
		return
	}
	m.Watch("openai", rt)
	client := &http.Client{Transport: spans.Wrap(rt)}
	_ = client

	var out metricdata.ResourceMetrics
	err = reader.Collect(context.Background(), &out)
	fmt.Println(len(out.ScopeMetrics[0].Metrics) > 30, err)
	// Output: true <nil>
}

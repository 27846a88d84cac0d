package meter_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/meter"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

// A Meter without Options.Tenant shows the tenants that the Transport knows, from
// every source, and who asked for a pause.
func TestATransportNamesTenantsAndPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := providertest.New(providertest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		p.Script(providertest.Step{Kind: providertest.Refuse, RetryAfter: 3 * time.Second})
		m := meter.New(meter.Options{})
		rt, err := transport.New(transport.Options{
			Base: p.RoundTripper(), RPM: 600, Trace: m.Trace("box"),
			Scopes: transport.Scopes{Tenant: func(r *http.Request) string { return r.Header.Get("X-Team") }},
		})
		if err != nil {
			t.Fatal(err)
		}
		m.Watch("box", rt)
		own, err := rt.Tenant("own", transport.TenantOptions{})
		if err != nil {
			t.Fatal(err)
		}
		send := func(rt http.RoundTripper, context, header string) {
			ctx := t.Context()
			if context != "" {
				ctx = transport.WithTenant(ctx, context)
			}
			req, err := http.NewRequestWithContext(ctx, "POST", "http://box.example/v1/chat/completions",
				strings.NewReader(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Team", header)
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		send(rt, "", "")
		send(rt, "context", "header")
		send(rt, "", "header")
		send(own, "context", "header")

		s := m.Read(10, 0)
		got := map[string]int64{}
		for _, t := range s.Tenants {
			got[t.Name] = t.Settled
		}
		for _, name := range []string{"", "context", "header", "own"} {
			if got[name] != 1 {
				t.Errorf("tenant %q settled %d calls, want 1: %v", name, got[name], got)
			}
		}
		if b := s.Budgets[0]; b.Paused != 1 || len(b.Askers) != 1 || b.Askers[0] != (meter.Asker{By: "box.example", Pauses: 1}) {
			t.Errorf("%d pauses, by %v", b.Paused, b.Askers)
		}
		if e := s.Events[len(s.Events)-1]; e.By != "box.example" || e.Why != "it named a wait of 3s" || e.For != 3*time.Second {
			t.Errorf("the event says %+v", e)
		}
	})
}

// The first chunk of a stream is timed from the attempt that brought it, under the
// names of both conventions; an answer that is none has no such time. The mean wait
// is of the last minute.
func TestFirstChunkAndMeanWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := providertest.New(providertest.Options{Latency: func(providertest.Call) providertest.Timing {
			return providertest.Timing{FirstByte: 300 * time.Millisecond, PerToken: time.Second}
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		m := meter.New(meter.Options{})
		rt, err := transport.New(transport.Options{Base: p.RoundTripper(), RPM: 60, Burst: time.Second, Trace: m.Trace("box")})
		if err != nil {
			t.Fatal(err)
		}
		for _, stream := range []string{"true", "true", "false"} {
			resp, err := (&http.Client{Transport: rt}).Post("http://box/v1/chat/completions", "application/json",
				strings.NewReader(`{"model":"m","stream":`+stream+`,"max_tokens":5,"messages":[{"role":"user","content":"Hi"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		for set, name := range map[meter.GenAI]string{
			meter.Stable: "gen_ai.client.operation.time_to_first_chunk", meter.Latest: "gen_ai.client.inference.time_to_first_chunk",
		} {
			found := false
			for _, v := range m.Metrics(set) {
				if v.Name == name {
					found = true
					if h := v.Points[0].Histogram; h.Count != 2 || h.Sum < .6 || h.Sum > 2.7 {
						t.Errorf("%s: %d streams, %v s", name, h.Count, h.Sum)
					}
				}
			}
			if !found {
				t.Errorf("there is no %s", name)
			}
		}
		mean := func() time.Duration { return m.Read(0, 0).Budgets[0].MeanWait }
		before := m.Read(0, 0).Budgets[0].Wait
		if want, _ := before.Mean(); mean().Seconds() < want-.001 || mean().Seconds() > want+.001 {
			t.Errorf("mean wait %v, want %v s", mean(), want)
		}
		time.Sleep(2 * time.Minute)
		if mean() != 0 {
			t.Errorf("mean wait %v after two idle minutes", mean())
		}
	})
}

// At most seventeen askers of pauses are kept apart, and no pause is lost.
func TestAskersAreBounded(t *testing.T) {
	m := meter.New(meter.Options{})
	tr := m.Trace("box")
	for i := range 100 {
		tr.Paused(&http.Request{}, limit.Pause{By: strings.Repeat("x", i), For: time.Second})
	}
	tr.Paused(&http.Request{}, limit.Pause{By: "the provider"})
	var sum int64
	b := m.Read(0, 0).Budgets[0]
	for _, a := range b.Askers {
		sum += a.Pauses
	}
	if last := b.Askers[len(b.Askers)-1]; sum != 101 || len(b.Askers) != 17 || last.By != meter.Rest || b.Askers[0] != (meter.Asker{By: "provider", Pauses: 2}) {
		t.Errorf("%d of 101 pauses: %v", sum, b.Askers)
	}
}

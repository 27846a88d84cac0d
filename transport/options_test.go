package transport_test

import (
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// One rule for every number: zero is unset, and a negative one is an error of
// New that names its field. A number that is added later is held to it too.
// Report: GEMISIS/leviath#712, kenellorando/cadence#248
// Report: cadence-workflow/cadence#6468, theopenco/llmgateway#4140
func TestZeroIsUnsetAndNegativeIsAnError(t *testing.T) {
	zero := gate(t, transport.Options{Base: script("200")})
	for range 1000 {
		if status, _, err := finish(zero.RoundTrip(ask(t, t.Context(), letter))); status != 200 || err != nil {
			t.Fatal(status, err)
		}
	}
	fields := 0
	var visit func(path string, at []int, typ reflect.Type)
	visit = func(path string, at []int, typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			index := append(append([]int(nil), at...), i)
			switch f.Type.Kind() {
			case reflect.Int, reflect.Int64:
				fields++
				var o transport.Options
				reflect.ValueOf(&o).Elem().FieldByIndex(index).SetInt(-1)
				if path == "" && o.Provider.Name == "" && reflect.ValueOf(o.Provider).IsZero() || path == "Retry." || path == "Scopes." {
					_, err := transport.New(o)
					if err == nil || !strings.Contains(err.Error(), f.Name) {
						t.Errorf("%s%s = -1: error %v does not name it", path, f.Name, err)
					}
				}
			case reflect.Struct:
				if f.Name == "Retry" || f.Name == "Scopes" {
					visit(f.Name+".", index, f.Type)
				}
			}
		}
	}
	visit("", nil, reflect.TypeFor[transport.Options]())
	if fields < 15 {
		t.Errorf("only %d numbers were tried", fields)
	}
}

type noCounter struct{ panicCounter }

// Options that contradict one another are an error that names one of them.
func TestContradictionsAreErrors(t *testing.T) {
	l, err := limit.New(limit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]transport.Options{
		"Scopes.Budget":  {Scopes: transport.Scopes{Budget: over(t, l)}, TPM: 1},
		"Retry.Attempts": {Attempts: 2, Retry: retry.Options{Attempts: 3}},
		"Rule.Charge":    {Provider: profile.Unknown().Charging(9)},
		"Provider.Name":  {Provider: profile.Profile{Rule: estimate.Rule{ReserveCap: true}}},
		"MinBackoff":     {Retry: retry.Options{MinBackoff: 2, MaxBackoff: 1}},
		"transport: Options.RPD is 1000000000000000: must be at most 1000000000000":           {RPD: 1e15},
		"transport: Options.Scopes.BatchFloor is 101: must be from 0 to 100":                  {Scopes: transport.Scopes{BatchFloor: 101}},
		"transport: Options.Scopes.Models[1].Names is empty: name a model":                    {Scopes: transport.Scopes{Models: []transport.ModelOptions{{Names: []string{"a"}}, {}}}},
		"transport: Options.Scopes.Models[0].RPM is -1: must not be negative":                 {Scopes: transport.Scopes{Models: []transport.ModelOptions{{Names: []string{"a"}, RPM: -1}}}},
		"transport: Options.Scopes.Models[0].OutputTPM is 2000000000000: must be at most":     {Scopes: transport.Scopes{Models: []transport.ModelOptions{{Names: []string{"a"}, OutputTPM: 2e12}}}},
		"transport: Options.Scopes.Models[0].MaxInFlight is -1: must not be negative":         {Scopes: transport.Scopes{Models: []transport.ModelOptions{{Names: []string{"a"}, MaxInFlight: -1}}}},
		"transport: Options.Base is a nil *http.Transport: make it first, or leave the field": {Base: (*http.Transport)(nil)},
		"transport: Options.Counter is a nil *transport_test.noCounter: make it first":        {Counter: (*noCounter)(nil)},
		"Limits[1]": {RPM: 1, Limits: []limit.Limit{{Rate: limit.Rate{N: 1}}}},
	} {
		if _, err := transport.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}

// Report: BerriAI/litellm#2153
func TestOneLimitAloneIsEnough(t *testing.T) {
	for name, o := range map[string]transport.Options{"tokens": {TPM: 6000}, "requests": {RPM: 60}} {
		synctest.Test(t, func(t *testing.T) {
			o.Base = script("429;Retry-After=0 200")
			o.Base = script("bare")
			rt := gate(t, o)
			start := time.Now()
			for range 20 {
				if status, _, err := finish(rt.RoundTrip(ask(t, t.Context(), letter))); status != 200 || err != nil {
					t.Fatal(name, status, err)
				}
			}
			// 60 requests a minute: 19 s behind the first. 6000 tokens a minute, 1000
			// at once: 20 letters of 112 are 2240, so about 12 s.
			want := map[string]time.Duration{"tokens": 12 * time.Second, "requests": 19 * time.Second}[name]
			if d := time.Since(start); d < want-time.Second || d > want+time.Second {
				t.Errorf("%s: 20 calls in %v", name, d)
			}
		})
	}
}

// Every request that goes through the transport is counted, unless Skip says not.
// Report: langchain-ai/langchain#28573
func TestEveryRequestIsLimitedUnlessSkipped(t *testing.T) {
	requests := map[string]func() *http.Request{
		"chat":       func() *http.Request { return ask(t, t.Context(), letter) },
		"embeddings": post2("/v1/embeddings", "application/json", `{"model":"text-embedding-3-small","input":"some text"}`),
		"models": func() *http.Request {
			r, _ := http.NewRequest("GET", "https://api.example.com/v1/models", nil)
			return r
		},
		"head": func() *http.Request { r, _ := http.NewRequest("HEAD", "https://api.example.com/", nil); return r },
		"delete": func() *http.Request {
			r, _ := http.NewRequest("DELETE", "https://api.example.com/v1/files/x", nil)
			return r
		},
		"file":    post2("/v1/files", "multipart/form-data; boundary=x", "--x--"),
		"audio":   post2("/v1/audio/transcriptions", "multipart/form-data; boundary=x", "--x--"),
		"unknown": post2("/v2/anything", "text/plain", "no JSON"),
	}
	for name, make := range requests {
		w := script("200")
		rt := gate(t, transport.Options{Base: w, Limits: slow(100, 1e6)})
		finish(rt.RoundTrip(make()))
		if got := spent(rt).Requests; got != 1 {
			t.Errorf("%s: %d requests counted", name, got)
		}
		skip := gate(t, transport.Options{Base: w, Limits: slow(100, 1e6), Skip: func(r *http.Request) bool { return true }})
		finish(skip.RoundTrip(make()))
		if got := spent(skip); got != (limit.Cost{}) || w.attempts() != 2 {
			t.Errorf("%s, skipped: %v, %d attempts", name, got, w.attempts())
		}
	}
	// A request that has no prompt costs no tokens.
	rt := gate(t, transport.Options{Base: script("bare"), Limits: slow(100, 1e6)})
	finish(rt.RoundTrip(requests["models"]()))
	if got := spent(rt); got != (limit.Cost{Requests: 1}) {
		t.Errorf("models: charged %v", got)
	}
}

func post2(path, contentType, body string) func() *http.Request {
	return func() *http.Request {
		r, _ := http.NewRequest("POST", "https://api.example.com"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		return r
	}
}

// Options stay few: these are the figures, and one that grows needs a reason here.
// A knob is an exported field of Options or of a struct of this module that its
// fields hold, at any depth. At commit b800c13 they were
//
//	Options 23, Limits 8, Provider 27, Retry 13, Trace 9
//
// Scopes came with several models, keys and tenants in one client. Limits and
// Provider are data, which profiles and answers fill in: they grew by the law of a
// limit, by endpoints and by dialects.
func TestOptionsAreFew(t *testing.T) {
	knobs := map[string]int{}
	seen := map[reflect.Type]bool{}
	var visit func(part string, typ reflect.Type)
	visit = func(part string, typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Array || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] || !strings.Contains(typ.PkgPath(), "tripmeter") {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			if f := typ.Field(i); f.IsExported() {
				part := part
				if part == "" {
					knobs["Options"]++
					visit(f.Name, f.Type)
					continue
				}
				knobs[part]++
				visit(part, f.Type)
			}
		}
	}
	visit("", reflect.TypeFor[transport.Options]())
	want := map[string]int{"Options": 22, "Scopes": 18, "Limits": 21, "Provider": 46, "Retry": 14, "Trace": 11}
	if !maps.Equal(knobs, want) {
		t.Errorf("the knobs are %v, not %v: fold or drop a field before one is added", knobs, want)
	}
}

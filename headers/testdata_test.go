package headers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"sort"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/internal/retryafter"
)

// entry is one response of testdata/headers.json: observed, documented, or made
// for a trap. A field that Expect lacks must be unknown.
type entry struct {
	ID, Provider, Kind, Source, Notes string
	Status                            int
	Headers                           map[string]any // a string or a list of field lines
	ObservedAt                        time.Time      `json:"observed_at"`
	Body                              string
	Saturates                         bool
	Expect                            expectation
}

type expectQuota struct {
	Limit     *int64   `json:"limit"`
	Remaining *int64   `json:"remaining"`
	Reset     *float64 `json:"reset_after_s"`
	Window    float64  `json:"window_s"`
	Inferred  float64  `json:"inferred_window_s"`
}

type expectation struct {
	Requests    expectQuota            `json:"requests"`
	Tokens      expectQuota            `json:"tokens"`
	Input       expectQuota            `json:"input_tokens"`
	Output      expectQuota            `json:"output_tokens"`
	Other       map[string]expectQuota `json:"other"`
	Windows     []expectWindow         `json:"windows"`
	Policies    []expectPolicy         `json:"policies"`
	RetryAfter  *float64               `json:"retry_after_s"`
	Saturates   bool                   `json:"saturates"`
	Applies     *bool                  `json:"retry_after_applies"`
	ShouldRetry *bool                  `json:"should_retry"`
	QueryCost   json.RawMessage        `json:"query_cost"`         // on record, and read by nobody
	BodyHeaders json.RawMessage        `json:"body_headers"`       // internal/refusal reads it
	BodyWait    json.RawMessage        `json:"body_retry_after_s"` // internal/refusal reads it
}

type expectWindow struct {
	Dimension string `json:"dimension"`
	Name      string `json:"window"`
	expectQuota
}

type expectPolicy struct {
	Name      string `json:"name"`
	Quota     *int64 `json:"quota"`
	Unit      string `json:"unit"`
	Partition string `json:"partition"`
	expectQuota
}

func loadEntries(t testing.TB) []entry {
	data, err := os.ReadFile("testdata/headers.json")
	if err != nil {
		t.Fatal(err)
	}
	var entries []entry
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields() // an expectation that is not compared is no test
	if err := d.Decode(&entries); err != nil {
		t.Fatal(err)
	}
	if len(entries) == 0 {
		t.Fatal("testdata/headers.json has no entry")
	}
	return entries
}

func (e entry) header() http.Header {
	h := http.Header{}
	for name, value := range e.Headers {
		switch v := value.(type) {
		case string:
			h.Add(name, v)
		case []any:
			for _, line := range v {
				h.Add(name, line.(string))
			}
		default:
			panic(fmt.Sprintf("%s: header %s is a %T", e.ID, name, value))
		}
	}
	return h
}

func (e entry) options() Options {
	return Options{Status: e.Status, Now: e.ObservedAt, Dialect: dialects[e.Provider]}
}

func TestEntries(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range loadEntries(t) {
		if seen[e.ID] {
			t.Errorf("the id %s is there twice", e.ID)
		}
		seen[e.ID] = true
		t.Run(e.ID, func(t *testing.T) {
			// Twenty times, since a map is visited in another order each time.
			for range 20 {
				c := checker{t: t, saturates: e.Saturates || e.Expect.Saturates}
				c.info("", Parse(e.header(), e.options()), e.Expect)
				if t.Failed() {
					t.Logf("header %v, %s", e.header(), e.Notes)
					return
				}
			}
		})
	}
}

type checker struct {
	t         *testing.T
	saturates bool
}

func (c checker) info(at string, got Info, want expectation) {
	c.t.Helper()
	c.quota(at+"requests", got.Requests, want.Requests)
	c.quota(at+"tokens", got.Tokens, want.Tokens)
	c.quota(at+"input_tokens", got.Input, want.Input)
	c.quota(at+"output_tokens", got.Output, want.Output)

	if len(got.Other) != len(want.Other) {
		c.t.Errorf("%sother: %+v, want %d of them", at, got.Other, len(want.Other))
	}
	for _, o := range got.Other {
		w, ok := want.Other[o.Name]
		if !ok {
			c.t.Errorf("%sother: %+v is not expected", at, o)
		}
		c.quota(at+"other."+o.Name, o.Quota, w)
	}

	sort.SliceStable(want.Windows, func(i, j int) bool {
		a, b := want.Windows[i], want.Windows[j]
		if a.Dimension != b.Dimension {
			return a.Dimension < b.Dimension
		}
		return a.Name < b.Name || a.Name == b.Name && a.Window < b.Window
	})
	if len(got.Windows) != len(want.Windows) {
		c.t.Errorf("%swindows: %+v, want %d of them", at, got.Windows, len(want.Windows))
	} else {
		for i, w := range want.Windows {
			if got.Windows[i].Dimension != w.Dimension || got.Windows[i].Name != w.Name {
				c.t.Errorf("%swindows[%d]: %+v, want %q %q", at, i, got.Windows[i], w.Dimension, w.Name)
			}
			c.quota(fmt.Sprintf("%swindows[%d]", at, i), got.Windows[i].Quota, w.expectQuota)
		}
	}

	if len(got.Policies) != len(want.Policies) {
		c.t.Errorf("%spolicies: %+v, want %d of them", at, got.Policies, len(want.Policies))
	} else {
		for i, w := range want.Policies {
			g := got.Policies[i]
			if g.Name != w.Name || g.Unit != w.Unit || g.Partition != w.Partition {
				c.t.Errorf("%spolicies[%d]: %+v, want %+v", at, i, g, w)
			}
			w.Limit = w.Quota
			c.quota(fmt.Sprintf("%spolicies[%d]", at, i), g.Quota, w.expectQuota)
		}
	}

	c.span(at+"retry_after_s", got.NotBefore, want.RetryAfter)
	if applies := want.Applies != nil && *want.Applies; got.Applies != applies {
		c.t.Errorf("%sretry_after_applies: %v, want %v", at, got.Applies, applies)
	}
	if w := (Flag{want.ShouldRetry != nil && *want.ShouldRetry, want.ShouldRetry != nil}); got.ShouldRetry != w {
		c.t.Errorf("%sshould_retry: %+v, want %+v", at, got.ShouldRetry, w)
	}
}

func (c checker) quota(at string, got Quota, want expectQuota) {
	c.t.Helper()
	c.count(at+".limit", got.Limit, want.Limit)
	c.count(at+".remaining", got.Remaining, want.Remaining)
	if c.saturates && want.Reset == nil && got.Reset.OK {
		// A huge reset may be dropped or cut off, never turn around.
		if got.Reset.D < retryafter.Max {
			c.t.Errorf("%s.reset_after_s: %v, want at least %v", at, got.Reset.D, retryafter.Max)
		}
	} else {
		c.span(at+".reset_after_s", got.Reset, want.Reset)
	}
	if got.Window != time.Duration(want.Window*1e9) {
		c.t.Errorf("%s.window_s: %v, want %v s", at, got.Window, want.Window)
	}
	if got.Inferred != time.Duration(want.Inferred*1e9) {
		c.t.Errorf("%s.inferred_window_s: %v, want %v s", at, got.Inferred, want.Inferred)
	}
}

func (c checker) count(at string, got Count, want *int64) {
	c.t.Helper()
	w := Count{}
	if want != nil {
		w = Count{*want, true}
	}
	if got != w {
		c.t.Errorf("%s: %+v, want %+v", at, got, w)
	}
}

func (c checker) span(at string, got Span, want *float64) {
	c.t.Helper()
	if got.OK != (want != nil) {
		c.t.Errorf("%s: %+v, want known to be %v", at, got, want != nil)
		return
	}
	if want == nil {
		return
	}
	if *want > retryafter.Max.Seconds() {
		if !c.saturates || got.D != retryafter.Max {
			c.t.Errorf("%s: %v, want %v", at, got.D, retryafter.Max)
		}
		return
	}
	if math.Abs(got.D.Seconds()-*want) > 0.001 {
		c.t.Errorf("%s: %v, want %v s", at, got.D, *want)
	}
}

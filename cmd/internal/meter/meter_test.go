package meter

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/providertest"
)

const body = `{"model":%q,"max_tokens":5,"messages":[{"role":"user","content":"Hello"}]}`

func ask(t testing.TB, m *Meter, model string) error {
	r, err := http.NewRequestWithContext(WithModel(t.Context(), model), "POST", "http://box/v1/chat/completions", strings.NewReader(fmt.Sprintf(body, model)))
	if err != nil {
		return err
	}
	resp, err := m.RoundTrip(r)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

func Example() {
	p, _ := providertest.New(providertest.Options{})
	m, err := New(Config{Base: p.RoundTripper(), Models: map[string]Limits{"small": {RPM: 60}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, _ := http.NewRequest("POST", "http://box/v1/chat/completions", strings.NewReader(fmt.Sprintf(body, "small")))
	resp, err := m.RoundTrip(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	for _, s := range m.State().Scopes {
		fmt.Println(s.Scope)
	}
	fmt.Println(ModelOf([]byte(`{"model":"small"}`), "/v1/chat/completions"))
	// Output:
	// box
	// box/small
	// small
}

// A model with limits of its own waits for them alone; the others share one
// budget, and made-up names share it too.
func TestModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := providertest.New(providertest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := New(Config{Base: p.RoundTripper(), Limits: Limits{RPM: 60}, Models: map[string]Limits{"small": {RPM: 6}}, Burst: time.Second, MaxWait: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for _, c := range []struct {
			model string
			at    time.Duration
		}{{"small", 0}, {"a", 0}, {"b", time.Second}, {"a", 2 * time.Second}, {"small", 10 * time.Second}} {
			if err := ask(t, m, c.model); err != nil || time.Since(start) != c.at {
				t.Errorf("%s at %v, want %v: %v", c.model, time.Since(start), c.at, err)
			}
		}
	})
}

// Two tenants ask for more than a limit holds. They get it by weight, a third
// stays within limits of its own, and calls that can wait go behind the others.
func TestTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := providertest.New(providertest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := New(Config{Base: p.RoundTripper(), Limits: Limits{RPM: 600}, Burst: time.Second, Tenants: map[string]Tenant{
			"light": {Weight: 1}, "heavy": {Weight: 3}, "bound": {Limits: Limits{RPM: 60}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 60*time.Second)
		defer stop()
		start := time.Now()
		var mu sync.Mutex
		served := map[string]int{}
		var all sync.WaitGroup
		for _, tenant := range []string{"light", "heavy", "bound", "later"} {
			for range 20 {
				all.Go(func() {
					for ctx.Err() == nil {
						r, err := http.NewRequestWithContext(WithCaller(ctx, strings.TrimSuffix(tenant, "later"), tenant == "later"), "POST",
							"http://box/v1/chat/completions", strings.NewReader(fmt.Sprintf(body, "m")))
						if err != nil {
							panic(err)
						}
						resp, err := m.RoundTrip(r)
						if err != nil {
							return // its turn would come after the minute
						}
						resp.Body.Close()
						// At first who comes first is served first; in the end some give up,
						// and others take what they leave.
						if d := time.Since(start); d < time.Second || d > 51*time.Second {
							continue
						}
						mu.Lock()
						served[tenant]++
						mu.Unlock()
					}
				})
			}
		}
		all.Wait()
		// 500 in 50 seconds: 51 to bound, a tenth to those that can wait, and the rest
		// one to three.
		for tenant, want := range map[string]int{"light": 100, "heavy": 300, "bound": 51, "later": 50} {
			if got := served[tenant]; got < want*17/20 || got > want*23/20 {
				t.Errorf("%s got %d, want about %d", tenant, got, want)
			}
		}
	})
}

// What cannot be is an error of New, and a refusal says what to do.
func TestErrors(t *testing.T) {
	for _, c := range []Config{{Provider: "nobody"}, {Charge: "maybe"}, {Limits: Limits{RPM: -1}}, {Models: map[string]Limits{"m": {TPM: -1}}}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	p, _ := providertest.New(providertest.Options{})
	m, err := New(Config{Base: p.RoundTripper(), Limits: Limits{RPM: 1, TPM: 100}, Burst: time.Minute, MaxWait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := ask(t, m, "m"); err != nil {
		t.Fatal(err)
	}
	if r, ok := RefusalOf(ask(t, m, "m")); !ok || r.TooLarge || r.Wait < 59*time.Second || r.Wait > time.Minute {
		t.Errorf("%+v, %v", r, ok)
	}
	if _, ok := RefusalOf(fmt.Errorf("something else")); ok {
		t.Error("an error of the base is taken for a refusal")
	}
}

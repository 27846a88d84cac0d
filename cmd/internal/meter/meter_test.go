package meter

import (
	"fmt"
	"net/http"
	"strings"
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
	for _, s := range m.State() {
		fmt.Printf("%q %d limits\n", s.Model, len(s.Limits))
	}
	fmt.Println(ModelOf([]byte(`{"model":"small"}`), "/v1/chat/completions"))
	// Output:
	// "" 0 limits
	// "small" 1 limits
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
		if n := len(m.State()); n != 2 {
			t.Errorf("%d budgets", n)
		}
	})
}

// With nothing configured each model has a budget, up to MaxModels.
func TestMadeUpModels(t *testing.T) {
	p, _ := providertest.New(providertest.Options{})
	m, err := New(Config{Base: p.RoundTripper()})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * MaxModels {
		if err := ask(t, m, fmt.Sprint("model-", i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(m.State()); n != MaxModels || !m.Idle() {
		t.Errorf("%d budgets, idle %v", n, m.Idle())
	}
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

package refusal

import (
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"
)

type fact struct {
	ID     string `json:"id"`
	Status int    `json:"status"`
	Body   string `json:"body"`
	Error  *struct {
		Class      string  `json:"class"`
		Retryable  bool    `json:"retryable"`
		Code       string  `json:"code"`
		Type       string  `json:"type"`
		StatusText string  `json:"status_text"`
		Limit      int64   `json:"limit"`
		Used       int64   `json:"used"`
		Requested  int64   `json:"requested"`
		WaitS      float64 `json:"wait_s"`
	} `json:"error"`
}

func facts(t testing.TB) []fact {
	t.Helper()
	b, err := os.ReadFile("../../usage/testdata/usage.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []fact
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestFacts holds Classify to every recorded refusal.
func TestFacts(t *testing.T) {
	ran := 0
	for _, e := range facts(t) {
		if e.Error == nil {
			continue
		}
		if e.Status < 400 && e.Body[0] != '{' {
			continue // an error inside a stream: the usage package finds it there
		}
		ran++
		t.Run(e.ID, func(t *testing.T) {
			v := Classify(e.Status, []byte(e.Body))
			w := e.Error
			if v.Class != w.Class || v.Retryable != w.Retryable {
				t.Errorf("class %q retryable %v, want %q %v", v.Class, v.Retryable, w.Class, w.Retryable)
			}
			if w.Code != "" && v.Code != w.Code || w.Type != "" && v.Type != w.Type || v.Status != w.StatusText {
				t.Errorf("code %q type %q status %q, want %q %q %q", v.Code, v.Type, v.Status, w.Code, w.Type, w.StatusText)
			}
			if v.Limit != w.Limit || v.Used != w.Used || v.Requested != w.Requested {
				t.Errorf("numbers %d %d %d, want %d %d %d", v.Limit, v.Used, v.Requested, w.Limit, w.Used, w.Requested)
			}
			if want := time.Duration(math.Round(w.WaitS*1e6)) * time.Microsecond; v.Wait != want {
				t.Errorf("wait %v, want %v", v.Wait, want)
			}
		})
	}
	if ran < 20 {
		t.Fatalf("ran %d entries", ran)
	}
}

package usage

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/internal/refusal"
)

// A fact is one recorded or documented response. In expect, a member that is
// missing must be unknown.
type fact struct {
	ID          string           `json:"id"`
	Provider    string           `json:"provider"`
	Status      int              `json:"status"`
	ContentType string           `json:"content_type"`
	Body        string           `json:"body"`
	Expect      map[string]any   `json:"expect"`
	Other       map[string]int64 `json:"other"`
	Decoded     bool             `json:"decoded"`
	Error       map[string]any   `json:"error"`
}

func facts(t testing.TB) []fact {
	t.Helper()
	b, err := os.ReadFile("testdata/usage.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []fact
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 90 {
		t.Fatalf("only %d facts", len(all))
	}
	return all
}

func known(members map[string]Count) map[string]int64 {
	m := map[string]int64{}
	for name, c := range members {
		if c.OK {
			m[name] = c.N
		} else if c.N != 0 {
			m[name+" (unknown, yet not 0)"] = c.N
		}
	}
	return m
}

func countsOf(c Counts) map[string]int64 {
	return known(map[string]Count{
		"input_tokens": c.Input, "output_tokens": c.Output, "total_tokens": c.Total,
		"cached_input_tokens": c.CachedInput, "cache_write_input_tokens": c.CacheWrite, "reasoning_tokens": c.Reasoning,
	})
}

func integers(t *testing.T, v any) map[string]int64 {
	m := map[string]int64{}
	for name, n := range v.(map[string]any) {
		f, ok := n.(float64)
		if !ok {
			t.Fatalf("%s is %v", name, n)
		}
		m[name] = int64(f)
	}
	return m
}

func TestFacts(t *testing.T) {
	refusals := 0
	for _, e := range facts(t) {
		t.Run(e.ID, func(t *testing.T) {
			got := Read(e.ContentType, "", []byte(e.Body))

			delete(e.Expect, "charge") // the facts about charges are tested where they are charged, in package budget
			want := integers(t, e.Expect)
			if counts := countsOf(got.Counts); !reflect.DeepEqual(counts, want) {
				t.Errorf("counts %v, want %v", counts, want)
			}
			if found := want["input_tokens"]+want["output_tokens"]+want["total_tokens"] > 0; got.Found != found {
				t.Errorf("found %v", got.Found)
			}
			if s, ok := e.Other["seconds"]; ok && got.AudioSeconds != (Count{s, true}) {
				t.Errorf("seconds %v, want %d", got.AudioSeconds, s)
			}

			checkRefusal(t, e, got)
			if e.Error != nil {
				refusals++
			}

			if e.Status == 200 && got.Complete != complete(e.ID) {
				t.Errorf("complete %v", got.Complete)
			}
		})
	}
	if refusals < 25 {
		t.Fatalf("compared %d refusals", refusals)
	}
}

// checkRefusal compares the verdict with the fact. If the error stands in a
// 200, the verdict is the meter's own. Else the status and the body give it
// together.
func checkRefusal(t *testing.T, e fact, got Result) {
	t.Helper()
	var v refusal.Verdict
	switch {
	case e.Status >= 400:
		v = refusal.Classify(e.Status, []byte(e.Body))
	case got.Refusal != nil:
		r := got.Refusal
		v = refusal.Verdict{
			Class: string(r.Class), Retryable: r.Retryable, Code: r.Code, Type: r.Type, Status: r.Status,
			Limit: r.Limit, Used: r.Used, Requested: r.Requested, Wait: r.Wait,
		}
	}
	if e.Error == nil {
		if v.Class != "" && v.Class != refusal.Server {
			t.Errorf("refusal %+v", v)
		}
		return
	}
	word := func(name string) string { s, _ := e.Error[name].(string); return s }
	number := func(name string) int64 { n, _ := e.Error[name].(float64); return int64(n) }
	if v.Class != word("class") || v.Retryable != e.Error["retryable"] {
		t.Errorf("class %q, retryable %v, want %v", v.Class, v.Retryable, e.Error)
	}
	if c := word("code"); c != "" && v.Code != c {
		t.Errorf("code %q, want %q", v.Code, c)
	}
	if c := word("type"); c != "" && v.Type != c {
		t.Errorf("type %q, want %q", v.Type, c)
	}
	if v.Status != word("status_text") || v.Limit != number("limit") || v.Used != number("used") || v.Requested != number("requested") {
		t.Errorf("%+v, want %v", v, e.Error)
	}
	seconds, _ := e.Error["wait_s"].(float64)
	if want := time.Duration(math.Round(seconds*1e6)) * time.Microsecond; v.Wait != want {
		t.Errorf("wait %v, want %v", v.Wait, want)
	}
}

// complete lists the 200s that do not say of themselves that they are over.
func complete(id string) bool {
	switch id {
	case "vllm-continuous-usage-cut", "body-truncated-json", "openai-speech-binary":
		return false
	}
	return true
}

// Bytes cut anywhere give what the whole gives.
func TestFactsInPieces(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	ran := 0
	for _, e := range facts(t) {
		for _, encoding := range []string{"", "gzip"} {
			body := []byte(e.Body)
			if encoding == "gzip" {
				body = gzipped(t, body)
			}
			want := Read(e.ContentType, encoding, body)
			if plain := Read(e.ContentType, "", []byte(e.Body)); !reflect.DeepEqual(want, plain) {
				t.Errorf("%s %s: %+v, plain %+v", e.ID, encoding, want, plain)
			}
			sizes := map[string]func() int{
				"one byte": func() int { return 1 },
				"two":      func() int { return 2 },
				"seven":    func() int { return 7 },
				"random":   func() int { return rnd.IntN(40) },
			}
			for name, size := range sizes {
				if got := inPieces(e.ContentType, encoding, body, size); !reflect.DeepEqual(got, want) {
					t.Errorf("%s %s, pieces %s: %+v, want %+v", e.ID, encoding, name, got, want)
				}
				ran++
			}
		}
	}
	if ran == 0 {
		t.Fatal("nothing ran")
	}
}

// inPieces feeds pieces from a buffer that is overwritten after each write, so
// that a piece that was kept would show.
func inPieces(contentType, encoding string, body []byte, size func() int) Result {
	m := NewMeter(contentType, encoding)
	for len(body) > 0 {
		n := min(size(), len(body))
		piece := append([]byte(nil), body[:n]...)
		m.Write(piece)
		for i := range piece {
			piece[i] = '"'
		}
		body = body[n:]
	}
	return m.Close()
}

// A body cut anywhere is never taken for more than its whole: each count is
// unknown, or one that some event of the whole had stated.
func TestFactsCut(t *testing.T) {
	for _, e := range facts(t) {
		if e.Error != nil || e.Status != 200 {
			continue
		}
		whole := Read(e.ContentType, "", []byte(e.Body))
		for n := range len(e.Body) {
			got := Read(e.ContentType, "", []byte(e.Body[:n]))
			for name, v := range countsOf(got.Counts) {
				if most, ok := countsOf(whole.Counts)[name]; !ok || v > most {
					t.Fatalf("%s cut at %d: %s %d, whole %v", e.ID, n, name, v, countsOf(whole.Counts))
				}
			}
			if got.OutputBytes > whole.OutputBytes {
				t.Fatalf("%s cut at %d: %d bytes of text, whole %d", e.ID, n, got.OutputBytes, whole.OutputBytes)
			}
			if got.Complete && strings.TrimSpace(e.Body[n:]) != "" && !strings.Contains(e.ContentType, "event") {
				t.Fatalf("%s cut at %d of %d is called complete", e.ID, n, len(e.Body))
			}
		}
	}
}

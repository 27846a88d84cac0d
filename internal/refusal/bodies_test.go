package refusal

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 9, 19, 12, 0, 0, 0, time.UTC)

// A recording is one refusal as a provider sends it.
type recording struct {
	Name, Source     string
	Status           int
	Body             string
	Class, Dimension string
	Retryable        bool
	Account          bool
	Wait             float64 `json:"wait_s"`
	Reset            float64 `json:"reset_s"`
	Stated           int64
	Window           float64 `json:"window_s"`
	Span             float64 `json:"span_s"`
	Wide             bool
	Header           map[string]string
}

func recordings(t testing.TB) []recording {
	t.Helper()
	b, err := os.ReadFile("testdata/bodies.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []recording
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 70 {
		t.Fatalf("only %d bodies", len(all))
	}
	return all
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

func TestEachRecordedBodyIsUnderstood(t *testing.T) {
	for _, r := range recordings(t) {
		t.Run(r.Name, func(t *testing.T) {
			if r.Source == "" {
				t.Error("it has no source")
			}
			h := http.Header{}
			for name, value := range r.Header {
				h.Set(name, value)
			}
			v := ClassifyWith(r.Status, []byte(r.Body), Options{Now: noon, Type: TypeOf(h)})
			if v.Span != seconds(r.Span) || v.Wide != r.Wide {
				t.Errorf("an allowance of %v, wide %v; want %v s, %v", v.Span, v.Wide, r.Span, r.Wide)
			}
			if v.Class != r.Class || v.Retryable != r.Retryable || v.Account != r.Account {
				t.Errorf("class %q, retryable %v, account %v; want %q, %v, %v", v.Class, v.Retryable, v.Account, r.Class, r.Retryable, r.Account)
			}
			if v.Wait != seconds(r.Wait) || v.Reset != seconds(r.Reset) && r.Reset != 0 {
				t.Errorf("wait %v, reset %v; want %v s, %v s", v.Wait, v.Reset, r.Wait, r.Reset)
			}
			if v.Dimension != r.Dimension || v.Stated != r.Stated || v.Window != seconds(r.Window) {
				t.Errorf("%d %q a %v; want %d %q a %v s", v.Stated, v.Dimension, v.Window, r.Stated, r.Dimension, r.Window)
			}
		})
	}
}

// Every spelling of a wait, in every place. The past is no wait.
func TestAWaitIsHeardInEveryPlaceAndSpelling(t *testing.T) {
	at := noon.Add(756 * time.Second)
	values := []struct {
		json string
		want time.Duration
	}{
		{`756`, 756 * time.Second}, {`"756"`, 756 * time.Second}, {`756.5`, 756500 * time.Millisecond}, {`"756s"`, 756 * time.Second},
		{`"12m36s"`, 756 * time.Second}, {`"12 minutes 36 seconds"`, 756 * time.Second},
		{fmt.Sprint(at.Unix()), 756 * time.Second}, {fmt.Sprint(at.UnixMilli()), 756 * time.Second},
		{fmt.Sprint(at.UnixMicro()), 756 * time.Second}, {fmt.Sprint(at.UnixNano()), 756 * time.Second},
		{`"` + fmt.Sprint(at.Unix()) + `"`, 756 * time.Second},
		{`"` + at.Format(time.RFC3339) + `"`, 756 * time.Second}, {`"` + at.Format(http.TimeFormat) + `"`, 756 * time.Second},
		{`"` + at.Format(time.RFC850) + `"`, 756 * time.Second}, {`"` + at.Format(time.ANSIC) + `"`, 756 * time.Second},
		{`"` + at.Format(time.DateTime) + `"`, 756 * time.Second}, {`"` + at.Format(time.RFC1123Z) + `"`, 756 * time.Second},
		{`"00:12:36"`, 756 * time.Second}, {`"PT12M36S"`, 756 * time.Second}, {`7.56e2`, 756 * time.Second},
		{`{"seconds":756}`, 756 * time.Second}, {`{"seconds":"755","nanos":5e8}`, 0}, {`{"seconds":"755","nanos":500000000}`, 755500 * time.Millisecond},
		{fmt.Sprintf(`{"seconds":%d}`, at.Unix()), 756 * time.Second}, {fmt.Sprintf("%.9e", float64(at.UnixMilli())), 756 * time.Second},
		{`1e999`, MaxWait}, {`-7e2`, 0}, {`{"seconds":-756}`, 0}, {`{"seconds":756,"nanos":-1}`, 0},
		{fmt.Sprint(noon.Unix() - 120), 0}, {`"` + noon.Add(-time.Hour).Format(time.RFC3339) + `"`, 0},
		{`-756`, 0}, {`null`, 0}, {`true`, 0}, {`"soon"`, 0}, {`[756]`, 0}, {`{}`, 0}, {`0`, 0}, {`""`, 0},
	}
	for _, name := range []string{"retry_after", "retryAfter", "retry-after", "resets_in_seconds", "resets_at", "reset_at", "resetAt", "retryDelay"} {
		for _, place := range []string{
			`{"error":{"message":"x","%s":%s}}`, `{"error":{"message":"x"},"%s":%s}`, `{"message":"x","%s":%s}`,
			`{"error":{"message":"x","metadata":{"%s":%s}}}`, `{"error":{"message":"x","details":{"%s":%s}}}`,
			`{"error":{"message":"x","details":[{"%s":%s}]}}`, `{"detail":{"message":"x","%s":%s}}`, `[{"error":{"%s":%s}}]`,
			`{"error":{"error":{"message":"x","%s":%s}}}`, `{"errors":[{"message":"x","extensions":{"%s":%s}}]}`, `{"message":"x","details":{"%s":%s}}`,
			`{"error":"x","data":{"%s":%s}}`, `{"error":{"details":[{"metadata":{"%s":%s}}]}}`,
		} {
			for _, value := range values {
				body := fmt.Sprintf(place, name, value.json)
				if v := ClassifyWith(429, []byte(body), Options{Now: noon}); v.Wait != value.want || !v.Retryable {
					t.Errorf("%s: %v, want %v", body, v.Wait, value.want)
				}
			}
		}
	}
	for _, body := range []string{`{"error":{"retry_after_ms":1500}}`, `{"error":{"retryAfterMs":"1500"}}`, `{"retry-after-ms":1500.0}`, `{"error":{"retry_after_ms":"1.5s"}}`} {
		if v := ClassifyWith(429, []byte(body), Options{Now: noon}); v.Wait != 1500*time.Millisecond {
			t.Errorf("%s: %v", body, v.Wait)
		}
	}
	for _, text := range []string{
		"Please try again in 12m36s.", "Try again after 756 seconds", "Please retry after 756 seconds.", "Wait for 756 seconds.",
		"Your limit resets in 12 minutes, 36 seconds.", "Your limit will reset at 2026-09-19 12:12:36.", "Limit resets at 2026-09-19T12:12:36Z, see the docs.",
		"Try again at Sat, 19 Sep 2026 12:12:36 GMT.", "Retry at 1789820 and no: retry at 1789819956.", "Your limit will reset on 2026-09-19 20:12:36 +0800 (CST).",
		"Quota will be replenished in 00:12:36.", "请在 756 秒后重试", "请12分36秒后再试。", "请等待12分钟36秒之后重试", "您的限额将在 2026-09-19 12:12:36 重置",
		"You may try again at 2026-09-19 12:12:36 UTC (in a while)",
		"Limit type: tokens. Limit resets at: 2026-09-19 12:12:36 UTC", "Retry after: 756s", "Slow down, retry in:756 seconds",
		"429 Resource exhausted. [violations {\n}\n, links {\n}\n, retry_delay {\n  seconds: 756\n}\n]", "429 retry_delay { nanos: 5 seconds: 755 } retry_delay { seconds: 756 }",
	} {
		if v := ClassifyWith(429, openai("rate_limit_exceeded", "", text), Options{Now: noon}); max(v.Wait, v.Reset) != 756*time.Second {
			t.Errorf("%s: %+v", text, v)
		}
	}
}

func TestTheCeilingCutsAWait(t *testing.T) {
	body := []byte(`{"error":{"message":"try again in 3650 days","resets_in_seconds":999999999}}`)
	for _, ceiling := range []time.Duration{time.Second, 24 * time.Hour, 0, -1} {
		v := ClassifyWith(429, body, Options{Now: noon, Ceiling: ceiling})
		want := ceiling
		if want <= 0 {
			want = 999999999 * time.Second
		}
		if v.Wait != want || v.Reset != want {
			t.Errorf("ceiling %v: %+v", ceiling, v)
		}
	}
}

// Words decide in any position of a message of the provider's own length, and
// not in the middle of one that holds the caller's words.
func TestWordsDecideInAnyPositionOfAShortMessage(t *testing.T) {
	for words, class := range map[string]string{
		"insufficient balance": Quota, "余额不足": Quota, "overloaded": Overload, "over capacity": Overload, "服务器繁忙": Overload, "out of extra usage": Quota,
	} {
		for _, m := range []string{words, "Sorry: " + words, "Well, " + words + ", that is it.", strings.ToUpper(words)} {
			if v := Classify(429, openai("", "", m)); v.Class != class {
				t.Errorf("%q: %+v", m, v)
			}
		}
		for _, m := range []string{"The word `" + words + "` is yours.", `You said "` + words + `".`, strings.Repeat("yours ", 500) + words} {
			if v := Classify(429, openai("", "", m)); v.Class != RateLimit {
				t.Errorf("%q: %+v", m[:min(len(m), 60)], v)
			}
		}
	}
}

func TestALimitThatTwoPhrasesContradictIsNotStated(t *testing.T) {
	for text, want := range map[string]int64{
		"rate limit of 50 requests per minute":                             50,
		"rate limit of 50 requests per minute (50 requests per minute)":    50,
		"rate limit of 50 requests per minute, or 900 requests per minute": 0,
		"50k tokens per minute":                                            50000, "2M tokens/min": 2000000, "1,000,000 tokens per day": 1000000,
		"limit 5 per 3 minutes": 0, "call 555 minutes": 0, "no number": 0, "0 requests per minute": 0,
		"99999999999999999999 requests per minute": 0,
	} {
		if v := Classify(429, openai("", "", text)); v.Stated != want {
			t.Errorf("%s: %+v, want %d", text, v, want)
		}
	}
}

// FuzzWaits writes a known wait into a body among other text. It expects no shorter
// wait back, and none above the ceiling.
func FuzzWaits(f *testing.F) {
	f.Add(uint64(1), int64(756), "Rate limited. ", int64(86400))
	f.Add(uint64(2), int64(1), "try again in 2s", int64(60))
	f.Add(uint64(3), int64(1<<31), "", int64(1))
	f.Fuzz(func(t *testing.T, seed uint64, secs int64, around string, ceilingS int64) {
		if secs < 0 || secs > 1<<33 || ceilingS <= 0 || ceilingS > 1<<32 || len(around) > 1000 {
			return
		}
		rnd := rand.New(rand.NewPCG(seed, 7))
		d := time.Duration(secs) * time.Second
		at := noon.Add(min(d, 40*365*24*time.Hour))
		instant := at.Sub(noon)
		forms := []struct {
			member, text string
			want         time.Duration
		}{
			{`"retry_after":` + fmt.Sprint(secs), "", d},
			{`"retry_after_ms":` + fmt.Sprint(secs*1000), "", d},
			{`"resets_in_seconds":"` + fmt.Sprint(secs) + `"`, "", d},
			{`"reset_at":` + fmt.Sprint(at.Unix()), "", instant},
			{`"reset_at":` + fmt.Sprint(at.UnixMilli()), "", instant},
			{`"resets_at":"` + at.Format(time.RFC3339) + `"`, "", instant},
			{`"retry_at":"` + at.Format(http.TimeFormat) + `"`, "", instant},
			{"", "try again in " + fmt.Sprint(secs) + " seconds", d},
			{"", "try again in " + (time.Duration(secs) * time.Second).String(), d},
			{"", "your limit will reset at " + at.Format(time.DateTime), instant},
			{"", "请在 " + fmt.Sprint(secs) + " 秒后重试", d},
		}
		form := forms[rnd.IntN(len(forms))]
		if form.member != "" && d > 300*24*time.Hour && form.want == d {
			return // such a number may be an instant
		}
		if strings.ContainsAny(around, "\"`") {
			return // a quotation may swallow what follows
		}
		message := strings.TrimRight(around, "0123456789.") + "\n" + form.text
		m, err := json.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		members := `"message":` + string(m)
		if form.member != "" {
			members = form.member + "," + members
			if rnd.IntN(2) == 0 {
				members = `"code":"x",` + members
			}
		}
		body := `{"error":{` + members + `}}`
		if rnd.IntN(3) == 0 {
			body = `{"error":` + body + `}`
		}
		ceiling := time.Duration(ceilingS) * time.Second
		v := ClassifyWith(429, []byte(body), Options{Now: noon, Ceiling: ceiling})
		if v.Wait > ceiling || v.Reset > ceiling {
			t.Errorf("%s: %+v is above the ceiling %v", body, v, ceiling)
		}
		if want := min(form.want, ceiling); v.Retryable && v.Wait < want {
			t.Errorf("%s: wait %v is shorter than %v", body, v.Wait, want)
		}
	})
}

package refusal

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"
)

// Providers put header fields and waits into bodies; the recorded ones are those
// of package headers, whose fields these are.
func TestWhatABodySaysInPlaceOfTheHeaderIsRead(t *testing.T) {
	b, err := os.ReadFile("../../headers/testdata/headers.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		ID, Body   string
		Status     int
		ObservedAt time.Time `json:"observed_at"`
		Expect     struct {
			Wait    float64 `json:"body_retry_after_s"`
			Headers *struct {
				Requests struct {
					Reset float64 `json:"reset_after_s"`
				} `json:"requests"`
			} `json:"body_headers"`
		}
	}
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	waits, fields := 0, 0
	for _, e := range all {
		r := Read(e.Status, Header{}, []byte(e.Body), e.ObservedAt)
		if e.Expect.Wait > 0 {
			waits++
			if wait, ok := r.NamedWait(false); !ok || wait < seconds(e.Expect.Wait) || wait > seconds(e.Expect.Wait)+time.Second {
				t.Errorf("%s: %v, want %v s, or what the message adds to it", e.ID, wait, e.Expect.Wait)
			}
		}
		if h := e.Expect.Headers; h != nil {
			fields++
			if r.bodyReset != seconds(h.Requests.Reset) {
				t.Errorf("%s: %v, want %v s", e.ID, r.bodyReset, h.Requests.Reset)
			}
		}
	}
	if waits == 0 || fields == 0 {
		t.Fatalf("%d waits and %d header fields in bodies", waits, fields)
	}
}

// The forms of google.rpc.RetryInfo and of fields inside a body.
func TestRetryInfoAndFieldsInABody(t *testing.T) {
	const retry = `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"}`
	for _, c := range []struct {
		name, body string
		want       time.Duration
	}{
		{"alone", `{"error":{"details":[` + retry + `]}}`, 1500 * time.Millisecond},
		{"in an array", `[{"error":{"details":[{"x":1},` + retry + `]}}]`, 1500 * time.Millisecond},
		{"other details", `{"error":{"details":[{"@type":"x","y":"9s"},7,` + retry + `]}}`, 1500 * time.Millisecond},
		{"huge", `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"99999999999999999999s"}]}}`, MaxWait},
		{"negative", `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"-5s"}]}}`, 0},
		{"no unit", `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"5"}]}}`, 5 * time.Second},
		{"a number", `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":5}]}}`, 5 * time.Second},
		{"cut off", `{"error":{"details":[` + retry, 1500 * time.Millisecond},
		{"cut in the value", `{"error":{"details":[{"retryDelay":"1.5`, 0},
		{"a text", `{"error":"slow down"}`, 0},
		{"an empty array", `[]`, 0},
		{"empty", ``, 0},
		{"headers in every JSON form", `{"error":{"metadata":{"headers":{"X-RateLimit-Limit":50,"Retry-After":"7","X-RateLimit-Reset":null,"Authorization":"secret"}}}}`, 7 * time.Second},
		{"headers that say nothing", `{"error":{"metadata":{"headers":{"X-RateLimit-Limit":{},"X":"1"}}}}`, 0},
	} {
		r := Read(429, Header{}, []byte(c.body), noon)
		if wait, _ := r.NamedWait(false); wait != c.want {
			t.Errorf("%s: %v, want %v", c.name, wait, c.want)
		}
	}
}

// Amazon names the type of an error in the header, and the body holds a sentence
// alone. A type in the body counts before it.
func TestATypeInTheHeaderCounts(t *testing.T) {
	for _, c := range []struct {
		status      int
		field, body string
		class       string
		retryable   bool
	}{
		{429, "ModelNotReadyException", `{"message":"The model is not ready for inference."}`, Overload, true},
		{429, "ModelNotReadyException:http://internal.amazon.com/coral/com.amazon.bedrock/", `{"message":"x"}`, Overload, true},
		{400, "com.amazonaws.bedrock#ThrottlingException", `{"message":"x"}`, RateLimit, true},
		{400, "ServiceQuotaExceededException", `{"message":"x"}`, Quota, false},
		{429, "ModelNotReadyException", `{"__type":"com.amazonaws.bedrock#ThrottlingException","message":"x"}`, RateLimit, true},
		{429, "", `{"message":"x"}`, RateLimit, true},
	} {
		h := http.Header{}
		if c.field != "" {
			h.Set("X-Amzn-ErrorType", c.field)
		}
		r := Read(c.status, Header{Type: TypeOf(h)}, []byte(c.body), time.Now())
		if r.Body.Class != c.class || r.Body.Retryable != c.retryable {
			t.Errorf("%d %s %s: %s, retryable %v", c.status, c.field, c.body, r.Body.Class, r.Body.Retryable)
		}
	}
}

// A sentence may be in any language that gateways answer in, and write its number as
// a word.
func TestAWaitIsReadInManyLanguages(t *testing.T) {
	for _, c := range []struct {
		message string
		want    time.Duration
	}{
		{"Please try again in a minute.", time.Minute},
		{"Please try again in an hour.", time.Hour},
		{"Please wait five minutes and try again.", 5 * time.Minute},
		{"Please wait a few minutes.", 0},
		{"Please try again in a while.", 0},
		{"請求過於頻繁，請在 45 秒後重試", 45 * time.Second},
		{"請於 2 分鐘後再試", 2 * time.Minute},
		{"レート制限に達しました。45秒後に再試行してください。", 45 * time.Second},
		{"1時間30分後に再試行してください。", 90 * time.Minute},
		{"요청이 너무 많습니다. 45초 후에 다시 시도하세요.", 45 * time.Second},
		{"1분 30초 후에 다시 시도하세요.", 90 * time.Second},
		{"Bitte versuchen Sie es in 45 Sekunden erneut.", 45 * time.Second},
		{"Bitte versuchen Sie es erneut in 2 Minuten.", 2 * time.Minute},
		{"Veuillez réessayer dans 45 secondes.", 45 * time.Second},
		{"Veuillez réessayer dans 2 heures.", 2 * time.Hour},
		{"Inténtelo de nuevo en 45 segundos.", 45 * time.Second},
		{"Tente novamente em 2 minutos.", 2 * time.Minute},
		{"Riprova tra 45 secondi.", 45 * time.Second},
		{"2026年1月5日後に再試行してください。", 0}, // a date
		{"Повторите попытку через 45 секунд.", 45 * time.Second},
		{"Повторите попытку через 1 минуту.", time.Minute},
	} {
		body, err := json.Marshal(map[string]any{"error": map[string]any{"message": c.message}})
		if err != nil {
			t.Fatal(err)
		}
		if v := Classify(429, body); v.Wait != c.want {
			t.Errorf("%s: %v, want %v", c.message, v.Wait, c.want)
		}
	}
}

package headers

import (
	"strings"
	"testing"
	"time"
)

func TestFieldsInTheBodyAreRead(t *testing.T) {
	read := func(body string) Info {
		return Parse(nil, Options{Status: 429, Now: noon, Body: []byte(body)})
	}
	const retry = `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"}`
	for _, c := range []struct {
		name, body string
		want       Span
	}{
		{"alone", `{"error":{"details":[` + retry + `]}}`, after(1500 * time.Millisecond)},
		{"in an array", `[{"error":{"details":[{"x":1},` + retry + `]}}]`, after(1500 * time.Millisecond)},
		{"other details", `{"error":{"details":[{"@type":"x","retryDelay":"9s"},7,` + retry + `]}}`, after(1500 * time.Millisecond)},
		{"huge", `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"99999999999999999999s"}]}}`, after(1<<62 - 1)},
		{"negative", `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"-5s"}]}}`, Span{}},
		{"no unit", `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"5"}]}}`, Span{}},
		{"a number", `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":5}]}}`, Span{}},
		{"cut off", `{"error":{"details":[` + retry, Span{}},
		{"a text", `{"error":"slow down"}`, Span{}},
		{"an empty array", `[]`, Span{}},
		{"too long", `{"error":{"details":[` + retry + `]},"pad":"` + strings.Repeat("a", longestBody) + `"}`, Span{}},
		{"deep", strings.Repeat("[", longestBody), Span{}},
		{"empty", ``, Span{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if i := read(c.body); i.BodyWait != c.want || i.BodyHeaders != nil || i.ResetWait().OK {
				t.Errorf("%+v, want %+v", i, c.want)
			}
		})
	}
	t.Run("headers in every JSON form", func(t *testing.T) {
		i := read(`{"error":{"metadata":{"headers":{"X-RateLimit-Limit":50,"x-ratelimit-remaining":["0"],"Retry-After":"7","X-RateLimit-Reset":null,"Authorization":"secret"}}}}`)
		if i.BodyHeaders == nil || i.BodyHeaders.Requests != (Quota{Limit: known(50), Remaining: known(0)}) || i.BodyHeaders.NotBefore != after(7*time.Second) {
			t.Errorf("%+v", i.BodyHeaders)
		}
		if i.Requests.known() || i.NotBefore.OK {
			t.Errorf("what stands in the body is kept apart: %+v", i)
		}
	})
	t.Run("headers that say nothing", func(t *testing.T) {
		if i := read(`{"error":{"metadata":{"headers":{"X-RateLimit-Limit":{},"X":"1"}}}}`); i.BodyHeaders != nil {
			t.Errorf("%+v", i.BodyHeaders)
		}
	})
}

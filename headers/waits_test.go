package headers

import (
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/internal/retryafter"
)

// The forms themselves are tested in internal/retryafter. Here each of them arrives
// in Info, and a refused value is unknown and not zero.
func TestEachFormOfRetryAfterArrives(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        Span
	}{
		{"IMF-fixdate", "Sat, 19 Sep 2026 12:00:05 GMT", after(5 * time.Second)},
		{"RFC 850", "Saturday, 19-Sep-26 12:00:05 GMT", after(5 * time.Second)},
		{"asctime", "Sat Sep 19 12:00:05 2026", after(5 * time.Second)},
		{"past", "Fri, 31 Dec 1999 23:59:59 GMT", after(0)},
		{"seconds", "2", after(2 * time.Second)},
		{"fraction", "1.5", after(1500 * time.Millisecond)},
		{"plus", "+3", Span{}},
		{"unit", "3s", after(3 * time.Second)},
		{"quotes and parameters", `"3";x`, after(3 * time.Second)},
		{"exponent", "1e3", Span{}},
		{"space", " 3 ", after(3 * time.Second)},
		{"huge", "9223372036854775807", after(retryafter.Max)},
		{"text", "retry after 33 seconds", Span{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := refused("Retry-After: " + c.value)
			if i.NotBefore != c.want || i.Applies != c.want.OK || i.ResetWait() != c.want {
				t.Errorf("%+v, want %+v", i, c.want)
			}
			if (i.Unread == 1) == c.want.OK {
				t.Errorf("%d values unread", i.Unread)
			}
		})
	}
}

func TestAWaitAppliesToARefusalOnly(t *testing.T) {
	stream := []string{"Retry-After: 4", "Content-Type: text/event-stream; charset=utf-8"}
	for _, c := range []struct {
		name    string
		status  int
		dialect string
		lines   []string
		want    bool
	}{
		{"429", 429, "", stream[:1], true},
		{"503", 503, "", stream[:1], true},
		{"529", 529, "", stream[:1], true},
		{"429 without a wait", 429, "", nil, false},
		{"429 with a wait that cannot be read", 429, "", []string{"Retry-After: soon"}, false},
		{"200", 200, "", stream, false},
		{"200 Anthropic", 200, "anthropic", stream, false},
		{"200 Azure, not a stream", 200, "azure-openai", stream[:1], false},
		{"200 Azure stream", 200, "azure-openai", stream, true},
		{"201", 201, "azure-openai", stream, false},
		{"400", 400, "", stream[:1], false},
		{"status unknown", 0, "", stream[:1], false},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := Parse(header(c.lines...), Options{Status: c.status, Dialect: dialects[c.dialect], Now: noon})
			if i.Applies != c.want {
				t.Errorf("applies is %v, want %v", i.Applies, c.want)
			}
		})
	}
}

func TestARefusedCallWaitsForTheExhaustedLimit(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		want  Span
	}{
		{"the exhausted one", []string{
			"x-ratelimit-reset-requests: 2s", "x-ratelimit-remaining-requests: 7",
			"x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-tokens: 0"}, after(6 * time.Minute)},
		{"not the longer one that is not exhausted", []string{
			"x-ratelimit-reset-requests: 2s", "x-ratelimit-remaining-requests: 0",
			"x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-tokens: 1"}, after(2 * time.Second)},
		{"the later of two", []string{
			"x-ratelimit-reset-requests: 2s", "x-ratelimit-remaining-requests: 0",
			"x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-tokens: 0"}, after(6 * time.Minute)},
		{"debt", []string{"x-ratelimit-reset-tokens: 64", "x-ratelimit-remaining-tokens: -27689"}, after(64 * time.Second)},
		{"Retry-After wins", []string{
			"Retry-After: 1", "x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-tokens: 0"}, after(time.Second)},
		{"the longest of several waits", []string{"Retry-After: 9", "Retry-After-Ms: 1500"}, after(9 * time.Second)},
		{"Retry-After rubbish does not win", []string{
			"Retry-After: soon", "x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-tokens: 0"}, after(6 * time.Minute)},
		{"input tokens", []string{
			"anthropic-ratelimit-input-tokens-remaining: 0", "anthropic-ratelimit-input-tokens-reset: 2026-09-19T12:00:23Z"}, after(23 * time.Second)},
		{"GitHub Models' own field", []string{"x-ratelimit-timeremaining: 55", "x-ratelimit-type: UserByMinute"}, after(55 * time.Second)},
		{"GitHub Models, the longer of both", []string{"x-ratelimit-timeremaining: 3600", "Retry-After: 5"}, after(time.Hour)},
		{"a further dimension", []string{
			"x-ratelimit-remaining-project-tokens: 0", "x-ratelimit-reset-project-tokens: 3s"}, after(3 * time.Second)},
		{"a further window", []string{
			"x-ratelimit-remaining-requests-minute: 0", "x-ratelimit-reset-requests-minute: 5",
			"x-ratelimit-remaining-requests-day: 0", "x-ratelimit-reset-requests-day: 5000"}, after(5000 * time.Second)},
		{"a policy", []string{`RateLimit: "burst";r=3;t=1, "daily";r=0;t=69076`}, after(69076 * time.Second)},
		{"resets alone", []string{"x-ratelimit-reset-requests: 1h", "x-ratelimit-reset-tokens: 60s"}, Span{}},
		{"a reset of zero with nothing left", []string{
			"x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 0", "x-ratelimit-limit-tokens: 5000"}, Span{}},
		{"nothing", nil, Span{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := refused(c.lines...)
			if got := i.ResetWait(); got != c.want {
				t.Errorf("wait %+v, want %+v; read %+v", got, c.want, i)
			}
		})
	}
}

func TestTheServersWordOnTryingAgainIsRead(t *testing.T) {
	for value, want := range map[string]Flag{"true": {true, true}, " FALSE ": {false, true}, "": {}, "1": {}, "yes": {}, "truee": {}} {
		if i := refused("x-should-retry: " + value); i.ShouldRetry != want {
			t.Errorf("%q is %+v, want %+v", value, i.ShouldRetry, want)
		}
	}
}

func TestAStoredAnswerTellsOfAnotherRequest(t *testing.T) {
	i := refused("Age: 30", "Retry-After: 5", "x-ratelimit-remaining-requests: 3", `RateLimit: "a";r=5`)
	if i.Requests.known() || len(i.Policies) != 0 || i.NotBefore != after(5*time.Second) {
		t.Errorf("a stored answer tells of another request: %+v", i)
	}
	if i := refused("Age: 0", "x-ratelimit-remaining-requests: 3"); !i.Requests.known() {
		t.Errorf("an age of zero is fresh: %+v", i)
	}
}

// Gateways name the field as they named others before RFC 6648.
func TestAWaitInTheFieldOfGatewaysArrives(t *testing.T) {
	if i := refused("X-Retry-After: 45"); i.NotBefore != after(45*time.Second) || i.Unread != 0 {
		t.Errorf("%+v", i)
	}
	if i := refused("X-Retry-After-Ms: 45000"); i.NotBefore != after(45*time.Second) || i.Unread != 0 {
		t.Errorf("%+v", i)
	}
	if i := refused("X-Retry-After: soon"); i.NotBefore.OK || i.Unread != 1 {
		t.Errorf("%+v", i)
	}
}

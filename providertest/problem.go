package providertest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// problem is an answer that is an error.
type problem struct {
	status  int
	kind    string // OpenAI's type
	code    string // OpenAI's code; "" is null
	message string
}

// body is the problem in the shape of the endpoint's API.
func (e problem) body(anthropic bool, id string) []byte {
	var v any
	if anthropic {
		v = map[string]any{
			"type":       "error",
			"error":      map[string]any{"type": e.anthropicType(), "message": e.message},
			"request_id": id,
		}
	} else {
		v = map[string]any{"error": e.openAI()}
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings only
	}
	return append(b, '\n')
}

func (e problem) openAI() map[string]any {
	m := map[string]any{"message": e.message, "type": e.kind, "param": nil, "code": nil}
	if e.code != "" {
		m["code"] = e.code
	}
	return m
}

// anthropicType follows Anthropic's table of errors by status.
func (e problem) anthropicType() string {
	switch e.status {
	case 401:
		return "authentication_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	if e.status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

var (
	serverError = problem{500, "server_error", "", "The server had an error while processing your request. Sorry about that!"}
	unavailable = problem{503, "service_unavailable_error", "", "The engine is currently overloaded, please try again later"}
	overloaded  = problem{529, "overloaded_error", "", "Overloaded"}
	noMoney     = problem{429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details."}
	badRequest  = problem{400, "invalid_request_error", "", "Your request was rejected by the script of this provider."}
	noKey       = problem{401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."}
)

func invalid(status int, code, message string) problem {
	return problem{status, "invalid_request_error", code, message}
}

// refusal says why a call was refused, in OpenAI's words. The numbers satisfy
// OpenAI's own relation, (used + requested - limit) x window / limit = wait,
// when a continuous bucket refused; the wait is rounded up to the millisecond.
func refusal(v verdict, model string, at int64, wait time.Duration) problem {
	e := problem{status: 429, kind: "requests", code: "rate_limit_exceeded"}
	again := "Please try again in " + ceil(wait, time.Millisecond).String() + "."
	l := v.limit
	switch {
	case l == nil && v.reason == "in flight":
		e.message = "Too many concurrent requests for " + model + ". " + again
		return e
	case l == nil:
		e.message = "Rate limit reached for " + model + ": too many refused requests. " + again
		return e
	}
	if !strings.HasPrefix(l.name, "requests") {
		e.kind = "tokens"
	}
	if v.wait == never {
		e.message = fmt.Sprintf("Request too large for %s in organization org-box on %s: Limit %d, Requested %d. "+
			"The input or output tokens must be reduced in order to run successfully.",
			model, l.per, l.largest(at), v.need)
		return e
	}
	e.message = fmt.Sprintf("Rate limit reached for %s in organization org-box on %s: Limit %d, Used %d, Requested %d. %s",
		model, l.per, l.value, l.value-l.gauge.level(at), v.need, again)
	return e
}

// largest is the largest need that the limit could ever admit.
func (l *limit) largest(at int64) int64 {
	switch g := l.gauge.(type) {
	case *bucket:
		if g.oversize {
			return l.value
		}
	case *sliced:
		return g.largest()
	}
	return l.gauge.holds(at)
}

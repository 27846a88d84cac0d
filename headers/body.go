package headers

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/internal/retryafter"
)

// longestBody bounds the error bodies that are read, in bytes. A longer one is
// unknown.
const longestBody = 64 << 10

// readBody reads what two providers put into the body of a refusal:
//
//	{"error":{"metadata":{"headers":{"X-RateLimit-Reset":"1788220800000"}}}}    OpenRouter
//	{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo",
//	                      "retryDelay":"48s"}]}}                                Google
//
// The object may stand alone or first in an array. Waits that stand only in a
// message for people are not read here.
func readBody(o Options, now time.Time, info *Info) {
	body := o.Body
	if len(body) == 0 || len(body) > longestBody {
		return
	}
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil {
		if len(list) == 0 {
			return
		}
		body = list[0]
	}
	var outer struct{ Error json.RawMessage }
	if json.Unmarshal(body, &outer) != nil || outer.Error == nil {
		return
	}
	var inner struct{ Metadata, Details json.RawMessage }
	if json.Unmarshal(outer.Error, &inner) != nil {
		return
	}
	info.BodyWait = retryInfo(inner.Details)

	var metadata struct{ Headers map[string]json.RawMessage }
	if inner.Metadata == nil || json.Unmarshal(inner.Metadata, &metadata) != nil {
		return
	}
	h := http.Header{}
	for name, value := range metadata.Headers {
		if kindOf(name) == kindNone {
			continue
		}
		var text string
		var number json.Number
		var lines []string
		if json.Unmarshal(value, &text) == nil {
			h.Add(name, text)
		} else if json.Unmarshal(value, &number) == nil {
			h.Add(name, number.String())
		} else if json.Unmarshal(value, &lines) == nil {
			for _, line := range lines {
				h.Add(name, line)
			}
		}
	}
	if len(h) == 0 {
		return
	}
	if i := parse(h, Options{Status: o.Status, Now: now, Dialect: o.Dialect}); !i.empty() {
		info.BodyHeaders = &i
	}
}

// retryInfo returns the longest delay of the google.rpc.RetryInfo details.
//
//	delay = number "s"         ; google.protobuf.Duration in JSON
func retryInfo(details json.RawMessage) Span {
	var list []json.RawMessage
	if details == nil || json.Unmarshal(details, &list) != nil {
		return Span{}
	}
	var wait Span
	for _, raw := range list {
		var d struct {
			Type       string `json:"@type"`
			RetryDelay string `json:"retryDelay"`
		}
		if json.Unmarshal(raw, &d) != nil || !strings.HasSuffix(d.Type, "google.rpc.RetryInfo") {
			continue
		}
		text, ok := strings.CutSuffix(d.RetryDelay, "s")
		if !ok {
			continue
		}
		if v, ok := retryafter.Decimal(text, time.Second); ok {
			wait = Span{max(wait.D, v), true}
		}
	}
	return wait
}

// empty reports whether nothing at all is known.
func (i *Info) empty() bool {
	return !i.Requests.known() && !i.Tokens.known() && !i.Input.known() && !i.Output.known() &&
		len(i.Other)+len(i.Windows)+len(i.Policies) == 0 &&
		!i.NotBefore.OK && !i.ShouldRetry.OK
}

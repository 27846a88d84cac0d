package usage

import (
	"net/http"
	"strings"
)

// headerFields are the header fields that state what a call cost. Names are in
// canonical form, as net/http delivers them.
var headerFields = [...]struct {
	name   string
	field  field
	source string
}{
	{"X-Amzn-Bedrock-Input-Token-Count", fieldInput, "Amazon Bedrock InvokeModel, response headers"},
	{"X-Amzn-Bedrock-Output-Token-Count", fieldOutput, "Amazon Bedrock InvokeModel, response headers"},
	{"X-Amzn-Bedrock-Cache-Read-Input-Token-Count", fieldCacheRead, "Amazon Bedrock prompt caching"},
	{"X-Amzn-Bedrock-Cache-Write-Input-Token-Count", fieldCacheWrite, "Amazon Bedrock prompt caching"},
	{"X-Prompt-Tokens", fieldPrompt, "text-generation-inference server, generate"},
	{"X-Generated-Tokens", fieldCompletion, "text-generation-inference server, generate"},
	{"Fireworks-Prompt-Tokens", fieldPrompt, "Fireworks, querying text models: response headers"},
	{"Fireworks-Cached-Prompt-Tokens", fieldCached, "Fireworks, prompt caching"},
}

// FromHeader reads what a response's header says of its cost. Most providers say
// it in the body, which is more exact where both do: see [Result.WithHeader].
// Of several lines the larger count counts; an impossible one makes all of the
// header unknown. It does not alter or keep h.
func FromHeader(h http.Header) Counts {
	if len(h) <= len(headerFields) && !mayState(h) { // one look at each is less work
		return Counts{}
	}
	var t tally
	for _, f := range headerFields {
		for _, line := range h[f.name] {
			v, ok := parseCount([]byte(strings.Trim(line, " \t")))
			if !ok {
				return Counts{}
			}
			if old, ok := t.get(f.field); !ok || v > old {
				t.set(f.field, v)
			}
		}
	}
	if !t.counts() {
		return Counts{}
	}
	return t.normal()
}

// mayState reports whether a field of h may be one of headerFields.
func mayState(h http.Header) bool {
	for name := range h {
		switch {
		case len(name) < len("X-Prompt-Tokens"):
		case name[0] == 'F', name[0] == 'X' && (name[2] == 'A' || name[2] == 'P' || name[2] == 'G'):
			return true
		}
	}
	return false
}

// WithHeader returns r with the counts of its header where the body states none.
// A body that says that the cost is no tokens is believed.
func (r Result) WithHeader(h http.Header) Result {
	if r.Found || r.NoTokens {
		return r
	}
	seconds := r.AudioSeconds
	r.Counts = FromHeader(h)
	r.AudioSeconds = seconds
	r.Found = r.Counts.Known()
	return r
}

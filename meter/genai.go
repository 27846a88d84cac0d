package meter

import (
	"net/http"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/transport"
)

// operation is what the GenAI conventions of OpenTelemetry want to know of the
// calls of one kind: how long they took, and their tokens.
type operation struct {
	durations     map[int]*Histogram // seconds from its turn to its end, by status from 400 on; 0 is success, -1 no response
	usual         *Histogram         // of success, once there was one: most calls have it
	first         Histogram          // seconds from the last attempt's start to the first chunk, of streams
	input, output Histogram          // tokens of a call, as reported
	cached        int64
	sums          Tokens
}

// operationNames is how many kinds there are.
const operationNames = 5

var operationName = [operationNames]string{"chat", "generate_content", "text_completion", "embeddings", "other"}

// operationOf is the index of a path's operation.
func operationOf(path string) int {
	switch {
	case strings.HasSuffix(path, "/chat/completions"), strings.HasSuffix(path, "/messages"), strings.HasSuffix(path, "/responses"),
		strings.HasSuffix(path, "/converse"), strings.HasSuffix(path, "/converse-stream"), strings.HasSuffix(path, "/api/chat"), strings.HasSuffix(path, "/v2/chat"):
		return 0
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		return 1
	case strings.HasSuffix(path, "/completions"), strings.HasSuffix(path, "/api/generate"):
		return 2
	case strings.HasSuffix(path, "/embeddings"), strings.HasSuffix(path, "/embed"), strings.HasSuffix(path, ":embedContent"), strings.HasSuffix(path, ":batchEmbedContents"):
		return 3
	}
	return 4
}

// OperationOf is what the GenAI conventions call the operation of a request, by
// its path: "chat", "generate_content", "text_completion", "embeddings", or
// "other" where they have no name.
func OperationOf(r *http.Request) string {
	if r.URL == nil {
		return operationName[operationNames-1]
	}
	return operationName[operationOf(r.URL.Path)]
}

// conventionNames are providers whose name in the conventions is not that of
// their profile.
var conventionNames = map[string]string{
	"azure": "azure.ai.openai", "bedrock": "aws.bedrock", "gemini": "gcp.gemini", "vertex": "gcp.vertex_ai",
	"mistral": "mistral_ai", "xai": "x_ai",
}

// ProviderOf is what the GenAI conventions call the provider of a request, by its
// host; "" if the host is not known.
func ProviderOf(r *http.Request) string {
	if r.URL == nil {
		return ""
	}
	name := profile.ForHost(r.URL.Host).Name
	if name == "unknown" {
		return ""
	}
	if other := conventionNames[name]; other != "" {
		return other
	}
	return name
}

func (b *budget) operation(r *http.Request) *operation {
	i := operationNames - 1
	if r.URL != nil {
		i = operationOf(r.URL.Path)
	}
	o := b.operations[i]
	if o == nil {
		o = &operation{durations: map[int]*Histogram{}, first: newHistogram(chunkBounds), input: newHistogram(tokenBounds), output: newHistogram(tokenBounds)}
		b.operations[i] = o
		if b.provider == "" {
			if b.provider = ProviderOf(r); b.provider == "" {
				b.provider = b.series.name
			}
		}
	}
	return o
}

// durationsOf is the histogram of a status, as durations has it.
func (o *operation) durationsOf(status int) *Histogram {
	h := o.durations[status]
	if h == nil {
		n := newHistogram(durationBounds)
		h = &n
		o.durations[status] = h
	}
	if status == 0 {
		o.usual = h
	}
	return h
}

func (o *operation) settled(status int, took float64, first time.Duration, u transport.Usage) {
	if first > 0 {
		o.first.add(seconds(first))
	}
	switch {
	case status == 0:
		status = -1
	case status < 400:
		status = 0
	case status > 599:
		status = 599
	}
	h := o.usual
	if status != 0 || h == nil {
		h = o.durationsOf(status)
	}
	h.add(took)
	if u.Found {
		o.input.add(float64(u.Input))
		o.output.add(float64(u.Output))
		o.sums.Input += u.Input
		o.sums.Output += u.Output
		o.cached += u.CachedInput
	}
}

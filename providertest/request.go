package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Prompt is what a request body says of its input.
type Prompt struct {
	Path     string
	Model    string
	Texts    []string // every text, in order
	Messages int64    // messages, or items, or embedding inputs
	Images   int64
	Tools    string // tool definitions, as sent
	Tokens   int64  // input that came as token ids
}

// imageTokens is the flat debit of one image in OpenAI's headers since 2024.
const imageTokens = 765

// DefaultCount is the sum of
//
//   - a quarter of the characters, rounded up, of each text and of the tool
//     definitions
//   - one for each message and one for the call
//   - 765 for an image
//   - one for each token id
//
// It follows the debits that OpenAI's headers show, for chat bodies of 2025 and
// 2026.
func DefaultCount(p Prompt) int64 {
	n := 1 + p.Messages + imageTokens*p.Images + p.Tokens + quarter(p.Tools)
	for _, t := range p.Texts {
		n += quarter(t)
	}
	return n
}

func quarter(s string) int64 { return (int64(utf8.RuneCountInString(s)) + 3) / 4 }

// inquiry is a parsed request body.
type inquiry struct {
	prompt     Prompt
	kind       kind
	cap        int64 // for one choice; 0 not stated
	choices    int64
	stream     bool
	usageAsked bool // stream_options.include_usage
	dimensions int64
	base64     bool
}

type kind int

const (
	chat kind = iota
	responses
	completions
	embeddings
	messages
)

// kinds are the endpoints that cost something.
var kinds = map[string]kind{
	"/v1/chat/completions": chat,
	"/v1/responses":        responses,
	"/v1/completions":      completions,
	"/v1/embeddings":       embeddings,
	"/v1/messages":         messages,
}

// wire is the union of the request bodies.
type wire struct {
	Model               string
	Messages            []json.RawMessage
	System              json.RawMessage // Anthropic
	Input               json.RawMessage // responses, embeddings
	Instructions        string
	Prompt              json.RawMessage // completions
	Tools               json.RawMessage
	MaxTokens           *int64 `json:"max_tokens"`
	MaxCompletionTokens *int64 `json:"max_completion_tokens"`
	MaxOutputTokens     *int64 `json:"max_output_tokens"`
	N                   *int64
	BestOf              *int64 `json:"best_of"`
	Stream              bool
	StreamOptions       *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Dimensions     *int64
	EncodingFormat string `json:"encoding_format"`
}

// endpoint is the path without what providers put before it ("/openai", as
// Groq and Azure do), and the model that a deployment's path names.
func endpoint(path string) (known, model string) {
	rest, ok := strings.CutPrefix(path, "/openai")
	if !ok {
		return path, ""
	}
	if deployed, ok := strings.CutPrefix(rest, "/deployments/"); ok {
		model, rest, _ = strings.Cut(deployed, "/")
		return "/v1/" + rest, model
	}
	return rest, ""
}

// parse reads a body. The model is that of the path if the body names none. bad is
// the error message for the caller of the API, "" if nothing is wrong.
func parse(path string, k kind, body []byte, deployment string) (q inquiry, bad string) {
	var w wire
	if err := json.Unmarshal(body, &w); err != nil {
		return q, "We could not parse the JSON body of your request: " + err.Error()
	}
	if w.Model == "" {
		w.Model = deployment
	}
	q = inquiry{kind: k, choices: 1, stream: w.Stream && k != embeddings, base64: k == embeddings && w.EncodingFormat == "base64"}
	q.usageAsked = w.StreamOptions != nil && w.StreamOptions.IncludeUsage
	q.prompt.Path, q.prompt.Model = path, w.Model
	if w.Model == "" {
		return q, "you must provide a model parameter"
	}
	if bad = q.input(&w); bad != "" {
		return q, bad
	}
	if t := bytes.TrimSpace(w.Tools); len(t) > 0 && !bytes.Equal(t, []byte("null")) {
		q.prompt.Tools = string(t)
	}
	if bad = q.numbers(&w); bad != "" {
		return q, bad
	}
	return q, q.outputCap(&w)
}

// input takes in the prompt.
func (q *inquiry) input(w *wire) (bad string) {
	p := &q.prompt
	switch q.kind {
	case chat, messages:
		if len(w.Messages) == 0 {
			return "[] is too short - 'messages'"
		}
		for _, m := range w.Messages {
			p.Messages++
			p.content(m, 0)
		}
		p.content(w.System, 0)
		if q.kind == messages && w.MaxTokens == nil {
			return "max_tokens: Field required"
		}
	case responses:
		p.items(w.Input)
		if w.Instructions != "" {
			p.Texts = append(p.Texts, w.Instructions)
		}
	case completions:
		p.items(w.Prompt)
	case embeddings:
		p.items(w.Input)
		if p.Messages == 0 || p.Messages > 2048 {
			return "'$.input' is invalid: want 1 to 2048 inputs"
		}
	}
	return ""
}

// numbers takes in what the body states of the answer but its cap.
func (q *inquiry) numbers(w *wire) (bad string) {
	if q.kind == embeddings {
		q.dimensions = 8
	}
	for _, f := range []struct {
		name string
		v    *int64
		max  int64
		to   *int64
	}{
		{"n", w.N, 128, &q.choices}, {"best_of", w.BestOf, 128, nil},
		{"dimensions", w.Dimensions, 4096, &q.dimensions},
	} {
		if f.v == nil {
			continue
		}
		if *f.v < 1 || *f.v > f.max {
			return fmt.Sprintf("Invalid '%s': %d is not between 1 and %d", f.name, *f.v, f.max)
		}
		if f.to != nil {
			*f.to = *f.v
		}
	}
	if q.kind == responses || q.kind == embeddings || q.kind == messages {
		q.choices = 1
	}
	return ""
}

// outputCap takes in the first cap that the body states.
func (q *inquiry) outputCap(w *wire) (bad string) {
	caps := []*int64{w.MaxCompletionTokens, w.MaxTokens}
	switch q.kind {
	case responses:
		caps = []*int64{w.MaxOutputTokens}
	case completions:
		caps = []*int64{w.MaxTokens}
	case embeddings:
		caps = nil
	}
	for _, c := range caps {
		if c == nil {
			continue
		}
		if *c < 1 || *c > maxTokens {
			return fmt.Sprintf("Invalid output cap: %d is not between 1 and %d", *c, maxTokens)
		}
		if q.cap == 0 {
			q.cap = *c
		}
	}
	return ""
}

// content collects the texts and images of a message, a list of parts, or a
// string. What it does not know costs nothing.
func (p *Prompt) content(raw json.RawMessage, depth int) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || depth > 32 {
		return
	}
	switch raw[0] {
	case '"':
		var s string
		if json.Unmarshal(raw, &s) == nil {
			p.Texts = append(p.Texts, s)
		}
	case '[':
		var parts []json.RawMessage
		if json.Unmarshal(raw, &parts) == nil {
			for _, part := range parts {
				p.content(part, depth+1)
			}
		}
	case '{':
		var part struct {
			Type    string
			Text    json.RawMessage
			Content json.RawMessage
		}
		if json.Unmarshal(raw, &part) != nil {
			return
		}
		switch part.Type {
		case "image", "image_url", "input_image":
			p.Images++
		}
		p.content(part.Text, depth+1)
		p.content(part.Content, depth+1)
	}
}

// items reads an input that is a string, a list of strings or messages, a list
// of token ids, or a list of such lists. Each counts as one message.
func (p *Prompt) items(raw json.RawMessage) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return
	}
	var list []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		p.Messages++
		p.content(raw, 0)
		return
	}
	ids := int64(0)
	for _, item := range list {
		switch item = bytes.TrimSpace(item); item[0] {
		case '[':
			var inner []int64
			if json.Unmarshal(item, &inner) == nil {
				p.Tokens += int64(len(inner))
			}
			p.Messages++
		case '"', '{':
			p.Messages++
			p.content(item, 0)
		default:
			ids++
		}
	}
	if ids > 0 {
		p.Tokens += ids
		p.Messages++
	}
}

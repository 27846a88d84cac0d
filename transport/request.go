package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/internal/packed"
	"github.com/tripmeter/tripmeter/profile"
)

// A prompt holds the facts read from a request before the request is sent.
type prompt struct {
	payload
	estimate.Request
	ahead  *ahead // holds memory until release; nil without
	read   bool   // the whole body: head, or what copies gives if that is nil
	head   []byte
	coding string // of its bytes; "" is plain
	typed  string // Content-Type
	opaque bool   // no type says what it is, and it may be in memory
}

// text is the body as plain text, nil if it was not read.
func (p *prompt) text() []byte {
	b := p.head
	if p.read && b == nil {
		b = inMemory(p.body)
	}
	if p.coding != "" {
		b, _ = unpack(p.coding, b)
	}
	return b
}

// media is the type of Content-Type, without parameters, in lower case.
func (p *prompt) media() string {
	switch p.typed { // most are one of these
	case "application/json", "application/octet-stream":
		return p.typed
	}
	t, _, _ := strings.Cut(p.typed, ";")
	return strings.ToLower(strings.TrimSpace(t)) // allocates for capitals and nothing else
}

// inMemory is what a body in memory holds.
func inMemory(body io.ReadCloser) []byte {
	rc, _ := copies(body)()
	b, _ := io.ReadAll(rc)
	return b
}

// inspect reads as much of a request as the estimate needs. The payload is what to
// send: the body and GetBody of req, or others if the body was read ahead. An
// error is that of reading the body, as it would be when sending.
//
// GetBody would spare the reading ahead. But some hand out the body itself, wound
// back: azcore's SetBody, and openai-go's and anthropic-sdk-go's for a
// bytes.Reader. Reading such a copy reads the body that will be sent. net/http
// calls GetBody only when it is done with the body before, and so do we.
func inspect(req *http.Request, most int64, counter estimate.Counter) (prompt, error) {
	p := prompt{payload: payload{req.Body, req.GetBody}}
	if req.Body == nil || req.Body == http.NoBody {
		return p, nil
	}
	size := req.ContentLength
	if size == 0 { // net/http: a body with length 0 is of unknown length
		size = -1
	}
	contentType, coding := field(req.Header, "Content-Type"), codingOf(req.Header)
	p.typed = contentType
	isPacked := !packed.Plain(coding)
	o := estimate.Options{Path: req.URL.Path, Counter: counter}
	readable := estimate.Readable(contentType)
	p.opaque = !readable && !isPacked && req.GetBody != nil && size <= estimate.MaxBody && p.media() == typeBytes
	var again func() (io.ReadCloser, error)
	if !p.opaque && req.GetBody != nil {
		again = copies(req.Body)
	}
	switch {
	case readable || p.opaque || size > estimate.MaxBody:
	case again == nil:
		readable = readAnyway(p.media())
	case p.holdsObject(coding):
		readable, contentType, p.typed = true, typeJSON, typeJSON
	}
	switch {
	case readable && again != nil && size <= estimate.MaxBody:
		if p.read = true; isPacked {
			p.coding = coding
			p.Request = ofPacked(coding, inMemory(req.Body), contentType, o)
			return p, nil
		}
		fallthrough
	case !readable, again != nil, size > most, waits(req):
		if isPacked {
			p.Request = estimate.Unread(contentType, unpackedSize(size))
		} else {
			p.Request = estimate.Body(again, contentType, size, o)
		}
		return p, nil
	}
	return p.lookAhead(req, size, most, coding, o)
}

const (
	typeJSON = "application/json"
	typeForm = "application/x-www-form-urlencoded"

	typeBytes = "application/octet-stream"
)

// readAnyway reports whether a body of that type is read ahead although its type is not
// JSON's. Servers such as Ollama and llama.cpp look at no type, and curl names a form.
// Uploads have none of these types.
func readAnyway(media string) bool {
	switch media {
	case typeForm, "*/*", "application/javascript", "application/x-amz-json-1.0", "application/x-amz-json-1.1":
		return true
	}
	return false
}

// holdsObject reports whether a body in memory is one JSON object. Its type does not
// count.
func (p *prompt) holdsObject(coding string) bool {
	if strings.HasPrefix(p.media(), "multipart/") {
		return false
	}
	if packed.Plain(coding) {
		body, _ := copies(p.body)()
		first := make([]byte, 16)
		n, _ := io.ReadFull(body, first)
		if text := bytes.TrimLeft(first[:n], " \t\r\n"); len(text) > 0 && text[0] != '{' {
			return false // most uploads
		}
	}
	text := inMemory(p.body)
	if !packed.Plain(coding) {
		text, _ = unpack(coding, text)
	}
	return isObject(text)
}

// codingOf is the Content-Encoding, of all lines of the field: they are one list
// (RFC 9110, section 5.3).
func codingOf(h http.Header) string {
	if lines := h["Content-Encoding"]; len(lines) > 1 {
		return strings.Join(lines, ",")
	}
	return field(h, "Content-Encoding")
}

// lookAhead reads the first bytes of the body, which it keeps for the wire, and
// estimates what they state.
func (p prompt) lookAhead(req *http.Request, size, most int64, coding string, o estimate.Options) (prompt, error) {
	isPacked := !packed.Plain(coding)
	if ctx := req.Context(); ctx.Err() != nil {
		return p, causeOf(ctx)
	}
	a := readAhead(req.Body, size, most, req.Context().Done())
	p.ahead, p.body = a, a
	head, whole, err := a.seen()
	if ctx := req.Context(); ctx.Err() != nil {
		err = causeOf(ctx)
	}
	switch {
	case err != nil:
		p.get = nil
		return p, err
	case !whole && isPacked:
		p.Request = estimate.Unread(p.typed, unpackedSize(size))
		return p, nil
	case !whole:
		p.Request = estimate.Unread(p.typed, size)
		return p, nil
	}
	p.get = a.again // all of it is there, so that it can be sent again
	p.read, p.head = true, head
	if isPacked {
		p.coding = coding
		p.Request = ofPacked(coding, head, p.typed, o)
	} else {
		p.Request = estimate.Inspect(head, o)
	}
	return p, nil
}

// unpack returns the text of a packed body, and whether that is all of it.
func unpack(coding string, body []byte) (text []byte, whole bool) {
	whole = packed.Unpack(coding, body, packed.Limits{Out: estimate.MaxBody}, func(p []byte) { text = append(text, p...) })
	return text, whole
}

// ofPacked prices a packed body by its text, or by its size if it cannot be
// unpacked.
func ofPacked(coding string, body []byte, contentType string, o estimate.Options) estimate.Request {
	text, whole := unpack(coding, body)
	if !whole {
		return estimate.Unread(contentType, max(unpackedSize(int64(len(body))), int64(len(text))))
	}
	return estimate.Inspect(text, o)
}

// unpackedSize is what a packed body of that size usually holds, in bytes: requests
// in JSON shrink to a fifth. -1 is not known.
func unpackedSize(size int64) int64 {
	const ratio = 5
	if size < 0 || size > math.MaxInt64/ratio {
		return size
	}
	return size * ratio
}

// kinds are the kinds of package estimate for uses whose price has no output.
var kinds = map[profile.Use]string{
	profile.Embeds: "embeddings", profile.Reranks: "rerank", profile.Moderates: "moderations", profile.Images: "images",
	profile.Transcribes: "transcription", // what is said is short, and most count seconds: the usage says so
}

// price is what an endpoint makes of the request: the prompt that a model reads, nil
// if none runs, and how many requests it counts as.
//
//	counts, uploads, manages   one request, no prompt
//	has Items                  a request for each element of that member
//	unlisted                   judged by its body: without a prompt, a model or a cap
//	                           it costs no tokens until the usage says otherwise.
//	                           What is not JSON is an upload
func (p *prompt) price(e *profile.Endpoint) (r *estimate.Request, requests int64) {
	if p.body == nil || p.body == http.NoBody || e.Does.Free() {
		return nil, 1
	}
	r = &p.Request
	if kind, ok := kinds[e.Does]; ok {
		r.Kind = kind
	}
	if e.Items != "" && p.read {
		return r, max(1, elements(p.text(), e.Items))
	}
	if e.Does == profile.Unlisted && p.opaque { // some clients name no better type for JSON
		if again := copies(p.body); again != nil {
			if text := inMemory(p.body); isObject(text) {
				p.Request, p.typed, p.read, p.head = estimate.Inspect(text, estimate.Options{}), typeJSON, true, text
			}
		}
	}
	if e.Does == profile.Unlisted && !p.prompts() {
		p.Request = estimate.Request{Kind: "count", Choices: 1, Size: r.Size}
	}
	return r, 1
}

// prompts reports whether the body of a request to a path that nobody knows may hold a
// prompt.
func (p *prompt) prompts() bool {
	r := &p.Request
	if r.Model != "" || r.OutputCap > 0 {
		return true
	}
	text, object := []byte(nil), false
	if p.read {
		text = p.text()
		object = isObject(text)
	}
	media := p.media()
	switch json := media == "" || strings.HasSuffix(media, "json"); {
	case object && isGraphQL(text):
		return false
	case object:
		return r.Understood || r.Kind != "unknown"
	case media == "application/x-ndjson", !json: // a file of requests, a form, a text, a sound
		return false
	}
	return true // JSON that was not read, or that is none
}

// isGraphQL reports whether a JSON object is a request of GraphQL over HTTP ("Serving
// over HTTP": query, operationName, variables, extensions). A search for documents has
// a query too.
func isGraphQL(object []byte) bool {
	var q struct {
		Query                    string
		OperationName, Variables json.RawMessage
	}
	if !bytes.Contains(object, []byte(`"query"`)) || json.Unmarshal(object, &q) != nil {
		return false
	}
	text := strings.TrimSpace(q.Query)
	for _, word := range [...]string{"query", "mutation", "subscription", "fragment"} {
		if after, ok := strings.CutPrefix(text, word); ok && strings.Contains(after, "{") {
			return true
		}
	}
	return strings.HasPrefix(text, "{") || q.Query != "" && (q.OperationName != nil || q.Variables != nil)
}

// isObject reports whether text is one whole JSON object.
func isObject(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && text[0] == '{' && json.Valid(text)
}

// elements counts the elements of an array that is a member of a JSON object; 0 if
// there is none.
func elements(text []byte, member string) (n int64) {
	var members map[string]json.RawMessage
	var items []json.RawMessage
	if json.Unmarshal(text, &members) != nil || json.Unmarshal(members[member], &items) != nil {
		return 0
	}
	return int64(len(items))
}

// endpoints remember what was found last: most calls of a client go to one path, and
// the whole table is searched for each other one.
type endpoints struct{ last atomic.Pointer[foundEndpoint] }

type foundEndpoint struct {
	of           *profile.Profile
	method, path string
	endpoint     profile.Endpoint
}

func (es *endpoints) endpoint(p *profile.Profile, method, path string) *profile.Endpoint {
	f := es.last.Load()
	if f == nil || f.of != p || f.method != method || f.path != path {
		f = &foundEndpoint{p, method, path, p.Endpoint(method, path)}
		es.last.Store(f)
	}
	return &f.endpoint
}

// field is the first line of a field. The name is in canonical form: Get would
// make it so each time.
func field(h http.Header, name string) string {
	if lines := h[name]; len(lines) > 0 {
		return lines[0]
	}
	return ""
}

// copies returns a way to read a body in memory without taking from it, as
// http.NewRequest does for those that it knows; nil if body is not one of them.
func copies(body io.ReadCloser) func() (io.ReadCloser, error) {
	switch reflect.TypeOf(body) {
	case nopCloser, nopCloserWriterTo:
	default:
		return nil
	}
	switch r := reflect.ValueOf(body).Field(0).Interface().(type) {
	case *bytes.Reader:
		r = new(*r)
		return func() (io.ReadCloser, error) { return io.NopCloser(r), nil }
	case *strings.Reader:
		r = new(*r)
		return func() (io.ReadCloser, error) { return io.NopCloser(r), nil }
	case *bytes.Buffer:
		return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.Bytes())), nil }
	}
	return nil
}

// What io.NopCloser makes of a reader, and of one that has WriteTo.
var (
	nopCloser         = reflect.TypeOf(io.NopCloser(struct{ io.Reader }{}))
	nopCloserWriterTo = reflect.TypeOf(io.NopCloser(strings.NewReader("")))
)

// A payload is a request body and the way to have it again, nil if there is
// none.
type payload struct {
	body io.ReadCloser
	get  func() (io.ReadCloser, error)
}

// waits reports whether the body is not to be read before it is sent: the server
// is to ask for it first (RFC 9110, section 10.1.1), or who reads it fills the
// trailer, whose names net/http looks at before that.
func waits(req *http.Request) bool {
	return len(req.Trailer) > 0 || strings.EqualFold(req.Header.Get("Expect"), "100-continue")
}

// interest is a context that ends when the caller is no longer interested in
// the call: with the request's own, or with its deprecated Cancel channel,
// which nobody else looks at while the request stands in line.
func interest(req *http.Request) (context.Context, context.CancelFunc) {
	//lint:ignore SA1019 callers set it still
	canceled := req.Cancel
	if canceled == nil {
		return req.Context(), func() {}
	}
	ctx, cancel := context.WithCancel(req.Context())
	go func() {
		select {
		case <-canceled:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// causeOf is why ctx ended: its error, and its cause where that is another.
func causeOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

func closeIdleConnections(rt http.RoundTripper) {
	if c, ok := rt.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

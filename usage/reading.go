package usage

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"github.com/tripmeter/tripmeter/internal/refusal"
)

// A reading is what the documents of one response have said so far.
type reading struct {
	usage    tally // the last statement of cost, completed by what continues it
	choice   bool  // it is that of one choice
	choices  bool  // there is more than one choice
	seconds  Count
	others   bool  // the last statement is a cost that is no tokens
	text     int64 // bytes of output text in the documents that are over
	stream   bool  // documents are events of a stream
	document bool  // at least one document is over
	waiting  bool  // the last one said "done": false

	done     bool // an end marker was seen
	finished bool // a finish reason was seen
	started  bool // message_start was seen, so an end marker is to come
	stated   bool // a statement of cost was seen together with the finish reason, or after it

	doc       docReading
	refusal   *Refusal
	exception string // the type of the exception whose document is being read (Bedrock)
	raw       []byte // members of the error in the current document; at most maxError
	value     int    // where in raw the last value begins
}

// maxError bounds the copy of an error object. The refusal rules read a
// truncated one as well as they can.
const maxError = 8 << 10

// A docReading is what the document being read has said so far. It takes
// effect when the document is over.
type docReading struct {
	open    tally // of the usage object being read
	place   node  // where that stands
	usage   tally // of the last usage object that was closed and held a count
	started bool  // it is that of message_start
	choice  bool  // it is that of one choice
	flat    tally // counts that stand in the document itself (Ollama, Titan)

	kind      docKind
	embedding bool
	failed    bool
	maybe     bool // the refusal rules have to tell whether it is an error
	finished  bool
	waiting   bool
	text      [counters]int64
}

// A counter is a kind of output text.
type counter uint8

const (
	plainText      counter = iota
	wholeText              // the whole answer of a body that is no stream
	typedText              // "delta" of a Responses event, whose type tells whether it is text
	reasoningText          // reasoning_content
	reasoningTwice         // reasoning, which some servers send beside the same reasoning_content
	counters
)

// A docKind is what the type member of an event says.
type docKind uint8

const (
	anyKind   docKind = iota
	continues         // Anthropic message_delta: completes message_start
	ends              // the last event of a stream
	fails             // an error
	notAnswer         // a delta that is not output text: audio, a summary
)

// endTypes are the types of the last event of a stream.
var endTypes = map[string]bool{
	"message_stop":               true, // Anthropic
	"message-end":                true, // Cohere v2
	"response.completed":         true, // OpenAI Responses
	"response.incomplete":        true,
	"response.failed":            true,
	"response.cancelled":         true,
	"response.done":              true,
	"transcript.text.done":       true, // OpenAI audio
	"image_generation.completed": true, // OpenAI images
	"image_edit.completed":       true,
	"speech.audio.done":          true,
	"interaction.complete":       true, // Gemini interactions
	"stream-end":                 true, // Cohere v1
}

// forget drops what the current document has said.
func (r *reading) forget() {
	d := &r.doc
	d.open.clear()
	d.usage.clear()
	d.flat.clear()
	d.started, d.choice, d.kind = false, false, anyKind
	d.embedding, d.failed, d.maybe, d.finished, d.waiting = false, false, false, false, false
	d.text = [counters]int64{}
	r.raw = r.raw[:0]
}

func (r *reading) typeWord(w []byte) {
	d := &r.doc
	switch {
	case string(w) == "error":
		d.kind, d.failed = fails, true
	case endTypes[string(w)]:
		d.kind = ends
	case contains(w, "summary"), contains(w, "audio") && !contains(w, "transcript"):
		d.kind = notAnswer
	}
}

func contains(w []byte, part string) bool { return bytes.Contains(w, []byte(part)) }

func (r *reading) objectWord(w []byte) {
	if string(w) == "error" { // Mistral, vLLM
		r.doc.kind, r.doc.failed = fails, true
	}
}

func (r *reading) doneFlag(done bool)       { r.doc.waiting = !done }
func (r *reading) embeddingSeen(byte)       { r.doc.embedding = true }
func (r *reading) finishSeen(byte)          { r.doc.finished = true }
func (r *reading) finishFlag(finished bool) { r.doc.finished = r.doc.finished || finished }

// finishWord reads why the model stopped. Some say in words that it has not:
// DashScope "null", watsonx "not_finished", many "".
func (r *reading) finishWord(w []byte) {
	if len(w) > 0 && string(w) != "null" && !bytes.EqualFold(w, []byte("not_finished")) {
		r.doc.finished = true
	}
}

// errorSeen takes an object for an error; null is none.
func (r *reading) errorSeen(first byte) { r.doc.failed = r.doc.failed || first == '{' }

func (r *reading) errorWord(w []byte) { r.doc.failed = r.doc.failed || len(w) > 0 }

func (r *reading) addText(c counter, n int64) { r.doc.text[c] += n }

// maybeFailed marks a document with a member that tells success from failure.
func (r *reading) maybeFailed(byte) { r.doc.maybe = true }

func (r *reading) successFlag(ok bool) { r.doc.maybe = r.doc.maybe || !ok }

// usageType reads {"type":"duration","seconds":375}: the cost is no tokens.
func (r *reading) usageType(w []byte) {
	if string(w) == "duration" {
		r.doc.open.set(fieldOther, 1)
	}
}

// number takes a number for a count. What no count can be (below zero, a
// fraction, above 2^53) is impossible.
func (r *reading) number(n node, m *member, word []byte) {
	if m.field == fieldOther || m.field == fieldSeconds {
		// Seconds and searches may be fractions. All that matters is that there
		// are some.
		if v := bytes.Trim(word, "0.eE+-"); word[0] != '-' && len(v) > 0 {
			r.doc.open.set(fieldOther, 1)
		}
		if v, ok := parseCount(word); ok && m.field == fieldSeconds {
			r.doc.open.set(fieldSeconds, v)
		}
		return
	}
	v, ok := parseCount(word)
	if !ok {
		r.impossible(n, m)
		return
	}
	if m.field == fieldIndex {
		r.choices = r.choices || v > 0
		return
	}
	if isFlat(n) {
		r.doc.flat.set(m.field, v)
		return
	}
	r.doc.open.set(m.field, v)
}

// isFlat reports whether the counts of a node are those of the document.
func isFlat(n node) bool { return n == nodeRoot || n == nodeResults || n == nodeStatistics }

// impossible takes in a member that should be a count and cannot be one: the
// object that it belongs to states nothing. The details of a count are an object
// of their own, so there only the member is lost.
func (r *reading) impossible(n node, m *member) {
	switch {
	case m.field == fieldNone || m.field == fieldIndex || m.field == fieldOther || m.field == fieldSeconds:
	case n == nodeInDetails || n == nodeOutDetails:
	case isFlat(n):
		r.doc.flat.bad = true
	default:
		r.doc.open.bad = true
	}
}

// openUsage begins a usage object inside a container of the given kind.
func (r *reading) openUsage(parent node) {
	r.doc.open.clear()
	r.doc.place = parent
}

// closeUsage takes the usage object that has just been closed. One without a
// count ("trafficType" only, a cost in dollars) says nothing and replaces
// nothing.
func (r *reading) closeUsage() {
	d := &r.doc
	if s, ok := d.open.get(fieldSeconds); ok {
		r.seconds = Count{s, true}
	}
	choice := d.place == nodeChoices
	if d.open.others() {
		r.others = true
	}
	if d.open.counts() && (!choice || d.choice || !d.usage.counts()) {
		d.usage, d.started, d.choice = d.open, d.place == nodeMessage, choice
	}
}

// endDocument lets the document take effect.
func (r *reading) endDocument() {
	d := &r.doc
	r.document = true
	r.waiting = d.waiting
	r.done = r.done || d.kind == ends || d.kind == fails
	r.finished = r.finished || d.finished
	switch {
	case d.failed || r.exception != "":
		r.refuse()
	case d.maybe && len(r.raw) > 0:
		r.refuseMaybe()
	}
	r.settle()
	r.forget()
}

// cut ends a document that will not be completed. Whole usage objects in it
// still count, because the server stated them. An unfinished error counts too,
// if its beginning was there.
func (r *reading) cut() {
	if r.doc.failed {
		r.refuse()
	}
	r.settle()
	r.forget()
}

// settle merges what the document says of usage and text.
//
// The last statement replaces the ones before: streams state running totals,
// and adding them up is the classic mistake. After Anthropic's message_start a
// statement replaces only the counts in it, because message_delta may state the
// output alone.
func (r *reading) settle() {
	d := &r.doc
	u := &d.usage
	if !u.counts() {
		u = &d.flat
	}
	switch {
	case !u.counts():
	case d.started:
		// The output count of message_start is a placeholder.
		u.unset(fieldOutput)
		r.usage, r.choice = *u, false
		r.started = true
	case r.started:
		r.usage.overlay(u)
	case u.zero():
		// Nothing but zeros: nobody counted. A call has at least a prompt.
		// (Recorded from OpenAI Responses on response.incomplete.)
	case d.choice && r.usage.counts() && !r.choice:
		// What was stated of the whole call stands.
	default:
		u.embedding = d.embedding
		r.usage, r.choice = *u, d.choice
		r.stated = r.stated || r.finished
	}
	t := &d.text
	if d.kind == notAnswer {
		t[typedText] = 0
	}
	if r.stream {
		t[wholeText] = 0
	}
	r.text += t[plainText] + t[wholeText] + t[typedText] + max(t[reasoningText], t[reasoningTwice])
}

// captureMember begins to keep a value under a name.
func (r *reading) captureMember(name string) {
	r.capture([]byte(`,"`))
	r.capture([]byte(name))
	r.capture([]byte(`":`))
	r.value = len(r.raw)
}

// captured ends it. An error that is an empty object is none.
func (r *reading) captured() {
	v := r.raw[r.value:]
	if len(v) > 1 && v[0] == '{' && v[len(v)-1] == '}' && len(bytes.TrimSpace(v[1:len(v)-1])) == 0 {
		r.doc.failed = r.doc.kind == fails
	}
}

func (r *reading) capture(p []byte) {
	r.raw = append(r.raw, p[:min(len(p), maxError-len(r.raw))]...)
}

// now is the clock for instants in errors. Tests stop it.
var now = time.Now

// refuse judges the error in the document.
func (r *reading) refuse() {
	body := []byte(`{"object":"error"`)
	if r.exception != "" {
		body = fmt.Appendf(nil, `{"error":{"type":%q`, r.exception)
		r.exception = ""
	}
	body = append(append(body, r.raw...), "}}"...)
	r.keepRefusal(refusal.ClassifyWith(http.StatusOK, body, refusal.Options{Now: now()}))
}

// refuseMaybe asks the refusal rules whether the document is an error at all.
// raw begins with a comma.
func (r *reading) refuseMaybe() {
	body := append(append([]byte("{"), r.raw[1:]...), '}')
	if v := refusal.ClassifyWith(http.StatusOK, body, refusal.Options{Now: now()}); v != (refusal.Verdict{}) {
		r.keepRefusal(v)
	}
}

func (r *reading) keepRefusal(v refusal.Verdict) {
	r.done = true
	r.refusal = &Refusal{
		Class: RefusalClass(v.Class), Retryable: v.Retryable, Account: v.Account,
		Wait: v.Wait, Reset: v.Reset, Window: v.Span, Wide: v.Wide, Dimension: v.Dimension, Scope: v.Scope, ScopeSure: v.ScopeSure, Code: v.Code, Type: v.Type, Status: v.Status,
		Limit: v.Limit, Used: v.Used, Requested: v.Requested,
		InStream: r.stream, AfterOutput: r.text > 0,
	}
}

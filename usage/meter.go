package usage

import (
	"mime"
	"strings"

	"github.com/tripmeter/tripmeter/internal/packed"
)

// A Result is what one response said.
type Result struct {
	Counts
	// Found: at least one of Input, Output and Total is known. If not, the
	// estimate must stand.
	Found bool
	// Refusal is the last error in the body, judged by the body alone: a
	// stream that began with 200 may still be refused. Nil: there was none.
	// Its class is "" if the error is of no known kind. Of a response whose
	// status is an error, judge the status with the body instead.
	Refusal *Refusal
	// NoTokens: the body states what the call cost, and that is no tokens but
	// seconds, images, searches, pages or characters. Limits on tokens were not
	// touched.
	NoTokens bool
	// OutputBytes is the length in bytes of the output text seen (answer,
	// reasoning, tool arguments), decoded. It is a lower bound of what was
	// produced: media, and text in places that are not known, are not in it.
	// It is too large if a server repeats the whole text in every delta,
	// against the specification. It is for a stream that was cut before it
	// stated its usage.
	OutputBytes int64
	// Complete: the body itself said that it was over (closed JSON, [DONE],
	// the last event). If not, Counts hold the statements until then and are a
	// lower bound.
	Complete bool
}

// A Meter reads the cost of one response from a copy of its body's bytes.
//
// Give it every piece to Write, in order, cut anywhere: the result depends on
// the bytes only. It keeps a few kilobytes for any body (with a compressed body
// at most [MaxPacked] more). It takes no error back and gives none: a count
// that it cannot read is unknown.
//
// Use NewMeter; the zero value reads nothing. A Meter is not safe for
// concurrent use.
type Meter struct {
	scan   scanner
	r      reading
	sse    sse
	frames *frames
	kept   kept

	format   format
	declared declared
	bom      uint8 // bytes of a byte order mark seen
	closed   bool
	result   Result
}

// A format is how the documents stand in the body.
type format uint8

const (
	nothing  format = iota // not read
	sniffing               // not known yet
	jsonText               // documents one after the other: one, or lines, or a list
	events                 // server-sent events
	framed                 // event-stream frames
	zipped                 // kept until Close, and unpacked then
)

// declared is what the Content-Type says, as far as it matters.
type declared uint8

const (
	undeclared declared = iota
	declaredEvents
	declaredFrames
	declaredLines
	declaredMedia // audio, images: nothing to read
)

// NewMeter returns a Meter for a response with these header values, which may
// be empty. The request plays no part: only the response says which kind of
// body it is.
func NewMeter(contentType, contentEncoding string) *Meter {
	m := new(Meter)
	m.Reset(contentType, contentEncoding)
	return m
}

// Reset makes m a Meter for another response, as NewMeter does. Results that m
// has returned stay as they are.
func (m *Meter) Reset(contentType, contentEncoding string) {
	*m = Meter{format: sniffing, declared: declaredType(contentType)}
	m.scan.r = &m.r
	m.sse.scan = &m.scan
	if m.declared == declaredMedia {
		m.format = nothing
		return
	}
	switch {
	case packed.Plain(contentEncoding):
	case packed.Known(contentEncoding):
		m.format, m.kept.encoding = zipped, contentEncoding
	default:
		m.format = nothing
	}
}

func declaredType(contentType string) declared {
	if contentType == "application/json" { // nearly all of them; parsing allocates
		return undeclared
	}
	t, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		t, _, _ = strings.Cut(contentType, ";")
		t = strings.ToLower(strings.TrimSpace(t))
	}
	switch t {
	case "text/event-stream":
		return declaredEvents
	case "application/vnd.amazon.eventstream":
		return declaredFrames
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines":
		return declaredLines
	}
	kind, _, _ := strings.Cut(t, "/")
	switch kind {
	case "audio", "image", "video", "font":
		return declaredMedia
	}
	return undeclared
}

// Write reads the next bytes of the body. It keeps no part of p.
func (m *Meter) Write(p []byte) {
	switch {
	case m.closed || m.format == nothing || len(p) == 0:
	case m.format == zipped:
		if !m.kept.write(p) {
			m.format = nothing
		}
	default:
		m.plain(p)
	}
}

// plain reads bytes that are not compressed.
func (m *Meter) plain(p []byte) {
	if m.format == sniffing {
		p = m.sniff(p)
	}
	switch m.format {
	case jsonText:
		if m.declared == declaredLines {
			m.lines(p)
			return
		}
		m.scan.write(p)
	case events:
		m.sse.write(p)
	case framed:
		m.frames.write(p)
	}
}

// sniff decides the format by the first byte that is not blank, and returns the
// bytes from there on. The byte is better evidence than the header: servers
// send events as text/plain, lines as application/json, and errors in JSON
// under the type that was asked for.
func (m *Meter) sniff(p []byte) []byte {
	const mark = "\xef\xbb\xbf"
	for i, c := range p {
		if m.declared == declaredFrames && c != '{' && c != '[' {
			m.format, m.frames = framed, newFrames(&m.scan)
			return p[i:]
		}
		if int(m.bom) < len(mark) && c == mark[m.bom] {
			m.bom++
			continue
		}
		if m.bom != 0 && int(m.bom) != len(mark) {
			m.format = nothing // half a mark
			return nil
		}
		if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
			m.bom = uint8(len(mark)) // a mark stands first or not at all
			continue                 // DeepSeek sends blank lines while a call waits
		}
		switch {
		case c == '{' || c == '[':
			m.format = jsonText
		case strings.IndexByte("deir:", c) >= 0, m.declared == declaredEvents:
			// data, event, id, retry, comment
			m.format, m.r.stream = events, true
		default:
			m.format = nothing
		}
		return p[i:]
	}
	return nil
}

// lines reads documents that are declared to stand in a line each: after a line
// that is no JSON the next one is read again. In other bodies that would be a
// guess, for a line may begin anywhere in a document.
func (m *Meter) lines(p []byte) {
	for len(p) > 0 {
		end := len(p)
		for i, c := range p {
			if c == '\n' {
				end = i + 1
				break
			}
		}
		m.scan.write(p[:end])
		if p[end-1] == '\n' && m.scan.state == lost {
			m.scan.reset()
		}
		p = p[end:]
	}
}

// Close ends the body, whether it was read to its end or not, and returns what
// was read. Further calls return the same; further writes do nothing.
func (m *Meter) Close() Result {
	if m.closed {
		return m.result
	}
	whole := true
	if m.format == zipped {
		m.format = sniffing
		whole = m.kept.unpack(m.plain)
	}
	m.closed = true

	r := &m.r
	complete := r.done || r.finished && r.stated
	if m.format == jsonText {
		complete = r.document && m.scan.state == begin && !r.waiting && (r.done || !r.started)
	}
	if m.scan.midway() {
		r.cut()
	}
	if r.choice && r.choices {
		r.usage.clear() // one choice's cost is not the call's
	}
	c := r.usage.normal()
	c.AudioSeconds = r.seconds
	m.result = Result{
		Counts:      c,
		Found:       c.Known(),
		Refusal:     r.refusal,
		NoTokens:    r.others && !c.Known(),
		OutputBytes: r.text,
		Complete:    complete && whole,
	}
	m.kept, m.frames, m.scan.base64 = kept{}, nil, nil
	return m.result
}

// Read reads a whole body at once.
func Read(contentType, contentEncoding string, body []byte) Result {
	m := NewMeter(contentType, contentEncoding)
	m.Write(body)
	return m.Close()
}

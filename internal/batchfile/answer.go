package batchfile

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"
)

// An Answer is a line of the output: an answer of the provider with any
// status, or an error without one.
type Answer struct {
	ID       string    `json:"id"`        // "batch_req_7" for line 7
	CustomID *string   `json:"custom_id"` // nil for a line that has none of its own
	Response *Response `json:"response"`
	Error    *Failure  `json:"error"`
}

// A Response is what the provider answered.
type Response struct {
	StatusCode int             `json:"status_code"`
	RequestID  string          `json:"request_id"`
	Body       json.RawMessage `json:"body"`
}

// A Failure says why there is no answer.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Encode is v as a line of JSON, its end included. Nothing is escaped that need
// not be, so an answer stays as the provider wrote it. Encode fails on no
// Answer whose Body came from AsJSON.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// AsJSON is a body as a JSON value: itself; or a string, of a stream or an
// error page; or a data URL, of what is no text.
func AsJSON(body []byte) json.RawMessage {
	if utf8.Valid(body) && json.Valid(body) {
		return body
	}
	text := string(body)
	if !utf8.Valid(body) {
		text = "data:application/octet-stream;base64," + base64.StdEncoding.EncodeToString(body)
	}
	b, _ := Encode(text) // a string cannot fail
	return bytes.TrimSuffix(b, []byte("\n"))
}

// A Head is what the beginning of an output line says.
type Head struct {
	ID, CustomID string
	Status       int // 0: no response
	RequestID    string
	Code         string // of the error, where there is no response
}

// Key is how the line's request is known: its custom_id, or for a bad line, which
// has none, [LineKey].
func (h Head) Key() string {
	if h.CustomID != "" {
		return h.CustomID
	}
	return LineKey(h.ID)
}

// LineKey is the key of a bad line. No custom_id of a request begins with a zero byte
// and "line".
func LineKey(id string) string { return "\x00line " + id }

// ParseHead reads an output line. Of a long one only the beginning is there,
// and that is enough if its members stand in the order of Answer. ok is false
// if the line is no answer.
func ParseHead(line []byte, long bool) (h Head, ok bool) {
	if !long && !json.Valid(line) {
		return Head{}, false
	}
	if h, ok = scanHead(line); ok || long {
		return h, ok
	}
	var a struct {
		ID       string    `json:"id"`
		CustomID *string   `json:"custom_id"`
		Response *Response `json:"response"`
		Error    *Failure  `json:"error"`
	}
	if json.Unmarshal(line, &a) != nil || a.ID == "" || a.Response == nil && a.Error == nil {
		return Head{}, false
	}
	h.ID = a.ID
	if a.CustomID != nil {
		h.CustomID = *a.CustomID
	} else if a.Error == nil {
		return Head{}, false
	}
	if a.Response != nil {
		h.Status, h.RequestID = a.Response.StatusCode, a.Response.RequestID
	} else {
		h.Code = a.Error.Code
	}
	return h, true
}

// scanHead reads a line that this package wrote, without its body.
func scanHead(line []byte) (h Head, ok bool) {
	s := scanner{rest: line, ok: true}
	s.skip(`{"id":`)
	h.ID = s.text()
	s.skip(`,"custom_id":`)
	if bytes.HasPrefix(s.rest, []byte("null")) {
		s.skip(`null`)
	} else {
		h.CustomID = s.text()
	}
	s.skip(`,"response":`)
	if bytes.HasPrefix(s.rest, []byte("null")) {
		s.skip(`null,"error":{"code":`)
		h.Code = s.text()
		return h, s.ok && h.ID != ""
	}
	s.skip(`{"status_code":`)
	for s.ok && len(s.rest) > 0 && s.rest[0] >= '0' && s.rest[0] <= '9' && h.Status < 1000 {
		h.Status = 10*h.Status + int(s.rest[0]-'0')
		s.rest = s.rest[1:]
	}
	s.skip(`,"request_id":`)
	h.RequestID = s.text()
	s.skip(`,"body":`)
	return h, s.ok && h.ID != "" && h.CustomID != ""
}

type scanner struct {
	rest []byte
	ok   bool
}

func (s *scanner) skip(want string) {
	rest, ok := bytes.CutPrefix(s.rest, []byte(want))
	s.rest, s.ok = rest, s.ok && ok
}

// text reads a JSON string.
func (s *scanner) text() (text string) {
	if !s.ok || len(s.rest) == 0 || s.rest[0] != '"' {
		s.ok = false
		return ""
	}
	for i := 1; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '\\':
			i++
		case '"':
			raw := s.rest[:i+1]
			s.rest = s.rest[i+1:]
			if bytes.IndexByte(raw, '\\') < 0 {
				return string(raw[1:i])
			}
			s.ok = json.Unmarshal(raw, &text) == nil
			return text
		}
	}
	s.ok = false
	return ""
}

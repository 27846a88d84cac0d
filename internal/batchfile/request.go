package batchfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// MaxLine is the longest line in bytes, without its end. A longer request is a
// bad line.
const MaxLine = 64 << 20

// A Request is a line of the input.
type Request struct {
	CustomID string          `json:"custom_id"`
	Method   string          `json:"method"`
	URL      string          `json:"url"`
	Body     json.RawMessage `json:"body"`
}

// ParseRequest reads a line. long says that [Lines.Next] gave only its
// beginning. The error says what is wrong, in words, and the Request then holds
// what could be read.
func ParseRequest(line []byte, long bool) (Request, error) {
	var r Request
	if long {
		return r, fmt.Errorf("longer than %d bytes", MaxLine)
	}
	err := json.Unmarshal(line, &r)
	var other *json.UnmarshalTypeError
	switch {
	case errors.As(err, &other) && other.Field == "":
		return r, fmt.Errorf("must be an object, not a JSON %s", other.Value)
	case errors.As(err, &other):
		return r, fmt.Errorf("%s must be a string, not a JSON %s", other.Field, other.Value)
	case err != nil:
		return r, fmt.Errorf("not JSON: %w", err)
	case r.CustomID == "":
		return r, errors.New("custom_id is missing")
	case r.Method != http.MethodPost:
		return r, fmt.Errorf("method is %q; the Batch format has POST", r.Method)
	case !strings.HasPrefix(r.URL, "/") || strings.HasPrefix(r.URL, "//"):
		return r, errors.New(`url must be a path, such as "/v1/chat/completions"`)
	case len(r.Body) == 0 || r.Body[0] != '{':
		return r, errors.New("body is missing, or not an object")
	}
	return r, nil
}

// Join puts a request's path behind the base, which may end in the /v1 that
// the path begins with.
func Join(base, path string) string {
	base = strings.TrimSuffix(base, "/")
	if v := "/v1"; strings.HasSuffix(base, v) && (path == v || strings.HasPrefix(path, v+"/")) {
		base = strings.TrimSuffix(base, v)
	}
	return base + path
}

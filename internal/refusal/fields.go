package refusal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tripmeter/tripmeter/internal/retryafter"
)

// maxWord bounds a code, type or status. Longer ones are not words.
const maxWord = 128

// fields are the members of an error body that any rule looks at.
type fields struct {
	failed     bool // there is an error at all
	plain      bool // it is a string
	code       string
	typ        string
	status     string // a word, as in Google API errors
	httpStatus string // digits
	message    string
	param      string

	text  bool     // the body is a sentence and no JSON
	codes []string // its words that may be codes, in lower case

	reason string // of google.rpc.ErrorInfo
	scope  string // of a member "scope" or the like
	scoped string // a numeric code with its interface in front, "minimax:1002"

	waits       times
	quotaIDs    []string // of Google's QuotaFailure, at most maxQuotas
	quotaZero   bool     // a quotaValue of "0"
	quotaValue  int64    // the first that is not
	quotaOf     string   // its quotaId or quotaMetric
	upstream    bool     // OpenRouter: another provider refused
	headerLimit string   // OpenRouter: metadata.headers["X-RateLimit-Limit"]

	headers http.Header // OpenRouter: metadata.headers, at most maxQuotas of them
}

const maxQuotas = 16

// A node is a place in an error body whose members mean something.
type node uint8

const (
	skip       node = iota // nothing in here is read
	root                   // the whole body
	errorObj               // "error"
	errorList              // "errors", an array of error objects
	response               // "response" of a response.failed event
	metadata               // error.metadata (OpenRouter)
	headersObj             // error.metadata.headers (OpenRouter)
	details                // error.details (Google), an array
	detail                 // one of them
	violations             // detail.violations, an array
	violation              // one of them
	aside                  // members that may hold a wait, and no verdict
	beside                 // "detail" (FastAPI): what stands at the top elsewhere
	baseResp               // base_resp (MiniMax)
	tencent                // Response (Tencent Hunyuan)
)

// child says what the member key of an object at n leads to.
func child(n node, key string) node {
	switch n {
	case root:
		switch key {
		case "error":
			return errorObj
		case "errors":
			return errorList
		case "response":
			return response
		case "base_resp":
			return baseResp
		case "Response":
			return tencent
		case "detail":
			return beside
		case "details", "metadata", "extra", "data", "rate_limit", "rateLimit", "quota":
			return aside
		}
	case beside:
		switch key {
		case "error":
			return beside
		case "details", "metadata", "extra":
			return aside
		}
	case tencent:
		if key == "Error" {
			return errorObj
		}
	case response:
		if key == "error" {
			return errorObj
		}
	case errorObj:
		switch key {
		case "error": // a proxy wrapped the provider's error once more
			return errorObj
		case "metadata":
			return metadata
		case "details":
			return details
		case "extra", "data", "rate_limit", "rateLimit", "quota", "extensions": // the last is GraphQL's
			return aside
		}
	case metadata:
		if key == "headers" {
			return headersObj
		}
	case detail:
		switch key {
		case "violations":
			return violations
		case "metadata": // google.rpc.ErrorInfo
			return aside
		}
	}
	return skip
}

// element says what the elements of an array at n are.
func element(n node) node {
	switch n {
	case root: // Gemini wraps the error of a list stream in a list
		return root
	case errorList:
		return errorObj
	case details:
		return detail
	case violations:
		return violation
	}
	return skip
}

// read collects the fields of a body. Parts that cannot be read are left out.
func read(body []byte, clock *retryafter.Clock) *fields {
	if len(body) > MaxBody {
		body = body[:MaxBody]
	}
	body = payload(body)
	f := new(fields)
	if len(body) == 0 {
		return f
	}
	if body[0] != '{' && body[0] != '[' {
		// A plain sentence is an error body too; binary is not.
		if bytes.IndexByte(body, 0) < 0 {
			f.message, f.text = string(body), body[0] != '<' // a page has the words of its style
			if body[0] == '"' && json.Unmarshal(body, &f.message) != nil {
				f.message = string(body)
			}
		}
		return f
	}
	var top fields // members beside "error"
	w := walker{b: body, err: f, top: &top, clock: clock}
	w.value(root, 0)
	f.waits.join(&top.waits)
	if f.failed {
		f.complete(&top)
	} else {
		// No "error" object: Mistral, Cohere, Bedrock and NVIDIA put the
		// members at the top. On a 2xx that needs one of the two signs.
		failed := strings.EqualFold(top.typ, "error") || top.status == "error" || top.failed
		top.waits = f.waits
		top.quotaIDs, top.quotaZero, top.quotaValue, top.quotaOf = f.quotaIDs, f.quotaZero, f.quotaValue, f.quotaOf
		*f = top
		f.failed = failed || w.object == "error"
	}
	f.unwrap(clock)
	return f
}

// complete takes from the members beside an error what the error does not say.
func (f *fields) complete(top *fields) {
	f.code = cmp.Or(f.code, top.code)
	f.scoped = cmp.Or(f.scoped, top.scoped)
	f.scope = cmp.Or(f.scope, top.scope)
	f.message = cmp.Or(f.message, top.message)
	f.httpStatus = cmp.Or(f.httpStatus, top.httpStatus)
	if f.typ == "" && f.plain {
		f.typ = top.typ
	}
}

// unwrap reads the error in the message of another: a proxy may put the provider's
// whole JSON into its own message.
func (f *fields) unwrap(clock *retryafter.Clock) {
	m := strings.TrimLeft(f.message, " \n\t\r")
	if !strings.HasPrefix(m, "{") {
		return
	}
	inner := fields{}
	w := walker{b: []byte(m), err: &inner, top: &fields{}, clock: clock}
	w.value(root, 0)
	if inner.failed {
		inner.waits.join(&f.waits)
		inner.code = cmp.Or(inner.code, f.code)
		*f = inner
	}
}

// payload strips what may stand before the JSON: a byte order mark, blanks
// (DeepSeek's keep-alive lines), and the framing of a server-sent event.
func payload(b []byte) []byte {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	b = bytes.TrimLeft(b, " \t\r\n")
	for bytes.HasPrefix(b, []byte("event:")) || bytes.HasPrefix(b, []byte("id:")) || bytes.HasPrefix(b, []byte(":")) {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			return nil
		}
		b = bytes.TrimLeft(b[i:], " \t\r\n")
	}
	if bytes.HasPrefix(b, []byte("data:")) {
		b = bytes.TrimLeft(b[len("data:"):], " \t")
	}
	return b
}

// maxDepth bounds the recursion. Real error bodies are five deep.
const maxDepth = 64

// A walker visits a JSON text once, from the left, and stops where the text
// stops making sense. What was read until there counts.
//
// encoding/json would refuse a truncated body as a whole, and the message that
// matters is in its first bytes.
type walker struct {
	b        []byte
	i        int
	err, top *fields
	clock    *retryafter.Clock
	object   string // the top-level "object" member
}

func (w *walker) space() {
	for w.i < len(w.b) {
		switch w.b[w.i] {
		case ' ', '\t', '\r', '\n':
			w.i++
		default:
			return
		}
	}
}

// value reads the value at w.i. It is false where reading must end.
func (w *walker) value(n node, depth int) bool {
	w.space()
	if w.i >= len(w.b) || depth > maxDepth {
		return false
	}
	switch w.b[w.i] {
	case '{':
		if n == errorList { // ModelScope: "errors" is one error
			n = errorObj
		}
		return w.members(n, depth)
	case '[':
		w.i++
		e := element(n)
		for {
			w.space()
			if w.i < len(w.b) && w.b[w.i] == ']' {
				w.i++
				return true
			}
			if !w.value(e, depth+1) {
				return false
			}
			w.space()
			if w.i < len(w.b) && w.b[w.i] == ',' {
				w.i++
			}
		}
	}
	_, _, ok := w.scalar()
	return ok
}

func (w *walker) members(n node, depth int) bool {
	w.i++
	if n == errorObj {
		w.err.failed = true
	}
	for {
		w.space()
		if w.i >= len(w.b) {
			return false
		}
		switch w.b[w.i] {
		case '}':
			w.i++
			return true
		case ',':
			w.i++
			continue
		}
		key, isString, ok := w.scalar()
		if !ok || !isString {
			return false
		}
		w.space()
		if w.i >= len(w.b) || w.b[w.i] != ':' {
			return false
		}
		w.i++
		w.space()
		if w.i >= len(w.b) {
			return false
		}
		k := ""
		if n != skip && len(key) <= maxWord {
			k = text(key)
		}
		if c := w.b[w.i]; c == '{' || c == '[' {
			at := w.i
			if !w.value(child(n, k), depth+1) {
				return false
			}
			if c == '{' && n != skip {
				w.of(n).waits.span(k, w.b[at:w.i], w.clock)
			}
			continue
		}
		v, isString, ok := w.scalar()
		if !ok {
			return false
		}
		w.set(n, k, v, isString)
	}
}

// scalar reads a string (without its quotes, escapes as they stand) or a bare
// word. An unfinished one is not read at all: "try again in 17m" may have been
// going on "31s".
func (w *walker) scalar() (raw []byte, isString, ok bool) {
	if w.b[w.i] != '"' {
		start := w.i
		for w.i < len(w.b) {
			switch w.b[w.i] {
			case ',', '}', ']', ' ', '\t', '\r', '\n':
				return w.b[start:w.i], false, w.i > start
			case '"', ':', '{', '[':
				return nil, false, false
			}
			w.i++
		}
		return nil, false, false
	}
	start := w.i + 1
	for i := start; ; {
		q := bytes.IndexByte(w.b[i:], '"')
		if q < 0 {
			w.i = len(w.b)
			return nil, true, false
		}
		i += q
		// The quote ends the string unless an odd number of backslashes
		// stands before it.
		back := i
		for back > start && w.b[back-1] == '\\' {
			back--
		}
		if (i-back)%2 == 0 {
			w.i = i + 1
			return w.b[start:i], true, true
		}
		i++
	}
}

// text decodes the inside of a JSON string. Faulty escapes leave it as it is.
func text(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw)
	}
	quoted := append(append(append(make([]byte, 0, len(raw)+2), '"'), raw...), '"')
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return string(raw)
	}
	return s
}

// of is where the members of an object at n belong.
func (w *walker) of(n node) *fields {
	if n == root || n == beside || n == baseResp {
		return w.top
	}
	return w.err
}

// set keeps one scalar member.
func (w *walker) set(n node, key string, raw []byte, isString bool) {
	if n == skip {
		return
	}
	f := w.of(n)
	isWord := isString && len(raw) <= maxWord
	f.waits.member(key, raw, isString, w.clock)
	switch key {
	case "scope", "limit_scope", "rate_limit_scope":
		if isWord {
			f.scope = text(raw)
		}
	}
	switch n {
	case root:
		w.atTop(key, raw, isString)
	case beside, errorObj:
		f.common(key, raw, isString)
	case baseResp:
		switch {
		case key == "status_code" && !isString && string(raw) != "null":
			f.numbered("minimax:", raw)
		case key == "status_msg" && isString:
			f.message = text(raw)
		}
	case metadata:
		switch {
		case key == "provider_name" || key == "raw":
			f.upstream = f.upstream || isString && len(raw) > 0
		case key == "limit_source" && isWord: // OpenRouter: openrouter_free_tier_daily
			f.reason = text(raw)
		}
	case headersObj:
		f.header(key, raw)
	case detail:
		if key == "reason" && isWord { // google.rpc.ErrorInfo
			f.reason = text(raw)
		}
	case violation:
		f.quota(key, raw)
	}
}

// atTop keeps a member of the whole body.
func (w *walker) atTop(key string, raw []byte, isString bool) {
	f := w.top
	switch key {
	case "error_code": // Baidu Qianfan: a number, and 0 is well
		if !isString && len(raw) <= maxWord && isDigit(raw[0]) {
			f.numbered("qianfan:", raw)
			return
		}
	case "success": // Zhipu's older interface, Cloudflare
		f.failed = f.failed || string(raw) == "false"
		return
	case "error", "detail", "title", "msg", "error_msg":
		switch {
		case !isString:
		case key == "error" && len(raw) > 0: // xAI and Hugging Face: the error is a string.
			w.err.failed, w.err.plain, w.err.message = true, true, text(raw)
		case f.message == "":
			f.message = text(raw)
		case key == "detail": // beside the title of RFC 9457, which names the kind alone
			f.message += ". " + text(raw)
		}
		return
	case "object":
		w.object = string(raw)
		return
	}
	f.common(key, raw, isString)
}

// numbered keeps the code of an interface that numbers its errors. 0 is none.
func (f *fields) numbered(scope string, raw []byte) {
	if c := string(raw); len(raw) <= maxWord && c != "0" {
		f.failed, f.code, f.scoped = true, c, scope+c
	}
}

// header keeps a header field that OpenRouter hands on.
func (f *fields) header(key string, raw []byte) {
	if strings.EqualFold(key, "x-ratelimit-limit") && len(raw) <= 20 {
		f.headerLimit = string(raw)
	}
	if len(f.headers) < maxQuotas && len(raw) <= maxWord {
		if f.headers == nil {
			f.headers = http.Header{}
		}
		f.headers.Set(key, text(raw))
	}
}

// quota keeps a member of one of Google's violations.
func (f *fields) quota(key string, raw []byte) {
	switch key {
	case "quotaId", "quotaMetric":
		if key == "quotaId" && len(f.quotaIDs) < maxQuotas && len(raw) <= 2*maxWord {
			f.quotaIDs = append(f.quotaIDs, string(raw))
		}
		if f.quotaValue == 0 {
			f.quotaOf += " " + string(raw[:min(len(raw), 2*maxWord)])
		}
	case "quotaValue":
		f.quotaZero = f.quotaZero || string(raw) == "0"
		if n, ok := plainInt(string(raw[:min(len(raw), 20)])); ok && f.quotaValue == 0 {
			f.quotaValue = n
		}
	}
}

// common keeps the members that error objects of all providers share.
func (f *fields) common(key string, raw []byte, isString bool) {
	word := ""
	if len(raw) <= maxWord && (isString || len(raw) > 0 && raw[0] >= '0' && raw[0] <= '9') {
		word = text(raw)
	}
	switch key {
	case "code", "Code":
		if f.code == "" {
			f.code = word
		}
	case "error_code": // Anthropic: narrower than the type beside it
		f.code = word
	case "type", "error_type":
		if isString {
			f.typ = word
		}
	case "__type": // Amazon
		if isString {
			f.typ = shapeName(word)
		}
	case "status", "statusCode":
		if isString && (word == "" || word[0] < '0' || word[0] > '9') {
			f.status = word
		} else {
			f.httpStatus = word
		}
	case "param":
		if isString {
			f.param = word
		}
	case "reason": // Google, in errors; Kiro
		if isString && f.reason == "" {
			f.reason = word
		}
	case "message", "Message":
		if isString {
			f.message = text(raw)
		}
	}
}

package estimate

import (
	"errors"
	"io"
	"strings"
	"sync"
	"unsafe"
)

// MaxBody is the largest body that is read, in bytes: the largest request that
// Anthropic takes (Anthropic API overview, request size limits). Larger ones are
// priced by rule.
const MaxBody = 32 << 20

const (
	// maxUnreadText is the size up to which a JSON body that cannot be read is
	// taken for text. Above it, it is taken for media: a body of that size is
	// oftener one picture than a hundred pages.
	maxUnreadText = 256 << 10

	// unreadTokens prices a body that cannot be read and whose size is not known.
	unreadTokens = 1000

	// maxUnreadTokens bounds the price of media that is not read. Too little is
	// paid back when the usage comes; too much refuses a call for nothing.
	maxUnreadTokens = 15_000
)

// Body inspects the body of a request without taking it from the request:
//
//	estimate.Body(req.GetBody, req.Header.Get("Content-Type"), req.ContentLength, estimate.Options{Path: req.URL.Path})
//
// getBody returns a copy of the body that has a reading position of its own, as
// http.Request.GetBody does; nil if there is none. size is the length in bytes, -1 if it
// is not known. Unread prices bodies that are not JSON, are larger than MaxBody or cannot
// be read a second time. Body never fails.
func Body(getBody func() (io.ReadCloser, error), contentType string, size int64, o Options) Request {
	t := mediaType(contentType)
	if readable(t) && getBody != nil {
		if r, ok := read(getBody, size, o); ok {
			return r
		}
	}
	r := unread(t, size)
	r.Model = modelInPath(o.Path)
	r.Stream = streamInPath(o.Path)
	return r
}

func read(getBody func() (io.ReadCloser, error), size int64, o Options) (r Request, ok bool) {
	i := inspections.Get().(*inspection)
	defer func() {
		*i = inspection{collector: collector{use: i.use}}
		inspections.Put(i)
	}()
	i.size, i.limit, i.o = size, MaxBody, o
	ok = i.read(getBody)
	return i.r, ok
}

// An inspection reads one body. They are used again: a body writes into one
// through an interface, so each request would pay for making it.
type inspection struct {
	collector
	o Options
	r Request
}

var inspections = sync.Pool{New: func() any {
	i := new(inspection)
	i.use = func(body []byte) { i.r = Inspect(body, i.o) }
	return i
}}

// Unread prices a body by its content type and its size in bytes (-1 is not
// known), without reading it.
//
//	JSON of up to 256 KiB   a quarter of a token a byte
//	JSON above              15,000 tokens: one picture more often than a hundred pages
//	everything else         an upload of sound: 64 kbit/s, 10 tokens a second, 15,000 at most
//	an unknown size         1,000 tokens
//
// All of it is a guess: see [Request.Guess].
func Unread(contentType string, size int64) Request { return unread(mediaType(contentType), size) }

func unread(t string, size int64) Request {
	r := Request{Kind: kindUnknown, Choices: 1, Size: max(size, -1)}
	json := readable(t)
	if t == "multipart/form-data" {
		r.Kind = kindMultipart
	}
	switch {
	case size < 0:
		r.Quarters = unreadTokens
	case json && size <= maxUnreadText:
		r.Quarters = ceilDiv(size, 4)
	case json:
		r.MediaTokens = maxUnreadTokens
	default:
		seconds := ceilDiv(size, compressedBytesPerSecond)
		r.MediaTokens = min(mulSat(seconds, 10), maxUnreadTokens)
	}
	r.Input = r.Quarters + r.MediaTokens
	r.Guess = r.Input
	return r
}

// mediaType is the type in a Content-Type field, without its parameters.
func mediaType(contentType string) string {
	switch contentType { // most are one of these
	case "application/json", "application/octet-stream":
		return contentType
	}
	t, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// Readable reports whether a body of this type may be JSON. A missing type may.
func Readable(contentType string) bool { return readable(mediaType(contentType)) }

func readable(t string) bool {
	return t == "" || strings.HasSuffix(t, "json") || strings.HasPrefix(t, "text/")
}

// read calls use with the bytes of a body, read through getBody, and reports
// whether it did. It does not if getBody is nil or fails, the body is larger than
// the limit, or reading it fails.
//
// The bodies that http.NewRequest can rewind (bytes.Reader, bytes.Buffer,
// strings.Reader) hand over their whole buffer in one Write: use then sees the
// caller's own bytes, and nothing is copied. It must neither change nor keep
// them. Other bodies are read into a buffer.
func (w *collector) read(getBody func() (io.ReadCloser, error)) bool {
	if getBody == nil || w.size > w.limit {
		return false
	}
	body, err := getBody()
	if err != nil || body == nil {
		return false
	}
	defer body.Close()
	if from, ok := body.(io.WriterTo); ok {
		if _, err := from.WriteTo(w); w.used {
			return true
		} else if err != nil {
			return false
		}
		w.use(w.buf)
		return true
	}
	var buf []byte
	if w.size > 0 { // net/http's 0 may mean that the length is not known
		buf = make([]byte, w.size)
		n, err := io.ReadFull(body, buf)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return false
		}
		buf = buf[:n]
	} else {
		buf, err = io.ReadAll(io.LimitReader(body, w.limit+1))
		if err != nil || int64(len(buf)) > w.limit {
			return false
		}
	}
	w.use(buf)
	return true
}

var errTooLarge = errors.New("estimate: body larger than the limit")

// A collector uses a body that comes in one Write where it lies, and puts
// together one that comes in several.
type collector struct {
	size, limit int64 // of the body, -1 if not known; and what it may have
	use         func([]byte)
	used        bool
	buf         []byte
}

// WriteString takes what strings.Reader has, which [io.WriteString] would copy.
// The bytes are only read: see use.
func (w *collector) WriteString(s string) (int, error) {
	return w.Write(unsafe.Slice(unsafe.StringData(s), len(s)))
}

func (w *collector) Write(p []byte) (int, error) {
	switch {
	case w.used: // more than size said: the rest will not be sent either
	case len(w.buf) == 0 && int64(len(p)) == w.size:
		w.used = true
		w.use(p)
	case int64(len(w.buf))+int64(len(p)) > w.limit:
		return 0, errTooLarge
	default:
		w.buf = append(w.buf, p...)
	}
	return len(p), nil
}

package debug

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/meter"
)

// Options configure [Handler]. The zero value is fine on a developer's machine.
type Options struct {
	// Authorize reports whether a request may see the page; the others get 403.
	// Nil is [Local].
	Authorize func(*http.Request) bool

	// Streams is how many pages may update themselves at once; one more gets
	// 503 and stays as it was loaded. 0 is 32.
	Streams int
}

// Local reports whether a request comes from this machine: from a loopback
// address, to a loopback address or localhost by name, and through no proxy that
// says so. The name matters, since a foreign page can point a name of its own at
// 127.0.0.1.
func Local(r *http.Request) bool {
	for _, h := range []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip"} {
		if len(r.Header.Values(h)) > 0 {
			return false
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil || !loopback(host) {
		return false
	}
	named := r.Host
	if h, _, err := net.SplitHostPort(named); err == nil {
		named = h
	}
	return named == "localhost" || loopback(strings.Trim(named, "[]"))
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

const (
	every    = time.Second // how often the state is read
	waiters  = 12          // of the line that are shown
	jsonLine = 1000        // of the line in state.json
)

// Handler returns the page of what m sees, to be mounted with a slash at its
// end, such as "/debug/tripmeter/". It starts no goroutine.
func Handler(m *meter.Meter, o Options) http.Handler {
	if o.Authorize == nil {
		o.Authorize = Local
	}
	if o.Streams <= 0 {
		o.Streams = 32
	}
	return &handler{m: m, o: o, streams: make(chan struct{}, o.Streams)}
}

type handler struct {
	m       *meter.Meter
	o       Options
	streams chan struct{} // one for each page that updates itself

	mu    sync.Mutex
	frame frame // the last one
}

// frame is the page's sections at one instant. All pages share it.
type frame struct {
	at       time.Time
	sections [len(sections)]string
	before   time.Time // at of the frame that came before; zero: there was none
	changes  []byte    // of the sections since then, as JSON
}

// since returns what a page needs that shows the frame sent, as JSON.
// Pages that are open get the same bytes, which were made once.
func (f *frame) since(sent *frame) ([]byte, error) {
	if sent.at.Equal(f.before) && f.changes != nil {
		return f.changes, nil
	}
	changed := map[string]string{}
	for i, name := range sections {
		if f.sections[i] != sent.sections[i] {
			changed[name] = f.sections[i]
		}
	}
	return json.Marshal(changed)
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Cache-Control", "no-store")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	if !h.o.Authorize(r) {
		http.Error(w, "not allowed; by default only this machine may look, see debug.Options.Authorize", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "the page only reads", http.StatusMethodNotAllowed)
		return
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/"):
		h.page(w)
	case path.Base(r.URL.Path) == "state.json":
		head.Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		e.Encode(h.m.Read(jsonLine, 0)) // an error is a client that left
	case path.Base(r.URL.Path) == "events":
		h.stream(w, r)
	default:
		http.NotFound(w, r)
	}
}

// now returns the sections, at most a second old.
func (h *handler) now() (frame, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.frame.at) < every*9/10 {
		return h.frame, nil
	}
	v := viewOf(h.m.Read(waiters, 0))
	f := frame{at: time.Now()}
	var b bytes.Buffer
	for i, name := range sections {
		b.Reset()
		if err := pages.ExecuteTemplate(&b, name, v); err != nil {
			return frame{}, err
		}
		f.sections[i] = b.String()
	}
	changes, err := f.since(&h.frame)
	if err != nil {
		return frame{}, err
	}
	f.before, f.changes = h.frame.at, changes
	h.frame = f
	return f, nil
}

func (h *handler) page(w http.ResponseWriter) {
	f, err := h.now()
	if err != nil {
		http.Error(w, "the page cannot be drawn", http.StatusInternalServerError)
		return
	}
	var secret [16]byte
	rand.Read(secret[:])
	nonce := base64.RawURLEncoding.EncodeToString(secret[:])
	var b bytes.Buffer
	if err := writePage(&b, nonce, f); err != nil {
		http.Error(w, "the page cannot be drawn", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", fmt.Sprintf(
		"default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", nonce, nonce))
	w.Write(b.Bytes())
}

// stream sends what changed of the page, once a second, until the client leaves.
func (h *handler) stream(w http.ResponseWriter, r *http.Request) {
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		http.Error(w, "too many pages update themselves; see debug.Options.Streams", http.StatusServiceUnavailable)
		return
	}
	c := http.NewResponseController(w)
	c.SetWriteDeadline(time.Time{}) // a server's WriteTimeout is not for streams; not every server has one
	w.Header().Set("Content-Type", "text/event-stream")
	var sent frame
	for {
		f, err := h.now()
		if err != nil {
			return
		}
		data, err := f.since(&sent)
		if err != nil {
			return
		}
		sent = f
		if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil {
			return
		}
		if err := c.Flush(); err != nil {
			return
		}
		t := time.NewTimer(every)
		select {
		case <-t.C:
		case <-r.Context().Done():
			t.Stop()
			return
		}
	}
}

package retry

import (
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/internal/packed"
)

const (
	// heldBytes is how much of a refused response is read. Enough for any error
	// body, and for the connection to be used again.
	heldBytes = 64 << 10

	// A body that trickles must not delay the next attempt. Reading is part of the
	// wait: it may take as long as the wait, between these bounds.
	heldAtLeast = 100 * time.Millisecond
	heldAtMost  = time.Second
)

// held is the body of a response that may be retried: its beginning is read ahead,
// and nothing of it is lost, as the caller may still get it.
//
// A goroutine reads up to heldBytes. It ends with the body, at the bound, or when
// the body is closed. Meanwhile the base's response is its own: net/http sets the
// trailer there when the body ends. Everybody else has a copy, which gets the
// trailer when its reader comes to the end.
type held struct {
	src      io.ReadCloser
	from, to *http.Response // the base's, and the copy

	mu       sync.Mutex
	grown    sync.Cond // buf, err or full changed
	buf      []byte    // read ahead; only ever appended to
	err      error     // how src ended; nil while it has not
	full     bool      // the reading ahead has stopped
	panicked any       // what src panicked with: it belongs to the goroutine that reads
	off      int       // bytes of buf that the caller has had
	closed   bool
}

// hold reads the body of resp ahead for at most d, or until stop is closed. When
// it has seen the end of the body it has closed it, so that the connection is free
// during the wait.
func hold(resp *http.Response, d time.Duration, stop <-chan struct{}) *held {
	to := new(*resp)
	to.Trailer = resp.Trailer.Clone()
	h := &held{src: resp.Body, from: resp, to: to}
	to.Body = h
	h.grown.L = &h.mu
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.readAhead(to.ContentLength)
	}()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-stop:
	}
	return h
}

func (h *held) readAhead(size int64) {
	defer func() {
		p := recover()
		h.mu.Lock()
		h.full, h.panicked = true, p
		h.grown.Broadcast()
		h.mu.Unlock()
	}()
	room := int64(4 << 10)
	if size >= 0 {
		room = min(room, size+1) // one more, to see the end
	}
	chunk := make([]byte, room)
	idle := 0
	for n := 0; n < heldBytes; {
		m, err := h.src.Read(chunk[:min(len(chunk), heldBytes-n)])
		n += m
		if m > 0 {
			idle = 0
		} else if idle++; idle == 100 && err == nil {
			err = io.ErrNoProgress // as bufio.Reader judges such a reader
		}
		if err == io.EOF {
			h.src.Close() // before anybody is told, so that the connection is free by then
		}
		h.mu.Lock()
		h.buf = append(h.buf, chunk[:m]...)
		h.err = err
		h.grown.Broadcast()
		h.mu.Unlock()
		if err != nil {
			break
		}
	}
}

// seen is what has been read ahead. It must not be changed.
func (h *held) seen() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.buf[:len(h.buf):len(h.buf)]
}

// Read gives the caller the whole body: first what was read ahead, then the rest.
func (h *held) Read(p []byte) (int, error) {
	h.mu.Lock()
	for {
		if h.closed {
			h.mu.Unlock()
			return 0, http.ErrBodyReadAfterClose
		}
		if h.off < len(h.buf) || len(p) == 0 {
			n := copy(p, h.buf[h.off:])
			h.off += n
			h.mu.Unlock()
			return n, nil
		}
		if h.err != nil {
			err := h.err
			h.mu.Unlock()
			h.ended(err)
			return 0, err
		}
		if h.panicked != nil {
			h.mu.Unlock()
			panic(h.panicked)
		}
		if h.full {
			h.mu.Unlock()
			n, err := h.src.Read(p)
			h.ended(err)
			return n, err
		}
		h.grown.Wait()
	}
}

// ended passes the trailer on at the end of the body. A map that the caller may
// have is filled, as net/http does.
func (h *held) ended(err error) {
	switch {
	case err != io.EOF:
	case h.to.Trailer == nil:
		h.to.Trailer = h.from.Trailer
	default:
		maps.Copy(h.to.Trailer, h.from.Trailer)
	}
}

// Close closes the body, which also ends the reading ahead.
func (h *held) Close() error {
	h.mu.Lock()
	first, ended := !h.closed, h.err == io.EOF
	h.closed = true
	h.grown.Broadcast()
	h.mu.Unlock()
	if !first || ended {
		return nil
	}
	return h.src.Close()
}

// plain returns body as text: unpacked if the caller asked for a coding itself and
// so net/http has left it packed. What cannot be unpacked is returned as it is.
func plain(h http.Header, body []byte) []byte {
	coding := strings.Join(h.Values("Content-Encoding"), ",") // one list, in several lines or one
	if packed.Plain(coding) || !packed.Known(coding) {
		return body
	}
	var text []byte
	packed.Unpack(coding, body, packed.Limits{Out: heldBytes}, func(p []byte) { text = append(text, p...) })
	if len(text) == 0 { // a packed body that was cut is still worth its beginning
		return body
	}
	return text
}

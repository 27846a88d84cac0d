package transport

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"
)

// patience is how long readAhead waits for the end of a body that can be read only
// once, to price it by its text. A body that is written while it is sent takes
// longer: it is priced by its size and streamed.
const patience = 100 * time.Millisecond

// shutting is how long Close waits for a Read that goes on after the body was
// closed. The body is the caller's again when RoundTrip returns. But one whose Read
// never returns, as of a terminal, must not hold its caller for ever.
const shutting = time.Second

// ahead is a request body whose beginning is read before it is sent. Nothing
// of it is lost, whether the reading ahead saw its end or not.
type ahead struct {
	src io.ReadCloser

	mu       sync.Mutex
	moved    sync.Cond // buf, err, or stopped changed
	buf      []byte    // read ahead
	off      int       // how much of buf has been read
	held     int64     // bytes taken from memory
	err      error     // how src ended, io.EOF too; nil while it has not
	enough   bool      // nobody waits for more
	stopped  bool      // the reading ahead is over
	idle     chan struct{}
	panicked any  // what src panicked with: it belongs to the goroutine that reads
	closed   bool // by the base or by RoundTrip
	done     bool // nobody needs the body again
}

// memory bounds what all read-aheads of the process hold together. Thousands may
// stand in line, each with its body. Beyond the bound a body is priced by its size
// and streamed.
var memory = room{most: 256 << 20}

// room is memory that is shared.
type room struct {
	most int64

	mu   sync.Mutex
	used int64
}

func (r *room) take(n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used+n > r.most {
		return false
	}
	r.used += n
	return true
}

func (r *room) give(n int64) {
	r.mu.Lock()
	r.used -= n
	r.mu.Unlock()
}

// readAhead reads src until its end, an error, more than most bytes, patience, the
// end of memory, or stop. size is the body's length, -1 if it is not known.
func readAhead(src io.ReadCloser, size, most int64, stop <-chan struct{}) *ahead {
	a := &ahead{src: src, idle: make(chan struct{})}
	a.moved.L = &a.mu
	room := int64(4 << 10)
	if size >= 0 {
		room = size + 1 // one more, to see the end
	}
	if !a.grow(room) {
		a.enough, a.stopped = true, true
		close(a.idle)
		return a
	}
	go func() {
		defer close(a.idle)
		a.fill(most)
	}()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-a.idle:
	case <-t.C:
	case <-stop:
	}
	a.mu.Lock()
	a.enough = true
	a.mu.Unlock()
	return a
}

// grow gives buf a capacity of n, if there is memory for it. The caller holds a.mu,
// or is alone.
func (a *ahead) grow(n int64) bool {
	if !memory.take(n) {
		return false
	}
	memory.give(a.held)
	a.held = n
	a.buf = append(make([]byte, 0, n), a.buf...)
	return true
}

// fill reads into buf until that is enough.
func (a *ahead) fill(most int64) {
	defer func() {
		p := recover()
		a.mu.Lock()
		a.stopped, a.panicked = true, p
		a.forget()
		a.moved.Broadcast()
		a.mu.Unlock()
	}()
	for {
		free := a.free()
		if free == nil {
			return
		}
		n, err := a.src.Read(free)
		a.mu.Lock()
		a.buf = a.buf[:len(a.buf)+n]
		a.err = err
		if err != nil || int64(len(a.buf)) > most {
			a.enough = true
		}
		a.moved.Broadcast()
		a.mu.Unlock()
	}
}

// free is the part of buf that the next Read fills, nil if there shall be none.
func (a *ahead) free() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.enough || a.closed {
		return nil
	}
	if n := int64(cap(a.buf)); int64(len(a.buf)) == n && !a.grow(2*n) {
		a.enough = true
		return nil
	}
	return a.buf[len(a.buf):cap(a.buf)]
}

// seen returns the bytes read ahead, and whether they are the whole body. The
// error is that of reading, nil at the end of the body.
func (a *ahead) seen() (head []byte, whole bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.panicked != nil {
		panic(a.panicked)
	}
	if a.err != nil && a.err != io.EOF {
		return nil, false, a.err
	}
	return a.buf, a.err == io.EOF, nil
}

// Read gives what was read ahead, then the rest.
func (a *ahead) Read(p []byte) (int, error) {
	a.mu.Lock()
	for {
		switch {
		case a.closed:
			a.mu.Unlock()
			return 0, http.ErrBodyReadAfterClose
		case a.off < len(a.buf) || len(p) == 0:
			n := copy(p, a.buf[a.off:])
			a.off += n
			a.forget()
			a.mu.Unlock()
			return n, nil
		case a.panicked != nil:
			a.mu.Unlock()
			panic(a.panicked)
		case a.err != nil:
			err := a.err
			a.mu.Unlock()
			return 0, err
		case a.stopped:
			a.forget()
			a.mu.Unlock()
			return a.src.Read(p)
		}
		a.moved.Wait()
	}
}

// Close closes the caller's body and ends the reading ahead. A Read that is under
// way may end first: not every body may be closed under its reader.
func (a *ahead) Close() error {
	a.mu.Lock()
	first := !a.closed
	a.closed = true
	a.moved.Broadcast()
	a.forget()
	a.mu.Unlock()
	if !first {
		return nil
	}
	a.rest(patience)
	err := a.src.Close()
	a.rest(shutting)
	return err
}

// rest waits for the end of the reading ahead, d at most.
func (a *ahead) rest(d time.Duration) {
	select {
	case <-a.idle:
		return
	default:
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-a.idle:
	case <-t.C:
	}
}

// again is the whole body once more.
func (a *ahead) again() (io.ReadCloser, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done {
		return nil, http.ErrBodyReadAfterClose
	}
	return io.NopCloser(bytes.NewReader(a.buf)), nil
}

// release gives the memory back: the body is not sent again.
func (a *ahead) release() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = true
	a.forget()
}

// forget lets go of what nobody reads any more: all of it is read or the body is
// closed, and it is either not whole, so that it cannot be sent again, or released.
// The caller holds a.mu.
func (a *ahead) forget() {
	if a.held == 0 || !a.closed && (a.off < len(a.buf) || !a.stopped) || !a.done && a.err == io.EOF {
		return
	}
	if a.closed && !a.stopped { // a Read may write to it
		return
	}
	memory.give(a.held)
	a.held, a.buf, a.off = 0, nil, 0
}

package transport

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// patience is how long readAhead waits for the end of a body that can be read only
// once, to price it by its text. A body that is written while it is sent takes
// longer: it is priced by its size and streamed.
const patience = 100 * time.Millisecond

// ahead is a request body whose beginning is read before it is sent. Nothing
// of it is lost, whether the reading ahead saw its end or not.
type ahead struct {
	src io.ReadCloser

	mu       sync.Mutex
	moved    sync.Cond // buf, err, or stopped changed
	buf      []byte    // read ahead
	err      error     // how src ended, io.EOF too; nil while it has not
	enough   bool      // nobody waits for more
	stopped  bool      // the reading ahead is over
	panicked any       // what src panicked with: it belongs to the goroutine that reads
	closed   bool
}

// readAhead reads src until its end, an error, more than most bytes, patience,
// or stop.
func readAhead(src io.ReadCloser, most int64, stop <-chan struct{}) *ahead {
	a := &ahead{src: src}
	a.moved.L = &a.mu
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.fill(most)
	}()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	case <-stop:
	}
	a.mu.Lock()
	a.enough = true
	a.mu.Unlock()
	return a
}

// fill reads into buf until that is enough.
func (a *ahead) fill(most int64) {
	defer func() {
		p := recover()
		a.mu.Lock()
		a.stopped, a.panicked = true, p
		a.moved.Broadcast()
		a.mu.Unlock()
	}()
	chunk := make([]byte, 4<<10)
	for a.goesOn() {
		n, err := a.src.Read(chunk)
		a.mu.Lock()
		a.buf = append(a.buf, chunk[:n]...)
		a.err = err
		if err != nil || int64(len(a.buf)) > most {
			a.enough = true
		}
		a.moved.Broadcast()
		a.mu.Unlock()
		if len(chunk) < 64<<10 && n == len(chunk) {
			chunk = make([]byte, 2*len(chunk))
		}
	}
}

func (a *ahead) goesOn() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.enough && !a.closed
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
		case len(a.buf) > 0 || len(p) == 0:
			n := copy(p, a.buf)
			a.buf = a.buf[n:]
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
			a.buf = nil
			a.mu.Unlock()
			return a.src.Read(p)
		}
		a.moved.Wait()
	}
}

// Close closes the caller's body, which also ends the reading ahead.
func (a *ahead) Close() error {
	a.mu.Lock()
	a.closed = true
	a.moved.Broadcast()
	a.mu.Unlock()
	return a.src.Close()
}

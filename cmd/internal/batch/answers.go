package batch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/internal/batchfile"
)

var (
	errInUse   = errors.New("another process is writing it; wait for that one, or name another file")
	errNoLocks = errors.New("this file system has no locks")
)

// syncEvery is how much work a power cut can cost: lines are on the disk that
// long after they were written, at the latest.
const syncEvery = time.Second

// answers writes an output, a line at a time. Methods but sync are called from
// one goroutine.
type answers struct {
	name string
	w    io.Writer
	f    *os.File // nil: standard output, a pipe or a device
	size int64    // of f, whole lines

	mu    sync.Mutex // guards below
	dirty bool
	err   error // the first of writing; ends the job
}

// found is what an output held before this run.
type found struct {
	lines    int64 // answers
	failed   int64 // of them, without a 2xx
	twice    int64 // lines that another worker has too, and that are taken out
	left     int64 // lines that say why a request got no answer
	practice bool  // there are answers that were made with -practice
	box      bool  // there are answers of package providertest, by their request id
	real     bool  // there are answers without -practice
	cut      int64 // bytes of a torn end that were removed
	noLocks  bool
}

// open opens an output for appending, takes it for this process, and reads what
// it holds into done. With retryFailed, lines without a 2xx are taken out, so
// that their requests are sent again.
// With claims, other workers hear of what the file holds, and a line that another
// worker has too is taken out.
func open(name string, stdout io.Writer, done *ids, retryFailed bool, claimed *claims) (*answers, found, error) {
	var was found
	if name == "-" {
		return &answers{name: "standard output", w: stdout}, was, nil
	}
	if i, err := os.Stat(name); err == nil && !i.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0) // holds nothing to go on from
		return &answers{name: name, w: f}, was, err
	}
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target // rewrite puts a new file in the place of the file, not of the link
	}
	f, noLocks, err := openLocked(name)
	if f == nil {
		return nil, was, err
	}
	was.noLocks = noLocks
	a := &answers{name: name, w: f, f: f}
	if err == nil {
		r := resumption{a: a, was: &was, done: done, retryFailed: retryFailed, claimed: claimed, both: map[string]bool{}}
		if err = r.read(); err == nil && r.outdated() {
			err = a.rewrite(r.keeps)
		}
	}
	if err != nil {
		a.f.Close()
		return nil, was, fmt.Errorf("%s: %w", name, err)
	}
	return a, was, nil
}

// openLocked opens a file for appending and takes it for this process. The process that
// had it may have put a new file in its place between the two: then that one is opened.
// With an error of the lock the file is returned too.
func openLocked(name string) (f *os.File, noLocks bool, err error) {
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			return nil, false, err
		}
		if err = lock(f); errors.Is(err, errNoLocks) {
			return f, true, nil
		}
		if err != nil {
			return f, false, err
		}
		ours, err := f.Stat()
		if err != nil {
			return f, false, err
		}
		if there, err := os.Stat(name); err == nil && os.SameFile(there, ours) {
			syncDir(name)
			return f, false, nil
		}
		f.Close()
	}
}

// syncDir brings the entry of a file in its directory to the disk, where the system can.
func syncDir(name string) {
	if d, err := os.Open(filepath.Dir(name)); err == nil {
		d.Sync()
		d.Close()
	}
}

// The ids of lines begin with one of these, and the request ids of package
// providertest with boxID.
const (
	realID     = "batch_req_"
	practiceID = "practice_req_"
	boxID      = "req_box"
)

// leftCode begins the code of lines that say why a request got no answer. They
// are no final lines: the next run takes them out.
const leftCode = "left_"

func isLeft(h batchfile.Head) bool { return h.Status == 0 && strings.HasPrefix(h.Code, leftCode) }

// keepsAnswer reports whether a line stays in its file, and its request is not sent
// again.
func keepsAnswer(h batchfile.Head, retryFailed bool) bool {
	return !isLeft(h) && (h.Status/100 == 2 || !retryFailed)
}

// resumption reads what an output held before this run.
type resumption struct {
	a           *answers
	was         *found
	done        *ids
	retryFailed bool
	claimed     *claims         // nil: there are no other workers
	both        map[string]bool // keys of lines that another worker has too
	unnoted     []noted         // lines that claimed does not know yet
	damaged     bool            // there are zeros before or between lines
}

// foreign is the error for a file with a line that is no answer.
func foreign(line int) error {
	return fmt.Errorf("line %d is not an answer of a batch; name another file", line)
}

// read reads the lines of the file and cuts off what a crash or a power cut
// has left behind the last whole one. A power cut leaves zeros, also before lines that
// reached the disk: those are taken out.
func (r *resumption) read() error {
	in := batchfile.NewLines(r.a.f)
	tail, tailLine := int64(-1), 0 // where what is no line begins
	cut := false                   // what is there may be cut off
	for n, last := 1, false; !last; n++ {
		start := in.At()
		raw, long, err := in.Next()
		if err != nil && err != io.EOF {
			return err
		}
		last = err == io.EOF
		line := bytes.Trim(raw, "\x00")
		h, ok := batchfile.ParseHead(line, long)
		switch {
		case len(bytes.TrimSpace(line)) == 0 && in.At()-start <= 2:
			// an empty line, or the end
		case (!ok || long && last) && tail >= 0:
			cut = cut && (ours(line) || bytes.IndexByte(raw, 0) >= 0)
		case !ok && !last && r.was.lines > 0 && bytes.IndexByte(raw, 0) >= 0: // lines may follow
			r.damaged = true
			r.was.cut += in.At() - start
		case !ok || long && last:
			tail, tailLine, cut = start, n, ours(line) || r.was.lines > 0 && bytes.IndexByte(raw, 0) >= 0
		case tail >= 0:
			return foreign(tailLine)
		default:
			r.damaged = r.damaged || len(line) < len(raw)
			if err := r.take(h, line, last); err != nil {
				return err
			}
		}
	}
	if err := r.adopt(1); err != nil {
		return err
	}
	r.was.twice = int64(len(r.both))
	if tail >= 0 {
		if !cut {
			return foreign(tailLine)
		}
		r.was.cut += in.At() - tail
		if err := r.a.f.Truncate(tail); err != nil {
			return err
		}
	}
	i, err := r.a.f.Stat()
	if err == nil {
		r.a.size = i.Size()
	}
	return err
}

// take counts a line and marks its request, unless that is sent again. bare says that
// the line has no newline: it is the last one, and whole otherwise.
func (r *resumption) take(h batchfile.Head, line []byte, bare bool) error {
	if isLeft(h) {
		r.was.left++
		return nil
	}
	r.was.count(h)
	keeps := keepsAnswer(h, r.retryFailed)
	if keeps {
		r.done.mark(h.Key(), answered)
	}
	if r.claimed != nil {
		if err := r.note(noted{h.Key(), digest(line, h.Status/100 == 2)}, keeps); err != nil {
			return err
		}
	}
	if keeps && bare {
		_, err := r.a.f.Write([]byte("\n"))
		return err
	}
	return nil
}

// note lets the other workers know a line, a thousand at a time, or forget it.
func (r *resumption) note(n noted, keeps bool) error {
	if !keeps {
		return r.claimed.forget(n)
	}
	r.unnoted = append(r.unnoted, n)
	return r.adopt(1000)
}

// count takes an answer into what was found.
func (f *found) count(h batchfile.Head) {
	f.lines++
	if h.Status/100 != 2 {
		f.failed++
	}
	f.box = f.box || strings.HasPrefix(h.RequestID, boxID)
	if strings.HasPrefix(h.ID, practiceID) {
		f.practice = true
	} else if h.Status != 0 {
		f.real = true
	}
}

// adopt notes lines with claimed, if there are at least so many.
func (r *resumption) adopt(least int) error {
	if len(r.unnoted) < least {
		return nil
	}
	ids, err := r.claimed.adopt(r.unnoted)
	for _, id := range ids {
		r.both[id] = true
	}
	r.unnoted = r.unnoted[:0]
	return err
}

// outdated reports whether the file has lines that keeps takes out.
func (r *resumption) outdated() bool {
	return r.damaged || r.was.left > 0 || r.retryFailed && r.was.failed > 0 || r.was.twice > 0
}

func (r *resumption) keeps(h batchfile.Head) bool {
	return keepsAnswer(h, r.retryFailed) && !r.both[h.Key()]
}

// ours reports whether a torn end is the beginning of a line of ours, or of
// zeros, which a power cut leaves.
func ours(torn []byte) bool {
	torn, _, _ = bytes.Cut(torn, []byte{0})
	for _, id := range []string{realID, practiceID} {
		begin := []byte(`{"id":"` + id)
		if n := min(len(torn), len(begin)); bytes.Equal(torn[:n], begin[:n]) {
			return true
		}
	}
	return false
}

// rewrite writes the file anew with the lines that keep wants. The new one takes
// the old one's place when it is whole and on the disk.
func (a *answers) rewrite(keep func(batchfile.Head) bool) error {
	kept, err := os.CreateTemp(filepath.Dir(a.name), filepath.Base(a.name)+".*.tmp")
	if err != nil {
		return err
	}
	err = a.copyTo(kept, keep)
	var next *os.File
	if err == nil {
		next, err = os.OpenFile(kept.Name(), os.O_RDWR|os.O_APPEND, 0)
	}
	if err == nil {
		if err = lock(next); errors.Is(err, errNoLocks) {
			err = nil
		}
	}
	if err == nil {
		err = os.Rename(kept.Name(), a.name)
	}
	if err != nil {
		kept.Close()
		os.Remove(kept.Name())
		return err
	}
	syncDir(a.name)
	i, err := next.Stat()
	if err != nil {
		return err
	}
	a.f.Close()
	a.f, a.w, a.size = next, next, i.Size()
	return nil
}

// copyTo copies the lines that keep wants, with the mode of the file, to the disk. It
// closes kept if all went well.
func (a *answers) copyTo(kept *os.File, keep func(batchfile.Head) bool) error {
	if _, err := a.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	in := batchfile.NewLines(a.f)
	for last := false; !last; {
		start := in.At()
		line, long, err := in.Next()
		if err != nil && err != io.EOF {
			return err
		}
		last = err == io.EOF
		h, ok := batchfile.ParseHead(bytes.Trim(line, "\x00"), long)
		if !ok || !keep(h) {
			continue
		}
		if !long && bytes.IndexByte(line, 0) >= 0 {
			line = append(bytes.Trim(line, "\x00"), '\n')
			if _, err := kept.Write(line); err != nil {
				return err
			}
			continue
		}
		// Copied from the file, as of a long line only a part is here.
		start += int64(len(line) - len(bytes.TrimLeft(line, "\x00")))
		if _, err := io.Copy(kept, io.NewSectionReader(a.f, start, in.At()-start)); err != nil {
			return err
		}
	}
	i, err := a.f.Stat()
	if err != nil {
		return err
	}
	if err := kept.Chmod(i.Mode()); err != nil {
		return err
	}
	if err := kept.Sync(); err != nil {
		return err
	}
	return kept.Close()
}

// write adds a line, whole or not at all, and returns it. The first error is kept.
func (a *answers) write(v batchfile.Answer) (line []byte, err error) {
	line, err = batchfile.Encode(v)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return nil, a.err
	}
	if err == nil {
		_, err = a.w.Write(line)
	}
	if err != nil {
		a.err = err
		if a.f != nil { // half a line, on a full disk
			a.f.Truncate(a.size)
		}
		return nil, err
	}
	a.size += int64(len(line))
	a.dirty = a.f != nil
	return bytes.TrimSuffix(line, []byte("\n")), nil
}

// takeBack removes the line that was written last.
func (a *answers) takeBack(line []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.size -= int64(len(line)) + 1
	return a.f.Truncate(a.size)
}

// sync brings what was written to the disk.
func (a *answers) sync() {
	a.mu.Lock()
	dirty := a.dirty
	a.dirty = false
	a.mu.Unlock()
	if dirty {
		if err := a.f.Sync(); err != nil {
			a.mu.Lock()
			a.err = errors.Join(a.err, err)
			a.mu.Unlock()
		}
	}
}

// keepSynced calls sync at intervals until the returned function is called.
func (a *answers) keepSynced() (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(syncEvery)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				a.sync()
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

func (a *answers) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Close brings everything to the disk and gives the file back.
func (a *answers) Close() error {
	if a.f == nil {
		return nil
	}
	a.sync()
	return errors.Join(a.failed(), a.f.Close())
}

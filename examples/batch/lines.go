package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
)

// maxLine is the longest request line, in bytes. A longer one is a bad line.
const maxLine = 64 << 20

// request is a line of the Batch API's input.
type request struct {
	CustomID string          `json:"custom_id"`
	Method   string          `json:"method"`
	URL      string          `json:"url"`
	Body     json.RawMessage `json:"body"`
}

func (r *request) check() error {
	switch {
	case r.CustomID == "":
		return errors.New("custom_id is missing")
	case r.Method != http.MethodPost:
		return fmt.Errorf("method is %q; the Batch format has POST", r.Method)
	case !strings.HasPrefix(r.URL, "/") || strings.HasPrefix(r.URL, "//"):
		return errors.New(`url must be a path, such as "/v1/chat/completions"`)
	case len(r.Body) == 0 || r.Body[0] != '{':
		return errors.New("body is missing, or not an object")
	}
	return nil
}

// answer is a line of the Batch API's output: either an answer of the provider,
// whatever its status, or an error of ours.
type answer struct {
	ID       string    `json:"id"`
	CustomID string    `json:"custom_id"`
	Response *response `json:"response"`
	Error    *failure  `json:"error"`
}

type response struct {
	StatusCode int             `json:"status_code"`
	RequestID  string          `json:"request_id"`
	Body       json.RawMessage `json:"body"`
}

type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// openRequests opens the input, and counts its lines if that is cheap: for the
// time left. 0 is not known.
func openRequests(name string, stdin io.Reader) (io.ReadCloser, int64, error) {
	if name == "-" {
		return io.NopCloser(stdin), 0, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	var total int64
	lines := newLines(f)
	for {
		line, _, err := lines.next()
		if len(bytes.TrimSpace(line)) > 0 {
			total++
		}
		if err != nil {
			break
		}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		total = 0 // a pipe: read it anew by name
		f.Close()
		if f, err = os.Open(name); err != nil {
			return nil, 0, err
		}
	}
	return f, total, nil
}

// lines reads a file line by line in bounded memory.
type lines struct {
	r   *bufio.Reader
	buf []byte
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 64<<10)} }

// next returns a line without its end. It is valid until the next call. Of a
// line above maxLine it returns the beginning, and long. The last line comes
// with io.EOF, and may be empty.
func (l *lines) next() (line []byte, long bool, err error) {
	l.buf = l.buf[:0]
	for {
		piece, err := l.r.ReadSlice('\n')
		if len(l.buf)+len(piece) <= maxLine {
			l.buf = append(l.buf, piece...)
		} else {
			long = true
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(l.buf, []byte("\n")), []byte("\r")), long, err
	}
}

// answers writes the output. Each line is written whole, at once.
type answers struct {
	mu  sync.Mutex
	w   io.Writer
	f   *os.File // nil: standard output
	err error
}

// openAnswers opens the output for appending and tells which custom_ids it
// holds already. A last line that was cut off by a crash is removed.
func openAnswers(name string, stdout io.Writer) (*answers, map[string]bool, error) {
	if name == "-" {
		return &answers{w: stdout}, nil, nil
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, nil, err
	}
	done := map[string]bool{}
	var whole int64 // length of the lines that are whole
	in := newLines(f)
	for n := 1; ; n++ {
		line, long, err := in.next()
		if err == io.EOF {
			break // what follows the last newline was cut off
		}
		if err != nil {
			f.Close()
			return nil, nil, err
		}
		whole, err = f.Seek(0, io.SeekCurrent)
		if err != nil { // not a file that can be resumed
			return &answers{w: f, f: f}, done, nil
		}
		whole -= int64(in.r.Buffered())
		if long || len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var a struct {
			CustomID string `json:"custom_id"`
		}
		if json.Unmarshal(line, &a) != nil || a.CustomID == "" {
			f.Close()
			return nil, nil, fmt.Errorf("%s, line %d: not an answer of a batch; name another -out", name, n)
		}
		done[a.CustomID] = true
	}
	if err := f.Truncate(whole); err != nil && whole > 0 {
		f.Close()
		return nil, nil, err
	}
	if _, err := f.Seek(whole, io.SeekStart); err != nil && whole > 0 {
		f.Close()
		return nil, nil, err
	}
	return &answers{w: f, f: f}, done, nil
}

// write adds a line. The first error is kept, and ends the job.
func (a *answers) write(v answer) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		_, a.err = a.w.Write(append(line, '\n'))
	}
	return a.err
}

func (a *answers) Close() error {
	if a.f == nil {
		return nil
	}
	return a.f.Close()
}

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

// openRequests opens the input. Of a file it counts the lines, for the time
// left; a pipe can be read only once, and its total is 0, not known.
func openRequests(name string, stdin io.Reader) (io.ReadCloser, int64, error) {
	if name == "-" {
		return io.NopCloser(stdin), 0, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	if !regular(f) {
		return f, 0, nil
	}
	total, err := count(f)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, total, nil
}

// count counts the lines that are not blank.
func count(r io.Reader) (int64, error) {
	var n int64
	in := newLines(r)
	for {
		line, _, err := in.next()
		if len(bytes.TrimSpace(line)) > 0 {
			n++
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// regular reports whether f is a file on disk: not a pipe, not a device, of
// which some can be read for ever.
func regular(f *os.File) bool {
	i, err := f.Stat()
	return err == nil && i.Mode().IsRegular()
}

// lines reads a file line by line in bounded memory.
type lines struct {
	r   *bufio.Reader
	buf []byte
}

// newLines leaves out the byte order mark that some editors put in front.
func newLines(r io.Reader) *lines {
	b := bufio.NewReaderSize(r, 64<<10)
	if mark, _ := b.Peek(len(bom)); string(mark) == bom {
		b.Discard(len(bom))
	}
	return &lines{r: b}
}

const bom = "\uFEFF"

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
// holds already. A last line that was cut off by a crash is removed. An output
// that holds anything else is an error, and is left as it is.
func openAnswers(name string, stdout io.Writer) (*answers, map[string]bool, error) {
	if name == "-" {
		return &answers{w: stdout}, nil, nil
	}
	mode := os.O_RDWR | os.O_CREATE
	if i, err := os.Stat(name); err == nil && !i.Mode().IsRegular() {
		mode = os.O_WRONLY // a pipe or a device holds nothing to go on from
	}
	f, err := os.OpenFile(name, mode, 0o644)
	if err != nil {
		return nil, nil, err
	}
	a := &answers{w: f, f: f}
	if mode == os.O_WRONLY {
		return a, nil, nil
	}
	done, err := a.resume()
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return a, done, nil
}

// resume reads the custom_ids of a file of answers, and leaves it ready for the
// next line.
func (a *answers) resume() (map[string]bool, error) {
	done := map[string]bool{}
	var whole int64 // length of the lines that are whole
	in := newLines(a.f)
	for n := 1; ; n++ {
		line, long, err := in.next()
		if err != nil && err != io.EOF {
			return nil, err
		}
		id, ours := answered(line, long)
		switch {
		case len(bytes.TrimSpace(line)) == 0:
		case ours && !(long && err == io.EOF):
			done[id] = true
		case err == io.EOF && cutOff(line):
			if err := a.f.Truncate(whole); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("line %d is not an answer of a batch; name another -out", n)
		}
		if err == io.EOF {
			end, err := a.f.Seek(0, io.SeekEnd)
			if err == nil && end > whole && done[id] { // whole, but for its newline
				_, err = a.f.Write([]byte("\n"))
			}
			return done, err
		}
		if whole, err = a.f.Seek(0, io.SeekCurrent); err != nil {
			return nil, err
		}
		whole -= int64(in.r.Buffered())
	}
}

// answered reads the custom_id of a line of output. Of a long one only the
// beginning is there, and that is enough if it is ours.
func answered(line []byte, long bool) (id string, ok bool) {
	if long {
		d := json.NewDecoder(bytes.NewReader(line))
		for _, want := range []any{json.Delim('{'), "id", nil, "custom_id"} {
			if t, err := d.Token(); err != nil || want != nil && t != want {
				return "", false
			}
		}
		t, _ := d.Token()
		id, ok = t.(string)
		return id, ok && id != ""
	}
	var a struct {
		CustomID string          `json:"custom_id"`
		Response json.RawMessage `json:"response"`
		Error    json.RawMessage `json:"error"`
	}
	ok = json.Unmarshal(line, &a) == nil && a.CustomID != "" && (a.Response != nil || a.Error != nil)
	return a.CustomID, ok
}

// cutOff reports whether a last line is the beginning of one of ours.
func cutOff(line []byte) bool {
	begin := []byte(`{"id":"batch_req_`)
	n := min(len(line), len(begin))
	return bytes.Equal(line[:n], begin[:n])
}

// encode is v as a line of JSON. Nothing is escaped that need not be: an answer
// stays as the provider wrote it.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(v) // strings, and JSON that was found valid: cannot fail
	return b.Bytes()
}

// write adds a line. The first error is kept, and ends the job.
func (a *answers) write(v answer) error {
	line := encode(v)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		_, a.err = a.w.Write(line)
	}
	return a.err
}

func (a *answers) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

func (a *answers) Close() error {
	if a.f == nil {
		return nil
	}
	return a.f.Close()
}

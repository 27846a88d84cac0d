package estimate

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

type getBody = func() (io.ReadCloser, error)

func reader(r io.Reader) getBody {
	return func() (io.ReadCloser, error) { return io.NopCloser(r), nil }
}

// closeCounter counts how often a body is closed.
type closeCounter struct {
	io.Reader
	closed *int
}

func (c closeCounter) Close() error { *c.closed++; return nil }

// pieces hands its bytes over in Writes of a few bytes, as a WriterTo may.
type pieces struct {
	io.Reader
	data []byte
	step int
	err  error
}

func (p pieces) WriteTo(w io.Writer) (n int64, err error) {
	for data := p.data; len(data) > 0; {
		k := min(p.step, len(data))
		buf := bytes.Clone(data[:k])
		m, err := w.Write(buf)
		clear(buf) // the slice is the writer's only during Write
		n += int64(m)
		if err != nil {
			return n, err
		}
		data = data[k:]
	}
	return n, p.err
}

func (p pieces) Close() error { return nil }

// readThrough has a collector read what getBody hands out.
func readThrough(getBody func() (io.ReadCloser, error), size, limit int64, use func([]byte)) bool {
	w := collector{size: size, limit: limit, use: use}
	return w.read(getBody)
}

// What http.NewRequest makes is used where it lies.
func TestABodyIsReadWithoutACopy(t *testing.T) {
	data := []byte(`{"prompt":"x"}`)
	for name, body := range map[string]io.Reader{"bytes.Reader": bytes.NewReader(data), "bytes.Buffer": bytes.NewBuffer(data)} {
		req, err := http.NewRequest("POST", "http://example.org/", body)
		if err != nil {
			t.Fatal(err)
		}
		used := 0
		if !readThrough(req.GetBody, req.ContentLength, MaxBody, func(b []byte) {
			used++
			if &b[0] != &data[0] || len(b) != len(data) {
				t.Errorf("%s: not the caller's own bytes", name)
			}
		}) || used != 1 {
			t.Errorf("%s: used %d times", name, used)
		}
		// The request still has its body.
		if left, err := io.ReadAll(req.Body); err != nil || !bytes.Equal(left, data) {
			t.Errorf("%s: the request's body was taken: %q, %v", name, left, err)
		}
	}
}

func TestABodyInPiecesIsPutTogether(t *testing.T) {
	text := strings.Repeat(`{"prompt":"x"}`, 50)
	failing := errors.New("broken")
	for _, c := range []struct {
		name        string
		get         getBody
		size, limit int64
		want        string
		ok          bool
	}{
		{"strings.Reader", reader(strings.NewReader(text)), 700, 700, text, true},
		{"size not known", reader(strings.NewReader(text)), -1, 700, text, true},
		{"size not known, too large", reader(strings.NewReader(text)), -1, 699, "", false},
		{"too large", reader(strings.NewReader(text)), 700, 699, "", false},
		{"no GetBody", nil, 700, 700, "", false},
		{"GetBody fails", func() (io.ReadCloser, error) { return nil, failing }, 700, 700, "", false},
		{"GetBody gives nothing", func() (io.ReadCloser, error) { return nil, nil }, 700, 700, "", false},
		{"plain reader", reader(iotest.OneByteReader(strings.NewReader(text))), 700, 700, text, true},
		{"plain reader, size not known", reader(iotest.HalfReader(strings.NewReader(text))), -1, 700, text, true},
		{"plain reader, not known, too large", reader(iotest.HalfReader(strings.NewReader(text))), -1, 699, "", false},
		{"plain reader, length left at 0", reader(iotest.HalfReader(strings.NewReader(text))), 0, 700, text, true},
		{"length left at 0", reader(strings.NewReader(text)), 0, 700, text, true},
		{"plain reader, shorter than it says", reader(iotest.HalfReader(strings.NewReader(text))), 900, 900, text, true},
		{"plain reader fails", reader(iotest.ErrReader(failing)), 700, 700, "", false},
		{"plain reader fails, size not known", reader(iotest.ErrReader(failing)), -1, 700, "", false},
		{"in pieces", func() (io.ReadCloser, error) { return pieces{data: []byte(text), step: 7}, nil }, 700, 700, text, true},
		{"in pieces, size not known", func() (io.ReadCloser, error) { return pieces{data: []byte(text), step: 7}, nil }, -1, 700, text, true},
		{"in pieces, too large", func() (io.ReadCloser, error) { return pieces{data: []byte(text), step: 7}, nil }, -1, 699, "", false},
		{"in pieces, shorter than it says", func() (io.ReadCloser, error) { return pieces{data: []byte(text), step: 7}, nil }, 900, 900, text, true},
		{"in pieces, fails at the end", func() (io.ReadCloser, error) { return pieces{data: []byte(text), step: 7, err: failing}, nil }, 700, 700, "", false},
		{"empty", reader(strings.NewReader("")), 0, 700, "", true},
		{"no body", func() (io.ReadCloser, error) { return http.NoBody, nil }, 0, 700, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			used, got := 0, ""
			ok := readThrough(c.get, c.size, c.limit, func(b []byte) { used++; got = string(b) })
			if ok != c.ok || got != c.want || ok != (used == 1) || used > 1 {
				t.Errorf("ok %v, used %d times, %d bytes; want %v, %d bytes", ok, used, len(got), c.ok, len(c.want))
			}
		})
	}
}

func TestABodyIsClosed(t *testing.T) {
	closed := 0
	get := func() (io.ReadCloser, error) { return closeCounter{strings.NewReader("abc"), &closed}, nil }
	readThrough(get, 3, 3, func([]byte) {})
	readThrough(get, -1, 2, func([]byte) {})
	if closed != 2 {
		t.Errorf("closed %d of 2 bodies", closed)
	}
}

func TestABodyIsInspectedOrPricedUnread(t *testing.T) {
	const text = `{"model":"m","prompt":"x"}`
	r := Body(reader(strings.NewReader(text)), "application/json; charset=utf-8", int64(len(text)), Options{})
	if !r.Understood || r.Model != "m" {
		t.Errorf("%+v", r)
	}
	for _, c := range []struct {
		name, contentType string
		get               getBody
		size              int64
		kind              string
		low, high         int64
	}{
		{"multipart", "multipart/form-data; boundary=x", reader(strings.NewReader(text)), 25 << 20, "multipart", 1, 15_000},
		{"small multipart", "multipart/form-data; boundary=x", reader(strings.NewReader(text)), 8_000, "multipart", 10, 10},
		{"sound", "audio/wav", reader(strings.NewReader(text)), 25 << 20, "unknown", 1, 15_000},
		{"one-shot JSON", "application/json", nil, 4_000, "unknown", 1_000, 1_000},
		{"large one-shot JSON", "application/json", nil, 4 << 20, "unknown", 1, 15_000},
		{"JSON above MaxBody", "application/json", reader(strings.NewReader(text)), MaxBody + 1, "unknown", 1, 15_000},
		{"nothing known", "", nil, -1, "unknown", 1_000, 1_000},
		{"senseless size", "", nil, -1 << 63, "unknown", 1_000, 1_000},
		{"largest size", "video/mp4", nil, 1<<63 - 1, "unknown", 1, 15_000},
		{"empty", "", nil, 0, "unknown", 0, 0},
	} {
		r := Body(c.get, c.contentType, c.size, Options{Path: "/v1/models/m:streamGenerateContent"})
		if r.Understood || r.Kind != c.kind || r.Input < c.low || r.Input > c.high || r.Choices != 1 || r.Model != "m" || !r.Stream {
			t.Errorf("%s: %+v; want %d to %d tokens", c.name, r, c.low, c.high)
		}
	}
}

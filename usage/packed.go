package usage

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
)

const (
	// MaxPacked is how many bytes of a compressed body are kept. The cost of
	// a longer one is unknown. Text of a model shrinks five- to tenfold, so
	// this is several megabytes of it.
	MaxPacked = 1 << 20
	// MaxUnpacked is how many bytes are read from a compressed body; one that
	// holds more is read as if cut there.
	MaxUnpacked = 32 << 20
)

// A packed keeps a compressed body until it is over, and unpacks it then.
//
// Unpacking as the bytes pass would need a goroutine behind a pipe, since the
// decoders of the standard library pull. That goroutine outlives a body nobody
// closes, must be waited for before the result is the same every time, and
// makes each piece of somebody's stream wait for two switches. Keeping the
// bytes has none of these states. The bytes come compressed only to a caller
// that set Accept-Encoding itself: net/http otherwise unpacks them first.
type packed struct {
	gzip bool // else deflate
	b    []byte
}

// write keeps p. It is false if that is too much; then nothing is kept.
func (k *packed) write(p []byte) bool {
	if len(k.b)+len(p) > MaxPacked {
		k.b = nil
		return false
	}
	k.b = append(k.b, p...)
	return true
}

// unpack gives the content to f in pieces, and reports whether it was whole.
func (k *packed) unpack(f func([]byte)) (whole bool) {
	r, err := k.reader()
	if err != nil {
		return false
	}
	var buf [32 << 10]byte
	for n := 0; n < MaxUnpacked; {
		var got int
		got, err = r.Read(buf[:min(len(buf), MaxUnpacked-n)])
		f(buf[:got])
		if n += got; err != nil {
			return errors.Is(err, io.EOF)
		}
	}
	return false
}

// reader goes by the first bytes. What is called gzip and does not begin like
// it is the plain body: a proxy unpacked it and left the header. "deflate" comes
// with the zlib wrapper that RFC 9110 section 8.4.1.2 asks for, and without.
func (k *packed) reader() (io.Reader, error) {
	b := bytes.NewReader(k.b)
	if k.gzip {
		if bytes.HasPrefix(k.b, []byte{0x1f}) {
			return gzip.NewReader(b)
		}
		return b, nil
	}
	if len(k.b) >= 2 && k.b[0]&0x0f == 8 && (int(k.b[0])<<8|int(k.b[1]))%31 == 0 { // RFC 1950
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}

// Package packed unpacks bodies that carry a Content-Encoding: gzip, deflate,
// br, zstd, and several of them one over the other.
//
// The promise: the work is bounded for all bodies. A body never unpacks to more
// than [Limits].Out bytes, nor to more than 48 times its size and a mebibyte.
// Unpacking ends soon after [Limits].Time. The bytes that came out before a limit
// are those of the body. No byte makes it panic.
//
// The refusal: it takes no readers, starts no goroutine, and keeps nothing. Its
// callers have the packed bytes already, and must not wait for more.
//
// Most callers should use [Unpack].
package packed

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Limits bound the work of one body.
type Limits struct {
	// Out is the most bytes that are unpacked. 0 or less is 32 MiB.
	Out int64
	// Time is how long unpacking and the use of the pieces may take. It is looked
	// at between pieces of 32 KiB. 0 or less is 200 ms.
	Time time.Duration
}

const (
	defaultOut  = 32 << 20
	defaultTime = 200 * time.Millisecond

	// Answers of a model shrink to a fifth or a tenth, the events of a stream to
	// a fortieth. A body beyond that is made to cost work.
	mostRatio = 48
	freeOut   = 1 << 20 // a small body may have any ratio

	// mostCodings bounds how many codings stand over one another.
	mostCodings = 3

	// zstdWindow is what a decoder of the web has to have (RFC 9659 section 3).
	zstdWindow = 8 << 20
)

// A coding is one way to pack.
type coding uint8

const (
	identity coding = iota
	gzipped
	deflated
	br
	zst
)

// codings takes a Content-Encoding apart, in the order in which they were
// applied. ok is false where it has a coding that is not known, or too many.
func codings(contentEncoding string) (list []coding, ok bool) {
	if contentEncoding == "" {
		return nil, true
	}
	for _, name := range strings.Split(contentEncoding, ",") {
		c := identity
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "", "identity":
			continue
		case "gzip", "x-gzip":
			c = gzipped
		case "deflate":
			c = deflated
		case "br":
			c = br
		case "zstd":
			c = zst
		default:
			return nil, false
		}
		if list = append(list, c); len(list) > mostCodings {
			return nil, false
		}
	}
	return list, true
}

// Plain reports whether a body with this Content-Encoding, which may be empty,
// is not packed at all.
func Plain(contentEncoding string) bool {
	if contentEncoding == "" {
		return true
	}
	list, ok := codings(contentEncoding)
	return ok && len(list) == 0
}

// Known reports whether [Unpack] can read bodies with this Content-Encoding, packed or
// not. Of other bodies it reads those that are plain in spite of the field.
func Known(contentEncoding string) bool {
	_, ok := codings(contentEncoding)
	return ok
}

// Unpack gives what the body holds to use, in pieces that use must not keep. It
// reports whether that was all of it: false where the body is damaged, cut, or of
// an unknown coding, or where a limit ended the work.
//
// A body that does not begin as its coding does is taken for plain: a proxy
// unpacked it and left the field. So is one of an unknown coding that begins as JSON or
// as an event: some clients write "utf-8" there.
func Unpack(contentEncoding string, body []byte, l Limits, use func([]byte)) (whole bool) {
	list, ok := codings(contentEncoding)
	if !ok {
		if looksPlain(body) {
			use(body)
		}
		return looksPlain(body)
	}
	if l.Out <= 0 {
		l.Out = defaultOut
	}
	if l.Time <= 0 {
		l.Time = defaultTime
	}
	l.Out = min(l.Out, freeOut+mostRatio*int64(len(body)))
	defer func() {
		if recover() != nil { // a fault of a decoder must not end the program
			whole = false
		}
	}()
	sound := false // no decoder has panicked
	var r io.Reader = bytes.NewReader(body)
	head := body
	for i := len(list) - 1; i >= 0; i-- {
		next, done, err := reader(list[i], r, head)
		if err != nil {
			return false
		}
		if done != nil {
			defer func() { done(sound) }()
		}
		if i > 0 {
			// An inner layer is unpacked as it is read, and has the same limit. A
			// small body in a large one costs no more than one layer.
			next = io.LimitReader(next, l.Out)
		}
		r, head = next, nil
	}
	began := time.Now()
	buf := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(buf)
	for n := int64(0); n < l.Out; {
		got, err := r.Read(buf[:min(pieceSize, l.Out-n)])
		if got > 0 {
			use(buf[:got])
		}
		if n += int64(got); err != nil {
			sound = true
			return errors.Is(err, io.EOF)
		}
		if time.Since(began) > l.Time {
			sound = true
			return false
		}
	}
	// The limit may be where the body ends.
	got, err := r.Read(buf[:1])
	sound = true
	return got == 0 && errors.Is(err, io.EOF)
}

const pieceSize = 32 << 10

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// reader unpacks one coding. head is the beginning of the bytes where they are
// there, nil in an inner layer. done gives a decoder back.
func reader(c coding, r io.Reader, head []byte) (unpacked io.Reader, done func(sound bool), err error) {
	switch c {
	case gzipped:
		if head != nil && !bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
			return r, nil, nil
		}
		unpacked, err = gzip.NewReader(r)
		return unpacked, nil, err
	case deflated:
		// "deflate" is zlib (RFC 9110 section 8.4.1.2), and often raw.
		if head == nil {
			b := make([]byte, 2)
			n, err := io.ReadFull(r, b)
			if err != nil {
				return nil, nil, err
			}
			head = b[:n]
			r = io.MultiReader(bytes.NewReader(head), r)
		}
		switch {
		case len(head) >= 2 && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0: // RFC 1950
			unpacked, err = zlib.NewReader(r)
			return unpacked, nil, err
		case looksPlain(head):
			return r, nil, nil
		}
		return flate.NewReader(r), nil, nil
	case br:
		if looksPlain(head) {
			return r, nil, nil
		}
		return brotli.NewReader(r), nil, nil
	case zst:
		if head != nil && !bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) && (len(head) < 4 || head[0]&0xf0 != 0x50 || !bytes.Equal(head[1:4], []byte{0x2a, 0x4d, 0x18})) {
			return r, nil, nil // neither a frame nor a skippable one (RFC 8878 section 3.1)
		}
		z, ok := zstds.Get().(*zstd.Decoder)
		if !ok {
			return nil, nil, errors.New("packed: no decoder")
		}
		if err := z.Reset(r); err != nil {
			return nil, nil, err
		}
		return z, func(sound bool) {
			if sound && z.Reset(nil) == nil {
				zstds.Put(z)
			}
		}, nil
	}
	return r, nil, nil
}

// looksPlain reports whether bytes begin as JSON or as an event does. The first
// bytes of a raw deflate or br stream may look so by chance: then the next ones
// are no text.
func looksPlain(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	if len(head) < 16 {
		return false
	}
	for _, c := range head[:16] {
		if c >= 0x80 || c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return head[0] == '{' || head[0] == '[' || bytes.HasPrefix(head, []byte("data:")) || bytes.HasPrefix(head, []byte("event:"))
}

// zstds are used again, since a decoder has large tables. With one worker a
// decoder works in the caller's goroutine.
var zstds = sync.Pool{New: func() any {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(zstdWindow), zstd.WithDecoderMaxMemory(defaultOut))
	if err != nil {
		return nil
	}
	return z
}}

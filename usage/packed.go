package usage

import (
	"time"

	"github.com/tripmeter/tripmeter/internal/packed"
)

const (
	// MaxPacked is how many bytes of a compressed body are kept. The cost of
	// a longer one is unknown. Text of a model shrinks five- to tenfold, so
	// this is some fifty megabytes of it.
	MaxPacked = 8 << 20
	// MaxUnpacked is how many bytes at most are read from a compressed body; one
	// that holds more is read as if cut there. A body that unpacks to more than
	// 48 times its size and a mebibyte, or for longer than a fifth of a second,
	// is cut earlier.
	MaxUnpacked = 32 << 20

	unpackTime = 200 * time.Millisecond
)

// A kept is a compressed body until it is over; then it is unpacked.
//
// Unpacking as the bytes pass would need a goroutine behind a pipe, since
// decoders pull. That goroutine outlives a body that is never closed. The result would
// depend on it, and each piece of a stream would wait for two switches. Keeping the
// bytes has none of these states. The bytes come
// compressed only to a caller that set Accept-Encoding itself: net/http otherwise
// unpacks them first.
type kept struct {
	encoding string
	b        []byte
}

// write keeps p. It is false if that is too much; then nothing is kept.
func (k *kept) write(p []byte) bool {
	if len(k.b)+len(p) > MaxPacked {
		k.b = nil
		return false
	}
	k.b = append(k.b, p...)
	return true
}

// unpack gives the content to f in pieces, and reports whether it was whole.
func (k *kept) unpack(f func([]byte)) (whole bool) {
	return packed.Unpack(k.encoding, k.b, packed.Limits{Out: MaxUnpacked, Time: unpackTime}, f)
}

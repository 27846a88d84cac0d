package usage

import (
	"encoding/binary"
	"hash/crc32"
)

// A frames takes the framing of application/vnd.amazon.eventstream away
// (Smithy, "Event stream" specification). A message is
//
//	total length, header length, CRC of these two   3 * 4 bytes, big endian
//	headers
//	payload
//	CRC of everything before                        4 bytes
//
// Lengths that cannot be, or a prelude with a wrong CRC, end the reading: there
// is no finding the next message. The CRC of the whole message is not checked;
// the bytes are a copy of what TLS has delivered.
type frames struct {
	scan *scanner

	part    framePart
	left    int // bytes left of the part
	payload int // bytes of the payload to come
	buf     []byte
}

type framePart uint8

const (
	prelude framePart = iota
	frameHeaders
	framePayload
	trailer
	unreadable
)

const (
	preludeSize = 12
	crcSize     = 4
	// The specification's bounds: 16 MiB for a message, 128 kB for headers.
	maxFrame   = 16<<20 + 128<<10
	maxHeaders = 128 << 10
	// Real headers are about 100 bytes. Of longer ones the rest is not read.
	keptHeaders = 1 << 10
)

func newFrames(s *scanner) *frames {
	s.frames = true
	return &frames{scan: s, left: preludeSize}
}

func (f *frames) write(p []byte) {
	for len(p) > 0 && f.part != unreadable {
		n := min(f.left, len(p))
		piece := p[:n]
		p, f.left = p[n:], f.left-n
		switch f.part {
		case prelude, frameHeaders:
			f.buf = append(f.buf, piece[:min(n, keptHeaders-len(f.buf))]...)
		case framePayload:
			f.scan.write(piece)
		}
		for f.left == 0 && f.part != unreadable {
			f.next()
		}
	}
}

// next goes on to the part after the one that is complete.
func (f *frames) next() {
	switch f.part {
	case prelude:
		total := binary.BigEndian.Uint32(f.buf)
		headers := binary.BigEndian.Uint32(f.buf[4:])
		if crc32.ChecksumIEEE(f.buf[:8]) != binary.BigEndian.Uint32(f.buf[8:]) ||
			total > maxFrame || headers > maxHeaders || total < preludeSize+headers+crcSize {
			f.part = unreadable
			return
		}
		f.payload = int(total) - int(headers) - preludeSize - crcSize
		f.part, f.left, f.buf = frameHeaders, int(headers), f.buf[:0]
	case frameHeaders:
		f.header(f.buf)
		f.part, f.left = framePayload, f.payload
	case framePayload:
		f.scan.reset()
		if f.scan.r.exception != "" {
			f.scan.r.refuse() // its payload was no JSON
		}
		f.part, f.left = trailer, crcSize
	case trailer:
		f.part, f.left, f.buf = prelude, preludeSize, f.buf[:0]
	}
}

// header reads the string headers of a message: name length (1 byte), name,
// type 7, value length (2 bytes), value. Another type ends the reading of
// headers; these messages have none.
func (f *frames) header(b []byte) {
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 1+n+3 || b[1+n] != 7 {
			return
		}
		name := string(b[1 : 1+n])
		b = b[1+n+1:]
		n = int(binary.BigEndian.Uint16(b))
		if len(b) < 2+n {
			return
		}
		v := string(b[2 : 2+n])
		b = b[2+n:]
		switch {
		case name == ":exception-type":
			f.scan.r.exception = v
		case name == ":event-type" && v == "metadata":
			f.scan.r.done = true // Bedrock ConverseStream: the last event
		}
	}
}

// A base64Scanner reads the JSON that Bedrock's InvokeModelWithResponseStream
// wraps in {"bytes":"..."}.
//
// encoding/base64 decodes in fours, and where it gives up in a faulty text
// depends on how that was cut; here the outcome must not.
type base64Scanner struct {
	inner scanner
	acc   uint32
	bits  uint8
	over  bool // padding or a byte that is no base64 was seen
	out   [512]byte
}

func newBase64Scanner(r *reading) *base64Scanner {
	return &base64Scanner{inner: scanner{r: r}}
}

// sextets has 64 for what is no base64 digit.
var sextets = func() (t [256]byte) {
	for i := range t {
		t[i] = 64
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		t[c] = byte(i)
	}
	return t
}()

func (b *base64Scanner) write(p []byte) {
	n := 0
	for _, c := range p {
		v := sextets[c]
		if b.over || v == 64 {
			b.over = b.over || c != '\\' // JSON may write / as \/
			continue
		}
		b.acc = b.acc<<6 | uint32(v)
		if b.bits += 6; b.bits < 8 {
			continue
		}
		b.bits -= 8
		b.out[n] = byte(b.acc >> b.bits)
		if n++; n == len(b.out) {
			b.inner.write(b.out[:n])
			n = 0
		}
	}
	b.inner.write(b.out[:n])
}

// end is called where the string ends.
func (b *base64Scanner) end() {
	b.inner.reset()
	b.acc, b.bits, b.over = 0, 0, false
}

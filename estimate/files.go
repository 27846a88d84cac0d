package estimate

import (
	"bytes"
	"encoding/binary"
	"sync"
)

// The number of pages of a document, or the length of a film, stands at its beginning
// or its end. Only as many bytes of each are decoded.
const lookBytes = 48 << 10

// looks are the buffers for what is decoded of a payload.
var looks = sync.Pool{New: func() any { return new([lookBytes]byte) }}

// decode writes the bytes that p stands for into dst. It stops when dst is full, p ends,
// or a character is not base64.
func (p payload) decode(dst []byte) []byte {
	n := 0
	for len(p) >= 4 && n+3 <= len(dst) {
		a, b, c, d := sextet[p[0]], sextet[p[1]], sextet[p[2]], sextet[p[3]]
		if a|b < 0 {
			break
		}
		dst[n] = byte(a)<<2 | byte(b)>>4
		n++
		if c < 0 {
			break
		}
		dst[n] = byte(b)<<4 | byte(c)>>2
		n++
		if d < 0 {
			break
		}
		dst[n] = byte(c)<<6 | byte(d)
		n++
		p = p[4:]
	}
	return dst[:n]
}

// each calls look with the beginning of the payload, and with its end if that is
// another part. look keeps nothing.
func (p payload) each(look func(b []byte)) {
	buf := looks.Get().(*[lookBytes]byte)
	defer looks.Put(buf)
	look(p.decode(buf[:]))
	const chars = lookBytes / 3 * 4
	if len(p) > chars {
		from := max((len(p)-chars)/4*4, chars) // the groups of four go on from the beginning
		look(p[from:].decode(buf[:]))
	}
}

// pdfPages reads the number of pages of a PDF: the count in the root of its tree of
// pages, else the pages themselves (ISO 32000-1, section 7.7.3). 0 is not known:
// newer files keep both in compressed streams.
func (p payload) pdfPages() int64 {
	var pages, count int64
	p.each(func(b []byte) {
		for {
			i := bytes.Index(b, []byte("/Type"))
			if i < 0 {
				return
			}
			b = b[i+len("/Type"):]
			name := bytes.TrimLeft(b[:min(len(b), 16)], " \r\n\t")
			switch {
			case bytes.HasPrefix(name, []byte("/Pages")):
				around := b[:min(len(b), 4096)]
				if end := bytes.Index(around, []byte("endobj")); end >= 0 {
					around = around[:end]
				}
				if j := bytes.Index(around, []byte("/Count")); j >= 0 {
					count = max(count, leadingNumber(around[j+len("/Count"):]))
				}
			case bytes.HasPrefix(name, []byte("/Page")):
				pages++
			}
		}
	})
	if count > 0 {
		return count
	}
	return pages
}

// leadingNumber reads the number that b begins with, after blanks; at most a million.
func leadingNumber(b []byte) (n int64) {
	for _, c := range bytes.TrimLeft(b, " \r\n\t") {
		if c < '0' || c > '9' || n > 1_000_000 {
			break
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// mp3BytesPerSecond reads the rate of an MP3 file from its first frame (ISO/IEC
// 11172-3, section 2.4.1.3, and 13818-3), behind an ID3v2 tag if there is one; 0 is
// not known.
func (p payload) mp3BytesPerSecond() int64 {
	var h [10]byte
	if !p.read(h[:], 0) {
		return 0
	}
	at := 0
	if string(h[:3]) == "ID3" {
		at = 10 + (int(h[6])<<21 | int(h[7])<<14 | int(h[8])<<7 | int(h[9]))
		if !p.read(h[:4], at) {
			return 0
		}
	}
	if h[0] != 0xff || h[1]&0xe0 != 0xe0 || h[1]>>1&3 != 1 { // layer III
		return 0
	}
	rates := [16]int64{1: 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}
	if h[1]>>3&3 != 3 { // MPEG 2 and 2.5
		rates = [16]int64{1: 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}
	}
	return rates[h[2]>>4] * 1000 / 8
}

// mp4Milliseconds reads the length of an MP4 or QuickTime film from its movie header
// (ISO/IEC 14496-12, section 8.2.2); 0 is not known.
func (p payload) mp4Milliseconds() (ms int64) {
	p.each(func(b []byte) {
		i := bytes.Index(b, []byte("mvhd"))
		if i < 0 || ms > 0 {
			return
		}
		b = b[i+4:]
		var scale, length uint64
		switch {
		case len(b) >= 20 && b[0] == 0:
			scale, length = uint64(binary.BigEndian.Uint32(b[12:])), uint64(binary.BigEndian.Uint32(b[16:]))
		case len(b) >= 32 && b[0] == 1:
			scale, length = uint64(binary.BigEndian.Uint32(b[20:])), binary.BigEndian.Uint64(b[24:])
		}
		const longest = 24 * 3600 // seconds; more is no film that a provider takes
		if scale > 0 && length/scale < longest {
			ms = int64(length * 1000 / scale)
		}
	})
	return ms
}

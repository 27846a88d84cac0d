package estimate

import "encoding/binary"

// A payload is base64 text inside a body. It is never decoded as a whole: at
// decodes the byte it is asked for, and only that.
type payload []byte

// at returns the decoded byte at offset i. ok is false past the end, at padding
// and where the text is not base64.
func (p payload) at(i int) (b byte, ok bool) {
	if i < 0 || i > 3*(len(p)/4)+2 {
		return 0, false
	}
	// Byte i lies in the characters c and c+1: three bytes make four characters.
	c := i / 3 * 4
	var left, right byte
	switch i % 3 {
	case 0:
		left, right = 2, 4
	case 1:
		c++
		left, right = 4, 2
	case 2:
		c += 2
		left, right = 6, 0
	}
	if c+1 >= len(p) {
		return 0, false
	}
	hi, lo := sextet[p[c]], sextet[p[c+1]]
	if hi < 0 || lo < 0 {
		return 0, false
	}
	return byte(hi)<<left | byte(lo)>>right, true
}

// sextet is the value of a base64 character, of the standard and of the URL
// alphabet (RFC 4648), or -1.
var sextet = func() (t [256]int8) {
	for i := range t {
		t[i] = -1
	}
	const std = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i := range len(std) {
		t[std[i]] = int8(i)
	}
	t['-'], t['_'] = t['+'], t['/']
	return t
}()

// read fills dst with the decoded bytes from offset i on.
func (p payload) read(dst []byte, i int) bool {
	for k := range dst {
		b, ok := p.at(i + k)
		if !ok {
			return false
		}
		dst[k] = b
	}
	return true
}

// format says what the first bytes of a payload are.
type format uint8

const (
	formatUnknown format = iota
	formatPNG
	formatJPEG
	formatGIF
	formatWebP
	formatPDF
	formatWAV
	formatAudio // compressed sound: MP3, Ogg, FLAC
	formatVideo
	formatZip // documents of office programs are archives
)

// header reads what kind of data a payload holds and, for images, its size in
// pixels. w and h are 0 where the size cannot be read.
//
// PNG: W3C PNG, 11.2.2 IHDR. GIF: GIF89a, section 18. WebP: RFC 9649, sections
// 2.5 to 2.7. JPEG: ITU-T T.81, B.2.2.
func (p payload) header() (f format, w, h int64) {
	var b [30]byte
	n := 0
	for n < len(b) {
		c, ok := p.at(n)
		if !ok {
			break
		}
		b[n] = c
		n++
	}
	switch s := string(b[:n]); {
	case n >= 24 && s[:8] == "\x89PNG\r\n\x1a\n" && s[12:16] == "IHDR":
		return formatPNG, int64(binary.BigEndian.Uint32(b[16:])), int64(binary.BigEndian.Uint32(b[20:]))
	case n >= 4 && s[:4] == "\x89PNG":
		return formatPNG, 0, 0
	case n >= 10 && (s[:6] == "GIF87a" || s[:6] == "GIF89a"):
		return formatGIF, int64(binary.LittleEndian.Uint16(b[6:])), int64(binary.LittleEndian.Uint16(b[8:]))
	case n >= 3 && s[:3] == "\xff\xd8\xff":
		w, h = p.jpeg()
		return formatJPEG, w, h
	case n >= 12 && s[:4] == "RIFF" && s[8:12] == "WEBP":
		w, h = webp(b[:n])
		return formatWebP, w, h
	case n >= 12 && s[:4] == "RIFF" && s[8:12] == "WAVE":
		return formatWAV, 0, 0
	case n >= 5 && s[:5] == "%PDF-":
		return formatPDF, 0, 0
	case n >= 4 && (s[:4] == "OggS" || s[:4] == "fLaC"), n >= 3 && s[:3] == "ID3":
		return formatAudio, 0, 0
	case n >= 4 && s[0] == 0xff && s[1]&0xe6 == 0xe2 && s[2]>>4 != 15 && s[2]>>4 != 0: // a frame of MPEG layer III
		return formatAudio, 0, 0
	case n >= 4 && s[:4] == "PK\x03\x04":
		return formatZip, 0, 0
	case n >= 12 && s[4:8] == "ftyp" && s[8:11] == "M4A":
		return formatAudio, 0, 0
	case n >= 12 && s[4:8] == "ftyp":
		return formatVideo, 0, 0
	}
	return formatUnknown, 0, 0
}

func webp(b []byte) (w, h int64) {
	if len(b) < 30 {
		return 0, 0
	}
	switch string(b[12:16]) {
	case "VP8 ":
		if b[23] == 0x9d && b[24] == 0x01 && b[25] == 0x2a {
			w = int64(binary.LittleEndian.Uint16(b[26:]) & 0x3fff)
			h = int64(binary.LittleEndian.Uint16(b[28:]) & 0x3fff)
		}
	case "VP8L":
		if b[20] == 0x2f {
			bits := binary.LittleEndian.Uint32(b[21:])
			w = int64(bits&0x3fff) + 1
			h = int64(bits>>14&0x3fff) + 1
		}
	case "VP8X":
		w, h = uint24(b[24:])+1, uint24(b[27:])+1
	}
	return w, h
}

func uint24(b []byte) int64 {
	return int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16
}

// jpeg walks from marker to marker until a frame header (SOF) gives the size.
// It jumps over the segments, colour profiles and thumbnails, without decoding
// them, and looks at jpegSegments segments at most.
func (p payload) jpeg() (w, h int64) {
	const jpegSegments = 128
	var b [9]byte
	at := 2
	for range jpegSegments {
		if !p.read(b[:4], at) || b[0] != 0xff {
			return 0, 0
		}
		marker := b[1]
		switch {
		case marker == 0xff: // a fill byte
			at++
			continue
		case marker == 0x01 || 0xd0 <= marker && marker <= 0xd8: // no length follows
			at += 2
			continue
		case marker == 0xd9 || marker == 0xda: // end, or the scan itself: no size came
			return 0, 0
		case 0xc0 <= marker && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			if !p.read(b[:], at) {
				return 0, 0
			}
			return int64(binary.BigEndian.Uint16(b[7:])), int64(binary.BigEndian.Uint16(b[5:]))
		}
		length := int(binary.BigEndian.Uint16(b[2:]))
		if length < 2 {
			return 0, 0
		}
		at += 2 + length
	}
	return 0, 0
}

// wavBytesPerSecond reads the byte rate of a WAV file, or 0.
// Microsoft Multimedia Programming Interface 1.0, chapter 3: "fmt " comes first
// in practice, and then its rate is at offset 28.
func (p payload) wavBytesPerSecond() int64 {
	var b [20]byte
	if !p.read(b[:], 12) || string(b[:4]) != "fmt " {
		return 0
	}
	return int64(binary.LittleEndian.Uint32(b[16:]))
}

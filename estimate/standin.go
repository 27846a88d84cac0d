package estimate

import "bytes"

// CountJSON is a plain count of a quarter of a token a byte.
func CountJSON(raw []byte) int64 { return int64(len(raw)) * 250 }

// Count is CountJSON for text that is not escaped.
func Count(text []byte) int64 { return int64(len(text)) * 250 }

// runesJSON counts the characters that the inside of a JSON string stands for.
func runesJSON(raw []byte) int64 {
	var n int64
	for len(raw) > 0 {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return n + runes(raw)
		}
		n += runes(raw[:i])
		before := len(raw)
		_, width := nextRune(raw[i:])
		raw = raw[i+width:]
		if len(raw) >= before {
			return n
		}
		n++
	}
	return n
}

func runes(b []byte) int64 {
	n := int64(len(b))
	for _, c := range b {
		if c&0xC0 == 0x80 {
			n--
		}
	}
	return n
}

package tiktoken

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"strconv"
)

// A vocabulary is the tokens of one encoding and their ranks. A token's rank is
// its number and also its place in the order of merges.
//
// It is never changed once built. The tokens lie one after another in text; slots
// is an open-addressing hash table over them. Go's map of the same content takes
// over twice the memory and is slower to fill and to ask.
type vocabulary struct {
	split   splitter
	classes *classTable

	text    []byte // every token's bytes, in the order of ranks
	longest int    // bytes of the longest token

	// prints holds 0 for an empty slot, or one byte of the hash of the token in
	// it. Most look-ups find no token and end here, in an array small enough to
	// stay in the cache. Half of the slots are used. The content is fixed, so no
	// input can make a chain of probes longer than the longest one there is.
	prints []uint8
	slots  []slot

	// pairs answers the most frequent question, whether two neighbouring bytes
	// are a token: rank+1, or 0.
	pairs *[1 << 16]uint32
}

// A slot packs, from the lowest bit: the rank, the length of the token and its
// place in text.
type slot uint64

const (
	rankBits   = 18 // 2^18 is more than the 200,000 tokens of o200k_base
	lengthBits = 8
	placeBits  = 22 // 4 MB

	rankMask   = 1<<rankBits - 1
	lengthMask = 1<<lengthBits - 1
	placeMask  = 1<<placeBits - 1
)

// readVocabulary reads a file of lines "base64 of the token, space, rank", ranks
// rising.
func readVocabulary(files fs.FS, name string) (*vocabulary, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, fmt.Errorf("tiktoken: no vocabulary: %w", err)
	}
	defer f.Close()

	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("tiktoken: vocabulary %s: %w", name, err)
	}
	// A line takes 18 bytes for a token of 7 in the largest vocabulary. Room for
	// that spares the copies of growing; a wrong guess only costs those.
	size := min(info.Size(), 1<<placeBits)
	text := make([]byte, 0, size/2)
	start := make([]uint32, 0, size/16) // token r begins at text[start[r]]; empty if there is no rank r
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		if len(line) == 0 {
			continue
		}
		text, start, err = appendToken(text, start, line)
		if err != nil {
			return nil, fmt.Errorf("tiktoken: vocabulary %s, line %d: %w", name, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("tiktoken: vocabulary %s: %w", name, err)
	}
	if len(start) == 0 {
		return nil, fmt.Errorf("tiktoken: vocabulary %s: no tokens", name)
	}
	// Copied to its exact length, since it stays for the life of the process.
	v := &vocabulary{text: append(make([]byte, 0, len(text)), text...)}
	v.index(append(start, uint32(len(text))))
	return v, nil
}

var errLine = errors.New("want a token in base64, a space and a rank above the one before")

func appendToken(text []byte, start []uint32, line []byte) ([]byte, []uint32, error) {
	sp := len(line) - 1
	for sp >= 0 && line[sp] != ' ' {
		sp--
	}
	if sp <= 0 {
		return nil, nil, errLine
	}
	rank, err := strconv.ParseUint(string(line[sp+1:]), 10, rankBits)
	if err != nil || rank < uint64(len(start)) || rank >= rankMask {
		return nil, nil, errLine
	}
	// A rank that is left out belongs to a special token. It gets no bytes.
	for uint64(len(start)) <= rank {
		start = append(start, uint32(len(text)))
	}
	before := len(text)
	text, err = base64.StdEncoding.AppendDecode(text, line[:sp])
	if n := len(text) - before; err != nil || n == 0 || n > lengthMask || len(text) > placeMask {
		return nil, nil, errLine
	}
	return text, start, nil
}

// index fills slots, pairs and longest.
func (v *vocabulary) index(start []uint32) {
	v.pairs = new([1 << 16]uint32)
	v.slots = make([]slot, 2*len(start))
	v.prints = make([]uint8, len(v.slots))
	for r := range len(start) - 1 {
		place, end := start[r], start[r+1]
		token := v.text[place:end]
		if len(token) == 0 {
			continue
		}
		v.longest = max(v.longest, len(token))
		if len(token) == 2 {
			v.pairs[uint(token[0])<<8|uint(token[1])] = uint32(r) + 1
		}
		h := hash(token)
		i := v.home(h)
		for v.prints[i] != 0 {
			if i++; i == len(v.slots) {
				i = 0
			}
		}
		v.prints[i] = fingerprint(h)
		v.slots[i] = slot(place)<<(rankBits+lengthBits) | slot(len(token))<<rankBits | slot(r)
	}
}

// home is the slot where the search for a hash begins: the hash as a fraction of
// the table. The fingerprint is taken from the other end of the hash.
func (v *vocabulary) home(h uint64) int {
	hi, _ := bits.Mul64(h, uint64(len(v.slots)))
	return int(hi)
}

func fingerprint(h uint64) uint8 { return max(1, uint8(h)) }

// none is the rank of bytes that are no token, above every rank there is.
const none = 1<<32 - 1

// rank returns the rank of the token that is exactly b, or none.
func (v *vocabulary) rank(b []byte) uint32 {
	if len(b) == 2 {
		return v.pairs[uint(b[0])<<8|uint(b[1])] - 1 // 0 becomes none
	}
	if len(b) == 0 || len(b) > v.longest {
		return none
	}
	h := hash(b)
	want, prints := fingerprint(h), v.prints
	for i := v.home(h); ; {
		p := prints[i]
		if p == 0 {
			return none
		}
		if p == want {
			s := v.slots[i]
			place := int(s >> (rankBits + lengthBits) & placeMask)
			if int(s>>rankBits&lengthMask) == len(b) && string(v.text[place:place+len(b)]) == string(b) {
				return uint32(s & rankMask)
			}
		}
		if i++; i == len(prints) {
			i = 0
		}
	}
}

// hash mixes b by multiplying 64-bit words to 128 bits and folding the halves.
func hash(b []byte) uint64 {
	const k0, k1 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	n := len(b)
	h := uint64(n) * k1
	var x, y uint64
	switch {
	case n > 16:
		for rest := b; len(rest) > 16; rest = rest[16:] {
			h = fold(binary.LittleEndian.Uint64(rest)^k0, binary.LittleEndian.Uint64(rest[8:])^h)
		}
		x, y = binary.LittleEndian.Uint64(b[n-16:]), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 8:
		x, y = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		x, y = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))
	case n > 0:
		x = uint64(b[0])<<16 | uint64(b[n>>1])<<8 | uint64(b[n-1])
	}
	return fold(x^k0, y^h)
}

func fold(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return hi ^ lo
}

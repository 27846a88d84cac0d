package redislimit

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/tripmeter/tripmeter/limit"
)

// The script reads one flat array and answers with another, both in MessagePack,
// which Redis unpacks in one call. Only whole numbers below 2^53, short strings
// and the array itself occur.

// A writer builds the array of a call.
type writer struct {
	b []byte
	n uint32 // elements so far
}

func (w *writer) reset() { w.b, w.n = append(w.b[:0], 0xdd, 0, 0, 0, 0), 0 }

func (w *writer) num(v int64) {
	w.n++
	switch {
	case v >= 0 && v < 128:
		w.b = append(w.b, byte(v))
	case v >= 0 && v <= math.MaxUint32:
		w.b = binary.BigEndian.AppendUint32(append(w.b, 0xce), uint32(v))
	default:
		w.b = binary.BigEndian.AppendUint64(append(w.b, 0xd3), uint64(v))
	}
}

func (w *writer) flag(b bool) {
	if b {
		w.num(1)
	} else {
		w.num(0)
	}
}

func (w *writer) str(s string) {
	w.n++
	if len(s) < 32 {
		w.b = append(w.b, 0xa0|byte(len(s)))
	} else {
		w.b = binary.BigEndian.AppendUint32(append(w.b, 0xdb), uint32(len(s)))
	}
	w.b = append(w.b, s...)
}

func (w *writer) cost(c limit.Cost) {
	w.num(c.Requests)
	w.num(c.Input)
	w.num(c.Output)
}

func (w *writer) spend(p limit.Spend) {
	w.num(p.Tokens)
	w.num(p.Money)
}

// options writes the options of a scope; those that are counted in the store.
func (w *writer) options(o limit.ScopeOptions) {
	w.num(int64(o.MaxInFlight))
	w.num(int64(o.MaxQueue))
	w.num(int64(max(1, o.Weight)))
	a, kind := o.Allowances, int64(0) // none
	if a == nil {
		a = &limit.Allowances{}
	} else if kind = 1; a.Rolling {
		kind = 2
	}
	for _, most := range [...]int64{a.DayTokens, a.DayMoney, a.MonthTokens, a.MonthMoney} {
		w.num(min(most, mostSpent))
	}
	w.num(kind)
}

func (w *writer) bytes() []byte {
	binary.BigEndian.PutUint32(w.b[1:], w.n)
	return w.b
}

var errReply = errors.New("the answer is not what the script gives: is another program using these keys?")

// A reader reads the array of an answer. After the first fault every value is
// zero, and err says so.
type reader struct {
	b   string
	err error
}

// array reads the head of the array.
func (r *reader) array() {
	switch c := r.byte(); {
	case c&0xf0 == 0x90:
	case c == 0xdc:
		r.take(2)
	case c == 0xdd:
		r.take(4)
	default:
		r.err = errReply
	}
}

func (r *reader) byte() byte {
	s := r.take(1)
	if s == "" {
		return 0
	}
	return s[0]
}

func (r *reader) take(n int) string {
	if r.err != nil || n < 0 || len(r.b) < n {
		r.err = errReply
		return ""
	}
	s := r.b[:n]
	r.b = r.b[n:]
	return s
}

func (r *reader) uint(n int) uint64 {
	var v uint64
	for _, c := range []byte(r.take(n)) {
		v = v<<8 | uint64(c)
	}
	return v
}

// num reads a number. A fraction, which only virtual times have, is cut.
func (r *reader) num() int64 {
	c := r.byte()
	switch {
	case r.err != nil:
		return 0
	case c < 0x80:
		return int64(c)
	case c >= 0xe0:
		return int64(int8(c))
	}
	switch c {
	case 0xcc:
		return int64(r.uint(1))
	case 0xcd:
		return int64(r.uint(2))
	case 0xce:
		return int64(r.uint(4))
	case 0xcf:
		return int64(r.uint(8))
	case 0xd0:
		return int64(int8(r.uint(1)))
	case 0xd1:
		return int64(int16(r.uint(2)))
	case 0xd2:
		return int64(int32(r.uint(4)))
	case 0xd3:
		return int64(r.uint(8))
	case 0xca:
		return int64(math.Float32frombits(uint32(r.uint(4))))
	case 0xcb:
		return int64(math.Float64frombits(r.uint(8)))
	}
	r.err = errReply
	return 0
}

func (r *reader) str() string {
	c := r.byte()
	switch {
	case r.err != nil:
		return ""
	case c&0xe0 == 0xa0:
		return r.take(int(c & 0x1f))
	}
	switch c {
	case 0xd9:
		return r.take(int(r.uint(1)))
	case 0xda:
		return r.take(int(r.uint(2)))
	case 0xdb:
		return r.take(int(r.uint(4)))
	}
	r.err = errReply
	return ""
}

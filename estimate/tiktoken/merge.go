package tiktoken

// Byte-pair encoding of one piece: start with its bytes, and as long as two
// neighbours together are a token, join the pair of the lowest rank, the leftmost
// of equals. The reference looks through all pairs before each join, which is
// quadratic in the piece. mergeShort and mergeLong do the same joins in
// the same order, and mergeLong takes a very long piece in windows.
//
// # Why windows are exact
//
// Two neighbouring tokens s, t are called stable if encoding the bytes of st gives
// s, t again. Two facts:
//
//  1. In the encoding of any bytes all neighbours are stable. Borders between
//     tokens only vanish, never appear. So no join ever crossed the two outer
//     borders of st, the joins inside happened in the order they have when st is
//     encoded alone, and they ended in s, t.
//  2. If all neighbours of a sequence of tokens are stable, then the sequence is
//     the encoding of its bytes. Otherwise look at the first join that crosses one
//     of its borders, between s and t say. Until then no border of the sequence
//     was crossed, so inside st everything went as when st is encoded alone, where
//     that join does not happen.
//
// Now encode two windows that overlap. Let one token, the same bytes at the same
// place, be in both encodings. Then the first up to that token and the second
// from there on are a sequence with only stable neighbours. So by 2 it is the
// encoding of both windows together. If no token is shared, the windows are doubled; in the
// end one window is the whole piece.

const (
	shortPiece = 48   // bytes; below, looking through all pairs is faster than a heap
	window     = 4096 // bytes
)

// scratch is what a count needs besides the stack. It is pooled.
type scratch struct {
	text    []byte // part of a JSON string, decoded
	invalid []byte // a piece with its invalid bytes replaced
	mergeState
}

// mergeState is the memory of merges and its account. All indexes count from the
// start of the window.
type mergeState struct {
	// For a token that starts at i: the starts of the next and of the one before,
	// and the rank of its pair with the next.
	next, prev []int32
	pair       []uint32
	heap       []uint64 // of rank<<32 | start; entries that no longer hold stay until met
	tail       []int32  // starts of the last window's tokens in the overlap, and its end

	merged  int64 // bytes that merge was run over, windows and repeats included
	retries int64 // doublings of the window
}

// count returns the number of tokens of a piece.
func (v *vocabulary) count(s *scratch, piece []byte) int64 {
	if len(piece) == 1 || v.rank(piece) != none {
		return 1 // the reference counts a lone byte as one token even if it has none
	}
	if len(piece) <= shortPiece {
		return v.mergeShort(piece)
	}
	return v.mergeLong(&s.mergeState, piece, window)
}

// mergeShort encodes at most shortPiece bytes on the stack and returns the number
// of tokens.
func (v *vocabulary) mergeShort(piece []byte) int64 {
	var start [shortPiece + 1]uint8
	var pair [shortPiece]uint32 // rank of the token at i joined with the next one
	n := len(piece)
	for i := range n {
		start[i] = uint8(i)
	}
	start[n] = uint8(n)
	for i := range n - 1 {
		pair[i] = v.pairs[uint(piece[i])<<8|uint(piece[i+1])] - 1 // 0 becomes none
	}
	pair[n-1] = none
	for {
		best, at := uint32(none), 0
		for i, r := range pair[:n] {
			if r < best {
				best, at = r, i
			}
		}
		if best == none {
			return int64(n)
		}
		copy(start[at+1:n], start[at+2:n+1])
		copy(pair[at:n-1], pair[at+1:n])
		n--
		pair[at] = none
		if at+1 < n {
			pair[at] = v.rank(piece[start[at]:start[at+2]])
		}
		if at > 0 {
			pair[at-1] = v.rank(piece[start[at-1]:start[at+1]])
		}
	}
}

// mergeLong encodes a piece in windows of at least size bytes and returns the
// number of tokens.
func (v *vocabulary) mergeLong(m *mergeState, piece []byte, size int) int64 {
	for {
		if n, ok := v.mergeWindows(m, piece, size); ok {
			return n
		}
		m.retries++
		size *= 2
	}
}

// mergeWindows is false if two windows do not share a token.
func (v *vocabulary) mergeWindows(m *mergeState, piece []byte, size int) (total int64, ok bool) {
	m.tail = m.tail[:0]
	for {
		last := len(piece) <= size
		if last {
			size = len(piece)
		}
		v.merge(m, piece[:size])
		from, skipped, ok := m.shared()
		if !ok {
			return 0, false
		}
		total += skipped
		at := int32(from)
		if last {
			for ; int(at) < size; at = m.next[at] {
				total++
			}
			return total, true
		}
		for ; int(at) < size-size/8; at = m.next[at] {
			total++
		}
		// The next window starts at this border. The tokens behind it are
		// counted when the next window has confirmed them.
		m.tail = m.tail[:0]
		for i := at; int(i) < size; i = m.next[i] {
			m.tail = append(m.tail, i-at)
		}
		m.tail = append(m.tail, int32(size)-at)
		piece = piece[at:]
	}
}

// shared finds the first token that the tail of the last window has in common
// with this one. It returns its start and how many tokens of the tail come before.
func (m *mergeState) shared() (from int, before int64, ok bool) {
	if len(m.tail) == 0 { // the first window
		return 0, 0, true
	}
	at, size := int32(0), int32(len(m.next))
	for k := 0; k+1 < len(m.tail); k++ {
		for at < m.tail[k] {
			at = m.next[at]
		}
		if at >= size {
			break
		}
		if at == m.tail[k] && m.next[at] == m.tail[k+1] {
			return int(at), int64(k), true
		}
	}
	return 0, 0, false
}

// merge encodes w into m.next: the first token starts at 0, the one after the
// token at i starts at m.next[i], which is len(w) at the end.
//
// Only pairs that come before both their neighbours are in the heap. The pair to
// join next is always one of them, and a pair can become one only when a pair
// beside it changes. In a run of one letter that keeps the heap at a few entries.
//
// Each byte is pushed at most once, and each join pushes at most four pairs. So
// there are fewer than 5*len(w) pushes and pops, of log len(w) steps each.
func (v *vocabulary) merge(m *mergeState, w []byte) {
	n := len(w)
	v.layOut(m, w)
	h := m.candidates()
	next, prev, pair := m.next, m.prev, m.pair
	for len(h) > 0 {
		var top uint64
		top, h = pop(h)
		i, r := int32(uint32(top)), uint32(top>>32)
		if pair[i] != r {
			continue // joined or broken since it was pushed
		}
		j := next[i]
		k := next[j]
		wasK := pair[j] // what stood left of the pair at k
		pair[j] = none
		next[i] = k
		p := prev[i]

		// The pair of the new token with the next one, and the pair of the one
		// before with the new token.
		rightK, rankK := uint32(none), uint32(none)
		rankI := uint32(none)
		if int(k) < n {
			prev[k] = i
			rankI = v.rank(w[i:next[k]])
			rankK = pair[k]
			if kk := next[k]; int(kk) < n {
				rightK = pair[kk]
			}
		}
		pair[i] = rankI
		rankP := uint32(none)
		if p >= 0 {
			wasP := pair[p]
			rankP = v.rank(w[p:k])
			pair[p] = rankP
			rankPP, leftPP := uint32(none), uint32(none)
			if pp := prev[p]; pp >= 0 {
				rankPP = pair[pp]
				if ppp := prev[pp]; ppp >= 0 {
					leftPP = pair[ppp]
				}
				if rankPP > wasP && rankPP <= rankP && rankPP < leftPP {
					h = push(h, uint64(rankPP)<<32|uint64(pp))
				}
			}
			if rankP < rankPP && rankP <= rankI {
				h = push(h, uint64(rankP)<<32|uint64(p))
			}
		}
		if rankI < rankP && rankI <= rankK {
			h = push(h, uint64(rankI)<<32|uint64(i))
		}
		if rankK >= wasK && rankK < rankI && rankK <= rightK && rankK != none {
			h = push(h, uint64(rankK)<<32|uint64(k))
		}
	}
	m.heap = h
}

// layOut makes a token of each byte of w, with the ranks of their pairs.
func (v *vocabulary) layOut(m *mergeState, w []byte) {
	n := len(w)
	m.merged += int64(n)
	if cap(m.next) < n {
		m.next, m.prev, m.pair = make([]int32, n), make([]int32, n), make([]uint32, n)
	}
	m.next, m.prev, m.pair = m.next[:n], m.prev[:n], m.pair[:n]
	next, prev, pair := m.next, m.prev, m.pair
	for i := range n - 1 {
		next[i], prev[i] = int32(i+1), int32(i-1)
		pair[i] = v.pairs[uint(w[i])<<8|uint(w[i+1])] - 1 // 0 becomes none
	}
	next[n-1], prev[n-1], pair[n-1] = int32(n), int32(n-2), none
}

// candidates is the heap of the pairs that come before both their neighbours.
func (m *mergeState) candidates() []uint64 {
	h := m.heap[:0]
	pair := m.pair
	left := uint32(none)
	for i, r := range pair[:len(pair)-1] {
		if r < left && r <= pair[i+1] {
			h = append(h, uint64(r)<<32|uint64(i))
		}
		left = r
	}
	for i := (len(h) - 2) / 4; i >= 0; i-- {
		down(h, i)
	}
	return h
}

// push, pop and down keep a heap of four children a node, the smallest entry first.
// container/heap would call through an interface for each comparison and box each
// entry.
func push(h []uint64, x uint64) []uint64 {
	h = append(h, x)
	i := len(h) - 1
	for i > 0 {
		p := (i - 1) / 4
		if h[p] <= x {
			break
		}
		h[i] = h[p]
		i = p
	}
	h[i] = x
	return h
}

func pop(h []uint64) (top uint64, rest []uint64) {
	last := len(h) - 1
	top, h[0] = h[0], h[last]
	down(h[:last], 0)
	return top, h[:last]
}

func down(h []uint64, i int) {
	if len(h) == 0 {
		return
	}
	x := h[i]
	for {
		c := 4*i + 1
		if c+4 > len(h) {
			if c >= len(h) {
				break
			}
			for k := c + 1; k < len(h); k++ {
				if h[k] < h[c] {
					c = k
				}
			}
		} else {
			q := h[c : c+4 : c+4]
			a, b := 0, 2
			if q[1] < q[0] {
				a = 1
			}
			if q[3] < q[2] {
				b = 3
			}
			if q[b] < q[a] {
				a = b
			}
			c += a
		}
		if x <= h[c] {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = x
}

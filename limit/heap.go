package limit

// ordered is what a heap holds: it knows its order, and where in its heap it is.
type ordered[T any] interface {
	before(T) bool
	place() *int // index in the heap; -1 outside
}

// heap is a binary heap whose members know their places, so that one can be
// moved or removed from the middle in O(log n).
type heap[T ordered[T]] []T

func (h heap[T]) first() (t T) {
	if len(h) > 0 {
		t = h[0]
	}
	return t
}

func (h *heap[T]) push(t T) {
	*t.place() = len(*h)
	*h = append(*h, t)
	h.up(len(*h) - 1)
}

func (h *heap[T]) remove(t T) {
	s := *h
	i, last := *t.place(), len(s)-1
	s.swap(i, last)
	var none T
	s[last] = none
	*h = s[:last]
	*t.place() = -1
	if i < last {
		h.fix(s[i])
	}
}

// fix moves t to where it belongs after its order changed.
func (h heap[T]) fix(t T) {
	if len(h) > 1 { // inlined: most have one member
		h.refix(t)
	}
}

func (h heap[T]) refix(t T) {
	if i := *t.place(); !h.up(i) {
		h.down(i)
	}
}

func (h heap[T]) up(i int) (moved bool) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].before(h[parent]) {
			break
		}
		h.swap(i, parent)
		i, moved = parent, true
	}
	return moved
}

func (h heap[T]) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].before(h[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}

func (h heap[T]) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].place(), *h[j].place() = i, j
}

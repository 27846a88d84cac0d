package redislimit

import (
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

var _ limit.Notebook = (*Limiter)(nil)

// mostNote bounds a note, in bytes.
const mostNote = 256

// A note as the store keeps it.
type note struct {
	key, text string
	at        int64 // the store's instant
}

// Note writes a note for all members: see [limit.Notebook]. It rides with the next
// call. A note that is longer than 256 bytes is not written.
func (l *Limiter) Note(scope, key, text string) {
	if checkScope(scope) != nil || len(key)+len(text) > mostNote {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	s := l.scopeOf(scope)
	s.pinned = true
	l.control(&control{kind: ctlNote, scope: s, name: key, why: text})
}

// Notes are those of all members, as the last call heard: see [limit.Notebook].
func (l *Limiter) Notes(scope string, last uint64) ([]limit.Note, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.scopes[scope]
	if s == nil || s.noted == last {
		return nil, last
	}
	now := l.storeNow()
	notes := make([]limit.Note, len(s.notes))
	for i, n := range s.notes {
		notes[i] = limit.Note{Key: n.key, Text: n.text, Age: time.Duration(max(0, now-n.at)) * time.Microsecond}
	}
	return notes, s.noted
}

// readNotes takes over the notes of s.
func (s *scope) readNotes(r *reader) {
	n := r.num()
	same := n == int64(len(s.notes))
	old := s.notes
	s.notes = nil
	for i := range n {
		if r.err != nil {
			return
		}
		one := note{key: r.str(), at: r.num(), text: r.str()}
		s.notes = append(s.notes, one)
		same = same && old[i] == one
	}
	if !same {
		s.noted++
	}
}

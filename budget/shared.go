package budget

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
)

// Where several processes share a ledger, they share what it keeps: credit, pauses,
// drains, limits in force. Two conclusions are drawn beside it: a cut of a rate, and
// the charge rule that headers show. They are written as notes, and read before a
// limit is put in force. Else a process that was not refused would put the full rate
// in force again.
const (
	noteCut    = "cut " // and the name of the limit
	noteCharge = "charge"
	noCharge   = -1 // the rule that was followed has ended
)

// shared is what a scope has read of the notes of others.
type shared struct {
	version uint64
	cuts    map[string]cut // by the name of the limit
	charge  int64          // a rule plus 1, or noCharge; 0: none was read
}

// note writes a note if the ledger carries them.
func (s *Scope) note(key, text string) {
	if b, ok := s.ledger.(limit.Notebook); ok {
		b.Note(s.name, key, text)
	}
}

// heed takes over what others have concluded. The caller holds s.mu.
func (s *Scope) heed(now time.Time) {
	b, ok := s.ledger.(limit.Notebook)
	if !ok {
		return
	}
	notes, version := b.Notes(s.name, s.others.version)
	if version != s.others.version {
		s.others.version, s.others.cuts = version, nil
	}
	for _, n := range notes {
		if name, ok := strings.CutPrefix(n.Key, noteCut); ok {
			if c, ok := readCut(n.Text, now.Add(-n.Age)); ok {
				if s.others.cuts == nil {
					s.others.cuts = map[string]cut{}
				}
				s.others.cuts[name] = c
			}
		}
		if n.Key == noteCharge {
			if c, err := strconv.ParseInt(n.Text, 10, 8); err == nil && c >= noCharge && c <= rules {
				s.others.charge = c
			}
		}
	}
	if s.others.cuts == nil {
		return
	}
	for _, d := range s.dims { // a limit may be copied here after the note was read
		if c, ok := s.others.cuts[d.limit.Name]; ok && c.since.After(d.cut.since) {
			since := d.cut.since
			if d.cut.since = c.since; d.cut == c {
				d.cut.since = since // its own note, or as good
			} else {
				d.cut = c
			}
		}
	}
}

// String is what readCut reads.
func (c *cut) String() string { return fmt.Sprint(c.missing, c.trouble, c.slow, c.others) }

// readCut is a cut that another process made at that instant, after a refusal.
func readCut(text string, at time.Time) (c cut, ok bool) {
	n, err := fmt.Sscan(text, &c.missing, &c.trouble, &c.slow, &c.others)
	c.since = at
	return c, n == 4 && err == nil && c.missing >= 0 && c.missing <= deepest && c.trouble >= 0 && c.trouble <= whole && c.slow <= slowest && c.others <= steady
}

// heedCharge takes over what another process has seen of the charge rule, and asks
// whether to follow it.
func (c *Call) heedCharge(now time.Time) {
	s := c.scope
	s.mu.Lock()
	s.heed(now)
	seen := s.others.charge
	s.others.charge = 0
	s.mu.Unlock()
	switch current := s.inForceFor(&c.price); {
	case seen == 0:
	case seen == noCharge:
		s.charge.Store(0)
		c.path.settle(false)
	case estimate.Charge(seen-1) != current && s.doubt.hear(now) && c.watch.Doubted(current, estimate.Charge(seen-1)):
		s.charge.Store(uint32(seen))
		s.doubt.followed()
		c.path.settle(false)
	}
}

// hear reports whether to report a rule that another process has seen: once,
// and not while it is given up.
func (d *doubt) hear(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reported || now.Before(d.until) {
		return false
	}
	d.reported = true
	return true
}

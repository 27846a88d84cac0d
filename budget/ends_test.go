package budget

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/law"
	"github.com/tripmeter/tripmeter/limit"
)

// foundEnds makes charges at the end of the token limit of s found, of which answers show
// balances of before the call.
func foundEnds(t *testing.T, s *Scope) *dimension {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.find(limit.Tokens, time.Minute)
	if d == nil || d.law.ends == nil {
		t.Fatal("nobody looks for charges at the end")
	}
	e := d.law.ends
	e.found, e.by[readAfter] = true, nil
	d.law.learner, d.law.atEnd = e.by[readBefore], true
	s.atEnd.Store(readBefore + 1)
	return d
}

// Charges at the end go with the limit of which they were found. Else no output would be
// reserved any more, and no other charge rule be looked for.
func TestChargesAtTheEndGoWithTheirLimit(t *testing.T) {
	for name, ends := range map[string]func(s *Scope){
		"answers do not name it any more": func(s *Scope) {
			s.mu.Lock()
			s.dims[0].silent = 1
			s.mu.Unlock()
			s.forget(time.Now(), s.dims[0], nil)
		},
		"it becomes a copy": func(s *Scope) {
			s.mu.Lock()
			s.dims[0].silent = 1
			s.mu.Unlock()
			s.forget(time.Now(), s.dims[0], &dimension{configured: limit.Limit{Name: tpm, Unit: limit.Tokens, Rate: limit.PerMinute(90_000)}})
		},
		"another is configured": func(s *Scope) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.change(time.Now(), limit.Limit{Name: tpm, Unit: limit.Tokens, Rate: limit.PerMinute(90_000)})
		},
		"it is removed": func(s *Scope) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.change(time.Now(), limit.Limit{Name: tpm})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBudget(t, Options{Profile: ruled(estimate.ChargeSettle)})
				open(t, b, request(100, 100)).Hear(time.Now(), shows(50_000), false)
				p := b.Scope()
				foundEnds(t, p.inner)
				if !p.chargesAtEnd() {
					t.Fatal("they are not found")
				}
				if ends(p.inner); p.chargesAtEnd() {
					t.Error("calls are still charged when they end")
				}
			})
		})
	}
}

// An attempt has marks of the books that were kept when it left. Books that began since
// know nothing of it: its balance would be compared with charges of the others.
func TestMarksAreOfTheBooksThatWereKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, Options{Profile: ruled(estimate.ChargeSettle)})
		open(t, b, request(100, 100)).Hear(time.Now(), shows(50_000), false)
		s := b.Scope().inner
		c := open(t, b, request(100, 100))
		d := foundEnds(t, s)
		if c.marks.ends(d) == nil || c.marks.of(d) == nil {
			t.Error("an attempt that left has no marks")
		}
		s.mu.Lock()
		s.study(d, time.Now())
		s.mu.Unlock()
		foundEnds(t, s)
		if c.marks.ends(d) != nil || c.marks.of(d) != nil {
			t.Error("an attempt has marks of books that began later")
		}
	})
}

// A notebook is a ledger that carries notes.
type notebook struct {
	*limit.Limiter
	text map[string]string
	at   time.Time
	n    uint64
}

func (b *notebook) Note(_, key, text string) {
	b.text[key], b.at = text, time.Now()
	b.n++
}

func (b *notebook) Notes(_ string, last uint64) (all []limit.Note, version uint64) {
	for k, text := range b.text {
		if b.n != last {
			all = append(all, limit.Note{Key: k, Text: text, Age: time.Since(b.at)})
		}
	}
	return all, b.n
}

// Charges at the end explain what was refused before they were found. The cut ends, also
// where it was noted for other processes.
func TestChargesAtTheEndEndTheCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := limit.New(limit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b := newBudget(t, Options{Ledger: &notebook{Limiter: l, text: map[string]string{}}, Profile: ruled(estimate.ChargeSettle)})
		open(t, b, request(100, 100)).Hear(time.Now(), shows(50_000), false)
		s := b.Scope().inner
		s.mu.Lock()
		defer s.mu.Unlock()
		d := s.find(limit.Tokens, time.Minute)
		d.cut.deepen(time.Now(), whole)
		s.note(noteCut+d.limit.Name, d.cut.String())
		s.apply(d, time.Now())
		time.Sleep(time.Second)
		exact(t, d.law.ends.by[readBefore])
		if !s.concludes(d, time.Now(), limit.Law{}) {
			t.Fatal("they are not found")
		}
		if s.apply(d, time.Now()); d.cut.active() {
			t.Errorf("the cut is back: %v", &d.cut)
		}
	})
}

// exact shows l balances that fall by just what the calls were charged that had ended
// meanwhile.
func exact(t *testing.T, l *law.Learner) {
	t.Helper()
	at, left := time.Now(), int64(60_000)
	for range 12 {
		l.Begin(100)
		l.Saw(law.Evidence{Mark: l.Mark(at), Answered: at, Limit: law.Count{N: 60_000, OK: true}, Remaining: law.Count{N: left, OK: true}})
		at = at.Add(time.Second)
		l.Ended(new(law.Mark), at, 1000, 200)
		left -= 200
	}
	if !l.Exact() {
		t.Fatal("no charges at the end")
	}
}

// A lawWatch keeps the laws that changed.
type lawWatch struct {
	silent
	laws *[]limit.Law
}

func (w lawWatch) LawChanged(_, new limit.Limit) { *w.laws = append(*w.laws, new.Law) }

// The end of any attempt may show charges at the end, and the observer hears of it.
func TestAnEndWithoutUsageTellsTheLawToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, Options{Profile: ruled(estimate.ChargeSettle)})
		c := open(t, b, request(100, 100))
		c.Hear(time.Now(), shows(50_000), false)
		var laws []limit.Law
		c.watch = lawWatch{laws: &laws}
		s := b.Scope().inner
		exact(t, s.find(limit.Tokens, time.Minute).law.ends.by[readBefore])
		if c.End(Free); len(laws) != 1 || !laws[0].AtEnd {
			t.Errorf("told of %v", laws)
		}
	})
}

package budget

import (
	"testing"
	"time"
)

// A limit on calls at once differs from one on a rate: it refuses beside as many others
// each time, and lets in what leaves beside fewer.
func TestPlacesAreLearned(t *testing.T) {
	now := time.Date(2026, 9, 19, 12, 0, 0, 0, time.UTC)
	lets := func(p *places, n, others int) {
		for range n {
			now = now.Add(time.Second)
			p.let(now, others, 2)
		}
	}
	refused := func(p *places, others int) (explained bool) {
		now = now.Add(time.Second)
		explained, _, _ = p.refused(now, now.Add(-time.Millisecond), others, 2)
		return explained
	}
	var p places
	refused(&p, 4)
	lets(&p, 6, 3)
	refused(&p, 5)
	lets(&p, 6, 2)
	if !refused(&p, 4) || p.most != 4 {
		t.Errorf("%+v; want 4 places", p)
	}
	if lets(&p, 70, 3); p.most != 5 {
		t.Errorf("%+v; want another place after a minute with all taken", p)
	}
	if !refused(&p, 4) || p.most != 4 || p.after != 2*placeAfter {
		t.Errorf("%+v; want the place back", p)
	}
	for range 4 {
		lets(&p, 1000, p.most-1)
		refused(&p, 4)
	}
	if p.most != 4 || p.after != placeMost {
		t.Errorf("%+v; want 4 places, and the next one late", p)
	}
	for range 16 + 20 { // minutes, and no refusal
		lets(&p, 60, p.most-1)
	}
	if p.most < 30 {
		t.Errorf("%+v; want places every minute again after the limit was lifted", p)
	}
	p = places{most: 8, tried: now, after: placeMost}
	for range 3 {
		refused(&p, 3)
		lets(&p, 5, 2)
	}
	if refused(&p, 3); p.most != 3 {
		t.Errorf("%+v; want 3 places after the limit fell", p)
	}
	if refused(&p, 2) {
		t.Error("a refusal beside fewer than may go is explained")
	}
	if refused(&p, 0) || p != (places{}) {
		t.Errorf("%+v after a refusal of a call that was alone", p)
	}
	for name, f := range map[string]func(p *places){
		"let in beside as many": func(p *places) { refused(p, 4); lets(p, 20, 4); refused(p, 4); refused(p, 4) },
		"too few let in":        func(p *places) { refused(p, 4); refused(p, 4); refused(p, 4); lets(p, 5, 1); refused(p, 4) },
		"one crowd": func(p *places) {
			now = now.Add(time.Second)
			for range 9 {
				p.refused(now, now.Add(-time.Millisecond), 4, 2)
			}
			lets(p, 20, 3)
			refused(p, 4)
		},
		"too fast for a rate": func(p *places) {
			for range 9 {
				now = now.Add(time.Second)
				p.refused(now, now.Add(-time.Millisecond), 4, 3)
				lets(p, 5, 3)
			}
		},
		"one alone": func(p *places) { refused(p, 4); lets(p, 20, 3); refused(p, 0); refused(p, 4); refused(p, 4) },
	} {
		var p places
		if f(&p); p.most != 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

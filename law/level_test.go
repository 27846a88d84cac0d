package law

import (
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A drain reserves far more than it uses. Charges near to a reading are a third of the
// limit then, and pairs of answers tell nothing. Three readings that are what a log holds
// do.
func TestALogIsKnownByItsLevel(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, other := range []int64{0, 9_000} { // used by others, of the 300,000
		p := &provider{law: "log", n: 300_000, window: time.Minute}
		l := New(Options{Unsure: 25})
		call := func(at time.Time) (b Belief) {
			const reserved, used = 40_000, 4_000
			m := l.Charged(at, reserved)
			p.charges = append(p.charges, charge{at, reserved})
			left := p.n - int64(p.sum(at.Add(-p.window), at)) - other
			l.Corrected(at, at.Add(200*time.Millisecond), used-reserved)
			p.charges[len(p.charges)-1].units = used
			b, _ = l.Saw(Evidence{Mark: m, Answered: at.Add(time.Second), Limit: Count{p.n, true}, Remaining: Count{left, true}})
			return b
		}
		var b Belief
		for i := range 60 {
			b = call(at.Add(time.Duration(i) * 300 * time.Millisecond))
		}
		if b.Law.Shape == limit.ShapeLog {
			t.Errorf("others %d: a log before anything came back", other)
		}
		for i := range 6 {
			b = call(at.Add(62*time.Second + time.Duration(i)*time.Second))
		}
		if got, want := b.Law.Shape == limit.ShapeLog, other == 0; got != want {
			t.Errorf("others %d: %v after six answers", other, b)
		}
	}
}

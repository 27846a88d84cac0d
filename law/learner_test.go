package law

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

var runsFlag = flag.Int("law.runs", 40, "simulated providers for each law")

// A provider keeps one limit by its law, as a list of what it charged. It shares
// no code with what is tested.
type provider struct {
	law     string // bucket, log, two, fixed
	n       int64
	window  time.Duration
	edge    time.Time // of the windows
	first   bool      // windows begin with the first call after a rest
	charges []charge
	level   float64
	at      time.Time
}

type charge struct {
	at    time.Time
	units int64
}

func (p *provider) sum(from, to time.Time) (sum float64) { // in (from, to]
	for _, c := range p.charges {
		if c.at.After(from) && !c.at.After(to) {
			sum += float64(c.units)
		}
	}
	return sum
}

// begin is when the window that t lies in began.
func (p *provider) begin(t time.Time) time.Time {
	k := t.Sub(p.edge) / p.window
	if t.Before(p.edge.Add(k * p.window)) {
		k--
	}
	return p.edge.Add(k * p.window)
}

func (p *provider) used(t time.Time) float64 {
	switch p.law {
	case "log":
		return p.sum(t.Add(-p.window), t)
	case "fixed":
		return p.sum(p.begin(t).Add(-1), t)
	case "two":
		b := p.begin(t)
		last := p.sum(b.Add(-p.window-1), b.Add(-1))
		return p.sum(b.Add(-1), t) + last*(1-float64(t.Sub(b))/float64(p.window))
	}
	p.level = max(0, p.level-float64(p.n)*float64(t.Sub(p.at))/float64(p.window))
	p.at = t
	return p.level
}

// call charges units at t if there is room, and returns what remains and, for a
// bucket, when it is full.
func (p *provider) call(t time.Time, units int64) (remaining int64, full time.Duration, ok bool) {
	if p.first && (len(p.charges) == 0 || p.used(t) == 0) {
		p.edge = t
	}
	if p.used(t)+float64(units) > float64(p.n) {
		return 0, 0, false
	}
	p.charges = append(p.charges, charge{t, units})
	p.level += float64(units)
	used := p.used(t)
	return p.n - int64(used+0.999), time.Duration(used / float64(p.n) * float64(p.window)), true
}

// learn lets a client call the provider at random, and returns after how many
// answers it believes what.
func learn(p *provider, r *rand.Rand, o Options, answers int, reset func(p *provider, now time.Time, full time.Duration) Span) (*Learner, map[limit.Shape]int) {
	l := New(o)
	now := time.Date(2026, 3, 1, 12, 0, int(r.IntN(60)), 0, time.UTC)
	p.at = now
	if !p.first {
		p.edge = now.Add(-time.Duration(r.Int64N(int64(p.window))))
	}
	heard := map[limit.Shape]int{}
	for i := 1; i <= answers; i++ {
		now = now.Add(time.Duration(r.Int64N(int64(p.window / 5))))
		cost := 1 + r.Int64N(p.n/12)
		m := l.Charged(now, cost)
		e := Evidence{Mark: m, Answered: now.Add(time.Second), Limit: Count{p.n, true}, Precise: time.Millisecond}
		left, full, ok := p.call(now, cost)
		if !ok {
			l.Charged(now, -cost)
			e.Refused = true
			l.Saw(e)
			continue
		}
		e.Remaining = Count{left, true}
		if reset != nil {
			e.Reset = reset(p, e.Answered, full)
		}
		b, _ := l.Saw(e)
		if heard[b.Law.Shape] == 0 {
			heard[b.Law.Shape] = i
		}
	}
	return l, heard
}

// A fixed window that is known begins at the edge that answers name, long before an edge
// passes.
func TestAKnownWindowBeginsAtTheNamedEdge(t *testing.T) {
	for i := range *runsFlag {
		r := rand.New(rand.NewPCG(uint64(i), 3))
		p := &provider{law: "fixed", n: 300_000, window: time.Minute}
		known := limit.Law{Shape: limit.ShapeFixed}
		l, _ := learn(p, r, Options{Known: known, NamesEdge: true, Why: "recorded"}, 6, func(p *provider, now time.Time, _ time.Duration) Span {
			return Span{p.window - now.Sub(p.edge)%p.window, true}
		})
		b := l.Belief()
		off := b.Base.Add(b.Law.Edge).Sub(p.edge) % p.window
		if off = min(off.Abs(), p.window-off.Abs()); b.Law.Shape != limit.ShapeFixed || off > 20*time.Millisecond {
			t.Errorf("run %d: %v begins %v from the edge", i, b, off)
		}
	}
}

// While answers name an edge, no fixed window that begins elsewhere is believed, however
// well its books seem to do in a crowd.
func TestNoFixedWindowBesideTheNamedEdge(t *testing.T) {
	p := &provider{law: "fixed", n: 300_000, window: time.Minute}
	l, _ := learn(p, rand.New(rand.NewPCG(0, 3)), Options{}, 6, toEdge(time.Millisecond))
	l.pairs = [books]fit{fixedFromFirst: {hits: 12, edges: 2, proofs: 4}}
	if b := l.best(); b == fixedFromFirst {
		t.Error("a guessed edge is believed beside the named one")
	}
	l.resets = [instants]resets{} // answers name none any more
	if b := l.best(); b != fixedFromFirst {
		t.Errorf("window %d, want the guess: nothing speaks against it", b)
	}
}

// On a sliding log, calls are entered by a wrong rule for half a minute. The books begin
// anew with a use that nobody can date, and a pause follows. The log gives it back before
// the books do; that is no edge.
func TestUseOfUnknownDateShowsNoEdge(t *testing.T) {
	for i := range *runsFlag {
		r := rand.New(rand.NewPCG(uint64(i), 9))
		p := &provider{law: "log", n: 300_000, window: time.Minute}
		l, now := New(Options{Guessed: true, Unsure: 25}), time.Unix(1_700_000_000, 0).Add(time.Duration(r.Int64N(int64(time.Minute))))
		start := now
		for n, wrong := 0, true; now.Sub(start) < 3*time.Minute; n++ {
			now = now.Add(time.Duration(r.Int64N(int64(500 * time.Millisecond))))
			if since := now.Sub(start); wrong && since > 26*time.Second {
				l.Rule(now, true)
				wrong, now = false, now.Add(30*time.Second)
			}
			cost := 500 + r.Int64N(2_000)
			left, _, ok := p.call(now, cost)
			if !ok {
				continue
			}
			charged := cost
			if wrong {
				charged += 1_000
			}
			b, _ := l.Saw(Evidence{Mark: l.Charged(now, charged), Answered: now.Add(time.Second), Limit: Count{p.n, true}, Remaining: Count{left, true}})
			if b.Law.Shape == limit.ShapeFixed {
				t.Fatalf("run %d, answer %d at %v: %v", i, n, now.Sub(start), b)
			}
		}
	}
}

// From what remains alone, a bucket and a window differ after a few answers;
// which window it is shows once something was given back.
func TestALawIsLearnedFromWhatRemains(t *testing.T) {
	for _, c := range []struct {
		law   string
		first bool
		want  []limit.Shape
	}{
		{"bucket", false, []limit.Shape{limit.ShapeBucket}},
		{"log", false, []limit.Shape{limit.ShapeLog}},
		{"two", true, []limit.Shape{limit.ShapeTwoWindows}},
		{"fixed", true, []limit.Shape{limit.ShapeFixed}},
	} {
		t.Run(fmt.Sprintf("%s first %v", c.law, c.first), func(t *testing.T) {
			soonest, latest, named, wrong := 1000, 0, 0, 0
			for i := range *runsFlag {
				r := rand.New(rand.NewPCG(uint64(i), 7))
				p := &provider{law: c.law, n: 30_000, window: time.Minute, first: c.first}
				l, heard := learn(p, r, Options{}, 60, nil)
				kind := 1000
				for s, at := range heard {
					if s != limit.ShapeUnknown && (s == limit.ShapeBucket) == (c.law == "bucket") {
						kind = min(kind, at)
					} else if s != limit.ShapeUnknown {
						wrong++
						t.Logf("run %d believed %v after %d: %v", i, s, at, heard)
					}
				}
				soonest, latest = min(soonest, kind), max(latest, kind)
				if l.Belief().Law.Shape == c.want[0] {
					named++
				}
			}
			t.Logf("bucket or window known after %d to %d answers, the shape in the end %d of %d", soonest, latest, named, *runsFlag)
			if wrong > 0 || latest > 20 || named*10 < *runsFlag*9 {
				t.Errorf("wrong %d, latest %d, named %d", wrong, latest, named)
			}
		})
	}
}

func toFull(grain time.Duration) func(*provider, time.Time, time.Duration) Span {
	return func(_ *provider, _ time.Time, full time.Duration) Span { return Span{full.Truncate(grain), true} }
}

// toEdge names the end of the window, as Mistral did of two weighted windows and
// Anthropic of a fixed one, both in 2024.
func toEdge(grain time.Duration) func(*provider, time.Time, time.Duration) Span {
	return func(p *provider, now time.Time, _ time.Duration) Span {
		return Span{(p.begin(now).Add(p.window).Sub(now)).Truncate(grain), true}
	}
}

func TestResetsTellALawSooner(t *testing.T) {
	for _, c := range []struct {
		name, law string
		reset     func(*provider, time.Time, time.Duration) Span
		want      limit.Shape
		within    int // answers, at the most
	}{
		{"missing / rate in milliseconds", "bucket", toFull(time.Millisecond), limit.ShapeBucket, 5},
		{"missing / rate in whole seconds", "bucket", toFull(time.Second), limit.ShapeBucket, 13},
		{"the edge of a fixed window", "fixed", toEdge(time.Millisecond), limit.ShapeFixed, 60},
		{"the edge of a fixed window in whole seconds", "fixed", toEdge(time.Second), limit.ShapeFixed, 60},
		{"the edge of two weighted windows", "two", toEdge(time.Millisecond), limit.ShapeTwoWindows, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			latest, named := 0, 0
			for i := range *runsFlag {
				r := rand.New(rand.NewPCG(uint64(i), 11))
				p := &provider{law: c.law, n: 30_000, window: time.Minute}
				l, heard := learn(p, r, Options{}, 60, c.reset)
				for s := range heard {
					switch {
					case (s == limit.ShapeBucket) != (c.law == "bucket") && s != limit.ShapeUnknown:
						t.Errorf("run %d believed %v: %v", i, s, heard)
					case s == limit.ShapeFixed && c.law != "fixed":
						t.Errorf("run %d: an instant alone was taken for a fixed window: %v", i, heard)
					}
				}
				if l.Belief().Law.Shape == c.want {
					named++
					latest = max(latest, heard[c.want])
				} else {
					t.Logf("run %d: %v, %v %v", i, l.Belief(), l.pairs, heard)
				}
			}
			t.Logf("%d of %d, after %d answers at the most", named, *runsFlag, latest)
			if named*10 < *runsFlag*9 || latest > c.within {
				t.Errorf("%d of %d, after %d", named, *runsFlag, latest)
			}
		})
	}
}

// oneAnswer is one call of a hundred tokens, a second after the last.
func oneAnswer(l *Learner, now *time.Time, remaining int64, reset Span) (Belief, bool) {
	*now = now.Add(time.Second)
	m := l.Charged(*now, 100)
	return l.Saw(Evidence{Mark: m, Answered: *now, Limit: Count{6000, true}, Remaining: Count{remaining, true}, Reset: reset})
}

func TestNothingIsBelievedOnOneAnswersWord(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l := New(Options{})
	if b, changed := oneAnswer(l, &now, 3000, Span{30 * time.Second, true}); changed || b.Law.Shape != limit.ShapeUnknown {
		t.Errorf("believed after one answer: %v", b)
	}
}

// A bucket that nobody uses for a while is full at one and the same instant, by all
// answers to earlier calls.
func TestABucketThatIsLeftAloneStaysABucket(t *testing.T) {
	start := time.Unix(1e9, 0)
	l, missing := New(Options{Unsure: 25}), int64(100_000)
	full := start.Add(20 * time.Second) // at 300,000 a minute
	var sent []Mark
	for i := range 10 {
		sent = append(sent, l.Charged(start.Add(time.Duration(i)*time.Microsecond), missing/10))
	}
	for i, m := range sent {
		now := start.Add(time.Duration(i+1) * 1700 * time.Millisecond)
		left := full.Sub(now)
		b, _ := l.Saw(Evidence{
			Mark: m, Answered: now, Limit: Count{N: 300_000, OK: true}, Remaining: Count{N: 300_000 - int64(left/time.Millisecond)*5, OK: true},
			Reset: Span{D: left.Truncate(time.Second), OK: true}, Precise: time.Second,
		})
		if i >= 3 && b.Law.Shape != limit.ShapeBucket {
			t.Errorf("answer %d: %v", i, b)
		}
	}
}

func TestWhatIsNoEvidenceTeachesNothing(t *testing.T) {
	for _, c := range []struct {
		name  string
		reset func(i int) Span
		left  func(i int) int64
	}{
		{"a reset that never changes", func(int) Span { return Span{time.Minute, true} }, func(i int) int64 { return 6000 - int64(i%3) }},
		{"a reset of 1970", func(int) Span { return Span{-56 * 365 * 24 * time.Hour, true} }, func(int) int64 { return 5999 }},
		{"a reset of 0 with all remaining", func(int) Span { return Span{0, true} }, func(int) int64 { return 6000 }},
	} {
		now := time.Unix(1_700_000_000, 0)
		l := New(Options{Unsure: 25})
		for i := range 30 {
			if b, _ := oneAnswer(l, &now, c.left(i), c.reset(i)); b.Law.Shape.Windowed() {
				t.Fatalf("%s: after %d answers %v", c.name, i+1, b)
			}
		}
	}
}

// A refused call's fields may mean "not for this request": 0 left and a reset of 0.
func TestFieldsOfARefusedAnswerTeachNothing(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l := New(Options{})
	for range 30 {
		now = now.Add(time.Second)
		m := l.Charged(now, 0)
		b, _ := l.Saw(Evidence{Mark: m, Answered: now, Limit: Count{50_000, true}, Remaining: Count{0, true}, Reset: Span{0, true}, Refused: true, Room: true})
		if b.Law.Shape != limit.ShapeUnknown || b.Limit != 0 {
			t.Fatalf("learned %v", b)
		}
	}
}

// Two refusals far apart are chance: a wrong law is refused again and again.
func TestRefusalsFarApartEndNoLaw(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l := New(Options{Known: limit.Law{Shape: limit.ShapeLog}})
	refuse := func(after time.Duration) (changed bool) {
		now = now.Add(after)
		m := l.Charged(now, 100)
		_, changed = l.Saw(Evidence{Mark: m, Answered: now.Add(time.Second), Refused: true, Room: true})
		return changed
	}
	for range 10 {
		if refuse(5*time.Minute + 2*time.Second) {
			t.Fatal("given up after refusals more than five windows apart")
		}
	}
	if !refuse(5 * time.Minute) {
		t.Fatal("kept after two refusals within five windows")
	}
}

func TestALawIsGivenUpAfterTheSecondRefusalOnWhichItsBooksHadRoom(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l := New(Options{Known: limit.Law{Shape: limit.ShapeBucket}, Why: "recorded traffic"})
	refuse := func(room bool) (Belief, bool) {
		now = now.Add(time.Second)
		m := l.Charged(now, 100)
		return l.Saw(Evidence{Mark: m, Answered: now.Add(time.Second / 2), Refused: true, Room: room})
	}
	if b := l.Belief(); b.Law.Shape != limit.ShapeBucket || b.Why != "recorded traffic" {
		t.Fatalf("before the first call: %v", b)
	}
	for range 5 {
		if _, changed := refuse(false); changed {
			t.Fatal("given up on refusals that the books explain")
		}
	}
	early := l.Mark(now)
	if b, changed := refuse(true); changed || b.Law.Shape != limit.ShapeBucket {
		t.Fatalf("given up on the first: %v", b)
	}
	if _, changed := l.Saw(Evidence{Mark: early, Answered: now, Refused: true, Room: true}); changed {
		t.Fatal("given up on a refusal of a call that left before the first")
	}
	b, changed := refuse(true)
	if !changed || b.Law.Shape != limit.ShapeUnknown || b.Until.Sub(b.Since) != Forgotten {
		t.Fatalf("after the second: %v until %v", b, b.Until)
	}
	t.Log(b)
	full := func() Belief {
		for range 5 {
			b, _ = oneAnswer(l, &now, 3000, Span{30 * time.Second, true})
		}
		return b
	}
	if b := full(); b.Law.Shape != limit.ShapeUnknown {
		t.Errorf("believed again within ten minutes: %v", b)
	}
	now = now.Add(Forgotten)
	if b := full(); b.Law.Shape != limit.ShapeBucket {
		t.Errorf("ten minutes later, with the same evidence: %v", b)
	}
}

// A window in use is full most of the time. A refusal then is an error of the books by
// some units, and two of them end no right belief. Refusals while little is used do, as
// of a wrong one.
func TestRefusalsOfAFullWindowEndNoBelief(t *testing.T) {
	for _, c := range []struct {
		law   string
		shape limit.Shape
	}{{"log", limit.ShapeLog}, {"two", limit.ShapeTwoWindows}, {"fixed", limit.ShapeFixed}} {
		for i := range *runsFlag {
			r := rand.New(rand.NewPCG(uint64(i), 17))
			p := &provider{law: c.law, n: 30_000, window: time.Minute, first: c.law != "log"}
			l, _ := learn(p, r, Options{Unsure: 25}, 60, nil)
			if l.Belief().Law.Shape != c.shape {
				continue // TestALawIsLearnedFromWhatRemains counts those
			}
			now := l.base.Add(time.Duration(l.edge[l.chosen])).Add(20 * time.Minute) // a window begins
			refuse := func(units int64) bool {
				now = now.Add(time.Second)
				m := l.Charged(now, units)
				_, changed := l.Saw(Evidence{Mark: m, Answered: now.Add(time.Second / 2), Refused: true, Room: l.Room(&m)})
				return changed
			}
			refuse(30_000)
			for range 5 {
				if refuse(100) {
					t.Fatalf("%s, run %d: given up although its books were full: %v", c.law, i, l.Belief())
				}
			}
			now = now.Add(3 * time.Minute)
			if refuse(100) || !refuse(100) {
				t.Fatalf("%s, run %d: want it given up on the second refusal with room: %v", c.law, i, l.Belief())
			}
		}
	}
}

// under is a call under way.
type under struct {
	sent, ends time.Time
	back       int64 // comes back at its end
	mark       Mark
	left       int64
}

// endThose ends the calls that are over at now, in their order, and returns the others and
// what is believed then.
func endThose(p *provider, l *Learner, calls []under, now time.Time) ([]under, limit.Shape) {
	slices.SortFunc(calls, func(a, b under) int { return a.ends.Compare(b.ends) })
	for len(calls) > 0 && !calls[0].ends.After(now) {
		c := calls[0]
		for i := range p.charges {
			if p.charges[i].at.Equal(c.sent) {
				p.charges[i].units -= c.back
			}
		}
		l.Saw(Evidence{Mark: c.mark, Answered: c.ends, Limit: Count{p.n, true}, Remaining: Count{c.left, true}})
		l.Corrected(c.sent, c.ends, -c.back)
		calls = calls[1:]
	}
	return calls, l.Belief().Law.Shape
}

// A limit that is used whole gives back about as much each second by every law. Which law
// it is shows in tokens, while a quarter of each debit may be wrong. What is believed of
// such a limit stays. Output caps of 4,000 are charged first, and come back in 1 to 30 s.
func TestALawStaysWhileTheLimitIsUsedWhole(t *testing.T) {
	for law, shape := range map[string]limit.Shape{"log": limit.ShapeLog, "two": limit.ShapeTwoWindows} {
		believed, lost := 0, 0
		for i := range *runsFlag / 4 {
			r := rand.New(rand.NewPCG(uint64(i), 23))
			now := time.Date(2026, 3, 1, 12, 0, i%60, 0, time.UTC)
			p := &provider{law: law, n: 300_000, window: time.Minute, first: law == "two"}
			l := New(Options{Unsure: 25})
			was, is := limit.ShapeUnknown, limit.ShapeUnknown
			var calls []under
			for over := now.Add(20 * time.Minute); now.Before(over); now = now.Add(time.Duration(r.Int64N(int64(400 * time.Millisecond)))) {
				calls, is = endThose(p, l, calls, now)
				if was == shape && is != shape {
					lost++
					t.Logf("%s, run %d: %v", law, i, l.Belief())
				}
				was = is
				cost := 4_000 + r.Int64N(3_000)
				left, _, ok := p.call(now, cost)
				if !ok {
					continue // a client that knows the limit waits
				}
				calls = append(calls, under{now, now.Add(time.Duration(1+r.Int64N(30)) * time.Second), r.Int64N(4_000), l.Charged(now, cost), left})
				p.charges = slices.DeleteFunc(p.charges, func(c charge) bool { return now.Sub(c.at) > 3*time.Minute })
			}
			if was == shape {
				believed++
			}
		}
		t.Logf("%s: believed in the end in %d runs of %d, lost %d times", law, believed, *runsFlag/4, lost)
		if lost > 0 || believed*10 < *runsFlag/4*9 {
			t.Errorf("%s: lost %d times, believed in %d of %d", law, lost, believed, *runsFlag/4)
		}
	}
}

func TestCapacityIsWhatWasShown(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l := New(Options{})
	b, _ := oneAnswer(l, &now, 900, Span{})
	if want := int64(900 + 100 - 25); b.Capacity != want || b.Limit != 6000 {
		t.Errorf("capacity %d of %d, want %d of 6000", b.Capacity, b.Limit, want)
	}
	if b, _ = oneAnswer(l, &now, 500, Span{}); b.Capacity != 975 {
		t.Errorf("capacity %d after a smaller balance, want 975", b.Capacity)
	}
}

// Debits that are estimated are wrong; what follows from them must not be.
func TestWrongDebitsMakeNoWrongLaw(t *testing.T) {
	wrong, none := 0, 0
	for i := range *runsFlag * 4 {
		r := rand.New(rand.NewPCG(uint64(i), 13))
		law := []string{"bucket", "log", "two", "fixed"}[i%4]
		p := &provider{law: law, n: 30_000, window: time.Minute, first: law != "log"}
		l := New(Options{Unsure: 25})
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		p.at = now
		for range 80 {
			now = now.Add(time.Duration(r.Int64N(int64(10 * time.Second))))
			cost := 1 + r.Int64N(2_500)
			guess := cost + cost*(r.Int64N(40)-20)/100
			m := l.Charged(now, guess)
			left, _, ok := p.call(now, cost)
			l.Saw(Evidence{Mark: m, Answered: now, Limit: Count{p.n, true}, Remaining: Count{left, ok}, Refused: !ok})
		}
		switch s := l.Belief().Law.Shape; {
		case s == limit.ShapeUnknown:
			none++
		case (s == limit.ShapeBucket) != (law == "bucket"):
			wrong++
			t.Logf("run %d: %v of a %s", i, l.Belief(), law)
		}
	}
	t.Logf("wrong %d, undecided %d of %d", wrong, none, *runsFlag*4)
	if wrong*50 > *runsFlag*4 {
		t.Errorf("%d wrong of %d", wrong, *runsFlag*4)
	}
}

func ExampleLearner() {
	l := New(Options{Unsure: 25})
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, left := range []int64{240_000, 236_000, 233_500} {
		now = now.Add(200 * time.Millisecond)
		mark := l.Charged(now, 5_000)
		l.Saw(Evidence{
			Mark: mark, Answered: now.Add(50 * time.Millisecond),
			Limit: Count{300_000, true}, Remaining: Count{left, true},
			Reset: Span{time.Duration(300_000-left) * time.Minute / 300_000, true},
		})
	}
	fmt.Println(l.Belief())
	// Output:
	// bucket: 300000 in 1m0s, since 12:00:00: reset is missing / rate on 3 answers
}

func TestAKnownEdgeIsCountedFromTheBaseThatIsNamed(t *testing.T) {
	base := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	l := New(Options{Known: limit.Law{Shape: limit.ShapeFixed, Edge: 7 * time.Second}, Base: base})
	other := base.Add(-time.Minute)
	for range 2 {
		if m := l.Belief().At(other); m.Edge != 67*time.Second {
			t.Errorf("edge %v from a minute before, want 1m7s", m.Edge)
		}
		l.Charged(base.Add(time.Hour), 1)
	}
}

// What a call costs the learner of one limit: one charge, one answer.
func BenchmarkLearner(b *testing.B) {
	l := New(Options{Unsure: 25})
	now := time.Unix(1_700_000_000, 0)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(50 * time.Millisecond)
		m := l.Charged(now, 100)
		l.Saw(Evidence{Mark: m, Answered: now, Limit: Count{300_000, true}, Remaining: Count{290_000, true}, Reset: Span{2 * time.Second, true}})
	}
}

// A copy believes what its original does, and neither moves the other's books.
func TestCopy(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := New(Options{Known: limit.Law{Shape: limit.ShapeLog}})
	l.Saw(Evidence{Mark: l.Charged(at, 100), Answered: at.Add(time.Second), Limit: Count{1000, true}, Remaining: Count{900, true}})
	c := l.Copy()
	if c.Belief() != l.Belief() {
		t.Errorf("the copy believes %v, the original %v", c.Belief(), l.Belief())
	}
	at = at.Add(2 * time.Second)
	c.Charged(at, 300)
	l.Charged(at, 50)
	if got, own := c.Mark(at).used[aLog], l.Mark(at).used[aLog]; got != 400 || own != 150 {
		t.Errorf("the books of a log have %d of the copy and %d of the original, want 400 and 150", got, own)
	}
}

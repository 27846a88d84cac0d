package law

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

func recordings(t testing.TB) []byte {
	t.Helper()
	f, err := os.Open("testdata/sequences.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Of each provider whose law is known, nine answers in ten are foretold. The others
// are listed with -v.
func TestRecordedAnswersAreForetold(t *testing.T) {
	all, err := Replay(bytes.NewReader(recordings(t)))
	if err != nil {
		t.Fatal(err)
	}
	answers, foretold := map[string]int{}, map[string]int{}
	for _, r := range all {
		t.Logf("%-18s %-24s %4d answers, %5.1f %% foretold, %d of unknown law, %d unused", r.Provider, r.Field, r.Answers, r.Share(), r.Unknown, r.Unused)
		for _, m := range r.Misses {
			t.Log("  ", m)
		}
		if r.Foretold+len(r.Misses) != r.Answers {
			t.Errorf("%s %s: %d foretold and %d named, of %d", r.Provider, r.Field, r.Foretold, len(r.Misses), r.Answers)
		}
		answers[r.Provider] += r.Answers
		foretold[r.Provider] += r.Foretold
	}
	for _, p := range []string{"openai", "anthropic", "groq", "azure", "mistral"} {
		if answers[p] == 0 || foretold[p]*100 < answers[p]*90 {
			t.Errorf("%s: %d of %d foretold, want nine in ten", p, foretold[p], answers[p])
		} else {
			t.Logf("%s: %.1f %%", p, 100*float64(foretold[p])/float64(answers[p]))
		}
	}
}

func TestReplayRefusesWhatIsNoListOfSequences(t *testing.T) {
	for _, in := range []string{"", "{}", `[{"id": "a", "date": "yesterday"}]`} {
		if _, err := Replay(strings.NewReader(in)); err == nil || !strings.HasPrefix(err.Error(), "law: ") {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func FuzzReplay(f *testing.F) {
	f.Add([]byte(`[]`))
	f.Add([]byte(`[{"id":"a","provider":"mistral","model":["m"],"api":"/v1","date":"2026-01-01T00:00:00Z","answers":[
		{"t_ms":0,"status":200,"fields":{"x-ratelimit-limit-req-minute":"60","x-ratelimit-remaining-req-minute":"59"}},
		{"t_ms":-5,"admitted_ms":9000000000000000,"err_ms":-1,"status":429,"fields":{"x-ratelimit-limit-tokens-minute":"1","x-ratelimit-remaining-tokens-minute":"-7"},"usage":{"prompt":-4}}]}]`))
	f.Fuzz(func(t *testing.T, file []byte) {
		Replay(bytes.NewReader(file))
	})
}

// The learner on recorded traffic, with the debits of package profile, decides
// between bucket and window as all records together do.
func TestALearnerOnRecordedTraffic(t *testing.T) {
	var right, wrong, open int
	after := map[bool][]int{}
	for _, c := range learnRecorded(t) {
		if c.after > 0 {
			after[c.reset] = append(after[c.reset], c.after)
		}
		switch {
		case c.believed == limit.ShapeUnknown:
			open++
		case c.believed.Windowed() == c.known.Windowed():
			right++
		default:
			wrong++
			t.Logf("%s %s: believed %v, is %v: %s", c.id, c.field, c.believed, c.known, c.why)
		}
	}
	t.Logf("right %d, wrong %d, undecided %d", right, wrong, open)
	for reset, n := range after {
		slices.Sort(n)
		t.Logf("with resets %v: %d decided, after %d to %d answers, half of them after %d, nine in ten after %d", reset, len(n), n[0], n[len(n)-1], n[len(n)/2], n[len(n)*9/10])
	}
	if right < 20 || wrong*8 > right {
		t.Errorf("right %d, wrong %d", right, wrong)
	}
}

type learned struct {
	id, field       string
	believed, known limit.Shape
	why             string
	reset           bool // answers named one
	answers, after  int  // in all, and when a law was believed first
}

func learnRecorded(t *testing.T) (out []learned) {
	sequences, err := decode(bytes.NewReader(recordings(t)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range sequences {
		s := &sequences[i]
		start, err := time.Parse(time.RFC3339, s.Date)
		if err != nil {
			t.Fatal(err)
		}
		p := &replay{s: s, start: start}
		learners, marks := map[string]*Learner{}, map[string]Mark{}
		at := func(e event) time.Time { return start.Add(time.Duration(e.at) * time.Millisecond) }
		for _, e := range p.events() {
			a := &s.Answers[e.i]
			model := first(s.Model)
			if a.Model != "" {
				model = a.Model
			}
			debit, _ := profile.DebitFor(s.Provider, s.API, model, a.Request.Stream, start)
			for _, f := range fieldsOf(a.Fields) {
				law, ok := profile.LawFor(s.Provider, f.name, start)
				if !ok || law.Shape == limit.ShapeUnknown || law.Unused || law.When == profile.WhenBefore {
					continue
				}
				key := f.name + "/" + model
				l := learners[key]
				if l == nil {
					unsure := int64(25)
					if requests(f.name) {
						unsure = 0
					}
					window := law.Window
					if window == 0 {
						window = windowOf(f)
					}
					l = New(Options{Window: window, Unsure: unsure, Round: law.Round})
					learners[key] = l
					out = append(out, learned{id: s.ID, field: key, known: law.Shape})
				}
				switch {
				case e.kind == arrive || e.kind == end:
					m := l.Charged(at(e), p.units(f.name, a, debit, callOf(a), e.kind))
					if e.kind == arrive {
						marks[key] = m
					}
				case e.kind == readAt(law.When, law.Lag):
					m := marks[key]
					if e.kind != admitted {
						m = l.Mark(at(e))
					}
					ev := Evidence{
						Mark: m, Answered: at(e), Limit: Count{f.limit, true}, Remaining: Count{f.remaining, true},
						Refused: a.refused(), Precise: law.Precise,
					}
					if f.reset > 0 {
						ev.Reset = Span{f.reset, true}
						if s.Provider == "azure" && law.Precise == time.Millisecond {
							ev.Reset.D = f.reset / 1000
						}
					} else if f.resetAt != 0 {
						ev.Reset = Span{time.Unix(f.resetAt, 0).Sub(at(e)), true}
					}
					b, _ := l.Saw(ev)
					for j := range out {
						if out[j].id == s.ID && out[j].field == key {
							o := &out[j]
							o.believed, o.why = b.Law.Shape, b.Why
							o.reset = o.reset || ev.Reset.OK
							if o.answers++; o.after == 0 && b.Law.Shape != limit.ShapeUnknown {
								o.after = o.answers
							}
						}
					}
				}
			}
		}
	}
	return out
}

package budget

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/law"
	"github.com/tripmeter/tripmeter/limit"
)

// followed is a limit of 300,000 a minute with that much of it cut off, whose refusals
// agree with its balance.
func followed(missing int64, now time.Time) *dimension {
	const n = 300_000
	d := &dimension{limit: limit.Limit{Unit: limit.Tokens, Rate: limit.Rate{N: n, Window: time.Minute}}, said: n, shown: 50_000}
	d.law.learner = law.New(law.Options{Window: time.Minute})
	d.cut = cut{missing: missing, since: now, others: steady}
	d.newest.agrees = true
	return d
}

// Processes that see the balance of one bucket of 10 s come to equal shares of it. They
// use nearly all of it, and seldom leave nothing. Answers come three seconds late.
func TestBalancesBringEqualShares(t *testing.T) {
	for n := 2; n <= 8; n *= 2 {
		start := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
		r := rand.New(rand.NewPCG(uint64(n), 5))
		s := &Scope{}
		var all []*dimension
		for i := range n {
			all = append(all, followed(min(deepest, whole/10+int64(i)*whole/4), start))
		}
		const (
			rate  = 5000. // a second
			holds = 10 * rate
			step  = 100 * time.Millisecond
			late  = 3 * time.Second
		)
		level, empty, past := holds, 0, []float64(nil)
		used, total := make([]float64, n), 0.
		for at := time.Duration(0); at < 10*time.Minute; at += step {
			now := start.Add(at)
			level = min(holds, level+rate*step.Seconds())
			for i, d := range all {
				take := min(level, float64(d.paced(now))/60*step.Seconds())
				level -= take
				if at > 2*time.Minute {
					used[i], total = used[i]+take, total+take
				}
				if k := len(past) - int(late/step); k >= 0 && r.IntN(20) == 0 { // every two seconds
					s.balanced(d, now, now.Add(-late), int64(past[k]))
				}
			}
			if past = append(past, level); level < 1 && at > 2*time.Minute {
				empty++
			}
		}
		for i, u := range used {
			if share := u / total * float64(n); share < .8 || share > 1.25 {
				t.Errorf("%d processes: the share of process %d is %.2f of a fair one", n, i, share)
			}
		}
		if of := total / (rate * 480); of < .97 || of > 1.01 {
			t.Errorf("%d processes use %.3f of the limit", n, of)
		}
		if empty > 240 { // one in twenty
			t.Errorf("%d processes: nothing was left %d times of 4,800", n, empty)
		}
	}
}

// Where enough is left nobody else uses the limit: a cut rate is whole again within a
// minute. Where nothing is left some of it stays.
func TestACutFollowsItsBalance(t *testing.T) {
	start := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	s := &Scope{}
	for _, row := range []struct {
		left   int64
		active bool
		low    int64
		high   int64
	}{
		{50_000, false, 300_000, 300_000},
		{0, true, 300_000 / 40, 300_000 / 10},
	} {
		d := followed(whole/2, start)
		now := start
		for range 60 {
			now = now.Add(time.Second)
			s.balanced(d, now, now.Add(-time.Second), row.left)
		}
		if rate := d.paced(now); d.cut.active() != row.active || rate < row.low || rate > row.high {
			t.Errorf("with %d left the rate is %d after a minute, cut %v", row.left, rate, d.cut.active())
		}
		s.balanced(d, now, start, 50_000) // older than the newest
		if d.newest.left != row.left {
			t.Error("an older balance counts")
		}
	}
}

// The rate does not follow where the budget itself used most of the limit.
func TestABudgetAloneFollowsNoBalance(t *testing.T) {
	start := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	s := &Scope{}
	for _, row := range []struct {
		used    int64
		follows bool
	}{{60_000, true}, {170_000, true}, {190_000, false}, {300_000, false}} {
		d := followed(whole/4, start)
		d.used.add(start, time.Minute, row.used)
		if s.balanced(d, start, start, 0); d.follows() != row.follows {
			t.Errorf("%d of 300,000 used: follows is %v", row.used, d.follows())
		}
	}
}

// A small bucket lacks most of its limit at all times. In the first minute a budget is alone
// that used most of what the bucket held and of what was refilled since.
func TestABudgetAloneOnASmallBucketFollowsNoBalance(t *testing.T) {
	start := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	now := start.Add(2 * time.Second) // 10,000 units
	s := &Scope{}
	for _, row := range []struct {
		used    int64
		follows bool
	}{{8_000, true}, {14_000, true}, {16_000, false}, {25_000, false}} {
		d := followed(whole/4, start)
		d.born, d.shown = start, 15_000
		d.used.add(start, time.Minute, row.used)
		if s.balanced(d, now, now, 0); d.follows() != row.follows {
			t.Errorf("%d of 25,000 used: follows is %v", row.used, d.follows())
		}
	}
}

// A rate follows the balance only where the refusal came at a low one.
func TestRefusalsAgreeWithTheBalance(t *testing.T) {
	start := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	s := &Scope{own: true}
	for _, row := range []struct {
		name       string
		left, cost int64
		sent       time.Time
		agrees     bool
	}{
		{"less than it costs", 900, 1000, start, true},
		{"the cost was estimated low", 1900, 1000, start, true},
		{"enough was left", 40_000, 1000, start, false},
		{"the balance is another attempt's", 900, 1000, start.Add(time.Second), false},
	} {
		d := followed(whole/4, start)
		s.balanced(d, start, start, row.left)
		if s.agree(d, row.sent, row.cost); d.newest.agrees != row.agrees {
			t.Errorf("%s: agrees is %v", row.name, d.newest.agrees)
		}
	}
}

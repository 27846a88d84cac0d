package budget

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/law"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

// A window leaves half a per cent unused, since calls under way may end above their
// price. A log leaves nothing.
func TestWhatWindowsLeaveUnused(t *testing.T) {
	p := profile.Unknown()
	for shape, want := range map[limit.Shape]int64{limit.ShapeFixed: 1500, limit.ShapeTwoWindows: 1500, limit.ShapeSliding: 1500, limit.ShapeLog: 0} {
		d := &dimension{configured: limit.Limit{Unit: limit.Tokens, Rate: limit.PerMinute(300_000)}}
		d.limit, d.shown = d.configured, 300_000
		d.law.learner = law.New(law.Options{Window: time.Minute, Known: limit.Law{Shape: shape}})
		if got := d.effective(shapeOf(&p, 0), time.Now()).Law; got.Shape != shape || got.Spare != want {
			t.Errorf("%v: %v leaves %d unused, want %d", shape, got.Shape, got.Spare, want)
		}
	}
}

// A log that answers have shown leaves as much as the other windows: its debits are
// estimates.
func TestWhatALearnedLogLeavesUnused(t *testing.T) {
	p := profile.Unknown()
	start := time.Unix(1_700_000_000, 0)
	d := &dimension{configured: limit.Limit{Unit: limit.Tokens, Rate: limit.PerMinute(300_000)}}
	d.limit, d.shown = d.configured, 300_000
	d.law.learner = law.New(law.Options{Window: time.Minute, Unsure: 25})
	const each = 4_000
	for i := range 200 {
		at := start.Add(time.Duration(i)*700*time.Millisecond + time.Duration(i*i%13)*40*time.Millisecond)
		used := int64(0)
		for k := range i + 1 {
			if sent := start.Add(time.Duration(k)*700*time.Millisecond + time.Duration(k*k%13)*40*time.Millisecond); at.Sub(sent) < time.Minute && k%5 != 4 {
				used += each + int64(k%7)*100
			}
		}
		if i%5 == 4 {
			continue // a pause, so that the log gives back unevenly
		}
		m := d.law.learner.Charged(at, each+int64(i%7)*100)
		d.law.learner.Saw(law.Evidence{Mark: m, Answered: at.Add(time.Second), Limit: law.Count{N: 300_000, OK: true}, Remaining: law.Count{N: max(0, 300_000-used), OK: true}})
	}
	got := d.effective(shapeOf(&p, 0), start).Law
	if got.Shape != limit.ShapeLog || got.Spare != 1500 {
		t.Errorf("%v leaves %d unused, want a log and 1500; %v", got.Shape, got.Spare, d.belief())
	}
}

// A limit that follows an answer downwards is put in force, also where all balances before
// were multiples of more. A spare above the limit would leave the old one in force.
func TestASpareStaysBelowALimitThatFell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, Options{Profile: ruled(estimate.ChargeSettle)})
		says := func(n, left int64) {
			c := open(t, b, request(1, 1))
			c.Hear(time.Now(), &headers.Info{Tokens: headers.Quota{Limit: headers.Count{N: n, OK: true}, Remaining: headers.Count{N: left, OK: true}}}, false)
			time.Sleep(time.Second)
		}
		for range 2 * grains {
			says(300_000, 300_000)
		}
		says(60_000, 0)
		if l := state(t, b, tpm); l.Rate.N > 60_000 {
			t.Errorf("%v is in force; the answer names 60,000", l.Limit)
		}
	})
}

// A balance that stands still is not rounded.
func TestOneBalanceShowsNoGrain(t *testing.T) {
	var g grain
	for range 3 * grains {
		g.saw(499)
	}
	if g.hides() != 0 {
		t.Errorf("one balance hides %d", g.hides())
	}
}

package budget

import (
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A limit that only refusals named grows on as a guess, in its own window. Use of it
// still counts in that window.
func TestAGuessGrowsInItsOwnWindow(t *testing.T) {
	now := time.Date(2026, 9, 19, 12, 0, 0, 0, time.UTC)
	for _, window := range []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute} {
		d := &dimension{limit: limit.Limit{Unit: limit.Requests, Rate: limit.Rate{N: 100, Window: window}}, said: 100}
		d.loosen(now)
		for range 1000 { // ten windows, at the limit
			now = now.Add(window / 100)
			d.used.add(now, window, 1)
			d.grow(now)
		}
		if used := d.used.in(now, window); used < 100 || used > 102 {
			t.Errorf("a window of %v: %d of 100 were used in it", window, used)
		}
		if d.said < 800 {
			t.Errorf("a window of %v: a ceiling of %d; want 800 once it is used", window, d.said)
		}
	}
}

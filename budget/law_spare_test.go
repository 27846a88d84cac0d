package budget

import (
	"testing"
	"time"

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

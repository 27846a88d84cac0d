package budget

import (
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/law"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

// A fixed window leaves one per cent unused, other windows half a per cent, and a log
// nothing.
func TestWhatWindowsLeaveUnused(t *testing.T) {
	p := profile.Unknown()
	for shape, want := range map[limit.Shape]int64{limit.ShapeFixed: 3000, limit.ShapeTwoWindows: 1500, limit.ShapeSliding: 1500, limit.ShapeLog: 0} {
		d := &dimension{configured: limit.Limit{Unit: limit.Tokens, Rate: limit.PerMinute(300_000)}}
		d.limit, d.shown = d.configured, 300_000
		d.law.learner = law.New(law.Options{Window: time.Minute, Known: limit.Law{Shape: shape}})
		if got := d.effective(shapeOf(&p, 0), time.Now()).Law; got.Shape != shape || got.Spare != want {
			t.Errorf("%v: %v leaves %d unused, want %d", shape, got.Shape, got.Spare, want)
		}
	}
}

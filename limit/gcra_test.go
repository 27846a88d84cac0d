package limit_test

import (
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// The theoretical arrival time form answers as the bucket does: here in a
// ledger that can be read; TestOracleBucketAndGCRA holds them equal at random.
func TestTheoreticalArrivalTimeAnswersAsTheBucket(t *testing.T) {
	g, err := limit.NewGCRA(limit.PerSecond(10), 3) // a unit each 100 ms
	if err != nil {
		t.Fatal(err)
	}
	b, _ := limit.NewBucket(limit.PerSecond(10), 3)
	for _, row := range []struct {
		at     time.Duration
		cost   int64
		wait   time.Duration
		credit int64 // after
	}{
		{0, 1, 0, 2},
		{0, 1, 0, 1},
		{0, 1, 0, 0},
		{0, 1, 100 * ms, 0},
		{99 * ms, 1, 1 * ms, 0},
		{100*ms - 1, 1, 1, 0},
		{100 * ms, 1, 0, 0},
		{250 * ms, 2, 50 * ms, 1},
		{250 * ms, 1, 0, 0},
		{10_000 * ms, 0, 0, 3}, // idling earns a burst and no more
		{10_000 * ms, 3, 0, 0},
		{10_000 * ms, 1, 100 * ms, 0},
	} {
		for name, f := range map[string]interface {
			Take(time.Duration, int64) (time.Duration, error)
			Credit() int64
		}{"GCRA": g, "bucket": b} {
			wait, err := f.Take(row.at, row.cost)
			if err != nil || wait != row.wait || f.Credit() != row.credit {
				t.Errorf("%s at %v, cost %d: wait %v, %v, credit %d; want %v, %d", name, row.at, row.cost, wait, err, f.Credit(), row.wait, row.credit)
			}
		}
	}
}

// max_burst bounds what idling earns: the arrival time is pulled up to now.
func TestArrivalTimeIsPulledUpToNow(t *testing.T) {
	for burst := int64(1); burst < 50; burst++ {
		for _, idle := range []time.Duration{0, time.Nanosecond, time.Hour, 200 * 365 * 24 * time.Hour} {
			g, err := limit.NewGCRA(limit.PerMinute(7_919), burst)
			if err != nil {
				t.Fatal(err)
			}
			n := int64(0)
			for {
				if wait, err := g.Take(idle, 1); err != nil {
					t.Fatal(err)
				} else if wait > 0 {
					break
				}
				n++
			}
			if n != burst {
				t.Errorf("burst %d after %v: %d", burst, idle, n)
			}
		}
	}
}

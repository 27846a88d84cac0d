package limit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A window that is learned late counts earlier use, and forgets it a window later.
func TestRecallScope(t *testing.T) {
	for _, shape := range []limit.Shape{limit.ShapeLog, limit.ShapeFixed} {
		synctest.Test(t, func(t *testing.T) {
			l, err := limit.New(limit.Options{})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Second)
			law := limit.Law{Shape: shape}
			if shape == limit.ShapeFixed {
				law.Edge = time.Duration(time.Now().UnixNano()) + 30*time.Second
			}
			if err := l.EnforceScopeLimit("s", limit.Limit{Name: "tpm", Unit: limit.Tokens, Rate: limit.Rate{N: 100, Window: time.Minute}, Burst: 100, Law: law}); err != nil {
				t.Fatal(err)
			}
			for _, none := range []struct{ scope, name string }{{"s", "other"}, {"other", "tpm"}} {
				l.RecallScope(none.scope, none.name, time.Second, 100)
			}
			credit := func() int64 { return l.Snapshot().Scopes[0].Limits[0].Credit }
			l.RecallScope("s", "tpm", 40*time.Second, 10) // before the edge of the fixed window
			l.RecallScope("s", "tpm", 25*time.Second, 70)
			l.RecallScope("s", "tpm", time.Hour, 100) // before the limiter was made
			l.RecallScope("s", "tpm", -time.Second, 5)
			want := []int64{15, 25, 95, 100}
			if shape == limit.ShapeFixed {
				want = []int64{25, 25, 100, 100}
			}
			for i, after := range []time.Duration{0, 21 * time.Second, 15 * time.Second, 26 * time.Second} {
				time.Sleep(after)
				if got := credit(); got != want[i] {
					t.Errorf("%v: step %d: %d are there; want %d", shape, i, got, want[i])
				}
			}
		})
	}
}

// A bucket has earned nobody knows what since.
func TestRecallScopeOfABucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := limit.New(limit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.EnforceScopeLimit("s", limit.Limit{Name: "tpm", Unit: limit.Tokens, Rate: limit.Rate{N: 100, Window: time.Minute}, Burst: 100}); err != nil {
			t.Fatal(err)
		}
		l.RecallScope("s", "tpm", time.Second, 70)
		if got := l.Snapshot().Scopes[0].Limits[0].Credit; got != 100 {
			t.Errorf("%d are there", got)
		}
	})
}

// Behind a guard a window whose law is known is asked before any reading.
func TestAKnownWindowBehindAGuardIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for shape, want := range map[limit.Shape]int64{limit.ShapeLog: 30, limit.ShapeSliding: 100} {
			l, err := limit.New(limit.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := l.EnforceScopeLimit("s", limit.Limit{
				Name: "tpm", Unit: limit.Tokens, Rate: limit.Rate{N: 100, Window: time.Minute}, Burst: 100, Guard: 90, Law: limit.Law{Shape: shape},
			}); err != nil {
				t.Fatal(err)
			}
			l.RecallScope("s", "tpm", time.Second, 70)
			if got := l.Snapshot().Scopes[0].Limits[0].Credit; got != want {
				t.Errorf("%v: %d are there; want %d", shape, got, want)
			}
			_, err = l.TryAdmit(limit.Ask{Cost: limit.Cost{Input: 40}, Scopes: []string{"s"}})
			if admitted := err == nil; admitted != (want >= 40) {
				t.Errorf("%v: 40 of %d: %v", shape, want, err)
			}
		}
	})
}

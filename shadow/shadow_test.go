package shadow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// root is a paper that must not be paused or drained.
type root struct{ *limit.Limiter }

func (r root) PauseScope(string, limit.Pause) { panic("the paper was paused") }
func (r root) DrainScope(string, string, int64, time.Duration) bool {
	panic("the paper was drained")
}

func paper(t testing.TB, o limit.Options) root {
	l, err := limit.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return root{l}
}

var one = limit.Ask{Cost: limit.Cost{Requests: 1}}

// Five calls at once under one a second: in truth all leave at once, on paper they
// wait 0 to 4 s.
func TestNothingIsDelayedAndEverythingIsWrittenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(paper(t, limit.Options{Limits: []limit.Limit{{Name: "rpm", Rate: limit.PerMinute(60)}}}), Options{})
		start := time.Now()
		for range 5 {
			r, err := l.Admit(t.Context(), one)
			if err != nil {
				t.Fatal(err)
			}
			r.Keep()
		}
		l.PauseScope("", limit.Pause{For: time.Hour})
		l.DrainScope("", "rpm", 0, time.Hour)
		if d := time.Since(start); d != 0 {
			t.Errorf("five calls took %v", d)
		}
		time.Sleep(10 * time.Second)
		r := l.Report()
		if r.Asked != 5 || r.Waited != 4 || r.Waiting != 0 || r.Wait.Total != 10*time.Second || r.Wait.Longest != 4*time.Second || r.For["rpm"].Count != 4 {
			t.Errorf("%+v", r)
		}
	})
}

// The mean wait on paper is that of a limiter that really delays, as long as truth
// has the same order. It is so for any arrivals, costs, lengths and settlements.
func TestPaperAgreesWithALimiterThatDelays(t *testing.T) {
	for seed := range uint64(30) {
		type arrival struct {
			at, takes time.Duration
			cost      int64
			actual    int64
		}
		r := rand.New(rand.NewPCG(seed, 3))
		var arrivals []arrival
		at := time.Duration(0)
		for range 100 {
			at += time.Duration(r.Int64N(int64(400 * time.Millisecond)))
			cost := 1 + r.Int64N(200)
			arrivals = append(arrivals, arrival{at, time.Duration(r.Int64N(int64(3 * time.Second))), cost, r.Int64N(cost + 1)})
		}
		o := limit.Options{Limits: []limit.Limit{{Name: "tpm", Unit: limit.Tokens, Rate: limit.PerMinute(12_000), Burst: 400}}, MaxInFlight: 8}
		run := func(l limit.Ledger) (total time.Duration) {
			var all sync.WaitGroup
			waits := make(chan time.Duration, len(arrivals))
			for _, a := range arrivals {
				all.Go(func() {
					time.Sleep(a.at)
					asked := time.Now()
					res, err := l.Admit(context.Background(), limit.Ask{Cost: limit.Cost{Requests: 1, Input: a.cost}})
					if err != nil {
						panic(err)
					}
					waits <- time.Since(asked)
					time.Sleep(a.takes)
					res.Settle(limit.Cost{Input: a.actual})
				})
			}
			for range arrivals {
				total += <-waits
			}
			all.Wait()
			return total
		}
		var truth, onPaper time.Duration
		synctest.Test(t, func(t *testing.T) { truth = run(paper(t, o)) })
		synctest.Test(t, func(t *testing.T) {
			s := New(paper(t, o), Options{})
			if d := run(s); d != 0 {
				t.Errorf("seed %d: calls were delayed by %v", seed, d)
			}
			time.Sleep(time.Hour)
			rep := s.Report()
			onPaper = rep.Wait.Total
			if rep.Waiting != 0 || s.Snapshot().InFlight != 0 {
				t.Errorf("seed %d: %d wait and %d are in flight on paper at the end", seed, rep.Waiting, s.Snapshot().InFlight)
			}
		})
		if truth != onPaper {
			t.Errorf("seed %d: a limiter delays by %v in all, the paper says %v", seed, truth, onPaper)
		}
	}
}

// A refusal is spared while any call is ahead of its turn on paper: its own, or one
// that took its place at the provider. Without such a call it is not.
func TestSparedRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(paper(t, limit.Options{Limits: []limit.Limit{{Name: "rpm", Rate: limit.PerMinute(60)}}}), Options{})
		first, _ := l.Admit(t.Context(), one)
		second, _ := l.Admit(t.Context(), one)
		third, _ := l.Admit(t.Context(), one)
		time.Sleep(100 * time.Millisecond)
		l.Refused(first)
		first.Keep()
		l.Refused(second) // waits on paper until 1 s
		second.Settle(limit.Cost{})
		time.Sleep(1500 * time.Millisecond)
		l.Refused(third) // left on paper at 1 s, since the second came back as another; it was sent at 0
		third.Keep()
		time.Sleep(time.Minute)
		r := l.Report()
		fourth, _ := l.Admit(t.Context(), one)
		l.Refused(fourth) // nobody is ahead of its turn
		fourth.Keep()
		r = l.Report()
		if r.RateLimited != 4 || r.Spared != 3 || r.Waited != 1 || r.For["rpm"].Longest != time.Second {
			t.Errorf("%+v", r)
		}
	})
}

// Deadlines, the largest cost and a full line refuse on paper; in truth the calls
// go.
func TestRefusalsOnPaper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(paper(t, limit.Options{Limits: []limit.Limit{{Name: "rpm", Rate: limit.PerMinute(6), Burst: 1}}, MaxQueue: 2}), Options{})
		ask := func(ctx context.Context, n int64) {
			r, err := l.Admit(ctx, limit.Ask{Cost: limit.Cost{Requests: n}})
			if err != nil {
				t.Fatal(err)
			}
			if r.Cost().Requests != n {
				t.Errorf("reserved %v", r.Cost())
			}
			r.Settle(limit.Cost{})
			synctest.Wait()
		}
		ask(t.Context(), 1)
		ask(t.Context(), 2) // never
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ask(short, 1)
		ask(t.Context(), 1)
		ask(t.Context(), 1)
		ask(t.Context(), 1) // the line is full
		time.Sleep(time.Hour)
		r := l.Report()
		want := map[string]int64{limit.ErrTooLarge.Error(): 1, limit.ErrWaitTooLong.Error(): 1, limit.ErrQueueFull.Error(): 1}
		if fmt.Sprint(r.Refused) != fmt.Sprint(want) || r.Asked != 6 || r.Waited != 2 {
			t.Errorf("%+v, want %v", r, want)
		}
	})
}

// A served caller that goes on does not leave the paper; one whose call was never
// made does. Beyond Follow calls are counted only. Close ends all waits.
func TestWhoStaysOnPaper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(paper(t, limit.Options{Limits: []limit.Limit{{Name: "rpm", Rate: limit.PerMinute(60)}}}), Options{Follow: 2})
		ctx, served := context.WithCancel(t.Context())
		var rs []limit.Reservation
		for range 4 {
			r, err := l.Admit(ctx, one)
			if err != nil {
				t.Fatal(err)
			}
			rs = append(rs, r)
		}
		if r := l.Report(); r.Waited != 2 || r.Waiting != 2 || r.Unfollowed != 1 {
			t.Errorf("%+v", r)
		}
		rs[0].Keep()
		rs[1].Settle(limit.Cost{}) // served
		served()
		rs[2].Return() // never made
		rs[2].Return() // ends after the first do nothing
		time.Sleep(10 * time.Second)
		if r := l.Report(); r.Waited != 1 || r.Wait.Count != 1 || r.Waiting != 0 || len(r.Refused) != 0 {
			t.Errorf("%+v", r)
		}
		l.Admit(t.Context(), one)
		l.Admit(t.Context(), one)
		l.Close()
		synctest.Wait()
		if r := l.Report(); r.Waiting != 0 {
			t.Errorf("%d wait after Close", r.Waiting)
		}
		if _, err := l.TryAdmit(one); err != nil {
			t.Error(err)
		}
	})
}

func TestReportReads(t *testing.T) {
	r := Report{
		Asked: 10, Waited: 4, Wait: Waits{4, 8 * time.Second, 3 * time.Second}, RateLimited: 3, Spared: 2, Unfollowed: 1,
		For:     map[string]Waits{"rpm": {1, time.Second, time.Second}, "model/a: tpm": {3, 7 * time.Second, 3 * time.Second}},
		Refused: map[string]int64{limit.ErrQueueFull.Error(): 2},
	}
	want := `10 attempts asked. With these limits 4 would have waited, 2s on average and 3s at most.
  for model/a: tpm: 3, 2.333s on average, 3s at most
  for rpm: 1, 1s on average, 1s at most
2 would have been refused before they were sent: the line is full.
1 more would have waited; too many to be followed.
The provider refused 3 (429); 2 would have been spared.`
	if got := r.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := r.LogValue().String(); !strings.Contains(got, "spared=2") {
		t.Error(got)
	}
	if got := reason(errors.New("x")); got != "other" {
		t.Error(got)
	}
}

func BenchmarkAdmitAndSettle(b *testing.B) {
	l := New(paper(b, limit.Options{Limits: []limit.Limit{{Name: "rpm", Rate: limit.PerSecond(1_000_000_000)}}}), Options{})
	b.ReportAllocs()
	for b.Loop() {
		r, _ := l.Admit(context.Background(), one)
		r.Settle(limit.Cost{})
	}
}

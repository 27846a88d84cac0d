package providertest

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

func TestLedgerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := mustNew(t, Options{LedgerSize: 3, Limits: Limits{RPM: 6000}})
		for range 5 {
			send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1, 1))
			time.Sleep(time.Second)
		}
		l := p.Ledger()
		if len(l) != 3 || l[0].Number != 3 || l[2].Number != 5 || p.Stats().Dropped != 2 || p.Stats().Completed != 5 {
			t.Errorf("%+v, %+v", l, p.Stats())
		}
		if _, ok := p.QuotaUsed(p.Start(), p.Start().Add(time.Minute)); ok {
			t.Error("a share was computed from entries that are gone")
		}
		q, ok := p.QuotaUsed(p.Start().Add(2*time.Second), p.Start().Add(5*time.Second))
		if !ok || q.Requests != 3.0/300 {
			t.Errorf("%+v %v", q, ok)
		}
		if _, ok := p.QuotaUsed(p.Start().Add(time.Second), p.Start().Add(time.Second)); ok {
			t.Error("a share of no time")
		}
	})
}

// The peak is that of all windows, found by trying them all.
func TestPeakAgainstAllWindows(t *testing.T) {
	p := mustNew(t, Options{})
	r := rand.New(rand.NewPCG(1, 9))
	var all []load
	at := int64(0)
	for range 500 {
		at += []int64{0, minute / 10, minute / 30, minute / 30 * r.Int64N(5)}[r.IntN(4)] // often a minute apart to the ns
		l := load{at, r.Int64N(2), r.Int64N(100)}
		all = append(all, l)
		p.peakLocked(l.at, l.requests, l.tokens)
	}
	var requests, tokens int64
	for _, end := range all {
		var a, b int64
		for _, l := range all {
			if l.at > end.at-minute && l.at <= end.at {
				a, b = a+l.requests, b+l.tokens
			}
		}
		requests, tokens = max(requests, a), max(tokens, b)
	}
	if p.stats.PeakRequests != requests || p.stats.PeakTokens != tokens || requests == 0 {
		t.Errorf("peak %d, %d; want %d, %d", p.stats.PeakRequests, p.stats.PeakTokens, requests, tokens)
	}
}

func TestEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := mustNew(t, Options{})
		p.Script(Step{Kind: Refuse, RetryAfter: 10 * time.Second}, Step{Kind: Refuse, RetryAfter: 12 * time.Second})
		for _, c := range []struct {
			at    time.Duration
			early bool
		}{
			{0, false}, // refused until 10 s
			{0, false}, // the same instant: it cannot have known; refused until 12 s
			{1, true},
			{10 * time.Second, true},
			{12*time.Second - 1, true},
			{12 * time.Second, false},
			{13 * time.Second, false},
		} {
			time.Sleep(time.Until(p.Start().Add(c.at)))
			send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1, 1))
			l := p.Ledger()
			if got := l[len(l)-1].Early; got != c.early {
				t.Errorf("at %v: early %v, want %v", c.at, got, c.early)
			}
		}
	})
}

package bench

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/providertest"
)

var shapesOnly = flag.Bool("shapes", false, "all shapes over ten seeds instead of one")

var (
	fixedReserve   = providertest.Options{Algorithm: providertest.FixedMinute, Charge: providertest.Settle}
	slidingReserve = providertest.Options{Algorithm: providertest.SlidingMinute, Charge: providertest.Settle}
	fullBucket     = providertest.Options{Algorithm: providertest.Bucket, Charge: providertest.Settle}
)

// laws is every law and every provider that was recorded, under the loads
// that users have: more than the limit lets through, crowds, and a fresh script.
var laws = func() []Shape {
	bucket := Bars{OfIdeal: .99, Refused: 1, P50: 2 * time.Second}
	crowd := Bars{Refused: 1, P50: 200 * time.Millisecond, P99: 1500 * time.Millisecond}
	all := []Shape{
		{Name: "fixed minute, reserve", Provider: fixedReserve, Load: Overload, N: 2000, Bars: Bars{OfIdeal: .985, Refused: 1, P50: 5 * time.Second}},
		{Name: "sliding minute, reserve", Provider: slidingReserve, Load: Overload, N: 2000, Bars: Bars{OfIdeal: .985, Refused: 1, P50: 20 * time.Second}},
		{Name: "fixed minute, reserve", Provider: fixedReserve, Load: Bursts, N: 1200, Bars: Bars{Refused: 1, P50: time.Second, P99: 30 * time.Second}},
		{Name: "sliding minute, reserve", Provider: slidingReserve, Load: Bursts, N: 1200, Bars: Bars{Refused: 1, P50: time.Second, P99: 35 * time.Second}},
		{Name: "bucket of a minute", Provider: fullBucket, Load: Overload, N: 2000, Bars: bucket},
		{Name: "bucket of a minute", Provider: fullBucket, Load: Bursts, N: 1200, Bars: Bars{Refused: 1, P50: 200 * time.Millisecond, P99: 3 * time.Second}},
	}
	for _, p := range []struct {
		preset, profile, path string
		drain                 Bars
		fresh                 time.Duration
		day                   string
	}{
		{"openai-chat", "openai", "", bucket, 300 * time.Millisecond, "2026-08-01"},
		{"openai-responses", "openai", "/v1/responses", bucket, 300 * time.Millisecond, "2026-08-01"},
		{"openai-gpt5", "openai", "/v1/responses", bucket, 300 * time.Millisecond, "2026-08-01"},
		{"anthropic", "anthropic", "/v1/messages", bucket, 1500 * time.Millisecond, "2026-08-01"},
		{"azure", "azure", "", bucket, 300 * time.Millisecond, "2026-08-01"},
		{"groq", "groq", "", bucket, 300 * time.Millisecond, "2026-08-01"},
		{"azure-2025", "azure", "", Bars{OfIdeal: .985, Refused: 1}, 0, "2025-10-01"},
		{"xai", "xai", "", Bars{Used: .96, Refused: 1}, 0, "2026-08-01"},
		{"mistral", "mistral", "", Bars{Used: .975, Refused: 1}, 0, "2026-08-01"},
		{"mistral-2025", "mistral", "", Bars{Used: .975, Refused: 1}, 0, "2025-09-01"},
		{"anthropic-2024", "anthropic", "/v1/messages", Bars{OfIdeal: .985, Refused: 1}, 0, "2024-05-01"},
	} {
		s := Shape{Name: p.preset, Provider: preset(p.preset), Profile: p.profile, Path: p.path, Day: p.day}
		if p.preset == "openai-gpt5" {
			s.Model = "gpt-5.4" // its charge is that of the family
		}
		s.Load, s.N, s.Bars = Overload, 2000, p.drain
		all = append(all, s)
		s.Load, s.N, s.Bars = Bursts, 1200, Bars{Refused: 1}
		if p.fresh > 0 {
			s.Bars = crowd
		}
		all = append(all, s)
		s.Load, s.N, s.Bars = AtOnce, 100, Bars{Refused: 1, P99: p.fresh}
		all = append(all, s)
	}
	for i := range all {
		all[i].Missed = missed[all[i].Name]
	}
	return all
}()

// missed are the laws whose bars are not met yet, and why.
var missed = map[string]string{
	"fixed minute, reserve": "bursts come before an edge was seen: their p99 is that of the guard",
	"openai-gpt5": "0 refusals, but a median wait of 5.9 s: output is charged at the end, and what is expected is held until then. " +
		"Without it the ledger meets the debt of calls under way",
	"groq": "as openai-gpt5: a median wait of 2.5 s",
	"xai":  "several counters answer: the pace of a short burst is kept. By the recorded log 78 % of the quota were used, at as many refusals",
	"mistral": "charged at the end: the pace of a short burst is kept. By the recorded windows, counted from the end of calls, " +
		"nothing was refused at 86 % of the quota: calls under way are held beside them. Without the headroom 39 calls of 1,000 were refused",
	"mistral-2025": "as mistral: a window that begins with the first call begins when that ends. By the recorded law 147 calls of 1,000 were refused",
}

// TestShapes plays every shape, with its limits configured and with nothing
// configured, and prints a row for each. A configured row is held to its bars,
// unless it is in missed.
func TestShapes(t *testing.T) {
	seeds := 1
	if *shapesOnly {
		seeds = 10
	}
	for _, s := range laws {
		for i, p := range []Policy{s.Told(), s.Learning()} {
			t.Run(fmt.Sprintf("%s, %v, %s", s.Name, s.Load, [...]string{"told", "nothing configured"}[i]), func(t *testing.T) {
				t.Parallel()
				r := Row{}
				var rs []Result
				for seed := range seeds {
					rs = append(rs, bubble(t, s.scenario(), p, uint64(seed)))
				}
				r = row(boardScenario{Scenario: s.scenario()}, p.Name, rs)
				if err := s.Bars.judge(r); err != nil && i == 0 && s.Missed == "" {
					t.Error(err)
				}
				t.Logf("| %s | %v | %s | %.1f | %.1f | %.2f | %.1f | %.1f | %d |", s.Name, s.Load, p.Name, 100*r.OfIdeal, 100*r.Used,
					1000*r.Refused, Quantile(r.Waits, .5).Seconds(), Quantile(r.Waits, .99).Seconds(), r.Failed)
			})
		}
	}
}

package bench

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

// bubble plays one run in virtual time.
func bubble(t *testing.T, s Scenario, p Policy, seed uint64) (r Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if r, err = run(s, p, seed); err != nil {
			t.Fatal(err)
		}
	})
	return r
}

// A bar is what tripmeter is held to in one scenario, over five seeds. The
// worst seed counts for everything but the share of 429s, which is of all
// calls of all seeds: one refusal in 2000 calls is 0.05 % already.
type bar struct {
	name       string
	provider   providertest.Options
	configured int64
	change     func(*transport.Options, Knows)

	ideal   float64       // least throughput, of the ideal client's; 0 not asked
	used    float64       // least share of the quota; 0 not asked
	refused float64       // most 429s for each call
	most    int           // most 429s of a run; -1 not asked
	p99     time.Duration // most added wait; 0 not asked
	tries   int           // most attempts of one call; 0 not asked
	falling bool          // the last third has no more 429s than the first
}

// seedCount is small in a plain go test, which has a minute.
var seedCount = flag.Int("seeds", 0, "seeds of each bar; 0 is 5 with -scoreboard, else 2")

func seedsOfABar() int {
	switch {
	case *seedCount > 0:
		return *seedCount
	case *scoreboard:
		return 5
	}
	return 2
}

// burst is the profile with default request burst and this token burst.
func burst(d time.Duration) func(*transport.Options, Knows) {
	return func(o *transport.Options, _ Knows) { o.Provider.RequestBurst, o.Provider.TokenBurst = 0, d }
}

// plain is the profile of a provider of which only the charge rule is known.
func plain(o *transport.Options, k Knows) {
	o.Provider = ruled(profile.Unknown(), k.Options)
}

func bucketOf(d time.Duration, c providertest.Charge) providertest.Options {
	return providertest.Options{Algorithm: providertest.Bucket, Capacity: d, Charge: c}
}

func penal(a providertest.Algorithm) providertest.Options {
	return providertest.Options{
		Algorithm: a, Capacity: 10 * time.Second, Charge: providertest.Estimate,
		RefusedCount: true, Penalty: time.Second, RetryAfter: providertest.NoRetryAfter,
	}
}

// mute is a provider that says nothing but 429.
func mute(o providertest.Options) providertest.Options {
	o.Dialect = providertest.NoHeaders
	return o
}

// deaf is the plain profile, and a wait in the text is not read.
func deaf(o *transport.Options, k Knows) {
	plain(o, k)
	o.Retry.IgnoreBodyWait = true
}

// misruled is the profile with a charge rule that is not the provider's.
func misruled(c estimate.Charge) func(*transport.Options, Knows) {
	return func(o *transport.Options, k Knows) {
		if k.Options.Algorithm == providertest.Bucket {
			plain(o, k)
		}
		o.Provider = o.Provider.Charging(c)
	}
}

var (
	fixedMinute   = providertest.Options{Algorithm: providertest.FixedMinute, Charge: providertest.Estimate}
	slidingMinute = providertest.Options{Algorithm: providertest.SlidingMinute, Charge: providertest.Estimate}
	// Anthropic's bucket refills continuously "up to your maximum limit"
	// (Anthropic rate limits page), so it holds a minute.
	anthropic = providertest.Options{
		Limits:    providertest.Limits{RPM: RPM, InputTPM: 100_000, OutputTPM: 40_000},
		Algorithm: providertest.Bucket, Charge: providertest.Actual,
		Dialect: providertest.AnthropicHeaders, RoundRemaining: 1000,
	}
)

var bars = []bar{
	{name: "burst equal to ours, estimate", provider: bucketOf(10*time.Second, providertest.Estimate), change: burst(10 * time.Second),
		ideal: .99, refused: .001, most: -1, p99: 4 * time.Second},
	{name: "burst equal to ours, actual", provider: bucketOf(10*time.Second, providertest.Actual), change: burst(10 * time.Second),
		ideal: .99, refused: .001, most: -1, p99: 4 * time.Second},
	{name: "our burst a second smaller, estimate", provider: bucketOf(10*time.Second, providertest.Estimate), change: burst(9 * time.Second),
		ideal: .98},
	{name: "our burst a second smaller, actual", provider: bucketOf(10*time.Second, providertest.Actual), change: burst(9 * time.Second),
		ideal: .98},
	{name: "full-minute bucket, default settings, estimate", provider: bucketOf(time.Minute, providertest.Estimate), change: plain, used: .995},
	{name: "full-minute bucket, default settings, settle", provider: bucketOf(time.Minute, providertest.Settle), change: plain, used: .995},
	{name: "full-minute bucket, default settings, actual", provider: bucketOf(time.Minute, providertest.Actual), change: plain, used: .995},
	{name: "fixed minute, estimate, plain profile", provider: fixedMinute, change: plain, used: .975, refused: .01, most: -1},
	{name: "fixed minute, estimate, window profile", provider: fixedMinute, used: .94, refused: .0005, most: -1},
	{name: "sliding minute, estimate, plain profile", provider: slidingMinute, change: plain, used: .96, refused: .04, most: -1},
	{name: "sliding minute, estimate, window profile", provider: slidingMinute, used: .945},
	{name: "Anthropic, input and output apart, as produced", provider: anthropic, change: plain, used: .985},
	{name: "input and output apart, as produced, burst equal to ours", provider: with(anthropic, func(o *providertest.Options) { o.Capacity = 10 * time.Second }), change: burst(10 * time.Second),
		used: .985, refused: .001, most: -1},
	{name: "spent at the start", provider: with(bucketOf(10*time.Second, providertest.Estimate), func(o *providertest.Options) { o.StartSpent = 100 }),
		refused: 1, most: 3},
	{name: "spent at the start, fixed minute", provider: with(fixedMinute, func(o *providertest.Options) { o.StartSpent = 100 }),
		refused: 1, most: 3},
	{name: "spent at the start, no headers, no Retry-After", provider: with(bucketOf(10*time.Second, providertest.Estimate), func(o *providertest.Options) {
		o.StartSpent, o.Dialect, o.RetryAfter = 100, providertest.NoHeaders, providertest.NoRetryAfter
	}), refused: 1, most: 3},
	{name: "penal cool-down, bucket", provider: penal(providertest.Bucket), refused: .001, most: -1},
	{name: "penal cool-down, fixed minute", provider: penal(providertest.FixedMinute), refused: .02, most: -1},
	{name: "penal cool-down, sliding minute", provider: penal(providertest.SlidingMinute), refused: .06, most: -1},
	{name: "penal cool-down, fixed minute, plain profile", provider: penal(providertest.FixedMinute), change: plain, refused: .02, most: -1},
	{name: "penal cool-down, sliding minute, plain profile", provider: penal(providertest.SlidingMinute), change: plain, refused: .06, most: -1},
	{name: "penal cool-down, no header, no word in the text: bucket", provider: mute(penal(providertest.Bucket)), change: deaf, refused: .001, most: -1},
	{name: "penal cool-down, no header, no word in the text: fixed minute", provider: mute(penal(providertest.FixedMinute)), change: deaf, refused: .02, most: -1},
	{name: "penal cool-down, no header, no word in the text: sliding minute", provider: mute(penal(providertest.SlidingMinute)), change: deaf, refused: .06, most: -1},
	{name: "mis-set: actual, charged by estimate", provider: bucketOf(10*time.Second, providertest.Estimate), change: misruled(estimate.ChargeActual),
		refused: .1, most: -1, tries: 5, falling: true},
	{name: "mis-set: settle, charged by estimate", provider: bucketOf(10*time.Second, providertest.Estimate), change: misruled(estimate.ChargeSettle),
		refused: .1, most: -1, tries: 5, falling: true},
	{name: "mis-set: estimate, charged as produced", provider: bucketOf(10*time.Second, providertest.Actual), change: misruled(estimate.ChargeEstimate),
		refused: .1, most: -1, tries: 5, falling: true},
	{name: "mis-set: settle, fixed minute by estimate", provider: fixedMinute, change: misruled(estimate.ChargeSettle),
		refused: .1, most: -1, tries: 5, falling: true},
	{name: "configured with twice the limit, bucket", provider: bucketOf(10*time.Second, providertest.Estimate), configured: 2 * TPM,
		refused: .1, most: -1, tries: 5, falling: true},
	{name: "configured with twice the limit, bucket, no headers", provider: with(bucketOf(10*time.Second, providertest.Estimate), func(o *providertest.Options) { o.Dialect = providertest.NoHeaders }),
		configured: 2 * TPM, refused: .1, most: -1, tries: 5, falling: true},
	{name: "configured with twice the limit, fixed minute, no headers", provider: with(fixedMinute, func(o *providertest.Options) { o.Dialect = providertest.NoHeaders }),
		configured: 2 * TPM, refused: .1, most: -1, tries: 5, falling: true},
	{name: "configured with twice the limit, sliding minute, no headers", provider: with(slidingMinute, func(o *providertest.Options) { o.Dialect = providertest.NoHeaders }),
		configured: 2 * TPM, refused: .1, most: -1, tries: 5, falling: true},
}

func with(o providertest.Options, change func(*providertest.Options)) providertest.Options {
	change(&o)
	return o
}

// TestBars holds tripmeter to its bars: the right profile, one process, 2000
// calls at three times the drain, five seeds.
func TestBars(t *testing.T) {
	for _, b := range bars {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			s := Scenario{Name: b.name, Provider: b.provider, Load: Overload, N: 2000, Configured: b.configured}
			p := tripmeter("tripmeter", b.change)
			results := make([]Result, seedsOfABar())
			for seed := range results {
				results[seed] = bubble(t, s, p, uint64(seed))
			}
			b.judge(t, results)
		})
	}
}

func (b bar) judge(t *testing.T, rs []Result) {
	ideal, used, refused, calls, most, tries, failed := 9.0, 9.0, 0, 0, 0, 0, 0
	var p99 time.Duration
	var thirds [3]int
	var early int64
	for _, r := range rs {
		ideal, used = min(ideal, r.OfIdeal()), min(used, r.Used)
		refused, calls = refused+r.Refused, calls+r.Calls
		most, tries = max(most, r.Refused), max(tries, r.Most)
		p99 = max(p99, Quantile(r.Waits, .99))
		failed, early = failed+r.Failed, early+r.Early
		for i := range thirds {
			thirds[i] += r.Thirds[i]
		}
	}
	share := float64(refused) / float64(calls)
	t.Logf("of ideal %.2f %%, used %.2f %%, 429s %.3f %% %v, most of a run %d, p99 %v, attempts %d, early %d",
		100*ideal, 100*used, 100*share, thirds, most, p99, tries, early)
	if failed > 0 {
		t.Errorf("%d calls failed", failed)
	}
	if ideal < b.ideal {
		t.Errorf("%.2f %% of the ideal throughput; want %.2f %%", 100*ideal, 100*b.ideal)
	}
	if used < b.used {
		t.Errorf("%.2f %% of the quota used; want %.2f %%", 100*used, 100*b.used)
	}
	if share > b.refused {
		t.Errorf("%.3f %% refused; want at most %.3f %%", 100*share, 100*b.refused)
	}
	if b.most >= 0 && most > b.most {
		t.Errorf("%d refused in one run; want at most %d", most, b.most)
	}
	if b.p99 > 0 && p99 > b.p99 {
		t.Errorf("99 %% wait up to %v longer than the ideal; want %v", p99, b.p99)
	}
	if b.tries > 0 && tries > b.tries {
		t.Errorf("one call was tried %d times; want at most %d", tries, b.tries)
	}
	if b.falling && thirds[2] > thirds[0] {
		t.Errorf("429s by thirds of the run are %v: not falling", thirds)
	}
	i := slices.IndexFunc(bars, func(x bar) bool { return x.name == b.name })
	board.Lock()
	board.lines = append(board.lines, line{i, fmt.Sprintf("| %s | %.1f | %.1f | %.3f | %d, %d, %d | %d | %.1f | %d | %s |",
		b.name, 100*ideal, 100*used, 100*share, thirds[0], thirds[1], thirds[2], most, p99.Seconds(), tries, b.asked(t.Failed()))})
	board.Unlock()
}

// asked is the bar in words.
func (b bar) asked(missed bool) string {
	var words []string
	if b.ideal > 0 {
		words = append(words, fmt.Sprintf("≥ %.4g %% of ideal", 100*b.ideal))
	}
	if b.used > 0 {
		words = append(words, fmt.Sprintf("≥ %.4g %% used", 100*b.used))
	}
	switch {
	case b.most > 0:
		words = append(words, fmt.Sprintf("≤ %d 429s a run", b.most))
	case b.refused == 0:
		words = append(words, "no 429")
	default:
		words = append(words, fmt.Sprintf("≤ %.4g %% 429s", 100*b.refused))
	}
	if b.falling {
		words = append(words, "falling")
	}
	if b.p99 > 0 {
		words = append(words, fmt.Sprintf("p99 ≤ %v", b.p99))
	}
	if b.tries > 0 {
		words = append(words, fmt.Sprintf("≤ %d attempts", b.tries))
	}
	if missed {
		words = append(words, "**missed**")
	}
	return strings.Join(words, ", ")
}

package bench

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tripmeter/tripmeter/providertest"
)

// A Row is one policy in one scenario, over several seeds.
type Row struct {
	Provider, Rule string
	Load           Load
	Policy         string

	OfIdeal, Used float64 // mean of the seeds
	Refused       float64 // 429s for each call, all seeds
	Most          int     // attempts of one call
	Failed        int
	Early         int64
	Waits         []time.Duration // of all seeds, sorted
	SmallWaits    []time.Duration
}

// row sums up the results of a policy's runs.
func row(s boardScenario, policy string, rs []Result) Row {
	out := Row{Provider: s.provider, Rule: s.rule, Load: s.Load, Policy: policy}
	refused, n := 0, 0
	for _, r := range rs {
		out.OfIdeal += r.OfIdeal() / float64(len(rs))
		out.Used += r.Used / float64(len(rs))
		refused, n = refused+r.Refused, n+r.Calls
		out.Most, out.Failed, out.Early = max(out.Most, r.Most), out.Failed+r.Failed, out.Early+r.Early
		out.Waits = append(out.Waits, r.Waits...)
		out.SmallWaits = append(out.SmallWaits, r.SmallWaits...)
	}
	out.Refused = float64(refused) / float64(n)
	slices.Sort(out.Waits)
	slices.Sort(out.SmallWaits)
	return out
}

// boardScenario is a scenario with the names of its parts.
type boardScenario struct {
	Scenario
	provider, rule string
}

// boardCalls is how many calls a run of the scoreboard has. Fewer than the
// bars' 2000, because retrying alone puts a hundred requests on the wire for
// each of those.
const boardCalls = 500

// boardScenarios are those of the scoreboard: every provider and rule
// overloaded, and the other loads on one bucket and one window.
func boardScenarios() []boardScenario {
	var out []boardScenario
	add := func(i, j int, l Load) {
		o := algorithms[i].o
		o.Charge = charges[j].c
		out = append(out, boardScenario{
			Scenario: Scenario{Provider: o, Load: l, N: boardCalls},
			provider: algorithms[i].name, rule: charges[j].name,
		})
	}
	for i := range algorithms {
		for j := range charges {
			add(i, j, Overload)
		}
	}
	for _, l := range []Load{Bursts, Tenants, Processes} {
		for i, a := range algorithms {
			if a.o.Capacity == 10*time.Second || a.o.Algorithm == providertest.FixedMinute {
				add(i, 1, l)
			}
		}
	}
	return out
}

// table writes the rows of one load as Markdown.
func table(w io.Writer, rows []Row, l Load) {
	small := ""
	if l == Tenants {
		small = " small tenants' wait p99 s |"
	}
	fmt.Fprintf(w, "\n| provider | charges | policy | of ideal %% | quota used %% | 429s for 100 calls | most attempts | too early | added wait p50 s | p99 s |%s\n", small)
	fmt.Fprintf(w, "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	if small != "" {
		fmt.Fprintf(w, " ---: |")
	}
	last := ""
	for _, r := range rows {
		if r.Load != l {
			continue
		}
		p, rule := r.Provider, r.Rule
		if p+rule == last {
			p, rule = "", ""
		} else {
			last = p + rule
		}
		fmt.Fprintf(w, "\n| %s | %s | %s | %.1f | %.1f | %s | %d | %d | %.1f | %.1f |",
			p, rule, r.Policy, 100*r.OfIdeal, 100*r.Used, count(100*r.Refused), r.Most, r.Early,
			Quantile(r.Waits, .5).Seconds(), Quantile(r.Waits, .99).Seconds())
		if small != "" {
			fmt.Fprintf(w, " %.1f |", Quantile(r.SmallWaits, .99).Seconds())
		}
	}
	fmt.Fprintln(w)
}

// count is a number with the digits that say something.
func count(f float64) string {
	switch {
	case f == 0:
		return "0"
	case f < 10:
		return fmt.Sprintf("%.2f", f)
	}
	return fmt.Sprintf("%.0f", f)
}

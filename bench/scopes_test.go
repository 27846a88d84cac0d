package bench

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// One unconfigured client against rivals with a client for each crowd, configured
// with its limits. tripmeter serves as many as one of itself for each crowd would, within
// three per cent, with no more refusals; and where tenants share, their tokens are
// equal. The table of docs/scopes.md is what this test prints with -v.
func TestSituations(t *testing.T) {
	single := Policy{"tripmeter, one client, unconfigured", Unconfigured.New}
	apart := Policy{"tripmeter, a client for each", Unconfigured.New}
	var table strings.Builder
	for _, s := range Situations() {
		play := func(p Policy, one bool) (got []Got, refused int64) {
			synctest.Test(t, func(t *testing.T) {
				var err error
				if got, refused, err = s.Play(p, one); err != nil {
					t.Fatal(err)
				}
			})
			fmt.Fprintf(&table, "| %s | %s |", s.Name, p.Name)
			for i, c := range s.Crowds {
				if i > 0 {
					table.WriteString(",")
				}
				fmt.Fprintf(&table, " %s %d", c.Name, got[i].Answers)
			}
			fmt.Fprintf(&table, " | %d |", refused)
			for i := range s.Crowds {
				if i > 0 {
					table.WriteString(",")
				}
				fmt.Fprintf(&table, " %.1f", got[i].P99.Seconds())
			}
			table.WriteString(" |\n")
			return got, refused
		}
		one, refused := play(single, true)
		tenants := s.Crowds[0].Tenant != ""
		if tenants {
			var sum, squares float64
			for _, g := range one {
				sum += float64(g.Tokens)
				squares += float64(g.Tokens) * float64(g.Tokens)
			}
			if j := sum * sum / (float64(len(one)) * squares); j < 0.99 { // the first crowd is not yet in line
				t.Errorf("%s: Jain's index is %.4f", s.Name, j)
			}
		} else {
			many, refusedApart := play(apart, false)
			for i, c := range s.Crowds {
				if c.Name != "sick" && one[i].Answers*100 < many[i].Answers*97 {
					t.Errorf("%s: %s got %d answers, apart %d", s.Name, c.Name, one[i].Answers, many[i].Answers)
				}
			}
			if refused > refusedApart {
				t.Errorf("%s: %d refusals, apart %d", s.Name, refused, refusedApart)
			}
		}
		if !testing.Verbose() {
			continue // the rivals are for the table
		}
		for _, p := range []Policy{RetryAlone, ReserveCap, DebtBucket} {
			play(Policy{p.Name + ", a client for each", p.New}, false)
		}
	}
	t.Log("\n| situation | policy | answers | refusals | p99 s |\n| --- | --- | --- | ---: | --- |\n" + table.String())
}

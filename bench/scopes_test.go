package bench

import (
	"testing"
	"testing/synctest"
)

// A situationRow is what a policy made of a situation.
type situationRow struct {
	situation Situation
	policy    string
	got       []Got
	refused   int64
}

// playSituations plays all situations with one client of tripmeter, with one for each
// crowd unless tenants share a limit, and with rivals. Its rows come in that order.
func playSituations(t *testing.T, rivals bool) (rows []situationRow) {
	play := func(s Situation, p Policy, one bool) {
		row := situationRow{situation: s, policy: p.Name}
		synctest.Test(t, func(t *testing.T) {
			var err error
			if row.got, row.refused, err = s.Play(p, one); err != nil {
				t.Fatal(err)
			}
		})
		rows = append(rows, row)
	}
	for _, s := range Situations() {
		play(s, Policy{"tripmeter, one client, unconfigured", Unconfigured.New}, true)
		if s.Crowds[0].Tenant == "" {
			play(s, Policy{"tripmeter, a client for each", Unconfigured.New}, false)
		}
		if !rivals {
			continue
		}
		for _, p := range []Policy{RetryAlone, ReserveCap, DebtBucket, FixedWindow, ChargeAfter} {
			play(s, Policy{p.Name + ", a client for each", p.New}, false)
		}
	}
	return rows
}

// One unconfigured client serves as many as one of itself for each crowd would,
// within three per cent, with no more refusals. Where tenants share a limit, those who
// always wait get equal tokens, and a hog delays the light ones little. The rivals are
// in docs/scoreboard.md.
func TestSituations(t *testing.T) {
	rows := playSituations(t, false)
	for i, r := range rows {
		s := r.situation
		switch {
		case s.Crowds[0].Name == "hog":
			for k, c := range s.Crowds[1:] {
				if w := r.got[1+k].P99.Seconds(); w > 7 {
					t.Errorf("%s: the p99 of %s is %.1f s", s.Name, c.Name, w)
				}
			}
			if r.refused > 0 {
				t.Errorf("%s: %d refusals", s.Name, r.refused)
			}
		case s.Crowds[0].Tenant != "":
			var sum, squares float64
			for _, g := range r.got {
				sum += float64(g.Tokens)
				squares += float64(g.Tokens) * float64(g.Tokens)
			}
			if j := sum * sum / (float64(len(r.got)) * squares); j < 0.99 { // the first crowd is not yet in line
				t.Errorf("%s: Jain's index is %.4f", s.Name, j)
			}
		case i+1 < len(rows) && rows[i+1].situation.Name == s.Name:
			apart := rows[i+1]
			for k, c := range s.Crowds {
				if c.Name != "sick" && r.got[k].Answers*100 < apart.got[k].Answers*97 {
					t.Errorf("%s: %s got %d answers, apart %d", s.Name, c.Name, r.got[k].Answers, apart.got[k].Answers)
				}
			}
			if r.refused > apart.refused {
				t.Errorf("%s: %d refusals, apart %d", s.Name, r.refused, apart.refused)
			}
		}
	}
}

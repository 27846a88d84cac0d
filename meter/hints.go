package meter

import "fmt"

// hints says what seems to be wrong, from what can be seen here. Each hint has its
// evidence in it.
func hints(budgets []Budget, tenants []Series) []string {
	out := []string{}
	for _, b := range budgets {
		refused := b.Attempts[RateLimited]
		if b.Doubted > 0 {
			out = append(out, fmt.Sprintf("%s: calls seem to be charged by the rule %q, and not by %q as configured. Set the right Provider, with Charging if no profile fits, or FollowRule.", b.Name, b.Rule[1], b.Rule[0]))
		}
		for _, s := range b.Scopes {
			if s.Degraded != "" {
				out = append(out, fmt.Sprintf("%s is degraded: %s.", scopeName(s), s.Degraded))
			}
			for _, l := range s.Limits {
				if l.Wanted > 0 && l.N < l.Wanted-l.Wanted/20 {
					text := fmt.Sprintf("%s: %s is %s now, and %s was configured.", scopeName(s), l.Name, Number(l.N), Number(l.Wanted))
					switch {
					case refused == 0:
						text += " An answer's header states less: is the configured limit right?"
					case b.Doubted == 0:
						text += fmt.Sprintf(" After %s refusals (429) that our own use does not explain it was cut. Does another process or key use the same limit? Else the limit or the profile is wrong.", Number(refused))
					default:
						text += fmt.Sprintf(" After %s refusals (429) it was cut; the charge rule explains them.", Number(refused))
					}
					out = append(out, text)
				}
			}
		}
		if rate, ok := overcharged(&b); ok {
			out = append(out, fmt.Sprintf("%s: the ledger keeps %.1f tokens for each token that answers report, and %s calls wait. If the provider does not charge so, set Provider, with Charging if no profile fits: the rest of the quota is unused.", b.Name, rate, Number(b.Waiting)))
		}
		if b.Settled >= 20 && b.Reported*2 < b.Settled {
			out = append(out, fmt.Sprintf("%s: only %s of %s answers reported their usage, so estimates stand. Streams of OpenAI need stream_options.include_usage.", b.Name, Number(b.Reported), Number(b.Settled)))
		}
	}
	var all, line int64
	some := 0
	for _, t := range tenants {
		all += t.Charged.Sum()
		line += t.Waiting
		if t.Queued > 0 {
			some++
		}
	}
	for _, t := range tenants {
		if t.Name != Rest && some > 1 && line >= 10 && t.Charged.Sum()*3 > all*2 && t.Waiting*3 > line*2 {
			text := fmt.Sprintf("The tenant %q has %d %% of the tokens and %s of the %s calls that wait.", t.Name, t.Charged.Sum()*100/all, Number(t.Waiting), Number(line))
			if shares(budgets, t.Name) {
				text += " Tenants share by weight, so the others do not wait behind it."
			} else {
				text += " The others wait behind it, unless the Transport knows them apart: set Scopes.Tenant, or use WithTenant."
			}
			out = append(out, text)
		}
	}
	return out
}

// overcharged reports whether calls wait though the provider refuses nothing, while the
// ledger keeps at least twice what answers report: a profile that charges too much.
// Rate is how much it keeps for one token.
func overcharged(b *Budget) (rate float64, ok bool) {
	if b.Reported < 20 || b.Reported*10 < b.Settled*9 || b.Used.Sum() == 0 || b.Waiting == 0 || b.Attempts[RateLimited] > 0 {
		return 0, false
	}
	rate = float64(b.Charged.Sum()) / float64(b.Used.Sum())
	return rate, rate >= 2
}

// shares reports whether a Transport knows the tenant, by its scope.
func shares(budgets []Budget, tenant string) bool {
	for _, b := range budgets {
		for _, s := range b.Scopes {
			if s.Name == "@"+tenant {
				return true
			}
		}
	}
	return false
}

package budget

import "github.com/tripmeter/tripmeter/limit"

// A limit is learned from an answer, and other calls are under way then. Their charge is in
// the balance that the answer states, if the provider charges what calls reserve. What they
// do not use they get back from the provider at their ends, and so they should from the
// limit. No balance can give it to them: none raises credit.
//
// It is given back once balances show that rule, and none of the rules that reserve
// nothing. A provider that charges answers when they end had not charged it, and the
// limit would hold too much. Of 200 calls at once on a bucket of 10 s, five to ten are
// under way when the limit is learned. They gave back 2 % of the ideal throughput.

// settle notes on p whether balances show that what calls reserve is charged, and given
// back where it is not used.
func (p *Path) settle(yes bool) {
	for _, s := range p.scopes {
		if s.settles.Swap(yes) == yes {
			continue
		}
		s.mu.Lock()
		for _, d := range s.dims {
			s.early(d)
		}
		s.mu.Unlock()
	}
}

// early tells the ledger whether calls that left before d was learned give back to it.
// The caller holds s.mu.
func (s *Scope) early(d *dimension) {
	l, ok := s.ledger.(interface {
		EarlyScope(scope, name string, charged bool)
	})
	if ok && d.limit.Unit != limit.Requests && d.limit.Rate.N > 0 {
		l.EarlyScope(s.name, d.limit.Name, s.settles.Load() && !d.law.atEnd)
	}
}

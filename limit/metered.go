package limit

// Meters are the ways to count a limit that a [Ledger] has besides buckets. The zero
// Meters has none.
type Meters struct {
	Windows bool // [Limit.Law] is kept: limits can be counted by windows
	Guards  bool // [Limit.Guard] is kept, with [Limit.Margin] and [Limit.ReadAt]

	// Allowances says that [ScopeOptions.Allowances] are kept, and that [Ask.Spend] is part
	// of the one decision. Such a ledger's [Holder] is a [SpendHolder].
	Allowances bool

	// Ends says that [Law.AtEnd] is kept.
	Ends bool

	// Prices says that [Ask.Pricer] is asked for calls that waited.
	Prices bool
}

// A Metered is a [Ledger] that says how it counts. Any other is taken for a ledger of
// buckets, and package budget then gives limits of an unknown law a short burst.
type Metered interface {
	Meters() Meters
}

// MetersOf is how l counts.
func MetersOf(l Ledger) Meters {
	if m, ok := l.(Metered); ok {
		return m.Meters()
	}
	return Meters{}
}

// Meters says that a Limiter has all of them.
func (l *Limiter) Meters() Meters {
	return Meters{Windows: true, Guards: true, Allowances: true, Ends: true, Prices: true}
}

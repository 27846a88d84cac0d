package limit

// Checked is l with its name filled in, or a [*ConfigError] that names the field.
// It is for ledgers that keep their limits elsewhere.
func (l Limit) Checked(field string) (Limit, error) { return l.checked(field) }

// Sizes are the burst and the largest admissible cost in force, in units, with
// the defaults of [Limit.Burst] and [Limit.Largest] worked out.
func (l Limit) Sizes() (burst, largest int64) { return l.sizes() }

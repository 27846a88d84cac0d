package redislimit

import "github.com/tripmeter/tripmeter/limit"

// newShare is a ledger of this process alone. Its limits were checked.
func newShare(limits []limit.Limit, places, queue int) limit.Ledger {
	l, err := limit.New(limit.Options{Limits: limits, MaxInFlight: places, MaxQueue: queue})
	if err != nil {
		panic(err)
	}
	return l
}

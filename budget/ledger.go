package budget

import (
	"context"
	"reflect"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A Ledger holds the credit of a budget. [*limit.Limiter] is one. Its methods
// are those of the Limiter, and may be called by any number of goroutines.
type Ledger interface {
	Acquire(context.Context, limit.Cost) (limit.Reservation, error)
	AcquireFirst(context.Context, limit.Cost) (limit.Reservation, error)
	SetLimit(limit.Limit) error
	Pause(time.Duration)
	Drain(name string, keep int64, d time.Duration) bool
	Snapshot() limit.Snapshot
}

// isNil reports whether l is nil, or an interface around a nil pointer.
func isNil(l Ledger) bool {
	if l == nil {
		return true
	}
	v := reflect.ValueOf(l)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

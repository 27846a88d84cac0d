package budget

import (
	"reflect"

	"github.com/tripmeter/tripmeter/limit"
)

// isNil reports whether l is nil, or an interface around a nil pointer.
func isNil(l limit.Ledger) bool {
	if l == nil {
		return true
	}
	v := reflect.ValueOf(l)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

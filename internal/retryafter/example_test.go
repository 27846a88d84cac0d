package retryafter_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/tripmeter/tripmeter/internal/retryafter"
)

func Example() {
	now := time.Date(2026, 9, 19, 12, 0, 0, 0, time.UTC)
	for _, value := range []string{"2", "1.5", "Sat, 19 Sep 2026 12:00:30 GMT", "0", "120s", "soon"} {
		w := retryafter.Parse(http.Header{"Retry-After": {value}}, now)
		fmt.Println(value, "->", w.Longest, w.OK)
	}
	// Output:
	// 2 -> 2s true
	// 1.5 -> 1.5s true
	// Sat, 19 Sep 2026 12:00:30 GMT -> 30s true
	// 0 -> 0s true
	// 120s -> 2m0s true
	// soon -> 0s false
}

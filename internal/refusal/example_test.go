package refusal_test

import (
	"fmt"

	"github.com/tripmeter/tripmeter/internal/refusal"
)

// The same status and the same code: one is a wait, the other is for ever.
func Example() {
	for _, body := range []string{
		`{"error":{"message":"Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29937, Requested 385. Please try again in 644ms.","type":"tokens","code":"rate_limit_exceeded"}}`,
		`{"error":{"message":"Request too large for m on tokens per min (TPM): Limit 30000, Requested 61337.","type":"tokens","code":"rate_limit_exceeded"}}`,
		`{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","code":"insufficient_quota"}}`,
	} {
		v := refusal.Classify(429, []byte(body))
		fmt.Println(v.Class, v.Retryable, v.Account, v.Wait)
	}
	// Output:
	// rate_limit true false 644ms
	// too_large false false 0s
	// quota false true 0s
}

package retry_test

import (
	"net/http"
	"testing"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/retry"
)

func TestContract(t *testing.T) {
	rttest.Run(t, func(base http.RoundTripper) http.RoundTripper {
		rt, err := retry.New(base, retry.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return rt
	})
}

package limit_test

import (
	"context"
	"testing"

	"github.com/tripmeter/tripmeter/limit"
)

func newLimiter(t testing.TB, o limit.Options) *limit.Limiter {
	t.Helper()
	l, err := limit.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var call = limit.Cost{Requests: 1}

// limited is a small interface behind which a limiter can be injected.
type limited interface {
	Wait(context.Context, limit.Cost) error
}

var _ limited = (*limit.Limiter)(nil)

func tokens(n int64) limit.Cost { return limit.Cost{Input: n} }

func tokenLimiter(t testing.TB, r limit.Rate, burst int64, empty bool) *limit.Limiter {
	return newLimiter(t, limit.Options{Limits: []limit.Limit{{Name: "tokens", Unit: limit.Tokens, Rate: r, Burst: burst, Empty: empty}}})
}

func creditOf(l *limit.Limiter) int64 {
	s := l.Snapshot().Limits[0]
	return s.Credit - s.Debt
}

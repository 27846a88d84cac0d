package redislimit_test

import (
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	rueidisclient "github.com/redis/rueidis"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/redislimit"
	"github.com/tripmeter/tripmeter/redislimit/goredis"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
	"github.com/tripmeter/tripmeter/redislimit/rueidis"
)

var clients = map[string]func(t testing.TB, addr ...string) redislimit.Listener{
	"goredis": viaGoRedis,
	"rueidis": viaRueidis,
}

type quiet struct{}

func viaGoRedis(t testing.TB, addr ...string) redislimit.Listener {
	c := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addr, DialTimeout: time.Second})
	t.Cleanup(func() { c.Close() })
	return goredis.New(c)
}

func viaRueidis(t testing.TB, addr ...string) redislimit.Listener {
	c, err := rueidisclient.NewClient(rueidisclient.ClientOption{InitAddress: addr, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return rueidis.New(c)
}

// open makes a member of the budget named after the test.
func open(t testing.TB, o redislimit.Options) *redislimit.Limiter {
	t.Helper()
	if o.Name == "" {
		o.Name = t.Name()
	}
	l, err := redislimit.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func tokens(n int64) limit.Cost   { return limit.Cost{Input: n} }
func requests(n int64) limit.Cost { return limit.Cost{Requests: n} }

func tokenLimit(r limit.Rate, burst int64, empty bool) []limit.Limit {
	return []limit.Limit{{Name: "tokens", Unit: limit.Tokens, Rate: r, Burst: burst, Empty: empty}}
}

var _ = io.EOF
var _ = redistest.Binary

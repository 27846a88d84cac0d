package serve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/redislimit"
	"github.com/tripmeter/tripmeter/redislimit/goredis"
)

// store is a Redis or Valkey that holds the budgets of several gateways.
type store struct {
	client redis.UniversalClient
	key    string // Config.secret
}

// openStore connects to a store. It must be there at the start; when it is away
// later, each gateway keeps to its share.
func openStore(c *Config, logger *log.Logger) (*store, error) {
	o, err := redis.ParseURL(c.redis)
	if err != nil {
		return nil, errors.New("redis_env: the address must be like redis://127.0.0.1:6379/0")
	}
	logging.Disable()
	client := redis.NewClient(o)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		client.Close()
		return nil, fmt.Errorf("redis_env: the store does not answer: %w", err)
	}
	logger.Print("budgets are shared through the store")
	return &store{client, c.secret}, nil
}

// ledger makes the ledger of a budget in the store.
func (s *store) ledger(name string, o limit.Options) (limit.Ledger, error) {
	return redislimit.New(redislimit.Options{
		Name: name, Runner: goredis.New(s.client), Limits: o.Limits,
		MaxInFlight: o.MaxInFlight, MaxQueue: o.MaxQueue, MaxWait: o.MaxWait, Open: o.Open,
	})
}

// secret is the key of the hash by which callers' keys are told apart: the
// configured one, or one that follows from the key that is held here.
func (s *store) secret(held string) []byte {
	if s.key != "" {
		return []byte(s.key)
	}
	h := sha256.New()
	io.WriteString(h, "tripmeter budget of ")
	io.WriteString(h, held)
	return h.Sum(nil)
}

func (s *store) Close() error { return s.client.Close() }

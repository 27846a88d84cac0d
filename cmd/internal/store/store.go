// Package store is the Redis or Valkey that several processes of the command share.
//
// The promise: no error of this package has the store's password in it.
//
// The refusal: it knows nothing of gateways and jobs. It makes ledgers, and hands out
// its client.
package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/redislimit"
	"github.com/tripmeter/tripmeter/redislimit/goredis"
)

// Store is a connection to a Redis or Valkey.
type Store struct{ Client redis.UniversalClient }

// Open connects to a store, whose address is like redis://127.0.0.1:6379/0. It must
// be there at the start.
func Open(address string) (*Store, error) {
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, errors.New("the address must be like redis://127.0.0.1:6379/0")
	}
	logging.Disable()
	client := redis.NewClient(o)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		client.Close()
		return nil, fmt.Errorf("the store does not answer: %w", err)
	}
	return &Store{client}, nil
}

// Ledger makes the ledger of a budget in the store. When the store is away, a
// process keeps to its share.
func (s *Store) Ledger(name string, o limit.Options) (limit.Ledger, error) {
	return redislimit.New(redislimit.Options{
		Name: name, Runner: goredis.New(s.Client), Limits: o.Limits,
		MaxInFlight: o.MaxInFlight, MaxQueue: o.MaxQueue, MaxWait: o.MaxWait, Open: o.Open,
	})
}

// Close ends the connection.
func (s *Store) Close() error { return s.Client.Close() }

// Secret is the key of the hash by which callers' keys are known: the configured one,
// or one that follows from the key that is held here.
func Secret(configured, held string) []byte {
	if configured != "" {
		return []byte(configured)
	}
	h := sha256.New()
	io.WriteString(h, "tripmeter budget of ")
	io.WriteString(h, held)
	return h.Sum(nil)
}

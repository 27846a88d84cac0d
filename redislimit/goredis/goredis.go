// Package goredis lets package redislimit use the go-redis client that a program
// has.
//
// It promises to send one EVALSHA for a call, and EVAL after NOSCRIPT, and to hear
// of turns by PUBLISH. It does not configure, close or log through the client.
package goredis

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tripmeter/tripmeter/redislimit"
)

// New returns the Runner of a client: a *redis.Client, *redis.ClusterClient or any
// other [redis.UniversalClient]. The client's own time-outs and retries should be
// shorter than [redislimit.Options.Timeout], which bounds them all.
func New(c redis.UniversalClient) redislimit.Listener { return client{c} }

type client struct{ c redis.UniversalClient }

// Run implements [redislimit.Runner].
func (c client) Run(ctx context.Context, s *redislimit.Script, keys, args []string) (string, error) {
	any := make([]any, len(args))
	for i, a := range args {
		any[i] = a
	}
	r, err := c.c.EvalSha(ctx, s.SHA1, keys, any...).Text()
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		return c.c.Eval(ctx, s.Source, keys, any...).Text()
	}
	return r, err
}

// Listen implements [redislimit.Listener].
func (c client) Listen(ctx context.Context, channel string, ready func(), heard func(string)) error {
	sub := c.c.Subscribe(ctx, channel)
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		return err
	}
	ready()
	for {
		m, err := sub.ReceiveMessage(ctx)
		if err != nil {
			return err
		}
		heard(m.Payload)
	}
}

// Package goredis lets package redislimit use the go-redis client that a program
// has.
//
// It promises to send one EVALSHA for a call, and EVAL after NOSCRIPT, and to hear
// of turns by PUBLISH. It does not configure, close or log through the client.
package goredis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tripmeter/tripmeter/redislimit"
)

// New returns the Runner of a client: a *redis.Client, *redis.ClusterClient or any
// other [redis.UniversalClient]. The client's own time-outs and retries should be
// shorter than [redislimit.Options.Timeout], which bounds them all.
func New(c redis.UniversalClient) redislimit.Listener { return client{c: c} }

// Synced is New for a server with replicas: a call is answered when n of them have
// it, so that a failover loses no decision. Each call then takes one more round
// trip, between the servers; docs/scale.md has the price. A call that too few
// replicas have within the time is an error, and is sent again.
func Synced(c redis.UniversalClient, n int, within time.Duration) redislimit.Listener {
	return client{c, n, within}
}

type client struct {
	c      redis.UniversalClient
	synced int
	within time.Duration
}

// Run implements [redislimit.Runner].
func (c client) Run(ctx context.Context, s *redislimit.Script, keys, args []string) (string, error) {
	any := make([]any, len(args))
	for i, a := range args {
		any[i] = a
	}
	if c.synced > 0 {
		return c.sync(ctx, s, keys, any)
	}
	r, err := c.c.EvalSha(ctx, s.SHA1, keys, any...).Text()
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		return c.c.Eval(ctx, s.Source, keys, any...).Text()
	}
	return r, err
}

// sync sends the script and WAIT on one connection: WAIT speaks of what that
// connection has written.
func (c client) sync(ctx context.Context, s *redislimit.Script, keys []string, args []any) (string, error) {
	send := func(script func(redis.Pipeliner) *redis.Cmd) (string, error) {
		p := c.c.Pipeline()
		cmd := script(p)
		wait := redis.NewIntCmd(ctx, "WAIT", c.synced, c.within.Milliseconds())
		p.Process(ctx, wait)
		p.Exec(ctx) // each command has its own error
		r, err := cmd.Text()
		if err != nil {
			return "", err
		}
		if n, err := wait.Result(); err != nil || n < int64(c.synced) {
			return "", fmt.Errorf("%d of %d replicas have the call: %w", n, c.synced, errors.Join(errReplicas, err))
		}
		return r, nil
	}
	r, err := send(func(p redis.Pipeliner) *redis.Cmd { return p.EvalSha(ctx, s.SHA1, keys, args...) })
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		return send(func(p redis.Pipeliner) *redis.Cmd { return p.Eval(ctx, s.Source, keys, args...) })
	}
	return r, err
}

var errReplicas = errors.New("too few replicas in time")

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

// Package rueidis lets package redislimit use the rueidis client that a program
// has.
//
// It promises to send one EVALSHA for a call, and EVAL after NOSCRIPT, and to hear
// of turns by PUBLISH. It does not configure, close or log through the client.
package rueidis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/tripmeter/tripmeter/redislimit"
)

// New returns the Runner of a client, of one server or of a cluster.
func New(c rueidis.Client) redislimit.Listener { return client{c: c} }

// Synced is New for a server with replicas: a call is answered when n of them have
// it, so that a failover loses no decision. Each call then takes one more round
// trip, between the servers; docs/scale.md has the price. A call that too few
// replicas have within the time is an error, and is sent again.
func Synced(c rueidis.Client, n int, within time.Duration) redislimit.Listener {
	return client{c, n, within}
}

type client struct {
	c      rueidis.Client
	synced int
	within time.Duration
}

// Run implements [redislimit.Runner].
func (c client) Run(ctx context.Context, s *redislimit.Script, keys, args []string) (string, error) {
	if c.synced > 0 {
		return c.sync(ctx, s, keys, args)
	}
	r, err := c.c.Do(ctx, c.c.B().Evalsha().Sha1(s.SHA1).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()).ToString()
	if e, ok := rueidis.IsRedisErr(err); ok && e.IsNoScript() {
		r, err = c.c.Do(ctx, c.c.B().Eval().Script(s.Source).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()).ToString()
	}
	return r, err
}

// sync sends the script and WAIT on one connection: WAIT speaks of what that
// connection has written.
func (c client) sync(ctx context.Context, s *redislimit.Script, keys, args []string) (r string, err error) {
	err = c.c.Dedicated(func(d rueidis.DedicatedClient) error {
		r, err = d.Do(ctx, d.B().Evalsha().Sha1(s.SHA1).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()).ToString()
		if e, ok := rueidis.IsRedisErr(err); ok && e.IsNoScript() {
			r, err = d.Do(ctx, d.B().Eval().Script(s.Source).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()).ToString()
		}
		if err != nil {
			return err
		}
		n, err := d.Do(ctx, d.B().Wait().Numreplicas(int64(c.synced)).Timeout(c.within.Milliseconds()).Build()).AsInt64()
		if err != nil || n < int64(c.synced) {
			return fmt.Errorf("%d of %d replicas have the call: %w", n, c.synced, errors.Join(errReplicas, err))
		}
		return nil
	})
	return r, err
}

var errReplicas = errors.New("too few replicas in time")

// Listen implements [redislimit.Listener].
func (c client) Listen(ctx context.Context, channel string, ready func(), heard func(string)) error {
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind == "subscribe" {
			ready()
		}
	})
	return c.c.Receive(ctx, c.c.B().Subscribe().Channel(channel).Build(), func(m rueidis.PubSubMessage) { heard(m.Message) })
}

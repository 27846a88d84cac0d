// Package rueidis lets package redislimit use the rueidis client that a program
// has.
//
// It promises to send one EVALSHA for a call, and EVAL after NOSCRIPT, and to hear
// of turns by PUBLISH. It does not configure, close or log through the client.
package rueidis

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/tripmeter/tripmeter/redislimit"
)

// New returns the Runner of a client, of one server or of a cluster.
func New(c rueidis.Client) redislimit.Listener { return client{c} }

type client struct{ c rueidis.Client }

// Run implements [redislimit.Runner].
func (c client) Run(ctx context.Context, s *redislimit.Script, keys, args []string) (string, error) {
	r, err := c.c.Do(ctx, c.c.B().Evalsha().Sha1(s.SHA1).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()).ToString()
	if e, ok := rueidis.IsRedisErr(err); ok && e.IsNoScript() {
		r, err = c.c.Do(ctx, c.c.B().Eval().Script(s.Source).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()).ToString()
	}
	return r, err
}

// Listen implements [redislimit.Listener].
func (c client) Listen(ctx context.Context, channel string, ready func(), heard func(string)) error {
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind == "subscribe" {
			ready()
		}
	})
	return c.c.Receive(ctx, c.c.B().Subscribe().Channel(channel).Build(), func(m rueidis.PubSubMessage) { heard(m.Message) })
}

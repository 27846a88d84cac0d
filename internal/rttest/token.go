package rttest

import (
	"context"
	"strconv"
	"sync"
)

// A token lets a client tell a handler to go on, outside of HTTP.
type token string

var tokens struct {
	sync.Mutex
	next int
	chs  map[token]chan struct{}
}

func newToken() token {
	tokens.Lock()
	defer tokens.Unlock()
	if tokens.chs == nil {
		tokens.chs = map[token]chan struct{}{}
	}
	tokens.next++
	t := token(strconv.Itoa(tokens.next))
	tokens.chs[t] = make(chan struct{}, 8)
	return t
}

func (t token) ch() chan struct{} {
	tokens.Lock()
	defer tokens.Unlock()
	return tokens.chs[t]
}

func (t token) id() string { return string(t) }
func (t token) give()      { t.ch() <- struct{}{} }

func (t token) wait(ctx context.Context) {
	select {
	case <-t.ch():
	case <-ctx.Done():
	}
}

func (t token) drop() {
	tokens.Lock()
	defer tokens.Unlock()
	delete(tokens.chs, t)
}

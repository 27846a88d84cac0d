package redislimit

import (
	"context"
	"errors"
	"strings"

	"github.com/tripmeter/tripmeter/limit"
)

// A call is one script call: what this process has to say, in one array. It is
// sent again, byte for byte, until the store has answered: the script knows it by
// its number and decides it once.
type call struct {
	number   int64
	pid      string
	asks     []*waiter // nil: gone meanwhile
	ids      []asked1
	ends     []endKey
	ended    []end
	cancels  []cancel
	prices   []price
	controls []*control
	scopes   []*scope
	paths    []*path
	query    *query
	bye      bool // the last call of this process
	args     [1]string
	w        writer
}

// asked1 is an ask without its caller, who may be gone when the answer comes.
type asked1 struct {
	id     int64
	path   *path
	cost   limit.Cost
	likely limit.Cost
	spend  limit.Spend
	mode   int64
}

const (
	mostEnds     = 64
	mostCancels  = 64
	mostControls = 16
	steps        = 8 // admissions out of the line, per call
)

func (c *call) scope(s *scope) {
	if s.call != c.number {
		s.call, s.at = c.number, len(c.scopes)+1
		c.scopes = append(c.scopes, s)
	}
}

func (c *call) path(p *path) {
	if p.call != c.number {
		p.call, p.at = c.number, len(c.paths)+1
		c.paths = append(c.paths, p)
		for _, s := range p.all {
			c.scope(s)
		}
	}
}

const noTime = "the user must be allowed every command of the script, among them TIME: without the server's clock there is no common one"

// advise tells what to do about an error that New found.
func advise(err error) error {
	for _, a := range []struct{ has, advice string }{
		{"ACL failure in script", noTime},
		{"can't run this command", noTime},
		{"NOPERM", "the user must be allowed evalsha, eval, publish, and every command of the script on the keys tripmeter:*"},
		{"unknown command", "the server must run scripts: Redis 6.2 or later, or Valkey"},
		{"Unknown Redis command called from", "the server must allow the script's commands, among them TIME and LPOP with a count: Redis 6.2 or later, or Valkey"},
		{"Write commands not allowed after non deterministic", "the server must replicate effects: Redis 6.2 or later, or Valkey"},
		{"non local key", "the server must keep keys of one hash tag together"},
		{"READONLY", "the client must talk to the master"},
		{"OOM", "the server has no memory left, and must not evict: set maxmemory higher"},
	} {
		if strings.Contains(err.Error(), a.has) {
			return &StoreError{err, a.advice}
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &StoreError{err, "is the server up, and the address right? Options.Members lets a limiter begin without it"}
	}
	return &StoreError{err, ""}
}

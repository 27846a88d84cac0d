package budget

import (
	"context"
	"time"
)

// A gate is a pause as this Budget has asked for it. The ledger keeps those in line; the
// gate keeps those that have left it and were not sent. The zero gate is open.
type gate struct {
	until time.Time     // nobody goes before
	open  chan struct{} // closed if it opens sooner; nil if the gate is open
}

// shut closes the gate for d. The caller holds the lock of its scope.
func (g *gate) shut(now time.Time, d time.Duration) {
	if g.open == nil {
		g.open = make(chan struct{})
	}
	if until := now.Add(d); until.After(g.until) {
		g.until = until
	}
}

// lift opens the gate. The caller holds the lock of its scope.
func (g *gate) lift() {
	if g.open != nil {
		close(g.open)
	}
	*g = gate{}
}

// Opens waits until no scope of the call is paused, or ctx ends. It is for an attempt
// that was admitted before the pause and has not been sent: one that stood in net/http's
// line for a connection.
func (c *Call) Opens(ctx context.Context) {
	for _, s := range c.path.scopes {
		for s.some.Load() {
			s.mu.Lock()
			left, open := time.Until(s.gate.until), s.gate.open
			s.mu.Unlock()
			if left <= 0 || open == nil {
				break
			}
			t := time.NewTimer(left)
			select {
			case <-t.C:
			case <-open:
			case <-ctx.Done():
				t.Stop()
				return
			}
			t.Stop()
		}
	}
}

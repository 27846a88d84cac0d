package limit

import (
	"context"
	"runtime"
)

// A Ticket is a place in the line that no goroutine is blocked on: it can be
// selected on beside other channels. Get one with [Limiter.Reserve] or
// [Limiter.Enter]; end it with Take or Cancel. One that is forgotten ends with
// its context, or when the garbage collector finds it.
type Ticket struct {
	w   *waiter
	net runtime.Cleanup

	// The runtime finds the place of a cleanup by a walk through those of the same page
	// of memory. Fewer tickets to a page take a third off the time of a ticket.
	_ [88]byte
}

// Reserve is [Limiter.Enter] of cost in the root scope, with no context.
func (l *Limiter) Reserve(cost Cost) (*Ticket, error) {
	return l.Enter(context.Background(), Ask{Cost: cost})
}

// Enter takes a place in the line, or returns an error at once like
// [Limiter.Admit]. Unlike it, nothing waits: the ticket's Ready channel closes at
// its turn, at once if that is now. When ctx ends before Take, the ticket is
// canceled; its deadline counts as it does in Admit.
func (l *Limiter) Enter(ctx context.Context, a Ask) (*Ticket, error) {
	if err := ctx.Err(); err != nil {
		return nil, ended(ctx, err)
	}
	l.lock()
	deadline, _ := ctx.Deadline()
	l.tickets++
	w, r, err := l.ask(&a, true, deadline)
	now := l.last
	switch {
	case err != nil:
		l.tickets--
	case w != nil:
		if w.ticket = true; w.lane == nil {
			close(w.done)
		}
	}
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if w == nil {
		w = &waiter{l: l, ticket: true, done: make(chan struct{}), joined: now, r: r}
		close(w.done)
	}
	if ctx.Done() != nil {
		l.lock() // that function takes it too, and may run at once
		w.stop = context.AfterFunc(ctx, func() { w.abandon(ctx.Err(), context.Cause(ctx)) })
		l.mu.Unlock()
	}
	t := &Ticket{w: w}
	t.net = runtime.AddCleanup(t, lose, w)
	return t, nil
}

// Ready closes in one of three cases:
//
//   - The ticket's turn has come.
//   - The ticket was refused after all: the longest wait is over, or the limit was
//     lowered below its cost.
//   - The ticket was canceled.
func (t *Ticket) Ready() <-chan struct{} { return t.w.done }

// Take returns the reservation once Ready is closed, or the [*Error] with which
// the ticket was refused: [ErrCanceled] if Cancel or the context gave the turn
// back. Before that it returns [ErrLimited], and the ticket keeps its place. It
// does not wait.
func (t *Ticket) Take() (Reservation, error) {
	defer runtime.KeepAlive(t)
	w := t.w
	w.l.lock()
	defer w.l.mu.Unlock()
	w.l.catchUp()
	if w.lane != nil {
		return Reservation{}, w.l.waited(w, ErrLimited)
	}
	w.close()
	t.net.Stop()
	return w.r, w.err
}

// Cancel leaves the line. If the turn had come already, the reservation is
// returned, unless it was ended before: either way the ledger is as if the
// ticket had never been. So Cancel may be deferred, and does nothing to a
// ticket whose reservation was settled or kept.
func (t *Ticket) Cancel() {
	t.w.leave(nil, nil)
	t.w.l.lock()
	t.w.close()
	t.w.l.mu.Unlock()
	t.net.Stop()
	runtime.KeepAlive(t)
}

// close notes that the ticket ended, or was taken. The lock is held.
func (w *waiter) close() {
	if !w.taken {
		w.taken = true
		w.l.tickets--
		if w.stop != nil {
			w.stop()
		}
	}
}

// lose notes that the collector found the ticket of w. The next caller that takes
// the lock does the rest. The collector's goroutine must neither wait for the lock
// nor touch timers and channels, which may belong to a testing/synctest bubble.
func lose(w *waiter) {
	for l := w.l; ; {
		w.lost = l.lost.Load()
		if l.lost.CompareAndSwap(w.lost, w) {
			return
		}
	}
}

// bury ends the tickets that the collector found.
func (l *Limiter) bury(now int64) {
	for w := l.lost.Swap(nil); w != nil; w = w.lost {
		if !w.taken {
			w.close()
			if w.err == nil {
				l.quit(w, nil, nil, now)
			}
		}
	}
}

// abandon ends a ticket that nobody took.
func (w *waiter) abandon(err, cause error) {
	l := w.l
	l.lock()
	defer l.mu.Unlock()
	now := l.catchUp()
	if !w.taken {
		w.close()
		if w.err == nil {
			l.quit(w, err, cause, now)
		}
	}
}

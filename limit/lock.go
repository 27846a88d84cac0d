package limit

import "runtime"

// tries is how often the lock is asked for before the caller is parked.
const tries = 64

// lock takes l.mu, and gives way to others for a while before it lets the mutex
// park it. The lock is held for tens of nanoseconds and never across a wait,
// but a mutex with a crowd before it hands itself from sleeper to sleeper, and
// each hand-over costs more than the work: with two cores and a thousand
// goroutines a call takes half the time like this.
func (l *Limiter) lock() {
	if !l.mu.TryLock() {
		l.lockSlow()
	}
}

func (l *Limiter) lockSlow() {
	for range tries {
		if l.mu.TryLock() {
			return
		}
		runtime.Gosched()
	}
	l.mu.Lock()
}

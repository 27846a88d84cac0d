package providertest

import (
	"sync"
	"time"
)

// Provider enforces limits, answers, and keeps a ledger. Make one with New.
// Its methods may be called from many goroutines; no lock is held while it
// waits.
type Provider struct {
	o     Options
	start time.Time
	done  chan struct{} // closed by Close

	mu        sync.Mutex
	closed    bool
	engine    *engine
	last      int64 // latest instant seen, ns since start
	script    []Step
	draws     map[uint64]uint64 // hash of a body: how many were admitted
	number    int64
	stats     Stats
	ledger    []*Entry // a ring, the oldest at index oldest
	oldest    int
	loads     []load // charges of the last 60 s
	load      load   // their sum
	toldAt    int64  // when the wait that ends last was named
	toldUntil int64
	forgotten time.Duration // latest instant of a dropped entry
}

// New starts a provider: its clock, its limits and its seed. The error names
// the field of o that is wrong.
func New(o Options) (*Provider, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	return &Provider{
		o:         o,
		start:     start,
		done:      make(chan struct{}),
		engine:    newEngine(o, start),
		draws:     make(map[uint64]uint64),
		forgotten: -1,
	}, nil
}

// Start is the instant that Entry.Since counts from.
func (p *Provider) Start() time.Time { return p.start }

// Close ends every call that is being served as if the connection broke, and
// every later one at once. It need not be called when all calls have ended.
func (p *Provider) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		close(p.done)
	}
}

// SetLimits puts new limits in force now. What was charged stays charged; a
// limit that was not there before starts unspent. The error names the field
// that is wrong, and changes nothing.
func (p *Provider) SetLimits(l Limits) error {
	if err := l.check(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engine.set(p.now(), l)
	return nil
}

// Limits is what is in force now.
func (p *Provider) Limits() Limits {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now()
	return p.engine.o.Limits
}

// now is the instant, read under the lock so that it never goes back, with
// all that depends on time alone brought up to it.
func (p *Provider) now() int64 {
	p.last = max(p.last, int64(time.Since(p.start)))
	p.engine.advance(p.last)
	return p.last
}

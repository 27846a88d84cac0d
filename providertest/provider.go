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
	engines   []*engine // one for each account
	last      int64     // latest instant seen, ns since start
	script    []Step
	draws     map[uint64]uint64 // hash of a body: how many were admitted
	travels   map[uint64]uint64 // hash of a body: how many came
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
	p := &Provider{
		o:         o,
		start:     start,
		done:      make(chan struct{}),
		draws:     make(map[uint64]uint64),
		travels:   make(map[uint64]uint64),
		forgotten: -1,
	}
	for i, a := range o.accounts() {
		own := o
		if a.Limits != (Limits{}) {
			own.Limits = a.Limits
		}
		e := newEngine(own, start)
		e.others = newTraffic(o.Others, a.Name, i == 0)
		p.engines = append(p.engines, e)
	}
	return p, nil
}

// accounts is Options.Accounts, or the only account there is, without a name.
func (o *Options) accounts() []Account {
	if len(o.Accounts) == 0 {
		return []Account{{Key: o.Key}}
	}
	return o.Accounts
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

// SetLimits puts new limits of every account in force now. What was charged
// stays charged; a limit that was not there before starts unspent. The error
// names the field that is wrong, and changes nothing.
func (p *Provider) SetLimits(l Limits) error { return p.SetModelLimits("", l) }

// SetModelLimits is SetLimits for Options.ModelLimits of one model.
func (p *Provider) SetModelLimits(model string, l Limits) error {
	if err := l.check(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for _, e := range p.engines {
		e.set(now, model, l)
	}
	return nil
}

// Limits is what is in force now, for the first account.
func (p *Provider) Limits() Limits {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now()
	return p.engines[0].o.Limits
}

// now is the instant, read under the lock so that it never goes back, with
// all that depends on time alone brought up to it.
func (p *Provider) now() int64 {
	p.last = max(p.last, int64(time.Since(p.start)))
	for _, e := range p.engines {
		e.advance(p.last)
	}
	return p.last
}

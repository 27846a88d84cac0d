package meter

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

// Options configure a [Meter]. Every field may be zero.
type Options struct {
	// Tenant names the tenant of a request. Nil takes the tenant that the Transport
	// knows: of WithTenant, Scopes.Tenant or Transport.Tenant, and "" for none. The name
	// is shown to people: never return a key. It is called once a call and must
	// not change the request.
	Tenant func(*http.Request) string

	// Scope names the scope of a request that gets a series of its own, such
	// as the model; nil means none. The rules of Tenant hold.
	Scope func(*http.Request) string

	// Tenants and Scopes are how many of them have a series of their own; all
	// others share one, [Rest]. 0 is 20, and 50.
	Tenants, Scopes int
}

// A Meter counts the events of Transports and reads their state. Make one with
// [New]. It may be used by any number of goroutines.
type Meter struct {
	o    Options
	base time.Time

	mu      sync.Mutex // guards all below, and is held for no call outside
	now     time.Duration
	calls   calls
	free    *call
	budgets []*budget
	tenants top
	scopes  top
	charts  chart
	events  events
	waiters int64         // calls in all lines
	pacing  time.Duration // how long there were any, before since
	since   time.Duration
}

// New returns a Meter.
func New(o Options) *Meter {
	if o.Tenants <= 0 {
		o.Tenants = 20
	}
	if o.Scopes <= 0 {
		o.Scopes = 50
	}
	return &Meter{
		o: o, base: time.Now(), calls: calls{others: map[*http.Request]*call{}},
		tenants: newTop(o.Tenants), scopes: newTop(o.Scopes),
	}
}

// budget is one watched Transport.
type budget struct {
	series  member
	source  Snapshotter // nil: its events are counted, its state is not known
	line    line
	pacing  time.Duration // how long somebody waited, in all
	since   time.Duration // when the line was last entered from empty
	left    [4]int64      // headroom as the provider states it, by limit.Unit
	known   [4]bool
	lowered int64
	changed int64
	doubted int64
	rule    [2]string // of the last doubt: the profile's, and as answers show it
	waits   minute
	paused  int64
	askers  []Asker
	asked   time.Duration // sum of the pauses

	provider   string // as the GenAI conventions call it; of the first call's host
	operations [operationNames]*operation
}

// call is a call between its first hook and its last.
type call struct {
	request       *http.Request
	budget        *budget    // nil before the call is queued
	members       [3]*member // of the budget, the tenant and the scope, see series
	n             int        // how many of them there are
	name, within  string     // of the tenant and the scope
	operation     *operation
	cost          limit.Cost
	queued        time.Duration // since Meter.base
	admitted      bool
	before, after *call // in the line; after also links the free ones
}

// calls are those that are not over, by their request. The newest is not in the map:
// with one call at a time, or hooks of one call in a row, that is all there is to find.
type calls struct {
	newest *call // nil if it is over
	others map[*http.Request]*call
}

func (cs *calls) find(r *http.Request) *call {
	if c := cs.newest; c != nil && c.request == r {
		return c
	}
	if len(cs.others) == 0 {
		return nil
	}
	return cs.others[r]
}

// add adds a call, in place of another one of its request.
func (cs *calls) add(c *call) {
	if old := cs.newest; old != nil && old.request != c.request {
		cs.others[old.request] = old
	}
	cs.newest = c
}

// drop forgets the call of a request.
func (cs *calls) drop(r *http.Request) {
	if c := cs.newest; c != nil && c.request == r {
		cs.newest = nil
	}
	if len(cs.others) > 0 {
		delete(cs.others, r)
	}
}

// line is those who wait, in the order of arrival.
type line struct {
	first, last *call
	n           int64
	cost        limit.Cost
}

func (l *line) join(c *call) {
	c.before, c.after = l.last, nil
	if l.last != nil {
		l.last.after = c
	} else {
		l.first = c
	}
	l.last = c
	l.n++
	l.cost.Requests += c.cost.Requests
	l.cost.Input += c.cost.Input
	l.cost.Output += c.cost.Output
}

func (l *line) leave(c *call) {
	if c.before != nil {
		c.before.after = c.after
	} else {
		l.first = c.after
	}
	if c.after != nil {
		c.after.before = c.before
	} else {
		l.last = c.before
	}
	c.before, c.after = nil, nil
	l.n--
	l.cost.Requests -= c.cost.Requests
	l.cost.Input -= c.cost.Input
	l.cost.Output -= c.cost.Output
}

// lock takes the lock and reads the clock behind it, so that time never goes back.
func (m *Meter) lock() time.Duration {
	m.mu.Lock()
	m.now = max(m.now, time.Since(m.base))
	m.charts.advance(m.now, m.waiters, m.paced)
	return m.now
}

// paced is how long somebody has waited at instant at, in all and in any line.
func (m *Meter) paced(at time.Duration) time.Duration {
	if m.waiters == 0 {
		return m.pacing
	}
	return m.pacing + max(0, at-m.since)
}

// budget returns the budget of that name, which comes into being with its name.
func (m *Meter) budget(name string) *budget {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.budgets {
		if b.series.name == name {
			return b
		}
	}
	b := &budget{series: member{name: name, counts: newCounts()}}
	m.budgets = append(m.budgets, b)
	return b
}

// Trace returns hooks that count the events of a Transport under the budget's
// name. Use [Join] to have other hooks beside them. Transports that share a
// limiter may share a name.
func (m *Meter) Trace(name string) transport.Trace {
	b := m.budget(name)
	return transport.Trace{
		Who:          m.who,
		Queued:       func(r *http.Request, c limit.Cost) { m.queued(b, r, c) },
		Granted:      func(r *http.Request, _ limit.Cost, wait time.Duration) { m.granted(r, wait) },
		Refused:      m.refused,
		Answered:     func(a transport.Attempt) { m.answered(b, a) },
		Lowered:      func(_ *http.Request, dimension string, remaining int64) { m.lowered(b) },
		Paused:       func(_ *http.Request, p limit.Pause) { m.paused(b, p) },
		LimitChanged: func(old, new limit.Limit) { m.changed(b, old, new) },
		LawChanged:   func(_, new limit.Limit) { m.lawful(b, new) },
		Settled:      m.settled,
		Doubted:      func(profile, seen string) { m.doubted(b, profile, seen) },
	}
}

// who keeps the tenant of a call until it is queued, which is at once.
func (m *Meter) who(r *http.Request, tenant string, _ limit.Class) {
	if m.o.Tenant != nil || tenant == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.enter(r).name = tenant
}

// enter makes the call of a request known.
func (m *Meter) enter(r *http.Request) *call {
	c := m.free
	if c == nil {
		c = &call{}
	}
	m.free, c.after, c.request = c.after, nil, r
	m.calls.add(c)
	return c
}

// open is the call of a request, if it was queued and is not over.
func (m *Meter) open(r *http.Request) *call {
	if c := m.calls.find(r); c != nil && c.budget != nil {
		return c
	}
	return nil
}

func (m *Meter) queued(b *budget, r *http.Request, cost limit.Cost) {
	tenant, scope := "", ""
	if m.o.Tenant != nil {
		tenant = m.o.Tenant(r)
	}
	if m.o.Scope != nil {
		scope = m.o.Scope(r)
	}
	now := m.lock()
	defer m.mu.Unlock()
	var c *call
	if m.o.Tenant == nil { // who may have been here
		if c = m.calls.find(r); c != nil && c.budget != nil {
			c = nil // the request is sent again before its first call is over
		}
		if c != nil {
			tenant = c.name
		}
	}
	if c == nil {
		c = m.enter(r)
	}
	weight := 1 + cost.Input + cost.Output
	c.budget, c.cost, c.queued, c.operation, c.name, c.within = b, cost, now, b.operation(r), tenant, scope
	c.members[0], c.members[1], c.n = &b.series, m.tenants.of(tenant, weight, now), 2
	if m.o.Scope != nil {
		c.members[2], c.n = m.scopes.of(scope, weight, now), 3
	}
	if b.line.n == 0 {
		b.since = now
	}
	if m.waiters == 0 {
		m.since = now
	}
	m.waiters++
	b.line.join(c)
	for _, s := range c.series() {
		s.counts.Queued++
		s.waiting++
	}
	p := m.charts.present()
	p.Queued++
	p.Waiting = max(p.Waiting, m.waiters-1) // it may not have to wait itself
}

// series are those that count a call. One that has ended hands its calls on.
func (c *call) series() []*member {
	for i, s := range c.members[:c.n] {
		c.members[i] = s.live()
	}
	return c.members[:c.n]
}

// leave takes a call out of the line, at instant at. Its series still count it as waiting.
func (m *Meter) leave(c *call, at time.Duration) {
	b := c.budget
	b.line.leave(c)
	if b.line.n == 0 {
		b.pacing += at - b.since
	}
	if m.waiters--; m.waiters == 0 {
		m.pacing += at - m.since
	}
}

func (m *Meter) forget(r *http.Request, c *call) {
	m.calls.drop(r)
	*c = call{after: m.free}
	m.free = c
}

func (m *Meter) granted(r *http.Request, wait time.Duration) {
	passed := wait < time.Millisecond
	if passed {
		m.mu.Lock() // reading the clock is a tenth of what a call costs here
	} else {
		m.lock()
	}
	defer m.mu.Unlock()
	c := m.open(r)
	if c == nil || c.admitted {
		return
	}
	p := m.charts.present()
	at := m.now
	if passed {
		at = max(at, c.queued+wait)
	} else {
		p.Waiting = max(p.Waiting, m.waiters)
	}
	m.leave(c, at)
	c.admitted = true
	c.queued += wait // now its turn
	took := seconds(wait)
	i := bucket(waitBounds, took)
	for _, s := range c.series() {
		s.counts.Admitted++
		s.counts.Wait.put(i, took)
		s.waiting--
		s.flight++
	}
	p.Admitted++
	p.Waits += took
	c.budget.waits.add(at, wait)
}

func (m *Meter) refused(r *http.Request, err error) {
	reason := reasonOf(err)
	m.lock()
	defer m.mu.Unlock()
	c := m.open(r)
	if c == nil {
		return
	}
	for _, s := range c.series() {
		s.counts.Refused[reason]++
		if !c.admitted {
			s.waiting--
		}
	}
	m.charts.present().Refused++
	if !c.admitted { // else a further attempt was refused; the call is settled later
		m.leave(c, m.now)
		m.forget(r, c)
	}
}

func reasonOf(err error) Reason {
	var e *limit.Error
	if !errors.As(err, &e) {
		return OtherReason
	}
	switch {
	case e.Reason == limit.ErrTooLarge:
		return TooLarge
	case e.Reason == limit.ErrQueueFull:
		return QueueFull
	case e.Reason == limit.ErrCanceled:
		return Canceled
	case e.Reason == limit.ErrWaitTooLong && e.Dimension == "pause":
		return Paused
	case e.Reason == limit.ErrWaitTooLong:
		return WaitTooLong
	}
	return OtherReason
}

func (m *Meter) answered(b *budget, a transport.Attempt) {
	o := outcomeOf(a.Status)
	if o == RateLimited {
		m.lock() // the chart needs the time
	} else {
		m.mu.Lock() // reading the clock is a tenth of what a call costs here
	}
	defer m.mu.Unlock()
	b.leaves(limit.Requests, a.Left.Requests)
	b.leaves(limit.Input, a.Left.Input)
	b.leaves(limit.Output, a.Left.Output)
	b.leaves(limit.Tokens, a.Left.Tokens)
	if o == RateLimited {
		m.charts.present().RateLimited++
	}
	c := m.open(a.Request)
	if c == nil {
		return
	}
	took := seconds(a.Duration)
	i := bucket(durationBounds, took)
	for _, s := range c.series() {
		s.counts.Attempts[o]++
		if o != NoResponse {
			s.counts.Header.put(i, took)
		}
	}
}

// leaves notes what an answer says is left of a unit; -1 is nothing.
func (b *budget) leaves(u limit.Unit, n int64) {
	if n >= 0 {
		b.left[u], b.known[u] = n, true
	}
}

func (m *Meter) settled(e transport.Settlement) {
	now := m.lock()
	defer m.mu.Unlock()
	c := m.open(e.Request)
	if c == nil {
		return
	}
	var input, output float64 // estimates by reported usage; 0: not known
	if e.Usage.Found && e.Usage.Input > 0 {
		input = float64(c.cost.Input) / float64(e.Usage.Input)
	}
	if e.Usage.Found && e.Usage.Output > 0 {
		output = float64(c.cost.Output) / float64(e.Usage.Output)
	}
	in, out := bucket(ratioBounds, input), bucket(ratioBounds, output)
	for _, s := range c.series() {
		n := s.counts
		n.Settled++
		if e.Complete {
			n.Complete++
		}
		n.Charged.Input += e.Charged.Input
		n.Charged.Output += e.Charged.Output
		s.flight--
		if !e.Usage.Found {
			continue
		}
		n.Reported++
		n.Estimated.Input += c.cost.Input
		n.Estimated.Output += c.cost.Output
		n.Used.Input += e.Usage.Input
		n.Used.Output += e.Usage.Output
		n.Cached += e.Usage.CachedInput
		if input > 0 {
			n.InputError.put(in, input)
		}
		if output > 0 {
			n.OutputError.put(out, output)
		}
	}
	c.operation.settled(e.Status, seconds(now-c.queued), e.FirstChunk, e.Usage)
	p := m.charts.present()
	p.Settled++
	p.Charged += e.Charged.Input + e.Charged.Output
	if e.Usage.Found {
		p.Estimated += c.cost.Input + c.cost.Output
		p.Used += e.Usage.Input + e.Usage.Output
	}
	m.forget(e.Request, c)
}

func (m *Meter) lowered(b *budget) {
	m.lock()
	defer m.mu.Unlock()
	b.lowered++
}

func (m *Meter) paused(b *budget, p limit.Pause) {
	m.lock()
	defer m.mu.Unlock()
	b.paused++
	b.asked += p.For
	b.ask(p.By)
	m.events.add(Event{At: m.time(m.now), Budget: b.series.name, Kind: "pause", For: p.For, By: p.By, Why: p.Why})
}

// someProvider is who asks for a pause where nobody knows a name.
const someProvider = "provider"

// ask counts a pause for the one who asked. Sixteen names are kept, as hosts may
// come from outside.
func (b *budget) ask(by string) {
	if by == "" || by == "the provider" {
		by = someProvider
	}
	for i := range b.askers {
		if a := &b.askers[i]; a.By == by || a.By == Rest {
			a.Pauses++
			return
		}
	}
	if len(b.askers) == 16 {
		by = Rest
	}
	b.askers = append(b.askers, Asker{by, 1})
}

func (m *Meter) changed(b *budget, old, new limit.Limit) {
	m.lock()
	defer m.mu.Unlock()
	b.changed++
	if old.Rate != new.Rate { // a changed burst alone is seen in the gauges
		m.events.add(Event{At: m.time(m.now), Budget: b.series.name, Kind: "limit", Limit: new.Name, From: old.Rate.String(), To: new.Rate.String()})
	}
}

// lawful notes that another law is believed of a limit.
func (m *Meter) lawful(b *budget, now limit.Limit) {
	m.lock()
	defer m.mu.Unlock()
	m.events.add(Event{At: m.time(m.now), Budget: b.series.name, Kind: "law", Limit: now.Name, To: now.LawWhy})
}

func (m *Meter) doubted(b *budget, profile, seen string) {
	m.lock()
	defer m.mu.Unlock()
	b.doubted++
	b.rule = [2]string{profile, seen}
	m.events.add(Event{At: m.time(m.now), Budget: b.series.name, Kind: "charge", From: profile, To: seen})
}

func (m *Meter) time(d time.Duration) time.Time { return m.base.Add(d) }

package providertest

import "time"

// Outcome is how a call ended.
type Outcome string

const (
	Running  Outcome = "running"  // let in, not yet over
	Served   Outcome = "served"   // answered whole
	Refused  Outcome = "refused"  // 429
	Rejected Outcome = "rejected" // other 4xx, before the limits
	Failed   Outcome = "failed"   // a scripted fault after admission
	Cut      Outcome = "cut"      // a scripted reset before admission
	Gone     Outcome = "gone"     // the client left before the end
)

// Tokens is an amount on the input and the output side.
type Tokens struct{ Input, Output int64 }

// Total is both sides together.
func (t Tokens) Total() int64 { return t.Input + t.Output }

// Entry is one call, as the provider saw it.
type Entry struct {
	Number  int64         // from 1, in order of judgement
	At      time.Time     // when it was judged
	Since   time.Duration // the same, since the provider's start
	End     time.Duration // when it was over, since the start
	Path    string
	Model   string
	Account string // name of one of Options.Accounts, "" if there are none
	Stream  bool
	Status  int // sent; 0 when no answer was begun
	Outcome Outcome

	Requests int64  // charged
	Arrival  Tokens // charged on arrival
	Settled  Tokens // charged in all; Arrival while it runs
	Prompt   int64  // tokens, actual; 0 for calls that were not let in
	Produced int64  // output tokens really produced

	Reason  string        // of a refusal: the limit, "cool-down", "in flight", "too large", "scripted"
	Wait    time.Duration // that the refusal named, before rounding up; 0 none
	Early   bool          // came while a wait named to an earlier call was running
	Attempt string        // value of Options.AttemptHeader, at most 256 bytes
}

// Stats is a summary since the start.
type Stats struct {
	Requests  int64 // calls judged, scripted cuts included
	Completed int64 // Served
	Refused   int64
	Rejected  int64
	Failed    int64 // Failed and Cut
	Gone      int64
	// Early is how many calls came strictly after a refusal had named a wait
	// and strictly before that wait was over. Behind a real network some may
	// have left before the refusal arrived.
	Early int64

	InputTokens  int64 // actual prompts of calls that were served
	OutputTokens int64 // produced, cut streams included

	InFlight     int64
	PeakInFlight int64
	// PeakRequests and PeakTokens are the most that was charged on arrival in
	// any 60 s, the first instant excluded. They are exact while no more than
	// Options.LedgerSize instants in 60 s have a charge, and lower bounds
	// beyond.
	PeakRequests int64
	PeakTokens   int64
	// Others and OthersRefused count the calls of Options.Others, which are
	// nowhere else.
	Others, OthersRefused int64
	// Dropped is how many entries the ledger has forgotten.
	Dropped int64
}

// Quota is, for each limit, the share of what its rate allowed that was
// charged. Limits that are not set are 0.
type Quota struct{ Requests, RequestsPerDay, Tokens, Input, Output float64 }

// Max is the largest share: how well the limit that binds was used.
func (q Quota) Max() float64 {
	return max(q.Requests, q.RequestsPerDay, q.Tokens, q.Input, q.Output)
}

// Ledger is a copy of the newest entries, in order of judgement.
func (p *Provider) Ledger() []Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now()
	out := make([]Entry, 0, len(p.ledger))
	for i := range p.ledger {
		out = append(out, *p.ledger[(p.oldest+i)%len(p.ledger)])
	}
	return out
}

// Stats is the summary now.
func (p *Provider) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now()
	s := p.stats
	for _, e := range p.engines {
		s.InFlight += e.inFlight
		for _, t := range e.others {
			s.Others += t.admitted
			s.OthersRefused += t.refused
		}
	}
	return s
}

// QuotaUsed is the share of the limits in force now that was charged from one
// instant (included) to another (excluded). Arrival charges count when the
// call came, corrections when it ended. ok is false when the span is empty or
// the ledger has forgotten entries of it.
//
// It speaks of Options.Limits, of the first account.
func (p *Provider) QuotaUsed(from, to time.Time) (q Quota, ok bool) {
	return p.QuotaUsedBy("", "", from, to)
}

// QuotaUsedBy is QuotaUsed for an account ("" is the first) and for the limits
// of a model ("" is those of the account, over all models).
func (p *Provider) QuotaUsedBy(account, model string, from, to time.Time) (q Quota, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now()
	a, b := from.Sub(p.start), to.Sub(p.start)
	e := 0
	for i, known := range p.o.accounts() {
		if account != "" && known.Name == account {
			e = i
		}
	}
	name := p.o.accounts()[e].Name
	if account != "" && name != account {
		return Quota{}, false
	}
	if a >= b || p.forgotten >= a && p.stats.Dropped > 0 {
		return Quota{}, false
	}
	var requests int64
	var t tokens
	for _, e := range p.ledger {
		if e.Account != name || model != "" && e.Model != model {
			continue
		}
		if a <= e.Since && e.Since < b {
			requests += e.Requests
			t.in, t.out = t.in+e.Arrival.Input, t.out+e.Arrival.Output
		}
		if a <= e.End && e.End < b && e.Outcome != Running {
			t.in += e.Settled.Input - e.Arrival.Input
			t.out += e.Settled.Output - e.Arrival.Output
		}
	}
	for _, l := range p.engines[e].limits {
		if l.model != model {
			continue
		}
		allowed := float64(l.value) * float64(b-a) / float64(l.window)
		share := float64(l.units(requests, t)) / allowed
		switch l.name {
		case "requests":
			q.Requests = share
		case "requests per day":
			q.RequestsPerDay = share
		case "tokens":
			q.Tokens = share
		case "input":
			q.Input = share
		case "output":
			q.Output = share
		}
	}
	return q, true
}

// recordLocked writes an entry and counts it.
func (p *Provider) recordLocked(at int64, e Entry) *Entry {
	p.number++
	e.Number, e.At = p.number, p.start.Add(time.Duration(at))
	e.Since, e.End = time.Duration(at), time.Duration(at)
	e.Settled = e.Arrival
	e.Early = at > p.toldAt && at < p.toldUntil
	if len(e.Attempt) > 256 {
		e.Attempt = e.Attempt[:256]
	}
	s := &p.stats
	s.Requests++
	if e.Early {
		s.Early++
	}
	p.countLocked(&e)
	p.peakLocked(at, e.Requests, e.Arrival.Total())
	entry := &e
	if len(p.ledger) < p.o.LedgerSize {
		p.ledger = append(p.ledger, entry)
		return entry
	}
	// An entry that still runs when it is dropped ends unseen, in Stats only.
	old := p.ledger[p.oldest]
	p.forgotten = max(p.forgotten, old.Since, old.End)
	p.ledger[p.oldest] = entry
	p.oldest = (p.oldest + 1) % len(p.ledger)
	s.Dropped++
	return entry
}

// countLocked counts an outcome that is final.
func (p *Provider) countLocked(e *Entry) {
	s := &p.stats
	switch e.Outcome {
	case Served:
		s.Completed++
	case Refused:
		s.Refused++
	case Rejected:
		s.Rejected++
	case Failed, Cut:
		s.Failed++
	case Gone:
		s.Gone++
	}
	if e.Outcome == Served {
		s.InputTokens += e.Prompt
	}
	s.OutputTokens += e.Produced
}

// toldLocked notes that a wait was named to a client. Waits that overlap make
// one, from the first telling to the last end.
func (p *Provider) toldLocked(at int64, wait time.Duration) {
	if wait <= 0 {
		return
	}
	if at >= p.toldUntil {
		p.toldAt = at
	}
	p.toldUntil = max(p.toldUntil, at+int64(min(wait, time.Duration(400*day))))
}

// load is what was charged on arrival at one instant.
type load struct{ at, requests, tokens int64 }

// peakLocked keeps the largest load of any 60 s that end with a charge.
func (p *Provider) peakLocked(at, requests, tokens int64) {
	if requests == 0 && tokens == 0 {
		return
	}
	for len(p.loads) > 0 && p.loads[0].at <= at-minute {
		p.load.requests -= p.loads[0].requests
		p.load.tokens -= p.loads[0].tokens
		p.loads = p.loads[1:]
	}
	// Adding to the newest instead of a new item makes it leave too soon: the
	// peak is then too low, never too high.
	if k := len(p.loads); k > 0 && (p.loads[k-1].at == at || k >= p.o.LedgerSize) {
		p.loads[k-1].requests += requests
		p.loads[k-1].tokens += tokens
	} else {
		p.loads = append(p.loads, load{at, requests, tokens})
	}
	p.load.requests += requests
	p.load.tokens += tokens
	p.stats.PeakRequests = max(p.stats.PeakRequests, p.load.requests)
	p.stats.PeakTokens = max(p.stats.PeakTokens, p.load.tokens)
}

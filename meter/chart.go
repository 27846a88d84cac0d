package meter

import "time"

// A Second is what happened in one second.
type Second struct {
	At          int64   `json:"t"`           // which second, since the Meter was made
	Queued      int64   `json:"queued"`      // calls that asked
	Admitted    int64   `json:"admitted"`    // calls that were admitted
	Refused     int64   `json:"refused"`     // calls, or further attempts, that the limiter refused
	Settled     int64   `json:"settled"`     // calls that were over
	RateLimited int64   `json:"rateLimited"` // answers with 429
	Waiting     int64   `json:"waiting"`     // most calls in the line at once
	Charged     int64   `json:"charged"`     // tokens of settled calls, as the ledger keeps them
	Estimated   int64   `json:"estimated"`   // tokens of calls that reported their usage, as estimated
	Used        int64   `json:"used"`        // the same, as reported
	Waits       float64 `json:"waits"`       // seconds that the admitted ones waited, in all
	Paced       float64 `json:"paced"`       // share of the second in which somebody waited; 0 for the present one
}

// chartSeconds is how far the charts reach back.
const chartSeconds = 300

// chart is a ring of the last seconds.
type chart struct {
	ring  [chartSeconds]Second
	last  int64         // the present second
	paced time.Duration // how long somebody had waited, in all, when it began
}

// advance opens the seconds up to now; those that passed without an event had as
// many waiting as there are. paced says how long somebody has waited, in all, at
// an instant since the last event.
func (c *chart) advance(now time.Duration, waiting int64, paced func(at time.Duration) time.Duration) {
	s := int64(now / time.Second)
	if s == c.last {
		return
	}
	for t := max(c.last, s-chartSeconds) + 1; t <= s; t++ {
		p := paced(time.Duration(t) * time.Second)
		c.ring[(t-1)%chartSeconds].Paced = min(1, (p - c.paced).Seconds())
		c.paced = p
		c.ring[t%chartSeconds] = Second{At: t, Waiting: waiting}
	}
	c.last = s
}

func (c *chart) present() *Second { return &c.ring[c.last%chartSeconds] }

// since returns the seconds from t on, the present one last.
func (c *chart) since(t int64) []Second {
	t = max(t, c.last-chartSeconds+1, 0)
	out := make([]Second, 0, max(0, c.last-t+1))
	for ; t <= c.last; t++ {
		out = append(out, c.ring[t%chartSeconds])
	}
	return out
}

// minute is the waits of a budget in the last minute, by second.
type minute [60]struct {
	at, n int64
	waits time.Duration
}

func (m *minute) add(now, wait time.Duration) {
	at := int64(now / time.Second)
	s := &m[at%int64(len(m))]
	if s.at != at {
		s.at, s.n, s.waits = at, 0, 0
	}
	s.n++
	s.waits += wait
}

// mean is the mean wait; 0 if nobody was admitted.
func (m *minute) mean(now time.Duration) time.Duration {
	at := int64(now / time.Second)
	var n int64
	var sum time.Duration
	for _, s := range m {
		if s.at > at-int64(len(m)) && s.n > 0 {
			n += s.n
			sum += s.waits
		}
	}
	if n == 0 {
		return 0
	}
	return sum / time.Duration(n)
}

// An Event is something that does not happen with each call.
type Event struct {
	At     time.Time     `json:"at"`
	Budget string        `json:"budget"`
	Kind   string        `json:"kind"`            // "pause", "limit", "law" or "charge"
	For    time.Duration `json:"for,omitempty"`   // of a pause
	By     string        `json:"by,omitempty"`    // who asked for the pause
	Why    string        `json:"why,omitempty"`   // in words
	Limit  string        `json:"limit,omitempty"` // which limit changed
	From   string        `json:"from,omitempty"`  // the rate, or the charge rule, before
	To     string        `json:"to,omitempty"`    // and after, or as headers show it
}

// events are the last ones.
type events struct {
	ring [32]Event
	n    int
}

func (e *events) add(v Event) {
	e.ring[e.n%len(e.ring)] = v
	e.n++
}

// list returns them, the newest first.
func (e *events) list() []Event {
	out := make([]Event, 0, min(e.n, len(e.ring)))
	for i := e.n - 1; i >= 0 && i >= e.n-len(e.ring); i-- {
		out = append(out, e.ring[i%len(e.ring)])
	}
	return out
}

package bench

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

// roundTrip is that of a store, as each decision pays it.
const roundTrip = time.Millisecond

// A store stands in for the one of redislimit: no engine runs in virtual time. It is
// the ledger of package limit, a round trip away, and carries notes. That the real
// one counts the same and keeps the same promises, tests of redislimit show.
type store struct {
	*limit.Limiter

	mu      sync.Mutex
	notes   map[string][]limit.Note
	written map[string][]time.Time
	version map[string]uint64
}

func newStore() (*store, error) {
	l, err := limit.New(limit.Options{})
	return &store{Limiter: l, notes: map[string][]limit.Note{}, written: map[string][]time.Time{}, version: map[string]uint64{}}, err
}

func (s *store) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	time.Sleep(roundTrip / 2)
	r, err := s.Limiter.Admit(ctx, a)
	time.Sleep(roundTrip / 2)
	return r, err
}

func (s *store) TryAdmit(a limit.Ask) (limit.Reservation, error) {
	time.Sleep(roundTrip / 2)
	r, err := s.Limiter.TryAdmit(a)
	time.Sleep(roundTrip / 2)
	return r, err
}

// Note is that of [limit.Notebook].
func (s *store) Note(scope, key, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version[scope]++
	for i, n := range s.notes[scope] {
		if n.Key == key {
			s.notes[scope][i].Text, s.written[scope][i] = text, time.Now()
			return
		}
	}
	s.notes[scope] = append(s.notes[scope], limit.Note{Key: key, Text: text})
	s.written[scope] = append(s.written[scope], time.Now())
}

// Notes is that of [limit.Notebook].
func (s *store) Notes(scope string, last uint64) ([]limit.Note, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version[scope] == last {
		return nil, last
	}
	notes := append([]limit.Note(nil), s.notes[scope]...)
	for i := range notes {
		notes[i].Age = time.Since(s.written[scope][i])
	}
	return notes, s.version[scope]
}

var _ limit.Notebook = (*store)(nil)

// Shared is tripmeter in several processes with one budget.
var Shared = Policy{"tripmeter, one budget", func(base http.RoundTripper, k Knows) (http.RoundTripper, error) {
	var limits []limit.Limit
	for _, l := range []limit.Limit{
		{Unit: limit.Requests, Rate: limit.PerMinute(k.RPM)}, {Unit: limit.Tokens, Rate: limit.PerMinute(k.TPM)},
		{Unit: limit.Input, Rate: limit.PerMinute(k.InputTPM)}, {Unit: limit.Output, Rate: limit.PerMinute(k.OutputTPM)},
	} {
		if l.Rate.N > 0 {
			l.Name = budget.NameOf(l.Unit, time.Minute)
			limits = append(limits, l)
		}
	}
	ledger, err := k.Ledger()
	if err != nil {
		return nil, err
	}
	b, err := budget.New(budget.Options{Ledger: ledger, Limits: limits, Profile: Profile(k.Options), Secret: []byte("of the scoreboard")})
	if err != nil {
		return nil, err
	}
	o := transport.Options{Base: base, Attempts: attempts, Scopes: transport.Scopes{Budget: b}}
	o.Retry.MaxRetryAfter = time.Hour
	return transport.New(o)
}}

// policies are those that a load is played with.
func policies(l Load) []Policy {
	if l == Processes {
		return append(append([]Policy(nil), Policies...), Shared)
	}
	return Policies
}

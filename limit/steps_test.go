package limit

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

var manyTenants = flag.Int("tenants", 100_000, "tenants of TestNoOperationVisitsManyScopes")

// Very many tenants come once each, and a snapshot is taken of them. What one hold of
// the lock visits has a bound that does not grow with their number. For a million:
//
//	go test ./limit -run TestNoOperationVisitsManyScopes -tenants 1000000
func TestNoOperationVisitsManyScopes(t *testing.T) {
	n := *manyTenants
	for _, keep := range []int{n, 1000} {
		t.Run(fmt.Sprintf("%d kept", keep), func(t *testing.T) {
			l, err := New(Options{Limits: []Limit{{Rate: PerSecond(MaxUnits)}}, KeepIdle: keep})
			if err != nil {
				t.Fatal(err)
			}
			call, part := 0, 0
			most := 0 // of one call or one part of a snapshot
			l.scopes.steps = func(n int) { call, part = call+n, max(part, n) }
			for i := range n {
				call = 0
				r, err := l.TryAdmit(Ask{Cost: Cost{Requests: 1}, Tenant: fmt.Sprint(i)})
				if err != nil {
					t.Fatal(err)
				}
				r.Settle(Cost{Requests: 1})
				most = max(most, call)
			}
			if most == 0 || most > 200 {
				t.Errorf("one call visited %d scopes", most)
			}
			part = 0
			if got := len(l.Snapshot().Scopes); got < min(keep, n) {
				t.Errorf("a snapshot has %d scopes", got)
			}
			if part == 0 || part > 300 {
				t.Errorf("a part of a snapshot visited %d scopes", part)
			}
			part = 0
			if one := l.SnapshotOf(fmt.Sprint(n - 1)); one.Served != (Cost{Requests: 1}) || part > 100 {
				t.Errorf("the snapshot of one scope visited %d scopes: %v", part, one)
			}
		})
	}
}

// Scopes and lanes come and go during a snapshot. It shows each scope once that is
// there from its beginning to its end.
func TestASnapshotMissesNobody(t *testing.T) {
	l, err := New(Options{Limits: []Limit{{Unit: Tokens, Rate: Rate{1, MaxWindow}, Burst: 100}}, KeepIdle: 1})
	if err != nil {
		t.Fatal(err)
	}
	const kept = 500
	join := func(tenant string) *waiter {
		l.lock()
		defer l.mu.Unlock()
		w, _, err := l.ask(&Ask{Cost: Cost{Input: 100}, Tenant: tenant}, false, time.Time{})
		if err != nil || w == nil {
			t.Errorf("%v, %v", w, err)
		}
		return w
	}
	r, _ := l.TryAcquire(Cost{Input: 100})
	r.Keep()
	for i := range kept {
		join(fmt.Sprint("stays ", i))
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for round := 0; ; round++ {
			var come []*waiter
			for i := range 700 { // splits
				come = append(come, join(fmt.Sprint("comes ", round, " ", i)))
			}
			for _, w := range come { // joins
				l.lock()
				l.refuse(w, ErrCanceled, l.last)
				l.mu.Unlock()
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	for range 200 {
		seen := map[string]int{}
		for _, s := range l.Snapshot().Scopes {
			if seen[s.Scope]++; seen[s.Scope] > 1 {
				t.Fatalf("%q is there twice", s.Scope)
			}
		}
		for i := range kept {
			if name := fmt.Sprint("stays ", i); seen[name] != 1 {
				t.Fatalf("%q is missing", name)
			}
		}
	}
	close(stop)
	<-stopped
}

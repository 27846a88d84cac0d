package limit

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// The index holds what a map would hold, after any number of names that come and
// go.
func TestIndexAgreesWithAMap(t *testing.T) {
	var x index
	want := map[string]*scope{}
	r := rand.New(rand.NewPCG(1, 2))
	for step := range 200_000 {
		name := fmt.Sprint(r.IntN(3000))
		seldom := 1
		if step%40_000 > 20_000 { // about 1500, then a few
			seldom = 50
		}
		switch s := x.find(name); {
		case s != want[name]:
			t.Fatalf("step %d: %q is %v, want %v", step, name, s, want[name])
		case s == nil && r.IntN(seldom) == 0:
			s = &scope{name: name}
			x.add(s)
			want[name] = s
		case s != nil:
			x.remove(s)
			delete(want, name)
		}
		if step%1000 != 0 {
			continue
		}
		if x.n != len(want) || x.chains > max(1, 2*x.n) || x.chains < x.n || len(x.parts) > x.chains/64+1 {
			t.Fatalf("step %d: %d scopes in %d chains, want %d scopes", step, x.n, x.chains, len(want))
		}
		n := 0
		for s := range x.all() {
			if n++; want[s.name] != s {
				t.Fatalf("step %d: %q should not be there", step, s.name)
			}
		}
		if n != len(want) {
			t.Fatalf("step %d: the walk has %d scopes, want %d", step, n, len(want))
		}
	}
}

package limit

import (
	"reflect"
	"testing"
)

// The state of one scope is that which the snapshot of all has of it.
func TestTheStateOfOneScope(t *testing.T) {
	l, err := New(Options{Limits: []Limit{{Unit: Tokens, Rate: PerMinute(60), Burst: 100}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetScopeLimit("model", Limit{Name: "tpm", Unit: Tokens, Rate: Rate{1, MaxWindow}, Burst: 50}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.TryAdmit(Ask{Cost: Cost{Requests: 1, Input: 30}, Scopes: []string{"model"}, Tenant: "one"}); err != nil {
		t.Fatal(err)
	}
	all := l.Snapshot()
	if len(all.Scopes) != 2 {
		t.Fatalf("%+v", all)
	}
	for _, want := range all.Scopes {
		if got := l.SnapshotOf(want.Scope); !reflect.DeepEqual(got, want) && (len(got.Limits) > 0 || len(want.Limits) > 0) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if got := l.SnapshotOf(""); got.InFlight != 1 || len(got.Limits) != 1 || len(got.Scopes) != 0 {
		t.Errorf("the root: %+v", got)
	}
	if got := l.SnapshotOf("nobody"); got.Scope != "nobody" || len(got.Limits) != 0 {
		t.Errorf("a scope that is not kept: %+v", got)
	}
}

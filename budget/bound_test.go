package budget

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/limit"
)

// Any number of models and of keys leaves a bounded number of scopes behind. A
// model whose calls are refused keeps its learned limit all the while.
func TestNamesFromOutsideAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, Options{Profile: ruled(0)})
		for range 3 {
			c := open(t, b, request(10, 10))
			c.Hear(time.Now(), &headers.Info{Tokens: headers.Quota{Limit: headers.Count{N: 1000, OK: true}, Window: time.Minute}}, true)
			c.Refuse(time.Now(), Refusal{Wait: time.Second})
			time.Sleep(10 * time.Second)
		}
		before := b.Scope()
		for i := range 3 * maxScopes {
			p := b.Path(Address{Host: "api.test", Model: fmt.Sprintf("model %d", i)})
			q := b.Path(Address{Host: "api.test", Credential: fmt.Sprint(i)})
			if p.inner == p.account || q.account == p.account {
				t.Fatalf("no room for %d", i)
			}
		}
		if n := len(b.scopes); n > keptScopes+2 || n != len(b.ring) {
			t.Errorf("%d scopes are kept, %d in the ring", n, len(b.ring))
		}
		if n := len(b.paths); n > maxPaths {
			t.Errorf("%d paths are kept", n)
		}
		if after := b.Scope(); after.inner != before.inner {
			t.Error("what was refused is forgotten")
		}
		if n := len(b.Snapshot().Scopes); n > keptScopes {
			t.Errorf("the ledger keeps %d scopes", n)
		}
	})
}

// Where every scope is in use there is no room for more: new models take from their
// account, and new accounts share one.
func TestWithoutRoomScopesAreShared(t *testing.T) {
	b := newBudget(t, Options{Profile: ruled(0)})
	for i := range maxScopes + 10 {
		p := b.Path(Address{Host: "api.test", Model: fmt.Sprint(i)})
		p.inner.mu.Lock()
		p.inner.rest = time.Now()
		p.inner.some.Store(true)
		p.inner.mu.Unlock()
		p.account.touch()
		p.inner.touch()
	}
	p := b.Path(Address{Host: "api.test", Model: "one more"})
	q := b.Path(Address{Host: "another.test", Model: "m"})
	r := b.Path(Address{Host: "api.test", Credential: "k"})
	if p.inner != p.account || q.account != r.account || q.account.name != others {
		t.Errorf("paths %v, %v, %v", p.names, q.names, r.names)
	}
}

// No two addresses have one name, none holds a secret, and none is too long.
func TestNamesOfScopes(t *testing.T) {
	b := newBudget(t, Options{})
	long := strings.Repeat("x", 3000)
	seen := map[string]Address{}
	for _, host := range []string{"", "api.test", "api.test:8080", "api.test#x", "a/b", long} {
		for _, account := range []string{"", "x", "a/b", long} {
			for _, secret := range []string{"", "sk-1", "sk-2", long} {
				for _, model := range []string{"", "m", "shared m", "x/m", "\x00", "日本", long, long + "y"} {
					a := Address{Host: host, Account: account, Credential: secret, Model: model}
					names := b.Path(a).Scopes()
					inner := names[len(names)-1]
					if len(inner) > limit.MaxName || strings.Contains(inner, "sk-") || strings.ContainsAny(inner, "\x00\n") {
						t.Errorf("%+v: %q", a, inner)
					}
					if account != "" { // then the credential does not count
						a.Credential = ""
					}
					if of, ok := seen[inner]; ok && of != a {
						t.Errorf("%q is the name of %.60q and of %.60q", inner, fmt.Sprint(of), fmt.Sprint(a))
					}
					seen[inner] = a
				}
			}
		}
	}
	if b.Path(Address{Host: "API.test."}) == nil || b.Path(Address{Host: "API.Test."}).Scopes()[0] != "api.test" {
		t.Error("a host is the same in any case")
	}
}

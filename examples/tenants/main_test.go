package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tripmeter/tripmeter/transport"
)

// Ten of the busy tenant's calls go at once, and one more each tenth of a second.
// The quiet one does not notice.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := run(&out); err != nil {
			t.Fatal(err)
		}
		const want = `tenant   calls  refused  longest wait
busy        20        0         1.0 s
quiet        2        0         0.0 s
`
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
	})
}

func ExampleTenants() {
	set := NewTenants(func(string) transport.Options { return transport.Options{RPM: 600} })
	a, _ := set.Client("sk-a")
	b, _ := set.Client("sk-b")
	again, _ := set.Client("sk-a")
	fmt.Fprintln(os.Stdout, a == again, a == b, len(set.Name("sk-a")))
	// Output: true false 12
}

// Neither names, nor errors, nor what %+v makes of a client hold the key.
func TestKeysNameNothing(t *testing.T) {
	const key = "sk-canary-1f8e"
	rpm := int64(600)
	set := NewTenants(func(string) transport.Options { return transport.Options{RPM: rpm} })
	client, err := set.Client(key)
	if err != nil {
		t.Fatal(err)
	}
	rpm = -1
	_, bad := set.Client(key + "2")
	if bad == nil {
		t.Fatal("no error for a negative limit")
	}
	for what, s := range map[string]string{
		"name":      set.Name(key),
		"error":     bad.Error(),
		"set":       fmt.Sprintf("%+v %#v", set, set),
		"client":    fmt.Sprintf("%+v %#v", client, client),
		"transport": fmt.Sprintf("%+v %#v", client.Transport, client.Transport),
	} {
		if strings.Contains(s, "canary") {
			t.Errorf("the key is in the %s", what)
		}
	}
	if other := NewTenants(nil); other.Name(key) == set.Name(key) {
		t.Error("a name is a bare hash: it can be guessed from the key")
	}
}

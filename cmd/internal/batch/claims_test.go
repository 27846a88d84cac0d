package batch

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/cmd/internal/redistest"
	"github.com/tripmeter/tripmeter/cmd/internal/store"
)

// A line is one worker's while it gives signs of life, then another's; the answer
// that is noted first counts.
func TestClaims(t *testing.T) {
	s, err := store.Open(redistest.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	join := func() *claims {
		c, err := newClaims(s, "job", time.Minute, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a, b := join(), join()
	defer b.Close()
	take := func(c *claims, id string) string { state, _ := c.take(id, nil); return state }
	if got := take(a, "x") + "," + take(a, "x") + "," + take(b, "x"); got != ",,=" {
		t.Errorf("a takes, a again, b: %q", got)
	}
	for range 2 { // noted again, it is the same line
		if !a.note(noted{"x", "+1"}) {
			t.Error("the line of the first is not noted")
		}
	}
	if b.note(noted{"x", "+2"}) || take(b, "x") != "+1" {
		t.Error("the first line does not count")
	}
	take(a, "y")
	a.release("y")
	if take(b, "y") != "" || take(a, "y") != "=" {
		t.Error("a line that was given up is not the next one's")
	}
	take(a, "z")
	if err := a.Close(); err != nil || take(b, "z") != "" {
		t.Errorf("the line of a worker that ended is not the next one's: %v", err)
	}
	// What a file holds is noted at the start; of two lines one is taken out.
	if twice, err := b.adopt([]noted{{"x", "+9"}, {"z", "-3"}, {"w", "+4"}}); err != nil || len(twice) != 1 || twice[0] != "x" {
		t.Errorf("twice are %q, %v", twice, err)
	}
	done := newIDs()
	failed, err := b.known(done)
	if err != nil || failed != 1 || done.mark("w", 0) != answered || done.mark("y", 0) != 0 {
		t.Errorf("%d failed, %v", failed, err)
	}
}

// Two workers in turn, over one store. The second sends nothing that the first has
// answered, and bad lines have one line in all. With -retry-failed the first sends
// again what has failed.
func TestWorkersInTurn(t *testing.T) {
	var mu sync.Mutex
	came := map[string]int{}
	mended := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, id, _ := strings.Cut(string(b), "Hello ")
		id, _, _ = strings.Cut(id, `"`)
		mu.Lock()
		defer mu.Unlock()
		if came[id]++; id == "r7" && !mended {
			status(400, `{"error":{"message":"no"}}`)(w, r)
			return
		}
		status(200, usage12)(w, r)
	}))
	defer s.Close()
	dir, redis := t.TempDir(), redistest.Start(t)
	in := write(t, append(linesFor(40), "{}")...)
	run := func(out string, more ...string) ran {
		return runBatch(t, filepath.Join(dir, out), nil, append([]string{"-in", in, "-base-url", s.URL, "-rpm", "100000", "-redis", redis}, more...)...)
	}
	a, b := run("a"), run("b")
	if a.code != ExitFailed || len(a.answers) != 40 || len(a.bad) != 1 || b.code != ExitFailed || len(b.answers)+len(b.bad) != 0 || b.sum.Skipped != 40 || b.sum.BadLines != 1 {
		t.Errorf("first: code %d, %d lines; second: code %d, %d lines, %+v\n%s", a.code, len(a.answers), b.code, len(b.answers), b.sum, b.stderr)
	}
	mu.Lock()
	mended = true
	mu.Unlock()
	a = run("a", "-retry-failed")
	mu.Lock()
	defer mu.Unlock()
	if len(a.answers) != 40 || len(a.bad) != 1 || a.answers["r7"].Response.StatusCode != 200 || came["r7"] != 2 || len(came) != 40 {
		t.Errorf("-retry-failed: code %d, %d lines, r7 came %d times\n%s", a.code, len(a.answers), came["r7"], a.stderr)
	}
	for id, n := range came {
		if n != 1 && id != "r7" {
			t.Errorf("%s came %d times", id, n)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "b")); err != nil || len(b) != 0 {
		t.Errorf("the second has %d bytes, %v", len(b), err)
	}
}

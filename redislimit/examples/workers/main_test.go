package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

func TestMain(m *testing.M) {
	if os.Getenv("TRIPMETER_WORKER") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Every request is answered once, by one worker or another, and none is refused.
func TestWorkersShareOneBudget(t *testing.T) {
	server := redistest.Start(t)
	var lines strings.Builder
	for i := range 120 {
		fmt.Fprintf(&lines, `{"model":"m","max_tokens":64,"messages":[{"role":"user","content":"%s"}]}`+"\n", strings.Repeat("word ", 10+i%40))
	}
	in := filepath.Join(t.TempDir(), "requests.jsonl")
	if err := os.WriteFile(in, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := run(config{Redis: server.Addr, In: in, Budget: "test", Workers: 4, InFlight: 32, RPM: 3000, TPM: 300_000})
	if err != nil {
		t.Fatal(err)
	}
	if r.Answered != 120 || r.Refused != 0 || r.Failed != 0 {
		t.Errorf("%+v of 120", r)
	}
	t.Logf("%+v", r)
}

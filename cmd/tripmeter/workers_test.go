package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/cmd/internal/boxtest"
	"github.com/tripmeter/tripmeter/cmd/internal/redistest"
	"github.com/tripmeter/tripmeter/providertest"
)

// Three workers take the lines of one input within one budget, and one of them is
// killed in the middle. The others answer its lines too. When it is started again, each
// request has one line in one of the three files. None was paid for twice but those
// that were under way at the kill.
func TestWorkersShareAnInput(t *testing.T) {
	const n, workers = 600, 3
	p, url := boxtest.Start(t, providertest.Options{Limits: providertest.Limits{RPM: 9000}, Capacity: 10 * time.Second})
	in, dir, redis := requests(t, n), t.TempDir(), redistest.Start(t)
	type worker struct {
		cmd    *exec.Cmd
		stderr bytes.Buffer
		out    string
	}
	start := func(i int) *worker {
		w := &worker{out: filepath.Join(dir, fmt.Sprint(i, ".jsonl"))}
		w.cmd = exec.Command(tripmeter, "batch", "-in", in, "-out", w.out, "-base-url", url, "-redis", redis, "-lease", "2s", "-rpm", "9000", "-burst-seconds", "1")
		w.cmd.Stderr = &w.stderr
		if err := w.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return w
	}
	var all []*worker
	for i := range workers {
		all = append(all, start(i))
	}
	for p.Stats().Completed < n/3 {
		time.Sleep(time.Millisecond)
	}
	all[0].cmd.Process.Kill()
	all[0].cmd.Wait()
	underWay := p.Stats().InFlight + 64 // what had come, and what the killed one may have received and not written
	for i := 1; i < workers; i++ {
		if err := all[i].cmd.Wait(); err != nil {
			t.Errorf("worker %d: %v\n%s", i, err, all[i].stderr.String())
		}
	}
	again := start(0)
	if err := again.cmd.Wait(); err != nil {
		t.Errorf("started again: %v\n%s", err, again.stderr.String())
	}
	got := map[string]string{}
	for _, w := range all {
		b, err := os.ReadFile(w.out)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
		t.Logf("%s: %d lines", filepath.Base(w.out), len(lines))
		for _, line := range lines {
			_, id, _ := strings.Cut(line, `"custom_id":"`)
			id, _, _ = strings.Cut(id, `"`)
			if was, twice := got[id]; twice {
				t.Errorf("%s has a line in %s and in %s", id, was, w.out)
			}
			if got[id] = w.out; !strings.Contains(line, `"status_code":200`) {
				t.Errorf("%s", line)
			}
		}
	}
	s := p.Stats()
	t.Logf("%d lines, %d paid for, %d refused by the provider", len(got), s.Completed, s.Refused)
	if len(got) != n || s.Completed > n+int64(underWay) || s.Refused != 0 {
		t.Errorf("%d lines of %d, %d paid for, %d under way at the kill, %d refused by the provider", len(got), n, s.Completed, underWay, s.Refused)
	}
	for _, w := range all[1:] {
		if i, err := os.Stat(w.out); err != nil || i.Size() == 0 {
			t.Errorf("%s did nothing: %v\n%s", w.out, err, w.stderr.String())
		}
	}
}

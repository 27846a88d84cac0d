package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// tripmeter is the command as it is installed.
var tripmeter string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "tripmeter")
	if err == nil {
		tripmeter = filepath.Join(dir, "tripmeter")
		var out []byte
		if out, err = exec.Command("go", "build", "-o", tripmeter, ".").CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// requests writes a file of n requests.
func requests(t *testing.T, n int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"custom_id":"r%d","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o-mini","max_tokens":9,"messages":[{"role":"user","content":"id r%d."}]}}`+"\n", i, i)
	}
	name := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// counting is a provider that counts how often each id came.
type counting struct {
	mu   sync.Mutex
	came map[string]int
	at   int // under way
	most int // under way at once
}

func (c *counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client was killed while it sent
	}
	_, id, _ := strings.Cut(string(b), "id ")
	id, _, _ = strings.Cut(id, ".")
	c.mu.Lock()
	c.came[id]++
	c.at++
	c.most = max(c.most, c.at)
	c.mu.Unlock()
	time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":%q,"usage":{"prompt_tokens":5,"completion_tokens":5,"total_tokens":10}}`, id)
	c.mu.Lock()
	c.at--
	c.mu.Unlock()
}

// answered reads an output: each id must have one line, which holds its answer.
func answered(t *testing.T, name string) map[string]bool {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := map[string]bool{}
	s := bufio.NewScanner(f)
	for s.Scan() {
		var a struct {
			CustomID string `json:"custom_id"`
			Response struct {
				Body struct{ ID string }
			}
		}
		if err := json.Unmarshal(s.Bytes(), &a); err != nil {
			t.Fatalf("%v in %q", err, s.Text())
		}
		if got[a.CustomID] {
			t.Errorf("two lines for %s", a.CustomID)
		}
		if a.Response.Body.ID != a.CustomID {
			t.Errorf("%s has the answer to %s", a.CustomID, a.Response.Body.ID)
		}
		got[a.CustomID] = true
	}
	return got
}

// The job is killed at fifty moments, and zeros and halves of lines are put behind the
// end as a power cut leaves them. It has one line for each request in the end. No
// request was paid for twice but those that were under way at a kill.
func TestKillAtAnyMoment(t *testing.T) {
	const n, kills, inFlight = 3000, 50, 8
	c := &counting{came: map[string]int{}}
	s := httptest.NewServer(c)
	defer s.Close()
	in, out := requests(t, n), filepath.Join(t.TempDir(), "out.jsonl")
	rnd := rand.New(rand.NewPCG(1, 1))
	args := []string{"batch", "-in", in, "-out", out, "-base-url", s.URL, "-rpm", "100000000", "-in-flight", fmt.Sprint(inFlight)}
	killed := 0
	for range kills {
		cmd := exec.Command(tripmeter, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(5+rnd.IntN(60)) * time.Millisecond)
		if err := cmd.Process.Kill(); err == nil {
			killed++
		}
		cmd.Wait()
		if f, err := os.OpenFile(out, os.O_APPEND|os.O_WRONLY, 0); err == nil {
			f.WriteString([]string{"", `{"id":"batch_req_77","custom_id":"r76","resp`, strings.Repeat("\x00", rnd.IntN(5000)), "{\x00\x00\x00"}[rnd.IntN(4)])
			f.Close()
		}
	}
	var stderr bytes.Buffer
	last := exec.Command(tripmeter, args...)
	last.Stderr = &stderr
	if err := last.Run(); err != nil {
		t.Fatal(err, stderr.String())
	}
	got := answered(t, out)
	twice := 0
	for id, times := range c.came {
		if !got[id] {
			t.Errorf("%s was answered and has no line", id)
		}
		twice += times - 1
	}
	if len(got) != n || twice > killed*c.most {
		t.Errorf("%d lines of %d; %d paid for twice in %d kills with at most %d under way", len(got), n, twice, killed, c.most)
	}
	t.Logf("%d kills, %d of %d requests sent twice, at most %d under way", killed, twice, n, c.most)
}

// Two processes on one file: the second is refused and sends nothing. When the
// first one is killed, the file is free.
func TestTwoProcesses(t *testing.T) {
	release := make(chan struct{})
	c := &counting{came: map[string]int{}}
	first := make(chan struct{}, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
			return
		}
		c.ServeHTTP(w, r)
	}))
	defer s.Close()
	in, out := requests(t, 20), filepath.Join(t.TempDir(), "out.jsonl")
	args := []string{"batch", "-in", in, "-out", out, "-base-url", s.URL, "-rpm", "1000000"}
	a := exec.Command(tripmeter, args...)
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	<-first
	b, err := exec.Command(tripmeter, args...).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 2 || !strings.Contains(string(b), "another process is writing it") {
		t.Errorf("the second: %v, %s", err, b)
	}
	if len(c.came) != 0 {
		t.Errorf("%d calls were answered", len(c.came))
	}
	a.Process.Kill()
	a.Wait()
	close(release)
	if b, err := exec.Command(tripmeter, args...).CombinedOutput(); err != nil {
		t.Errorf("after the kill: %v, %s", err, b)
	}
	if got := answered(t, out); len(got) != 20 {
		t.Errorf("%d lines", len(got))
	}
}

// The terminal goes away in the middle: the job goes on and ends well.
func TestLostTerminal(t *testing.T) {
	c := &counting{came: map[string]int{}}
	s := httptest.NewServer(c)
	defer s.Close()
	in, out := requests(t, 500), filepath.Join(t.TempDir(), "out.jsonl")
	cmd := exec.Command(tripmeter, "batch", "-in", in, "-out", out, "-base-url", s.URL, "-rpm", "60000", "-burst-seconds", "0.1")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	for {
		c.mu.Lock()
		n := len(c.came)
		c.mu.Unlock()
		if n > 50 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	r.Close() // what it prints from now on fails
	cmd.Process.Signal(syscall.SIGHUP)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := answered(t, out); len(got) != 500 {
		t.Errorf("%d lines", len(got))
	}
}

// The commands are found, and any other word is an error.
func TestCommands(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "tripmeter batch"}, {[]string{"help"}, 0, "tripmeter serve"}, {[]string{"version"}, 0, "tripmeter "},
		{[]string{"--version"}, 0, "tripmeter "}, {[]string{"-version"}, 0, "tripmeter "},
		{[]string{"bacth"}, 2, `no command "bacth"`}, {[]string{"batch", "-h"}, 0, "Exit codes: 0"}, {[]string{"probe", "-h"}, 0, "-record"},
		{[]string{"serve", "-h"}, 0, "-config"}, {[]string{"serve", "-config", "none.toml"}, 2, "none.toml"},
	} {
		out, err := exec.Command(tripmeter, c.args...).CombinedOutput()
		code := 0
		if exit, ok := err.(*exec.ExitError); ok {
			code = exit.ExitCode()
		}
		if code != c.code || !strings.Contains(string(out), c.want) {
			t.Errorf("%v: code %d\n%s", c.args, code, out)
		}
	}
}

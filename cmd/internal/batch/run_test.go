package batch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/internal/batchfile"
	"github.com/tripmeter/tripmeter/providertest"
)

func noEnv(string) string { return "" }

// keyEnv has a key.
func keyEnv(name string) string {
	if name == "OPENAI_API_KEY" {
		return "sk-test"
	}
	return ""
}

// lineFor is a request of the Batch format.
func lineFor(id string) string {
	return fmt.Sprintf(`{"custom_id":%q,"method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o-mini","max_tokens":50,"messages":[{"role":"user","content":"Hello %s"}]}}`, id, id)
}

func write(t *testing.T, lines ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// ran is a run's exit code, output lines by custom_id, summary and stderr.
type ran struct {
	code    int
	answers map[string]batchfile.Answer
	order   []string
	bad     []batchfile.Answer // lines of bad lines
	sum     summary
	stderr  string
}

func runBatch(t *testing.T, out string, stop <-chan os.Signal, args ...string) ran {
	t.Helper()
	var stderr bytes.Buffer
	sum := filepath.Join(t.TempDir(), "summary.json")
	args = append(args, "-out", out, "-summary", sum)
	o := ran{code: Run(args, noEnv, stop, strings.NewReader(""), io.Discard, &stderr), stderr: stderr.String(), answers: map[string]batchfile.Answer{}}
	b, err := os.ReadFile(sum)
	if err != nil {
		t.Fatalf("no summary: %v; %s", err, o.stderr)
	}
	if err := json.Unmarshal(b, &o.sum); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var a batchfile.Answer
		if err := json.Unmarshal(s.Bytes(), &a); err != nil {
			t.Fatalf("%v in %s", err, s.Text())
		}
		if a.CustomID == nil {
			o.bad = append(o.bad, a)
			continue
		}
		if _, twice := o.answers[*a.CustomID]; twice {
			t.Errorf("two lines for %s", *a.CustomID)
		}
		o.answers[*a.CustomID] = a
		o.order = append(o.order, *a.CustomID)
	}
	return o
}

// linesFor is n requests.
func linesFor(n int) (lines []string) {
	for i := range n {
		lines = append(lines, lineFor(fmt.Sprint("r", i)))
	}
	return lines
}

func serve(t *testing.T, o providertest.Options) (*providertest.Provider, string) {
	t.Helper()
	p, err := providertest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(p)
	t.Cleanup(func() { p.Close(); s.Close() })
	return p, s.URL
}

// Every request gets one line, a bad line is named and stops nobody, and a
// second run sends nothing that the output holds.
func TestOneLineARequest(t *testing.T) {
	p, url := serve(t, providertest.Options{})
	in := write(t, lineFor("a"), "rubbish", "", lineFor("b"), `{"custom_id":"c","method":"GET","url":"/v1/models","body":{}}`,
		`{"custom_id":"d","method":"POST","url":"//evil.example/x","body":{}}`, lineFor("a"), lineFor("e"))
	out := filepath.Join(t.TempDir(), "out.jsonl")
	o := runBatch(t, out, nil, "-in", in, "-base-url", url)
	if o.code != ExitFailed || len(o.answers) != 3 || len(o.bad) != 4 || o.sum.Requests != 3 || o.sum.Completed != 3 || o.sum.BadLines != 4 || o.sum.WireAttempts != 3 {
		t.Fatalf("%d %+v\n%s", o.code, o.sum, o.stderr)
	}
	for _, want := range []string{"line 2:", "line 5:", "line 6:", "line 7:"} {
		if !strings.Contains(o.stderr, want) {
			t.Errorf("stderr does not name %q:\n%s", want, o.stderr)
		}
	}
	a := o.answers["a"]
	if a.Error != nil || a.Response.StatusCode != 200 || a.Response.RequestID == "" || !bytes.Contains(a.Response.Body, []byte(`"choices"`)) {
		t.Errorf("%+v", a)
	}
	if o.sum.InputTokens == 0 || o.sum.OutputTokens == 0 {
		t.Errorf("no tokens in %+v", o.sum)
	}
	again := runBatch(t, out, nil, "-in", in, "-base-url", url)
	if again.sum.Skipped != 3 || again.sum.WireAttempts != 0 || len(again.answers) != 3 || len(again.bad) != 4 {
		t.Errorf("second run: %+v", again.sum)
	}
	if n := p.Stats().Requests; n != 3 {
		t.Errorf("%d requests on the wire", n)
	}
}

// A line that a crash cut off is removed, and its request sent again.
func TestResumeAfterACutLine(t *testing.T) {
	_, url := serve(t, providertest.Options{})
	in := write(t, lineFor("a"), lineFor("b"))
	out := filepath.Join(t.TempDir(), "out.jsonl")
	first := runBatch(t, out, nil, "-in", write(t, lineFor("a")), "-base-url", url)
	if len(first.answers) != 1 {
		t.Fatal(first)
	}
	f, _ := os.OpenFile(out, os.O_APPEND|os.O_WRONLY, 0)
	f.WriteString(`{"id":"batch_req_2","custom_id":"b","respo`)
	f.Close()
	o := runBatch(t, out, nil, "-in", in, "-base-url", url)
	if len(o.answers) != 2 || o.sum.Skipped != 1 || o.sum.Completed != 1 {
		t.Fatalf("%+v %v", o.sum, o.order)
	}
}

// An output that is something else is left alone.
func TestForeignOutputIsNotTouched(t *testing.T) {
	out := filepath.Join(t.TempDir(), "precious.txt")
	os.WriteFile(out, []byte("dear diary\n"), 0o600)
	var stderr bytes.Buffer
	if code := Run([]string{"-in", write(t, lineFor("a")), "-out", out}, keyEnv, nil, nil, io.Discard, &stderr); code != ExitUsage {
		t.Fatal(code, stderr.String())
	}
	if b, _ := os.ReadFile(out); string(b) != "dear diary\n" {
		t.Fatalf("%q", b)
	}
}

// The first signal finishes what is under way and saves the rest.
func TestInterruptAndResume(t *testing.T) {
	release := make(chan struct{})
	var served atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		served.Add(1)
		<-release
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	}))
	defer s.Close()
	var lines []string
	for i := range 20 {
		lines = append(lines, lineFor(fmt.Sprint("r", i)))
	}
	in, out := write(t, lines...), filepath.Join(t.TempDir(), "out.jsonl")
	stop := make(chan os.Signal, 2)
	var once sync.Once
	go func() {
		for served.Load() < 4 {
			runtime.Gosched()
		}
		stop <- os.Interrupt
		once.Do(func() { time.AfterFunc(50*time.Millisecond, func() { close(release) }) })
	}()
	o := runBatch(t, out, stop, "-in", in, "-base-url", s.URL, "-in-flight", "4")
	if o.code != ExitLeft || len(o.answers) != 4 || o.sum.Completed != 4 {
		t.Fatalf("code %d, %d lines, %+v\n%s", o.code, len(o.answers), o.sum, o.stderr)
	}
	o = runBatch(t, out, nil, "-in", in, "-base-url", s.URL, "-in-flight", "4")
	if o.code != ExitDone || len(o.answers) != 20 || o.sum.Skipped != 4 || served.Load() != 20 {
		t.Fatalf("code %d, %d lines, %+v, served %d", o.code, len(o.answers), o.sum, served.Load())
	}
}

// The second signal stops at once.
func TestSecondInterrupt(t *testing.T) {
	arrived := make(chan struct{}, 64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	defer s.Close()
	stop := make(chan os.Signal, 2)
	go func() { <-arrived; stop <- os.Interrupt; stop <- os.Interrupt }()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	o := runBatch(t, out, stop, "-in", write(t, lineFor("a"), lineFor("b")), "-base-url", s.URL)
	if o.code != ExitLeft || len(o.answers) != 0 {
		t.Fatalf("code %d, %d lines\n%s", o.code, len(o.answers), o.stderr)
	}
}

// A provider that orders a wait above -max-wait ends the job: nothing leaves
// before that time, nothing hangs until then, and no line is lost to it.
func TestLongOrderSavesAndEnds(t *testing.T) {
	var sent atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		sent.Add(1)
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer s.Close()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	o := runBatch(t, out, nil, "-in", write(t, linesFor(2000)...), "-base-url", s.URL, "-rpm", "100000")
	if o.code != ExitLeft || sent.Load() > trip || len(o.answers) != 0 || o.sum.Left != 2000 || !strings.Contains(o.stderr, "a wait of 24h0m0s") {
		t.Fatalf("code %d, sent %d, %+v\n%s", o.code, sent.Load(), o.sum, o.stderr)
	}
}

// What can never fit is refused here, in words, and the rest goes on.
func TestTooLargeIsRefusedHere(t *testing.T) {
	p, url := serve(t, providertest.Options{})
	big := strings.Replace(lineFor("big"), `"max_tokens":50`, `"max_tokens":5000`, 1)
	out := filepath.Join(t.TempDir(), "out.jsonl")
	o := runBatch(t, out, nil, "-in", write(t, big, lineFor("small")), "-base-url", url, "-tpm", "1000", "-charge", "settle")
	if e := o.answers["big"].Error; e == nil || e.Code != "too_large_for_limit" || o.answers["small"].Response == nil || p.Stats().Requests != 1 {
		t.Fatalf("%+v\n%s", o.answers["big"], o.stderr)
	}
	if o.sum.Completed != 1 || o.sum.Failed != 1 {
		t.Fatalf("%+v", o.sum)
	}
}

// A stream, and an error page that is no JSON, are kept as text.
func TestBodiesThatAreNotJSON(t *testing.T) {
	p, url := serve(t, providertest.Options{StreamUsage: providertest.UsageAlways})
	stream := strings.Replace(lineFor("s"), `"max_tokens"`, `"stream":true,"max_tokens"`, 1)
	out := filepath.Join(t.TempDir(), "out.jsonl")
	o := runBatch(t, out, nil, "-in", write(t, stream), "-base-url", url)
	var text string
	if err := json.Unmarshal(o.answers["s"].Response.Body, &text); err != nil || !strings.Contains(text, "data: [DONE]") {
		t.Fatalf("%v %.200s", err, o.answers["s"].Response.Body)
	}
	if want := p.Stats().OutputTokens; o.sum.OutputTokens != want {
		t.Errorf("%d output tokens, want %d", o.sum.OutputTokens, want)
	}
}

// The key goes into the request and nowhere else.
func TestKeyStaysPrivate(t *testing.T) {
	_, url := serve(t, providertest.Options{Key: "sk-canary"})
	var stdout, stderr bytes.Buffer
	env := func(k string) string {
		if k == "TRIPMETER_API_KEY" {
			return "sk-canary"
		}
		return ""
	}
	code := Run([]string{"-in", write(t, lineFor("a")), "-base-url", url}, env, nil, nil, &stdout, &stderr)
	if code != ExitDone || !strings.Contains(stdout.String(), `"status_code":200`) {
		t.Fatal(code, stdout.String(), stderr.String())
	}
	if strings.Contains(stdout.String()+stderr.String(), "canary") {
		t.Fatal("the key was printed")
	}
}

func TestFlags(t *testing.T) {
	in := write(t, lineFor("a"))
	for _, args := range [][]string{
		{},
		{"-in", in, "extra"},
		{"-in", in, "-rpm", "-1"},
		{"-in", in, "-tpm", "x"},
		{"-in", in, "-in-flight", "0"},
		{"-in", in, "-attempts", "0"},
		{"-in", in, "-burst-seconds", "-0.5"},
		{"-in", in, "-burst-seconds", "NaN"},
		{"-in", in, "-provider", "nobody"},
		{"-in", in, "-charge", "maybe"},
		{"-in", in, "-max-wait", "0s"},
		{"-in", in, "-probe-every", "-1s"},
		{"-in", in, "-practice", "-base-url", "http://h"},
		{"-in", in, "-retry-failed"},
		{"-in", in, "-errors", "-"},
		{"-in", in, "-out", "x", "-errors", "x"},
		{"-in", in, "-max-cost", "1"},
		{"-in", in, "-prices", in},
		{"-in", in, "-limits", "gpt-4o"},
		{"-in", in, "-limits", "gpt-4o=1/2/3/4"},
		{"-in", in, "-limits", "gpt-4o=1/x"},
		{"-in", in, "-limits", "a=1/2,a=1/2"},
		{"-in", in, "-priority", "high"},
		{"-in", in, "-out", "x", "-redis", "redis://h", "-practice"},
		{"-in", in, "-redis", "redis://h"},
		{"-in", "-", "-out", "x", "-redis", "redis://h"},
		{"-in", in, "-out", "x", "-redis-env", "NONE"},
		{"-in", in, "-job", "x"},
		{"-in", in, "-lease", "1ms"},
	} {
		var stderr bytes.Buffer
		if code := Run(args, keyEnv, nil, nil, io.Discard, &stderr); code != ExitUsage || stderr.Len() == 0 {
			t.Errorf("%v: code %d, %q", args, code, stderr.String())
		}
	}
}

// A wrong flag is reported by its name, and not with fields of the library.
func TestFlagErrorsNameTheFlag(t *testing.T) {
	in := write(t, lineFor("a"))
	for want, args := range map[string][]string{
		"-rpm is -4: it must be from 1 to 1000000000000":            {"-rpm", "-4"},
		"-tpm is 2000000000000: it must":                            {"-tpm", "2000000000000", "-practice"},
		"-itpm is -1: it must":                                      {"-itpm", "-1", "-dry-run"},
		"-otpm is -1: it must":                                      {"-otpm", "-1", "-practice"},
		`"2000000000000" is not a limit: it must be from 0 to 1000`: {"-limits", "gpt-4o=1/2000000000000"},
		`unexpected argument "more.jsonl": files are named by`:      {"more.jsonl"},
	} {
		var stderr bytes.Buffer
		code := Run(append([]string{"-in", in}, args...), keyEnv, nil, nil, io.Discard, &stderr)
		if code != ExitUsage || !strings.Contains(stderr.String(), want) || strings.Contains(stderr.String(), "Limits[") {
			t.Errorf("%v: code %d, %q, want %q", args, code, stderr.String(), want)
		}
	}
}

// A file larger than the memory allowed passes through.
func TestBoundedMemory(t *testing.T) {
	n := 8_000
	if raceEnabled {
		n = 3_000
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	}))
	defer s.Close()
	name := filepath.Join(t.TempDir(), "in.jsonl")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	pad := strings.Repeat("x", 4000)
	for i := range n {
		fmt.Fprintln(w, strings.Replace(lineFor(fmt.Sprint(i)), "Hello", pad, 1))
	}
	w.Flush()
	f.Close()

	runtime.GC() // what other tests left, pools included
	runtime.GC()
	var peak atomic.Uint64
	quit := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				// What a collection found alive: garbage depends on the machine's load.
				live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
				metrics.Read(live)
				peak.Store(max(peak.Load(), live[0].Value.Uint64()))
			case <-quit:
				return
			}
		}
	})
	o := runBatch(t, filepath.Join(t.TempDir(), "out.jsonl"), nil, "-in", name, "-base-url", s.URL, "-in-flight", "64")
	close(quit)
	watching.Wait()
	if int(o.sum.Completed) != n || len(o.answers) != n {
		t.Fatalf("%+v\n%s", o.sum, o.stderr)
	}
	t.Logf("%d requests in %.1f s, live heap at most %d MB", n, o.sum.Seconds, peak.Load()>>20)
	if peak.Load() > 20<<20 || peak.Load() == 0 { // the file is 32 MB, and 64 requests of it are under way
		t.Errorf("heap reached %d MB", peak.Load()>>20)
	}
}

package batch

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/internal/batchfile"
	"github.com/tripmeter/tripmeter/providertest"
)

// Two thousand requests meet a server at fault. None is lost, few more than a row are
// sent, and the message says what to do. After the mend the same command finishes the
// rest.
func TestFaults(t *testing.T) {
	refuse := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	for name, c := range map[string]struct {
		fault http.HandlerFunc
		args  []string
		code  int
		most  int64 // sent
		want  []string
	}{
		"401": {refuse(401, `{"error":{"message":"Incorrect API key provided: sk-canary.","type":"invalid_request_error","code":"invalid_api_key"}}`), nil,
			ExitBlocked, trip, []string{"20 key not accepted (401 invalid_api_key)", "check the key"}},
		"403": {refuse(403, `{"error":{"message":"no access"}}`), nil, ExitBlocked, trip, []string{"key not accepted (403)"}},
		"no model": {refuse(404, `{"error":{"message":"The model does not exist","code":"model_not_found"}}`), nil,
			ExitBlocked, trip, []string{"no such model (404 model_not_found)", "check the name of the model"}},
		"Anthropic, no model": {refuse(404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}`), nil,
			ExitBlocked, trip, []string{"no such model"}},
		"no money": {refuse(429, `{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","code":"insufficient_quota"}}`), nil,
			ExitBlocked, trip, []string{"account without credit (429 insufficient_quota)", "add credit"}},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example", http.StatusFound)
		}, nil, ExitBlocked, trip, []string{"redirected (302)", "-base-url"}},
		"500":         {refuse(500, `{"error":{"message":"The server had an error","type":"server_error"}}`), nil, ExitLeft, trip + 12, []string{"server failing (500 server_error): 20 in a row", "when the server is back"}},
		"half answer": {broken, nil, ExitLeft, trip + 12, []string{"broken answers (the answer broke off): 20 in a row"}},
		"no JSON":     {refuse(200, "<html>"), nil, ExitLeft, trip + 12, []string{"broken answers (200, an answer that is no JSON", "such as a proxy"}},
		"web page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			io.WriteString(w, "<html>Log in</html>")
		}, nil, ExitLeft, trip + 12, []string{"broken answers (200, a web page instead of an answer", "a login page"}},
		"404 path": {func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, nil,
			ExitBlocked, trip, []string{"no such path (404)", "check -base-url"}},
		"405": {refuse(405, `{"error":{"message":"Method Not Allowed"}}`), nil, ExitBlocked, trip, []string{"no such path (405)", "check -base-url"}},
		"400": {refuse(400, `{"error":{"message":"canary","type":"invalid_request_error","code":"unknown_parameter"}}`), nil,
			ExitBlocked, trip, []string{"refused as wrong (400 unknown_parameter)", "check -base-url"}},
		"422": {refuse(422, `{"detail":"canary"}`), nil, ExitBlocked, trip, []string{"refused as wrong (422)"}},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, []string{"-timeout", "100ms"},
			ExitLeft, trip + 12, []string{"no connection (no answer in time)"}},
		"429, a day": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "86400")
			refuse(429, `{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}`)(w, r)
		}, nil, ExitLeft, trip, []string{"a wait of 24h0m0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mended atomic.Bool
			var sent atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				sent.Add(1)
				if mended.Load() {
					status(200, usage12)(w, r)
					return
				}
				c.fault(w, r)
			}))
			defer s.Close()
			out := filepath.Join(t.TempDir(), "out.jsonl")
			n := 2000
			if name == "405" || name == "400" || name == "422" {
				n = 200
			}
			args := append([]string{"-in", write(t, linesFor(n)...), "-base-url", s.URL, "-rpm", "10000000", "-probe-every", "100ms", "-max-wait", "1s"}, c.args...)
			o := runBatch(t, out, nil, args...)
			if o.code != c.code || len(o.answers) != 0 || o.sum.Left != int64(n) || sent.Load() > c.most || sent.Load() == 0 {
				t.Errorf("code %d, %d lines, %d sent, %+v\n%s", o.code, len(o.answers), sent.Load(), o.sum, o.stderr)
			}
			for _, want := range c.want {
				if !strings.Contains(o.stderr, want) {
					t.Errorf("no %q in\n%s", want, o.stderr)
				}
			}
			if strings.Contains(o.stderr, "canary") {
				t.Error("the provider's message, which quotes the key, is printed")
			}
			mended.Store(true)
			before := sent.Load()
			if o = runBatch(t, out, nil, append(args, "-timeout", "10m")...); o.code != ExitDone || len(o.answers) != n || sent.Load()-before != int64(n) {
				t.Errorf("after the mend: code %d, %d lines, %d sent\n%s", o.code, len(o.answers), sent.Load()-before, o.stderr)
			}
		})
	}
}

// A server that is away for a while holds the job, which goes on by itself: all
// requests are answered in one run. In vain are sent those that were under way when
// it went, a row, and the probes.
func TestServerAwayForAWhile(t *testing.T) {
	for _, inFlight := range []int{16, 200} {
		t.Run(fmt.Sprint(inFlight), func(t *testing.T) {
			t.Parallel()
			serverAway(t, inFlight)
		})
	}
}

func serverAway(t *testing.T, inFlight int) {
	const every = 300 * time.Millisecond
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := new(atomic.Int64)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		served.Add(1)
		status(200, usage12)(w, r)
	})
	first := &http.Server{Handler: h}
	go first.Serve(l)
	type outage struct {
		second *http.Server
		took   time.Duration
		err    error
	}
	over := make(chan outage, 1)
	go func() {
		for served.Load() < 500 {
			time.Sleep(time.Millisecond)
		}
		gone := time.Now()
		first.Close()
		time.Sleep(3 * time.Second)
		again, err := net.Listen("tcp", l.Addr().String())
		second := &http.Server{Handler: h}
		over <- outage{second, time.Since(gone), err}
		if err == nil {
			second.Serve(again)
		}
	}()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	o := runBatch(t, out, nil, "-in", write(t, linesFor(2000)...), "-base-url", "http://"+l.Addr().String(), "-rpm", "10000000",
		"-in-flight", fmt.Sprint(inFlight), "-probe-every", every.String(), "-max-wait", "1m")
	was := <-over
	was.second.Close()
	if was.err != nil {
		t.Fatal(was.err)
	}
	if o.code != ExitDone || len(o.answers) != 2000 || !strings.Contains(o.stderr, "no connection (") || !strings.Contains(o.stderr, "in a row") {
		t.Fatalf("code %d, %d lines, %+v\n%s", o.code, len(o.answers), o.sum, o.stderr)
	}
	extra, probes := o.sum.WireAttempts-2000, int64(was.took/every)+1
	t.Logf("%d attempts more than requests in %v\n%s", extra, was.took, o.stderr)
	if extra > int64(trip+inFlight)+probes {
		t.Errorf("%d attempts more than requests, of them %d probes at most", extra, probes)
	}
}

// A host without an address stops nothing for good, and says what is wrong.
func TestNoSuchHost(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.jsonl")
	o := runBatch(t, out, nil, "-in", write(t, linesFor(100)...), "-base-url", "http://nobody.invalid", "-rpm", "100000", "-probe-every", "50ms", "-max-wait", "200ms")
	if o.code != ExitLeft || len(o.answers) != 0 || o.sum.Left != 100 || !strings.Contains(o.stderr, "host") {
		t.Fatalf("code %d, %+v\n%s", o.code, o.sum, o.stderr)
	}
}

// Of two models one is not there and one is: the lines of the other are
// answered.
func TestOneModelMissing(t *testing.T) {
	var missing atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if strings.Contains(string(b), "gone") {
			missing.Add(1)
			status(404, `{"error":{"message":"The model does not exist","code":"model_not_found"}}`)(w, r)
			return
		}
		status(200, usage12)(w, r)
	}))
	defer s.Close()
	lines := linesFor(400)
	for i := 0; i < 400; i += 2 {
		lines[i] = strings.Replace(lines[i], "gpt-4o-mini", "gone", 1)
	}
	out := filepath.Join(t.TempDir(), "out.jsonl")
	o := runBatch(t, out, nil, "-in", write(t, lines...), "-base-url", s.URL, "-rpm", "1000000")
	if o.code != ExitBlocked || len(o.answers) != 200 || o.sum.Left != 200 || missing.Load() != trip {
		t.Fatalf("code %d, %d lines, %d sent in vain, %+v\n%s", o.code, len(o.answers), missing.Load(), o.sum, o.stderr)
	}
}

// Ctrl-C under refusals ends at once: nothing is on the wire.
func TestInterruptUnderRefusals(t *testing.T) {
	var sent atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		sent.Add(1)
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(429)
	}))
	defer s.Close()
	stop := make(chan os.Signal, 2)
	var asked atomic.Int64
	go func() {
		for sent.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		asked.Store(time.Now().UnixNano())
		stop <- os.Interrupt
	}()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	o := runBatch(t, out, stop, "-in", write(t, linesFor(200)...), "-base-url", s.URL, "-rpm", "100000")
	if took := time.Since(time.Unix(0, asked.Load())); o.code != ExitLeft || took > 5*time.Second || len(o.answers) != 0 {
		t.Fatalf("code %d after %v, %+v\n%s", o.code, took, o.sum, o.stderr)
	}
}

// Two models with limits twenty times apart, and nothing configured: each has
// the budget that its own answers name.
func TestModelsLearnTheirOwnLimits(t *testing.T) {
	p, url := serve(t, providertest.Options{
		ModelLimits: map[string]providertest.Limits{"small": {RPM: 600}, "gpt-4o-mini": {RPM: 12_000}},
		Capacity:    2 * time.Second,
	})
	lines := linesFor(400)
	for i := 0; i < 400; i += 20 {
		lines[i] = strings.Replace(lines[i], "gpt-4o-mini", "small", 1)
	}
	out := filepath.Join(t.TempDir(), "out.jsonl")
	o := runBatch(t, out, nil, "-in", write(t, lines...), "-base-url", url)
	if o.code != ExitDone || len(o.answers) != 400 || p.Stats().Refused > 8 || o.sum.Seconds > 20 {
		t.Fatalf("code %d, %d lines, %d refused, %.1f s\n%s", o.code, len(o.answers), p.Stats().Refused, o.sum.Seconds, o.stderr)
	}
}

// Limits by model are kept for each model.
func TestLimitsByModel(t *testing.T) {
	p, url := serve(t, providertest.Options{ModelLimits: map[string]providertest.Limits{"small": {RPM: 60}, "gpt-4o-mini": {RPM: 6000}}})
	lines := linesFor(100)
	lines[0], lines[1] = strings.Replace(lines[0], "gpt-4o-mini", "small", 1), strings.Replace(lines[1], "gpt-4o-mini", "small", 1)
	out := filepath.Join(t.TempDir(), "out.jsonl")
	o := runBatch(t, out, nil, "-in", write(t, lines...), "-base-url", url, "-limits", "small=60/100000,gpt-4o-mini=6000/10000000")
	if o.code != ExitDone || len(o.answers) != 100 || p.Stats().Refused != 0 {
		t.Fatalf("code %d, %d lines, %d refused\n%s", o.code, len(o.answers), p.Stats().Refused, o.stderr)
	}
}

// Practice answers are made only when asked for, and never mixed with others.
func TestPractice(t *testing.T) {
	_, url := serve(t, providertest.Options{})
	in, dir := write(t, lineFor("a")), t.TempDir()
	played, real := filepath.Join(dir, "played.jsonl"), filepath.Join(dir, "real.jsonl")
	run := func(env func(string) string, args ...string) (int, string) {
		var stderr strings.Builder
		return Run(append([]string{"-in", in}, args...), env, nil, nil, io.Discard, &stderr), stderr.String()
	}
	if code, said := run(noEnv, "-out", played); code != ExitUsage || !strings.Contains(said, "no key") || !strings.Contains(said, "-practice") {
		t.Errorf("without a key: code %d, %s", code, said)
	}
	if code, said := run(keyEnv, "-out", played, "-practice"); code != ExitDone {
		t.Errorf("practice: code %d, %s", code, said)
	}
	if code, said := run(keyEnv, "-out", played, "-base-url", url); code != ExitUsage || !strings.Contains(said, "invented") {
		t.Errorf("real after practice: code %d, %s", code, said)
	}
	if code, said := run(keyEnv, "-out", real, "-base-url", url); code != ExitDone {
		t.Errorf("real: code %d, %s", code, said)
	}
	if code, said := run(keyEnv, "-out", real, "-practice"); code != ExitUsage || !strings.Contains(said, "real answers") {
		t.Errorf("practice after real: code %d, %s", code, said)
	}
	// A file that examples/batch began without a key, against a provider elsewhere.
	if code, said := run(keyEnv, "-out", real, "-base-url", "https://api.example.com"); code != ExitUsage || !strings.Contains(said, "invented") {
		t.Errorf("an old practice file: code %d, %s", code, said)
	}
}

// Errors go to a file of their own, in the Batch API's format; -retry-failed
// takes them out and sends their requests again.
func TestErrorsFileAndRetryFailed(t *testing.T) {
	var mended atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if strings.Contains(string(b), "Hello r1") && !mended.Load() {
			status(400, `{"error":{"message":"no"}}`)(w, r)
			return
		}
		status(200, usage12)(w, r)
	}))
	defer s.Close()
	dir := t.TempDir()
	for _, errs := range []string{"", filepath.Join(dir, "errors.jsonl")} {
		mended.Store(false)
		out := filepath.Join(dir, "out"+filepath.Base(errs))
		args := []string{"-in", write(t, append(linesFor(20), "{}")...), "-base-url", s.URL, "-rpm", "1000000"}
		if errs != "" {
			args = append(args, "-errors", errs)
		}
		o := runBatch(t, out, nil, args...)
		if o.code != ExitFailed || o.sum.Completed != 9 || o.sum.Failed != 11 || errs != "" && (len(o.answers) != 9 || len(o.bad) != 0) {
			t.Errorf("errors %q: code %d, %d lines, %+v\n%s", errs, o.code, len(o.answers), o.sum, o.stderr)
		}
		if errs != "" {
			b, _ := os.ReadFile(errs)
			if n := strings.Count(string(b), "\n"); n != 12 || strings.Count(string(b), `"status_code":400`) != 11 || !strings.Contains(string(b), `"code":"invalid_line"`) {
				t.Errorf("%d lines in\n%s", n, b)
			}
		}
		if o = runBatch(t, out, nil, args...); o.code != ExitFailed || o.sum.WireAttempts != 0 {
			t.Errorf("errors %q, again: code %d, %+v", errs, o.code, o.sum)
		}
		mended.Store(true)
		if o = runBatch(t, out, nil, append(args, "-retry-failed")...); o.code != ExitFailed || len(o.answers) != 20 || o.sum.WireAttempts != 11 || o.sum.BadLines != 1 {
			t.Errorf("errors %q, -retry-failed: code %d, %d lines, %+v\n%s", errs, o.code, len(o.answers), o.sum, o.stderr)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// Each request that is left has a line in the errors that says why, and the next run
// takes it out: in the end each request has one line.
func TestErrorsOfWhatIsLeft(t *testing.T) {
	var mended atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		switch {
		case mended.Load():
			status(200, usage12)(w, r)
		case strings.Contains(string(b), "gone"):
			status(404, `{"error":{"message":"The model does not exist","code":"model_not_found"}}`)(w, r)
		case strings.Contains(string(b), "Hello r1\""):
			status(200, usage12)(w, r)
		default:
			status(401, `{"error":{"message":"sk-canary"}}`)(w, r)
		}
	}))
	defer s.Close()
	lines := linesFor(300)
	for i := 0; i < 300; i += 3 {
		lines[i] = strings.Replace(lines[i], "gpt-4o-mini", "gone", 1)
	}
	dir := t.TempDir()
	out, errs := filepath.Join(dir, "out.jsonl"), filepath.Join(dir, "errors.jsonl")
	args := []string{"-in", write(t, append(lines, "{}")...), "-base-url", s.URL, "-rpm", "1000000", "-errors", errs}
	o := runBatch(t, out, nil, args...)
	b, _ := os.ReadFile(errs)
	text := string(b)
	if o.code != ExitBlocked || len(o.answers) != 1 || strings.Count(text, `"code":"left_`) != 299 || strings.Count(text, `"r2"`) != 1 ||
		!strings.Contains(text, `"error":{"code":"left_key","message":"key not accepted (401); the next run sends it"}`) || strings.Contains(text, "canary") {
		t.Fatalf("code %d, %d lines, %+v\n%s\n%.3000s", o.code, len(o.answers), o.sum, o.stderr, text)
	}
	o = runBatch(t, out, nil, args...)
	if b, _ = os.ReadFile(errs); o.code != ExitBlocked || len(o.answers) != 1 || strings.Count(string(b), `"code":"left_`) != 299 {
		t.Errorf("again: code %d, %d lines\n%s\n%.3000s", o.code, len(o.answers), o.stderr, b)
	}
	mended.Store(true)
	o = runBatch(t, out, nil, args...)
	if b, _ = os.ReadFile(errs); o.code != ExitFailed || len(o.answers) != 300 || strings.Count(string(b), "\n") != 1 || !strings.Contains(string(b), "invalid_line") {
		t.Errorf("after the mend: code %d, %d lines\n%s\n%s", o.code, len(o.answers), o.stderr, b)
	}
}

// A refusal as wrong is an answer as soon as the model has answered anything. It is one
// too if fewer than a row were refused: that does not show a wrong address.
func TestRefusedAsWrong(t *testing.T) {
	url, served := answering(t, status(400, `{}`), status(404, `{}`), status(400, `{}`), status(200, usage12), status(422, `{}`))
	out := filepath.Join(t.TempDir(), "out.jsonl")
	o := runBatch(t, out, nil, "-in", write(t, linesFor(60)...), "-base-url", url, "-in-flight", "1")
	if o.code != ExitFailed || len(o.answers) != 60 || o.sum.Failed != 59 || o.sum.Left != 0 || served.Load() != 60 {
		t.Errorf("after an answer: code %d, %d lines, %+v\n%s", o.code, len(o.answers), o.sum, o.stderr)
	}
	url, _ = answering(t, status(404, `{}`))
	out = filepath.Join(t.TempDir(), "out.jsonl")
	if o = runBatch(t, out, nil, "-in", write(t, linesFor(trip-1)...), "-base-url", url); o.code != ExitFailed || len(o.answers) != trip-1 {
		t.Errorf("a short file: code %d, %d lines, %+v\n%s", o.code, len(o.answers), o.sum, o.stderr)
	}
}

// -max-cost is not passed with all that is under way, and the job can go on.
func TestMaxCost(t *testing.T) {
	p, url := serve(t, providertest.Options{Output: providertest.Constant(50)})
	list := filepath.Join(t.TempDir(), "prices.json")
	// 50 tokens out at 1,000 a million: 0.05 each, and the prompt is free.
	os.WriteFile(list, []byte(`{"gpt-4o":{"input":0,"output":1000}}`), 0o600)
	lines := linesFor(40)
	for i := range lines {
		lines[i] = strings.Replace(lines[i], "gpt-4o-mini", "gpt-4o-2024-08-06", 1)
	}
	out := filepath.Join(t.TempDir(), "out.jsonl")
	args := []string{"-in", write(t, lines...), "-base-url", url, "-rpm", "1000000", "-prices", list}
	o := runBatch(t, out, nil, append(args, "-max-cost", "1.02")...)
	if o.code != ExitCost || len(o.answers) != 20 || o.sum.Cost != 1 || p.Stats().Completed != 20 || !strings.Contains(o.stderr, "-max-cost $1.02: $1.00 is spent") {
		t.Fatalf("code %d, %d lines, %+v\n%s", o.code, len(o.answers), o.sum, o.stderr)
	}
	if o = runBatch(t, out, nil, append(args, "-max-cost", "100")...); o.code != ExitDone || len(o.answers) != 40 || o.sum.Cost != 1 {
		t.Fatalf("code %d, %d lines, %+v\n%s", o.code, len(o.answers), o.sum, o.stderr)
	}
}

// A dry run counts what is left, and sends and writes nothing.
func TestDryRun(t *testing.T) {
	dir := t.TempDir()
	list, out := filepath.Join(dir, "prices.json"), filepath.Join(dir, "out.jsonl")
	os.WriteFile(list, []byte(`{"gpt-4o-mini":{"input":0.15,"output":0.60}}`), 0o600)
	const before = `{"id":"batch_req_1","custom_id":"r0","response":{"status_code":200,"request_id":"","body":{}},"error":null}` + "\n"
	os.WriteFile(out, []byte(before), 0o600)
	lines := append(linesFor(121), "rubbish", strings.Replace(lineFor("x"), "gpt-4o-mini", "dear", 1))
	var stdout, stderr strings.Builder
	code := Run([]string{"-in", write(t, lines...), "-out", out, "-dry-run", "-rpm", "60", "-prices", list}, noEnv, nil, nil, &stdout, &stderr)
	text := stdout.String()
	for _, want := range []string{"gpt-4o-mini", "120", "6.0k", "no price", "2.0", "1 answered before, 1 bad lines; nothing was sent"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if i, _ := os.Stat(out); code != ExitFailed || i.Size() != int64(len(before)) || !strings.Contains(stderr.String(), "line 122") {
		t.Errorf("code %d, %d bytes\n%s", code, i.Size(), stderr.String())
	}
}

func TestMoney(t *testing.T) {
	for s, want := range map[string]nano{"0.15": 150, "0": 0, "1000": 1_000_000, "0.001": 1, "12.340": 12_340, "0.10000": 100} {
		if got, err := money(s, 3); err != nil || got != want {
			t.Errorf("%s is %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", ".", "-1", "1e3", "0.0001", "12345678", "x"} {
		if got, err := money(s, 3); err == nil {
			t.Errorf("%q is %d", s, got)
		}
	}
	if got := (price{input: 150, cached: 75, output: 600}).cost(1000, 400, 10); got != 600*150+400*75+10*600 {
		t.Errorf("cost %d", got)
	}
}

// A disk that fills up in the middle of a line leaves whole lines.
func TestFullDiskLeavesWholeLines(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out.jsonl")
	a, _, err := open(name, nil, newIDs(), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.w = &filling{File: a.f, left: 1000}
	id, n := "a", 0
	for err == nil {
		_, err = a.write(batchfile.Answer{ID: "batch_req_1", CustomID: &id, Response: &batchfile.Response{StatusCode: 200, Body: []byte("{}")}})
		n++
	}
	if !errors.Is(err, syscall.ENOSPC) || n < 5 {
		t.Fatalf("%v after %d lines", err, n)
	}
	a.Close()
	b, _ := os.ReadFile(name)
	if strings.Count(string(b), "\n") != n-1 || !strings.HasSuffix(string(b), "\n") {
		t.Errorf("%d lines of %d, ending in %q", strings.Count(string(b), "\n"), n-1, b[len(b)-10:])
	}
}

// filling is a file on a disk that has room for so many bytes more.
type filling struct {
	*os.File
	left int
}

func (f *filling) Write(b []byte) (int, error) {
	if len(b) <= f.left {
		f.left -= len(b)
		return f.File.Write(b)
	}
	n, _ := f.File.Write(b[:f.left])
	f.left = 0
	return n, syscall.ENOSPC
}

// Resuming takes at most 64 bytes for an id.
func TestMemoryOfAnID(t *testing.T) {
	const n = 100_000
	name := filepath.Join(t.TempDir(), "out.jsonl")
	writeAnswers(t, name, n)
	before := liveHeap()
	done := newIDs()
	a, was, err := open(name, nil, done, false, nil)
	if err != nil || was.lines != n {
		t.Fatal(was, err)
	}
	a.Close()
	each := (liveHeap() - before) / n
	runtime.KeepAlive(done)
	t.Logf("%d bytes an id", each)
	if each > 64 || each == 0 || done.mark("id-99999-with-a-name-of-some-length", 0) != answered {
		t.Errorf("%d bytes an id", each)
	}
}

// liveHeap is what is alive after a collection, in bytes.
func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func writeAnswers(t testing.TB, name string, n int) {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"id":"batch_req_%d","custom_id":"id-%d-with-a-name-of-some-length","response":{"status_code":200,"request_id":"req_%d","body":{"id":"chatcmpl-1","choices":[{"index":0,"message":{"role":"assistant","content":"Some text that a model wrote, and a little more of it."}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}},"error":null}`+"\n", i, i, i)
	}
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkResume is the time to read an output of a million answers.
func BenchmarkResume(b *testing.B) {
	name := filepath.Join(b.TempDir(), "out.jsonl")
	writeAnswers(b, name, 1_000_000)
	for b.Loop() {
		before := liveHeap()
		done := newIDs()
		a, was, err := open(name, nil, done, false, nil)
		if err != nil || was.lines != 1_000_000 {
			b.Fatal(was, err)
		}
		b.ReportMetric(float64(liveHeap()-before)/1e6, "B/id")
		runtime.KeepAlive(done)
		a.Close()
	}
}

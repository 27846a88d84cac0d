package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tripmeter/tripmeter/internal/batchfile"
)

// answering serves the answers of a script, one a request; the last is repeated.
func answering(t *testing.T, script ...http.HandlerFunc) (url string, served *atomic.Int64) {
	t.Helper()
	served = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		n := int(served.Add(1))
		script[min(n, len(script))-1](w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, served
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

func broken(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "100")
	io.WriteString(w, `{"half`)
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

const usage12 = `{"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`

// What editors and other systems make of a file of lines.
func TestInputForms(t *testing.T) {
	ids := []string{"a", "ключ", "鍵 \u2028 <&>", `"quoted"\`, strings.Repeat("x", 5000)}
	var ls []string
	for _, id := range ids {
		b, _ := json.Marshal(id)
		ls = append(ls, fmt.Sprintf(`{"custom_id":%s,"method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[]}}`, b))
	}
	long := `{"custom_id":"` + strings.Repeat("y", batchfile.MaxLine) + `"}`
	for name, in := range map[string]struct {
		text string
		bad  int64
	}{
		"plain":           {strings.Join(ls, "\n") + "\n", 0},
		"no last newline": {strings.Join(ls, "\n"), 0},
		"CRLF":            {strings.Join(ls, "\r\n") + "\r\n", 0},
		"byte order mark": {"\uFEFF" + strings.Join(ls, "\n"), 0},
		"blank lines":     {"\n\n \t\r\n" + strings.Join(ls, "\n\n") + "\n\n", 0},
		"spaces":          {"  " + strings.Join(ls, "  \n\t") + " ", 0},
		"bad lines": {"\x00\xff\n[]\n{}\nnull\n\"x\"\n{\"custom_id\":7}\n" + ls[0][:20] + "\n" + strings.Join(ls, "\n") +
			"\n" + ls[0] + " trailing\n" + ls[0], 9},
		"too long a line": {long + "\n" + strings.Join(ls, "\n") + "\n" + long, 2},
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := answering(t, status(200, usage12))
			file := filepath.Join(t.TempDir(), "in.jsonl")
			if err := os.WriteFile(file, []byte(in.text), 0o600); err != nil {
				t.Fatal(err)
			}
			o := runBatch(t, filepath.Join(t.TempDir(), "out.jsonl"), nil, "-in", file, "-base-url", url, "-rpm", "1000000")
			code := ExitDone
			if in.bad > 0 {
				code = ExitFailed
			}
			if o.code != code || o.sum.Completed != int64(len(ids)) || o.sum.BadLines != in.bad || int64(len(o.bad)) != in.bad {
				t.Fatalf("code %d, %+v\n%.2000s", o.code, o.sum, o.stderr)
			}
			for _, id := range ids {
				if o.answers[id].Response == nil {
					t.Errorf("no answer to %.40q", id)
				}
			}
			var stdout bytes.Buffer
			got := Run([]string{"-in", "-", "-base-url", url, "-rpm", "1000000"}, noEnv, nil, strings.NewReader(in.text), &stdout, io.Discard)
			if got != code || strings.Count(stdout.String(), "\n") != len(ids)+int(in.bad) {
				t.Errorf("through standard input: code %d, %d lines", got, strings.Count(stdout.String(), "\n"))
			}
		})
	}
}

// A pipe can be read once only.
func TestPipes(t *testing.T) {
	url, _ := answering(t, status(200, usage12))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() { fmt.Fprintln(w, lineFor("a")); fmt.Fprintln(w, lineFor("b")); w.Close() }()
	in, _, err := openRequests(fmt.Sprintf("/dev/fd/%d", r.Fd()), nil)
	if os.IsNotExist(err) {
		t.Log("no /dev/fd on this system")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	o := runBatch(t, filepath.Join(t.TempDir(), "out.jsonl"), nil, "-in", fmt.Sprintf("/dev/fd/%d", r.Fd()), "-base-url", url)
	if o.code != ExitDone || len(o.answers) != 2 {
		t.Fatalf("code %d, %v\n%s", o.code, o.order, o.stderr)
	}
}

// A device that can be read for ever holds nothing to go on from; one that is
// full ends the job.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Log("no /dev/full on this system")
		return
	}
	url, served := answering(t, status(200, usage12))
	var lines []string
	for i := range 100 {
		lines = append(lines, lineFor(fmt.Sprint(i)))
	}
	var stderr bytes.Buffer
	code := Run([]string{"-in", write(t, lines...), "-out", "/dev/full", "-base-url", url, "-in-flight", "2", "-rpm", "100000"}, noEnv, nil, nil, io.Discard, &stderr)
	if code != ExitBroken || !strings.Contains(stderr.String(), "no space left") || served.Load() > 80 {
		t.Fatalf("code %d, %d served\n%s", code, served.Load(), &stderr)
	}
}

// What cannot be read or written is said before anything is sent.
func TestFilesThatAreNotThere(t *testing.T) {
	url, served := answering(t, status(200, usage12))
	in, dir := write(t, lineFor("a")), t.TempDir()
	for _, args := range [][]string{
		{"-in", filepath.Join(dir, "none.jsonl")},
		{"-in", dir},
		{"-in", in, "-out", dir},
		{"-in", in, "-out", filepath.Join(dir, "none", "out.jsonl")},
		{"-in", in, "-summary", filepath.Join(dir, "none", "sum.json")},
		{"-in", in, "-out", in},
	} {
		var stderr bytes.Buffer
		code := Run(append(args, "-base-url", url), noEnv, nil, nil, io.Discard, &stderr)
		if code != ExitUsage || stderr.Len() == 0 || served.Load() != 0 {
			t.Errorf("%v: code %d, %d served\n%s", args, code, served.Load(), &stderr)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Only a beginning of a line of ours is removed from an output.
func TestResumeForms(t *testing.T) {
	whole := `{"id":"batch_req_1","custom_id":"a","response":{"status_code":200,"request_id":"","body":{}},"error":null}`
	failed := strings.Replace(strings.Replace(whole, `"a"`, `"b"`, 1), "200", "400", 1)
	for name, c := range map[string]struct {
		text    string
		skipped int64
		lines   int
		refused bool
		failed  bool
	}{
		"empty":                 {text: "", lines: 2},
		"whole":                 {text: whole + "\n", skipped: 1, lines: 2},
		"whole, CRLF":           {text: whole + "\r\n", skipped: 1, lines: 2},
		"whole, no newline":     {text: whole, skipped: 1, lines: 2},
		"cut":                   {text: whole + "\n" + whole[:60], skipped: 1, lines: 2},
		"cut after one byte":    {text: whole + "\n{", skipped: 1, lines: 2},
		"only a cut line":       {text: whole[:30], lines: 2},
		"of the Batch API":      {text: `{"id": "batch_req_abc", "custom_id": "a", "response": {"status_code": 200}, "error": null}` + "\n", skipped: 1, lines: 2},
		"an error of ours":      {text: `{"id":"batch_req_1","custom_id":"a","response":null,"error":{"code":"x","message":"y"}}` + "\n", skipped: 1, lines: 2, failed: true},
		"foreign":               {text: "dear diary\n", refused: true},
		"foreign, no newline":   {text: "dear diary", refused: true},
		"a file of requests":    {text: lineFor("a") + "\n", refused: true},
		"foreign after answers": {text: whole + "\ndear diary", refused: true},
		"zeros":                 {text: whole + "\n" + strings.Repeat("\x00", 4096), skipped: 1, lines: 2},
		"only zeros":            {text: strings.Repeat("\x00", 512), lines: 2},
		"half a line and zeros": {text: whole + "\n" + whole[:60] + strings.Repeat("\x00", 4000), skipped: 1, lines: 2},
		"zeros with newlines":   {text: whole + "\n\x00\x00\n\x00" + strings.Repeat("\x00", 100), skipped: 1, lines: 2},
		"torn in the middle":    {text: whole[:60] + "\n" + whole + "\n", refused: true},
		// Blocks reach the disk in any order: after a power cut zeros stand in the place of
		// those that did not.
		"zeros and the end of a line":   {text: whole + "\n" + strings.Repeat("\x00", 4096) + whole[60:] + "\n", skipped: 1, lines: 2},
		"zeros and a part of a line":    {text: whole + "\n" + strings.Repeat("\x00", 4096) + whole[60:80], skipped: 1, lines: 2},
		"zeros before a line":           {text: strings.Repeat("\x00", 512) + whole + "\n", skipped: 1, lines: 2},
		"zeros between lines":           {text: failed + "\n" + strings.Repeat("\x00", 512) + whole[60:] + "\n" + whole + "\n", skipped: 2, lines: 2, failed: true},
		"zeros in a line":               {text: failed + "\n" + whole[:60] + strings.Repeat("\x00", 512) + "\n" + whole + "\n", skipped: 2, lines: 2, failed: true},
		"zeros behind a whole line":     {text: whole + strings.Repeat("\x00", 512), skipped: 1, lines: 2},
		"two torn ends":                 {text: whole + "\n" + whole[:60] + "\n" + whole[:20], skipped: 1, lines: 2},
		"zeros, then foreign":           {text: "\x00\x00dear diary\n", refused: true},
		"foreign with zeros":            {text: "SQLite format 3\x00\x10\x00\n\x00\x00\n", refused: true},
		"foreign behind zeros of a cut": {text: whole + "\n" + whole[:60] + "\x00\ndear diary\n", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := answering(t, status(200, usage12))
			out := filepath.Join(t.TempDir(), "out.jsonl")
			if err := os.WriteFile(out, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"-in", write(t, lineFor("a"), lineFor("b")), "-base-url", url, "-rpm", "100000"}
			if c.refused {
				if code := Run(append(args, "-out", out), noEnv, nil, nil, io.Discard, io.Discard); code != ExitUsage {
					t.Errorf("code %d", code)
				}
				if b, _ := os.ReadFile(out); string(b) != c.text {
					t.Errorf("the file was changed: %q", b)
				}
				return
			}
			o := runBatch(t, out, nil, args...)
			code := ExitDone
			if c.failed {
				code = ExitFailed
			}
			if o.code != code || o.sum.Skipped != c.skipped || len(o.answers) != c.lines {
				t.Fatalf("code %d, %v, %+v\n%s", o.code, o.order, o.sum, o.stderr)
			}
			if b, _ := os.ReadFile(out); bytes.IndexByte(b, 0) >= 0 {
				t.Errorf("zeros are left: %q", b)
			}
		})
	}
}

// An answer line above batchfile.MaxLine is still known when the job goes on.
func TestResumeAfterALongAnswer(t *testing.T) {
	url, served := answering(t, status(200, `"`+strings.Repeat("z", batchfile.MaxLine)+`"`))
	in, out := write(t, lineFor("a")), filepath.Join(t.TempDir(), "out.jsonl")
	for range 2 {
		if code := Run([]string{"-in", in, "-out", out, "-base-url", url}, noEnv, nil, nil, io.Discard, io.Discard); code != ExitDone {
			t.Fatal(code)
		}
	}
	if served.Load() != 1 {
		t.Errorf("%d served", served.Load())
	}
}

// Ctrl-C does not wait for standard input.
func TestInterruptWhileInputIsSilent(t *testing.T) {
	silent, w := io.Pipe()
	defer w.Close()
	stop := make(chan os.Signal, 2)
	stop <- os.Interrupt
	if code := Run([]string{"-in", "-", "-practice"}, noEnv, stop, silent, io.Discard, io.Discard); code != ExitLeft {
		t.Fatal(code)
	}
}

// The figures of a script of answers, exactly. A refusal for the rate is sent
// again however often; a failure as often as -attempts says while others are
// answered, and then it is left for the next run.
func TestSummary(t *testing.T) {
	var mu sync.Mutex
	scripts := map[string][]http.HandlerFunc{
		"a": {status(200, usage12)},
		"b": {status(429, `{"error":{"code":"rate_limit_exceeded"}}`), status(503, ``), status(200, usage12)},
		"c": {status(400, `{"error":{"message":"no"}}`)},
		"d": {broken, status(200, usage12)},
		"e": {status(429, `{}`), status(429, `{}`), status(429, `{}`), status(200, usage12)},
		"f": {broken, broken, broken},
	}
	var served int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, id, _ := strings.Cut(string(b), "Hello ")
		id = id[:1]
		mu.Lock()
		answer := status(500, "asked too often")
		if left := scripts[id]; len(left) > 0 {
			answer, scripts[id] = left[0], left[1:]
		}
		served++
		mu.Unlock()
		answer(w, r)
	}))
	defer s.Close()
	var lines []string
	for id := range scripts {
		lines = append(lines, lineFor(id))
	}
	o := runBatch(t, filepath.Join(t.TempDir(), "out.jsonl"), nil, "-in", write(t, append(lines, "bad")...), "-base-url", s.URL, "-attempts", "3", "-rpm", "100000")
	want := summary{
		Requests: 6, Completed: 4, Failed: 1, Left: 1, Refused429: 4, WireAttempts: served, InputTokens: 4, OutputTokens: 8, BadLines: 1,
		Seconds: o.sum.Seconds, LongestWait: o.sum.LongestWait, Kinds: o.sum.Kinds,
	}
	if o.code != ExitLeft || fmt.Sprint(o.sum) != fmt.Sprint(want) || served < 14 || served > 15 {
		t.Fatalf("code %d, %d served\ngot  %+v\nwant %+v\n%s", o.code, served, o.sum, want, o.stderr)
	}
	if o.sum.Seconds <= 0 || o.sum.LongestWait < 0 || o.sum.LongestWait > o.sum.Seconds {
		t.Errorf("%+v", o.sum)
	}
	for id, code := range map[string]int{"a": 200, "b": 200, "c": 400, "d": 200, "e": 200} {
		if r := o.answers[id].Response; r == nil || r.StatusCode != code {
			t.Errorf("%s: %+v", id, o.answers[id])
		}
	}
	if a, ok := o.answers["f"]; ok || !strings.Contains(o.stderr, "broke off") {
		t.Errorf("f has a line: %+v\n%s", a, o.stderr)
	}
}

// An answer is kept as it is.
func TestAnswersAreKept(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"JSON":         {`{"b":1e400,"a":"<&>\u2028","n":12345678901234567890}`, `{"b":1e400,"a":"<&>\u2028","n":12345678901234567890}`},
		"spread out":   {"{\n  \"a\": 1\n}\n", `{"a":1}`},
		"text":         {"a <b> & c", `"a <b> & c"`},
		"nothing":      {"", `""`},
		"no text":      {"\xff\xfe\x00", `"data:application/octet-stream;base64,//4A"`},
		"JSON, no UTF": {"\"\xff\"", `"data:application/octet-stream;base64,Iv8i"`},
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := answering(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, c.body) })
			var stdout bytes.Buffer
			if code := Run([]string{"-in", write(t, lineFor("a")), "-base-url", url}, noEnv, nil, nil, &stdout, io.Discard); code != ExitDone {
				t.Fatal(code)
			}
			if want := `"body":` + c.want + `}`; !strings.Contains(stdout.String(), want) {
				t.Errorf("no %s in %s", want, &stdout)
			}
		})
	}
}

// With no limit set nothing is known before the first answer, and the file is
// not thrown at the provider.
func TestFirstAnswerIsAwaited(t *testing.T) {
	second := make(chan struct{})
	early := make(chan int64, 1)
	var n atomic.Int64
	url, served := answering(t, func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) {
		case 1:
			<-second // which does not wait for ever
			early <- n.Load()
		case 2:
			close(second)
		}
		status(200, usage12)(w, r)
	})
	var lines []string
	for i := range 50 {
		lines = append(lines, lineFor(fmt.Sprint(i)))
	}
	o := runBatch(t, filepath.Join(t.TempDir(), "out.jsonl"), nil, "-in", write(t, lines...), "-base-url", url)
	if o.code != ExitDone || len(o.answers) != 50 {
		t.Fatalf("code %d, %d answers", o.code, len(o.answers))
	}
	if got := <-early; got > 5 || served.Load() != 50 {
		t.Errorf("%d were sent before the first answer", got)
	}
}

func TestBaseURL(t *testing.T) {
	in := write(t, lineFor("a"))
	for _, bad := range []string{"api.openai.com", "ftp://x", "https://", "http://h/?key=1", "://"} {
		if code := Run([]string{"-in", in, "-base-url", bad}, keyEnv, nil, nil, io.Discard, io.Discard); code != ExitUsage {
			t.Errorf("%s: code %d", bad, code)
		}
	}
}

// Runs that follow one another at once, each of which writes the file anew, lose no line:
// a run that waits for the file writes to the new one of that name.
func TestTheFileThatIsLockedIsTheOneOfThatName(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out.jsonl")
	link := filepath.Join(t.TempDir(), "link.jsonl")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(name, link); err != nil {
		link = name // no links on this system
	}
	const workers, each = 4, 12
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for k := 0; k < each; {
				a, _, err := open([]string{name, link}[w%2], nil, newIDs(), true, nil)
				if errors.Is(err, errInUse) {
					runtime.Gosched()
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				for status, id := range map[int]string{200: fmt.Sprint("good ", w, k), 500: fmt.Sprint("bad ", w, k)} {
					a.write(batchfile.Answer{ID: realID, CustomID: &id, Response: &batchfile.Response{StatusCode: status, Body: []byte("{}")}})
				}
				if err := a.Close(); err != nil {
					t.Error(err)
				}
				k++
			}
		})
	}
	all.Wait()
	b, err := os.ReadFile(name)
	if n := strings.Count(string(b), `"good `); err != nil || n != workers*each {
		t.Errorf("%d lines of %d are left: %v", n, workers*each, err)
	}
	if i, err := os.Lstat(link); err != nil || link != name && i.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", i.Mode(), err)
	}
}

// A file that is written has no other use.
func TestEachFileHasOneUse(t *testing.T) {
	dir := t.TempDir()
	in := write(t, lineFor("a"))
	text, _ := os.ReadFile(in)
	link := filepath.Join(dir, "link")
	if err := os.Symlink(in, link); err != nil {
		link = in
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, args := range [][]string{
		{"-out", in}, {"-out", link}, {"-out", at("o"), "-errors", in}, {"-out", at("o"), "-summary", in}, {"-out", at("o"), "-record", in}, {"-out", at("o"), "-summary", link},
		{"-out", at("o"), "-errors", at("./o")}, {"-out", at("o"), "-errors", dir + "/x/../o"}, {"-out", at("o"), "-summary", at("o")},
		{"-out", at("o"), "-errors", at("e"), "-summary", at("e")}, {"-out", at("o"), "-record", at("o")}, {"-out", at("r.svg"), "-record", at("r.json")},
		{"-out", at("o"), "-summary", at("s"), "-record", at("s")},
	} {
		var stderr bytes.Buffer
		if code := Run(append([]string{"-in", in, "-practice"}, args...), noEnv, nil, nil, io.Discard, &stderr); code != ExitUsage || !strings.Contains(stderr.String(), "a file of its own") {
			t.Errorf("%v: code %d, %s", args, code, stderr.String())
		}
		if b, _ := os.ReadFile(in); string(b) != string(text) {
			t.Fatalf("%v changed the requests: %q", args, b)
		}
	}
	if code := Run([]string{"-in", in, "-practice", "-out", os.DevNull, "-summary", os.DevNull}, noEnv, nil, nil, io.Discard, io.Discard); code != ExitDone {
		t.Errorf("code %d", code)
	}
}

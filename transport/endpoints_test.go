package transport_test

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/transport"
)

// priced sends a request and returns its charge on arrival.
func priced(t testing.TB, o transport.Options, req *http.Request) (cost limit.Cost, err error) {
	t.Helper()
	o.Base = rttest.Func(func(r *http.Request) (*http.Response, error) {
		rttest.Drain(r)
		return response(r, 200, "application/json", "{}"), nil
	})
	o.Trace.Granted = func(_ *http.Request, c limit.Cost, _ time.Duration) { cost = c }
	_, _, err = finish(gate(t, o).RoundTrip(req))
	return cost, err
}

func call(t testing.TB, method, path, contentType, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "https://gateway.example.com"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	return req
}

// Each endpoint of each provider's API reference, with a prompt of about 5,000 tokens
// as JSON and with an upload. What runs no model costs one request and no
// tokens, and no limit on tokens is too small for it.
func TestEachEndpointIsPricedByWhatItDoes(t *testing.T) {
	f, err := os.Open("../profile/testdata/endpoints.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	words := strings.Repeat("one two three ", 1700)
	prompt := fmt.Sprintf(`{"model":"m","max_tokens":40,"messages":[{"role":"user","content":%q}],"contents":[{"parts":[{"text":%q}]}],"input":%q,"documents":["a","b"],"query":"q","prompt":%q}`, words, words, words, words)
	upload := "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n" + strings.Repeat("\x00", 1<<20)
	free, models := 0, 0
	for s := bufio.NewScanner(f); s.Scan(); {
		w := strings.Fields(s.Text())
		if w[0] == "#" {
			continue
		}
		p, ok := profile.ByName(w[0])
		if !ok {
			t.Fatalf("no profile %s", w[0])
		}
		o := transport.Options{Provider: p, InputTPM: 100, OutputTPM: 10, RPM: 60}
		if w[3] == "counts" || w[3] == "uploads" || w[3] == "manages" {
			free++
			for contentType, body := range map[string]string{"application/json": prompt, "multipart/form-data; boundary=x": upload, "application/octet-stream": upload} {
				if cost, err := priced(t, o, call(t, w[1], w[2], contentType, body)); err != nil || cost != (limit.Cost{Requests: 1}) {
					t.Errorf("%s with %s: %v, %v", s.Text(), contentType, cost, err)
				}
			}
			continue
		}
		models++
		if w[1] != "POST" {
			continue
		}
		cost, err := priced(t, transport.Options{Provider: p}, call(t, w[1], w[2], "application/json", prompt))
		if err != nil || cost.Requests != 1 || cost.Input < 3000 {
			t.Errorf("%s: %v, %v", s.Text(), cost, err)
		}
		if none := w[3] == "embeds" || w[3] == "reranks" || w[3] == "moderates" || w[3] == "images" || w[3] == "transcribes"; none && cost.Output != 0 {
			t.Errorf("%s: %d of output", s.Text(), cost.Output)
		}
		if w[3] == "transcribes" {
			cost, err := priced(t, transport.Options{Provider: p}, call(t, w[1], w[2], "multipart/form-data; boundary=x", upload))
			if err != nil || cost.Requests != 1 || cost.Output != 0 {
				t.Errorf("%s, an upload: %v, %v", s.Text(), cost, err)
			}
		}
		// Behind a gateway on a host that nobody knows it is the same.
		if _, err := priced(t, o, call(t, w[1], w[2], "application/json", prompt)); err == nil {
			t.Errorf("%s: a prompt above the limit was sent", s.Text())
		}
	}
	if free < 150 || models < 150 {
		t.Fatalf("%d endpoints run no model, %d do", free, models)
	}
}

// An unknown path of an unknown host is judged by its body: a prompt, or none.
func TestAnUnknownPathIsJudgedByItsBody(t *testing.T) {
	for _, c := range []struct {
		body   string
		tokens bool
	}{
		{`{"messages":[{"role":"user","content":"hi"}]}`, true},
		{`{"prompt":"hi","max_tokens":5}`, true},
		{`{"input":"hi"}`, true},
		{`{"model":"m","question":"how much is the fish?"}`, true},
		{`{"question":"how much is the fish?","max_tokens":9}`, true},
		{`{"servingMode":{"modelId":"m"},"chatRequest":{"apiFormat":"COHERE","message":"hi","maxTokens":9}}`, true}, // OCI Generative AI
		{`{"chatRequest":{"apiFormat":"GENERIC","messages":[{"role":"USER","content":[{"type":"TEXT","text":"hi"}]}]}}`, true},
		{`{"input_file_id":"file-1","endpoint":"/v1/chat/completions","completion_window":"24h"}`, false},
		{`{"name":"store","metadata":{"a":"b"}}`, false},
		{`{"training_file":"file-1"}`, false},
		{` {} `, false},
		{`{"cut`, true},
		{`not JSON at all`, true},
	} {
		cost, err := priced(t, transport.Options{}, call(t, "POST", "/some/where", "application/json", c.body))
		if err != nil || cost.Requests != 1 || (cost.Input+cost.Output > 0) != c.tokens {
			t.Errorf("%s: %v, %v", c.body, cost, err)
		}
	}
}

// The content type of a body says what can be in it. A body that is no JSON is an
// upload, and so costs a request; JSON under another name is read.
func TestAnUnknownPathIsJudgedByTheTypeOfItsBody(t *testing.T) {
	const prompt, store = `{"messages":[{"role":"user","content":"hi"}]}`, `{"name":"store"}`
	noise := strings.Repeat("\x00\x01", 5000)
	for _, c := range []struct {
		contentType, body string
		tokens            bool
	}{
		{"application/octet-stream", noise, false},
		{"application/octet-stream", prompt, true},
		{"application/octet-stream", store, false},
		{"application/octet-stream", `{"custom_id":"1","body":` + prompt + "}\n{\"custom_id\":\"2\"}\n", false},
		{"application/x-www-form-urlencoded", prompt, true},
		{"application/x-www-form-urlencoded", store, false},
		{"Application/Octet-Stream; x=y", noise, false},
		{"text/plain", "how much is the fish?", false},
		{"text/plain; charset=utf-8", prompt, true},
		{"text/plain", store, false},
		{"text/csv", "a,b\n1,2\n", false},
		{"application/x-ndjson", `{"custom_id":"1","body":` + prompt + "}\n", false},
		{"application/jsonl", `{"custom_id":"1","body":` + prompt + "}\n", false},
		{"application/xml", "<a/>", false},
		{"application/x-protobuf", noise, false},
		{"application/grpc", noise, false},
		{"application/pdf", noise, false},
		{"audio/wav", noise, false},
		{"image/png", noise, false},
		{"multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n" + noise, false},
		{"application/graphql", "{ models { name } }", false},
		{"application/json", `{"query":"query Models($n: Int) { models(first: $n) { name } }","variables":{"n":5}}`, false},
		{"application/json", `{"query":"{ models { name } }"}`, false},
		{"application/json", `{"operationName":"Add","query":"mutation Add { add }"}`, false},
		{"application/graphql-response+json", `{"query":"subscription { models }"}`, false},
		{"application/json", `{"query":"how much is the fish?","documents":["a","b"]}`, true},
		{"application/json", `{"query":"query the fish","documents":["a","b"]}`, true},
		{"application/json", `{"model":"m","query":"{ models }"}`, true},
		{"", prompt, true},
		{"application/vnd.api+json", prompt, true},
		{"application/vnd.api+json", store, false},
	} {
		cost, err := priced(t, transport.Options{}, call(t, "POST", "/some/where", c.contentType, c.body))
		if err != nil || cost.Requests != 1 || (cost.Input+cost.Output > 0) != c.tokens {
			t.Errorf("%s, %.60q: %v, %v", c.contentType, c.body, cost, err)
		}
	}
}

// A web form, as for an OAuth token, holds no prompt.
func TestAFormHoldsNoPrompt(t *testing.T) {
	for _, contentType := range []string{"application/x-www-form-urlencoded", "Application/X-WWW-Form-Urlencoded; charset=utf-8"} {
		cost, err := priced(t, transport.Options{TPM: 100}, call(t, "POST", "/oauth/token", contentType, "grant_type=client_credentials&scope="+strings.Repeat("a+", 500)))
		if err != nil || cost != (limit.Cost{Requests: 1}) {
			t.Errorf("%s: %v, %v", contentType, cost, err)
		}
	}
}

// An answer that states its usage is charged for it, on any path.
func TestUsageOfAnUnknownPathIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got limit.Cost
		rt := gate(t, transport.Options{Base: script("200"), Trace: transport.Trace{Settled: func(s transport.Settlement) { got = s.Charged }}})
		finish(rt.RoundTrip(call(t, "POST", "/some/where", "application/json", `{"name":"x"}`)))
		if got != (limit.Cost{Requests: 1, Input: 11, Output: 7}) {
			t.Errorf("charged %v", got)
		}
	})
}

// A batch of embeddings counts as one request for each item where a provider counts
// so, and as one elsewhere.
func TestItemsThatCountAsRequests(t *testing.T) {
	gemini, _ := profile.ByName("gemini")
	items := func(n int) string {
		one := `{"model":"models/e","content":{"parts":[{"text":"hi"}]}}`
		return `{"requests":[` + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + `]}`
	}
	const path = "/v1beta/models/text-embedding-004:batchEmbedContents"
	for _, c := range []struct {
		o    transport.Options
		n    int
		want int64
	}{
		{transport.Options{Provider: gemini}, 100, 100},
		{transport.Options{Provider: gemini}, 1, 1},
		{transport.Options{Provider: gemini}, 0, 1},
		{transport.Options{}, 100, 1},
		{transport.Options{Provider: gemini, RPM: 60}, 100, 60}, // a guess: no more than the limit admits
	} {
		synctest.Test(t, func(t *testing.T) {
			cost, err := priced(t, c.o, call(t, "POST", path, "application/json", items(c.n)))
			if err != nil || cost.Requests != c.want {
				t.Errorf("%d items: %v, %v; want %d requests", c.n, cost, err, c.want)
			}
		})
	}
}

// A packed body is priced as the text it holds.
func TestPackedRequestsArePricedByTheirText(t *testing.T) {
	body := fmt.Sprintf(`{"model":"gpt-4o","max_tokens":1000,"messages":[{"role":"user","content":%q}]}`, strings.Repeat("Tell me about token buckets. ", 4000))
	plain, err := priced(t, transport.Options{}, call(t, "POST", "/v1/chat/completions", "application/json", body))
	if err != nil || plain.Input < 20_000 || plain.Output != 1000 {
		t.Fatal(plain, err)
	}
	pack := func(w func(io.Writer) io.WriteCloser) string {
		var b bytes.Buffer
		z := w(&b)
		io.WriteString(z, body)
		z.Close()
		return b.String()
	}
	zipped := pack(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	for _, c := range []struct {
		coding, bytes string
		exact         bool
	}{
		{"gzip", zipped, true},
		{"x-gzip", zipped, true},
		{"deflate", pack(func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }), true},
		{"deflate", pack(func(w io.Writer) io.WriteCloser { z, _ := flate.NewWriter(w, 6); return z }), true},
		{"br", pack(func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) }), true},
		{"zstd", pack(func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z }), true},
		{"identity", body, true},
		{"gzip", zipped[:len(zipped)/2], false},
		{"compress", zipped, false},
	} {
		for _, opaque := range []bool{false, true} {
			req := call(t, "POST", "/v1/chat/completions", "application/json", c.bytes)
			req.Header.Set("Content-Encoding", c.coding)
			if opaque {
				req.Body, req.GetBody = io.NopCloser(hidden(c.bytes)), nil
			}
			cost, err := priced(t, transport.Options{}, req)
			switch {
			case err != nil:
				t.Errorf("%s: %v", c.coding, err)
			case c.exact && cost != plain:
				t.Errorf("%s, opaque %v: %v; plain is %v", c.coding, opaque, cost, plain)
			case !c.exact && cost.Input < int64(len(c.bytes)):
				t.Errorf("%s, opaque %v: %v of %d packed bytes", c.coding, opaque, cost, len(c.bytes))
			}
		}
	}
}

// hidden hides what the reader is.
func hidden(s string) io.Reader { return struct{ io.Reader }{strings.NewReader(s)} }

// Only what a request states can be too large. A guess is taken for what the limits
// can admit.
func TestAGuessRefusesNoCall(t *testing.T) {
	hi := `"messages":[{"role":"user","content":"hi"}]`
	burst := []limit.Limit{{Unit: limit.Tokens, Rate: limit.PerMinute(30_000), Burst: 400}}
	tenant := func(l ...limit.Limit) transport.Options {
		return transport.Options{Scopes: transport.Scopes{
			Tenant:  func(*http.Request) string { return "t" },
			Tenants: func(string) transport.TenantOptions { return transport.TenantOptions{Limits: l} },
		}}
	}
	const byHand = "the output that is expected, of a ledger made by hand"
	for _, c := range []struct {
		name, body string
		o          transport.Options
		refused    bool
	}{
		{"the output that is expected", `{"model":"m",` + hi + `}`, transport.Options{TPM: 30_000, Burst: time.Second}, false},
		{"the output that is expected, by hand", `{"model":"m",` + hi + `}`, transport.Options{Limits: burst}, false},
		{"the output that is expected, of output alone", `{"model":"m",` + hi + `}`, transport.Options{OutputTPM: 100}, false},
		{"several choices", `{"model":"m","max_tokens":400,"n":3,` + hi + `}`, transport.Options{TPM: 1000}, false},
		{"a body that is no JSON", strings.Repeat("x", 8000), transport.Options{TPM: 500}, false},
		{"the output that is expected, for a tenant", `{"model":"m",` + hi + `}`, tenant(limit.Limit{Unit: limit.Tokens, Rate: limit.PerMinute(100)}), false},
		{"the same, of two limits", `{"model":"m",` + hi + `}`, tenant(limit.Limit{Unit: limit.Tokens, Rate: limit.PerHour(300)}, limit.Limit{Unit: limit.Output, Rate: limit.PerMinute(50)}), false},
		{byHand, `{"model":"m",` + hi + `}`, transport.Options{}, false},
		{"a stated cap, for a tenant", `{"model":"m","max_tokens":120,` + hi + `}`, tenant(limit.Limit{Unit: limit.Tokens, Rate: limit.PerMinute(100)}), true},
		{"a stated cap", `{"model":"m","max_tokens":1200,` + hi + `}`, transport.Options{TPM: 1000}, true},
		{"a stated prompt", `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("hello ", 2000) + `"}]}`, transport.Options{TPM: 1000}, true},
		{"a stated cap, by hand", `{"model":"m","max_tokens":500,` + hi + `}`, transport.Options{Limits: burst}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			if c.name == byHand { // made inside the bubble, as its clock is another one
				ledger, err := limit.New(limit.Options{Limits: []limit.Limit{{Name: "all", Unit: limit.Tokens, Rate: limit.PerMinute(100)}}})
				if err != nil {
					t.Fatal(err)
				}
				c.o.Scopes.Budget = over(t, ledger)
			}
			cost, err := priced(t, c.o, call(t, "POST", "/v1/chat/completions", "application/json", c.body))
			if (err != nil) != c.refused {
				t.Errorf("%s: %v, %v", c.name, cost, err)
			}
		})
	}
}

// What was learned of answers refuses no call either: nothing would be sent, and so
// nothing unlearned.
func TestLearnedOutputRefusesNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script("200")
		base.usage = `{"prompt_tokens":14,"completion_tokens":700,"total_tokens":714}`
		rt := gate(t, transport.Options{Base: base, Limits: []limit.Limit{{Unit: limit.Tokens, Rate: limit.PerMinute(60_000), Burst: 600}}})
		for range 100 {
			if _, _, err := finish(rt.RoundTrip(call(t, "POST", "/v1/chat/completions", "application/json", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
	})
}

// Who polls a job stands in no line for tokens.
func TestPollsDoNotWaitForTokens(t *testing.T) {
	for _, c := range []struct{ method, path string }{
		{"GET", "/v1/batches/b"}, {"POST", "/v1/responses/r/cancel"}, {"DELETE", "/v1/files/f"}, {"POST", "/v1/messages/count_tokens"}, {"GET", "/v1/models"},
	} {
		synctest.Test(t, func(t *testing.T) {
			rt := gate(t, transport.Options{Base: script("bare"), TPM: 1000, RPM: 6000})
			for range 5 {
				go finish(rt.RoundTrip(ask(t, t.Context(), chat)))
			}
			time.Sleep(time.Second)
			synctest.Wait()
			start := time.Now()
			finish(rt.RoundTrip(call(t, c.method, c.path, "application/json", "{}")))
			if d := time.Since(start); d > time.Second {
				t.Errorf("%s %s waited %v", c.method, c.path, d)
			}
			time.Sleep(time.Hour)
		})
	}
}

// What makes a lasting thing is not made twice: a request that may have arrived is
// not sent again without an Idempotency-Key.
func TestWhatMakesSomethingIsNotMadeTwice(t *testing.T) {
	for _, c := range []struct {
		path, script string
		key          bool
		want         int
	}{
		{"/v1/batches", "reset", false, 1},
		{"/v1/batches", "500", false, 1},
		{"/openai/v1/files", "reset", false, 1},
		{"/v1/fine_tuning/jobs", "504", false, 1},
		{"/v1/threads/t/messages", "reset", false, 1},
		{"/v1/batches", "reset", true, 3},
		{"/v1/batches", "dial", false, 3},
		{"/v1/batches", "429", false, 3},
		{"/v1/chat/completions", "reset", false, 3},
		{"/v1/embeddings", "500", false, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			base := script(c.script)
			req := call(t, "POST", c.path, "application/json", `{"input_file_id":"f"}`)
			if c.key {
				req.Header.Set("Idempotency-Key", "1")
			}
			finish(gate(t, transport.Options{Base: base}).RoundTrip(req))
			if base.attempts() != c.want {
				t.Errorf("%s, %s, key %v: %d attempts, want %d", c.path, c.script, c.key, base.attempts(), c.want)
			}
		})
	}
}

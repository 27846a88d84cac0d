package usage

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Every place where providers state what a call cost.
func TestUsageIsReadInEveryPlace(t *testing.T) {
	type counts = map[string]int64
	for _, c := range []struct {
		name, body string
		counts     counts
	}{
		// Report: cloudflare/workers-ai-provider#17
		{"Workers AI, wrapped", `{"result":{"response":"Hi","usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}},"success":true,"errors":[]}`,
			counts{"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}},
		{"Workers AI, stream", event(`{"response":"Hi"}`, `{"response":"","usage":{"prompt_tokens":9,"completion_tokens":2}}`),
			counts{"input_tokens": 9, "output_tokens": 2}},
		{"Workers AI, embeddings", `{"result":{"shape":[1,2],"data":[[1,2]],"usage":{"total_tokens":7}},"success":true}`,
			counts{"total_tokens": 7}},
		// Report: promptfoo/promptfoo#9780
		{"watsonx", `{"model_id":"m","results":[{"generated_text":"Hi","generated_token_count":4,"input_token_count":21,"stop_reason":"eos_token"}]}`,
			counts{"input_tokens": 21, "output_tokens": 4}},
		{"watsonx, two results", `{"results":[{"generated_token_count":4,"input_token_count":21},{"generated_token_count":5,"input_token_count":10}]}`,
			counts{"input_tokens": 31, "output_tokens": 9}},
		{"watsonx, stream with running totals", event(`{"results":[{"generated_token_count":1,"input_token_count":21}]}`, `{"results":[{"generated_token_count":4,"input_token_count":21}]}`),
			counts{"input_tokens": 21, "output_tokens": 4}},
		{"text-generation-inference", `{"generated_text":"Hi","details":{"finish_reason":"length","generated_tokens":4,"seed":null}}`,
			counts{"output_tokens": 4}},
		{"text-generation-inference, in a list", `[{"generated_text":"Hi","details":{"finish_reason":"length","generated_tokens":4}}]`,
			counts{"output_tokens": 4}},
		{"text-generation-inference, stream", event(`{"token":{"text":"a"},"generated_text":null,"details":null}`, `{"token":{"text":"b"},"generated_text":"ab","details":{"generated_tokens":2,"input_length":7}}`),
			counts{"input_tokens": 7, "output_tokens": 2}},
		{"Replicate", `{"id":"x","output":["Hi"],"metrics":{"input_token_count":10,"output_token_count":3,"predict_time":0.4,"tokens_per_second":9.1}}`,
			counts{"input_tokens": 10, "output_tokens": 3}},
		{"llama.cpp", `{"content":"Hi","tokens_predicted":12,"tokens_evaluated":34,"timings":{"prompt_n":34}}`,
			counts{"input_tokens": 34, "output_tokens": 12}},
		{"Aleph Alpha", `{"completions":[{"completion":"Hi"}],"num_tokens_prompt_total":6,"num_tokens_generated":2}`,
			counts{"input_tokens": 6, "output_tokens": 2}},
		{"Hunyuan", `{"Response":{"RequestId":"x","Usage":{"PromptTokens":3,"CompletionTokens":4,"TotalTokens":7},"Choices":[]}}`,
			counts{"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}},
		{"Hunyuan, stream", event(`{"Usage":{"PromptTokens":3,"CompletionTokens":1,"TotalTokens":4}}`, `{"Usage":{"PromptTokens":3,"CompletionTokens":4,"TotalTokens":7}}`),
			counts{"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}},
		{"DashScope", `{"output":{"text":"Hi"},"usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7},"request_id":"x"}`,
			counts{"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}},
		{"Vertex AI embeddings", `{"predictions":[{"embeddings":{"statistics":{"truncated":false,"token_count":6},"values":[0.1]}},{"embeddings":{"statistics":{"token_count":4.0},"values":[0.1]}}],"metadata":{"billableCharacterCount":22}}`,
			counts{"input_tokens": 10, "output_tokens": 0}},
		{"a gateway's data", `{"code":200,"msg":"ok","success":true,"data":{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}}`,
			counts{"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}},
		{"RunPod", `{"output":[{"choices":[],"usage":{"input":3,"output":4}}],"status":"COMPLETED"}`,
			counts{"input_tokens": 3, "output_tokens": 4}},
		{"camel case", `{"usage":{"promptTokens":300,"completionTokens":5}}`,
			counts{"input_tokens": 300, "output_tokens": 5}},
		{"camel case, total", `{"usage":{"promptTokens":300,"completionTokens":5,"totalTokens":305}}`,
			counts{"input_tokens": 300, "output_tokens": 5, "total_tokens": 305}},
		{"camel case, details", `{"usage":{"inputTokens":300,"outputTokens":50,"reasoningTokens":40,"cachedInputTokens":100}}`,
			counts{"input_tokens": 300, "output_tokens": 50, "reasoning_tokens": 40, "cached_input_tokens": 100}},
		{"Vertex AI, predictions", `{"predictions":[{"content":"b"}],"metadata":{"tokenMetadata":{"inputTokenCount":{"totalTokens":30,"totalBillableCharacters":90},"outputTokenCount":{"totalTokens":7,"totalBillableCharacters":21}}}}`,
			counts{"input_tokens": 30, "output_tokens": 7}},
		{"OCI", `{"modelId":"m","chatResponse":{"apiFormat":"COHERE","text":"Hi","usage":{"promptTokens":12,"completionTokens":5,"totalTokens":17}}}`,
			counts{"input_tokens": 12, "output_tokens": 5, "total_tokens": 17}},
		{"Gemini, names of the protocol buffer", `{"candidates":[],"usage_metadata":{"prompt_token_count":12,"candidates_token_count":5,"thoughts_token_count":2,"cached_content_token_count":8,"total_token_count":19}}`,
			counts{"input_tokens": 12, "output_tokens": 7, "total_tokens": 19, "cached_input_tokens": 8, "reasoning_tokens": 2}},
		{"Gemini, an interaction", `{"id":"x","outputs":[],"usage":{"total_input_tokens":12,"total_output_tokens":5,"total_cached_tokens":4,"total_tokens":17}}`,
			counts{"input_tokens": 12, "output_tokens": 5, "total_tokens": 17, "cached_input_tokens": 4}},
		{"Gemini, the last event of an interaction", event(`{"event_type":"content.delta","delta":{"text":"Hi"}}`, `{"event_type":"interaction.complete","interaction":{"id":"x","usage":{"total_input_tokens":12,"total_output_tokens":5,"total_tokens":17}}}`),
			counts{"input_tokens": 12, "output_tokens": 5, "total_tokens": 17}},
		{"Cohere, reasoning", `{"usage":{"billed_units":{"input_tokens":5,"output_tokens":80},"tokens":{"input_tokens":71,"output_tokens":82,"reasoning_tokens":60}}}`,
			counts{"input_tokens": 71, "output_tokens": 82, "reasoning_tokens": 60}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Read("", "", []byte(c.body))
			want(t, r, c.counts)
			if !r.Found || r.NoTokens || r.Refusal != nil {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A total and one part give the other part.
func TestATotalGivesTheMissingPart(t *testing.T) {
	for _, c := range []struct {
		usage         string
		input, output Count
	}{
		{`{"completion_tokens":20,"total_tokens":1000}`, Count{980, true}, Count{20, true}},
		{`{"output_tokens":20,"total_tokens":1000}`, Count{980, true}, Count{20, true}},
		{`{"outputTokens":20,"totalTokens":1000}`, Count{980, true}, Count{20, true}},
		{`{"prompt_tokens":900,"total_tokens":1000}`, Count{900, true}, Count{100, true}},
		{`{"prompt_tokens":null,"completion_tokens":20,"total_tokens":1000}`, Count{980, true}, Count{20, true}},
		{`{"completion_tokens":20,"total_tokens":20}`, Count{0, true}, Count{20, true}},
		{`{"completion_tokens":20,"total_tokens":7}`, Count{}, Count{20, true}},
		{`{"completion_tokens":20,"total_tokens":0}`, Count{}, Count{20, true}},
		{`{"completion_tokens":20}`, Count{}, Count{20, true}},
		{`{"total_tokens":1000}`, Count{}, Count{}},
	} {
		if r := Read(jsonType, "", []byte(`{"usage":`+c.usage+`}`)); r.Input != c.input || r.Output != c.output {
			t.Errorf("%s: %+v", c.usage, r.Counts)
		}
	}
	r := Read(jsonType, "", []byte(`{"usageMetadata":{"candidatesTokenCount":20,"totalTokenCount":1000}}`))
	if r.Input != (Count{980, true}) {
		t.Errorf("%+v", r.Counts)
	}
}

// One number that no count can be makes its object unknown: the others in it come
// from the same hand.
func TestAnImpossibleCountMakesItsObjectUnknown(t *testing.T) {
	bad := []string{"-1", "-0.5", "9.5", `"7"`, `""`, "1e999", "9007199254740993", "99999999999999999999", "true", "[]", "1e-3", strings.Repeat("9", 300)}
	for _, n := range bad {
		for name, body := range map[string]string{
			"OpenAI":     `{"usage":{"prompt_tokens":12,"completion_tokens":` + n + `,"total_tokens":12}}`,
			"total":      `{"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":` + n + `}}`,
			"Anthropic":  `{"usage":{"input_tokens":` + n + `,"output_tokens":3}}`,
			"cache":      `{"usage":{"input_tokens":12,"cache_read_input_tokens":` + n + `,"output_tokens":3}}`,
			"Gemini":     `{"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":` + n + `}}`,
			"Cohere":     `{"usage":{"tokens":{"input_tokens":71,"output_tokens":` + n + `}}}`,
			"Bedrock":    `{"amazon-bedrock-invocationMetrics":{"inputTokenCount":7,"outputTokenCount":` + n + `}}`,
			"Vertex":     `{"metadata":{"tokenMetadata":{"inputTokenCount":{"totalTokens":7},"outputTokenCount":{"totalTokens":` + n + `}}}}`,
			"camel case": `{"usage":{"promptTokens":7,"completionTokens":` + n + `}}`,
			"Ollama":     `{"done":true,"prompt_eval_count":26,"eval_count":` + n + `}`,
			"watsonx":    `{"results":[{"input_token_count":3,"generated_token_count":4},{"input_token_count":` + n + `}]}`,
			"Workers AI": `{"result":{"usage":{"prompt_tokens":12,"completion_tokens":` + n + `}}}`,
			"Replicate":  `{"metrics":{"input_token_count":12,"output_token_count":` + n + `}}`,
		} {
			if r := Read(jsonType, "", []byte(body)); r.Found || r.NoTokens {
				t.Errorf("%s, %s: %+v", name, n, r.Counts)
			}
		}
		// Details are an object of their own, and null is no number.
		r := Read(jsonType, "", []byte(`{"usage":{"prompt_tokens":12,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":`+n+`},"total_tokens":null}}`))
		want(t, r, map[string]int64{"input_tokens": 12, "output_tokens": 3})
	}
	// Money in a usage object is no count.
	r := Read(jsonType, "", []byte(`{"usage":{"prompt_tokens":12,"completion_tokens":3,"input":0.0004,"output":0.001,"cost":-0.1,"total_cost":"7"}}`))
	want(t, r, map[string]int64{"input_tokens": 12, "output_tokens": 3})
	// What was stated before stands; what comes later counts.
	r = Read("", "", []byte(event(`{"usage":{"prompt_tokens":12,"completion_tokens":3}}`, `{"usage":{"prompt_tokens":12,"completion_tokens":-3}}`)))
	want(t, r, map[string]int64{"input_tokens": 12, "output_tokens": 3})
	r = Read("", "", []byte(event(`{"usage":{"prompt_tokens":12,"completion_tokens":-3}}`, `{"usage":{"prompt_tokens":12,"completion_tokens":3}}`)))
	want(t, r, map[string]int64{"input_tokens": 12, "output_tokens": 3})
}

func TestACostThatIsNoTokensIsSaidToBeNone(t *testing.T) {
	for name, body := range map[string]string{
		"duration":                 `{"text":"Hi","usage":{"type":"duration","seconds":375}}`,
		"a duration of 0":          `{"text":"Hi","usage":{"type":"duration","seconds":0}}`,
		"a part of a second":       `{"text":"Hi","usage":{"seconds":0.5}}`,
		"images":                   `{"data":[{"url":"x"}],"usage":{"images":2}}`,
		"guardrail units, Bedrock": `{"action":"NONE","usage":{"topicPolicyUnits":0,"contentPolicyUnits":2,"wordPolicyUnits":0,"sensitiveInformationPolicyUnits":0}}`,
		"characters, MiniMax":      `{"data":{"audio":"00"},"extra_info":{"audio_length":900,"usage_characters":26},"base_resp":{"status_code":0}}`,
		"credits, Tavily":          `{"results":[],"usage":{"credits":1}}`,
		"film, DashScope":          `{"output":{"task_status":"SUCCEEDED"},"usage":{"video_duration":5,"video_count":1}}`,
		"search units, Cohere":     `{"results":[{"index":0}],"meta":{"billed_units":{"search_units":1}}}`,
		"pages, Mistral":           `{"pages":[],"usage_info":{"pages_processed":3,"doc_size_bytes":1000}}`,
		"characters":               `{"usage":{"characters":300}}`,
		"searches":                 `{"usage":{"num_search_queries":3}}`,
		"images of Cohere":         `{"embeddings":{"float":[[1]]},"meta":{"billed_units":{"images":1}}}`,
	} {
		if r := Read(jsonType, "", []byte(body)); r.Found || !r.NoTokens {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for name, body := range map[string]string{
		"tokens beside seconds":  `{"usage":{"prompt_audio_seconds":4,"prompt_tokens":3,"completion_tokens":2}}`,
		"tokens beside searches": `{"usage":{"num_search_queries":3,"prompt_tokens":3,"completion_tokens":2}}`,
		"type tokens":            `{"usage":{"type":"tokens","input_tokens":14,"output_tokens":45,"total_tokens":59}}`,
		"nothing":                `{"usage":{}}`,
		"no images":              `{"usage":{"images":0}}`,
		"an impossible number":   `{"usage":{"seconds":3,"prompt_tokens":-1}}`,
	} {
		if r := Read(jsonType, "", []byte(body)); r.NoTokens {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestACountBeyondItsBoundIsUnknown(t *testing.T) {
	n := func(n int64) Count { return Count{n, true} }
	for _, c := range []struct {
		name          string
		counts        Counts
		input, output int64
		want          Counts
	}{
		{"within", Counts{Input: n(10), Output: n(5), Total: n(15), CachedInput: n(4), Reasoning: n(2)}, 10, 5, Counts{Input: n(10), Output: n(5), Total: n(15), CachedInput: n(4), Reasoning: n(2)}},
		{"input", Counts{Input: n(1<<53 - 1), Output: n(5), CachedInput: n(4)}, 1000, 100, Counts{Output: n(5)}},
		{"output", Counts{Input: n(10), Output: n(1<<32 - 1), Reasoning: n(7)}, 1000, 100, Counts{Input: n(10)}},
		{"total alone", Counts{Total: n(1<<53 - 1)}, 1000, 100, Counts{}},
		{"total beside", Counts{Input: n(10), Output: n(5), Total: n(1 << 40)}, 1000, 100, Counts{Input: n(10), Output: n(5)}},
		{"no bound", Counts{Input: n(1 << 53), Output: n(1 << 53)}, -1, -1, Counts{Input: n(1 << 53), Output: n(1 << 53)}},
		{"the largest bounds", Counts{Total: n(1 << 53)}, 1<<63 - 1, 1<<63 - 1, Counts{Total: n(1 << 53)}},
		{"more cached than input", Counts{Input: n(10), CachedInput: n(11), CacheWrite: n(10)}, 1000, 100, Counts{Input: n(10), CacheWrite: n(10)}},
		{"more reasoning than output", Counts{Output: n(10), Reasoning: n(11)}, 1000, 100, Counts{Output: n(10)}},
		{"cached alone", Counts{CachedInput: n(1 << 40), Reasoning: n(1 << 40)}, 1000, 100, Counts{}},
		{"zero bounds", Counts{Input: n(0), Output: n(1)}, 0, 0, Counts{Input: n(0)}},
	} {
		if got := c.counts.Bounded(c.input, c.output); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Report: maximhq/bifrost#3917
func TestUsageInTheHeaderIsRead(t *testing.T) {
	header := func(lines ...string) http.Header {
		h := http.Header{}
		for _, l := range lines {
			name, value, _ := strings.Cut(l, ": ")
			h.Add(name, value)
		}
		return h
	}
	for _, c := range []struct {
		name string
		h    http.Header
		want map[string]int64
	}{
		{"Bedrock", header("X-Amzn-Bedrock-Input-Token-Count: 12", "X-Amzn-Bedrock-Output-Token-Count: 34", "X-Amzn-Bedrock-Invocation-Latency: 900"), map[string]int64{"input_tokens": 12, "output_tokens": 34}},
		{"Bedrock with a cache", header("x-amzn-bedrock-input-token-count: 12", "x-amzn-bedrock-output-token-count: 34", "x-amzn-bedrock-cache-read-input-token-count: 100", "x-amzn-bedrock-cache-write-input-token-count: 5"),
			map[string]int64{"input_tokens": 117, "output_tokens": 34, "cached_input_tokens": 100, "cache_write_input_tokens": 5}},
		{"embeddings", header("X-Amzn-Bedrock-Input-Token-Count: 12"), map[string]int64{"input_tokens": 12}},
		{"text-generation-inference", header("x-prompt-tokens: 5", "x-generated-tokens: 20"), map[string]int64{"input_tokens": 5, "output_tokens": 20}},
		{"twice, in either order", header("X-Amzn-Bedrock-Input-Token-Count: 12", "X-Amzn-Bedrock-Input-Token-Count: 15"), map[string]int64{"input_tokens": 15}},
		{"twice, in the other", header("X-Amzn-Bedrock-Input-Token-Count: 15", "X-Amzn-Bedrock-Input-Token-Count: 12"), map[string]int64{"input_tokens": 15}},
		{"below zero", header("X-Amzn-Bedrock-Input-Token-Count: 12", "X-Amzn-Bedrock-Output-Token-Count: -1"), map[string]int64{}},
		{"a word", header("X-Amzn-Bedrock-Input-Token-Count: many"), map[string]int64{}},
		{"none", header("Content-Type: text/plain"), map[string]int64{}},
		{"nil", nil, map[string]int64{}},
	} {
		got := FromHeader(c.h)
		if fmt.Sprint(countsOf(got)) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", c.name, countsOf(got), c.want)
		}
		if r := (Result{}).WithHeader(c.h); r.Counts != got || r.Found != (len(c.want) > 0) {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	h := header("X-Amzn-Bedrock-Input-Token-Count: 12")
	body := Result{Counts: Counts{Output: Count{3, true}}, Found: true}
	if r := body.WithHeader(h); r != body {
		t.Errorf("the body's counts became %+v", r)
	}
	if r := (Result{NoTokens: true}).WithHeader(h); r.Found {
		t.Errorf("a cost without tokens became %+v", r)
	}
}

func TestABodyPackedInAnyCodingIsRead(t *testing.T) {
	noise := strings.Repeat("Sphinx of black quartz, judge my vow. ", 40)
	var text bytes.Buffer
	rnd := rand.New(rand.NewPCG(1, 2))
	for text.Len() < 3<<20 { // hard to pack
		fmt.Fprintf(&text, `{"choices":[{"index":0,"text":"%016x%016x%016x%016x%016x%016x"}]}`+"\n", rnd.Uint64(), rnd.Uint64(), rnd.Uint64(), rnd.Uint64(), rnd.Uint64(), rnd.Uint64())
	}
	large := text.String() + `{"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}` + "\n"
	small := `{"x":"` + noise + `","usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`
	brotlied := func(b []byte) []byte {
		var out bytes.Buffer
		w := brotli.NewWriterLevel(&out, 1)
		w.Write(b)
		w.Close()
		return out.Bytes()
	}
	zstded := func(b []byte) []byte {
		var out bytes.Buffer
		w, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(b)
		w.Close()
		return out.Bytes()
	}
	for _, body := range []string{small, large} {
		for encoding, packed := range map[string][]byte{
			"br": brotlied([]byte(body)), "zstd": zstded([]byte(body)), "gzip": gzipped(t, []byte(body)), "deflate": zlibbed(t, []byte(body)),
			"gzip, br": brotlied(gzipped(t, []byte(body))),
		} {
			if len(body) == len(large) && len(packed) < 1<<20 {
				t.Errorf("%s: the large body is only %d bytes", encoding, len(packed))
			}
			m := NewMeter(jsonType, encoding)
			m.Write(packed)
			began := time.Now()
			r := m.Close()
			if took := time.Since(began); !r.Found && took > unpackTime {
				continue // this machine is too slow to read it in time: then it is unknown
			}
			want(t, r, map[string]int64{"input_tokens": 3, "output_tokens": 2, "total_tokens": 5})
		}
	}
}

// An error in a 200 that has no error member.
func TestAnErrorInA200IsFound(t *testing.T) {
	for _, c := range []struct {
		name, body string
		class      RefusalClass
		retryable  bool
	}{
		{"MiniMax, rate", `{"id":"x","choices":null,"base_resp":{"status_code":1002,"status_msg":"rate limit"}}`, RateLimit, true},
		{"MiniMax, tokens", `{"base_resp":{"status_code":1039,"status_msg":"token limit"}}`, RateLimit, true},
		{"MiniMax, balance", `{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`, Quota, false},
		{"MiniMax, in a stream", event(`{"choices":[{"delta":{"content":"a"}}]}`, `{"base_resp":{"status_code":1002,"status_msg":"rate limit"}}`), RateLimit, true},
		{"Zhipu, overload", `{"error":{"code":"1305","message":"The API has triggered traffic restrictions."}}`, Overload, true},
		{"Zhipu, older", `{"code":1302,"msg":"您当前使用该API的并发数过高，请降低并发，或联系客服增加限额","success":false}`, RateLimit, true},
		{"Qianfan", `{"error_code":18,"error_msg":"Open api qps request limit reached"}`, RateLimit, true},
		{"Hunyuan", `{"Response":{"RequestId":"x","Error":{"Code":"RequestLimitExceeded","Message":"x"}}}`, RateLimit, true},
		{"Anthropic, in a stream", event(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), Overload, true},
		// Report: openai/codex#43337
		{"OpenAI, in a stream", event(`{"type":"error","error":{"type":"service_unavailable_error","code":"server_is_overloaded","message":"Our servers are currently overloaded. Please try again later.","param":null},"sequence_number":2}`), Overload, true},
	} {
		r := Read("", "", []byte(c.body))
		if r.Refusal == nil || r.Refusal.Class != c.class || r.Refusal.Retryable != c.retryable {
			t.Errorf("%s: %+v", c.name, r.Refusal)
		} else if stream := strings.HasPrefix(c.body, "data"); r.Refusal.InStream != stream || r.Refusal.AfterOutput != strings.Contains(c.body, `"content":"a"`) {
			t.Errorf("%s: in a stream is %v, after output %v", c.name, r.Refusal.InStream, r.Refusal.AfterOutput)
		}
	}
	for name, body := range map[string]string{
		"MiniMax, all well": `{"choices":[{"message":{"content":"Hi"}}],"base_resp":{"status_code":0,"status_msg":""},"usage":{"total_tokens":9}}`,
		"Zhipu, all well":   `{"code":200,"msg":"ok","success":true,"data":{"usage":{"total_tokens":9}}}`,
		"Qianfan, all well": `{"error_code":0,"usage":{"total_tokens":9}}`,
		"a base_resp deep":  `{"x":{"base_resp":{"status_code":1002}},"usage":{"total_tokens":9}}`,
	} {
		if r := Read("", "", []byte(body)); r.Refusal != nil || r.Total.N != 9 {
			t.Errorf("%s: %+v %+v", name, r.Counts, r.Refusal)
		}
	}
}

// FuzzUsageObject: no object gives a count below zero, above 2^53, or a part
// without bounds, and what Bounded leaves is within the bounds.
func FuzzUsageObject(f *testing.F) {
	f.Add(`"prompt_tokens":12,"completion_tokens":-1,"total_tokens":12`, int64(100), int64(10))
	f.Add(`"input_tokens":9007199254740991,"output_tokens":4294967295,"iterations":[{"input_tokens":3}]`, int64(5), int64(5))
	f.Add(`"type":"duration","seconds":3.5`, int64(0), int64(-1))
	f.Add(`"tokens":{"input_tokens":"7"},"billed_units":{"search_units":1}`, int64(-1), int64(0))
	f.Fuzz(func(t *testing.T, members string, mostInput, mostOutput int64) {
		r := Read(jsonType, "", []byte(`{"usage":{`+members+`}}`))
		for name, n := range countsOf(r.Counts) {
			if n < 0 || n > 8*maxCount {
				t.Errorf("%s is %d", name, n)
			}
		}
		if r.NoTokens && r.Found {
			t.Error("tokens and none")
		}
		b := r.Counts.Bounded(mostInput, mostOutput)
		if mostInput >= 0 && max(b.Input.N, b.CachedInput.N, b.CacheWrite.N) > mostInput ||
			mostOutput >= 0 && max(b.Output.N, b.Reasoning.N) > mostOutput {
			t.Errorf("%+v is not within %d and %d", b, mostInput, mostOutput)
		}
		if b.Bounded(mostInput, mostOutput) != b {
			t.Errorf("%+v is bounded twice", b)
		}
	})
}

// A body that unpacks to 500 times its size is read in a part of the time that the
// whole would take. That holds for every content.
func BenchmarkCloseOfABomb(b *testing.B) {
	for name, piece := range map[string]string{
		"a string": strings.Repeat("a", 1<<10), "numbers": strings.Repeat("1,", 1<<9), "events": "data: {\"a\":[{\"b\":1}]}\n\n", "objects": strings.Repeat(`{"usage":{"a":1}}`, 50),
	} {
		packed := gzipped(b, []byte(strings.Repeat(piece, 64<<20/len(piece))))
		b.Run(name, func(b *testing.B) {
			b.ReportMetric(float64(len(packed)), "packed-bytes")
			for b.Loop() {
				Read(jsonType, "gzip", packed)
			}
		})
	}
}

// A stream is whole when its provider's own mark of the end was there, and not
// before. DashScope says "null" until then and
// watsonx "not_finished".
func TestEveryProvidersEndOfAStreamIsSeen(t *testing.T) {
	for _, c := range []struct{ name, before, last string }{
		{"text-generation-inference", `{"token":{"text":"a"},"generated_text":null,"details":null}`,
			`{"token":{"text":"b"},"generated_text":"ab","details":{"finish_reason":"eos_token","generated_tokens":2,"input_length":9}}`},
		{"Gemini interactions", `{"event_type":"content.delta","delta":{"type":"text","text":"a"}}`,
			`{"event_type":"interaction.complete","interaction":{"status":"completed","usage":{"total_input_tokens":9,"total_output_tokens":2}}}`},
		{"Cohere v1", `{"event_type":"text-generation","text":"a"}`,
			`{"event_type":"stream-end","response":{"text":"a","meta":{"tokens":{"input_tokens":9,"output_tokens":2}}}}`},
		{"OpenAI speech", `{"type":"speech.audio.delta","audio":"a"}`, `{"type":"speech.audio.done","usage":{"input_tokens":9,"output_tokens":2}}`},
		{"DashScope", `{"output":{"text":"a","finish_reason":"null"},"usage":{"input_tokens":9,"output_tokens":1}}`,
			`{"output":{"text":"ab","finish_reason":"stop"},"usage":{"input_tokens":9,"output_tokens":2}}`},
		{"DashScope messages", `{"output":{"choices":[{"finish_reason":"null","message":{}}]},"usage":{"input_tokens":9,"output_tokens":1}}`,
			`{"output":{"choices":[{"finish_reason":"stop","message":{}}]},"usage":{"input_tokens":9,"output_tokens":2}}`},
		{"llama.cpp", `{"content":"a","stop":false,"tokens_evaluated":9,"tokens_predicted":1}`,
			`{"content":"","stop":true,"tokens_evaluated":9,"tokens_predicted":2}`},
		{"watsonx", `{"results":[{"generated_text":"a","generated_token_count":1,"input_token_count":9,"stop_reason":"not_finished"}]}`,
			`{"results":[{"generated_text":"b","generated_token_count":2,"input_token_count":9,"stop_reason":"eos_token"}]}`},
		{"Tencent Hunyuan", `{"Choices":[{"FinishReason":""}],"Usage":{"PromptTokens":9,"CompletionTokens":1}}`,
			`{"Choices":[{"FinishReason":"stop"}],"Usage":{"PromptTokens":9,"CompletionTokens":2}}`},
		{"running totals and an empty reason", `{"choices":[{"finish_reason":""}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`,
			`{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`},
		{"Llama on Bedrock", `{"generation":"a","prompt_token_count":9,"generation_token_count":1,"stop_reason":null}`,
			`{"generation":"b","stop_reason":"stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":9,"outputTokenCount":2}}`},
	} {
		if r := Read("text/event-stream", "", []byte(event(c.before))); r.Complete {
			t.Errorf("%s: whole after %s", c.name, c.before)
		}
		r := Read("text/event-stream", "", []byte(event(c.before, c.last)))
		if !r.Complete {
			t.Errorf("%s: not whole after %s", c.name, c.last)
		}
		want(t, r, map[string]int64{"input_tokens": 9, "output_tokens": 2})
	}
}

// A total below a part that stands beside it tells nothing of the other part.
func TestATotalBelowItsPartIsUnknown(t *testing.T) {
	for _, body := range []string{`{"completion_tokens":20,"total_tokens":10}`, `{"prompt_tokens":20,"total_tokens":10}`} {
		if r := Read(jsonType, "", []byte(`{"usage":`+body+`}`)); r.Total.OK || r.Input.OK && r.Output.OK {
			t.Errorf("%s: %+v", body, r.Counts)
		}
	}
}

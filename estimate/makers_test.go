package estimate

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// estimated is the prompt that a body is expected to be charged.
func estimated(path, body string) int64 { return Inspect([]byte(body), Options{Path: path}).Input }

// The models of Claude get an instruction of the maker with the first tool, and a frame
// for each call.
func TestToolsOfClaudeComeWithAnInstruction(t *testing.T) {
	body := `{"model":"claude-haiku-4-5","max_tokens":900,"messages":[{"role":"user","content":"How high is the Eiffel Tower?"}]%s}`
	plain := estimated("/v1/messages", fmt.Sprintf(body, ""))
	with := estimated("/v1/messages", fmt.Sprintf(body, `,"tools":[{"name":"look_up","description":"Looks a thing up.","input_schema":{"type":"object","properties":{"thing":{"type":"string"}},"required":["thing"]}}]`))
	if plain < 12 || plain > 20 {
		t.Errorf("%d tokens without a tool, about 16 are charged", plain)
	}
	if with-plain < 510 || with-plain > 620 {
		t.Errorf("a tool adds %d tokens, about 560 are charged", with-plain)
	}
	for model, least := range map[string]int64{"claude-3-5-sonnet-20241022": 310, "claude-sonnet-4-20250514": 325, "claude-sonnet-4": 325, "claude-sonnet-4@20250514": 325, "claude-3-haiku-20240307": 264, "us.anthropic.claude-sonnet-4-5-20250929-v1:0": 500} {
		r := Inspect([]byte(`{"model":"`+model+`","messages":[{"role":"user","content":"x"}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`), Options{})
		if r.Input < least || r.Input > least+80 || r.Traits&WithTools == 0 {
			t.Errorf("%s: %d tokens with a tool, traits %b", model, r.Input, r.Traits)
		}
		if r.Input-r.Guess > 40 {
			t.Errorf("%s: %d tokens are said to be stated by the request", model, r.Input-r.Guess)
		}
	}
}

// OpenAI's models see tools in a shorter form: the request states less than its JSON.
func TestToolsOfOpenAIAreRewrittenShorter(t *testing.T) {
	tool := `{"type":"function","function":{"name":"look_up_%d","description":"Looks a thing up in the books.","parameters":{"type":"object","properties":{"thing":{"type":"string","description":"What to look for"},"kind":{"type":"string","enum":["word","place"]}},"required":["thing"],"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"},"strict":true}}`
	var tools []string
	for i := range 20 {
		tools = append(tools, fmt.Sprintf(tool, i))
	}
	body := `{"model":"%s","messages":[{"role":"user","content":"x"}],"tools":[` + strings.Join(tools, ",") + `]}`
	as, raw := estimated("", fmt.Sprintf(body, "gpt-4.1")), estimated("", fmt.Sprintf(body, "unheard-of"))
	if as > raw/2 || as < raw/4 {
		t.Errorf("%d tokens, as JSON %d", as, raw)
	}
}

// Neither Gemini nor Nova charges the form of a chat, nor Gemini and Mistral a schema.
// Gemini 2.5 and 3 charge a token for the prompt: "List three colors as a JSON array" has
// seven of Gemma's tokens and was charged eight, and so were nine texts more.
func TestWhatSomeMakersDoNotCharge(t *testing.T) {
	for _, c := range []struct {
		path, body string
		want       int64
	}{
		{"/v1beta/models/gemini-2.5-flash:generateContent", `{"contents":[{"role":"user","parts":[{"text":"What is ai?"}]}]}`, 5},
		{"/v1beta/models/gemini-2.5-flash:generateContent", `{"contents":[{"role":"user","parts":[{"text":"List three colors as a JSON array"}]}]}`, 8},
		{"/v1beta/models/gemini-2.0-flash:generateContent", `{"contents":[{"role":"user","parts":[{"text":"What is the capital of France"}]}]}`, 6},
		{"/model/us.amazon.nova-pro-v1:0/converse", `{"messages":[{"role":"user","content":[{"text":"What is ai?"}]}]}`, 4},
	} {
		if got := estimated(c.path, c.body); got < c.want-1 || got > c.want+1 {
			t.Errorf("%s: %d tokens, %d are charged", c.path, got, c.want)
		}
	}
	schema := `{"type":"object","properties":{"a":{"type":"string","description":"a long description of it"}}}`
	for _, c := range []struct{ path, body, extra string }{
		{"/v1beta/models/gemini-2.5-flash:generateContent", `{"contents":[{"parts":[{"text":"x"}]}]%s}`, `,"generationConfig":{"responseSchema":` + schema + `}`},
		{"/v1/chat/completions", `{"model":"mistral-small-latest","messages":[{"role":"user","content":"x"}]%s}`, `,"response_format":{"type":"json_schema","json_schema":{"schema":` + schema + `}}`},
	} {
		without, with := estimated(c.path, fmt.Sprintf(c.body, "")), estimated(c.path, fmt.Sprintf(c.body, c.extra))
		if with != without {
			t.Errorf("%s: a schema adds %d tokens", c.path, with-without)
		}
	}
}

// Formats without a schema, efforts and verbosities cost nothing.
func TestFormatsWithoutASchemaCostNothing(t *testing.T) {
	body := `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]%s}`
	plain := estimated("", fmt.Sprintf(body, ""))
	for _, extra := range []string{
		`,"response_format":{"type":"text"}`, `,"response_format":{"type":"json_object"}`, `,"format":"json"`,
		`,"text":{"format":{"type":"text"},"verbosity":"low"}`, `,"output_config":{"effort":"high"}`,
	} {
		if got := estimated("", fmt.Sprintf(body, extra)); got != plain {
			t.Errorf("%s adds %d tokens", extra, got-plain)
		}
	}
}

// A reasoning item costs little for its summary. Its encrypted content is read while the
// turn goes on, and no longer once the user has spoken again.
func TestReasoningItemsAreChargedWhileTheTurnGoesOn(t *testing.T) {
	summary := strings.Repeat("I look at the numbers one by one. ", 80)
	call := `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"ok"}`
	body := func(item, after string) string {
		return `{"model":"gpt-5","input":[{"role":"user","content":"Go on."},` + item + call + after + `]}`
	}
	base := estimated("/v1/responses", body("", ""))
	if got := estimated("/v1/responses", body(`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"`+summary+`"}]},`, "")); got > base+20 {
		t.Errorf("a summary adds %d tokens", got-base)
	}
	sealed := `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"` + strings.Repeat("gAAAAB", 1570) + `"},` // 9,420 characters
	if got := estimated("/v1/responses", body(sealed, "")) - base; got < 1220 || got > 1500 {
		t.Errorf("9,420 characters add %d tokens, 1,362 were charged", got)
	}
	after := `,{"role":"user","content":"And now?"}`
	if got := estimated("/v1/responses", body(sealed, after)) - estimated("/v1/responses", body("", after)); got > 20 {
		t.Errorf("%d tokens although the user has spoken since", got)
	}
}

// Ids, redacted thoughts and other marks are no documents.
func TestMarksAreNotDocuments(t *testing.T) {
	redacted := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("0123456789abcdef"), 40))
	for _, c := range []struct {
		path, body string
		most       int64
	}{
		{"/model/us.anthropic.claude-sonnet-4-20250514-v1:0/converse",
			`{"messages":[{"role":"user","content":[{"text":"hello"}]},{"role":"assistant","content":[{"reasoningContent":{"redactedContent":"` + redacted + `"}},{"text":"yes"}]}]}`, 40},
		{"/v2/chat", `{"model":"unheard-of","messages":[{"role":"user","content":"hello"},{"role":"tool","tool_call_id":"a","content":[{"type":"document","document":{"id":"1","data":"{\"t\":\"x\"}"}}]}]}`, 40},
	} {
		if got := estimated(c.path, c.body); got > c.most {
			t.Errorf("%d tokens for %.120s", got, c.body)
		}
	}
}

// The same reasoning under two names is read once.
func TestReasoningUnderTwoNamesCountsOnce(t *testing.T) {
	text := strings.Repeat("The user asks for the weather. ", 20)
	once := estimated("", `{"model":"qwen3","messages":[{"role":"assistant","content":"x","reasoning_content":"`+text+`"}]}`)
	twice := estimated("", `{"model":"qwen3","messages":[{"role":"assistant","content":"x","reasoning":"`+text+`","reasoning_content":"`+text+`"}]}`)
	if once != twice {
		t.Errorf("%d tokens under one name, %d under two", once, twice)
	}
	other := estimated("", `{"model":"qwen3","messages":[{"role":"assistant","content":"x","reasoning":"Other words.","reasoning_content":"`+text+`"}]}`)
	if other <= once {
		t.Errorf("%d tokens for two different texts, %d for one", other, once)
	}
}

// An embedding is priced by its text, not by the wrapping. The ids of an earlier
// conversation do not double the answers.
func TestTheWrappingOfAPromptIsNotPrompt(t *testing.T) {
	if got := estimated("/model/amazon.nova-2-multimodal-embeddings-v1:0/invoke",
		`{"taskType":"SINGLE_EMBEDDING","singleEmbeddingParams":{"embeddingPurpose":"GENERIC_INDEX","embeddingDimension":1024,"text":{"truncationMode":"END","value":"hi"}}}`); got > 3 {
		t.Errorf("%d tokens for a short text, 1 to 3 are charged", got)
	}
	r := Inspect([]byte(`{"model":"llama3","prompt":"And then?","context":[1,2,3,4,5]}`), Options{Path: "/api/generate"})
	if r.Choices != 1 || r.TokenIDs != 5 {
		t.Errorf("%d choices and %d ids", r.Choices, r.TokenIDs)
	}
}

// What the provider adds by itself is marked: nothing is learned from it.
func TestWhatTheProviderAddsIsMarked(t *testing.T) {
	for body, want := range map[string]bool{
		`{"model":"claude-opus-4-1","messages":[],"tools":[{"type":"web_search_20250305","name":"web_search"}]}`:              true,
		`{"model":"gpt-5","input":"x","tools":[{"type":"file_search","vector_store_ids":["v"]}]}`:                             true,
		`{"model":"gpt-5","input":"x","tools":[{"type":"mcp","server_url":"https://example.org"}]}`:                           true,
		`{"contents":[],"tools":[{"googleSearch":{}}]}`:                                                                       true,
		`{"contents":[],"cachedContent":"cachedContents/1"}`:                                                                  true,
		`{"model":"gpt-5","input":"x","previous_response_id":"resp_1"}`:                                                       true,
		`{"model":"gpt-5","input":"x","previous_response_id":null}`:                                                           false,
		`{"model":"gpt-5","input":"x","previous_response_id":""}`:                                                             false,
		`{"model":"gpt-5","input":"x","conversation":{"id":"c"}}`:                                                             true,
		`{"model":"grok-4","messages":[],"search_parameters":{"mode":"auto"}}`:                                                true,
		`{"model":"x","messages":[],"plugins":[]}`:                                                                            false,
		`{"model":"gpt-5","input":"x","tools":[{"type":"function","name":"web_search","parameters":{"type":"object"}}]}`:      false,
		`{"messages":[],"tools":[{"name":"f","input_schema":{"type":"object","properties":{"type":{"type":"web_search"}}}}]}`: false,
	} {
		r := Inspect([]byte(body), Options{})
		if got := r.Traits&Unpredictable != 0; got != want {
			t.Errorf("%s: unpredictable %v, want %v", body, got, want)
		}
		if learns := r.Prompt().Tokens > 0; learns && want {
			t.Errorf("%s teaches", body)
		}
	}
}

// A tool that the maker describes itself has a published price.
func TestToolsOfTheMakerHaveAPrice(t *testing.T) {
	body := `{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"x"}],"tools":[%s]}`
	one := estimated("", fmt.Sprintf(body, `{"type":"bash_20250124","name":"bash"}`))
	two := estimated("", fmt.Sprintf(body, `{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"str_replace_based_edit_tool"}`))
	if two-one < 700 || two-one > 800 {
		t.Errorf("the editor adds %d tokens, 700 are published", two-one)
	}
}

// pdf is a document of a number of pages, with the tree of pages in clear or not.
func pdf(pages int, clear bool) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	if clear {
		fmt.Fprintf(&b, "2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count %d >>\nendobj\n", pages)
	}
	b.Write(bytes.Repeat([]byte("q7Zt0Xa9PbLm3R. "), 2000))
	return b.Bytes()
}

// Documents are priced by their pages, as the maker of the model charges a page, and
// documents of office programs by their size.
func TestDocumentsArePricedByPageAndMaker(t *testing.T) {
	price := func(model, mime string, data []byte) int64 {
		r := Inspect([]byte(`{"model":"`+model+`","messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"data:`+mime+`;base64,`+base64.StdEncoding.EncodeToString(data)+`"}}]}]}`), Options{})
		if r.Guess < r.MediaTokens {
			t.Errorf("%s: %d of %d tokens for a document are said to be stated", model, r.MediaTokens-r.Guess, r.MediaTokens)
		}
		return r.MediaTokens
	}
	for model, page := range map[string]int64{"gpt-4o": 200, "claude-sonnet-4-5": 1600, "gemini-2.5-flash": 258, "gemini-3-pro": 560} {
		if got := price(model, "application/pdf", pdf(1, true)); got != page {
			t.Errorf("%s: %d tokens a page, want %d", model, got, page)
		}
		if got := price(model, "application/pdf", pdf(7, true)); got != 7*page {
			t.Errorf("%s: %d tokens for seven pages, want %d", model, got, 7*page)
		}
		if got := price(model, "application/pdf", pdf(7, false)); got != page {
			t.Errorf("%s: %d tokens where the pages cannot be read, want those of one", model, got)
		}
	}
	if got := price("gpt-4o", "application/pdf", pdf(100_000, true)); got != maxPages*200 {
		t.Errorf("%d tokens for a document that says it has 100,000 pages", got)
	}
	docx := append([]byte("PK\x03\x04"), bytes.Repeat([]byte("zip"), 4000)...)
	for _, mime := range []string{"application/vnd.openxmlformats-officedocument.wordprocessingml.document", "application/octet-stream"} {
		if got := price("gpt-4o", mime, docx); got < 45 || got > 110 {
			t.Errorf("%s: %d tokens for a document of 12 kB, 45 to 110 are charged", mime, got)
		}
	}
}

// Sound is as long as its first frame says, and film as its header.
func TestSoundAndFilmSayHowLongTheyAre(t *testing.T) {
	audio := func(data []byte) int64 {
		r := Inspect([]byte(`{"model":"gemini-2.5-flash","contents":[{"parts":[{"inlineData":{"mimeType":"audio/mp3","data":"`+base64.StdEncoding.EncodeToString(data)+`"}}]}]}`), Options{})
		return r.MediaTokens
	}
	second := bytes.Repeat([]byte{0x55}, 16_000) // of 128 kbit/s
	mp3 := append([]byte{0xff, 0xfb, 0x90, 0x44}, second...)
	tag := append([]byte("ID3\x04\x00\x00\x00\x00\x00\x0a"), make([]byte, 10)...)
	for name, data := range map[string][]byte{"plain": mp3, "with a tag": append(tag, mp3...)} {
		if got := audio(data); got < 31 || got > 34 {
			t.Errorf("%s: %d tokens for a second, want 32", name, got)
		}
	}

	film := func(data []byte) int64 {
		r := Inspect([]byte(`{"model":"gemini-2.5-flash","contents":[{"parts":[{"inlineData":{"mimeType":"video/mp4","data":"`+base64.StdEncoding.EncodeToString(data)+`"}}]}]}`), Options{})
		return r.MediaTokens
	}
	mvhd := make([]byte, 100)
	binary.BigEndian.PutUint32(mvhd[12:], 600)
	binary.BigEndian.PutUint32(mvhd[16:], 600*15)
	header := append([]byte("mvhd"), mvhd...)
	begin := []byte("\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom")
	noise := bytes.Repeat([]byte("0X9a.b7Zc"), 40_000)
	for name, data := range map[string][]byte{
		"at the beginning": slicesConcat(begin, header, noise),
		"at the end":       slicesConcat(begin, noise, header),
	} {
		if got := film(data); got != 15*263 {
			t.Errorf("%s: %d tokens for 15 seconds, want %d", name, got, 15*263)
		}
	}
}

func slicesConcat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// Words of a setting may be escaped.
func TestAnEscapedDetailIsRead(t *testing.T) {
	image := pngBase64(1024, 1024, 4000)
	plain := estimated("", `{"model":"gpt-4o-mini","messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+image+`","detail":"low"}}]}]}`)
	escaped := estimated("", `{"model":"gpt-4o-mini","messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+image+`","detail":"\u006cow"}}]}]}`)
	if plain != escaped || plain > 3100 {
		t.Errorf("%d tokens, escaped %d", plain, escaped)
	}
}

// Every row of the tables names a model that the names lead to.
func TestEveryRowOfTheTablesIsReached(t *testing.T) {
	for i := range makers {
		if m := makerOf(makers[i].prefix); m != &makers[i] && makers[i].prefix != "" {
			t.Errorf("makers: %q leads to %q", makers[i].prefix, m.prefix)
		}
	}
	for _, r := range imageRules {
		if got := imageRuleOf(r.prefix); got != r {
			t.Errorf("imageRules: %q leads to %q", r.prefix, got.prefix)
		}
	}
	for _, r := range familyTable {
		if got := familyOf(r.prefix); got != r.family {
			t.Errorf("familyTable: %q leads to %v", r.prefix, got)
		}
	}
}

// A call of a tool that is required costs more at Claude's models from 4.5 on, in each
// form of the setting; the last of two equal names counts.
func TestARequiredCallOfAToolIsCharged(t *testing.T) {
	input := func(model, setting string) int64 {
		body := `{"model":"` + model + `",` + setting + `"max_tokens":9,"messages":[{"role":"user","content":"Hello"}],` +
			`"tools":[{"name":"add","input_schema":{"type":"object","properties":{"a":{"type":"number"}}}}]}`
		r := Inspect([]byte(body), Options{Path: "/v1/messages"})
		if !r.Understood {
			t.Fatalf("not understood: %s", body)
		}
		return r.Input
	}
	for _, c := range []struct {
		model, setting string
		more           int64
	}{
		{"claude-sonnet-4-5", `"tool_choice":{"type":"any"},`, 90},
		{"claude-sonnet-4-5", `"tool_choice":{"type":"tool","name":"add"},`, 90},
		{"claude-sonnet-4-5", `"tool_choice":"required",`, 90},
		{"claude-sonnet-4-5", `"tool_choice":{"type":"auto","name":"any"},`, 0},
		{"claude-sonnet-4-5", `"tool_choice":{"type":"any"},"tool_choice":{"type":"auto"},`, 0},
		{"claude-sonnet-4-0", `"tool_choice":{"type":"any"},`, 0},
		{"gpt-4o", `"tool_choice":"required",`, 0},
	} {
		if got := input(c.model, c.setting) - input(c.model, ""); got != c.more {
			t.Errorf("%s, %s: %d tokens more, want %d", c.model, c.setting, got, c.more)
		}
	}
}

// DeepSeek, and Llama 4 at Groq, were charged nothing for tools that must not be called.
// Others were charged for them.
func TestToolsThatMustNotBeCalled(t *testing.T) {
	body := `{"model":"%s","messages":[{"role":"user","content":"What is the square root of 2?"}],"tools":[{"type":"function","function":{"name":"square_root","description":"Returns the square root of a number","parameters":{"type":"object","properties":{"number":{"type":"number"}},"required":["number"]}}}],"tool_choice":"%s"}`
	for model, free := range map[string]bool{
		"deepseek-chat": true, "meta-llama/llama-4-scout-17b-16e-instruct": true, "gpt-4.1": false, "qwen/qwen3-32b": false, "mistral-large-2512": false,
	} {
		allowed, barred := estimated("", fmt.Sprintf(body, model, "auto")), estimated("", fmt.Sprintf(body, model, "none"))
		if free && barred > 25 || !free && barred != allowed {
			t.Errorf("%s: %d tokens where tools may be called, %d where they must not", model, allowed, barred)
		}
	}
}

// A budget of thinking costs 29 tokens at Claude, and nothing elsewhere.
func TestABudgetOfThinkingCostsClaudeAFewTokens(t *testing.T) {
	const claude = `{"model":"claude-sonnet-4-5","max_tokens":4096,"messages":[{"role":"user","content":"Solve: If x + 5 = 12, what is x?"}]%s}`
	const budget = `,"thinking":{"type":"enabled","budget_tokens":2048}`
	if got := estimated("/v1/messages", fmt.Sprintf(claude, budget)) - estimated("/v1/messages", fmt.Sprintf(claude, "")); got != 29 {
		t.Errorf("%d tokens more", got)
	}
	if with, without := estimated("/v1/messages", fmt.Sprintf(claude, `,"thinking":{"type":"disabled"}`)), estimated("/v1/messages", fmt.Sprintf(claude, "")); with != without {
		t.Errorf("disabled: %d tokens, %d without", with, without)
	}
	const gemini = `{"contents":[{"parts":[{"text":"Solve: If x + 5 = 12, what is x?"}]}]%s}`
	path := "/v1beta/models/gemini-2.5-pro:generateContent"
	if with, without := estimated(path, fmt.Sprintf(gemini, `,"generationConfig":{"thinkingConfig":{"thinkingBudget":512}}`)), estimated(path, fmt.Sprintf(gemini, "")); with != without {
		t.Errorf("Gemini: %d tokens, %d without", with, without)
	}
}

// A schema is charged without the name of its dialect, by OpenAI and by Anthropic; Gemini
// 2.5 charges more than the JSON for the schema of what a tool returns.
func TestDialectsAndAnswers(t *testing.T) {
	schema := `{%s"type":"object","properties":{"is_fruit":{"type":"boolean"}},"required":["is_fruit"],"additionalProperties":false}`
	const dialect = `"$schema":"https://json-schema.org/draft/2020-12/schema",`
	for path, body := range map[string]string{
		"/v1/responses": `{"model":"o4-mini","input":"Is a banana a fruit?","text":{"format":{"type":"json_schema","name":"response","schema":%s}}}`,
		"/v1/messages":  `{"model":"claude-opus-4-6","messages":[{"role":"user","content":"Is a banana a fruit?"}],"output_config":{"format":{"type":"json_schema","schema":%s}}}`,
	} {
		without, with := estimated(path, fmt.Sprintf(body, fmt.Sprintf(schema, ""))), estimated(path, fmt.Sprintf(body, fmt.Sprintf(schema, dialect)))
		if with < without-3 || with > without+3 {
			t.Errorf("%s: %d tokens with the dialect, %d without", path, with, without)
		}
	}
	tool := `{"contents":[{"parts":[{"text":"x"}]}],"tools":[{"functionDeclarations":[{"name":"f","description":"Does it.","parameters":{"type":"OBJECT","properties":{"n":{"type":"NUMBER"}},"required":["n"]}%s}]}]}`
	path := "/v1beta/models/gemini-2.5-flash-lite:generateContent"
	if got := estimated(path, fmt.Sprintf(tool, `,"response":{"type":"OBJECT","properties":{"response":{"type":"STRING"}},"required":["response"]}`)) - estimated(path, fmt.Sprintf(tool, "")); got < 35 || got > 60 {
		t.Errorf("the schema of what a tool returns adds %d tokens", got)
	}
}

// A vendor's name in front of a model's is no family, even where both begin alike.
func TestTheVendorInFrontOfAModelIsNoFamily(t *testing.T) {
	for name, want := range map[string]string{
		"qwen.qwen3-coder-30b-a3b-v1:0":         "qwen3-coder-30b-a3b-v1:0",
		"mistral.mistral-large-3-675b-instruct": "mistral-large-3-675b-instruct",
		"mistral.magistral-small-2509":          "magistral-small-2509",
		"deepseek.v3.2":                         "deepseek.v3.2",
		"us.deepseek.r1-v1:0":                   "deepseek.r1-v1:0",
		"us.anthropic.claude-opus-4-6-v1":       "claude-opus-4-6-v1",
		"moonshotai.kimi-k2.5":                  "kimi-k2.5",
		"gpt-4.1":                               "gpt-4.1",
	} {
		if got := family(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

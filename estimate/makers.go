package estimate

import "strings"

// What makers add to a prompt, and how they charge for what is no text. All of it is
// data, in tables by the beginning of a model's name ([family] strips what clouds put
// before it); the longest beginning that fits counts.
//
// The sources are named in each table. "Recorded" are 2,402 requests of public
// repositories with the usage that came back: prompt tokens charged less all text
// counted exactly, the median by model, November 2026. Where a maker publishes a
// figure, the recordings agree with it unless a comment says otherwise.

// A framing is what the form of a chat costs, in tokens.
type framing struct {
	opening int64 // once
	message int64 // a message
	role    bool  // the role of a message is text as well
	name    int64 // a message with a name
	call    int64 // a call of a tool, and a result
}

// A structureRule turns the [shape] of tools, or of a schema, into tokens.
type structureRule struct {
	free bool  // not charged at all
	once int64 // tokens, if there is any

	// resold is json where a host of [schemaHosts] passes the tools on; 0 is json.
	resold int64

	// json is the part of the JSON's own tokens that is charged, in thousandths; 0
	// is all. What follows is added for each part of the shape, in milli-tokens.
	json                                                                     int64
	tool, object, bare, prop, desc, required, enum, dropped, dialect, answer int64
}

// tokens is what a shape costs, in milli-tokens. It is never negative.
func (r *structureRule) tokens(s *shape) int64 {
	if s.milli <= 0 || r.free {
		return 0
	}
	part := r.json
	if part == 0 {
		part = 1000
	}
	n := mulSat(s.milli, part)/1000 + r.once*1000 + s.typed*1000
	n += int64(s.tools)*r.tool + int64(s.objects)*r.object + int64(s.bare)*r.bare + int64(s.props)*r.prop + int64(s.descs)*r.desc +
		int64(s.required)*r.required + int64(s.enums)*r.enum + int64(s.dropped)*r.dropped + int64(s.dialects)*r.dialect + int64(s.answers)*r.answer
	return max(n, 0)
}

// A maker is all that is known of how a model's maker charges a prompt.
type maker struct {
	prefix string
	text   int64 // tokens for a thousand of the fast count's, where the tokenizer is not published; 0 is 1000
	framing
	tools      structureRule
	schema     structureRule
	chatTools  int64 // tokens that tools add on chat completions only, if there are any
	forced     int64 // tokens that tools add where one must be called, if there are any
	barred     bool  // tools that must not be called are not charged ("tool_choice" of "none")
	thinking   int64 // tokens for a budget of thinking, if the request has one
	sealedHead bool  // the first thousand characters of encrypted reasoning are free
	signed     int64 // characters of a thought's signature for ten tokens; 0: not charged
}

// Rewritten tools: the model sees declarations in the manner of TypeScript, shorter
// than the JSON. The figures are a least squares fit to 600 random definitions, each
// written both ways and counted with o200k_base; mean error 6 tokens where
// 180 are saved. Recorded: a tool with two properties was charged 63 tokens, and one
// without any 10 to 13 less than the fit says.
var rewritten = structureRule{once: 13, tool: -7_100, object: -4_700, bare: -10_000, prop: -3_200, desc: -2_300, required: -3_600, enum: 400, dropped: -4_500, dialect: -19_000}

// The prompt of a model of OpenAI: "How to count tokens with tiktoken" (OpenAI
// cookbook).
var (
	chatML     = framing{opening: 3, message: 3, role: true, name: 1, call: 2}
	reasonerML = framing{opening: 3, message: 3, role: true, name: 1, call: 5} // recorded: models that think are charged more for a call
	schemaJSON = structureRule{once: -1, dropped: -3_500, dialect: -19_000}
	llamaTools = structureRule{once: 65, json: 1300}
)

// makers are the tables of text: framing, tools and schemas.
//
// Claude's tool prompts are published by model (Anthropic, "Tool use", pricing); the
// models from 4.5 on were charged about 150 tokens more than the page says, Sonnet 4 about 40
// less, and more for each tool. Where a tool must be called ("tool_choice" of type any),
// Haiku 4.5 was charged 102 and 107 tokens more in one repository, and Sonnet 4.5 64
// and 85 in another; Sonnet 4 was charged nothing more. Bedrock adds nothing of its own.
var makers = []maker{
	{prefix: "", framing: chatML, sealedHead: true},

	{prefix: "gpt-", framing: chatML, tools: rewritten, schema: schemaJSON, sealedHead: true},
	{prefix: "chatgpt", framing: chatML, tools: rewritten, schema: schemaJSON, sealedHead: true},
	{prefix: "o1", framing: reasonerML, tools: rewritten, schema: schemaJSON, sealedHead: true},
	{prefix: "o3", framing: reasonerML, tools: rewritten, schema: schemaJSON, sealedHead: true},
	{prefix: "o4", framing: reasonerML, tools: rewritten, schema: schemaJSON, sealedHead: true},
	// As recorded: the first GPT-5 models get an instruction for tools on chat completions,
	// none on responses; later models get none.
	{prefix: "gpt-5", framing: reasonerML, tools: rewritten, chatTools: 80, schema: schemaJSON, sealedHead: true},
	{prefix: "gpt-5.", framing: reasonerML, tools: rewritten, schema: schemaJSON, sealedHead: true},
	{prefix: "gpt-3.5-turbo-0301", framing: framing{opening: 3, message: 4, role: true, name: -1}, tools: rewritten, schema: schemaJSON},
	{prefix: "gpt-oss", framing: framing{opening: 63, message: 3, role: true}, tools: plus(rewritten, 20), schema: schemaJSON},

	{prefix: "claude", text: 1000, framing: claudeFrame, tools: structureRule{once: 475, tool: 28_000}, forced: 90, thinking: 29, schema: claudeSchema},
	{prefix: "claude-3-opus", text: 1100, framing: claudeFrame, tools: structureRule{once: 490}, schema: claudeSchema},
	{prefix: "claude-3-sonnet", text: 1100, framing: claudeFrame, tools: structureRule{once: 159}, schema: claudeSchema},
	{prefix: "claude-3-haiku", text: 1100, framing: claudeFrame, tools: structureRule{once: 264}, schema: claudeSchema},
	{prefix: "claude-3-5-haiku", text: 1100, framing: claudeFrame, tools: structureRule{once: 264}, schema: claudeSchema},
	{prefix: "claude-3-5-sonnet", text: 1100, framing: claudeFrame, tools: structureRule{once: 300}, schema: claudeSchema},
	{prefix: "claude-3-7", text: 1100, framing: claudeFrame, tools: structureRule{once: 305, tool: 20_000}, schema: claudeSchema},
	{prefix: "claude-sonnet-4-2", text: 1100, framing: claudeFrame, tools: structureRule{once: 305, tool: 20_000}, schema: claudeSchema},
	{prefix: "claude-sonnet-4-0", text: 1100, framing: claudeFrame, tools: structureRule{once: 305, tool: 20_000}, schema: claudeSchema},
	{prefix: "claude-opus-4-2", text: 1100, framing: claudeFrame, tools: structureRule{once: 305, tool: 20_000}, schema: claudeSchema},
	{prefix: "claude-opus-4-0", text: 1100, framing: claudeFrame, tools: structureRule{once: 305, tool: 20_000}, schema: claudeSchema},
	{prefix: "claude-opus-4-1", text: 1100, framing: claudeFrame, tools: structureRule{once: 305, tool: 20_000}, schema: claudeSchema},
	{prefix: "claude-opus-4-7", text: 1200, framing: claudeFrame, tools: structureRule{once: 465, tool: 35_000}, schema: claudeSchema},
	{prefix: "claude-opus-4-8", text: 1200, framing: claudeFrame, tools: structureRule{once: 465, tool: 35_000}, schema: claudeSchema},
	{prefix: "claude-opus-5", text: 1200, framing: claudeFrame, tools: structureRule{once: 465, tool: 35_000}, schema: claudeSchema},

	// As recorded: a prompt to Gemini 2.5 and 3 is charged a token more than its text, and
	// the schema of what a tool returns more than its JSON.
	{prefix: "gemini", framing: framing{opening: 1, call: 7}, tools: structureRule{once: 6, json: 680, prop: 1_500, dropped: -4_000, answer: 28_000, resold: 280}, schema: structureRule{free: true}},
	// As recorded: of a JSON schema of parameters, Gemini 2.0 is charged names and
	// descriptions of tools only; and Gemini 3 the thoughts behind the signatures it gets back.
	{prefix: "gemini-2-0", framing: framing{call: 1}, tools: structureRule{json: 280}, schema: structureRule{free: true}},
	{prefix: "gemini-3", framing: framing{opening: 1, call: 3}, tools: structureRule{once: 9, json: 710, tool: 3_000, prop: 1_500, dropped: -4_000, answer: 13_000, resold: 280}, schema: structureRule{free: true}, signed: 57},
	{prefix: "gemma", framing: chatML, schema: structureRule{free: true}},

	{prefix: "nova", framing: framing{call: 22}, tools: structureRule{once: 340}, schema: structureRule{}},
	{prefix: "nova-premier", framing: framing{opening: 35, call: 22}, tools: structureRule{once: 628}, schema: structureRule{}},
	{prefix: "nova-2", framing: framing{opening: 43, call: 22}, tools: structureRule{once: 824}, schema: structureRule{}},

	{prefix: "mistral", framing: framing{opening: 1, message: 2, call: 8}, tools: structureRule{once: 9, tool: 8_000}, schema: structureRule{free: true}},
	// As recorded: three tools cost 30 tokens more than the JSON, one costs none. Ids of calls
	// cost nothing.
	{prefix: "mistral-large", framing: framing{opening: 1, message: 2, call: 1}, tools: structureRule{once: 4, tool: 13_000}, schema: structureRule{free: true}},
	// As recorded: one request, two charges under the name of the newest small model, 12
	// tokens apart. The later model, with a setting for reasoning, is charged them.
	{prefix: "mistral-small", framing: framing{opening: 13, message: 2, call: 8}, tools: structureRule{once: 9, tool: 8_000}, schema: structureRule{free: true}},
	{prefix: "mistral-small-24", framing: framing{opening: 1, message: 2, call: 8}, tools: structureRule{once: 9, tool: 8_000}, schema: structureRule{free: true}},
	{prefix: "mistral-small-25", framing: framing{opening: 1, message: 2, call: 8}, tools: structureRule{once: 9, tool: 8_000}, schema: structureRule{free: true}},
	{prefix: "ministral", framing: framing{opening: 1, message: 2, call: 1}, tools: structureRule{once: 9, tool: 8_000}, schema: structureRule{free: true}},
	{prefix: "pixtral", framing: framing{opening: 1, message: 2, call: 18}, tools: structureRule{once: 9, tool: 8_000}, schema: structureRule{free: true}},
	{prefix: "codestral", framing: framing{opening: 1, message: 2, call: 8}, tools: structureRule{once: 9, tool: 8_000}, schema: structureRule{free: true}},
	{prefix: "mistral-medium", framing: framing{opening: 1, message: 2, call: 1}, tools: structureRule{once: 9, tool: 8_000}, schema: structureRule{free: true}},
	{prefix: "mistral-large-24", framing: framing{opening: 1, message: 2, call: 8}, tools: structureRule{once: 9, tool: 8_000}, schema: structureRule{free: true}},
	{prefix: "devstral", framing: framing{opening: 1, message: 2, call: 1}, tools: structureRule{once: 9, tool: 8_000}, schema: structureRule{free: true}},
	{prefix: "magistral", framing: framing{opening: 1, message: 2, call: 8}, tools: structureRule{once: 9, tool: 8_000}, schema: structureRule{free: true}},

	{prefix: "command", framing: framing{opening: 499, message: 3}, tools: structureRule{once: 900}, schema: structureRule{once: 60}},
	// As recorded: the prompt of the newest command model is 1,385 tokens longer. On Bedrock
	// the first two are charged for no prompt of the maker's, and for a part of the tools.
	{prefix: "command-a-reasoning", framing: framing{opening: 1383, message: 3}, tools: structureRule{once: 10}, schema: structureRule{free: true}},
	{prefix: "command-light", framing: framing{opening: 59, message: 3}},
	{prefix: "command-r-v1", tools: structureRule{json: 270}},
	{prefix: "command-r-plus-v1", tools: structureRule{json: 270}},
	// As recorded: DeepSeek charges no tools that must not be called, and its model of
	// March 2025 got a shorter instruction.
	{prefix: "deepseek", framing: framing{opening: 1, message: 1, call: 28}, tools: structureRule{once: 250}, barred: true},
	{prefix: "deepseek-chat-v3-0324", framing: framing{opening: 1, message: 1, call: 5}, tools: structureRule{once: 58}, barred: true},
	{prefix: "deepseek-v4", framing: framing{opening: 79, message: 3, role: true, call: 22}, tools: structureRule{once: 224}},
	{prefix: "grok", framing: framing{opening: 127, message: 3, role: true}, tools: structureRule{once: 80}},
	{prefix: "grok-4.5", framing: framing{opening: 200, message: 3, role: true}, tools: structureRule{once: 40}},
	{prefix: "grok-4-1", framing: framing{opening: 168, message: 3}, tools: structureRule{once: 135}},
	{prefix: "grok-4-fast", framing: framing{opening: 168, message: 3, call: 46}, tools: structureRule{once: 63}},
	{prefix: "qwen", framing: framing{opening: 6, message: 3, role: true}, tools: structureRule{once: 70}, schema: structureRule{free: true}},
	{prefix: "qwen3-", framing: framing{opening: 6, message: 3, role: true, call: 10}, tools: structureRule{once: 94}, schema: structureRule{free: true}},
	{prefix: "qwen3-coder", framing: framing{opening: 6, message: 3, role: true, call: 10}, tools: structureRule{once: 240}, schema: structureRule{free: true}},
	{prefix: "qwen-3-coder", framing: framing{opening: 6, message: 3, role: true, call: 10}, tools: structureRule{once: 240}, schema: structureRule{free: true}},
	{prefix: "kimi", framing: framing{opening: 9, message: 3, role: true, call: 8}, tools: structureRule{once: -12}},
	{prefix: "glm-", framing: chatML, tools: structureRule{once: 128}},
	// The template of Llama 3 writes the JSON of tools with indents, below an instruction
	// (Meta, Llama 3.1 model card). Llama 4 as recorded.
	{prefix: "llama", framing: framing{opening: 7, message: 4, role: true}, tools: llamaTools},
	{prefix: "llama-4", framing: framing{opening: 4, message: 4, role: true}, tools: structureRule{once: 104}, schema: structureRule{once: 37}, barred: true},
	{prefix: "llama-3.1", framing: framing{opening: 28, message: 3, role: true}, tools: llamaTools}, // the date
	{prefix: "llama-3.2", framing: framing{opening: 28, message: 3, role: true}, tools: llamaTools},
	{prefix: "llama-3.3", framing: framing{opening: 28, message: 3, role: true}, tools: llamaTools},
	{prefix: "llama-3-1", framing: framing{opening: 9, message: 3, role: true}, tools: llamaTools},
	{prefix: "llama-3-2", framing: framing{opening: 28, message: 3, role: true}, tools: llamaTools},
	{prefix: "llama-3-3", framing: framing{opening: 28, message: 3, role: true}, tools: llamaTools},
	{prefix: "palmyra-x4", framing: framing{opening: 4, message: 3, role: true}, tools: structureRule{once: 10}},
	{prefix: "palmyra", framing: framing{opening: 28, message: 3, role: true}, tools: structureRule{once: 99}},
}

// toolTokens is what tools add to a prompt, in milli-tokens: their definitions and what
// the maker says of them.
func (m *maker) toolTokens(t *totals, tools *shape, path, kind string) int64 {
	if m.barred && t.barred > 0 {
		return 0
	}
	rule := m.tools
	if rule.resold > 0 && isOneOf(path, schemaHosts) {
		rule.json = rule.resold
	}
	milli := rule.tokens(tools)
	if kind == kindChat {
		milli += m.chatTools * 1000
	}
	if t.forced > 0 {
		milli += m.forced * 1000
	}
	return milli
}

// plainHosts are paths of clouds that leave out the instruction with which a model's
// maker opens every chat (recorded: models of xAI on Azure).
var plainHosts = []string{"/models/chat/completions"}

// schemaHosts are paths of clouds that pass tools on in a form of which only names and
// descriptions are charged (recorded: OpenRouter to Gemini 2.5 and 3, three requests).
var schemaHosts = []string{"/api/v1/chat/completions"}

// opens reports whether the maker's instruction opens a chat on this path.
func opens(path string) bool { return !isOneOf(path, plainHosts) }

// isOneOf reports whether a path has one of the parts in it.
func isOneOf(path string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(path, p) {
			return true
		}
	}
	return false
}

// claudeFrame is what Claude's chats cost beyond their text, claudeSchema what a schema
// of the answer costs beyond its JSON.
var (
	claudeFrame  = framing{opening: 3, message: 3, role: true, call: 28}
	claudeSchema = structureRule{once: 135, dialect: -19_000}
)

func plus(r structureRule, once int64) structureRule {
	r.once += once
	return r
}

// makerOf returns the row for a model, a name as [family] returns it.
func makerOf(model string) *maker {
	best := &makers[0]
	for i := range makers {
		m := &makers[i]
		if len(m.prefix) > len(best.prefix) && strings.HasPrefix(model, m.prefix) {
			best = m
		}
	}
	return best
}

// Encrypted reasoning that a request hands back: OpenAI charges about one token for
// 6.3 characters beyond the first thousand, and only while no message of the user
// follows (recorded). xAI charges from the first character on.
const (
	sealedHead  = 1000
	sealedBytes = 63 // characters for ten tokens
)

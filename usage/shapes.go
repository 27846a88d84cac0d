package usage

// A node is a place in a response document whose members mean something. An
// array and its elements share a node.
type node uint8

const (
	nodeNone node = iota // stepped over
	nodeList             // an array of documents: Gemini without alt=sse
	nodeRoot             // a document: a body, an event, a line

	nodeUsage      // OpenAI, Anthropic, Cohere, Bedrock and everybody like them
	nodeGemini     // usageMetadata
	nodeMetrics    // amazon-bedrock-invocationMetrics
	nodeMeta       // Cohere: meta
	nodeBilled     // Cohere: billed_units
	nodeTokens     // Cohere: tokens
	nodeInDetails  // prompt_tokens_details and its other names
	nodeOutDetails // completion_tokens_details and its other names
	nodeIterations // Anthropic: passes of one call, to be summed

	nodeResponse     // OpenAI Responses events: response
	nodeMessage      // Anthropic message_start, Ollama and Cohere: message
	nodeGroq         // x_groq
	nodeChoices      // choices
	nodeChoice       // choices[].message of a body that is not a stream
	nodeDelta        // choices[].delta; delta of Anthropic and Bedrock
	nodeDeltaMessage // Cohere: delta.message
	nodeParts        // text parts
	nodeToolCalls    // tool_calls
	nodeFunction     // tool_calls[].function
	nodeCandidates   // Gemini: candidates
	nodeContent      // Gemini: candidates[].content
	nodeOutput       // output of Responses (a list) and of Bedrock (an object)
	nodeData         // data of OpenAI lists
	nodeResults      // Titan and watsonx: results
	nodeResult       // Cloudflare Workers AI: result
	nodeWrapped      // data of a gateway that wraps the whole answer
	nodeGeneration   // text-generation-inference: details
	nodeReplicate    // Replicate: metrics
	nodePages        // Mistral OCR: usage_info; MiniMax speech: extra_info
	nodeTencent      // Tencent Hunyuan: Response
	nodeTencentUsage // Tencent Hunyuan: Usage
	nodePredictions  // Vertex AI embeddings: predictions
	nodeVertexText   // predictions[].embeddings
	nodeStatistics   // predictions[].embeddings.statistics
	nodeVertex       // Vertex AI predictions of PaLM: metadata
	nodeVertexTokens // metadata.tokenMetadata
	nodeVertexInput  // metadata.tokenMetadata.inputTokenCount
	nodeVertexOutput // metadata.tokenMetadata.outputTokenCount
	nodeRunPod       // RunPod: output[].usage
	nodeOracle       // OCI Generative AI: chatResponse
	nodeCount
)

// usageNodes are the objects that hold one statement of what a call cost.
var usageNodes = [nodeCount]bool{nodeUsage: true, nodeGemini: true, nodeMetrics: true, nodeMeta: true,
	nodeGeneration: true, nodeReplicate: true, nodePages: true, nodeTencentUsage: true, nodeRunPod: true, nodeVertexTokens: true}

// A member says what to do with one member of an object. The zero value of
// each field: nothing.
type member struct {
	object  node                   // where the value leads if it is an object
	array   node                   // where it leads if it is an array
	field   field                  // the count it states if it is a number
	text    stringKind             // how to read it if it is a string
	counter counter                // with asText: whose bytes
	word    func(*reading, []byte) // with asWord
	flag    func(*reading, bool)   // if it is true or false
	seen    func(*reading, byte)   // called with the first byte of the value
	capture string                 // keep the raw value for the refusal, under this name
}

func is(n field) *member     { return &member{field: n} }
func into(n node) *member    { return &member{object: n} }
func listOf(n node) *member  { return &member{array: n} }
func text(c counter) *member { return &member{text: asText, counter: c} }

// failure is an error: an object, or a string that is not empty.
var (
	finish      = &member{text: asWord, word: (*reading).finishWord}
	lastMetrics = &member{object: nodeMetrics, seen: (*reading).finishSeen} // on the last document only
)

var failure = &member{text: asWord, word: (*reading).errorWord, seen: (*reading).errorSeen, capture: "error"}

// shapes is everything that is known of where providers put what. A name has
// one meaning in one place; the same name elsewhere (in tool arguments, in an
// echoed prompt, in metadata) has none.
//
// Sources: OpenAI API reference (chat, completions, embeddings, responses,
// images, audio); Anthropic Messages and streaming; Gemini API
// GenerateContentResponse and Interactions; OCI Generative AI; Amazon Bedrock
// TokenUsage and InvokeModel; Cohere v1 and v2; Ollama API; Cloudflare Workers AI;
// IBM watsonx.ai text generation;
// text-generation-inference; llama.cpp server; Replicate predictions; Vertex AI
// text embeddings; Tencent Hunyuan; Mistral, DeepSeek, Groq, xAI, Perplexity, OpenRouter
// and vLLM, which follow OpenAI with members of their own.
var shapes = [nodeCount]map[string]*member{
	nodeRoot: {
		"usage":                            into(nodeUsage),
		"usageMetadata":                    into(nodeGemini),
		"usage_metadata":                   into(nodeGemini), // gateways that keep the names of the protocol buffer
		"interaction":                      into(nodeResponse),
		"chatResponse":                     into(nodeOracle),
		"amazon-bedrock-invocationMetrics": lastMetrics,
		"meta":                             into(nodeMeta),
		"x_groq":                           into(nodeGroq),
		"response":                         {object: nodeResponse, text: asText, counter: plainText}, // a string with Ollama
		"message":                          {object: nodeMessage, text: ignored, capture: "message"},
		"delta":                            {object: nodeDelta, text: asText, counter: typedText},
		"choices":                          listOf(nodeChoices),
		"Choices":                          listOf(nodeChoices), // Tencent Hunyuan
		"candidates":                       listOf(nodeCandidates),
		"content":                          listOf(nodeParts),
		"output":                           {object: nodeOutput, array: nodeOutput},
		"data":                             {object: nodeWrapped, array: nodeData},
		"result":                           into(nodeResult),
		"details":                          into(nodeGeneration),
		"metrics":                          into(nodeReplicate),
		"usage_info":                       into(nodePages),
		"extra_info":                       into(nodePages),
		"Response":                         into(nodeTencent),
		"Usage":                            into(nodeTencentUsage),
		"predictions":                      listOf(nodePredictions),
		"metadata":                         into(nodeVertex),
		"generated_text":                   text(wholeText), // text-generation-inference
		"results":                          listOf(nodeResults),

		"type":       {text: asWord, word: (*reading).typeWord, capture: "type"},
		"event_type": {text: asWord, word: (*reading).typeWord}, // Gemini interactions, Cohere v1
		"object":     {text: asWord, word: (*reading).objectWord},
		"done":       {flag: (*reading).doneFlag},
		"stop":       {flag: (*reading).finishFlag}, // llama.cpp
		"is_end":     {flag: (*reading).finishFlag}, // Baidu Qianfan (baidubce/bce-qianfan-sdk, ModelResponse)
		"error":      failure,
		"code":       {capture: "code"},
		"msg":        {capture: "msg"}, // Zhipu's older interface, with success
		"success":    {flag: (*reading).successFlag, capture: "success"},
		"base_resp":  {seen: (*reading).maybeFailed, capture: "base_resp"},  // MiniMax, on every answer
		"error_code": {seen: (*reading).maybeFailed, capture: "error_code"}, // Baidu Qianfan
		"error_msg":  {capture: "error_msg"},
		"error_type": {capture: "error_type"}, // Hugging Face
		"bytes":      {text: asBase64},

		"embedding":  {seen: (*reading).embeddingSeen},
		"embeddings": {seen: (*reading).embeddingSeen},

		"prompt_eval_count":         is(fieldInput),  // Ollama
		"eval_count":                is(fieldOutput), // Ollama
		"inputTextTokenCount":       is(fieldInput),  // Titan
		"totalOutputTextTokenCount": is(fieldOutput), // Titan
		"prompt_token_count":        is(fieldInput),  // Llama on Bedrock
		"generation_token_count":    is(fieldOutput), // Llama on Bedrock
		"tokens_evaluated":          is(fieldInput),  // llama.cpp
		"tokens_predicted":          is(fieldOutput), // llama.cpp
		"num_tokens_prompt_total":   is(fieldInput),  // Aleph Alpha
		"num_tokens_generated":      is(fieldOutput), // Aleph Alpha
	},
	nodeResults: {
		"tokenCount":            is(fieldResultOutput), // Titan
		"input_token_count":     is(fieldResultInput),  // watsonx
		"generated_token_count": is(fieldResultOutput), // watsonx
		"generated_text":        text(wholeText),
		"stop_reason":           finish, // watsonx
		"completionReason":      finish, // Titan
	},
	nodeResult:  {"usage": into(nodeUsage), "response": text(plainText)},
	nodeWrapped: {"usage": into(nodeUsage), "embedding": {seen: (*reading).embeddingSeen}},
	nodeGeneration: {
		"generated_tokens": is(fieldOutput),
		"input_length":     is(fieldInput),
		"finish_reason":    finish,
	},
	nodeReplicate: {
		"input_token_count":  is(fieldInput),
		"output_token_count": is(fieldOutput),
		"token_input_count":  is(fieldInput),
		"token_output_count": is(fieldOutput),
	},
	nodePages:   {"pages_processed": is(fieldOther), "usage_characters": is(fieldOther)},
	nodeTencent: {"Usage": into(nodeTencentUsage), "Choices": listOf(nodeChoices), "Error": failure},
	nodeTencentUsage: {
		"PromptTokens":     is(fieldPrompt),
		"CompletionTokens": is(fieldCompletion),
		"TotalTokens":      is(fieldTotal),
	},
	nodeOracle: {"usage": into(nodeUsage)},
	nodeRunPod: { // elsewhere input and output are money as often
		"input":             is(fieldInput),
		"output":            is(fieldOutput),
		"prompt_tokens":     is(fieldPrompt),
		"completion_tokens": is(fieldCompletion),
		"total_tokens":      is(fieldTotal),
	},
	nodePredictions: {"embeddings": into(nodeVertexText)},
	nodeVertexText:  {"statistics": into(nodeStatistics), "values": {seen: (*reading).embeddingSeen}},
	nodeStatistics:  {"token_count": is(fieldResultInput)},

	nodeVertex:       {"tokenMetadata": into(nodeVertexTokens)},
	nodeVertexTokens: {"inputTokenCount": into(nodeVertexInput), "outputTokenCount": into(nodeVertexOutput)},
	nodeVertexInput:  {"totalTokens": is(fieldInput)},
	nodeVertexOutput: {"totalTokens": is(fieldOutput)},

	nodeUsage: {
		"prompt_tokens":     is(fieldPrompt),
		"promptTokens":      is(fieldPrompt), // AI SDK and gateways in front of it
		"completion_tokens": is(fieldCompletion),
		"completionTokens":  is(fieldCompletion),
		"total_tokens":      is(fieldTotal),
		"totalTokens":       is(fieldTotal),

		"input_tokens":                is(fieldInput),
		"inputTokens":                 is(fieldInput),
		"output_tokens":               is(fieldOutput),
		"outputTokens":                is(fieldOutput),
		"total_input_tokens":          is(fieldInput), // Gemini interactions
		"total_output_tokens":         is(fieldOutput),
		"total_cached_tokens":         is(fieldCachedTop),
		"cache_read_input_tokens":     is(fieldCacheRead),
		"cacheReadInputTokens":        is(fieldCacheRead),
		"cache_creation_input_tokens": is(fieldCacheWrite),
		"cacheWriteInputTokens":       is(fieldCacheWrite),

		"cached_tokens":           is(fieldCachedTop), // Hugging Face, Cohere
		"cachedInputTokens":       is(fieldCachedTop), // AI SDK
		"reasoningTokens":         is(fieldReasoning),
		"prompt_cache_hit_tokens": is(fieldCacheHit),  // DeepSeek
		"reasoning_tokens":        is(fieldReasoning), // Perplexity
		"prompt_audio_seconds":    is(fieldSeconds),   // Mistral
		"seconds":                 is(fieldSeconds),   // OpenAI transcriptions
		"type":                    {text: asWord, word: (*reading).usageType},

		// Costs that are no tokens, where no tokens stand beside them.
		"duration":           is(fieldOther),
		"images":             is(fieldOther),
		"image_count":        is(fieldOther),
		"characters":         is(fieldOther),
		"pages_processed":    is(fieldOther),
		"num_search_queries": is(fieldOther),
		"search_units":       is(fieldOther),
		"credits":            is(fieldOther), // Tavily, Recraft
		"video_duration":     is(fieldOther), // DashScope
		"video_count":        is(fieldOther),

		// Bedrock guardrails
		"topicPolicyUnits":                is(fieldOther),
		"contentPolicyUnits":              is(fieldOther),
		"contentPolicyImageUnits":         is(fieldOther),
		"wordPolicyUnits":                 is(fieldOther),
		"sensitiveInformationPolicyUnits": is(fieldOther),
		"contextualGroundingPolicyUnits":  is(fieldOther),

		"prompt_tokens_details":     into(nodeInDetails),
		"input_tokens_details":      into(nodeInDetails),
		"input_token_details":       into(nodeInDetails),
		"completion_tokens_details": into(nodeOutDetails),
		"output_tokens_details":     into(nodeOutDetails),
		"output_token_details":      into(nodeOutDetails),

		"iterations":   listOf(nodeIterations),
		"billed_units": into(nodeBilled),
		"tokens":       into(nodeTokens),
	},
	nodeInDetails: {
		"cached_tokens":      is(fieldCached),
		"cache_write_tokens": is(fieldWrite),
		"audio_tokens":       is(fieldAudio),
	},
	nodeOutDetails: {
		"reasoning_tokens": is(fieldReasoning),
		"thinking_tokens":  is(fieldReasoning),
	},
	nodeIterations: {
		"input_tokens":                is(fieldIterInput),
		"output_tokens":               is(fieldIterOutput),
		"cache_read_input_tokens":     is(fieldIterRead),
		"cache_creation_input_tokens": is(fieldIterWrite),
	},
	nodeMeta: {"billed_units": into(nodeBilled), "tokens": into(nodeTokens)},
	nodeBilled: {
		"input_tokens":    is(fieldBilledInput),
		"output_tokens":   is(fieldBilledOutput),
		"search_units":    is(fieldOther),
		"classifications": is(fieldOther),
		"images":          is(fieldOther),
	},
	nodeTokens: {
		"input_tokens":     is(fieldTokensInput),
		"output_tokens":    is(fieldTokensOutput),
		"reasoning_tokens": is(fieldReasoning),
	},
	nodeMetrics: {
		"inputTokenCount":           is(fieldInput),
		"outputTokenCount":          is(fieldOutput),
		"cacheReadInputTokenCount":  is(fieldCacheRead),
		"cacheWriteInputTokenCount": is(fieldCacheWrite),
	},
	nodeGemini: {
		"promptTokenCount":        is(fieldPrompt),
		"toolUsePromptTokenCount": is(fieldToolPrompt),
		"candidatesTokenCount":    is(fieldCandidates),
		"thoughtsTokenCount":      is(fieldThoughts),
		"totalTokenCount":         is(fieldTotal),
		"cachedContentTokenCount": is(fieldCached),

		"prompt_token_count":          is(fieldPrompt),
		"tool_use_prompt_token_count": is(fieldToolPrompt),
		"candidates_token_count":      is(fieldCandidates),
		"thoughts_token_count":        is(fieldThoughts),
		"total_token_count":           is(fieldTotal),
		"cached_content_token_count":  is(fieldCached),
	},

	// response.output repeats the whole answer and is not counted again.
	nodeResponse: {
		"usage":         into(nodeUsage),
		"usageMetadata": into(nodeGemini),
		"meta":          into(nodeMeta), // Cohere v1, last event
		"error":         failure,
	},
	nodeGroq: {"usage": into(nodeUsage)},
	nodeMessage: {
		"usage":      into(nodeUsage),
		"content":    {array: nodeParts, text: asText, counter: plainText},
		"thinking":   text(plainText),
		"tool_calls": listOf(nodeToolCalls),
	},

	nodeChoices: {
		"delta":         into(nodeDelta),
		"message":       into(nodeChoice),
		"text":          text(plainText),
		"finish_reason": finish,
		"FinishReason":  finish, // Tencent Hunyuan
		"error":         failure,
		"usage":         into(nodeUsage), // Kimi, last event
		"index":         is(fieldIndex),
	},
	// Perplexity repeats the whole answer so far in choices[].message of every
	// event, so this place counts only where there is one document.
	nodeChoice: {
		"content":           {array: nodeParts, text: asText, counter: wholeText},
		"reasoning_content": text(wholeText),
		"refusal":           text(wholeText),
	},
	nodeDelta: {
		"content":           {array: nodeParts, text: asText, counter: plainText},
		"text":              text(plainText),
		"thinking":          text(plainText),
		"partial_json":      text(plainText),
		"refusal":           text(plainText),
		"reasoning_content": text(reasoningText),
		"reasoning":         text(reasoningTwice),
		"tool_calls":        {object: nodeToolCalls, array: nodeToolCalls},
		"message":           into(nodeDeltaMessage),
		"usage":             into(nodeUsage), // Cohere message-end
	},
	nodeDeltaMessage: {
		"content":    into(nodeParts),
		"tool_plan":  text(plainText),
		"tool_calls": {object: nodeToolCalls, array: nodeToolCalls},
	},
	nodeParts:      {"text": text(plainText), "thinking": {array: nodeParts, text: asText, counter: plainText}},
	nodeToolCalls:  {"function": into(nodeFunction)},
	nodeFunction:   {"arguments": text(plainText)},
	nodeCandidates: {"content": into(nodeContent), "finishReason": finish},
	nodeContent:    {"parts": listOf(nodeParts)},
	nodeOutput: {
		"message": into(nodeOutput), // Bedrock: output.message.content
		"content": listOf(nodeParts),
		"usage":   into(nodeRunPod), // a list of answers

		"finish_reason": finish,              // DashScope
		"choices":       listOf(nodeChoices), // DashScope
	},
	nodeData: {"embedding": {seen: (*reading).embeddingSeen}},
}

// lengths has a bit for each length of a key in shapes: most keys of a response
// are turned away by it without a look-up.
var lengths = func() (l [nodeCount]uint64) {
	for n, members := range shapes {
		for key := range members {
			l[n] |= 1 << len(key)
		}
	}
	return l
}()

func lookup(n node, key []byte) *member {
	if len(key) > 63 || lengths[n]>>len(key)&1 == 0 {
		return nil
	}
	return shapes[n][string(key)]
}

package estimate

// The names around a value say what it means. A place says how a value is
// read; the tables below give the place for each name. Names that are in no
// table are not read, except inside a message. There everything is prompt unless
// a table says otherwise. An estimate that is too low overruns a limit, while a
// name made next year costs a few tokens too many at worst.
type place uint8

const (
	asSkipped   place = iota // not prompt
	asUnknown                // a name at the top that is in no table
	asRoot                   // the body itself
	asItems                  // a list of messages, or a single text in its place
	asInput                  // the same, or token ids, or lists of either
	asContent                // text, or a list of parts
	asLoose                  // inside a message, under a name in no table
	asArguments              // text when it is a string, JSON otherwise
	asStructure              // JSON that the model reads: tools, schemas, arguments
	asTools                  // the definitions of tools
	asSchema                 // the schema of the answer
	asFormat                 // an object around the schema of the answer
	asEmbedding              // an object around the text of an embedding
	asStored                 // names what the provider keeps or fetches, unless empty
	asIDs                    // token ids that belong to a prompt
	asSealed                 // reasoning, encrypted, or its signature
	asReasoning              // text, or the same text again under a second name
	asAudioID                // names a stored answer in sound
	asMedia                  // an object around a payload: image_url, source, inlineData
	asData                   // a payload, base64
	asReference              // a URL, data URL or the name of a stored file
	asRole                   // counted as the text of a message's head
	asName                   // text, and a message that has one
	asPartType               // the type of a part
	asDetail                 // detail of an image
	asMIME                   // MIME type or format of a payload
	asConfig                 // an object of settings
	asThinking               // an object with the thinking budget
	asChoice                 // whether a tool must be called, or an object around that
	asSetting                // a number or truth value, kept in a slot
	asModel                  // the model
)

// callMark marks the names of calls of tools and of their results.
const callMark = 1

// Slots for settings. A setting of each name is kept by itself. So the last of
// two equal names wins, and of two different names the larger value wins.
const (
	slotStream = iota
	slotBudget
	slotN // and what follows multiplies the output
	slotBestOf
	slotCandidateCount
	slotCandidateCountSnake
	slotNumGenerations
	slotNumResults
	slotNumReturnSequences
	slotMaxTokens // and what follows caps the output
	slotMaxCompletionTokens
	slotMaxOutputTokens
	slotMaxTokensToSample
	slotMaxOutputTokensCamel
	slotMaxTokensCamel
	slotMaxCompletionTokensCamel
	slotMaxNewTokens
	slotMaxNewTokensCamel
	slotMaxTokenCount
	slotMaxGenLen
	slotNumPredict
	slotNPredict
	slotMaxLength
	slots
)

// Marks of what has been seen at the top of a body, which tell its kind.
const (
	sawMessages = 1 << iota
	sawContents
	sawInput
	sawPrompt
	sawText      // another name that holds a prompt
	sawAnthropic // a name that only the messages interface has
	sawConverse
	sawResponses
	sawEmbedding
)

// rootKey is the table of names at the top of a body: OpenAI chat, completions,
// responses and embeddings; Anthropic messages and completions; Gemini
// generateContent and embedContent; Bedrock converse and the native bodies of
// its models; Cohere; Ollama; text-generation-inference; OCI.
func rootKey(key []byte) (p place, arg uint8, saw uint16) {
	switch string(key) {
	case "model", "modelId", "model_id":
		return asModel, 0, 0
	case "suffix":
		return asContent, 0, 0
	case "system":
		return asContent, 0, sawAnthropic
	case "systemInstruction", "system_instruction", "preamble":
		return asContent, 0, 0
	case "instructions":
		return asContent, 0, sawResponses
	case "tools", "functions", "toolConfig", "tool_config":
		return asTools, 0, 0
	case "tool_choice":
		return asChoice, 0, 0
	case "response_format", "responseFormat", "output_format", "output_config", "outputConfig",
		"structured_outputs", "text":
		return asFormat, 0, 0
	case "format", "guided_json", "json_schema":
		return asSchema, 0, 0
	case "images", "image":
		return asMedia, uint8(mediaImage), 0
	case "generationConfig", "generation_config", "inferenceConfig", "options", "parameters",
		"textGenerationConfig", "additionalModelRequestFields", "extra_body":
		if string(key) == "inferenceConfig" {
			return asConfig, 0, sawConverse
		}
		return asConfig, 0, 0
	case "thinking":
		return asThinking, 0, sawAnthropic
	case "reasoning":
		return asThinking, 0, 0
	case "anthropic_version", "anthropic_beta", "stop_sequences":
		return asSkipped, 0, sawAnthropic
	case "previous_response_id":
		return asStored, 0, sawResponses
	case "conversation", "cachedContent", "cached_content", "mcp_servers", "connectors", "data_sources",
		"web_search_options", "search_parameters", "plugins", "retrieval_config":
		return asStored, 0, 0
	case "max_tool_calls", "truncation":
		return asSkipped, 0, sawResponses
	case "encoding_format", "dimensions", "input_type", "outputDimensionality", "output_dimension":
		return asSkipped, 0, sawEmbedding
	}
	if slot, ok := settingKey(key); ok {
		return asSetting, slot, 0
	}
	return promptKey(key)
}

// promptKey is the table of names at the top under which a prompt stands.
func promptKey(key []byte) (p place, arg uint8, saw uint16) {
	switch string(key) {
	case "messages":
		return asItems, 0, sawMessages
	case "contents":
		return asItems, 0, sawContents
	case "content":
		return asItems, 0, sawText
	case "requests", "chat_history", "chatHistory":
		return asItems, 0, sawText
	case "input":
		return asInput, 0, sawInput
	case "prompt":
		return asInput, 0, sawPrompt
	case "inputs", "inputText", "texts", "message", "query", "queries", "documents":
		return asInput, 0, sawText
	case "context":
		return asIDs, 0, 0
	case "singleEmbeddingParams", "segmentedEmbeddingParams":
		return asEmbedding, 0, sawText | sawEmbedding
	case "chatRequest", "inferenceRequest", "servingMode": // OCI Generative AI: what stands at the top elsewhere
		return asRoot, 0, 0
	}
	return asUnknown, 0, 0
}

// settingKey is the table of settings, wherever they stand.
func settingKey(key []byte) (slot uint8, ok bool) {
	switch string(key) {
	case "stream":
		return slotStream, true
	case "n":
		return slotN, true
	case "best_of":
		return slotBestOf, true
	case "candidateCount":
		return slotCandidateCount, true
	case "candidate_count":
		return slotCandidateCountSnake, true
	case "num_generations":
		return slotNumGenerations, true
	case "numResults":
		return slotNumResults, true
	case "num_return_sequences":
		return slotNumReturnSequences, true
	case "max_tokens":
		return slotMaxTokens, true
	case "max_completion_tokens":
		return slotMaxCompletionTokens, true
	case "max_output_tokens":
		return slotMaxOutputTokens, true
	case "max_tokens_to_sample":
		return slotMaxTokensToSample, true
	case "maxOutputTokens":
		return slotMaxOutputTokensCamel, true
	case "maxTokens":
		return slotMaxTokensCamel, true
	case "maxCompletionTokens":
		return slotMaxCompletionTokensCamel, true
	case "max_new_tokens":
		return slotMaxNewTokens, true
	case "maxNewTokens":
		return slotMaxNewTokensCamel, true
	case "maxTokenCount":
		return slotMaxTokenCount, true
	case "max_gen_len":
		return slotMaxGenLen, true
	case "num_predict":
		return slotNumPredict, true
	case "n_predict":
		return slotNPredict, true
	case "max_length":
		return slotMaxLength, true
	}
	return 0, false
}

// configKey is the table of names inside generationConfig and its like.
func configKey(key []byte) (p place, arg uint8) {
	switch string(key) {
	case "thinkingConfig", "thinking_config", "thinking", "reasoning_config", "reasoning":
		return asThinking, 0
	case "responseSchema", "response_schema", "responseJsonSchema", "response_json_schema", "grammar":
		return asSchema, 0
	}
	if slot, ok := settingKey(key); ok {
		return asSetting, slot
	}
	return asSkipped, 0
}

// thinkingKey is the table of names inside thinking and its like. max_tokens is
// what OpenRouter calls the budget.
func thinkingKey(key []byte) (p place, arg uint8) {
	switch string(key) {
	case "budget_tokens", "thinkingBudget", "thinking_budget", "max_tokens":
		return asSetting, slotBudget
	}
	return asSkipped, 0
}

// choiceKey is the table of names inside tool_choice.
func choiceKey(key []byte) (p place, arg uint8) {
	if string(key) == "type" {
		return asChoice, 0
	}
	return asSkipped, 0
}

// formatKey is the table of names inside response_format and its like. Only a schema
// is charged: a format of text or JSON, a verbosity or an effort is not.
func formatKey(key []byte) (p place, arg uint8) {
	switch string(key) {
	case "format", "textFormat", "structure", "jsonSchema":
		return asFormat, 0
	case "json_schema", "schema", "regex", "grammar":
		return asSchema, 0
	}
	return asSkipped, 0
}

// embeddingKey is the table of names around the text of an embedding (Nova).
func embeddingKey(key []byte) (p place, arg uint8) {
	switch string(key) {
	case "text", "image", "audio", "video", "document":
		return asEmbedding, 0
	case "value":
		return asContent, 0
	case "source":
		return asMedia, uint8(mediaUnknown)
	}
	return asSkipped, 0
}

// partKey is the table of names inside messages and their parts.
func partKey(key []byte) (p place, arg uint8) {
	switch string(key) {
	case "content", "text", "parts", "output", "refusal", "thinking", "transcript", "title", "tool_calls":
		return asContent, 0
	case "toolUse", "toolResult", "function_call", "functionCall", "functionResponse", "function_response", "function":
		return asContent, callMark
	case "tool_call_id":
		return asSkipped, callMark
	case "reasoning", "reasoning_content":
		return asReasoning, 0
	case "encrypted_content", "signature", "thoughtSignature", "thought_signature":
		return asSealed, 0
	case "role":
		return asRole, 0
	case "name":
		return asName, 0
	case "type":
		return asPartType, 0
	case "arguments", "input", "args", "response", "json", "parameters":
		return asArguments, 0
	case "detail", "resolution":
		return asDetail, 0
	case "media_type", "mime_type", "mimeType", "format":
		return asMIME, 0
	case "image_url", "input_image", "image", "images", "imageUrl":
		return asMedia, uint8(mediaImage)
	case "input_audio", "audio", "audio_url":
		return asMedia, uint8(mediaAudio)
	case "video", "video_url", "input_video":
		return asMedia, uint8(mediaVideo)
	case "file", "input_file", "files", "document", "file_data":
		return asMedia, uint8(mediaFile)
	case "inlineData", "inline_data", "fileData", "source":
		return asMedia, uint8(mediaUnknown)
	case "file_id", "file_url", "fileUri", "file_uri", "uri":
		return asReference, 0
	case "data", "bytes", "b64_json", "base64":
		return asData, 0
	case "id", "call_id", "callId", "tool_use_id", "toolUseId", "status", "index", "phase",
		"cache_control", "cachePoint",
		"encrypted_index", "annotations", "citations", "logprobs", "is_error",
		"model", "created_at", "caller", "container", "summary", "redactedContent", "reasoning_details":
		return asSkipped, 0
	}
	return asLoose, 0
}

// mediaKey is the table of names inside an object around a payload.
func mediaKey(key []byte) (p place, arg uint8) {
	switch string(key) {
	case "url", "uri", "image_url", "file_url", "fileUri", "file_uri", "file_id", "fileId", "s3Location":
		return asReference, 0
	case "data", "bytes", "file_data", "b64_json", "base64", "image", "audio", "video":
		return asData, 0
	case "media_type", "mime_type", "mimeType", "format":
		return asMIME, 0
	case "detail", "resolution":
		return asDetail, 0
	case "content", "text", "context", "transcript", "title", "filename", "name":
		return asContent, 0
	case "source":
		return asMedia, 0
	case "type", "cache_control", "citations", "signature", "expires_at":
		return asSkipped, 0
	case "id":
		return asAudioID, 0
	}
	return asLoose, 0
}

package providertest

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// An answer is a call that was let in, on its way to the client.
type answer struct {
	inquiry
	number  int64
	created int64 // Unix seconds
	prompt  int64 // tokens, actual
	cached  int64 // of prompt, from a cache
	length  int64 // output tokens of one choice
	capped  bool  // the cap ended it
}

// token is the text of one output token: four characters, as DefaultCount
// counts.
const token = "abc "

func text(tokens int64) string { return strings.Repeat(token, int(tokens)) }

func (a *answer) output() int64 { return a.length * a.choices }

func (a *answer) id() string {
	prefix := map[kind]string{chat: "chatcmpl", responses: "resp", completions: "cmpl", messages: "msg"}[a.kind]
	return fmt.Sprintf("%s_box%d", prefix, a.number)
}

// stop is how the API of the call names the end.
func (a *answer) stop() string {
	if a.kind == messages {
		if a.capped {
			return "max_tokens"
		}
		return "end_turn"
	}
	if a.capped {
		return "length"
	}
	return "stop"
}

type object = map[string]any

// usage reports out tokens of output in the API's own members.
func (a *answer) usage(out int64) object {
	total := a.prompt + out
	switch a.kind {
	case responses:
		return object{
			"input_tokens": a.prompt, "input_tokens_details": object{"cached_tokens": a.cached, "cache_write_tokens": 0},
			"output_tokens": out, "output_tokens_details": object{"reasoning_tokens": 0},
			"total_tokens": total,
		}
	case embeddings:
		return object{"prompt_tokens": a.prompt, "total_tokens": a.prompt}
	case messages:
		return object{
			"input_tokens": a.prompt - a.cached, "output_tokens": out,
			"cache_creation_input_tokens": 0, "cache_read_input_tokens": a.cached,
			"cache_creation": object{"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
			"service_tier":   "standard",
		}
	}
	return object{
		"prompt_tokens": a.prompt, "completion_tokens": out, "total_tokens": total,
		"prompt_tokens_details": object{"cached_tokens": a.cached, "audio_tokens": 0},
		"completion_tokens_details": object{"reasoning_tokens": 0, "audio_tokens": 0,
			"accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0},
	}
}

// body is the answer of a call that does not stream.
func (a *answer) body() []byte {
	var v object
	switch a.kind {
	case chat, completions:
		var choices []object
		for i := range a.choices {
			c := object{"index": i, "logprobs": nil, "finish_reason": a.stop()}
			if a.kind == completions {
				c["text"] = text(a.length)
			} else {
				c["message"] = object{"role": "assistant", "content": text(a.length), "refusal": nil, "annotations": []any{}}
			}
			choices = append(choices, c)
		}
		v = a.envelope("")
		v["choices"], v["usage"] = choices, a.usage(a.output())
	case responses:
		v = a.response("completed", a.length)
	case embeddings:
		v = a.embedding()
	case messages:
		v = a.message([]object{{"type": "text", "text": text(a.length)}}, a.stop(), a.length)
	}
	return encode(v)
}

// envelope is what chat and completions objects share; suffix is ".chunk" for
// a chat stream.
func (a *answer) envelope(suffix string) object {
	name := "chat.completion" + suffix
	if a.kind == completions {
		name = "text_completion"
	}
	return object{
		"id": a.id(), "object": name, "created": a.created, "model": a.inquiry.prompt.Model,
		"service_tier": "default", "system_fingerprint": "fp_box",
	}
}

// response is the object of the responses API in a state.
func (a *answer) response(status string, out int64) object {
	v := object{
		"id": a.id(), "object": "response", "created_at": a.created, "status": status, "background": false,
		"error": nil, "incomplete_details": nil, "instructions": nil, "max_output_tokens": nil,
		"model": a.inquiry.prompt.Model, "output": []any{}, "parallel_tool_calls": true,
		"previous_response_id": nil, "reasoning": object{"effort": nil, "summary": nil}, "store": true,
		"temperature": 1.0, "text": object{"format": object{"type": "text"}}, "tool_choice": "auto",
		"tools": []any{}, "top_p": 1.0, "truncation": "disabled", "usage": nil, "user": nil, "metadata": object{},
	}
	if a.cap > 0 {
		v["max_output_tokens"] = a.cap
	}
	if status != "completed" {
		return v
	}
	if a.capped {
		v["status"], v["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
	}
	v["output"], v["usage"] = []any{a.item(v["status"].(string), out)}, a.usage(out)
	return v
}

// item is the one output message of a response.
func (a *answer) item(status string, out int64) object {
	content := []any{}
	if status != "in_progress" {
		content = append(content, a.part(out))
	}
	return object{"id": a.itemID(), "type": "message", "status": status, "role": "assistant", "content": content}
}

func (a *answer) itemID() string { return fmt.Sprintf("msg_box%d", a.number) }

func (a *answer) part(out int64) object {
	return object{"type": "output_text", "text": text(out), "annotations": []any{}, "logprobs": []any{}}
}

func (a *answer) message(content []object, stop any, out int64) object {
	return object{
		"id": a.id(), "type": "message", "role": "assistant", "model": a.inquiry.prompt.Model,
		"content": content, "stop_reason": stop, "stop_sequence": nil, "usage": a.usage(out),
	}
}

// embedding answers a vector for each input, the same for the same place.
func (a *answer) embedding() object {
	var data []object
	for i := range a.inquiry.prompt.Messages {
		vector := make([]float32, a.dimensions)
		for j := range vector {
			vector[j] = float32((i+int64(j))%7-3) / 4 // exact in binary and decimal
		}
		item := object{"object": "embedding", "index": i, "embedding": vector}
		if a.base64 {
			raw := make([]byte, 0, 4*len(vector))
			for _, f := range vector {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
			}
			item["embedding"] = base64.StdEncoding.EncodeToString(raw)
		}
		data = append(data, item)
	}
	return object{"object": "list", "data": data, "model": a.inquiry.prompt.Model, "usage": a.usage(0)}
}

// encode is v as JSON.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain values of this package only
	}
	return b
}

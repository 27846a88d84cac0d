package providertest

import (
	"bytes"
	"fmt"
)

// A stream writes an answer as server-sent events. Chat and completions have
// bare data lines and end with [DONE]; responses and messages name each event.
type stream struct {
	*answer
	withUsage bool // chat and completions: a chunk with usage at the end
	sequence  int  // responses: sequence_number of the next event
	model     []byte
}

func newStream(a *answer, usage StreamUsage) *stream {
	return &stream{
		answer:    a,
		withUsage: usage == UsageAlways || usage == UsageAsAsked && a.usageAsked,
		model:     encode(a.inquiry.prompt.Model),
	}
}

// event appends one event to b.
func event(b *bytes.Buffer, name string, data []byte) {
	if name != "" {
		fmt.Fprintf(b, "event: %s\n", name)
	}
	fmt.Fprintf(b, "data: %s\n\n", data)
}

// typed appends an event whose data repeats its name.
func (s *stream) typed(b *bytes.Buffer, name string, data object) {
	data["type"] = name
	if s.kind == responses {
		data["sequence_number"] = s.sequence
		s.sequence++
	}
	event(b, name, encode(data))
}

// chunk appends a chat or completions chunk.
func (s *stream) chunk(b *bytes.Buffer, choices []object, usage any) {
	v := s.envelope(".chunk")
	v["choices"] = choices
	if s.withUsage {
		v["usage"] = usage
	}
	event(b, "", encode(v))
}

// open is what comes before the first token.
func (s *stream) open() []byte {
	var b bytes.Buffer
	switch s.kind {
	case chat:
		for i := range s.choices {
			s.chunk(&b, []object{{"index": i, "logprobs": nil, "finish_reason": nil,
				"delta": object{"role": "assistant", "content": "", "refusal": nil}}}, nil)
		}
	case responses:
		s.typed(&b, "response.created", object{"response": s.response("in_progress", 0)})
		s.typed(&b, "response.in_progress", object{"response": s.response("in_progress", 0)})
		s.typed(&b, "response.output_item.added", object{"output_index": 0, "item": s.item("in_progress", 0)})
		s.typed(&b, "response.content_part.added", object{"item_id": s.itemID(), "output_index": 0, "content_index": 0, "part": s.part(0)})
	case messages:
		s.typed(&b, "message_start", object{"message": s.message([]object{}, nil, 1)})
		s.typed(&b, "content_block_start", object{"index": 0, "content_block": object{"type": "text", "text": ""}})
		s.typed(&b, "ping", object{})
	}
	return b.Bytes()
}

// delta is one event of n tokens for a choice.
func (s *stream) delta(choice, n int64) []byte {
	var b bytes.Buffer
	part := text(n) // plain letters: nothing to escape
	switch s.kind {
	case chat, completions:
		name, body := "chat.completion.chunk", `"delta":{"content":"`+part+`"}`
		if s.kind == completions {
			name, body = "text_completion", `"text":"`+part+`"`
		}
		usage := ""
		if s.withUsage {
			usage = `,"usage":null`
		}
		fmt.Fprintf(&b, `data: {"id":%q,"object":%q,"created":%d,"model":%s,"choices":[{"index":%d,%s,"logprobs":null,"finish_reason":null}],"service_tier":"default","system_fingerprint":"fp_box"%s}`+"\n\n",
			s.id(), name, s.created, s.model, choice, body, usage)
	case responses:
		s.typed(&b, "response.output_text.delta", object{"item_id": s.itemID(), "output_index": 0, "content_index": 0, "delta": part, "logprobs": []any{}})
	case messages:
		s.typed(&b, "content_block_delta", object{"index": 0, "delta": object{"type": "text_delta", "text": part}})
	}
	return b.Bytes()
}

// close is what comes after the last token.
func (s *stream) close() []byte {
	var b bytes.Buffer
	switch s.kind {
	case chat, completions:
		for i := range s.choices {
			last := object{"index": i, "logprobs": nil, "finish_reason": s.stop()}
			if s.kind == chat {
				last["delta"] = object{}
			} else {
				last["text"] = ""
			}
			s.chunk(&b, []object{last}, nil)
		}
		if s.withUsage {
			s.chunk(&b, []object{}, s.usage(s.output()))
		}
		b.WriteString("data: [DONE]\n\n")
	case responses:
		done := s.response("completed", s.length)
		status := done["status"].(string)
		s.typed(&b, "response.output_text.done", object{"item_id": s.itemID(), "output_index": 0, "content_index": 0, "text": text(s.length), "logprobs": []any{}})
		s.typed(&b, "response.content_part.done", object{"item_id": s.itemID(), "output_index": 0, "content_index": 0, "part": s.part(s.length)})
		s.typed(&b, "response.output_item.done", object{"output_index": 0, "item": s.item(status, s.length)})
		s.typed(&b, "response."+status, object{"response": done})
	case messages:
		s.typed(&b, "content_block_stop", object{"index": 0})
		s.typed(&b, "message_delta", object{"delta": object{"stop_reason": s.stop(), "stop_sequence": nil}, "usage": object{"output_tokens": s.length}})
		s.typed(&b, "message_stop", object{})
	}
	return b.Bytes()
}

// fault is the error event of a stream that fails after its 200.
func (s *stream) fault() []byte {
	var b bytes.Buffer
	switch s.kind {
	case responses:
		failed := s.response("failed", 0)
		failed["error"] = object{"code": "server_error", "message": serverError.message}
		s.typed(&b, "response.failed", object{"response": failed})
	case messages:
		s.typed(&b, "error", object{"error": object{"type": "overloaded_error", "message": "Overloaded"}})
	default:
		event(&b, "", encode(object{"error": serverError.openAI()}))
	}
	return b.Bytes()
}

package usage

import (
	"strings"
	"testing"
)

func benchmark(b *testing.B, contentType string, piece []byte, begin string) {
	m := NewMeter(contentType, "")
	m.Write([]byte(begin))
	b.SetBytes(int64(len(piece)))
	b.ReportAllocs()
	for b.Loop() {
		m.Write(piece)
	}
}

// One event of a chat stream, as most are.
func BenchmarkEvent(b *testing.B) {
	benchmark(b, sseType, []byte(event(`{"id":"chatcmpl-9a1b2c3d4e5f6071","object":"chat.completion.chunk","created":1767225600,"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x9"}`)), "")
}

func BenchmarkEventAnthropic(b *testing.B) {
	benchmark(b, sseType, []byte("event: content_block_delta\n"+event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" token"}}`)), "")
}

// A long answer.
func BenchmarkString(b *testing.B) {
	benchmark(b, jsonType, []byte(strings.Repeat("All work and no play makes Jack a dull boy. ", 800)), `{"choices":[{"message":{"content":"`)
}

// A long answer with a line break and quotes now and then.
func BenchmarkStringEscapes(b *testing.B) {
	benchmark(b, jsonType, []byte(strings.Repeat(`All work and no play makes \"Jack\" a dull boy.\n`, 800)), `{"choices":[{"message":{"content":"`)
}

// A long string that nobody counts: an image in base64.
func BenchmarkStringSkipped(b *testing.B) {
	benchmark(b, jsonType, []byte(strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", 1400)), `{"data":[{"b64_json":"`)
}

// A long string inside a server-sent event.
func BenchmarkStringInEvent(b *testing.B) {
	benchmark(b, sseType, []byte(strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", 1400)), `data: {"b64_json":"`)
}

// Embeddings as numbers.
func BenchmarkNumbers(b *testing.B) {
	benchmark(b, jsonType, []byte(strings.Repeat(",-0.012345678", 2500)), `{"data":[{"embedding":[0`)
}

// A whole small answer, from NewMeter to Close.
func BenchmarkRead(b *testing.B) {
	body := []byte(`{"id":"chatcmpl-1","object":"chat.completion","created":1767225600,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"message":{"role":"assistant","content":"Hi.","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":23,"completion_tokens":8,"total_tokens":31,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		Read(jsonType, "", body)
	}
}

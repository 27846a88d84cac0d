package estimate

import "strings"

const (
	kindChat        = "chat"
	kindResponses   = "responses"
	kindCompletions = "completions"
	kindEmbeddings  = "embeddings"
	kindMessages    = "messages"
	kindGemini      = "gemini"
	kindConverse    = "converse"
	kindMultipart   = "multipart"
	kindUnknown     = "unknown"
)

// sawPromptAny are the marks of names that hold a prompt.
const sawPromptAny = sawMessages | sawContents | sawInput | sawPrompt | sawText

// paths tell the kind of a body better than its names do. The first that the
// path contains counts.
var paths = []struct{ part, kind string }{
	{"/chat/completions", kindChat},
	{"/messages/count_tokens", "count"},
	{":countTokens", "count"},
	{"/input_tokens", "count"},
	{"/messages", kindMessages},
	{"/responses", kindResponses},
	{"/interactions", kindResponses},
	{"/embeddings", kindEmbeddings},
	{"/embed", kindEmbeddings},
	{":embedContent", kindEmbeddings},
	{":batchEmbedContents", kindEmbeddings},
	{":generateContent", kindGemini},
	{":streamGenerateContent", kindGemini},
	{"/converse", kindConverse},
	{"/moderations", "moderations"},
	{"/rerank", "rerank"},
	{"/images/", "images"},
	{"/audio/transcriptions", "transcription"},
	{"/audio/translations", "transcription"},
	{"/audio/", "audio"},
	{"/api/chat", kindChat},
	{"/api/generate", kindCompletions},
	{"/completions", kindCompletions},
}

// kind says which interface a body is for.
func (s *scanner) kind(path, model string) string {
	if path != "" {
		for _, p := range paths {
			if strings.Contains(path, p.part) {
				return p.kind
			}
		}
	}
	switch saw := s.saw; {
	case saw&sawContents != 0:
		return kindGemini
	case saw&sawMessages != 0 && saw&sawConverse != 0:
		return kindConverse
	case saw&sawMessages != 0 && (saw&sawAnthropic != 0 || strings.HasPrefix(model, "claude")):
		return kindMessages
	case saw&sawMessages != 0:
		return kindChat
	case saw&sawInput != 0 && (saw&sawEmbedding != 0 || strings.Contains(model, "embed")):
		return kindEmbeddings
	case saw&sawInput != 0:
		return kindResponses
	case saw&sawPrompt != 0 && saw&sawResponses != 0:
		return kindResponses
	case saw&sawPrompt != 0:
		return kindCompletions
	case saw&sawText != 0 && (saw&sawEmbedding != 0 || strings.Contains(model, "embed")):
		return kindEmbeddings
	case saw&sawText != 0:
		return kindChat
	}
	return kindUnknown
}

// isChat reports whether a prompt of this kind has the form of a chat.
func isChat(kind string) bool {
	switch kind {
	case kindChat, kindResponses, kindMessages, kindGemini, kindConverse:
		return true
	}
	return false
}

// makesOutput reports whether a request of this kind makes output tokens.
func makesOutput(kind string) bool {
	switch kind {
	case kindEmbeddings, "moderations", "rerank", "images", "transcription", "count":
		return false
	}
	return true
}

// modelInPath finds the model in paths such as /v1beta/models/NAME:generate,
// /openai/deployments/NAME/chat and /model/NAME/converse.
func modelInPath(path string) string {
	if !strings.Contains(path, "/model") && !strings.Contains(path, "/deployments/") {
		return "" // nearly every path
	}
	for _, before := range [...]string{"/deployments/", "/models/", "/model/"} {
		if _, rest, ok := strings.Cut(path, before); ok {
			if i := strings.IndexByte(rest, '/'); i >= 0 {
				rest = rest[:i]
			}
			// Gemini puts the method behind a colon; Bedrock's versions ("-v1:0")
			// have one too.
			if i := strings.LastIndexByte(rest, ':'); i >= 0 && before == "/models/" {
				rest = rest[:i]
			}
			if len(rest) <= maxModel {
				return rest
			}
		}
	}
	return ""
}

// streamInPath reports whether the path itself asks for a stream.
func streamInPath(path string) bool {
	if strings.IndexByte(path, ':') < 0 && !strings.Contains(path, "-stream") {
		return false // nearly every path
	}
	for _, part := range [...]string{":streamGenerateContent", "/converse-stream", "/invoke-with-response-stream", ":streamRawPredict"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}

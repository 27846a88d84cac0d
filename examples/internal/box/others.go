package box

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
)

// OpenGemini starts a server that answers generateContent and
// streamGenerateContent in the shape of the Gemini API. The caller closes it.
func OpenGemini() *httptest.Server {
	return httptest.NewServer(refuseFirst(func(w http.ResponseWriter, r *http.Request) {
		const chunk = `{"candidates":[{"content":{"role":"model","parts":[{"text":"abc "}]}%s}`
		const last = `,"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":2,"candidatesTokenCount":3,"totalTokenCount":5}`
		switch {
		case r.Header.Get("X-Goog-Api-Key") != Key:
			http.Error(w, `{"error":{"code":401,"status":"UNAUTHENTICATED","message":"no key"}}`, http.StatusUnauthorized)
		case strings.HasSuffix(r.URL.Path, ":generateContent"):
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, strings.Replace(chunk, "abc ", "abc abc abc ", 1), last)
		case strings.HasSuffix(r.URL.Path, ":streamGenerateContent"):
			w.Header().Set("Content-Type", "text/event-stream")
			for _, tail := range []string{"}]", "}]", last} {
				fmt.Fprintf(w, "data: "+chunk+"\r\n\r\n", tail)
				w.(http.Flusher).Flush()
			}
		default:
			http.NotFound(w, r)
		}
	}, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"slow down"}}`))
}

// OpenOllama starts a server that answers /api/chat in the shape of the Ollama
// API, which streams lines of JSON. The caller closes it.
func OpenOllama() *httptest.Server {
	return httptest.NewServer(refuseFirst(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Stream *bool }
		if r.URL.Path != "/api/chat" || json.NewDecoder(r.Body).Decode(&in) != nil {
			http.NotFound(w, r)
			return
		}
		const last = `,"done":true,"done_reason":"stop","prompt_eval_count":2,"eval_count":3`
		line := `{"model":"m","message":{"role":"assistant","content":%q}%s}` + "\n"
		if in.Stream != nil && !*in.Stream {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, line, "abc abc abc ", last)
			return
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		for _, tail := range []string{`,"done":false`, `,"done":false`, last} {
			fmt.Fprintf(w, line, "abc ", tail)
			w.(http.Flusher).Flush()
		}
	}, `{"error":"slow down"}`))
}

// refuseFirst refuses the first call with a body in the API's own words.
func refuseFirst(h http.HandlerFunc, words string) http.HandlerFunc {
	var calls atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) > 1 {
			h(w, r)
			return
		}
		w.Header().Set("Retry-After", fmt.Sprint(firstWait.Seconds()))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprintln(w, words)
	}
}

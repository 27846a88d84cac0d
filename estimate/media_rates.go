package estimate

import "strings"

// mediaRates are what documents, sound and film cost. Sources, November 2026:
// OpenAI realtime guide (1 token for 100 ms of input); Gemini "Understand and count
// tokens" (258 tokens a page, 32 a second of sound, 263 a second of film) and "Media
// resolution" (Gemini 3: 560 a page); Mistral, as its responses report (375 tokens
// for 3 s); Anthropic PDF page (1,500 to 3,000 a page; a page of recorded requests
// cost about 1,600); OpenAI's pages as recorded, 12 to 241.
var mediaRates = []struct {
	prefix      string
	page        int64 // tokens a page of a document
	sound, film int64 // tokens a second
}{
	{"", pageTokens, 32, 263},
	{"gpt-", 200, 10, 263},
	{"o1", 200, 10, 263},
	{"o3", 200, 10, 263},
	{"o4", 200, 10, 263},
	{"whisper", 200, 10, 263},
	{"claude", 1600, 32, 263},
	{"gemini", 258, 32, 263},
	{"gemini-3", 560, 32, 263},
	{"voxtral", pageTokens, 125, 263},
	{"mistral", pageTokens, 125, 263},
}

// mediaTokens prices what is neither text nor image for a model, a name as [family]
// returns it.
func (t *totals) mediaTokens(model string) int64 {
	if t.pages|t.office|t.files|t.soundMS|t.filmMS == 0 {
		return 0
	}
	best := &mediaRates[0]
	for i := range mediaRates {
		if r := &mediaRates[i]; len(r.prefix) > len(best.prefix) && strings.HasPrefix(model, r.prefix) {
			best = r
		}
	}
	n := addSat(mulSat(t.pages, best.page), addSat(t.office, t.files))
	n = addSat(n, ceilDiv(mulSat(t.soundMS, best.sound), 1000))
	return addSat(n, ceilDiv(mulSat(t.filmMS, best.film), 1000))
}

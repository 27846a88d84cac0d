package estimate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// A generator writes JSON bodies out of the names that the tables know: nested
// at random, with names that come twice, escaped names, line breaks, and values
// of the wrong kind.
type generator struct {
	rand *rand.Rand
	out  strings.Builder
	left int // members that may still be written
}

var generatedNames = strings.Fields(`model messages contents content input prompt suffix system systemInstruction
	instructions tools functions response_format text images generationConfig inferenceConfig options thinking
	reasoning stream n best_of candidateCount max_tokens max_completion_tokens max_output_tokens maxOutputTokens
	num_predict maxTokens parts role name type arguments args response detail media_type mimeType format image_url
	input_audio file source inlineData file_id url data id tool_calls function thinkingConfig budget_tokens
	responseSchema documents query metadata user x é`)

var generatedStrings = []string{
	``, `a`, `hello, world`, `\u0041\ud83d\ude00`, `é中`, `\"\\\/\n`, `low`, `image`, `redacted_thinking`, `true`, `12`, `1.5`,
	`data:image/png;base64,iVBORw0KGgo=`, `data:image\/png;base64,iVBORw0KGgo=`, `data: not a URL`, `https://example.org/a.png`,
	`image/png`, `text/plain`, `json`, `AAAA`, `AAAA\/AAA`, strings.Repeat(`aB3+`, 200), strings.Repeat(`a`, 600), "\xff\xfe",
}

var generatedBare = []string{`0`, `1`, `7`, `250`, `1e2`, `2.5`, `-3`, `true`, `false`, `null`}

func (g *generator) pick(of []string) string { return of[g.rand.IntN(len(of))] }

func (g *generator) space() {
	switch g.rand.IntN(12) {
	case 0:
		g.out.WriteByte(' ')
	case 1:
		g.out.WriteString("\n\t ")
	}
}

func (g *generator) object(depth int) {
	g.out.WriteByte('{')
	for i := range g.rand.IntN(6) {
		if g.left--; g.left < 0 {
			break
		}
		if i > 0 {
			g.out.WriteByte(',')
		}
		g.space()
		name := g.pick(generatedNames)
		if g.rand.IntN(8) == 0 && name[0] < 0x80 {
			name = fmt.Sprintf(`\u%04x%s`, name[0], name[1:])
		}
		g.out.WriteString(`"` + name + `"`)
		g.space()
		g.out.WriteByte(':')
		g.value(depth)
	}
	g.space()
	g.out.WriteByte('}')
}

func (g *generator) value(depth int) {
	g.space()
	defer g.space()
	k := g.rand.IntN(10)
	if depth == 0 {
		k %= 5
	}
	switch {
	case k < 3:
		g.out.WriteString(`"` + g.pick(generatedStrings) + `"`)
	case k < 5:
		g.out.WriteString(g.pick(generatedBare))
	case k < 8:
		g.object(depth - 1)
	default:
		g.out.WriteByte('[')
		for i := range g.rand.IntN(4) {
			if i > 0 {
				g.out.WriteByte(',')
			}
			g.value(depth - 1)
		}
		g.out.WriteByte(']')
	}
}

func TestRandomBodiesAreReadAsEncodingJSONReadsThem(t *testing.T) {
	const bodies = 15_000
	understood := 0
	for seed := range uint64(bodies) {
		g := generator{rand: rand.New(rand.NewPCG(seed, 1)), left: 50}
		g.object(1 + int(seed%7))
		body := []byte(g.out.String())
		checkAgainstOracle(t, body)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		if _, ok := readOracle(body); ok {
			understood++
		}
	}
	if understood != bodies {
		t.Fatalf("encoding/json read %d of %d generated bodies", understood, bodies)
	}
}

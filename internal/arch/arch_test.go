package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tripmeter/tripmeter/"

// A room may import the standard library and what its row names, nothing else.
// A package below a room follows the row of the longest matching name.
var rooms = []struct {
	room   string
	may    []string
	reason string
}{
	{"limit", nil, "it counts units of anything and is useful alone; a provider's name never appears in it"},
	{"limit/limittest", []string{"limit"}, "the suite of promises, for every limiter"},
	{"estimate", nil, "a number from bytes; who charges it is the transport's business"},
	{"estimate/accuracy", nil, "a report on logs, outside of what a call passes through"},
	{"estimate/tiktoken", []string{"github.com/pkoukk/tiktoken-go", "github.com/pkoukk/tiktoken-go-loader/"}, "the one place that knows vocabularies"},
	{"estimate/internal/fit", []string{"estimate", "estimate/tiktoken", "github.com/pkoukk/tiktoken-go", "github.com/pkoukk/tiktoken-go-loader"}, "fits the weights; linked into no program"},
	{"headers", []string{"internal/retryafter", "github.com/dunglas/httpsfv"}, "values from fields; what they do to credit is decided elsewhere"},
	{"usage", []string{"internal/refusal", "internal/packed"}, "numbers from bytes"},
	{"retry", []string{"internal/refusal", "internal/neterr", "internal/packed", "github.com/hashicorp/go-retryablehttp"}, "knows attempts and statuses, no bucket; the one importer of its engine"},
	{"profile", []string{"estimate", "headers", "limit"}, "data about providers: what they charge, how their header fields are read; a law is a shape of a meter"},
	{"law", []string{"limit", "profile"}, "evidence of answers as plain values; the profile only for the replay of recordings"},
	{"budget", []string{"limit", "estimate", "headers", "usage", "profile", "law"}, "decides about credit and knows no request and no response"},
	{"transport", []string{"budget", "limit", "estimate", "headers", "usage", "retry", "profile", "internal/refusal", "internal/neterr", "internal/packed"}, "connects the rooms"},
	{"record", []string{"limit", "usage", "transport", "internal/svg"}, "a run, written down and drawn"},
	{"internal/snippets", nil, "compiles the pages; nothing links it"},
	{"internal/svg", nil, "a leaf: pictures for light and dark pages"},
	{"meter", []string{"limit", "profile", "transport"}, "events in, sums out: the one reader of Trace and Snapshot for everything that shows them"},
	{"debug", []string{"meter"}, "the live page shows what a meter holds"},
	{"slogmeter", []string{"limit", "transport"}, "the life of calls in a log"},
	{"shadow", []string{"limit"}, "a ledger that decides on paper; what sends the calls is not its business"},
	{"internal/retryafter", nil, "a leaf: the one reading of Retry-After"},
	{"internal/neterr", nil, "a leaf: the one reading of a round trip's errors"},
	{"internal/refusal", []string{"headers", "internal/retryafter"}, "the one reading of a refused response; waits in bodies are read as those of fields are"},
	{"internal/packed", []string{"github.com/andybalholm/brotli", "github.com/klauspost/compress/zstd"}, "a leaf: bounded unpacking, and the one importer of its decoders"},
	{"providertest", nil, "shares no code with what it is to contradict"},
	{"internal/batchfile", nil, "file formats, for the command and the example; opens and sends nothing"},
	{"internal/rttest", nil, "the RoundTripper contract, of any transport"},
	{"internal/arch", nil, "the rules"},
	{"examples", []string{"internal/batchfile", "meter", "debug", "record", "limit", "estimate", "estimate/tiktoken", "profile", "retry", "transport", "providertest", "examples/"}, "what a user would write, and the provider in the box"},
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(out)))
	seen := map[string]bool{}
	for {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, module)
		room := -1
		for i, r := range rooms {
			if (name == r.room || strings.HasPrefix(name, r.room+"/")) && (room < 0 || len(r.room) > len(rooms[room].room)) {
				room = i
			}
		}
		if room < 0 {
			t.Errorf("%s belongs to no room; give it a row with a reason", name)
			continue
		}
		r := rooms[room]
		seen[r.room] = true
		for _, im := range p.Imports {
			if first, _, _ := strings.Cut(im, "/"); !strings.Contains(first, ".") {
				continue // standard library
			}
			short := strings.TrimPrefix(im, module)
			if short == r.room || strings.HasPrefix(short, r.room+"/") {
				continue
			}
			if !slices.ContainsFunc(r.may, func(m string) bool { return short == m || strings.HasSuffix(m, "/") && strings.HasPrefix(short, m) }) {
				t.Errorf("%s imports %s: %s", name, short, r.reason)
			}
		}
	}
	for _, r := range rooms {
		if !seen[r.room] {
			t.Errorf("no package in room %s: is the row out of date?", r.room)
		}
	}
}

package tiktoken

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "count testdata/corpus.jsonl.gz again with the reference")

type corpusPiece struct {
	Name   string           `json:"name"`
	Text   string           `json:"text"`
	Counts [encodings]int64 `json:"counts"`
}

const corpusFile = "testdata/corpus.jsonl.gz"

func readCorpus(t testing.TB) []corpusPiece {
	t.Helper()
	f, err := os.Open(corpusFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all []corpusPiece
	for d := json.NewDecoder(z); d.More(); {
		var p corpusPiece
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 800 {
		t.Fatalf("%d pieces in the corpus, want at least 800", len(all))
	}
	return all
}

// TestTheCorpusIsCountedAsStored counts every piece in every encoding and compares with the counts of
// the reference, which are kept beside the texts.
func TestTheCorpusIsCountedAsStored(t *testing.T) {
	all := readCorpus(t)
	if *update {
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		out := json.NewEncoder(z)
		out.SetEscapeHTML(false)
		for i := range all {
			for e := range encodings {
				all[i].Counts[e] = referenceFor(t, e).count(all[i].Text)
			}
			if err := out.Encode(all[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(corpusFile, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := New(Options{})
	languages := make(map[string]bool)
	for _, p := range all {
		languages[strings.Split(p.Name, "/")[1]] = true
		for e := range encodings {
			if p.Counts[e] <= 0 {
				t.Fatalf("%s has no count for %v", p.Name, e)
			}
			if got := c.CountString(modelFor[e], p.Text); got != p.Counts[e] {
				t.Errorf("%s: %v: %d tokens, want %d", p.Name, e, got, p.Counts[e])
			}
		}
	}
	if len(languages) < 400 {
		t.Errorf("%d languages, want at least 400", len(languages))
	}
}

// TestTheCorpusIsCountedAsByTheReference lets the reference count again: the corpus, source and data of
// the Go distribution, and generated data, 2,000 pieces at least.
func TestTheCorpusIsCountedAsByTheReference(t *testing.T) {
	c := New(Options{})
	var texts []string
	for _, p := range readCorpus(t) {
		texts = append(texts, p.Text)
	}
	texts = append(texts, distribution(t)...)
	texts = append(texts, generated()...)
	if len(texts) < 2000 {
		t.Fatalf("%d pieces, want at least 2,000", len(texts))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, text := range texts {
		if utf8.RuneCountInString(text) > 2000 {
			t.Fatalf("a piece of %d bytes", len(text))
		}
		if raceEnabled && r.IntN(20) > 0 {
			continue
		}
		compare(t, c, O200kBase, text)
		compare(t, c, CL100kBase, text)
		if r.IntN(4) == 0 {
			compare(t, c, R50kBase, text)
			compare(t, c, P50kBase, text)
		}
	}
}

// goroot is where the Go distribution is.
func goroot(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatalf("go env GOROOT: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// distribution cuts pieces from files that every Go distribution has.
func distribution(t testing.TB) []string {
	t.Helper()
	root := goroot(t)
	var out []string
	r := rand.New(rand.NewPCG(3, 4))
	for _, glob := range []string{
		"src/*/*.go", "src/*/*/*.go", "src/*/*.s", "src/*/testdata/*", "src/*/*/testdata/*", "src/cmd/vendor/*/*/*/*.go",
		"src/runtime/*.h", "src/*.bash", "src/go.*", "LICENSE", "*.md", "lib/*/*", "test/*.go", "doc/*", "api/*.txt",
	} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(glob)))
		if err != nil {
			t.Fatal(err)
		}
		r.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
		taken := 0
		for _, f := range files {
			if taken >= 250 {
				break
			}
			b, err := os.ReadFile(f)
			if err != nil || len(b) == 0 {
				continue // a directory
			}
			b = b[:min(len(b), 1<<16)]
			all := pieces(string(b), 100+r.IntN(1800))
			for range min(3, len(all)) {
				out = append(out, all[r.IntN(len(all))])
				taken++
			}
		}
	}
	if len(out) < 1000 {
		t.Fatalf("%d pieces from %s, want at least 1,000", len(out), root)
	}
	return out
}

// generated makes what chats carry besides language and code.
func generated() []string {
	r := rand.New(rand.NewPCG(5, 6))
	letters := func(alphabet string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = alphabet[r.IntN(len(alphabet))]
		}
		return string(b)
	}
	const hex = "0123456789abcdef"
	const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	line := []func() string{
		func() string { return letters(base64, 76) },
		func() string { return letters(hex, 64) },
		func() string {
			return fmt.Sprintf("%s-%s-4%s-a%s-%s", letters(hex, 8), letters(hex, 4), letters(hex, 3), letters(hex, 3), letters(hex, 12))
		},
		func() string {
			return fmt.Sprintf("%d,%.3f,%d,%q", r.IntN(1e6), r.Float64()*1e4, r.IntN(99), letters(base64, 8))
		},
		func() string {
			return fmt.Sprintf(`{"id":%d,"ok":%t,"tags":["%s","%s"],"at":"2025-%02d-%02dT%02d:%02d:%02dZ"}`, r.IntN(1e9), r.IntN(2) == 0,
				letters(hex, 5), letters(base64, 5), 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60))
		},
		func() string {
			return fmt.Sprintf("2025/03/%02d %02d:%02d:%02d.%06d [INFO] GET /v1/%s?page=%d => %d (%dms)", 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1e6), letters(hex, 12), r.IntN(99), 200+r.IntN(300), r.IntN(9999))
		},
		func() string { return strings.Repeat("\t", r.IntN(6)) + "- " + letters(base64, 10) + ": |" },
		func() string { return "<td class=\"" + letters(hex, 6) + "\">&nbsp;" + letters(base64, 4) + "</td>" },
		func() string { return letters("01", 60) },
		func() string { return letters(" \t\r\n", 30) },
		func() string { return letters("!?#$%&*()[]{}<>/\\|~^'\"`,.;:-_=+", 40) },
	}
	var out []string
	for range 40 {
		for _, l := range line {
			var b strings.Builder
			for b.Len() < 200+r.IntN(600) {
				b.WriteString(l())
				b.WriteByte('\n')
			}
			out = append(out, b.String())
		}
	}
	return out
}

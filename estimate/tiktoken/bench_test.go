package tiktoken

import (
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// benchTexts are 100 kB each. English is the comments of net/http, the source one
// of its files. Russian and Chinese are 5,000 characters repeated, which flatters
// them: their table entries are in the cache.
func benchTexts(b testing.TB) map[string]string {
	b.Helper()
	source, err := os.ReadFile(filepath.Join(goroot(b), "src/net/http/server.go"))
	if err != nil {
		b.Fatal(err)
	}
	var eng, rus, cmn strings.Builder
	files, err := filepath.Glob(filepath.Join(goroot(b), "src/net/http/*.go"))
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if comment, ok := strings.CutPrefix(line, "// "); ok {
				eng.WriteString(comment)
			}
		}
	}
	if eng.Len() < 100_000 {
		b.Fatalf("%d bytes of English", eng.Len())
	}
	for _, p := range readCorpus(b) {
		switch strings.Split(p.Name, "/")[1] {
		case "rus":
			rus.WriteString(p.Text)
		case "cmn_hans":
			cmn.WriteString(p.Text)
		}
	}
	fill := func(s string) string { return strings.Repeat(s, 100_000/len(s)+1) }
	return map[string]string{
		"English": eng.String()[:100_000],
		"Go":      string(source[:100_000]),
		"JSON":    fill(strings.Join(generated()[4:100], "")),
		"Russian": fill(rus.String()),
		"Chinese": fill(cmn.String()),
	}
}

func benchSorted(b *testing.B, texts map[string]string, f func(b *testing.B, text string)) {
	names := make([]string, 0, len(texts))
	for name := range texts {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		b.Run(name, func(b *testing.B) { f(b, texts[name]) })
	}
}

// BenchmarkCount measures Count, and tiktoken-go beside it in the same run.
func BenchmarkCount(b *testing.B) {
	c := New(Options{})
	for _, e := range []Encoding{O200kBase, CL100kBase} {
		r := referenceFor(b, e)
		c.CountString(modelFor[e], "warm")
		b.Run(e.String(), func(b *testing.B) {
			benchSorted(b, benchTexts(b), func(b *testing.B, text string) {
				b.Run("ours", func(b *testing.B) {
					b.SetBytes(int64(len(text)))
					b.ReportAllocs()
					for b.Loop() {
						c.CountString(modelFor[e], text)
					}
				})
				b.Run("tiktoken-go", func(b *testing.B) {
					b.SetBytes(int64(len(text)))
					b.ReportAllocs()
					for b.Loop() {
						r.count(text)
					}
				})
			})
		})
	}
}

// BenchmarkShort is a prompt of one sentence.
func BenchmarkShort(b *testing.B) {
	const text = "What's the weather like in San Francisco today, and should I take an umbrella?"
	c := New(Options{})
	r := referenceFor(b, O200kBase)
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.CountString("gpt-4o-mini-2024-07-18", text)
		}
	})
	b.Run("tiktoken-go", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.count(text)
		}
	})
}

// BenchmarkJSON is the English text as a client escapes it.
func BenchmarkJSON(b *testing.B) {
	raw := []byte(strings.ReplaceAll(benchTexts(b)["English"], "\n", `\n`))
	c := New(Options{})
	c.CountJSON("gpt-4o", raw)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		c.CountJSON("gpt-4o", raw)
	}
}

// BenchmarkLongRuns is the worst there is: runs that are one piece, 64 kB and 1 MB.
// The two speeds of a run are the same where time is linear. The reference is not
// beside it; it takes seconds for the small ones and minutes for the large.
func BenchmarkLongRuns(b *testing.B) {
	c := New(Options{})
	c.CountString("gpt-4o", "warm")
	for _, size := range []struct {
		name  string
		bytes int
	}{{"64kB", 64 << 10}, {"1MB", 1 << 20}} {
		b.Run(size.name, func(b *testing.B) {
			benchSorted(b, longRuns(size.bytes), func(b *testing.B, text string) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					c.CountString("gpt-4o", text)
				}
			})
		})
	}
}

// BenchmarkBuild measures the building of each vocabulary and the heap it keeps.
func BenchmarkBuild(b *testing.B) {
	classes()
	for e := range encodings {
		b.Run(e.String(), func(b *testing.B) {
			var kept uint64
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				before := heapInUse()
				b.StartTimer()
				v, err := readVocabulary(assets.Assets, e.String()+".tiktoken")
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				kept = heapInUse() - before
				runtime.KeepAlive(v)
				b.StartTimer()
			}
			b.ReportMetric(float64(kept)/(1<<20), "MB-kept")
		})
	}
}

// heapInUse returns the bytes of reachable objects, without pooled ones.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

package tiktoken

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// fresh returns a Counter with vocabularies of its own that nobody has loaded.
func fresh(files fs.FS) *Counter {
	c := New(Options{})
	c.vocabularies = newVocabularies(files)
	return c
}

type refusingTransport struct{ calls atomic.Int64 }

func (r *refusingTransport) RoundTrip(*http.Request) (*http.Response, error) {
	r.calls.Add(1)
	return nil, errors.New("no route but to the API host")
}

// The first count works with no network, and nothing that could
// reach one is imported.
func TestNothingIsFetched(t *testing.T) {
	refusing := new(refusingTransport)
	before := http.DefaultTransport
	http.DefaultTransport = refusing
	defer func() { http.DefaultTransport = before }()
	t.Setenv("TIKTOKEN_CACHE_DIR", t.TempDir())
	t.Setenv("DATA_GYM_CACHE_DIR", t.TempDir())

	c := fresh(assets.Assets)
	for e := range encodings {
		compare(t, c, e, "antidisestablishmentarianism is long.")
	}
	if n := refusing.calls.Load(); n > 0 {
		t.Errorf("%d HTTP requests", n)
	}
	if n := c.Fallbacks(); n > 0 {
		t.Errorf("%d fallbacks", n)
	}
	for _, dir := range []string{os.Getenv("TIKTOKEN_CACHE_DIR"), os.Getenv("DATA_GYM_CACHE_DIR")} {
		if files, _ := os.ReadDir(dir); len(files) > 0 {
			t.Errorf("wrote %s", files[0].Name())
		}
	}

	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		read++
		for _, i := range f.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			if path == "os" || strings.HasPrefix(path, "net") || strings.Contains(path, ".") && path != "github.com/pkoukk/tiktoken-go-loader/assets" {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
	if read == 0 {
		t.Error("no source file read")
	}
}

// Every encoding we name is in the build, and one that is
// not does not fail a count.
func TestVocabulariesAreThoseOfTheLibrary(t *testing.T) {
	for e := range encodings {
		if err := fresh(assets.Assets).Load(modelFor[e]); err != nil {
			t.Error(err)
		}
	}

	t.Run("missing", func(t *testing.T) {
		c := fresh(fstest.MapFS{})
		if got := c.CountString("gpt-4o", "12345"); got != 2 {
			t.Errorf("%d tokens for 5 bytes, want a quarter, rounded up", got)
		}
		if got := c.CountJSON("gpt-4", []byte(`1\n34567`)); got != 2 {
			t.Errorf("%d tokens for 8 bytes, want a quarter", got)
		}
		if got := c.Chat("gpt-4o", []Message{{Role: "user", Content: "abcde"}}, nil); got != 3+3+1+2 {
			t.Errorf("%d tokens for a chat, want the overhead and quarters", got)
		}
		if n := c.Fallbacks(); n != 3 {
			t.Errorf("%d fallbacks, want 3", n)
		}
		err := c.Load("gpt-4o")
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "o200k_base") {
			t.Errorf("Load = %v, want an error that names the vocabulary and is fs.ErrNotExist", err)
		}
	})

	for name, content := range map[string]string{
		"empty":         "",
		"no rank":       "IQ==",
		"no token":      " 0\n",
		"empty token":   "IQ== 0\n= 1\n",
		"not base64":    "!! 0\n",
		"not a rank":    "IQ== x\n",
		"negative rank": "IQ== -1\n",
		"rank twice":    "IQ== 0\nIg== 0\n",
		"huge rank":     "IQ== 4294967296\n",
		"rank too big":  "IQ== 262143\n",
		"a line of 1MB": strings.Repeat("A", 1<<20) + " 0\n",
		"long token":    strings.Repeat("AAAA", 100) + " 0\n",
		"a git pointer": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3613922\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := fresh(fstest.MapFS{"o200k_base.tiktoken": {Data: []byte(content)}})
			if err := c.Load("gpt-4o"); err == nil {
				t.Error("no error")
			}
			if got := c.CountString("gpt-4o", "12345678"); got != 2 || c.Fallbacks() != 1 {
				t.Errorf("%d tokens, %d fallbacks", got, c.Fallbacks())
			}
		})
	}

	t.Run("few tokens", func(t *testing.T) {
		c := fresh(fstest.MapFS{"o200k_base.tiktoken": {Data: []byte("YQ== 0\nYWE= 5\n")}})
		for text, want := range map[string]int64{"a": 1, "aa": 1, "aaa": 2, "b": 1, "ab": 2, "": 0} {
			if got := c.CountString("gpt-4o", text); got != want {
				t.Errorf("%q: %d tokens, want %d", text, got, want)
			}
		}
	})
}

// countingFS counts how often files are opened.
type countingFS struct{ opened *atomic.Int64 }

func (f countingFS) Open(name string) (fs.File, error) {
	f.opened.Add(1)
	return assets.Assets.Open(name)
}

// TestFirstCallsAtOnceBuildOnce lets 100 goroutines make the first call, for the race
// detector and for the sum.
func TestFirstCallsAtOnceBuildOnce(t *testing.T) {
	var opened atomic.Int64
	c := fresh(countingFS{&opened})
	text := strings.Repeat("Race me, 人人生而平等 \xff! ", 300) + strings.Repeat("x", 5000)
	var want [encodings]int64
	for e := range encodings {
		want[e] = referenceFor(t, e).count(text)
	}
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			<-start
			e := Encoding(i % int(encodings))
			if got := c.CountString(modelFor[e], text); got != want[e] {
				t.Errorf("%v: %d tokens, want %d", e, got, want[e])
			}
			c.Count("no-such-model", nil)
			c.Fallbacks()
		}()
	}
	close(start)
	wg.Wait()
	if n := opened.Load(); n != int64(encodings) {
		t.Errorf("files opened %d times, want %d", n, encodings)
	}
	if n := c.Fallbacks(); n != 100 {
		t.Errorf("%d fallbacks, want 100", n)
	}
}

// 50 goroutines and several counters share one vocabulary,
// and an unused one is not built.
func TestAVocabularyIsBuiltOnce(t *testing.T) {
	var opened atomic.Int64
	shared := newVocabularies(countingFS{&opened})
	counters := make([]*Counter, 5)
	for i := range counters {
		counters[i] = New(Options{})
		counters[i].vocabularies = shared
	}
	if n := opened.Load(); n != 0 {
		t.Errorf("%d files read before the first count", n)
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			counters[i%len(counters)].CountString("davinci", "first use")
		}()
	}
	wg.Wait()
	if n := opened.Load(); n != 1 {
		t.Errorf("%d files read, want 1", n)
	}
	if a, b := New(Options{}), New(Options{}); a.vocabularies != b.vocabularies {
		t.Error("two counters do not share their vocabularies")
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	if raceEnabled {
		return // see raceEnabled
	}
	c := New(Options{Models: map[string]string{"prod": "gpt-4o"}})
	raw := []byte(`a \"quoted\" line\nand \u4eba\ud83d\ude00 more`)
	long := []byte(strings.Repeat("long", 10000) + "\xff\xfe")
	huge := []byte(strings.Repeat(`words and \n`, 20000))
	text := []byte("The quick brown fox jumps over the lazy dog, 人人生而平等 pneumonoultramicroscopicsilicovolcanoconiosis.")
	messages := []Message{{Role: "user", Name: "n", Content: "What is the weather?"}}
	functions := []Function{{Name: "f", Description: "d.", Properties: []Property{{Name: "p", Type: "string", Enum: []string{"x"}}}}}
	for name, f := range map[string]func(){
		"Count":          func() { c.Count("gpt-4o", text) },
		"CountString":    func() { c.CountString("gpt-4o", "a string") },
		"deployment":     func() { c.Count("prod", text) },
		"unknown":        func() { c.Count("gpt-9-preview", text) },
		"fine-tuned":     func() { c.Count("ft:gpt-4o-2024-08-06:org::id", text) },
		"long, invalid":  func() { c.Count("gpt-4", long) },
		"CountJSON":      func() { c.CountJSON("gpt-4o", raw) },
		"long CountJSON": func() { c.CountJSON("gpt-4o", huge) },
		"Chat":           func() { c.Chat("gpt-4o", messages, functions) },
	} {
		f()
		if n := testing.AllocsPerRun(20, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// What a huge odd text needed does not go back to the pool.
func TestScratchIsBounded(t *testing.T) {
	s := new(scratch)
	s.text = make([]byte, 0, keep+1)
	s.invalid = make([]byte, 0, keep+1)
	s.heap = make([]uint64, 0, keep/8+1)
	s.next = make([]int32, 0, keep)
	s.release()
	if cap(s.text) > keep || cap(s.invalid) > keep || cap(s.heap) > keep || cap(s.next) > keep {
		t.Error("scratch memory above the limit is kept")
	}
}

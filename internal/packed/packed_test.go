package packed

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// pack packs b in the codings of a Content-Encoding, in their order.
func pack(t testing.TB, encoding string, b []byte) []byte {
	t.Helper()
	for _, name := range strings.Split(encoding, ", ") {
		var out bytes.Buffer
		var w io.WriteCloser
		switch name {
		case "gzip":
			w = gzip.NewWriter(&out)
		case "deflate":
			w = zlib.NewWriter(&out)
		case "raw":
			w, _ = flate.NewWriter(&out, 9)
		case "br":
			w = brotli.NewWriterLevel(&out, 5)
		case "zstd":
			w, _ = zstd.NewWriter(&out)
		}
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		b = out.Bytes()
	}
	return b
}

func unpack(encoding string, body []byte, l Limits) (string, bool) {
	var out bytes.Buffer
	whole := Unpack(encoding, body, l, func(p []byte) { out.Write(p) })
	return out.String(), whole
}

// slow is long enough that a slow machine never meets it.
var slow = Limits{Time: time.Hour}

func TestEachCodingIsUnpacked(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 3<<20)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	for name, text := range map[string]string{
		"small": `{"usage":{"prompt_tokens":3}}`, "empty": "", "noise of 3 MiB": string(noise),
		"events": strings.Repeat("data: {\"choices\":[{\"delta\":{\"content\":\" token\"}}]}\n\n", 9000),
	} {
		for _, encoding := range []string{"gzip", "deflate", "raw", "br", "zstd", "gzip, br", "zstd, gzip", "br, zstd", "deflate, gzip", "br, raw", "gzip, gzip, zstd"} {
			field := strings.ReplaceAll(encoding, "raw", "deflate")
			if got, whole := unpack(field, pack(t, encoding, []byte(text)), slow); got != text || !whole {
				t.Errorf("%s in %s: %d bytes of %d, whole %v", name, encoding, len(got), len(text), whole)
			}
			if !Known(field) || Plain(field) {
				t.Errorf("%s is known %v and plain %v", field, Known(field), Plain(field))
			}
		}
	}
}

func TestTheFieldIsReadInAnySpelling(t *testing.T) {
	for _, field := range []string{"GZIP", "x-gzip", " gzip ", "identity, gzip", "gzip, identity", "gzip,"} {
		if got, whole := unpack(field, pack(t, "gzip", []byte("x")), slow); got != "x" || !whole {
			t.Errorf("%q: %q, %v", field, got, whole)
		}
	}
	for _, field := range []string{"compress", "dcb", "gzip, exi", "gzip, gzip, gzip, gzip"} {
		if got, whole := unpack(field, []byte("x"), slow); got != "" || whole || Known(field) {
			t.Errorf("%q: %q, %v", field, got, whole)
		}
	}
	if !Plain("") || !Plain("identity") || !Known("") {
		t.Error("no coding is plain")
	}
}

// A proxy unpacked the body and left the field.
func TestABodyThatIsNotPackedIsPlain(t *testing.T) {
	const text = `{"usage":{"prompt_tokens":3}}`
	for _, field := range []string{"gzip", "deflate", "br", "zstd"} {
		if got, whole := unpack(field, []byte(text), slow); got != text || !whole {
			t.Errorf("%s: %q, %v", field, got, whole)
		}
	}
}

func TestABodyThatWasCutGivesItsBeginning(t *testing.T) {
	text := strings.Repeat(`data: {"n":1}`+"\n\n", 5000)
	for _, encoding := range []string{"gzip", "deflate", "br", "zstd", "gzip, br"} {
		packed := pack(t, encoding, []byte(text))
		got, whole := unpack(encoding, packed[:len(packed)-1], slow)
		if whole || !strings.HasPrefix(text, got) {
			t.Errorf("%s: %d bytes, whole %v", encoding, len(got), whole)
		}
	}
}

// 16 MiB of one byte: what comes out is bounded by the size of what came in.
func TestABombIsBounded(t *testing.T) {
	bomb := bytes.Repeat([]byte{'a'}, 16<<20)
	for _, encoding := range []string{"gzip", "deflate", "br", "zstd", "gzip, gzip", "br, zstd"} {
		packed := pack(t, encoding, bomb)
		n, most := 0, 0
		whole := Unpack(encoding, packed, slow, func(p []byte) { n += len(p); most = max(most, len(p)) })
		if limit := freeOut + mostRatio*len(packed); whole || n > limit || most > pieceSize {
			t.Errorf("%s: %d bytes became %d, at most %d may; in pieces of %d; whole %v", encoding, len(packed), n, limit, most, whole)
		}
	}
	packed := pack(t, "gzip", bomb[:1<<20])
	if got, whole := unpack("gzip", packed, Limits{Out: 1 << 20, Time: time.Hour}); len(got) != 1<<20 || !whole {
		t.Errorf("a body of just the limit: %d bytes, whole %v", len(got), whole)
	}
	if got, whole := unpack("gzip", packed, Limits{Out: 1<<20 - 1, Time: time.Hour}); len(got) != 1<<20-1 || whole {
		t.Errorf("a body above the limit: %d bytes, whole %v", len(got), whole)
	}
}

func TestTimeEndsTheWork(t *testing.T) {
	body := pack(t, "gzip", bytes.Repeat([]byte(strings.Repeat("no bomb ", 512)), 400))
	n := 0
	whole := Unpack("gzip", body, Limits{Time: 1}, func(p []byte) { n += len(p) })
	if whole || n == 0 || n > 2*pieceSize {
		t.Errorf("%d bytes after a nanosecond, whole %v", n, whole)
	}
}

// Any bytes: bounded, no panic, the same each time.
func FuzzUnpack(f *testing.F) {
	for _, e := range []string{"gzip", "deflate", "br", "zstd", "gzip, br"} {
		f.Add(e, pack(f, e, []byte(strings.Repeat("data: {}\n", 50))))
		f.Add(e, []byte(`{"a":1}`))
	}
	f.Add("utf-8", []byte(`{"usage":{"prompt_tokens":3}}`)) // no coding, and plain
	f.Fuzz(func(t *testing.T, encoding string, body []byte) {
		if len(body) > 1<<16 {
			return
		}
		l := Limits{Out: 1 << 18, Time: time.Hour}
		one, whole := unpack(encoding, body, l)
		two, again := unpack(encoding, body, l)
		if one != two || whole != again || len(one) > 1<<18 {
			t.Errorf("%d bytes, then %d; whole %v, then %v", len(one), len(two), whole, again)
		}
		if whole && !Known(encoding) && (one != string(body) || !looksPlain(body)) {
			t.Errorf("%q is not known, and %q became a whole %q", encoding, body, one)
		}
	})
}

func BenchmarkBomb(b *testing.B) {
	for _, encoding := range []string{"gzip", "br", "zstd"} {
		body := pack(b, encoding, bytes.Repeat([]byte{'a'}, 64<<20))
		b.Run(encoding, func(b *testing.B) {
			for b.Loop() {
				Unpack(encoding, body, Limits{}, func([]byte) {})
			}
		})
	}
}

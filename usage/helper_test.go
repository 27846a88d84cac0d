package usage

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"testing"
)

func gzipped(t testing.TB, b []byte) []byte {
	return packedBy(t, b, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
}

func zlibbed(t testing.TB, b []byte) []byte {
	return packedBy(t, b, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })
}

func deflated(t testing.TB, b []byte) []byte {
	return packedBy(t, b, func(w io.Writer) io.WriteCloser {
		z, err := flate.NewWriter(w, flate.DefaultCompression)
		if err != nil {
			t.Fatal(err)
		}
		return z
	})
}

func packedBy(t testing.TB, b []byte, f func(io.Writer) io.WriteCloser) []byte {
	t.Helper()
	var out bytes.Buffer
	w := f(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

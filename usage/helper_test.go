package usage

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"io"
	"testing"
	"time"
)

// The clock stands still, so that one body gives one result.
func init() { now = func() time.Time { return time.Date(2026, 9, 19, 12, 0, 0, 0, time.UTC) } }

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

// frame makes an event-stream message with string headers (name, value, ...).
func frame(headers []string, payload string) []byte {
	var h []byte
	for i := 0; i+1 < len(headers); i += 2 {
		h = append(h, byte(len(headers[i])))
		h = append(h, headers[i]...)
		h = append(h, 7)
		h = binary.BigEndian.AppendUint16(h, uint16(len(headers[i+1])))
		h = append(h, headers[i+1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(12+len(h)+len(payload)+4))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, h...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

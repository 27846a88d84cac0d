package transport_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"testing"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/transport"
)

// The caller asked for gzip itself: it gets the bytes as they came, and usage is
// read from a copy.
// Report: sseshachala/conductai#1320
func TestPackedBytesStayPacked(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, `{"object":"chat.completion","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}`)
	z.Close()
	b := new(books)
	rt := gate(t, transport.Options{Limits: slow(10, 1e6), Trace: b.trace(), Base: encoded("gzip", packed.String())})
	req := ask(t, t.Context(), letter)
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := rt.RoundTrip(req)
	if err != nil || resp.Header.Get("Content-Encoding") != "gzip" || resp.Uncompressed {
		t.Fatalf("%v %v", resp, err)
	}
	if _, text, _ := finish(resp, nil); text != packed.String() {
		t.Error("other bytes")
	}
	if got := spent(rt); got.Input != 11 || got.Output != 7 {
		t.Errorf("charged %v", got)
	}
}

// What cannot be unpacked passes as it is, and the estimate stands.
// Report: litespeedtech/openlitespeed#509, simonmittag/j8a#161
func TestAnUnknownEncodingPasses(t *testing.T) {
	for _, encoding := range []string{"br", "zstd", "gzip, br", "gzip"} { // the last is no gzip at all
		b := new(books)
		rt := gate(t, transport.Options{Limits: slow(10, 1e6), Trace: b.trace(), Base: encoded(encoding, "\x8b\x00\x80rubbish\x03")})
		resp, err := rt.RoundTrip(ask(t, t.Context(), letter))
		if err != nil || resp.Header.Get("Content-Encoding") != encoding {
			t.Fatalf("%v %v", resp, err)
		}
		if _, text, err := finish(resp, nil); text != "\x8b\x00\x80rubbish\x03" || err != nil {
			t.Errorf("%s: %q %v", encoding, text, err)
		}
		if got := spent(rt); got.Output != 100 {
			t.Errorf("%s: charged %v", encoding, got)
		}
		b.balanced(t, rt)
	}
}

func encoded(encoding, body string) http.RoundTripper {
	return rttest.Func(func(r *http.Request) (*http.Response, error) {
		rttest.Drain(r)
		resp := response(r, 200, "application/json", body)
		resp.Header.Set("Content-Encoding", encoding)
		return resp, nil
	})
}

// The budget falls by the usage that the answer reports, in any order of its
// fields and among any others. Answers that report none are counted.
// Report: envoyproxy/ai-gateway#1754, kserve/kserve#4595
func TestUsageIsPickedUpInEveryForm(t *testing.T) {
	for body, found := range map[string]bool{
		`{"usage":{"total_tokens":18,"queue_time":0.1,"completion_tokens":7,"prompt_tokens":11},"id":"x","x_groq":{"id":"y"}}`:               true,
		`{"service_tier":null,"usage":{"completion_tokens_details":{"reasoning_tokens":0},"prompt_tokens":11,"completion_tokens":7},"v":[]}`: true,
		`{"choices":[{"message":{"content":"\"usage\":{\"prompt_tokens\":99}"}}]}`:                                                           false,
	} {
		b := new(books)
		rt := gate(t, transport.Options{Limits: slow(10, 1e6), Trace: b.trace(), Base: encoded("", body)})
		finish(rt.RoundTrip(ask(t, t.Context(), letter)))
		got := spent(rt)
		if found && (got.Input != 11 || got.Output != 7) || !found && got.Output != 100 || b.settled[0].Usage.Found != found {
			t.Errorf("%s: charged %v, %+v", body, got, b.settled[0].Usage)
		}
	}
}

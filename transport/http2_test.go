package transport_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

// Codes of RFC 9113, section 7.
const (
	refusedStream   = 7
	enhanceYourCalm = 11
	internalError   = 2
)

// resetting is an HTTP/2 server without TLS that resets each stream with code once it
// has the request's header.
func resetting(t *testing.T, code uint32) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go resetStreams(c, code)
		}
	}()
	return "http://" + l.Addr().String() + "/v1/files"
}

func resetStreams(c net.Conn, code uint32) {
	defer c.Close()
	frame := func(kind, flags byte, stream uint32, payload []byte) {
		h := []byte{0, 0, byte(len(payload)), kind, flags}
		c.Write(append(binary.BigEndian.AppendUint32(h, stream), payload...))
	}
	preface := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	if _, err := io.ReadFull(c, preface); err != nil {
		return
	}
	frame(4, 0, 0, nil) // SETTINGS
	for {
		var h [9]byte
		if _, err := io.ReadFull(c, h[:]); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, c, int64(h[0])<<16|int64(h[1])<<8|int64(h[2])); err != nil {
			return
		}
		switch stream := binary.BigEndian.Uint32(h[5:]); h[3] {
		case 4:
			if h[4]&1 == 0 {
				frame(4, 1, 0, nil) // its acknowledgement
			}
		case 0: // DATA: the body has begun
			frame(3, 0, stream, binary.BigEndian.AppendUint32(nil, code))
		}
	}
}

// A stream that the server refuses was not processed: nothing is kept of it. One
// that it resets for another reason may have been.
func TestStreamsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		code uint32
		kept limit.Cost
		rest bool // everybody rests
	}{
		{"REFUSED_STREAM", refusedStream, limit.Cost{}, false},
		{"ENHANCE_YOUR_CALM", enhanceYourCalm, limit.Cost{Requests: 1}, true},
		{"INTERNAL_ERROR", internalError, limit.Cost{Requests: 1}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := &http.Transport{Protocols: new(http.Protocols)}
			base.Protocols.SetUnencryptedHTTP2(true)
			defer base.CloseIdleConnections()
			b, paused := &books{}, false
			trace := b.trace()
			trace.Paused = func(*http.Request, limit.Pause) { paused = true }
			rt := gate(t, transport.Options{Base: base, Limits: slow(100, 100_000), Trace: trace, Attempts: 1})
			req, err := http.NewRequestWithContext(t.Context(), "POST", resetting(t, c.code), struct{ io.Reader }{strings.NewReader(strings.Repeat("x", 100))})
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/octet-stream")
			_, _, err = finish(rt.RoundTrip(req))
			if err == nil || !strings.Contains(err.Error(), c.name) {
				t.Fatalf("the error is %v", err)
			}
			if b.total != c.kept || paused != c.rest {
				t.Errorf("%v was kept, paused %v: %v", b.total, paused, err)
			}
			b.closed(t, rt)
		})
	}
}

// A base that hedges opens a second connection for an attempt. It comes when the next
// attempt is under way, which never gets one.
func TestALateConnectionIsOfItsOwnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var late *httptrace.ClientTrace
		n := 0
		base := rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			h := httptrace.ContextClientTrace(r.Context())
			mu.Lock()
			n++
			first := n == 1
			if first {
				late = h
			}
			mu.Unlock()
			h.GetConn("api.example.com:443")
			if first {
				h.GotConn(httptrace.GotConnInfo{})
				return nil, errReset
			}
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() { late.GotConn(httptrace.GotConnInfo{}) })
			}
			all.Wait()
			return nil, errDial
		})
		b := &books{}
		rt := gate(t, transport.Options{Base: base, Limits: slow(100, 100_000), Trace: b.trace(), Attempts: 2})
		finish(rt.RoundTrip(ask(t, context.Background(), chat)))
		if b.total.Requests != 1 {
			t.Errorf("%v was kept; the second attempt never left", b.total)
		}
		b.balanced(t, rt)
	})
}

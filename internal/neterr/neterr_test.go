package neterr

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/tripmeter/tripmeter/internal/rttest"
)

// What net/http refuses before it looks for a connection has not left, and does
// not mend. The errors are net/http's own, so that its wording cannot drift away.
func TestWhatNetHTTPRefusesHasNotLeft(t *testing.T) {
	for name, spoil := range rttest.Unsendable {
		req, err := http.NewRequest("POST", "http://api.example.invalid/", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		spoil(req)
		_, err = new(http.Transport).RoundTrip(req)
		if err == nil || !Unsent(err) || Mendable(err) {
			t.Errorf("%s: %v: unsent %v, mendable %v", name, err, err != nil && Unsent(err), err != nil && Mendable(err))
		}
	}
}

// A proxy that answers CONNECT with 407, 403 or 405 gives the same answer again; one
// that is overloaded may not.
func TestAProxyThatRefusesToConnect(t *testing.T) {
	for status, mends := range map[int]bool{407: false, 403: false, 401: false, 404: false, 405: false, 501: false, 429: true, 502: true, 503: true} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) }))
		at, err := url.Parse(proxy.URL)
		if err != nil {
			t.Fatal(err)
		}
		rt := &http.Transport{Proxy: http.ProxyURL(at)}
		req, err := http.NewRequest("GET", "https://api.example.invalid/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.RoundTrip(req); err == nil || Mendable(err) != mends {
			t.Errorf("%d: %v: mendable %v", status, err, !mends)
		}
		rt.CloseIdleConnections()
		proxy.Close()
	}
}

// Two sides of TLS that do not fit together do not fit at the next attempt.
func TestHandshakesThatDoNotMend(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	s.Config.ErrorLog = quiet
	s.StartTLS()
	defer s.Close()
	roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	for name, c := range map[string]*tls.Config{
		"no common version":      {RootCAs: roots, MaxVersion: tls.VersionTLS12},
		"no version at all":      {RootCAs: roots, MinVersion: tls.VersionTLS13, MaxVersion: tls.VersionTLS12},
		"unknown authority":      {},
		"another name than ours": {RootCAs: roots, ServerName: "other.invalid"},
	} {
		req, err := http.NewRequest("GET", s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		rt := &http.Transport{TLSClientConfig: c}
		if _, err := rt.RoundTrip(req); err == nil || Mendable(err) {
			t.Errorf("%s: %v is mendable", name, err)
		}
	}
	if err := tls.Client(nil, &tls.Config{}).Handshake(); err == nil || Mendable(err) {
		t.Errorf("no server name: %v is mendable", err)
	}
}

// A connection that was made and broke has sent, and the next one may not break.
func TestABrokenConnectionMends(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		http.ReadRequest(bufio.NewReader(c))
		c.Close()
	}()
	req, err := http.NewRequest("POST", "http://"+l.Addr().String(), strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := new(http.Transport).RoundTrip(req); err == nil || !Mendable(err) || Unsent(err) {
		t.Errorf("%v: mendable %v, unsent %v", err, err != nil && Mendable(err), err != nil && Unsent(err))
	}
	l.Close()
	req, _ = http.NewRequest("POST", "http://"+l.Addr().String(), strings.NewReader("x"))
	if _, err := new(http.Transport).RoundTrip(req); err == nil || !Mendable(err) || !Unsent(fmt.Errorf("wrapped: %w", err)) {
		t.Errorf("nobody listens: %v", err)
	}
	if Unsent(errors.New("Forbidden")) {
		t.Error("a text that is no word of net/http's proves nothing")
	}
}

var quiet = log.New(io.Discard, "", 0)

// net/http gives these words to what an HTTP/2 server says of a stream.
func TestWhatAServerSaysOfAStream(t *testing.T) {
	for text, want := range map[string]struct{ unprocessed, tooMuch bool }{
		"stream error: stream ID 1; REFUSED_STREAM; received from peer":                                                                   {true, false},
		"http2: Transport: cannot retry err [stream error: stream ID 3; REFUSED_STREAM] after Request.Body was written":                   {true, false},
		"http2: Transport: cannot retry err [http2: Transport received Server's graceful shutdown GOAWAY] after Request.Body was written": {true, false},
		"stream error: stream ID 1; ENHANCE_YOUR_CALM; received from peer":                                                                {false, true},
		`http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=ENHANCE_YOUR_CALM, debug="too_many_pings"`:          {false, true},
		`http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR, debug=""`:                                 {false, false},
		"stream error: stream ID 1; INTERNAL_ERROR; received from peer":                                                                   {false, false},
		"read tcp 127.0.0.1:1->127.0.0.1:2: read: connection reset by peer":                                                               {false, false},
	} {
		err := errors.New(text)
		if Unprocessed(err) != want.unprocessed || TooMuch(err) != want.tooMuch {
			t.Errorf("%s: unprocessed %v, too much %v", text, Unprocessed(err), TooMuch(err))
		}
	}
}

// Errors of net/http, of its SOCKS client and of HTTP/2, by their texts and types.
func TestWhatAnotherAttemptMeetsAgain(t *testing.T) {
	op := func(op string, err error) error { return &net.OpError{Op: op, Net: "tcp", Err: err} }
	for _, c := range []struct {
		err                                 error
		mends, unsent, unprocessed, tooMuch bool
	}{
		{op("socks connect", errors.New("username/password authentication failed")), false, true, false, false},
		{op("socks connect", errors.New("no acceptable authentication methods")), false, true, false, false},
		{op("socks connect", errors.New("unknown error host unreachable")), true, true, false, false},
		{op("dial", &net.AddrError{Err: "missing port in address", Addr: "x"}), false, true, false, false},
		{op("dial", &net.AddrError{Err: "invalid port", Addr: "x:99999"}), false, true, false, false},
		{op("dial", &net.ParseError{Type: "IP address", Text: "x"}), false, true, false, false},
		{op("dial", net.UnknownNetworkError("tcp9")), false, true, false, false},
		{op("dial", &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}), false, true, false, false},
		{op("dial", &net.DNSError{Err: "server misbehaving", Name: "x", IsTemporary: true}), true, true, false, false},
		{errors.New("stream error: stream ID 1; HTTP_1_1_REQUIRED; received from peer"), false, false, false, false},
		{errors.New("stream error: stream ID 1; INADEQUATE_SECURITY; received from peer"), false, false, false, false},
		{errors.New("http2: client connection lost"), true, false, false, false},
		{errors.New("http2: server sent GOAWAY and closed the connection; LastStreamID=0, ErrCode=ENHANCE_YOUR_CALM, debug=\"\""), true, false, false, true},
		{errors.New("http2: Transport: cannot retry err [stream error: stream ID 3; ENHANCE_YOUR_CALM] after Request.Body was written; define Request.GetBody to avoid this error"), true, false, false, true},
		{errors.New("http2: timeout awaiting response headers"), true, false, false, false},
		{errors.New("net/http: timeout awaiting response headers"), true, false, false, false},
		{errors.New("net/http: TLS handshake timeout"), true, true, false, false},
		{errors.New("http2: no cached connection was available"), true, true, false, false},
		{errors.New("http: server closed idle connection"), true, false, false, false},
		{errors.New("tls: received record with version 301 when expecting version 303"), true, false, false, false},
		{errors.New("Proxy Authentication Required"), false, false, false, false},
		{errors.New("Proxy Authentication Required ( The proxy requires authorization )"), false, false, false, false},
		{errors.New("proxy authentication required"), false, false, false, false},
		{errors.New("Unauthorized"), false, false, false, false},
		{errors.New("Method Not Allowed"), false, false, false, false},
		{errors.New("Too Many Requests"), true, false, false, false},
		{errors.New("Bad Gateway"), true, false, false, false},
		{errors.New("http2: client conn not usable"), true, false, true, false},
		{errors.New("http2: client conn could not be established"), true, false, true, false},
		{errors.New("http2: client conn is closed"), true, false, false, false},
		{errors.New("http2: Transport: peer server initiated graceful shutdown after some of Request.Body was written; define Request.GetBody to avoid this error"), true, false, true, false},
		{fmt.Errorf("proxy: %w", errors.New("Proxy Authentication Required")), false, false, false, false},
		{op("proxyconnect", errors.New("connection refused")), true, true, false, false},
		{op("proxyconnect", op("remote error", errors.New("tls: bad certificate"))), false, true, false, false},
		{errors.New("tls: unsupported certificate"), false, false, false, false},
		{errors.New("tls: server's certificate contains an unsupported type of public key: *ed448"), false, false, false, false},
		{errors.New("tls: failed to verify certificate: x509: certificate has expired or is not yet valid"), false, false, false, false},
		{errors.New("tls: internal error"), true, false, false, false},
		{errors.New("tls: invalid ServerKeyExchange message"), true, false, false, false},
		{errors.New("net/http: HTTP/1.x transport connection broken: malformed HTTP response \"\\x00\\x00\\x12\\x04\\x00\""), true, false, false, false},
		{errors.New("net/http: HTTP/1.x transport connection broken: malformed HTTP status code \"abc\""), true, false, false, false},
		{errors.New("net/http: server response headers exceeded 10 bytes; aborted"), false, false, false, false},
		{errors.New("net/http: internal error: connCount underflow"), true, false, false, false},
		{errors.New("http2: response header list larger than advertised limit"), false, false, false, false},
	} {
		got := [...]bool{Mendable(c.err), Unsent(c.err), Unprocessed(c.err), TooMuch(c.err)}
		if want := [...]bool{c.mends, c.unsent, c.unprocessed, c.tooMuch}; got != want {
			t.Errorf("%v: mendable, unsent, unprocessed and too much are %v; want %v", c.err, got, want)
		}
	}
}

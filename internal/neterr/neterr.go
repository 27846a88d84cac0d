// Package neterr reads the errors of a round trip: can another attempt end
// otherwise, and did the request leave. Most of net/http's errors have no type;
// the package knows their words, and its tests hold them to what net/http says.
package neterr

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
)

// Mendable reports whether another attempt may end otherwise than with err.
// Certificates do not mend, nor names that do not exist, nor a proxy that refuses
// to connect, nor requests that net/http refuses to send.
func Mendable(err error) bool {
	if errors.Is(err, http.ErrSchemeMismatch) {
		return false
	}
	if e := (*net.DNSError)(nil); errors.As(err, &e) && e.IsNotFound && !e.IsTemporary && !e.IsTimeout {
		return false
	}
	if malformedAddress(err) {
		return false
	}
	// A TLS alert from the other side: it does not take our certificate, our
	// protocol version or the name we asked for. That of a proxy stands inside another.
	for e, next := (*net.OpError)(nil), err; errors.As(next, &e); next = e.Err {
		if e.Op == "remote error" || e.Op == "local error" {
			return false
		}
	}
	text := err.Error()
	return !badCertificate(err) && !holds(text, neverSent) && !holds(text, malformed) &&
		!holds(text, handshake) && !holds(text, lasting) && !refusedByProxy(text)
}

// malformedAddress reports whether an address cannot be one, so that no dial finds it.
func malformedAddress(err error) bool {
	var (
		address *net.AddrError
		parse   *net.ParseError
		network net.UnknownNetworkError
	)
	return slices.ContainsFunc([]any{&address, &parse, &network}, func(target any) bool { return errors.As(err, target) })
}

// Unsent reports whether err proves that nothing of the request left: there was
// no connection to send it on, or net/http refused it before it looked for one.
func Unsent(err error) bool {
	if e := (*net.OpError)(nil); errors.As(err, &e) && (e.Op == "dial" || e.Op == "proxyconnect" || e.Op == "socks connect") {
		return true
	}
	text := err.Error()
	return holds(text, neverSent) || strings.Contains(text, "http2: no cached connection was available") || strings.Contains(text, "net/http: TLS handshake timeout")
}

// Unprocessed reports whether err proves that the server has taken in nothing of the
// request, although some of it may have left: RFC 9113, sections 6.8 and 8.7. net/http
// sends such a request again by itself where it can.
func Unprocessed(err error) bool { return holds(err.Error(), unprocessed) }

var unprocessed = []string{
	"REFUSED_STREAM",
	"http2: Transport received Server's graceful shutdown GOAWAY",
	"http2: Transport: peer server initiated graceful shutdown after some of Request.Body was written", // golang.org/x/net until 2022
	"http2: client conn not usable",                                                                    // found out before a stream was opened
	"http2: client conn could not be established",
}

// TooMuch reports whether err says that the server is asked too much of: an HTTP/2
// stream or connection that ends with ENHANCE_YOUR_CALM (RFC 9113, section 7).
func TooMuch(err error) bool { return strings.Contains(err.Error(), "ENHANCE_YOUR_CALM") }

// neverSent are the errors by which net/http refuses a request before it looks
// for a connection (Transport.roundTrip).
var neverSent = []string{
	"unsupported protocol scheme",
	"net/http: invalid header field",
	"net/http: invalid trailer field",
	"net/http: invalid method",
	"http: no Host in request URL",
	"http: nil Request.URL",
	"http: nil Request.Header",
	"http: Request.RequestURI can't be set",
	"invalid proxy address", // of the environment (golang.org/x/net/http/httpproxy)
	"refusing to use HTTP_PROXY value in CGI environment",
}

// malformed are the errors by which net/http refuses a request when it writes it.
// Something of it may have left.
var malformed = []string{
	"http: ContentLength=",                     // the body is not as long as declared
	"http: server gave HTTP response to HTTPS", // ErrSchemeMismatch, when rewrapped as text
	"http: Request.ContentLength=",             // with a nil body
	"http2: request body larger than specified content length",
	"invalid Trailer key",
	"invalid Host header",
	"http2: invalid HTTP ", // header or trailer
	"http2: invalid request :path",
	"http2: invalid Upgrade request header",
	"http2: invalid Transfer-Encoding request header",
	"http2: invalid Connection request header",
	"http2: request header list larger than peer's advertised limit",
}

// handshake are the errors by which crypto/tls gives up where the two sides do
// not fit together.
var handshake = []string{
	"tls: no supported versions satisfy MinVersion and MaxVersion",
	"tls: server selected unsupported protocol version",
	"tls: server selected unsupported group",
	"tls: server selected unadvertised ALPN protocol",
	"tls: server chose an unconfigured cipher suite",
	"tls: server rejected ECH",
	"tls: either ServerName or InsecureSkipVerify must be specified",
	"tls: failed to parse certificate from server",
	"tls: invalid signature by the server certificate",
	"tls: downgrade attempt detected",
}

// lasting are what another attempt meets again: a proxy that does not know us, a server
// that refuses HTTP/2 (RFC 9113 section 7), a header above our bound.
var lasting = []string{
	"no acceptable authentication methods", // SOCKS
	"username/password authentication failed",
	"invalid username/password",
	"HTTP_1_1_REQUIRED",
	"INADEQUATE_SECURITY",
	"net/http: server response headers exceeded",
	"http2: response header list larger than advertised limit",
	"tls: failed to verify certificate",
	"tls: unsupported certificate",
	"tls: server's certificate contains an unsupported type of public key",
}

// proxyRefusals are the answers to CONNECT that no further attempt changes.
// net/http makes the reason of the status line the whole error.
var proxyRefusals = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden,
	http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusProxyAuthRequired, http.StatusGone,
	http.StatusUnavailableForLegalReasons, http.StatusNotImplemented, http.StatusHTTPVersionNotSupported,
}

// refusedByProxy reports whether text is the reason of one of proxyRefusals, maybe
// wrapped. A proxy may write it in another case, and may explain it in brackets.
func refusedByProxy(text string) bool {
	reason, _, _ := strings.Cut(text, " (")
	if i := strings.LastIndex(reason, ": "); i >= 0 {
		reason = reason[i+2:]
	}
	return slices.ContainsFunc(proxyRefusals, func(status int) bool { return strings.EqualFold(reason, http.StatusText(status)) })
}

func holds(text string, any []string) bool {
	return slices.ContainsFunc(any, func(s string) bool { return strings.Contains(text, s) })
}

// badCertificate looks for every type that means a failed verification, not only
// the one crypto/tls wraps them in since Go 1.20: own verifiers return them bare.
func badCertificate(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		record       tls.RecordHeaderError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
		constraint   x509.ConstraintViolationError
		extension    x509.UnhandledCriticalExtension
		algorithm    x509.InsecureAlgorithmError
		roots        x509.SystemRootsError
	)
	return slices.ContainsFunc([]any{
		&verification, &record, &authority, &hostname, &invalid,
		&constraint, &extension, &algorithm, &roots,
	}, func(target any) bool { return errors.As(err, target) })
}

package retry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
)

// mendable reports whether another attempt may end otherwise than with err.
// Certificates do not mend, nor names that do not exist, nor requests that
// net/http refuses to send.
func mendable(err error) bool {
	if errors.Is(err, http.ErrSchemeMismatch) || errors.Is(err, errNoResponse) {
		return false
	}
	if e := (*net.DNSError)(nil); errors.As(err, &e) && e.IsNotFound && !e.IsTemporary && !e.IsTimeout {
		return false
	}
	// A TLS alert from the other side: it does not take our certificate, our
	// protocol version or the name we asked for.
	if e := (*net.OpError)(nil); errors.As(err, &e) && (e.Op == "remote error" || e.Op == "local error") {
		return false
	}
	return !badCertificate(err) && !unsendable(err)
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
	for _, target := range []any{
		&verification, &record, &authority, &hostname, &invalid,
		&constraint, &extension, &algorithm, &roots,
	} {
		if errors.As(err, target) {
			return true
		}
	}
	return false
}

// unsendable recognises the errors by which net/http refuses a request, before it
// connects or, for some, when it writes. They have no types.
func unsendable(err error) bool {
	s := err.Error()
	for _, t := range []string{
		"unsupported protocol scheme",
		"net/http: invalid header field",
		"net/http: invalid trailer field",
		"net/http: invalid method",
		"http: no Host in request URL",
		"http: nil Request.URL",
		"http: nil Request.Header",
		"http: Request.RequestURI can't be set",
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
	} {
		if strings.Contains(s, t) {
			return true
		}
	}
	return false
}

// idempotent follows net/http, which replays the same requests on a connection
// that turns out to be closed (Transport, "retries ... idempotent"), and RFC 9110
// section 9.2.2.
func idempotent(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace,
		http.MethodPut, http.MethodDelete:
		return true
	}
	_, a := req.Header["Idempotency-Key"]
	_, b := req.Header["X-Idempotency-Key"]
	return a || b
}

// neverSent reports whether err proves that the request did not leave: there was
// no connection to send it on.
func neverSent(err error) bool {
	if e := (*net.OpError)(nil); errors.As(err, &e) && (e.Op == "dial" || e.Op == "proxyconnect") {
		return true
	}
	return strings.Contains(err.Error(), "net/http: TLS handshake timeout")
}

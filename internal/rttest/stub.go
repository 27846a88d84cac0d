package rttest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
)

type stubCase struct {
	name string
	run  func(*testing.T, wrapper)
}

var stubCases = []stubCase{
	{"the request is not altered", requestNotAltered},
	{"B092 edits by the base stay below", editsStayBelow},
	{"the base sees the request", baseSeesRequest},
	{"trailers set while the body is read are seen", trailersSeen},
	{"B089 the request body is closed", bodyClosed},
	{"the request body is streamed", bodyStreamed},
	{"the response is the base's", responseIsTheBases},
	{"the end of the response body is the base's", responseEnd},
	{"response.Request is the caller's", responseRequest},
	{"B091 a response means no error", neverBoth},
	{"an error keeps its identity", errorIdentity},
	{"context values reach the base", contextValues},
	{"cancelled before", cancelledBefore},
	{"cancelled in flight", cancelledInFlight},
	{"B093 concurrent calls", concurrentCalls},
	{"B094 CloseIdleConnections is forwarded", closeIdle},
	{"B095 a body of 101 can be written to", upgradeStub},
}

// requests are the shapes a caller's request may have.
func requests(t *testing.T) map[string]*http.Request {
	ctx := context.WithValue(context.Background(), ctxKey{}, "kept")
	oneShot := newRequest(ctx, t, "POST", "https://api.example.com/v1/chat/completions?x=1", NewBody(chat))
	oneShot.ContentLength = int64(len(chat))
	chunked := newRequest(ctx, t, "POST", "https://api.example.com/v1/chat/completions", NewBody(chat))
	chunked.ContentLength = -1
	chunked.TransferEncoding = []string{"chunked"}
	chunked.Trailer = http.Header{"X-Sum": {"1"}}
	odd := newRequest(ctx, t, "PUT", "http://user:pw@api.example.com/a%2Fb?q=%20", strings.NewReader(chat))
	odd.Host = "other.example.com"
	odd.Close = true
	odd.Header["x-lower"] = []string{"a", "b"}
	odd.Form = map[string][]string{"f": {"1"}}
	empty := newRequest(ctx, t, "POST", "https://api.example.com/", nil)
	empty.Body = http.NoBody
	return map[string]*http.Request{
		"GetBody":  newRequest(ctx, t, "POST", "https://api.example.com/v1/chat/completions", strings.NewReader(chat)),
		"one shot": oneShot, "chunked": chunked, "odd": odd, "NoBody": empty,
		"GET": newRequest(ctx, t, "GET", "https://api.example.com/v1/models", nil),
	}
}

type ctxKey struct{}

func requestNotAltered(t *testing.T, wrap wrapper) {
	bases := map[string]Func{
		"200":   func(r *http.Request) (*http.Response, error) { Drain(r); return Response(r, 200, nil, "{}"), nil },
		"400":   func(r *http.Request) (*http.Response, error) { Drain(r); return Response(r, 400, nil, "{}"), nil },
		"error": func(r *http.Request) (*http.Response, error) { Drain(r); return nil, x509.UnknownAuthorityError{} },
	}
	for bname, base := range bases {
		for name, req := range requests(t) {
			before := *req
			header, url, trailer := req.Header.Clone(), *req.URL, req.Trailer.Clone()
			headerMap := reflect.ValueOf(req.Header).Pointer()
			resp, err := wrap(base).RoundTrip(req)
			if err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			what := bname + ", " + name
			if !reflect.DeepEqual(req.Header, header) || reflect.ValueOf(req.Header).Pointer() != headerMap {
				t.Errorf("%s: header is %v, was %v", what, req.Header, header)
			}
			if !reflect.DeepEqual(*req.URL, url) || req.URL != before.URL {
				t.Errorf("%s: URL is %v, was %v", what, req.URL, &url)
			}
			if !reflect.DeepEqual(req.Trailer, trailer) {
				t.Errorf("%s: trailer is %v, was %v", what, req.Trailer, trailer)
			}
			if req.Body != before.Body {
				t.Errorf("%s: Body was replaced", what)
			}
			if (req.GetBody == nil) != (before.GetBody == nil) ||
				reflect.ValueOf(req.GetBody).Pointer() != reflect.ValueOf(before.GetBody).Pointer() {
				t.Errorf("%s: GetBody was replaced", what)
			}
			if req.Context() != before.Context() {
				t.Errorf("%s: the context was replaced", what)
			}
			if req.Method != before.Method || req.Host != before.Host || req.Close != before.Close ||
				req.ContentLength != before.ContentLength || req.Proto != before.Proto ||
				!reflect.DeepEqual(req.TransferEncoding, before.TransferEncoding) ||
				!reflect.DeepEqual(req.Form, before.Form) || req.RequestURI != before.RequestURI {
				t.Errorf("%s: request is %+v, was %+v", what, req, before)
			}
		}
	}
}

func editsStayBelow(t *testing.T, wrap wrapper) {
	req := requests(t)["GetBody"]
	before := req.Header.Clone()
	rt := wrap(Func(func(r *http.Request) (*http.Response, error) {
		Drain(r)
		r.Header.Set("Traceparent", "x")
		r.Header["Content-Type"][0] = "text/plain"
		return Response(r, 200, nil, ""), nil
	}))
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if !reflect.DeepEqual(req.Header, before) {
		t.Errorf("header is %v, was %v", req.Header, before)
	}
}

func baseSeesRequest(t *testing.T, wrap wrapper) {
	for name, req := range requests(t) {
		want := chat
		if name == "GET" || name == "NoBody" {
			want = ""
		}
		calls := 0
		rt := wrap(Func(func(r *http.Request) (*http.Response, error) {
			calls++
			if got := string(Drain(r)); got != want {
				t.Errorf("%s: body %q, want %q", name, got, want)
			}
			if r.Method != req.Method || r.URL.String() != req.URL.String() || r.Host != req.Host || r.Close != req.Close {
				t.Errorf("%s: %s %s host %s close %v", name, r.Method, r.URL, r.Host, r.Close)
			}
			if r.ContentLength != req.ContentLength || !reflect.DeepEqual(r.TransferEncoding, req.TransferEncoding) {
				t.Errorf("%s: length %d, encoding %v", name, r.ContentLength, r.TransferEncoding)
			}
			if !reflect.DeepEqual(r.Header, req.Header) || !reflect.DeepEqual(r.Trailer, req.Trailer) {
				t.Errorf("%s: header %v trailer %v", name, r.Header, r.Trailer)
			}
			if req.GetBody != nil {
				if r.GetBody == nil {
					t.Errorf("%s: GetBody is gone", name)
				} else if b, err := r.GetBody(); err != nil {
					t.Errorf("%s: GetBody: %v", name, err)
				} else if got, _ := io.ReadAll(b); string(got) != want {
					t.Errorf("%s: GetBody gives %q", name, got)
				}
			}
			return Response(r, 200, nil, ""), nil
		}))
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if calls != 1 {
			t.Errorf("%s: the base was called %d times", name, calls)
		}
	}
}

func trailersSeen(t *testing.T, wrap wrapper) {
	req := requests(t)["chunked"]
	req.Trailer = http.Header{"X-Sum": nil}
	req.Body = io.NopCloser(readerFunc(func(p []byte) (int, error) {
		req.Trailer.Set("X-Sum", "42")
		return 0, io.EOF
	}))
	rt := wrap(Func(func(r *http.Request) (*http.Response, error) {
		Drain(r)
		if got := r.Trailer.Get("X-Sum"); got != "42" {
			t.Errorf("the base sees the trailer %q", got)
		}
		return Response(r, 200, nil, ""), nil
	}))
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func bodyClosed(t *testing.T, wrap wrapper) {
	closing := func(resp func(r *http.Request) (*http.Response, error)) Func {
		return func(r *http.Request) (*http.Response, error) {
			r.Body.Close() // without reading, as a base may
			return resp(r)
		}
	}
	bases := map[string]Func{
		"200":   closing(func(r *http.Request) (*http.Response, error) { return Response(r, 200, nil, "{}"), nil }),
		"401":   closing(func(r *http.Request) (*http.Response, error) { return Response(r, 401, nil, "{}"), nil }),
		"error": closing(func(*http.Request) (*http.Response, error) { return nil, x509.UnknownAuthorityError{} }),
		"cancelled": closing(func(r *http.Request) (*http.Response, error) {
			return nil, r.Context().Err()
		}),
	}
	for name, base := range bases {
		for _, again := range []bool{false, true} {
			ctx, cancel := context.WithCancel(context.Background())
			if name == "cancelled" {
				cancel()
			}
			b := NewBody(chat)
			req := newRequest(ctx, t, "POST", "https://api.example.com/", b)
			req.ContentLength = int64(len(chat))
			var copies []*Body
			if again {
				req.GetBody = func() (io.ReadCloser, error) {
					copies = append(copies, NewBody(chat))
					return copies[len(copies)-1], nil
				}
			}
			resp, err := wrap(base).RoundTrip(req)
			if err == nil {
				resp.Body.Close()
			}
			for i, b := range append(copies, b) {
				if _, closes, late := b.Counts(); closes == 0 || late > 0 {
					t.Errorf("%s, GetBody %v, body %d: closed %d times, read %d times after", name, again, i, closes, late)
				}
			}
			cancel()
		}
	}
}

func bodyStreamed(t *testing.T, wrap wrapper) {
	r, w := io.Pipe()
	seen := make(chan struct{})
	req := newRequest(context.Background(), t, "POST", "https://api.example.com/v1/audio", r)
	rt := wrap(Func(func(r *http.Request) (*http.Response, error) {
		defer r.Body.Close()
		p := make([]byte, 5)
		io.ReadFull(r.Body, p)
		close(seen)
		rest, err := io.ReadAll(r.Body)
		if err != nil || string(p)+string(rest) != "first then" {
			t.Errorf("the base reads %q, %v", string(p)+string(rest), err)
		}
		return Response(r, 200, nil, ""), nil
	}))
	within(t, "a body written as it is read", func() {
		go func() {
			io.WriteString(w, "first")
			<-seen
			io.WriteString(w, " then")
			w.Close()
		}()
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
	})
}

func responseIsTheBases(t *testing.T, wrap wrapper) {
	for _, want := range []*http.Response{
		{StatusCode: 200, Header: http.Header{"Set-Cookie": {"a=1", "b=2"}, "x-lower": {"v"}}},
		{StatusCode: 204, Header: http.Header{}},
		{StatusCode: 302, Header: http.Header{"Location": {"https://elsewhere.example.com/"}}},
		{StatusCode: 302, Header: http.Header{"Location": {"http://[bad%zz"}}},
		{StatusCode: 307, Header: http.Header{"Location": {"/again"}}},
		{StatusCode: 304, Header: http.Header{"Etag": {`"x"`}}},
		{StatusCode: 404, Header: http.Header{"X-Ratelimit-Remaining-Tokens": {"banana"}}},
		{StatusCode: 400, Header: http.Header{"Retry-After": {"120"}}},
		{StatusCode: 999, Header: http.Header{}},
	} {
		const text = "one\r\n\x00two\xff"
		want.Status = fmt.Sprintf("%d any words", want.StatusCode)
		want.Proto, want.ProtoMajor, want.ProtoMinor = "HTTP/1.1", 1, 1
		want.ContentLength = -1
		want.Uncompressed = true
		want.TransferEncoding = []string{"chunked"}
		want.Close = true
		want.Trailer = http.Header{"X-Late": nil}
		want.TLS = &tls.ConnectionState{ServerName: "api.example.com"}
		want.Body = NewBody(text)
		header := want.Header.Clone()
		kept := *want
		rt := wrap(Func(func(r *http.Request) (*http.Response, error) {
			Drain(r)
			want.Request = r
			return want, nil
		}))
		got, err := rt.RoundTrip(requests(t)["GetBody"])
		if err != nil {
			t.Errorf("%d: %v", want.StatusCode, err)
			continue
		}
		b, err := io.ReadAll(got.Body)
		if string(b) != text || err != nil {
			t.Errorf("%d: body %q, %v", want.StatusCode, b, err)
		}
		got.Body.Close()
		if got.Status != kept.Status || got.StatusCode != kept.StatusCode || got.Proto != kept.Proto ||
			got.ContentLength != -1 || !got.Uncompressed || !got.Close || got.TLS != kept.TLS ||
			!reflect.DeepEqual(got.TransferEncoding, kept.TransferEncoding) ||
			!reflect.DeepEqual(got.Header, header) || !reflect.DeepEqual(got.Trailer, kept.Trailer) {
			t.Errorf("%d: got %+v, want %+v", kept.StatusCode, got, kept)
		}
		if _, closes, _ := kept.Body.(*Body).Counts(); closes == 0 {
			t.Errorf("%d: Close does not reach the base's body", kept.StatusCode)
		}
	}
}

func responseEnd(t *testing.T, wrap wrapper) {
	cut := errors.New("the connection was cut")
	rt := wrap(Func(func(r *http.Request) (*http.Response, error) {
		Drain(r)
		resp := Response(r, 200, nil, "")
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader("half"), readerFunc(func([]byte) (int, error) { return 0, cut })))
		return resp, nil
	}))
	resp, err := rt.RoundTrip(requests(t)["GetBody"])
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); string(b) != "half" || !errors.Is(err, cut) {
		t.Errorf("read %q, %v", b, err)
	}
}

func responseRequest(t *testing.T, wrap wrapper) {
	for name, req := range requests(t) {
		rt := wrap(Func(func(r *http.Request) (*http.Response, error) { Drain(r); return Response(r, 200, nil, ""), nil }))
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.Request != req {
			t.Errorf("%s: response.Request is another request", name)
		}
	}
}

func neverBoth(t *testing.T, wrap wrapper) {
	b := NewBody("x")
	rt := wrap(Func(func(r *http.Request) (*http.Response, error) {
		Drain(r)
		resp := Response(r, 400, nil, "")
		resp.Body = b
		return resp, x509.UnknownAuthorityError{}
	}))
	resp, err := rt.RoundTrip(requests(t)["GetBody"])
	switch {
	case resp != nil && err != nil:
		t.Error("both a response and an error")
	case resp != nil:
		resp.Body.Close()
	case err == nil:
		t.Error("neither a response nor an error")
	default:
		if _, closes, _ := b.Counts(); closes == 0 {
			t.Error("the response that was left out is open")
		}
	}
	rt = wrap(Func(func(r *http.Request) (*http.Response, error) { Drain(r); return nil, nil }))
	if resp, err := rt.RoundTrip(requests(t)["GetBody"]); resp != nil || err == nil {
		t.Errorf("over a base that answers nothing: %v, %v", resp, err)
	}
}

func errorIdentity(t *testing.T, wrap wrapper) {
	bad := fmt.Errorf("wrapped: %w", x509.HostnameError{Certificate: &x509.Certificate{}, Host: "api.example.com"})
	rt := wrap(Func(func(r *http.Request) (*http.Response, error) { Drain(r); return nil, bad }))
	_, err := rt.RoundTrip(requests(t)["GetBody"])
	if !errors.Is(err, bad) || !errors.As(err, new(x509.HostnameError)) {
		t.Errorf("error %v does not match the base's", err)
	}
}

func contextValues(t *testing.T, wrap wrapper) {
	rt := wrap(Func(func(r *http.Request) (*http.Response, error) {
		Drain(r)
		if r.Context().Value(ctxKey{}) != "kept" {
			t.Error("the base does not see the context's values")
		}
		return Response(r, 200, nil, ""), nil
	}))
	resp, err := rt.RoundTrip(requests(t)["GetBody"])
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

func cancelledBefore(t *testing.T, wrap wrapper) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	rt := wrap(Func(func(r *http.Request) (*http.Response, error) { Drain(r); return nil, r.Context().Err() }))
	b := NewBody(chat)
	resp, err := rt.RoundTrip(newRequest(ctx, t, "POST", "https://api.example.com/", b))
	if resp != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", resp, err)
	}
	if _, closes, _ := b.Counts(); closes == 0 {
		t.Error("the request body is open")
	}
}

func cancelledInFlight(t *testing.T, wrap wrapper) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	calls := 0
	rt := wrap(Func(func(r *http.Request) (*http.Response, error) {
		calls++
		Drain(r)
		cancel()
		<-r.Context().Done()
		return nil, r.Context().Err()
	}))
	within(t, "cancelled in flight", func() {
		resp, err := rt.RoundTrip(newRequest(ctx, t, "POST", "https://api.example.com/", strings.NewReader(chat)))
		if resp != nil || !errors.Is(err, context.Canceled) || calls != 1 {
			t.Errorf("%v, %v, %d calls", resp, err, calls)
		}
	})
}

func concurrentCalls(t *testing.T, wrap wrapper) {
	rt := wrap(Func(func(r *http.Request) (*http.Response, error) {
		return Response(r, 200, nil, string(Drain(r))), nil
	}))
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			want := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%d"}]}`, i)
			req, _ := http.NewRequest("POST", "https://api.example.com/", strings.NewReader(want))
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if got, _ := io.ReadAll(resp.Body); string(got) != want {
				t.Errorf("sent %q, answered %q", want, got)
			}
			if resp.Request != req {
				t.Error("the answer names another call's request")
			}
		})
	}
	wg.Wait()
}

type closer struct {
	Func
	closed int
}

func (c *closer) CloseIdleConnections() { c.closed++ }

func closeIdle(t *testing.T, wrap wrapper) {
	c := &closer{Func: func(r *http.Request) (*http.Response, error) {
		Drain(r)
		return nil, x509.UnknownAuthorityError{}
	}}
	client := http.Client{Transport: wrap(c)}
	if _, err := client.Do(requests(t)["GetBody"]); err == nil {
		t.Error("no error")
	}
	if c.closed != 0 {
		t.Error("the layer flushed the pool by itself")
	}
	client.CloseIdleConnections()
	if c.closed != 1 {
		t.Errorf("forwarded %d times", c.closed)
	}
	client.Transport = wrap(c.Func) // a base that has no such method
	client.CloseIdleConnections()
}

func upgradeStub(t *testing.T, wrap wrapper) {
	type conn struct {
		*Body
		io.Writer
	}
	var sent strings.Builder
	rt := wrap(Func(func(r *http.Request) (*http.Response, error) {
		Drain(r)
		resp := Response(r, 101, http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}, "")
		resp.Body = conn{NewBody("hi"), &sent}
		return resp, nil
	}))
	resp, err := rt.RoundTrip(requests(t)["GET"])
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	w, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		t.Fatalf("the body is a %T without Write", resp.Body)
	}
	io.WriteString(w, "ping")
	if got, _ := io.ReadAll(w); sent.String() != "ping" || string(got) != "hi" {
		t.Errorf("sent %q, received %q", sent.String(), got)
	}
}

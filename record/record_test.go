package record_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/record"
	"github.com/tripmeter/tripmeter/transport"
)

// play records a run of calls that come at once, under one a second.
func play(t *testing.T, w io.Writer, calls int) *providertest.Provider {
	p, err := providertest.New(providertest.Options{Output: providertest.Constant(10)})
	if err != nil {
		t.Fatal(err)
	}
	p.Script(providertest.Step{Kind: providertest.Refuse, RetryAfter: 3 * time.Second})
	r := record.New(w)
	rt, err := transport.New(transport.Options{Base: r.Wire(p.RoundTripper()), RPM: 60, Trace: r.Trace()})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			req, err := http.NewRequest("POST", "http://u:pw@box/v1/chat/completions?key=secret",
				strings.NewReader(`{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"private words"}]}`))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Authorization", "Bearer secret")
			resp, err := r.Calls(rt).RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			if resp.Request != req {
				t.Error("the response names another request")
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		})
	}
	all.Wait()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	return p
}

// The recording agrees with the provider's own books, names the call of every
// attempt, and tells nothing of what was said.
func TestRecordingAgreesWithTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		p := play(t, &b, 5)
		for _, secret := range []string{"secret", "private", "Bearer", "pw", "http"} {
			if strings.Contains(b.String(), secret) {
				t.Errorf("the recording tells %q", secret)
			}
		}
		events, err := record.Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		s := record.SumsOf(events)
		st := p.Stats()
		if int64(s.Attempts) != st.Requests || int64(s.Refused) != st.Refused || int64(s.Served) != st.Completed || s.Calls != 5 || s.Tokens != st.InputTokens+st.OutputTokens {
			t.Errorf("%+v, the provider has %+v", s, st)
		}
		last := time.Duration(0)
		grants, pauses := 0, 0
		for _, e := range events {
			if e.At < last {
				t.Errorf("%+v is before %v", e, last)
			}
			last = e.At
			if e.Call < 1 || e.Call > 5 {
				t.Errorf("%+v is of no call", e)
			}
			switch e.Kind {
			case record.Grant:
				grants++
			case record.Pause:
				pauses++
				if e.By != "box" || e.Text == "" || !strings.HasPrefix(e.Scope, "box#") || e.Took <= 0 || e.Until != e.At+e.Took {
					t.Errorf("the pause does not say who asked, why, whom it holds and until when: %+v", e)
				}
			}
		}
		if grants != 5 || pauses != 1 {
			t.Errorf("%d grants, %d pauses", grants, pauses)
		}
	})
}

func TestReadSaysWhichLineIsBroken(t *testing.T) {
	for in, want := range map[string]string{
		"":                                       "",
		`{"t":1,"kind":"send"}` + "\n" + `{"t":`: "", // a program that ended
		"{}\n":                                   "line 1",
		`{"t":1,"kind":"send"}` + "\nnonsense\n": "line 2",
		`{"t":-1,"kind":"send"}` + "\n":          "line 1",
	} {
		_, err := record.Read(strings.NewReader(in))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// A full disk is reported at the end and disturbs no call.
func TestFullDiskIsToldAtTheEnd(t *testing.T) {
	r := record.New(full{})
	rt := r.Calls(roundTripper(func(q *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody, Request: q}, nil
	}))
	for range 1000 {
		req, err := http.NewRequest("GET", "http://box/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.RoundTrip(req); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err == nil || err.Error() != "disk full" {
		t.Errorf("Close: %v", err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The bytes of a body pass as they are, to the end and through an early Close.
func TestBytesPassUnchanged(t *testing.T) {
	const text = `{"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}`
	for _, n := range []int{0, 10, len(text) + 1} {
		var b bytes.Buffer
		r := record.New(&b)
		rt := r.Wire(roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text))}, nil
		}))
		resp, err := rt.RoundTrip(&http.Request{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.LimitReader(resp.Body, int64(n)))
		resp.Body.Close()
		resp.Body.Close()
		if err != nil || string(got) != text[:min(n, len(text))] {
			t.Errorf("%q, %v", got, err)
		}
		r.Close()
		if has := strings.Contains(b.String(), `"kind":"usage"`); has != (n > len(text)) {
			t.Errorf("after %d bytes the usage is known: %v", n, has)
		}
	}
}

// A picture of any runs is XML, has a description in words, and has no number that
// cannot be drawn.
func TestPicturesAreWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		play(t, &b, 5)
		events, err := record.Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		for name, runs := range map[string][]record.Run{
			"two":   {{"a & b", events}, {"<c>", events}},
			"empty": {{"nothing", nil}},
			"one":   {{"moment", []record.Event{{Kind: record.Answer, Status: 429}}}},
		} {
			for _, o := range []record.Options{{}, {Tokens: 1000, Held: 10, Small: true, Title: "T"}, {Tokens: 1e9}} {
				var svg bytes.Buffer
				if err := record.Draw(&svg, o, runs...); err != nil {
					t.Fatal(err)
				}
				text := svg.String()
				var v struct {
					Title string `xml:"title"`
					Desc  string `xml:"desc"`
				}
				if err := xml.Unmarshal(svg.Bytes(), &v); err != nil || v.Title == "" || v.Desc == "" {
					t.Errorf("%s: %v, %+v", name, err, v)
				}
				if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Contains(text, "%!") {
					t.Errorf("%s: a number cannot be drawn", name)
				}
				if name == "two" && !strings.Contains(text, "5 of 5 calls served, 6 attempts, 1 of them refused") {
					t.Errorf("the description is not right: %s", text[:600])
				}
			}
		}
		if err := record.Draw(io.Discard, record.Options{}); err == nil {
			t.Error("no run, no error")
		}
	})
}

// Any bytes are read or refused, and all events that are read can be drawn.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"t":1,"kind":"answer","status":429,"took":5}` + "\n" + `{"t":9223372036854775807,"kind":"return","status":200,"took":-9}` + "\n"))
	f.Add([]byte(`{"t":1,"kind":"usage","input":9223372036854775807,"output":1}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		events, err := record.Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		var svg bytes.Buffer
		if err := record.Draw(&svg, record.Options{Tokens: 1}, record.Run{Name: "x", Events: events}); err != nil {
			t.Fatal(err)
		}
		if text := svg.String(); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || len(text) > 1<<20+len(b)*200 {
			t.Errorf("%d bytes of picture", len(text))
		}
	})
}

func Example() {
	provider, err := providertest.New(providertest.Options{Output: providertest.Constant(7)})
	if err != nil {
		fmt.Println(err)
		return
	}
	var file bytes.Buffer
	r := record.New(&file)
	rt, err := transport.New(transport.Options{Base: r.Wire(provider.RoundTripper()), RPM: 500, Trace: r.Trace()})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: r.Calls(rt)}
	resp, err := client.Post("http://box/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"Hello"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if err := r.Close(); err != nil {
		fmt.Println(err)
		return
	}
	events, err := record.Read(&file)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := record.SumsOf(events)
	fmt.Fprintln(os.Stdout, s.Served, "served,", s.Attempts, "attempt,", s.Tokens, "tokens")
	// Output: 1 served, 1 attempt, 11 tokens
}

package transport_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

// serve starts a provider that answers every call with that.
func serve(contentType, body string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		io.WriteString(w, body)
	}))
}

const question = `{"model":"gpt-4o","max_tokens":50,"messages":[{"role":"user","content":"Hello."}]}`

// Wrap the transport of any client. Its calls wait their turn; nothing else
// changes.
func Example() {
	provider := serve("application/json", `{"usage":{"prompt_tokens":8,"completion_tokens":12,"total_tokens":20}}`)
	defer provider.Close()

	rt, err := transport.New(transport.Options{RPM: 500, TPM: 200_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: rt}

	resp, err := client.Post(provider.URL+"/v1/chat/completions", "application/json", strings.NewReader(question))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	fmt.Println(resp.Status)
	// Output: 200 OK
}

// vendor stands for any SDK that takes an *http.Client, as they all do.
type vendor struct {
	client  *http.Client
	baseURL string
}

func (s *vendor) chat(ctx context.Context, prompt string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, "POST", s.baseURL+"/v1/chat/completions", strings.NewReader(question))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// Hand the client to an SDK, and switch off the retries of one of the two: they
// would multiply. Settled says what each call was charged.
func Example_sdk() {
	provider := serve("application/json", `{"usage":{"prompt_tokens":8,"completion_tokens":12,"total_tokens":20}}`)
	defer provider.Close()

	rt, err := transport.New(transport.Options{
		RPM: 500, TPM: 200_000, StopSDKRetries: true,
		Trace: transport.Trace{Settled: func(s transport.Settlement) {
			fmt.Println("charged:", s.Charged.Input+s.Charged.Output, "tokens")
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := &vendor{client: &http.Client{Transport: rt}, baseURL: provider.URL}
	if _, err := s.chat(context.Background(), "Hello."); err != nil {
		fmt.Println(err)
	}
	// Output: charged: 20 tokens
}

// A stream passes chunk for chunk. The call is settled at its end, or when its
// body is closed before.
func Example_stream() {
	provider := serve("text/event-stream",
		`data: {"choices":[{"delta":{"content":"Hi."}}]}`+"\n\n"+
			`data: {"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10}}`+"\n\n"+
			"data: [DONE]\n\n")
	defer provider.Close()

	var charged limit.Cost
	rt, err := transport.New(transport.Options{TPM: 200_000, Trace: transport.Trace{
		Settled: func(s transport.Settlement) { charged = s.Charged },
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: rt}
	resp, err := client.Post(provider.URL+"/v1/chat/completions", "application/json", strings.NewReader(question))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if event, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			fmt.Println(event)
		}
	}
	fmt.Println("charged:", charged.Input+charged.Output, "tokens")
	// Output:
	// {"choices":[{"delta":{"content":"Hi."}}]}
	// {"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10}}
	// [DONE]
	// charged: 10 tokens
}

// A call that cannot have its turn before its deadline is refused at once. The
// error matches the deadline, and says when the call could have gone.
func Example_deadline() {
	provider := serve("application/json", `{}`)
	defer provider.Close()

	rt, err := transport.New(transport.Options{RPM: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: rt}
	for range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "GET", provider.URL, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp, err := client.Do(req)
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			fmt.Println(resp.Status)
		}
		var e *limit.Error
		if errors.As(err, &e) {
			fmt.Println(errors.Is(err, context.DeadlineExceeded), e.Dimension, e.Wait.Round(10*time.Second))
		}
	}
	// Output:
	// 200 OK
	// true requests per minute 1m0s
}

// A call larger than its limit is refused before it leaves. A refusal of the
// provider that is not tried again arrives as it is, with a nil error.
func Example_refusal() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer provider.Close()

	rt, err := transport.New(transport.Options{TPM: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: rt}

	large := `{"model":"gpt-4o","max_tokens":4000,"messages":[{"role":"user","content":"Hello."}]}`
	_, err = client.Post(provider.URL+"/v1/chat/completions", "application/json", strings.NewReader(large))
	fmt.Println("too large:", errors.Is(err, limit.ErrTooLarge))

	resp, err := client.Post(provider.URL+"/v1/chat/completions", "application/json", strings.NewReader(question))
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	fmt.Println(resp.Status, "after", resp.Header.Get("Retry-After"), "s")
	fmt.Println("others wait:", time.Until(whole(rt).PausedUntil) > 59*time.Minute)
	// Output:
	// too large: true
	// 429 Too Many Requests after 3600 s
	// others wait: true
}

// Two users share a key: one has paid for three shares.
func ExampleWithTenant() {
	rt, err := transport.New(transport.Options{
		Base: answering{}, TPM: 200_000,
		Scopes: transport.Scopes{Models: []transport.ModelOptions{{Names: []string{"gpt-4o*"}, RPM: 500, Shared: true}}},
	})
	if err != nil {
		panic(err)
	}
	if err := rt.SetTenant("team-a", transport.TenantOptions{Weight: 3, TPM: 60_000}); err != nil {
		panic(err)
	}
	ctx := transport.WithTenant(context.Background(), "team-a")
	req, _ := http.NewRequestWithContext(ctx, "POST", "https://api.example.com/v1/chat/completions",
		strings.NewReader(`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello."}]}`))
	req.Header.Set("Content-Type", "application/json")
	fmt.Println("it would wait", rt.Forecast(req).Wait)
	resp, err := rt.RoundTrip(req)
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	for _, s := range rt.Snapshot().Scopes {
		fmt.Println(s.Scope)
	}
	// Output:
	// it would wait 0s
	// @team-a
	// api.example.com
	// api.example.com/gpt-4o-mini
	// api.example.com/shared gpt-4o*
}

// A provider asked for an hour of rest. Forecast says what a call would wait, a call that
// fails fast does not wait, Snapshot says who asked for it, and Resume ends it.
func ExampleTransport_Resume() {
	rt, err := transport.New(transport.Options{Base: &resting{}, TPM: 200_000, Attempts: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	ask := func(ctx context.Context) *http.Request {
		req, _ := http.NewRequestWithContext(ctx, "POST", "https://api.example.com/v1/chat/completions", strings.NewReader(question))
		req.Header.Set("Content-Type", "application/json")
		return req
	}
	send := func(ctx context.Context) error {
		resp, err := rt.RoundTrip(ask(ctx))
		if err == nil {
			fmt.Println(resp.Status)
			resp.Body.Close()
		}
		return err
	}
	ctx := context.Background()
	send(ctx)

	f := rt.Forecast(ask(ctx))
	fmt.Println("a call would wait", f.Wait.Round(time.Minute), "for", f.By)

	err = send(transport.FailFast(ctx))
	var refused *limit.Error
	if errors.As(err, &refused) {
		fmt.Println("not sent:", errors.Is(err, limit.ErrLimited), refused.Wait.Round(time.Minute))
	}
	for _, s := range rt.Snapshot().Scopes {
		if !s.PausedUntil.IsZero() {
			fmt.Println(s.Scope, "is paused for", time.Until(s.PausedUntil).Round(time.Minute), "by", s.PausedBy+":", s.PausedWhy)
		}
	}

	rt.Resume()
	send(ctx)
	// Output:
	// 503 Service Unavailable
	// a call would wait 1h0m0s for api.example.com
	// not sent: true 1h0m0s
	// api.example.com/gpt-4o is paused for 1h0m0s by api.example.com: it named a wait of 1h0m0s
	// 200 OK
}

// resting is a provider that asks for an hour of rest, and does not mean it.
type resting struct{ asked bool }

func (p *resting) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := answering{}.RoundTrip(r)
	resp.Status = "200 OK"
	if !p.asked {
		p.asked = true
		resp.StatusCode, resp.Status = 503, "503 Service Unavailable"
		resp.Header.Set("Retry-After", "3600")
	}
	return resp, err
}

// answering is a provider in memory.
type answering struct{}

func (answering) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Body.Close()
	body := `{"usage":{"prompt_tokens":8,"completion_tokens":12,"total_tokens":20}}`
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

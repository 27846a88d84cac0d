package providertest

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const streamBody = `{"model":"m","prompt":"x","max_tokens":50,"stream":true}`

func TestScriptedAnswers(t *testing.T) {
	for _, c := range []struct {
		name    string
		step    Step
		path    string
		body    string
		status  int // 0: RoundTrip fails
		outcome Outcome
		charged Tokens
		check   func(r reply) bool
	}{
		{"refuse", Step{Kind: Refuse, RetryAfter: 7 * time.Second}, "", "", 429, Refused, Tokens{}, func(r reply) bool {
			return r.header.Get("Retry-After") == "7" && r.header.Get("X-Ratelimit-Limit-Tokens") == "6000" && strings.Contains(r.body, "try again in 7s")
		}},
		{"refuse without a wait", Step{Kind: Refuse}, "", "", 429, Refused, Tokens{}, func(r reply) bool { return r.header.Get("Retry-After") == "" }},
		{"bare", Step{Kind: RefuseBare}, "", "", 429, Refused, Tokens{}, func(r reply) bool {
			return r.body == "" && r.header.Get("X-Ratelimit-Limit-Tokens") == "" && r.header.Get("Retry-After") == ""
		}},
		{"quota", Step{Kind: InsufficientQuota}, "", "", 429, Refused, Tokens{}, func(r reply) bool { return strings.Contains(r.body, `"code":"insufficient_quota"`) }},
		{"reject", Step{Kind: Reject}, "", "", 400, Rejected, Tokens{}, func(r reply) bool { return strings.Contains(r.body, "invalid_request_error") }},
		{"reject as told", Step{Kind: Reject, Status: 402, Body: "pay"}, "", "", 402, Rejected, Tokens{}, func(r reply) bool { return r.body == "pay" }},
		{"header", Step{Kind: Reject, Status: 429, Header: http.Header{"X-Should-Retry": {"false"}, "Date": nil}}, "", "", 429, Refused, Tokens{}, func(r reply) bool {
			return r.header.Get("X-Should-Retry") == "false" && r.header.Get("Date") == ""
		}},
		{"500", Step{Kind: ServerError}, "", "", 500, Failed, Tokens{1, 50}, func(r reply) bool {
			return strings.Contains(r.body, "server_error") && r.header.Get("X-Ratelimit-Limit-Tokens") == ""
		}},
		{"503", Step{Kind: Unavailable, RetryAfter: 1500 * time.Millisecond}, "", "", 503, Failed, Tokens{1, 50}, func(r reply) bool { return r.header.Get("Retry-After") == "2" }},
		{"529", Step{Kind: Overloaded}, "/v1/messages", `{"model":"m","max_tokens":50,"messages":[{"role":"user","content":[]}]}`, 529, Failed, Tokens{0, 50}, func(r reply) bool {
			return strings.Contains(r.body, `"overloaded_error"`)
		}},
		{"reset before", Step{Kind: ResetBefore}, "", "", 0, Cut, Tokens{}, nil},
		{"reset after", Step{Kind: ResetAfter}, "", "", 0, Failed, Tokens{1, 50}, nil},
		{"truncate", Step{Kind: Truncate}, "", "", 200, Failed, Tokens{1, 50}, func(r reply) bool { return r.err == io.ErrUnexpectedEOF && len(r.body) > 10 }},
		{"truncate stream", Step{Kind: Truncate, Chunks: 2}, "", streamBody, 200, Failed, Tokens{0, 50}, func(r reply) bool {
			return r.err == io.ErrUnexpectedEOF && strings.Count(r.body, token) == 2
		}},
		{"truncate clean", Step{Kind: TruncateClean, Chunks: 2}, "", streamBody, 200, Failed, Tokens{0, 50}, func(r reply) bool {
			return r.err == nil && strings.Count(r.body, token) == 2 && !strings.Contains(r.body, "[DONE]")
		}},
		{"stream error", Step{Kind: StreamError, Chunks: 1}, "", streamBody, 200, Failed, Tokens{0, 50}, func(r reply) bool {
			return r.err == nil && strings.Contains(r.body, `{"error":{`) && !strings.Contains(r.body, "[DONE]")
		}},
		{"stream error, responses", Step{Kind: StreamError, Chunks: 1}, "/v1/responses", `{"model":"m","input":"x","max_output_tokens":50,"stream":true}`, 200, Failed, Tokens{0, 50}, func(r reply) bool {
			return strings.Contains(r.body, "event: response.failed\n")
		}},
		{"stream error, messages", Step{Kind: StreamError, Chunks: 1}, "/v1/messages", `{"model":"m","max_tokens":50,"stream":true,"messages":[{}]}`, 200, Failed, Tokens{0, 50}, func(r reply) bool {
			return strings.Contains(r.body, "event: error\n")
		}},
		{"stream error, no stream", Step{Kind: StreamError}, "", "", 500, Failed, Tokens{1, 50}, func(r reply) bool { return true }},
		{"gzip", Step{Kind: Gzip}, "", "", 200, Served, Tokens{1, 16}, func(r reply) bool { return unzip(r.body, `"usage"`) }},
		{"gzip stream", Step{Kind: Gzip}, "", streamBody, 200, Served, Tokens{0, 16}, func(r reply) bool { return unzip(r.body, "data: [DONE]") }},
		{"serve", Step{}, "", "", 200, Served, Tokens{1, 16}, func(r reply) bool { return true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustNew(t, Options{Limits: Limits{RPM: 60, TPM: 6000}, Charge: Settle, Count: countIDs})
			p.Script(c.step)
			path, body := "/v1/completions", ids(1, 50)
			if c.path != "" {
				path = c.path
			}
			if c.body != "" {
				body = c.body
			}
			r := send(t.Context(), p.RoundTripper(), path, body, "X-Attempt-Id", "a1")
			if r.status != c.status {
				t.Fatalf("%+v, want status %d", r, c.status)
			}
			if c.status == 0 && !errors.Is(r.err, syscall.ECONNRESET) {
				t.Errorf("error %v", r.err)
			}
			if c.check != nil && !c.check(r) {
				t.Errorf("%+v", r)
			}
			e := p.Ledger()[0]
			if e.Outcome != c.outcome || e.Settled != c.charged || e.Status != c.status || e.Attempt != "a1" {
				t.Errorf("%+v", e)
			}
			if s := p.Stats(); s.InFlight != 0 || s.Requests != 1 || s.Completed+s.Refused+s.Rejected+s.Failed != 1 {
				t.Errorf("%+v", s)
			}
			if p.Scripted() != 0 {
				t.Error("the step is still there")
			}
			// The next call is an ordinary one.
			if r := send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1, 50)); r.status != 200 || r.err != nil {
				t.Errorf("after it: %+v", r)
			}
		})
	}
}

func unzip(body, want string) bool {
	z, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		return false
	}
	b, err := io.ReadAll(z)
	return err == nil && strings.Contains(string(b), want)
}

func TestHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := mustNew(t, Options{Limits: Limits{TPM: 6000}, Charge: Settle})
		p.Script(Step{Kind: Hang}, Step{Kind: Hang}, Step{Kind: Serve, Delay: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r := send(ctx, p.RoundTripper(), "/v1/completions", ids(1, 50))
		if !errors.Is(r.err, context.DeadlineExceeded) || time.Since(p.Start()) != 10*time.Second {
			t.Errorf("%+v after %v", r, time.Since(p.Start()))
		}
		synctest.Wait()
		if e := p.Ledger()[0]; e.Outcome != Failed || e.Settled.Output != 50 || e.End != 10*time.Second {
			t.Errorf("%+v", e)
		}
		time.AfterFunc(time.Hour, p.Close)
		if r := send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1, 50)); !errors.Is(r.err, syscall.ECONNRESET) {
			t.Errorf("Close: %+v", r)
		}
	})
}

// A step for a call that was let in waits for one.
func TestStepSurvivesRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := mustNew(t, Options{Limits: Limits{RPM: 1}, StartSpent: 100})
		p.Script(Step{Kind: Unavailable}, Step{Kind: Reject})
		codes := []int{}
		for range 3 {
			codes = append(codes, send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1, 1)).status)
			time.Sleep(time.Minute)
		}
		if codes[0] != 429 || codes[1] != 503 || codes[2] != 400 {
			t.Errorf("%v", codes)
		}
	})
}

// The same cuts over a real connection.
func TestCutsOverSockets(t *testing.T) {
	p := mustNew(t, Options{})
	srv := httptest.NewServer(p)
	defer srv.Close()
	p.Script(Step{Kind: ResetBefore}, Step{Kind: ResetAfter}, Step{Kind: Truncate}, Step{Kind: Truncate, Chunks: 1}, Step{Kind: Gzip})
	for i, body := range []string{ids(1, 1), ids(1, 1), ids(1, 1), streamBody, ids(1, 1)} {
		res, err := http.Post(srv.URL+"/v1/completions", "application/json", strings.NewReader(body))
		if i < 2 {
			if err == nil {
				t.Errorf("step %d: status %d, want a cut", i, res.StatusCode)
				res.Body.Close()
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(res.Body)
		res.Body.Close()
		if i < 4 && !errors.Is(err, io.ErrUnexpectedEOF) || i == 4 && (err != nil || !res.Uncompressed) {
			t.Errorf("step %d: %v", i, err)
		}
	}
	if s := p.Stats(); s.Requests != 5 || s.Failed != 4 || s.Completed != 1 {
		t.Errorf("%+v", s)
	}
}

package retry

import (
	"testing"
	"testing/synctest"
)

// Report: langchain-ai/langchainjs#1929, openai/openai-python#3507
// Report: openai/codex#6340, mindsdb/anton#284
func TestAnExhaustedAccountIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fields := range [][]string{
			nil,
			{"Retry-After", "1"},
			{"X-Should-Retry", "true"},
		} {
			s := play(answer(429, noCredit, fields...))
			tr := new(Tally)
			r := send(t, mustNew(t, s, Options{Attempts: 5}), post(WithTally(t.Context(), tr), t, chat))
			if s.calls() != 1 || r.status != 429 || r.body != noCredit || r.elapsed != 0 || tr.Reason() != Refused {
				t.Errorf("%v: %d calls, %+v, %v", fields, s.calls(), r, tr.Reason())
			}
			s.allClosed(t)
		}
	})
}

// Report: langchain-ai/langchainjs#1929, openai/openai-python#3507
// Report: openai/codex#6340, mindsdb/anton#284
func TestAnExhaustedAccountIsKnownInGzip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, coding := range [][]string{{"gzip"}, {"identity", "gzip"}, {"gzip", "gzip"}} { // lines of the field
			packed, fields := pack(noCredit), []string(nil)
			if coding[0] == "gzip" && len(coding) > 1 {
				packed = pack(packed)
			}
			for _, line := range coding {
				fields = append(fields, "Content-Encoding", line)
			}
			s := play(answer(429, packed, fields...))
			r := send(t, mustNew(t, s, Options{}), post(t.Context(), t, chat))
			if s.calls() != 1 || r.body != packed {
				t.Errorf("%q: %d calls, %+v", coding, s.calls(), r)
			}
		}
	})
}

// Report: jlewi/foyle#82, snyk/parlay#98, IBM/go-sdk-core#142
func TestTheLastAnswerIsTheProviders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, status := range []int{429, 500, 503, 529, 408, 409} {
			s := play(answer(status, "first"), answer(status, "middle"), answer(status, tooFast, "X-Request-Id", "r1", "X-Ratelimit-Remaining-Tokens", "0"))
			tr := new(Tally)
			r := send(t, mustNew(t, s, Options{}), post(WithTally(t.Context(), tr), t, chat))
			if r.err != nil || r.status != status || r.body != tooFast || r.header.Get("X-Request-Id") != "r1" || s.calls() != 3 {
				t.Errorf("%d: %+v after %d calls", status, r, s.calls())
			}
			if tr.Attempts() != 3 || tr.Reason() != Exhausted || tr.Waited() != r.elapsed {
				t.Errorf("%d: trace %d attempts, %v, waited %v of %v", status, tr.Attempts(), tr.Reason(), tr.Waited(), r.elapsed)
			}
			s.allClosed(t)
		}
	})
}

// Report: livekit/agents#5335, mpfaffenberger/code_puppy#317
// Report: pydantic/pydantic-ai#4318, frankbria/auto-author#188
// Report: AstrBotDevs/AstrBot#9669, trpc-group/trpc-agent-go#2114
// Report: basecamp/basecamp-sdk#461
func TestAttemptsMeanAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ option, call, want int }{
			{1, 0, 1}, {2, 0, 2}, {0, 0, 3}, {5, 0, 5},
			{5, 1, 1}, {1, 4, 4}, {0, 2, 2}, {2, -3, 2},
		} {
			s := play(answer(503, ""))
			tr := new(Tally)
			done := 0
			rt := mustNew(t, s, Options{Attempts: c.option, Done: func(e Event) { done = e.Attempt }})
			ctx := WithTally(WithAttempts(t.Context(), c.call), tr)
			r := send(t, rt, post(ctx, t, chat))
			if s.calls() != c.want || tr.Attempts() != c.want || done != c.want || r.status != 503 {
				t.Errorf("%+v: %d on the wire, %d traced, %d done, %+v", c, s.calls(), tr.Attempts(), done, r)
			}
		}
	})
}

// Report: aws/aws-sdk-go#1826
func TestEveryStatus(t *testing.T) {
	again := map[int]bool{408: true, 409: true, 429: true, 498: true}
	for s := 500; s < 600; s++ {
		again[s] = s != 501 && s != 505
	}
	synctest.Test(t, func(t *testing.T) {
		for status := 200; status < 1000; status++ {
			s := play(answer(status, "x"), answer(200, ""))
			send(t, mustNew(t, s, Options{}), post(t.Context(), t, chat))
			if (s.calls() == 2) != again[status] {
				t.Errorf("%d: %d calls", status, s.calls())
			}
		}
	})
}

func TestShouldRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			status int
			values []string
			calls  int
		}{
			{503, []string{"false"}, 1}, {429, []string{"False"}, 1}, {500, []string{" false "}, 1},
			{400, []string{"true"}, 2}, {404, []string{"TRUE"}, 2}, {501, []string{"true"}, 2},
			{400, []string{"true", "false"}, 1}, {503, []string{"true", "false"}, 1},
			{503, []string{"maybe"}, 2}, {400, []string{"maybe"}, 1}, {400, []string{"1"}, 1},
			{200, []string{"true"}, 1}, {302, []string{"true"}, 1},
		} {
			fields := []string{}
			for _, v := range c.values {
				fields = append(fields, "X-Should-Retry", v)
			}
			s := play(answer(c.status, "x", fields...), answer(200, ""))
			send(t, mustNew(t, s, Options{}), post(t.Context(), t, chat))
			if s.calls() != c.calls {
				t.Errorf("%d %q: %d calls", c.status, c.values, s.calls())
			}
		}
		// True does not help what cannot be helped.
		s := play(answer(400, `{"error":{"message":"too long","code":"context_length_exceeded"}}`, "X-Should-Retry", "true"))
		send(t, mustNew(t, s, Options{}), post(t.Context(), t, chat))
		if s.calls() != 1 {
			t.Errorf("a prompt that is too long was sent %d times", s.calls())
		}
	})
}

func TestReasonString(t *testing.T) {
	seen := map[string]bool{}
	for r := Answered; r <= Ended; r++ {
		s := r.String()
		if s == "" || seen[s] {
			t.Errorf("%d: %q", r, s)
		}
		seen[s] = true
	}
	if Reason(200).String() != "unknown reason" {
		t.Error(Reason(200))
	}
}

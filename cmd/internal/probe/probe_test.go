package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tripmeter/tripmeter/cmd/internal/boxtest"
	"github.com/tripmeter/tripmeter/providertest"
)

func env(name string) string {
	return map[string]string{"OPENAI_API_KEY": "sk-canary", "ANTHROPIC_API_KEY": "sk-canary"}[name]
}

func run(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Run(args, env, strings.NewReader(stdin), &out, &err)
	if strings.Contains(out.String()+err.String(), "canary") {
		t.Error("the key is printed")
	}
	return code, out.String(), err.String()
}

// The report agrees with the provider, for every provider that was recorded; what
// the headers do not show is said to be unknown.
func TestSaysWhatTheProviderDoes(t *testing.T) {
	for _, c := range []struct {
		preset, path, provider string
		limits                 providertest.Limits
		want, not              []string
	}{
		{"openai-chat", "", "openai", providertest.Limits{RPM: 60, TPM: 3000},
			[]string{"Provider     openai", "limit 60 each 1m0s", "a bucket that refills evenly", "a quarter of the characters of the prompt, nothing of the output", "RPM: 60, // a minute", "TPM: 3_000, // a minute"}, nil},
		{"anthropic", "/v1/messages", "anthropic", providertest.Limits{RPM: 50, InputTPM: 30_000, OutputTPM: 8000},
			[]string{"InputTPM: 30_000", "OutputTPM: 8_000", "RPM: 50", "Charge       seen: not known"}, nil},
		{"azure", "", "azure", providertest.Limits{RPM: 60, TPM: 3000}, []string{"RPM: 60", "a quarter of the characters of the prompt"}, nil},
		{"azure-2025", "", "azure", providertest.Limits{RPM: 60, TPM: 3000}, []string{"RPM: 60", "the headers have no reset"}, []string{"refills evenly"}},
		{"mistral", "", "mistral", providertest.Limits{RPM: 60, TPM: 500_000}, []string{"limit 500_000 each 1m0s (stated)", "the headers have no reset"}, nil},
		{"xai", "", "xai", providertest.Limits{RPM: 600, TPM: 4_000_000}, []string{"window not known", "taken for a minute"}, []string{"refills evenly"}},
		{"groq", "/openai/v1/chat/completions", "groq", providertest.Limits{RPD: 14_400, TPM: 30_000}, []string{"RPD: 14_400, // a day", "TPM: 30_000"}, nil},
	} {
		t.Run(c.preset, func(t *testing.T) {
			preset, _ := providertest.PresetNamed(c.preset)
			o := preset.Options(c.limits)
			o.Key = "sk-canary"
			p, url := boxtest.Start(t, o)
			code, out, stderr := run(t, "", "-provider", c.provider, url+c.path)
			if code != ExitDone {
				t.Fatalf("code %d\n%s%s", code, out, stderr)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			for _, not := range c.not {
				if strings.Contains(out, not) {
					t.Errorf("%q in\n%s", not, out)
				}
			}
			if n := p.Stats().Completed; n != 3 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

const openAI = `HTTP/2 200
date: Wed, 19 Aug 2026 14:36:58 GMT
content-type: application/json
openai-organization: org-canaryorg
x-request-id: req_abcdef0123456789
x-ratelimit-limit-requests: 400
x-ratelimit-limit-tokens: 200000
x-ratelimit-remaining-requests: 399
x-ratelimit-remaining-tokens: 199993
x-ratelimit-reset-requests: 150ms
x-ratelimit-reset-tokens: 2ms

{"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12},"choices":[{"message":{"content":"canaryprompt"}}]}
`

// Headers as curl -i prints them, alone, several, with redirects before them,
// with a body or without.
func TestRecordedHeaders(t *testing.T) {
	for name, text := range map[string]string{
		"as curl prints it": strings.ReplaceAll(openAI, "\n", "\r\n"),
		"a header alone":    strings.SplitN(openAI, "\n\n", 2)[0],
		"no status line":    strings.SplitN(openAI, "\n", 2)[1],
		"two of them":       openAI + openAI,
		"after a 100":       "HTTP/1.1 100 Continue\n\n" + openAI,
	} {
		code, out, stderr := run(t, text, "-provider", "openai", "-")
		if code != ExitDone || !strings.Contains(out, "RPM: 400, // a minute, inferred") || !strings.Contains(out, "TPM: 200_000") {
			t.Errorf("%s: code %d\n%s%s", name, code, out, stderr)
		}
	}
	for name, text := range map[string]string{"nothing": "", "no header": "dear diary, it rains\nand rains\n"} {
		if code, out, stderr := run(t, text, "-"); code != ExitUsage || stderr == "" {
			t.Errorf("%s: code %d\n%s%s", name, code, out, stderr)
		}
	}
}

// A recording has the rate fields and nothing that names the caller.
func TestRecordNamesNobody(t *testing.T) {
	name := filepath.Join(t.TempDir(), "record.json")
	text := strings.Replace(openAI, "x-request-id", "x-ratelimit-policy: q=5;pk=:YWJjZGVm:\nx-ratelimit-account: org-canary01\nx-ratelimit-token: 9f86d081884c7d659a2feaa0c55ad015\nx-request-id", 1)
	if code, _, stderr := run(t, text, "-provider", "openai", "-record", name, "-"); code != ExitDone {
		t.Fatal(code, stderr)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out []recorded
	if err := json.Unmarshal(b, &out); err != nil || len(out) != 1 {
		t.Fatal(err, string(b))
	}
	r := out[0]
	if r.Status != 200 || r.Provider != "openai" || r.ObservedAt != "2026-08-19T14:36:58Z" || r.Usage["prompt"] != 9 || r.Headers["X-Ratelimit-Reset-Requests"] != "150ms" {
		t.Errorf("%+v", r)
	}
	for _, secret := range []string{"canary", "req_", "pk=", "9f86d0", "organization"} {
		if strings.Contains(string(b), secret) {
			t.Errorf("%q is in the recording:\n%s", secret, b)
		}
	}
	if _, err := Providers(b); err != nil {
		t.Errorf("a recording is no recording for the page: %v", err)
	}
}

// What cannot work says why, and nothing is sent to a strange place.
func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"a", "b"}, {"ftp://h"}, {"http://u:p@h"}, {"-calls", "0", "http://h"}, {"-provider", "nobody", "http://h"}, {"-x"}} {
		if code, _, stderr := run(t, "", args...); code != ExitUsage || stderr == "" {
			t.Errorf("%v: code %d, %q", args, code, stderr)
		}
	}
	if code, _, stderr := run(t, "", "http://127.0.0.1:1"); code != ExitFailed || !strings.Contains(stderr, "refused") {
		t.Errorf("code %d, %q", code, stderr)
	}
	p, url := boxtest.Start(t, providertest.Options{Key: "another"})
	if code, _, stderr := run(t, "", url); code != ExitFailed || !strings.Contains(stderr, "check the key") || p.Stats().Requests != 1 {
		t.Errorf("code %d, %q, %d calls", code, stderr, p.Stats().Requests)
	}
}

// The page of providers is the output of Providers.
func TestPageIsUpToDate(t *testing.T) {
	recordings, err := os.ReadFile("../../../headers/testdata/headers.json")
	if err != nil {
		t.Fatal(err)
	}
	want, err := Providers(recordings)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile("../../../docs/providers.md"); !bytes.Equal(got, want) {
		t.Error("docs/providers.md is out of date: go generate ./internal/probe in cmd")
	}
}

func FuzzRecorded(f *testing.F) {
	f.Add(openAI)
	f.Add("HTTP/1.1 429 Too Many\nretry-after: 7\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		answers, err := readRecorded(strings.NewReader(text))
		if err != nil {
			return
		}
		p, found, _ := profileFor("", "-")
		study(answers, p, found).print(func(format string, args ...any) { _ = fmt.Sprintf(format, args...) })
		for _, a := range answers {
			for name := range anonymous(a.header) {
				if http.CanonicalHeaderKey(name) == "Authorization" {
					t.Fatal("a key would be recorded")
				}
			}
		}
	})
}

package probe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/profile"
)

// Exit codes.
const (
	ExitDone   = 0
	ExitFailed = 1 // the provider cannot be reached, or answered no call
	ExitUsage  = 2
)

const usageText = `tripmeter probe asks a provider a few small questions and says what its answers
show of the limits, and what tripmeter would do with them.

  tripmeter probe https://api.openai.com
  curl -si https://api.openai.com/v1/models -H "Authorization: Bearer $KEY" | tripmeter probe -provider openai -

The key is OPENAI_API_KEY or TRIPMETER_API_KEY; for Anthropic, ANTHROPIC_API_KEY
or TRIPMETER_API_KEY. - reads recorded headers and sends nothing.

Flags:
`

// Run is the command: it returns the exit code.
func Run(args []string, env func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("tripmeter probe", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() { fmt.Fprint(stderr, usageText); f.PrintDefaults() }
	provider := f.String("provider", "", "profile: "+strings.Join(profile.Names(), ", ")+"; unset: by host")
	model := f.String("model", "", "model to ask; unset: a small one of the provider's")
	calls := f.Int("calls", 3, "how many calls, 1 to 20")
	record := f.String("record", "", "write the rate fields, statuses, usage and times of the calls to this file, without key, identifiers and prompts")
	timeout := f.Duration("timeout", time.Minute, "longest time for a call")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return ExitDone
	} else if err != nil {
		return ExitUsage
	}
	fail := func(code int, err error) int { fmt.Fprintln(stderr, "probe:", err); return code }
	if f.NArg() != 1 || *calls < 1 || *calls > 20 || *timeout <= 0 {
		return fail(ExitUsage, errors.New("name one URL, such as https://api.openai.com, or - for headers on standard input; -calls is 1 to 20"))
	}
	target := f.Arg(0)
	p, found, err := profileFor(*provider, target)
	if err != nil {
		return fail(ExitUsage, err)
	}
	var answers []answer
	if target == "-" {
		if answers, err = readRecorded(stdin); err != nil {
			return fail(ExitUsage, err)
		}
	} else {
		q := question{url: target, model: *model, profile: p, key: key(p.Name, env), timeout: *timeout}
		if err := q.complete(); err != nil {
			return fail(ExitUsage, err)
		}
		for n := range *calls {
			a, err := q.ask(n)
			if err != nil {
				return fail(ExitFailed, err)
			}
			answers = append(answers, a)
			if a.status == 401 || a.status == 403 || a.status == 404 {
				break // the others would say the same
			}
		}
	}
	study(answers, p, found).print(func(format string, args ...any) { fmt.Fprintf(stdout, strings.TrimRight(format, " ")+"\n", args...) })
	if *record != "" {
		if err := write(*record, answers, p.Name); err != nil {
			return fail(ExitFailed, err)
		}
	}
	for _, a := range answers {
		if a.status/100 == 2 || target == "-" {
			return ExitDone
		}
	}
	return fail(ExitFailed, fmt.Errorf("no call was answered: status %d; %s", answers[0].status, hint(answers[0].status)))
}

func hint(status int) string {
	switch status {
	case 401, 403:
		return "check the key in the environment"
	case 404:
		return "check the URL and -model"
	case 429:
		return "the limit is used up, or the account has no credit"
	}
	return "see the provider's own message with curl"
}

func profileFor(name, target string) (profile.Profile, string, error) {
	if name != "" {
		p, ok := profile.ByName(name)
		if !ok {
			return p, "", fmt.Errorf("-provider %q is not known; there are %s", name, strings.Join(profile.Names(), ", "))
		}
		return p, "by -provider", nil
	}
	if target == "-" {
		return profile.Unknown(), "headers alone name no provider; see -provider", nil
	}
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return profile.Profile{}, "", errors.New("the URL must be like https://api.openai.com, without a user")
	}
	p := profile.ForHost(u.Host)
	if p.Name == "unknown" {
		return p, "no profile has this host", nil
	}
	return p, "by host", nil
}

func key(provider string, env func(string) string) string {
	if provider == "anthropic" {
		return cmp.Or(env("ANTHROPIC_API_KEY"), env("TRIPMETER_API_KEY"))
	}
	return cmp.Or(env("OPENAI_API_KEY"), env("TRIPMETER_API_KEY"))
}

// question is what is asked.
type question struct {
	url, model, key string
	profile         profile.Profile
	timeout         time.Duration
}

// small are models that a provider has for little money.
var small = map[string]string{
	"anthropic": "claude-haiku-4-5", "mistral": "mistral-small-latest", "groq": "llama-3.1-8b-instant", "xai": "grok-4-1-fast-non-reasoning",
	"gemini-openai": "gemini-2.5-flash-lite", "deepseek": "deepseek-chat", "cerebras": "llama3.1-8b",
}

// complete makes an endpoint of a base URL, and names a model.
func (q *question) complete() error {
	u, err := url.Parse(q.url)
	if err != nil || u.Fragment != "" {
		return errors.New("the URL cannot be used")
	}
	switch path := strings.TrimSuffix(u.Path, "/"); {
	case path == "" && q.profile.Name == "anthropic":
		u.Path = "/v1/messages"
	case path == "" && q.profile.Name == "groq":
		u.Path = "/openai/v1/chat/completions"
	case path == "":
		u.Path = "/v1/chat/completions"
	case strings.HasSuffix(path, "/v1"):
		u.Path = path + "/chat/completions"
	}
	q.url = u.String()
	q.model = cmp.Or(q.model, small[q.profile.Name], "gpt-4o-mini")
	return nil
}

// outputCap of a call, in tokens. It is larger than the answers, so that a charge
// by the cap differs from one by the output.
const outputCap = 256

// ask sends one call. Prompts differ in length, so that a charge for the prompt
// differs from one for the call.
func (q *question) ask(n int) (answer, error) {
	text := strings.Repeat("All work and no play. ", 10*(n+1)) + "Answer with the word ok."
	body := map[string]any{"model": q.model, "messages": []map[string]any{{"role": "user", "content": text}}}
	switch {
	case strings.HasSuffix(strings.SplitN(q.url, "?", 2)[0], "/responses"):
		body = map[string]any{"model": q.model, "input": text, "max_output_tokens": outputCap}
	case strings.Contains(q.model, "gpt-5") || strings.HasPrefix(q.model, "o1") || strings.HasPrefix(q.model, "o3") || strings.HasPrefix(q.model, "o4"):
		body["max_completion_tokens"] = outputCap
	default:
		body["max_tokens"] = outputCap
	}
	b, err := json.Marshal(body)
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), q.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, q.url, bytes.NewReader(b))
	if err != nil {
		return answer{}, errors.New("the URL cannot be used")
	}
	r.Header.Set("Content-Type", "application/json")
	if q.key != "" {
		switch q.profile.Name {
		case "anthropic":
			r.Header.Set("X-Api-Key", q.key)
		case "azure":
			r.Header.Set("Api-Key", q.key)
		default:
			r.Header.Set("Authorization", "Bearer "+q.key)
		}
	}
	if q.profile.Name == "anthropic" {
		r.Header.Set("Anthropic-Version", "2023-06-01")
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a := answer{sent: time.Now(), asked: estimate.Inspect(b, estimate.Options{Path: r.URL.Path})}
	resp, err := client.Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // its own words repeat the URL, whose query may hold a key
		}
		return a, fmt.Errorf("the provider cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	a.took, a.status, a.header = time.Since(a.sent), resp.StatusCode, resp.Header
	got, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return a, fmt.Errorf("the answer broke off: %w", err)
	}
	a.read(got)
	return a, nil
}

// recorded is one answer in a file: the format of headers/testdata, with the
// usage and times beside it.
type recorded struct {
	ID         string            `json:"id"`
	Provider   string            `json:"provider"`
	Kind       string            `json:"kind"`
	Source     string            `json:"source"`
	Status     int               `json:"status"`
	Headers    map[string]string `json:"headers"`
	ObservedAt string            `json:"observed_at,omitempty"`
	TookMS     int64             `json:"took_ms,omitempty"`
	Usage      map[string]int64  `json:"usage,omitempty"`
	Request    map[string]int64  `json:"request,omitempty"`
}

func write(name string, answers []answer, provider string) error {
	var out []recorded
	for i, a := range answers {
		r := recorded{
			ID: fmt.Sprintf("%s-probe-%d", provider, i+1), Provider: provider, Kind: "observed", Source: "tripmeter probe -record",
			Status: a.status, Headers: anonymous(a.header), TookMS: a.took.Milliseconds(),
		}
		if !a.sent.IsZero() {
			r.ObservedAt = a.sent.UTC().Format(time.RFC3339)
		}
		if a.used {
			r.Usage = map[string]int64{}
			for name, c := range map[string]int64{"prompt": a.counts.Input.N, "completion": a.counts.Output.N, "total": a.counts.Total.N, "cached": a.counts.CachedInput.N} {
				r.Usage[name] = c
			}
		}
		if a.asked.Understood {
			r.Request = map[string]int64{"chars": a.asked.Chars, "messages": a.asked.Messages, "output_cap": a.asked.OutputCap}
		}
		out = append(out, r)
	}
	b, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(b, '\n'), 0o644)
}

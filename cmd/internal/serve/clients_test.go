//go:build !fuzzing

// script/fuzz leaves this file out: the SDK takes minutes to compile with the
// instructions that a fuzzer needs.

package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tripmeter/tripmeter/cmd/internal/boxtest"
	"github.com/tripmeter/tripmeter/providertest"
)

// tally is what a client saw.
type tally struct {
	Answered, Streamed, Text, Refused int
	Failed                            []string
}

// node installs the official SDKs for Node, once for each package-lock.json, in
// the user's cache, and returns the folder. Without Node the test fails: a
// skipped test looks like one that passed.
func node(t *testing.T) (dir string) {
	t.Helper()
	missing := func(what string, err error) {
		t.Helper()
		t.Fatalf("%s: %v. Install Node.js 20 or later and npm: the official SDKs are tested with them.", what, err)
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			missing(program+" is not installed", err)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		missing("there is no cache folder", err)
	}
	lock, err := os.ReadFile("testdata/node/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(lock)
	dir = filepath.Join(cache, "tripmeter-sdks-"+hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		missing("the cache folder", err)
	}
	for _, name := range []string{"package.json", "package-lock.json", "client.mjs"} {
		b, err := os.ReadFile(filepath.Join("testdata/node", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules/.package-lock.json")); err == nil {
		return dir
	}
	cmd := exec.Command("npm", "ci", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		missing("npm ci", fmt.Errorf("%w: %s", err, out))
	}
	return dir
}

func runNode(t *testing.T, dir, api, url string, requests, concurrency int) (s tally) {
	t.Helper()
	cmd := exec.Command("node", "client.mjs", api, url, fmt.Sprint(requests), fmt.Sprint(concurrency))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KEY="+secrets1("TOKEN_A"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v: %s", err, stderr.String())
		return s
	}
	if err := json.Unmarshal(out, &s); err != nil {
		t.Errorf("%v in %s", err, out)
	}
	return s
}

// Four processes of the official SDK ask for three times what the provider
// allows. They see no refusal, and the quota is used.
func TestFourWorkersOfTheOfficialSDK(t *testing.T) {
	dir := node(t)
	const rpm, workers, each = 600, 4, 60
	p, up := boxtest.Start(t, providertest.Options{
		Limits: providertest.Limits{RPM: rpm}, Capacity: 10 * time.Second, Output: providertest.Constant(10), Key: secrets1("PROVIDER_KEY"),
	})
	_, url, _ := open(t, plain+fmt.Sprintf("key_env = \"PROVIDER_KEY\"\nrpm = %d\nburst = \"1s\"\n\n[[tenant]]\nname = \"a\"\ntoken_env = \"TOKEN_A\"\n", rpm), up)
	var all sync.WaitGroup
	results := make([]tally, workers)
	for i := range workers {
		all.Go(func() { results[i] = runNode(t, dir, "openai", url, each, 30) })
	}
	all.Wait()
	for i, s := range results {
		if s.Answered != each/2 || s.Streamed != each/2 || s.Refused != 0 || len(s.Failed) != 0 || s.Text != each*40 {
			t.Errorf("worker %d saw %+v", i, s)
		}
	}
	// The share of the quota is measured in one fixed window: from the 30th call, when
	// the burst is spent and Node is warm, to the 10th before the last. All that time
	// more calls wait than the limit lets go. A machine that stalls for less than the
	// gateway's burst of a second loses nothing, since what is late goes at once.
	var came []time.Duration
	for _, e := range p.Ledger() {
		came = append(came, e.Since)
	}
	slices.Sort(came)
	first, last := 30, len(came)-10
	if last <= first {
		t.Fatalf("only %d calls came", len(came))
	}
	used := float64(last-first) * 60 / (rpm * (came[last] - came[first]).Seconds())
	t.Logf("%d calls in %v, %d refused by the provider, %.3f of the quota used", len(came), came[last]-came[first], p.Stats().Refused, used)
	if p.Stats().Refused != 0 || used < 0.98 {
		t.Errorf("%d refused by the provider, %.3f of the quota used", p.Stats().Refused, used)
	}
}

// Anthropic's SDK for Node, streams and whole answers.
func TestAnthropicSDK(t *testing.T) {
	dir := node(t)
	_, up := boxtest.Start(t, providertest.Options{Output: providertest.Constant(10), Key: secrets1("PROVIDER_KEY")})
	_, url, _ := open(t, plain+"key_env = \"PROVIDER_KEY\"\nprovider = \"anthropic\"\nrpm = 60000\n\n[[tenant]]\nname = \"a\"\ntoken_env = \"TOKEN_A\"\n", up)
	if s := runNode(t, dir, "anthropic", url, 10, 4); s.Answered != 5 || s.Streamed != 5 || s.Refused != 0 || len(s.Failed) != 0 || s.Text != 10*40 {
		t.Errorf("it saw %+v", s)
	}
}

// An early refusal is not repeated by the SDK: the gateway says that it is no
// use.
func TestSDKRetriesAreSwitchedOff(t *testing.T) {
	p, up := boxtest.Start(t, providertest.Options{})
	g, url, _ := open(t, plain+"rpm = 1\nmax_wait = \"1s\"\n", up)
	client := openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("k"), option.WithMaxRetries(5))
	ask := func() error {
		_, err := client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
			Model: "gpt-4o-mini", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Say abc.")},
		})
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	var refused *openai.Error
	if err := ask(); !errors.As(err, &refused) || refused.StatusCode != 429 || !strings.Contains(refused.RawJSON(), "gateway_wait_too_long") {
		t.Errorf("the second call: %v", err)
	}
	denied := testutil.ToFloat64(g.stats.denied.WithLabelValues("gateway_wait_too_long"))
	if denied != 1 || p.Stats().Requests != 1 {
		t.Errorf("%v calls came and were refused, %d reached the provider", denied, p.Stats().Requests)
	}
}

// openai-go streams through the gateway.
func TestOpenAIGo(t *testing.T) {
	_, up := boxtest.Start(t, providertest.Options{Output: providertest.Constant(10)})
	_, url, _ := open(t, plain, up)
	client := openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("k"))
	stream := client.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{
		Model: "gpt-4o-mini", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Say abc.")},
	})
	text := ""
	for stream.Next() {
		for _, c := range stream.Current().Choices {
			text += c.Delta.Content
		}
	}
	if stream.Err() != nil || text != strings.Repeat("abc ", 10) {
		t.Errorf("%q, %v", text, stream.Err())
	}
}

// curl, with a body from standard input that it sends in chunks, prints each
// event.
func TestCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Fatalf("%v. Install curl: the gateway is tested with it.", err)
	}
	p, up := boxtest.Start(t, providertest.Options{Output: providertest.Constant(10)})
	_, url, _ := open(t, plain, up)
	body := filepath.Join(t.TempDir(), "body.json")
	os.WriteFile(body, []byte(strings.Replace(chat, `"max_tokens"`, `"stream":true,"max_tokens"`, 1)), 0o600)
	cmd := exec.Command(curl, "-sN", "--fail", "-H", "Content-Type: application/json", "-H", "Authorization: Bearer k",
		"-H", "Transfer-Encoding: chunked", "-H", "Expect: 100-continue", "--data-binary", "@"+body, url+"/v1/chat/completions")
	out, err := cmd.Output()
	if err != nil || strings.Count(string(out), "data: ") != 13 || !strings.HasSuffix(string(out), "data: [DONE]\n\n") || p.Stats().Completed != 1 {
		t.Errorf("%v, %d events\n%s", err, strings.Count(string(out), "data: "), out)
	}
}

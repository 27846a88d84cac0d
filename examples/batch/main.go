// Batch sends every request of a file in the OpenAI Batch API's input format
// through tripmeter, now and not within 24 hours, and writes the Batch API's
// output format.
//
//	go run ./examples/batch -in requests.jsonl -out answers.jsonl -rpm 500 -tpm 200000
//
// Answers are written as they come, a line a request. Stop it with Ctrl-C: what
// is under way is finished, and the next run goes on where this one stopped. A
// second Ctrl-C stops at once. A request that has its line is not sent again,
// whatever the answer: to try failures anew, delete their lines.
//
// A body that is no JSON is kept as a string; one that is no text either, as a
// data URL. An answer that breaks off halfway is asked for again, and counts as
// an attempt.
//
// The key is taken from OPENAI_API_KEY or TRIPMETER_API_KEY. With neither a key
// nor -base-url it talks to a provider in this process that enforces limits.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// Exit codes.
const (
	exitDone        = 0 // every request has its line, whatever the answer
	exitUsage       = 2
	exitFailed      = 1 // the job itself could not go on
	exitInterrupted = 3 // stopped or held before the end; run it again
)

func main() {
	stop := make(chan os.Signal, 2)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	os.Exit(run(os.Args[1:], os.Getenv, stop, os.Stdin, os.Stdout, os.Stderr))
}

type config struct {
	in, out, baseURL, provider, charge, summary string
	rpm, tpm, itpm, otpm                        int64
	inFlight, attempts                          int
	burstSeconds                                float64
	maxWait                                     time.Duration
	key                                         string
}

func parse(args []string, env func(string) string, stderr io.Writer) (config, error) {
	var c config
	f := flag.NewFlagSet("batch", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&c.in, "in", "", "requests, JSON lines of custom_id, method, url, body; - is standard input")
	f.StringVar(&c.out, "out", "-", "answers, JSON lines, appended to; what it holds already is not sent again; - is standard output")
	f.StringVar(&c.baseURL, "base-url", "", "where the urls of the requests are, such as https://api.openai.com")
	f.Int64Var(&c.rpm, "rpm", 0, "requests a minute; 0 learns it from the answers' headers")
	f.Int64Var(&c.tpm, "tpm", 0, "tokens a minute; 0 learns it")
	f.Int64Var(&c.itpm, "itpm", 0, "input tokens a minute, where they are limited apart")
	f.Int64Var(&c.otpm, "otpm", 0, "output tokens a minute, where they are limited apart")
	f.IntVar(&c.inFlight, "in-flight", 512, "calls under way at once")
	f.IntVar(&c.attempts, "attempts", 5, "how often a request may be sent, the first time included")
	f.StringVar(&c.provider, "provider", "", "how limits are charged: "+strings.Join(profile.Names(), ", ")+"; unset: by host; window is for whole minutes, fixed or sliding")
	f.StringVar(&c.charge, "charge", "", "override when the provider takes tokens: estimate, settle or actual")
	f.Float64Var(&c.burstSeconds, "burst-seconds", 0, "capacity of every per-minute limit, in seconds of its rate: in any minute the limit and this much may leave; 0 leaves it to the provider's profile")
	f.DurationVar(&c.maxWait, "max-wait", 10*time.Minute, "longest wait that a server may order; a longer one saves and ends the job")
	f.StringVar(&c.summary, "summary", "", "write the figures of the run to this file, as JSON")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	switch {
	case f.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case c.in == "":
		return c, errors.New("-in is missing: name a file of requests, or - for standard input")
	case c.inFlight <= 0:
		return c, errors.New("-in-flight must be at least 1")
	case c.attempts <= 0:
		return c, errors.New("-attempts must be at least 1")
	case !(c.burstSeconds >= 0 && c.burstSeconds <= 86400):
		return c, errors.New("-burst-seconds must be from 0 to 86400")
	case c.maxWait <= 0:
		return c, errors.New("-max-wait must be above 0")
	}
	if c.key = env("OPENAI_API_KEY"); c.key == "" {
		c.key = env("TRIPMETER_API_KEY")
	}
	if c.baseURL == "" && c.key != "" {
		c.baseURL = "https://api.openai.com"
	}
	if c.baseURL != "" {
		u, err := url.Parse(c.baseURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return c, errors.New("-base-url must be like https://api.openai.com, without a query")
		}
	}
	return c, nil
}

func run(args []string, env func(string) string, stop <-chan os.Signal, stdin io.Reader, stdout, stderr io.Writer) int {
	c, err := parse(args, env, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	if err != nil {
		fmt.Fprintln(stderr, "batch:", err)
		return exitUsage
	}
	p := newProgress(stderr)
	rt, err := newTransport(&c, p)
	if err != nil {
		fmt.Fprintln(stderr, "batch:", err)
		return exitUsage
	}
	requests, total, err := openRequests(c.in, stdin)
	if err != nil {
		fmt.Fprintln(stderr, "batch:", err)
		return exitFailed
	}
	defer requests.Close()
	if c.summary != "" { // that it cannot be written is told before the work, not after
		if err := p.writeSummary(c.summary); err != nil {
			fmt.Fprintln(stderr, "batch:", err)
			return exitFailed
		}
	}
	answers, done, err := openAnswers(c.out, stdout)
	if err != nil {
		fmt.Fprintln(stderr, "batch:", err)
		return exitFailed
	}

	j := &job{
		config: c, client: &http.Client{Transport: rt, CheckRedirect: noRedirect},
		requests: requests, answers: answers, done: done, progress: p,
	}
	p.start(total, rt.Snapshot)
	finished, err := j.run(context.Background(), stop)
	p.stop()
	if cerr := answers.Close(); err == nil {
		err = cerr
	}
	if c.summary != "" {
		if serr := p.writeSummary(c.summary); err == nil {
			err = serr
		}
	}
	p.report()
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "batch:", err)
		return exitFailed
	case !finished:
		fmt.Fprintln(stderr, "batch: stopped before the end; run the same command again to go on")
		return exitInterrupted
	}
	return exitDone
}

// newTransport wires tripmeter: the limits, the provider's profile, and the
// hooks that the figures come from.
func newTransport(c *config, p *progress) (*transport.Transport, error) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = c.inFlight
	base.MaxIdleConns = 0
	base.ResponseHeaderTimeout = 10 * time.Minute
	o := transport.Options{
		Base: base, RPM: c.rpm, TPM: c.tpm, InputTPM: c.itpm, OutputTPM: c.otpm,
		Burst:       time.Duration(c.burstSeconds * float64(time.Second)),
		MaxInFlight: c.inFlight, Attempts: c.attempts,
		Retry: retry.Options{MaxRetryAfter: c.maxWait},
		Trace: p.trace(c.maxWait),
	}
	if c.charge != "" {
		charge, err := estimate.ParseCharge(c.charge)
		if err != nil {
			return nil, fmt.Errorf("-charge: %w", err)
		}
		o.Charge = &charge
	}
	if c.provider != "" {
		known, ok := profile.ByName(c.provider)
		if !ok {
			return nil, fmt.Errorf("-provider %q is not known; there are %s", c.provider, strings.Join(profile.Names(), ", "))
		}
		o.Provider = known
	}
	if c.baseURL == "" {
		box, err := newBox(c)
		if err != nil {
			return nil, err
		}
		o.Base, c.baseURL = box.RoundTripper(), "http://provider.in.the.box"
	}
	return transport.New(o)
}

// newBox is a provider in this process. It enforces the limits that were asked
// for, so that one can see them kept.
func newBox(c *config) (*providertest.Provider, error) {
	o := providertest.Options{
		Limits: providertest.Limits{RPM: c.rpm, TPM: c.tpm, InputTPM: c.itpm, OutputTPM: c.otpm},
		Charge: providertest.Settle,
		Output: providertest.LogNormal(120, 0.8),
		Latency: func(providertest.Call) providertest.Timing {
			return providertest.Timing{FirstByte: 200 * time.Millisecond, PerToken: 4 * time.Millisecond}
		},
	}
	if o.Limits == (providertest.Limits{}) {
		o.Limits = providertest.Limits{RPM: 3000, TPM: 600_000}
	}
	return providertest.New(o)
}

// noRedirect: a batch request has one answer, and a key must not travel on.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

package batch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tripmeter/tripmeter/cmd/internal/meter"
	"github.com/tripmeter/tripmeter/cmd/internal/store"
	"github.com/tripmeter/tripmeter/internal/batchfile"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/providertest"
)

// Exit codes.
const (
	ExitDone    = 0 // every request has a 2xx answer
	ExitBroken  = 1 // the job itself could not go on: a file, a disk
	ExitUsage   = 2 // a flag or a file that cannot be used; nothing was sent
	ExitLeft    = 3 // stopped, held or given up before the end; run it again
	ExitFailed  = 4 // every request has its line, but not every one a 2xx
	ExitBlocked = 5 // key, account, model or address: mend it, then run it again
	ExitCost    = 6 // -max-cost is reached
)

// usage is what the flags are explained with.
const usage = `tripmeter batch sends every request of a file in the OpenAI Batch API's format
within the provider's rate limits, and writes the Batch API's output format.

  tripmeter batch -in requests.jsonl -out answers.jsonl -rpm 500 -tpm 200000

The key is OPENAI_API_KEY or TRIPMETER_API_KEY; for Anthropic, ANTHROPIC_API_KEY
or TRIPMETER_API_KEY. Run the same command again to go on: what has its answer is
not sent again. Ctrl-C finishes what is under way; a second one stops at once. A
lost terminal does not end the job.

Exit codes: 0 every request has a 2xx answer; 1 a file or disk failed; 2 wrong
usage, nothing was sent; 3 stopped or given up before the end, run it again;
4 some answers are errors, or some lines are bad; 5 key, credit, model or address
must be mended first; 6 -max-cost is reached.

Flags:
`

type config struct {
	in, out, errs, baseURL, provider, charge, summary, priceFile, record string
	priority, redis, redisEnv, name                                      string
	lease                                                                time.Duration
	limits                                                               meter.Limits
	models                                                               map[string]meter.Limits
	inFlight, attempts                                                   int
	burstSeconds                                                         float64
	maxWait, probeEvery, timeout                                         time.Duration
	prices                                                               prices
	maxCost                                                              nano
	practice, dryRun, retryFailed                                        bool
	key, profile                                                         string
}

// limited reports whether limits are configured for a model.
func (c *config) limited(model string) bool {
	_, own := c.models[model]
	return own || c.limits != (meter.Limits{})
}

// modelLimits reads "gpt-4o=500/30000,gpt-4o-mini=5000/200000": requests and
// tokens a minute, or requests, input and output tokens.
type modelLimits map[string]meter.Limits

func (m modelLimits) String() string { return "" }

func (m modelLimits) Set(s string) error {
	for entry := range strings.SplitSeq(s, ",") {
		i := strings.LastIndexByte(entry, '=')
		if i <= 0 {
			return fmt.Errorf("%q must be like gpt-4o=500/30000", entry)
		}
		model, numbers := strings.TrimSpace(entry[:i]), strings.Split(entry[i+1:], "/")
		if _, twice := m[model]; twice {
			return fmt.Errorf("%s is there twice", model)
		}
		var l meter.Limits
		to := []*int64{&l.RPM, &l.TPM}
		switch len(numbers) {
		case 2:
		case 3:
			to = []*int64{&l.RPM, &l.InputTPM, &l.OutputTPM}
		default:
			return fmt.Errorf("%q must be like gpt-4o=500/30000, or with input and output tokens like m=50/30000/8000", entry)
		}
		for k, n := range numbers {
			v, err := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			if err != nil || v < 0 {
				return fmt.Errorf("%q is not a limit", n)
			}
			*to[k] = v
		}
		m[model] = l
	}
	return nil
}

func parse(args []string, env func(string) string, stderr io.Writer) (config, error) {
	c := config{models: map[string]meter.Limits{}}
	var maxCost string
	f := flag.NewFlagSet("tripmeter batch", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() { fmt.Fprint(stderr, usage); f.PrintDefaults() }
	f.StringVar(&c.in, "in", "", "requests, JSON lines of custom_id, method, url, body; - is standard input")
	f.StringVar(&c.out, "out", "-", "answers, JSON lines, appended to; what it holds already is not sent again; - is standard output")
	f.StringVar(&c.errs, "errors", "", "file for answers that are errors, and for bad lines; unset: they go to -out")
	f.BoolVar(&c.retryFailed, "retry-failed", false, "take what has no 2xx answer out of -out and -errors, and send it again")
	f.StringVar(&c.baseURL, "base-url", "", "where the urls of the requests are, such as https://api.openai.com")
	f.BoolVar(&c.practice, "practice", false, "talk to a provider in this process, whose answers are invented; needs no key")
	f.BoolVar(&c.dryRun, "dry-run", false, "count requests, tokens, minutes and cost; send nothing, write nothing")
	f.Int64Var(&c.limits.RPM, "rpm", 0, "requests a minute, of all models without limits of their own together; with no limit set each model learns its own from headers")
	f.Int64Var(&c.limits.TPM, "tpm", 0, "tokens a minute")
	f.Int64Var(&c.limits.InputTPM, "itpm", 0, "input tokens a minute, where they are limited apart")
	f.Int64Var(&c.limits.OutputTPM, "otpm", 0, "output tokens a minute, where they are limited apart")
	f.Var(modelLimits(c.models), "limits", "limits of single models, as `model=rpm/tpm,...` or model=rpm/itpm/otpm")
	f.IntVar(&c.inFlight, "in-flight", 512, "calls under way at once")
	f.IntVar(&c.attempts, "attempts", 5, "how often a request may be sent while others are answered; refusals for the rate do not count")
	f.StringVar(&c.provider, "provider", "", "how limits are charged: "+strings.Join(profile.Names(), ", ")+"; unset: by host; window is for whole minutes, fixed or sliding")
	f.StringVar(&c.charge, "charge", "", "override when the provider takes tokens: estimate, settle or actual")
	f.Float64Var(&c.burstSeconds, "burst-seconds", 0, "capacity of every per-minute limit, in seconds of its rate: in any minute the limit and this much may leave; 0 leaves it to the provider's profile")
	f.DurationVar(&c.maxWait, "max-wait", 10*time.Minute, "longest wait that a server may order, and longest time without an answer while it fails; then the job ends and can be run again")
	f.DurationVar(&c.probeEvery, "probe-every", 30*time.Second, "how often one request is tried while the server fails")
	f.DurationVar(&c.timeout, "timeout", 10*time.Minute, "longest wait for the beginning of an answer")
	f.StringVar(&c.priceFile, "prices", "", `price list, JSON: {"gpt-4o-mini":{"input":0.15,"cached":0.075,"output":0.60}}, money a million tokens; "*" is every other model`)
	f.StringVar(&maxCost, "max-cost", "", "stop before more than this is spent, by -prices")
	f.StringVar(&c.priority, "priority", "batch", "batch, which lets others go first that share the limits through -redis, or interactive")
	f.StringVar(&c.redis, "redis", "", "share the input and the limits with other workers through this Redis or Valkey, such as redis://127.0.0.1:6379/0; each worker has an -out of its own")
	f.StringVar(&c.redisEnv, "redis-env", "", "name of the environment variable with the address, instead of -redis: a password is then in no list of processes")
	f.StringVar(&c.name, "job", "", "what the workers call their job; unset, inputs of the same bytes are one job")
	f.DurationVar(&c.lease, "lease", 30*time.Second, "how long a worker may say nothing before the others take its requests")
	f.StringVar(&c.record, "record", "", "write the run down to this file, without anything of what was asked, and draw it to the same name with .svg")
	f.StringVar(&c.summary, "summary", "", "write the figures of the run to this file, as JSON")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	var err error
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
	case c.maxWait <= 0 || c.probeEvery <= 0 || c.timeout <= 0:
		return c, errors.New("-max-wait, -probe-every and -timeout must be above 0")
	case c.practice && c.baseURL != "":
		return c, errors.New("-practice and -base-url exclude each other")
	case c.retryFailed && c.out == "-":
		return c, errors.New("-retry-failed needs -out")
	case c.errs == "-" || c.errs != "" && c.errs == c.out:
		return c, errors.New("-errors must be a file of its own")
	case c.priority != "batch" && c.priority != "interactive":
		return c, fmt.Errorf("-priority is %q: it must be batch or interactive", c.priority)
	case c.redis != "" && c.redisEnv != "":
		return c, errors.New("-redis and -redis-env exclude each other")
	case c.redisEnv != "" && env(c.redisEnv) == "":
		return c, fmt.Errorf("-redis-env: the environment variable %s is not set", c.redisEnv)
	case (c.redis != "" || c.redisEnv != "") && (c.in == "-" || c.out == "-"):
		return c, errors.New("-redis needs files for -in and -out")
	case (c.redis != "" || c.redisEnv != "") && c.practice:
		return c, errors.New("-redis and -practice exclude each other: each worker would have a provider of its own")
	case (c.redis == "" && c.redisEnv == "") && c.name != "" || strings.ContainsAny(c.name, "{}"):
		return c, errors.New("-job needs -redis, and a name without braces")
	case c.lease < time.Second:
		return c, errors.New("-lease must be at least 1s")
	case maxCost != "" && c.priceFile == "":
		return c, errors.New("-max-cost needs -prices")
	}
	if c.priceFile != "" {
		if c.prices, err = readPrices(c.priceFile); err != nil {
			return c, err
		}
	}
	if maxCost != "" {
		if c.maxCost, err = money(maxCost, 9); err != nil || c.maxCost == 0 {
			return c, fmt.Errorf("-max-cost %q must be an amount above 0", maxCost)
		}
	}
	return c, c.address(env)
}

// address finds the base URL, the profile of its host and the key.
func (c *config) address(env func(string) string) error {
	if c.provider != "" {
		p, ok := profile.ByName(c.provider)
		if !ok {
			return fmt.Errorf("-provider %q is not known; there are %s", c.provider, strings.Join(profile.Names(), ", "))
		}
		c.profile = p.Name
	}
	if c.practice {
		return nil
	}
	openAI := env("OPENAI_API_KEY")
	if c.baseURL == "" {
		if openAI == "" && !c.dryRun {
			return errors.New("there is no key: set OPENAI_API_KEY, or name a server with -base-url, or try it with -practice")
		}
		c.baseURL = "https://api.openai.com"
	}
	u, err := url.Parse(c.baseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return errors.New("-base-url must be like https://api.openai.com, without a user and a query")
	}
	if c.profile == "" {
		c.profile = profile.ForHost(u.Host).Name
	}
	if c.profile == "anthropic" {
		c.key = cmp.Or(env("ANTHROPIC_API_KEY"), env("TRIPMETER_API_KEY"))
	} else {
		c.key = cmp.Or(openAI, env("TRIPMETER_API_KEY"))
	}
	return nil
}

// Run is the command: it returns the exit code. Signals are taken from stop; a
// hang-up is said and ends nothing.
func Run(args []string, env func(string) string, signals <-chan os.Signal, stdin io.Reader, stdout, stderr io.Writer) int {
	c, err := parse(args, env, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return ExitDone
	case err != nil:
		fmt.Fprintln(stderr, "batch:", err)
		return ExitUsage
	}
	p := newProgress(stderr)
	p.priced = c.prices != nil
	requests, total, err := openRequests(c.in, stdin)
	if err != nil {
		fmt.Fprintln(stderr, "batch:", err)
		return ExitUsage
	}
	defer requests.Close()
	if c.dryRun {
		return dryRun(&c, requests, stdout, stderr)
	}
	if c.summary != "" { // that it cannot be written is said before the work, not after
		if err := p.writeSummary(c.summary); err != nil {
			fmt.Fprintln(stderr, "batch:", err)
			return ExitUsage
		}
	}
	j := &job{config: &c, requests: requests, p: p, done: newIDs(), long: make(chan order, 1)}
	if c.redisEnv != "" {
		c.redis = env(c.redisEnv)
	}
	var shared *store.Store
	if c.redis != "" {
		if shared, err = j.join(requests); err != nil {
			fmt.Fprintln(stderr, "batch:", err)
			return ExitUsage
		}
		defer shared.Close()
	}
	m, err := j.meter(shared)
	if err != nil {
		fmt.Fprintln(stderr, "batch:", err)
		return ExitUsage
	}
	defer m.Close()
	j.client = &http.Client{Transport: m, CheckRedirect: noRedirect}
	if j.tape != nil {
		j.client.Transport = j.tape.Calls(m)
	}
	if err := j.openOutputs(stdout); err != nil {
		fmt.Fprintln(stderr, "batch:", err)
		return ExitUsage
	}
	stop, abort, ignored := j.watch(signals)
	defer ignored()
	if j.claims != nil {
		p.others = &j.claims.busy
	}
	p.start(total, m.State)
	for _, a := range j.outputs() {
		if a.f != nil {
			defer a.keepSynced()()
		}
	}
	finished, err := j.run(context.Background(), stop, abort)
	select {
	case <-abort:
	default:
		if !finished && err == nil {
			err = j.reportRest()
		}
	}
	p.stop()
	if j.claims != nil {
		if cerr := j.claims.Close(); cerr != nil && err == nil {
			err = fmt.Errorf("-redis: %w", cerr)
		}
	}
	for _, a := range j.outputs() {
		if cerr := a.Close(); cerr != nil && err == nil {
			err = cerr
		}
	}
	if p.sum.Left = max(p.sum.Left, j.left); total > 0 && !finished {
		p.sum.Left = total - p.sum.Completed - p.sum.Failed - p.sum.Skipped - p.sum.BadLines
	}
	if rerr := j.tape.draw(c.record); err == nil {
		err = rerr
	}
	if c.summary != "" {
		if serr := p.writeSummary(c.summary); err == nil {
			err = serr
		}
	}
	p.report()
	return j.exit(finished, err, stderr)
}

// exit says how the job ended and what to do next.
func (j *job) exit(finished bool, err error, stderr io.Writer) int {
	say := func(format string, args ...any) { fmt.Fprintf(stderr, "batch: "+format+"\n", args...) }
	why := outcome{kind: j.why.kind, detail: j.why.detail}
	switch {
	case err != nil:
		say("%v", err)
		if errors.Is(err, syscall.ENOSPC) {
			say("make room on the disk, then run the same command again")
		}
		return ExitBroken
	case j.why.kind == spent:
		say("stopped before -max-cost %v: %v is spent, and the next request may cost more than what is left", j.maxCost, j.p.spent())
		return ExitCost
	case !finished && j.why.kind != good && j.why.kind != withdrawn:
		say("stopped: %s", why.counted())
		say("%s", j.why.kind.advice())
		if j.why.kind.passes() {
			return ExitLeft
		}
		return ExitBlocked
	case !finished:
		say("stopped before the end; run the same command again to go on")
		return ExitLeft
	case j.p.sum.Failed > 0 || j.p.sum.BadLines > 0 || j.failedBefore > 0:
		say("every request has its line; %d are errors, %d lines are bad; -retry-failed sends errors again",
			j.p.sum.Failed+j.failedBefore, j.p.sum.BadLines)
		return ExitFailed
	}
	return ExitDone
}

// join makes this process a worker of a job that others may share.
func (j *job) join(requests io.Reader) (*store.Store, error) {
	f, ok := requests.(*os.File)
	if i, err := f.Stat(); !ok || err != nil || !i.Mode().IsRegular() {
		return nil, errors.New("-redis needs a file for -in")
	}
	if j.name == "" {
		var err error
		if j.name, err = jobOf(f); err != nil {
			return nil, err
		}
	}
	s, err := store.Open(j.redis)
	if err != nil {
		return nil, fmt.Errorf("-redis: %w", err)
	}
	if j.claims, err = newClaims(s, j.name, j.lease, j.p.say); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// openOutputs opens -out and -errors and reads what they hold.
func (j *job) openOutputs(stdout io.Writer) (err error) {
	var was, errs found
	if j.out, was, err = open(j.config.out, stdout, j.done, j.retryFailed, j.claims); err != nil {
		return err
	}
	if j.config.errs != "" {
		if j.errs, errs, err = open(j.config.errs, nil, j.done, j.retryFailed, j.claims); err != nil {
			j.out.Close()
			return err
		}
	}
	switch {
	case (was.practice || was.box && !loopback(j.baseURL)) && !j.practice:
		err = fmt.Errorf("%s holds invented answers of the practice provider; name another -out", j.config.out)
	case was.real && j.practice:
		err = fmt.Errorf("%s holds real answers; name another -out for practice", j.config.out)
	}
	if err != nil {
		for _, a := range j.outputs() {
			a.Close()
		}
		return err
	}
	for _, f := range []struct {
		name string
		found
	}{{j.config.out, was}, {j.config.errs, errs}} {
		if f.cut > 0 {
			j.p.say(fmt.Sprintf("%s: the last %d bytes were no whole line and are cut off; their request is sent again", f.name, f.cut))
		}
		if f.noLocks {
			j.p.say(fmt.Sprintf("%s: this file system has no locks; see that nobody else writes it", f.name))
		}
	}
	if !j.retryFailed {
		j.failedBefore = was.failed + errs.failed
	}
	if j.claims != nil {
		if n := was.twice + errs.twice; n > 0 {
			j.p.say(fmt.Sprintf("%d requests were answered by another worker too; their lines here are taken out", n))
		}
		failed, err := j.claims.known(j.done)
		if err != nil {
			return fmt.Errorf("-redis: %w", err)
		}
		j.failedBefore += failed
	}
	return nil
}

// loopback reports whether a server is on this machine.
func loopback(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

func (j *job) outputs() []*answers {
	return slices.DeleteFunc([]*answers{j.out, j.errs}, func(a *answers) bool { return a == nil })
}

// watch turns signals into the two wishes of a user. A hang-up is the loss of
// the terminal: the job goes on without it.
func (j *job) watch(signals <-chan os.Signal) (stop, abort chan struct{}, end func()) {
	stop, abort = make(chan struct{}), make(chan struct{})
	over := make(chan struct{})
	go func() {
		asked := 0
		for {
			select {
			case s := <-signals:
				switch {
				case s == syscall.SIGHUP:
					j.p.say("the terminal is gone; the job goes on")
					continue
				case asked == 0:
					close(stop)
				case asked == 1:
					close(abort)
				}
				asked++
			case <-over:
				return
			}
		}
	}()
	return stop, abort, func() { close(over) }
}

// meter wires tripmeter: the limits, and the hooks that the figures come from.
// The meter sends each request once. The job decides what is sent again, since it
// sees all of them.
func (j *job) meter(shared *store.Store) (*meter.Meter, error) {
	c := j.config
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = c.inFlight
	base.MaxIdleConns = 0
	base.ResponseHeaderTimeout = c.timeout
	mc := meter.Config{
		Base: base, Limits: c.limits, Models: c.models, Provider: c.provider, Charge: c.charge,
		Burst:    time.Duration(c.burstSeconds * float64(time.Second)),
		InFlight: c.inFlight, Attempts: 1, MaxRetryAfter: c.maxWait,
		Hooks: meter.Hooks{
			Queued: func(r *http.Request) { sendingOf(r).queued() },
			Granted: func(r *http.Request, wait time.Duration) {
				j.p.granted(wait)
				s := sendingOf(r)
				s.granted()
				if !j.gate.enter(r.Context(), s) {
					s.cancel() // nothing of it goes out
					return
				}
				if c.practice { // there is no connection to wait for
					s.onWire.Store(true)
				}
			},
			Answered: func(r *http.Request, status int, err error) {
				if status != 0 || !errors.Is(err, context.Canceled) {
					j.p.answered(status)
				}
			},
			Settled: j.settled,
			Paused: func(r *http.Request, d time.Duration) {
				if d > c.maxWait {
					select {
					case j.long <- order{sendingOf(r).lane.model, d}:
					default: // one is on its way
					}
				}
			},
			Doubted: func(profile, seen string) {
				j.p.say(fmt.Sprintf("headers show charges by the rule %q, not %q; see -charge", seen, profile))
			},
		},
	}
	if shared != nil {
		u, err := url.Parse(c.baseURL)
		if err != nil {
			return nil, err
		}
		// Workers with one key at one host share a budget, of different files too.
		mc.Name, mc.Store, mc.Secret = "batch "+u.Host, shared.Ledger, store.Secret("", c.key)
	}
	if c.practice {
		box, err := practice(c)
		if err != nil {
			return nil, err
		}
		mc.Base, c.baseURL = box.RoundTripper(), "http://provider.in.the.box"
	}
	if c.record != "" {
		tape, err := newTape(c.record)
		if err != nil {
			return nil, err
		}
		j.tape = tape
		mc.Base = tape.Wire(mc.Base)
	}
	return meter.New(mc)
}

// practice is a provider in this process. It enforces the limits that were
// asked for, so that one can see them kept.
func practice(c *config) (*providertest.Provider, error) {
	o := providertest.Options{
		Limits:      providertest.Limits(boxLimits(c.limits)),
		ModelLimits: map[string]providertest.Limits{},
		Charge:      providertest.Settle,
		Output:      providertest.LogNormal(120, 0.8),
		Latency: func(providertest.Call) providertest.Timing {
			return providertest.Timing{FirstByte: 200 * time.Millisecond, PerToken: 4 * time.Millisecond}
		},
	}
	for model, l := range c.models {
		o.ModelLimits[model] = boxLimits(l)
	}
	if c.limits == (meter.Limits{}) && len(c.models) == 0 {
		o.Limits = providertest.Limits{RPM: 3000, TPM: 600_000}
	}
	return providertest.New(o)
}

func boxLimits(l meter.Limits) providertest.Limits {
	return providertest.Limits{RPM: l.RPM, TPM: l.TPM, InputTPM: l.InputTPM, OutputTPM: l.OutputTPM}
}

// noRedirect: a batch request has one answer, and a key must not travel on.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// openRequests opens the input. Of a file it counts the lines, for the time
// left; a pipe can be read only once, and its total is 0, not known.
func openRequests(name string, stdin io.Reader) (io.ReadCloser, int64, error) {
	if name == "-" {
		return io.NopCloser(stdin), 0, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	i, err := f.Stat()
	switch {
	case err == nil && i.IsDir():
		err = fmt.Errorf("%s is a directory", name)
	case err == nil && i.Mode().IsRegular():
		var total int64
		if total, err = count(f); err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err == nil {
			return f, total, nil
		}
	case err == nil:
		return f, 0, nil
	}
	f.Close()
	return nil, 0, err
}

// count counts the lines that are not blank.
func count(r io.Reader) (int64, error) {
	var n int64
	in := batchfile.NewLines(r)
	for {
		line, _, err := in.Next()
		if len(bytes.TrimSpace(line)) > 0 {
			n++
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

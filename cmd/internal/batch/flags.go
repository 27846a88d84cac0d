package batch

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/cmd/internal/meter"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
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
	maxCostText                                                          string // maxCost as it was written
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
			return fmt.Errorf("%s has its limits twice", model)
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
			if err != nil || v < 0 || v > limit.MaxUnits {
				return fmt.Errorf("%q is not a limit: it must be from 0 to %d", n, int64(limit.MaxUnits))
			}
			*to[k] = v
		}
		m[model] = l
	}
	return nil
}

func parse(args []string, env func(string) string, stderr io.Writer) (config, error) {
	c := config{models: map[string]meter.Limits{}}
	f := c.flags(stderr)
	if err := f.Parse(args); err != nil {
		return c, err
	}
	if f.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q: files are named by flags, as in -in requests.jsonl -out answers.jsonl", f.Arg(0))
	}
	if err := c.check(); err != nil {
		return c, err
	}
	if err := c.checkLimits(); err != nil {
		return c, err
	}
	if err := c.checkFiles(); err != nil {
		return c, err
	}
	if err := c.checkStore(env); err != nil {
		return c, err
	}
	if err := c.readPrices(); err != nil {
		return c, err
	}
	return c, c.address(env)
}

// flags is the table of flags, with the fields that they set.
func (c *config) flags(stderr io.Writer) *flag.FlagSet {
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
	f.StringVar(&c.maxCostText, "max-cost", "", "stop before more than this is spent, by -prices")
	f.StringVar(&c.priority, "priority", "batch", "batch, which lets others go first that share the limits through -redis, or interactive")
	f.StringVar(&c.redis, "redis", "", "share the input and the limits with other workers through this Redis or Valkey, such as redis://127.0.0.1:6379/0; each worker has an -out of its own")
	f.StringVar(&c.redisEnv, "redis-env", "", "name of the environment variable with the address, instead of -redis: a password is then in no list of processes")
	f.StringVar(&c.name, "job", "", "what the workers call their job; unset, inputs of the same bytes are one job")
	f.DurationVar(&c.lease, "lease", 30*time.Second, "how long a worker may say nothing before the others take its requests")
	f.StringVar(&c.record, "record", "", "write the run down to this file, without anything of what was asked, and draw it to the same name with .svg")
	f.StringVar(&c.summary, "summary", "", "write the figures of the run to this file, as JSON")
	return f
}

// check refuses values and combinations of flags that cannot be meant.
func (c *config) check() error {
	switch {
	case c.in == "":
		return errors.New("-in is missing: name a file of requests, or - for standard input")
	case c.inFlight <= 0:
		return errors.New("-in-flight must be at least 1")
	case c.attempts <= 0:
		return errors.New("-attempts must be at least 1")
	case !(c.burstSeconds >= 0 && c.burstSeconds <= 86400):
		return errors.New("-burst-seconds must be from 0 to 86400")
	case c.maxWait <= 0 || c.probeEvery <= 0 || c.timeout <= 0:
		return errors.New("-max-wait, -probe-every and -timeout must be above 0")
	case c.practice && c.baseURL != "":
		return errors.New("-practice and -base-url exclude each other")
	case c.retryFailed && c.out == "-":
		return errors.New("-retry-failed needs -out")
	case c.errs == "-" || c.errs != "" && c.errs == c.out:
		return errors.New("-errors must be a file of its own")
	case c.priority != "batch" && c.priority != "interactive":
		return fmt.Errorf("-priority is %q: it must be batch or interactive", c.priority)
	}
	return nil
}

// checkLimits refuses a limit that cannot be, by the name of its flag: the library would name
// a field of its options.
func (c *config) checkLimits() error {
	for _, l := range []struct {
		flag string
		n    int64
	}{
		{"-rpm", c.limits.RPM}, {"-tpm", c.limits.TPM}, {"-itpm", c.limits.InputTPM}, {"-otpm", c.limits.OutputTPM},
	} {
		if l.n < 0 || l.n > limit.MaxUnits {
			return fmt.Errorf("%s is %d: it must be from 1 to %d, or unset", l.flag, l.n, int64(limit.MaxUnits))
		}
	}
	return nil
}

// checkFiles refuses a file that is written and has another use too: the figures of a run
// would take the place of its requests or answers.
func (c *config) checkFiles() error {
	type use struct{ flag, name string }
	read := []use{{"-in", c.in}, {"-prices", c.priceFile}}
	written := []use{{"-out", c.out}, {"-errors", c.errs}, {"-summary", c.summary}, {"-record", c.record}}
	if c.record != "" {
		written = append(written, use{"the picture of -record", pictureOf(c.record)})
	}
	for i, w := range written {
		for _, other := range append(read, written[:i]...) {
			if sameFile(w.name, other.name) {
				return fmt.Errorf("%s and %s are both %s; each needs a file of its own", other.flag, w.flag, w.name)
			}
		}
	}
	return nil
}

// sameFile reports whether two names are of one regular file, or will be.
func sameFile(a, b string) bool {
	if a == "" || b == "" || a == "-" || b == "-" {
		return false
	}
	i, errA := os.Stat(a)
	k, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(i, k) && i.Mode().IsRegular()
	}
	x, errX := filepath.Abs(a)
	y, errY := filepath.Abs(b)
	return errX == nil && errY == nil && x == y
}

// checkStore refuses flags that do not go with a store, or with none, and finds the
// address of the store.
func (c *config) checkStore(env func(string) string) error {
	shared := c.redis != "" || c.redisEnv != ""
	switch {
	case c.redis != "" && c.redisEnv != "":
		return errors.New("-redis and -redis-env exclude each other")
	case c.redisEnv != "" && env(c.redisEnv) == "":
		return fmt.Errorf("-redis-env: the environment variable %s is not set", c.redisEnv)
	case shared && (c.in == "-" || c.out == "-"):
		return errors.New("-redis needs files for -in and -out")
	case shared && c.practice:
		return errors.New("-redis and -practice exclude each other: each worker would have a provider of its own")
	case !shared && c.name != "" || strings.ContainsAny(c.name, "{}"):
		return errors.New("-job needs -redis, and a name without braces")
	case c.lease < time.Second:
		return errors.New("-lease must be at least 1s")
	}
	if c.redisEnv != "" {
		c.redis = env(c.redisEnv)
	}
	return nil
}

// readPrices reads -prices and -max-cost.
func (c *config) readPrices() (err error) {
	if c.maxCostText != "" && c.priceFile == "" {
		return errors.New("-max-cost needs -prices")
	}
	if c.priceFile != "" {
		if c.prices, err = readPrices(c.priceFile); err != nil {
			return err
		}
	}
	if c.maxCostText != "" {
		if c.maxCost, err = money(c.maxCostText, 9); err != nil || c.maxCost == 0 {
			return fmt.Errorf("-max-cost %q must be an amount above 0", c.maxCostText)
		}
	}
	return nil
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
	u, err := meter.ParseBase(c.baseURL)
	if err != nil {
		return fmt.Errorf("-base-url %w", err)
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

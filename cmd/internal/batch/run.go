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
	"syscall"
	"time"

	"github.com/tripmeter/tripmeter/cmd/internal/meter"
	"github.com/tripmeter/tripmeter/cmd/internal/store"
	"github.com/tripmeter/tripmeter/internal/batchfile"
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

// Run is the command: it returns the exit code. Signals are taken from stop; a
// hang-up is said and ends nothing.
func Run(args []string, env func(string) string, signals <-chan os.Signal, stdin io.Reader, stdout, stderr io.Writer) int {
	unusable := func(err error) int {
		fmt.Fprintln(stderr, "batch:", err)
		return ExitUsage
	}
	c, err := parse(args, env, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return ExitDone
	case err != nil:
		return unusable(err)
	}
	requests, total, err := openRequests(c.in, stdin)
	if err != nil {
		return unusable(err)
	}
	defer requests.Close()
	if c.dryRun {
		return dryRun(&c, requests, stdout, stderr)
	}
	j := newJob(&c, requests, newProgress(stderr))
	defer j.disconnect()
	if err := j.connect(stdout); err != nil {
		return unusable(err)
	}
	stop, abort, ignored := j.watch(signals)
	defer ignored()
	finished, err := j.work(total, stop, abort)
	return j.exit(finished, j.finish(total, finished, err), stderr)
}

// connect makes ready all that the job sends with and writes to. Nothing is sent
// before it has succeeded.
func (j *job) connect(stdout io.Writer) (err error) {
	if j.summary != "" { // that it cannot be written is said before the work, not after
		if err := j.p.writeSummary(j.summary); err != nil {
			return err
		}
	}
	if j.redis != "" {
		if j.shared, err = j.join(); err != nil {
			return err
		}
		j.p.others = &j.claims.busy
	}
	if j.sender, err = j.meter(); err != nil {
		return err
	}
	j.client = &http.Client{Transport: j.sender, CheckRedirect: noRedirect}
	if j.tape != nil {
		j.client.Transport = j.tape.Calls(j.sender)
	}
	return j.openOutputs(stdout)
}

// disconnect closes what connect has opened to send with.
func (j *job) disconnect() {
	if j.sender != nil {
		j.sender.Close()
	}
	if j.shared != nil {
		j.shared.Close()
	}
}

// work sends the requests, and shows its progress. Requests that were never begun get a
// line in -errors that says why, unless the user wants the end at once.
func (j *job) work(total int64, stop, abort <-chan struct{}) (finished bool, err error) {
	j.p.start(total, j.sender.State)
	defer j.p.stop()
	for _, a := range j.outputs() {
		if a.f != nil {
			defer a.keepSynced()()
		}
	}
	finished, err = j.run(context.Background(), stop, abort)
	select {
	case <-abort:
	default:
		if !finished && err == nil {
			err = j.reportRest()
		}
	}
	return finished, err
}

// finish closes what the job has written, and writes its figures. It returns the
// first error of all, with err before the others.
func (j *job) finish(total int64, finished bool, err error) error {
	also := func(e error) { err = cmp.Or(err, e) }
	if j.claims != nil {
		if e := j.claims.Close(); e != nil {
			also(fmt.Errorf("-redis: %w", e))
		}
	}
	for _, a := range j.outputs() {
		also(a.Close())
	}
	sum := &j.p.sum
	if sum.Left = max(sum.Left, j.left); total > 0 && !finished {
		sum.Left = total - sum.Completed - sum.Failed - sum.Skipped - sum.BadLines
	}
	also(j.tape.draw(j.record))
	if j.summary != "" {
		also(j.p.writeSummary(j.summary))
	}
	j.p.report()
	return err
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
func (j *job) join() (*store.Store, error) {
	f, ok := j.requests.(*os.File)
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
func (j *job) meter() (*meter.Meter, error) {
	c := j.config
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = c.inFlight
	base.MaxIdleConns = 0
	base.ResponseHeaderTimeout = c.timeout
	mc := meter.Config{
		Base: base, Limits: c.limits, Models: c.models, Provider: c.provider, Charge: c.charge,
		Burst:    time.Duration(c.burstSeconds * float64(time.Second)),
		InFlight: c.inFlight, Attempts: 1, MaxRetryAfter: c.maxWait,
		Hooks: j.hooks(),
	}
	if j.shared != nil {
		u, err := url.Parse(c.baseURL)
		if err != nil {
			return nil, err
		}
		// Workers with one key at one host share a budget, of different files too.
		mc.Name, mc.Store, mc.Secret = "batch "+u.Host, j.shared.Ledger, store.Secret("", c.key)
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

// hooks are how the meter reports to the job and to its figures.
func (j *job) hooks() meter.Hooks {
	return meter.Hooks{
		Queued:  func(r *http.Request) { sendingOf(r).queued() },
		Granted: j.granted,
		Answered: func(r *http.Request, status int, err error) {
			if status != 0 || !errors.Is(err, context.Canceled) {
				j.p.answered(status)
			}
		},
		Settled: j.settled,
		Paused: func(r *http.Request, d time.Duration) {
			if d > j.maxWait {
				select {
				case j.long <- order{sendingOf(r).lane.model, d}:
				default: // one is on its way
				}
			}
		},
		Doubted: func(profile, seen string) {
			j.p.say(fmt.Sprintf("headers show charges by the rule %q, not %q; see -charge", seen, profile))
		},
	}
}

// granted lets a request out that the meter has admitted, if its row of failures
// does.
func (j *job) granted(r *http.Request, wait time.Duration) {
	j.p.granted(wait)
	s := sendingOf(r)
	s.granted()
	if !j.gate.enter(r.Context(), s) {
		s.cancel() // nothing of it goes out
		return
	}
	if j.practice { // there is no connection to wait for
		s.onWire.Store(true)
	}
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

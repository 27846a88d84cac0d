// Quickstart sends the same burst of requests twice to a provider in this
// process that enforces its limits: once through a client that only retries,
// once through tripmeter. It needs no key and no network.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -json
//	go run ./examples/quickstart -record run   # and recordings, with a picture, in run/
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

// The provider allows 20 requests and 3,500 tokens a second, and holds two seconds
// of each. It corrects its charge for a call when it knows the call's cost.
const (
	rpm      = 1200
	tpm      = 210_000
	capacity = 2 * time.Second
	requests = 160

	maxTokens = 400
)

func box() (*providertest.Provider, providertest.Options, error) {
	o := providertest.Options{
		Limits:   providertest.Limits{RPM: rpm, TPM: tpm},
		Capacity: capacity,
		Charge:   providertest.Settle,
		Output:   providertest.Uniform(40, 400),
		Latency: func(providertest.Call) providertest.Timing {
			return providertest.Timing{FirstByte: 150 * time.Millisecond, PerToken: time.Millisecond}
		},
		ChunkTokens: 8,
	}
	p, err := providertest.New(o)
	return p, o, err
}

// result is what one client did.
type result struct {
	Requests     int     `json:"requests"`
	Completed    int     `json:"completed"`
	Refused429   int     `json:"refused_429"`
	WireAttempts int     `json:"wire_attempts"`
	Seconds      float64 `json:"seconds"`
	IdealSeconds float64 `json:"ideal_seconds"` // all admitted in order, each as early as the provider can, to the last answer
	QuotaUsed    float64 `json:"quota_used"`    // of the limit that binds, until the last call was admitted
}

func main() {
	asJSON := flag.Bool("json", false, "print the figures as one JSON object, and nothing else")
	dir := flag.String("record", "", "record both runs into this folder, and draw them")
	flag.Parse()
	w := io.Writer(os.Stderr)
	if *asJSON {
		w = io.Discard
	}
	if err := run(os.Stdout, w, *asJSON, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(out, progress io.Writer, asJSON bool, dir string) error {
	fmt.Fprintf(progress, "%d requests at once; %d requests and %d tokens a minute are allowed.\n\n", requests, rpm, tpm)
	tape, err := newTape(dir)
	if err != nil {
		return err
	}
	plain, err := measure("retrying client", progress, tape.plain(func(base http.RoundTripper) (http.RoundTripper, error) {
		return &retrying{base}, nil
	}))
	if err != nil {
		return err
	}
	// This is all there is to it.
	ours, err := measure("tripmeter", progress, tape.ours(func(base http.RoundTripper, trace transport.Trace) (http.RoundTripper, error) {
		return transport.New(transport.Options{Base: base, RPM: rpm, TPM: tpm, Burst: capacity, Trace: trace})
	}))
	if err != nil {
		return err
	}
	if err := tape.draw(progress); err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(out).Encode(map[string]result{"plain": plain, "tripmeter": ours})
	}
	table(out, plain, ours)
	return nil
}

// measure sends the burst through one client, to a provider of its own.
func measure(name string, progress io.Writer, wrap func(http.RoundTripper) (http.RoundTripper, error)) (result, error) {
	p, o, err := box()
	if err != nil {
		return result{}, err
	}
	rt, err := wrap(p.RoundTripper())
	if err != nil {
		return result{}, err
	}
	client := &http.Client{Transport: rt}
	stop := watch(name, progress, p)

	start := time.Now()
	var mu sync.Mutex
	completed := 0
	var all sync.WaitGroup
	for i := range requests {
		all.Go(func() {
			if ask(client, i) == nil {
				mu.Lock()
				completed++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	seconds := time.Since(start).Seconds()
	stop()

	s := p.Stats()
	r := result{
		Requests: requests, Completed: completed, Seconds: seconds,
		Refused429: int(s.Refused), WireAttempts: int(s.Requests),
	}
	r.QuotaUsed = used(p)
	r.IdealSeconds, err = ideal(p, o)
	return r, err
}

func ask(c *http.Client, i int) error {
	body := fmt.Sprintf(`{"model":"gpt-4o-mini","max_tokens":%d,"messages":[{"role":"user","content":"Question %d: what is a token bucket?"}]}`, maxTokens, i)
	resp, err := c.Post("http://provider.in.the.box/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// used is the share of the binding limit that was used until the last call was
// admitted.
func used(p *providertest.Provider) float64 {
	var calls, tokens int64
	var last time.Duration
	for _, e := range p.Ledger() {
		if e.Outcome == providertest.Served {
			calls, tokens, last = calls+1, tokens+e.Settled.Total(), max(last, e.Since)
		}
	}
	could := (capacity + last).Minutes()
	return min(1, max(float64(calls)/(rpm*could), float64(tokens)/(tpm*could)))
}

// ideal is when the last answer could have been there: the ledger says what each
// served call cost, and the provider's own arithmetic when it could have been
// admitted at the earliest. Calls that were given up count with the mean.
func ideal(p *providertest.Provider, o providertest.Options) (float64, error) {
	var costs []providertest.Cost
	var sum int64
	for _, e := range p.Ledger() {
		if e.Outcome == providertest.Served {
			costs = append(costs, providertest.Cost{Prompt: e.Prompt, Cap: maxTokens, Output: e.Produced})
			sum += e.Produced
		}
	}
	for n := int64(len(costs)); n > 0 && len(costs) < requests; {
		costs = append(costs, providertest.Cost{Prompt: costs[0].Prompt, Cap: maxTokens, Output: sum / n})
	}
	admitted, err := providertest.IdealSeconds(costs, o)
	if err != nil || len(costs) == 0 {
		return 0, err
	}
	last := o.Latency(providertest.Call{})
	return admitted + (last.FirstByte + time.Duration(costs[len(costs)-1].Output)*last.PerToken).Seconds(), nil
}

// watch shows how far a client is, on one line of a terminal or now and then a
// line elsewhere.
func watch(name string, w io.Writer, p *providertest.Provider) (stop func()) {
	terminal := false
	if f, ok := w.(*os.File); ok {
		if i, err := f.Stat(); err == nil {
			terminal = i.Mode()&os.ModeCharDevice != 0
		}
	}
	every, begin, end := 2*time.Second, "", "\n"
	if terminal { // the line is drawn over itself, and cut where the terminal ends
		every, begin, end = 100*time.Millisecond, "\r\x1b[K\x1b[?7l", " \x1b[?7h\r"
	}
	start := time.Now()
	show := func() {
		s := p.Stats()
		const width = 30
		full := int(s.Completed) * width / requests
		fmt.Fprintf(w, "%s%-16s [%s%s] %3d/%d  429s %-4d  %4.1f s%s", begin, name,
			strings.Repeat("#", full), strings.Repeat("-", width-full),
			s.Completed, requests, s.Refused, time.Since(start).Seconds(), end)
	}
	quit := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				show()
			case <-quit:
				show()
				if terminal {
					fmt.Fprintln(w)
				}
				return
			}
		}
	})
	return func() { close(quit); done.Wait() }
}

// seconds is a dash where not all requests were completed: giving up is not being
// fast.
func seconds(r result) string {
	if r.Completed < r.Requests {
		return "-"
	}
	return fmt.Sprintf("%.1f", r.Seconds)
}

func table(w io.Writer, plain, ours result) {
	fmt.Fprintf(w, "\n%-24s %16s %12s\n", "", "retrying client", "tripmeter")
	row := func(what, format string, a, b any) {
		fmt.Fprintf(w, "%-24s %16s %12s\n", what, fmt.Sprintf(format, a), fmt.Sprintf(format, b))
	}
	row("requests", "%d", plain.Requests, ours.Requests)
	row("completed", "%d", plain.Completed, ours.Completed)
	row("refused (429)", "%d", plain.Refused429, ours.Refused429)
	row("sent on the wire", "%d", plain.WireAttempts, ours.WireAttempts)
	row("seconds for all of them", "%s", seconds(plain), seconds(ours))
	row("seconds at best", "%.1f", plain.IdealSeconds, ours.IdealSeconds)
	row("quota used", "%.0f %%", 100*plain.QuotaUsed, 100*ours.QuotaUsed)
	if lost := plain.Requests - plain.Completed; lost > 0 {
		fmt.Fprintf(w, "\nThe retrying client gave up on %d requests, each after %d attempts.\n", lost, attempts)
	}
}

package batch

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tripmeter/tripmeter/cmd/internal/meter"
	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/internal/batchfile"
)

// plan is what a model's requests will take.
type plan struct {
	requests, input, output, most int64 // tokens; output as expected, most as capped
	capped                        bool  // every request states a cap
}

// dryRun says what a run would send. It opens the output for reading only.
func dryRun(c *config, requests io.Reader, stdout, stderr io.Writer) int {
	done := newIDs()
	for _, name := range []string{c.out, c.errs} {
		if err := readDone(name, done, c.retryFailed); err != nil {
			fmt.Fprintln(stderr, "batch:", err)
			return ExitUsage
		}
	}
	plans := map[string]*plan{}
	var skipped, bad int64
	in := batchfile.NewLines(requests)
	for n := 1; ; n++ {
		line, long, err := in.Next()
		if err != nil && err != io.EOF {
			fmt.Fprintln(stderr, "batch:", err)
			return ExitBroken
		}
		if len(bytes.TrimSpace(line)) > 0 {
			r, wrong := batchfile.ParseRequest(line, long)
			before := byte(0)
			if wrong == nil {
				if before = done.mark(r.CustomID, named); before&named != 0 {
					wrong = fmt.Errorf("custom_id %q was there before", r.CustomID)
				}
			}
			switch {
			case wrong != nil:
				if bad++; bad <= maxNamed {
					fmt.Fprintf(stderr, "batch: line %d: %v\n", n, wrong)
				}
			case before&answered != 0:
				skipped++
			default:
				add(plans, r)
			}
		}
		if err == io.EOF {
			break
		}
	}
	c.printPlans(stdout, plans, skipped, bad)
	if bad > 0 {
		return ExitFailed
	}
	return ExitDone
}

func add(plans map[string]*plan, r batchfile.Request) {
	e := estimate.Inspect(r.Body, estimate.Options{Path: r.URL})
	p := plans[e.Model]
	if p == nil {
		p = &plan{capped: true}
		plans[e.Model] = p
	}
	p.requests++
	p.input += e.Input
	if e.Kind == "embeddings" {
		return
	}
	expected := int64(estimate.FirstOutput)
	if e.OutputCap > 0 {
		expected = min(expected, e.OutputCap)
		p.most += e.OutputCap * e.Choices
	} else {
		p.capped = false
	}
	p.output += expected * e.Choices
}

func (c *config) printPlans(w io.Writer, plans map[string]*plan, skipped, bad int64) {
	names := make([]string, 0, len(plans))
	var all plan
	all.capped = true
	var cost, most nano
	unpriced := 0
	for name, p := range plans {
		names = append(names, name)
		all.requests, all.input, all.output, all.most = all.requests+p.requests, all.input+p.input, all.output+p.output, all.most+p.most
		all.capped = all.capped && p.capped
	}
	slices.Sort(names)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")+"\t") }
	head := []string{"model", "requests", "tokens in", "out, expected", "out, at most", "minutes"}
	if c.prices != nil {
		head = append(head, "cost, expected", "cost, at most")
	}
	row(head...)
	shared, longest := plan{}, 0.0
	for _, name := range names {
		p := plans[name]
		cells := p.cells(name)
		l, own := c.models[name]
		switch {
		case own:
			m := p.minutes(l)
			longest = max(longest, m)
			cells = append(cells, minutes(m))
		case c.limits != (meter.Limits{}):
			shared.requests, shared.input, shared.output = shared.requests+p.requests, shared.input+p.input, shared.output+p.output
			cells = append(cells, "shared")
		default:
			cells = append(cells, "not known")
		}
		if c.prices != nil {
			each, ok := c.prices.of(name)
			if !ok {
				unpriced++
				cells = append(cells, "no price", "no price")
			} else {
				a, b := each.cost(p.input, 0, p.output), each.cost(p.input, 0, p.most)
				cost, most = cost+a, most+b
				cells = append(cells, a.String(), p.atMost(b.String()))
			}
		}
		row(cells...)
	}
	if c.limits != (meter.Limits{}) {
		longest = max(longest, shared.minutes(c.limits))
	}
	cells := append(all.cells("all"), minutes(longest))
	if c.prices != nil {
		cells = append(cells, cost.String(), all.atMost(most.String()))
	}
	row(cells...)
	t.Flush()
	if unpriced > 0 {
		fmt.Fprintf(w, "%d models have no price in %s; they are not in the sum\n", unpriced, c.priceFile)
	}
	if longest == 0 && all.requests > 0 {
		fmt.Fprintln(w, "the minutes are known with limits: -rpm and -tpm, or -limits")
	}
	fmt.Fprintf(w, "%d answered before, %d bad lines; nothing was sent\n", skipped, bad)
}

func (p *plan) cells(name string) []string {
	if name == "" {
		name = "(none)"
	}
	return []string{name, fmt.Sprint(p.requests), short(float64(p.input)), short(float64(p.output)), p.atMost(short(float64(p.most)))}
}

// atMost is s if every request bounds its output.
func (p *plan) atMost(s string) string {
	if !p.capped {
		return "no cap"
	}
	return s
}

// minutes is how long the requests take at limits, the slowest of which
// decides; 0 is not known.
func (p *plan) minutes(l meter.Limits) (m float64) {
	for _, x := range [][2]int64{{p.requests, l.RPM}, {p.input + p.output, l.TPM}, {p.input, l.InputTPM}, {p.output, l.OutputTPM}} {
		if x[1] > 0 {
			m = max(m, float64(x[0])/float64(x[1]))
		}
	}
	return m
}

func minutes(m float64) string {
	if m == 0 {
		return "not known"
	}
	return fmt.Sprintf("%.1f", m)
}

// readDone reads the ids of an output without changing it.
func readDone(name string, done *ids, retryFailed bool) error {
	if name == "" || name == "-" {
		return nil
	}
	f, err := os.Open(name)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	in := batchfile.NewLines(f)
	for {
		line, long, err := in.Next()
		if h, ok := batchfile.ParseHead(bytes.Trim(line, "\x00"), long); ok && h.CustomID != "" && !isLeft(h) && (h.Status/100 == 2 || !retryFailed) {
			done.mark(h.CustomID, answered)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

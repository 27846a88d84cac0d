package batch

import (
	"bytes"
	"fmt"
	"io"
	"maps"
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

// plus adds the requests of another model.
func (p *plan) plus(q *plan) {
	p.requests, p.input, p.output, p.most = p.requests+q.requests, p.input+q.input, p.output+q.output, p.most+q.most
	p.capped = p.capped && q.capped
}

// printPlans prints a row for each model, and their sum.
func (c *config) printPlans(w io.Writer, plans map[string]*plan, skipped, bad int64) {
	t := planTable{config: c, all: plan{capped: true}}
	head := []string{"model", "requests", "tokens in", "out, expected", "out, at most", "minutes"}
	if c.prices != nil {
		head = append(head, "cost, expected", "cost, at most")
	}
	rows := [][]string{head}
	for _, name := range slices.Sorted(maps.Keys(plans)) {
		rows = append(rows, t.row(name, plans[name]))
	}
	rows = append(rows, t.sum())
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, cells := range rows {
		fmt.Fprintln(out, strings.Join(cells, "\t")+"\t")
	}
	out.Flush()
	if t.unpriced > 0 {
		fmt.Fprintf(w, "%d models have no price in %s; they are not in the sum\n", t.unpriced, c.priceFile)
	}
	if t.minutes() == 0 && t.all.requests > 0 {
		fmt.Fprintln(w, "the minutes are known with limits: -rpm and -tpm, or -limits")
	}
	fmt.Fprintf(w, "%d answered before, %d bad lines; nothing was sent\n", skipped, bad)
}

// planTable adds up the plans of models, row by row.
type planTable struct {
	*config
	all        plan
	shared     plan    // of the models without limits of their own
	longest    float64 // minutes of the models with limits of their own
	cost, most nano    // as expected, and as capped
	unpriced   int     // models without a price
}

// row is the row of one model, which is then part of the sum.
func (t *planTable) row(name string, p *plan) []string {
	t.all.plus(p)
	cells := p.cells(name)
	l, own := t.models[name]
	switch {
	case own:
		m := p.minutes(l)
		t.longest = max(t.longest, m)
		cells = append(cells, minutes(m))
	case t.limits != (meter.Limits{}):
		t.shared.plus(p)
		cells = append(cells, "shared")
	default:
		cells = append(cells, "not known")
	}
	if t.prices == nil {
		return cells
	}
	each, ok := t.prices.of(name)
	if !ok {
		t.unpriced++
		return append(cells, "no price", "no price")
	}
	a, b := each.cost(p.input, 0, p.output), each.cost(p.input, 0, p.most)
	t.cost, t.most = t.cost+a, t.most+b
	return append(cells, a.String(), p.atMost(b.String()))
}

// minutes is how long the whole takes; 0 is not known.
func (t *planTable) minutes() float64 { return max(t.longest, t.shared.minutes(t.limits)) }

// sum is the last row.
func (t *planTable) sum() []string {
	cells := append(t.all.cells("all"), minutes(t.minutes()))
	if t.prices != nil {
		cells = append(cells, t.cost.String(), t.all.atMost(t.most.String()))
	}
	return cells
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
		if h, ok := batchfile.ParseHead(bytes.Trim(line, "\x00"), long); ok && h.CustomID != "" && keepsAnswer(h, retryFailed) {
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

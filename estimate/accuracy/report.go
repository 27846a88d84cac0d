// Package accuracy sets estimates against the usage that came back, so that the error
// on one's own traffic can be seen. Most callers log a line of JSON for each answer and
// give the log to [Report.Read]. It is not part of what a call passes through.
package accuracy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"
)

// A Report sets estimates against the usage that came back, by model, so that
// the error on one's own traffic can be seen. The zero value is ready. It
// keeps a few bytes for each pair and is not safe for concurrent use.
type Report struct {
	models map[string]*reportModel
}

type reportModel struct {
	errors            []float64 // estimated/actual - 1
	estimated, actual float64   // sums, tokens
}

// Line is one model's line of a [Report]. Errors are in percent of the
// actual tokens.
type Line struct {
	Model            string
	N                int     // answers
	Estimated        float64 // tokens, summed
	Actual           float64 // tokens, summed
	MeanError        float64 // mean size of the error
	Bias             float64 // mean error with its sign; below zero: underestimated
	P95Underestimate float64 // nineteen answers in twenty were underestimated by no more; 0 if they were not
}

// Add takes one answer: tokens estimated and tokens used. A pair whose numbers
// are not positive says nothing and is ignored.
func (r *Report) Add(model string, estimated, actual int64) {
	if estimated <= 0 || actual <= 0 {
		return
	}
	if r.models == nil {
		r.models = make(map[string]*reportModel)
	}
	m := r.models[model]
	if m == nil {
		m = new(reportModel)
		r.models[model] = m
	}
	m.errors = append(m.errors, float64(estimated)/float64(actual)-1)
	m.estimated += float64(estimated)
	m.actual += float64(actual)
}

// Read adds a log of JSON lines, each an object with the members model (a
// string), estimated and actual (whole numbers of tokens); other members are
// ignored, and so are blank lines. It stops at the first line that is not such an
// object, or is longer than 1 MiB, with an error that names it; the lines
// before it have been added.
func (r *Report) Read(log io.Reader) error {
	s := bufio.NewScanner(log)
	s.Buffer(nil, 1<<20)
	line := 0
	for s.Scan() {
		line++
		if len(bytes.TrimSpace(s.Bytes())) == 0 {
			continue
		}
		var e struct {
			Model     *string
			Estimated *int64
			Actual    *int64
		}
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			return fmt.Errorf("estimate: report: line %d: %w", line, err)
		}
		if e.Model == nil || e.Estimated == nil || e.Actual == nil {
			return fmt.Errorf("estimate: report: line %d: model, estimated and actual are needed", line)
		}
		r.Add(*e.Model, *e.Estimated, *e.Actual)
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("estimate: report: line %d: %w", line+1, err)
	}
	return nil
}

// Lines returns the report, by the name of the model.
func (r *Report) Lines() []Line {
	var out []Line
	for _, name := range slices.Sorted(maps.Keys(r.models)) {
		m := r.models[name]
		l := Line{Model: name, N: len(m.errors), Estimated: m.estimated, Actual: m.actual}
		for _, e := range m.errors {
			l.MeanError += 100 * math.Abs(e) / float64(l.N)
			l.Bias += 100 * e / float64(l.N)
		}
		sorted := slices.Sorted(slices.Values(m.errors))
		l.P95Underestimate = max(0, -100*sorted[l.N/20])
		out = append(out, l)
	}
	return out
}

// WriteTo prints the report as a table.
func (r *Report) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "model\tanswers\testimated\tactual\tmean error\tbias\tp95 underestimate")
	for _, l := range r.Lines() {
		fmt.Fprintf(t, "%s\t%d\t%.0f\t%.0f\t%.1f %%\t%+.1f %%\t%.1f %%\n",
			plain(l.Model), l.N, l.Estimated, l.Actual, l.MeanError, l.Bias, l.P95Underestimate)
	}
	t.Flush()
	return b.WriteTo(w)
}

// plain quotes a name that would spoil a table or a terminal.
func plain(name string) string {
	if q := strconv.Quote(name); q[1:len(q)-1] != name || name == "" {
		return q
	}
	return name
}

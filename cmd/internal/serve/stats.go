package serve

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// stats are the counts that /metrics shows. Their labels are names of the
// configuration and statuses, never anything of a call.
type stats struct {
	mu     sync.Mutex
	counts map[string]float64 // by name and labels
}

func newStats() *stats { return &stats{counts: map[string]float64{}} }

func (s *stats) add(n float64, name string, labels ...string) {
	var b strings.Builder
	b.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		b.WriteString([]string{"{", ","}[min(i, 1)])
		fmt.Fprintf(&b, "%s=%q", labels[i], labels[i+1])
	}
	if len(labels) > 0 {
		b.WriteString("}")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[b.String()] += n
}

func (s *stats) begin(upstream string) {
	s.add(1, "tripmeter_gateway_calls_under_way", "upstream", upstream)
}

// end counts a call whose answer began, or that got none.
func (s *stats) end(upstream string, status int, err error) {
	s.add(-1, "tripmeter_gateway_calls_under_way", "upstream", upstream)
	what := fmt.Sprint(status)
	if err != nil {
		what = "error"
	}
	s.add(1, "tripmeter_gateway_calls_total", "upstream", upstream, "status", what)
}

func (s *stats) waited(upstream string, d time.Duration) {
	s.add(1, "tripmeter_gateway_admitted_total", "upstream", upstream)
	s.add(d.Seconds(), "tripmeter_gateway_wait_seconds_total", "upstream", upstream)
}

func (s *stats) attempt(upstream string, status int) {
	s.add(1, "tripmeter_gateway_attempts_total", "upstream", upstream, "status", fmt.Sprint(status))
}

func (s *stats) settled(upstream string, input, output int64) {
	s.add(float64(input), "tripmeter_gateway_tokens_total", "upstream", upstream, "side", "input")
	s.add(float64(output), "tripmeter_gateway_tokens_total", "upstream", upstream, "side", "output")
}

func (s *stats) denied(code string) { s.add(1, "tripmeter_gateway_denied_total", "code", code) }

// write writes every count in the text format of Prometheus, and the credit of
// the limits of t.
func (s *stats) write(w io.Writer, t *table) {
	s.mu.Lock()
	counts := maps.Clone(s.counts)
	s.mu.Unlock()
	last := ""
	kind := func(series string) {
		name, _, _ := strings.Cut(series, "{")
		if name != last {
			last = name
			is := "gauge"
			if strings.HasSuffix(name, "_total") {
				is = "counter"
			}
			fmt.Fprintf(w, "# TYPE %s %s\n", name, is)
		}
	}
	for _, series := range slices.Sorted(maps.Keys(counts)) {
		kind(series)
		fmt.Fprintf(w, "%s %g\n", series, counts[series])
	}
	var credit []string
	for _, u := range t.upstreams {
		waiting, inFlight := 0, 0
		u.mu.Lock()
		meters := slices.Collect(maps.Values(u.meters))
		common := u.meters[""]
		u.mu.Unlock()
		for _, m := range meters {
			for _, state := range m.State() {
				waiting += state.Waiting
				inFlight += state.InFlight
				for _, l := range state.Limits {
					if m == common { // the keys of clients have no name
						credit = append(credit, fmt.Sprintf("tripmeter_credit{upstream=%q,model=%q,limit=%q} %d", u.Name, state.Model, l.Name, l.Credit-l.Debt))
					}
				}
			}
		}
		credit = append(credit,
			fmt.Sprintf("tripmeter_waiting{upstream=%q} %d", u.Name, waiting),
			fmt.Sprintf("tripmeter_in_flight{upstream=%q} %d", u.Name, inFlight))
	}
	slices.Sort(credit)
	for _, line := range credit {
		kind(line)
		fmt.Fprintln(w, line)
	}
}

package serve

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	seen "github.com/tripmeter/tripmeter/meter"
	"github.com/tripmeter/tripmeter/prommeter"
)

// stats are what /metrics shows: what package prommeter knows of the calls, and
// what the gateway itself answers. Labels are names of the configuration and
// statuses, never anything of a call.
type stats struct {
	registry *prometheus.Registry
	calls    *prometheus.CounterVec // by upstream and status
	denied   *prometheus.CounterVec // by code
}

func newStats(m *seen.Meter) *stats {
	s := &stats{
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tripmeter_gateway_calls_total",
			Help: "Calls that were passed on, by the status of the answer; error is none.",
		}, []string{"upstream", "status"}),
		denied: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tripmeter_gateway_denied_total",
			Help: "Calls that the gateway answered itself, by the code of its error.",
		}, []string{"code"}),
	}
	s.registry.MustRegister(prommeter.New(m, prommeter.Options{}), s.calls, s.denied,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}

// answered counts a call whose answer began, or that got none.
func (s *stats) answered(upstream string, resp *http.Response, err error) {
	status := "error"
	if err == nil {
		status = strconv.Itoa(resp.StatusCode)
	}
	s.calls.WithLabelValues(upstream, status).Inc()
}

func (s *stats) refused(code string) { s.denied.WithLabelValues(code).Inc() }

func (s *stats) handler() http.Handler {
	return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{})
}

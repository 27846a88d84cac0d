// Package prommeter shows a [meter.Meter] to Prometheus.
//
//	m := meter.New(meter.Options{})
//	rt, err := transport.New(transport.Options{Trace: m.Trace("openai")})
//	m.Watch("openai", rt)
//	prometheus.MustRegister(prommeter.New(m, prommeter.Options{}))
//
// The names are those of [meter.Meter.Metrics] in Prometheus' spelling: counters
// end in _total, times in _seconds, such as tripmeter_calls_admitted_total and
// tripmeter_wait_seconds. A call costs what the Meter costs; everything else is
// done when Prometheus asks.
//
// Waits under pacing are spread evenly up to the time of one turn, so a threshold
// on a quantile fires for a limiter that works. Alert on the mean:
//
//	rate(tripmeter_wait_seconds_sum[5m]) / rate(tripmeter_wait_seconds_count[5m]) > 30
package prommeter

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/tripmeter/tripmeter/meter"
)

// Options configure [New]. The zero value is fine.
type Options struct {
	// GenAI says which names of OpenTelemetry's GenAI conventions are shown.
	// The zero value is those that dashboards have; meter.GenAIFrom reads the
	// conventions' own switch from the environment.
	GenAI meter.GenAI

	// Labels are added to every series. They must not be labels of a metric.
	Labels prometheus.Labels
}

// New returns a collector of what m holds, to be registered once.
func New(m *meter.Meter, o Options) prometheus.Collector {
	c := &collector{m: m, genAI: o.GenAI}
	for _, v := range m.Metrics(o.GenAI) {
		labels := make([]string, len(v.Labels))
		for i, l := range v.Labels {
			labels[i] = strings.ReplaceAll(l, ".", "_")
		}
		c.descs = append(c.descs, prometheus.NewDesc(Name(v), v.Help, labels, o.Labels))
	}
	return c
}

type collector struct {
	m     *meter.Meter
	genAI meter.GenAI
	descs []*prometheus.Desc // in the order of Metrics, which is always the same
}

// Name is what Prometheus calls a metric.
func Name(m meter.Metric) string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	if m.Unit == "s" {
		name += "_seconds"
	}
	if m.Kind == meter.Counter {
		name += "_total"
	}
	return name
}

// Describe implements [prometheus.Collector].
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect implements [prometheus.Collector]. It reads the state of every watched
// budget.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	for i, v := range c.m.Metrics(c.genAI) {
		for _, p := range v.Points {
			to <- metric(c.descs[i], v.Kind, p)
		}
	}
}

func metric(d *prometheus.Desc, kind meter.Kind, p meter.Point) prometheus.Metric {
	var m prometheus.Metric
	var err error
	switch kind {
	case meter.Distributed:
		buckets := make(map[float64]uint64, len(p.Histogram.Bounds))
		sum := uint64(0)
		for i, bound := range p.Histogram.Bounds {
			sum += p.Histogram.Buckets[i]
			buckets[bound] = sum
		}
		m, err = prometheus.NewConstHistogram(d, p.Histogram.Count, p.Histogram.Sum, buckets, utf8(p.Values)...)
	case meter.Counter:
		m, err = prometheus.NewConstMetric(d, prometheus.CounterValue, p.Value, utf8(p.Values)...)
	default:
		m, err = prometheus.NewConstMetric(d, prometheus.GaugeValue, p.Value, utf8(p.Values)...)
	}
	if err != nil {
		return prometheus.NewInvalidMetric(d, err)
	}
	return m
}

// utf8 mends the names of tenants and scopes, which come from the program: one
// that is no UTF-8 would cost the whole scrape.
func utf8(values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = strings.ToValidUTF8(v, "\uFFFD")
	}
	return out
}

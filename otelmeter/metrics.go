package otelmeter

import (
	"context"
	"os"
	"time"

	"github.com/tripmeter/tripmeter/meter"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
)

// ScopeName is the instrumentation scope of metrics and spans.
const ScopeName = "github.com/tripmeter/tripmeter/otelmeter"

// Options configure [NewProducer] and [NewSpans]. The zero value is fine.
type Options struct {
	// GenAI says which names of the GenAI conventions are exported, where the
	// environment's OTEL_SEMCONV_STABILITY_OPT_IN does not ask for the latest.
	GenAI meter.GenAI

	// TracerProvider makes the spans; nil is the global one.
	TracerProvider trace.TracerProvider
}

func (o Options) genAI() meter.GenAI {
	if o.GenAI == meter.Stable {
		return meter.GenAIFrom(os.Getenv("OTEL_SEMCONV_STABILITY_OPT_IN"))
	}
	return o.GenAI
}

// NewProducer returns a producer of the metrics of m. It is given to one reader,
// with metric.WithProducer.
func NewProducer(m *meter.Meter, o Options) metric.Producer {
	return &producer{m: m, genAI: o.genAI(), start: time.Now()}
}

type producer struct {
	m     *meter.Meter
	genAI meter.GenAI
	start time.Time
}

// Produce implements [metric.Producer]. It reads the state of every watched budget.
func (p *producer) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now := time.Now()
	all := p.m.Metrics(p.genAI)
	out := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: ScopeName}, Metrics: make([]metricdata.Metrics, 0, len(all))}
	for _, v := range all {
		out.Metrics = append(out.Metrics, metricdata.Metrics{
			Name: v.Name, Description: v.Help, Unit: v.Unit, Data: p.data(v, now),
		})
	}
	return []metricdata.ScopeMetrics{out}, nil
}

func (p *producer) data(v meter.Metric, now time.Time) metricdata.Aggregation {
	if v.Kind == meter.Distributed {
		h := metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
		for _, d := range v.Points {
			h.DataPoints = append(h.DataPoints, metricdata.HistogramDataPoint[float64]{
				Attributes: attributes(v.Labels, d.Values), StartTime: p.start, Time: now,
				Count: d.Histogram.Count, Sum: d.Histogram.Sum,
				Bounds: d.Histogram.Bounds, BucketCounts: d.Histogram.Buckets,
			})
		}
		return h
	}
	var points []metricdata.DataPoint[float64]
	for _, d := range v.Points {
		points = append(points, metricdata.DataPoint[float64]{
			Attributes: attributes(v.Labels, d.Values), StartTime: p.start, Time: now, Value: d.Value,
		})
	}
	if v.Kind == meter.Gauge {
		return metricdata.Gauge[float64]{DataPoints: points}
	}
	return metricdata.Sum[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality, IsMonotonic: true}
}

// attributes leaves out the empty error.type of a success, which the conventions
// want absent.
func attributes(labels, values []string) attribute.Set {
	kvs := make([]attribute.KeyValue, 0, len(labels))
	for i, l := range labels {
		if l == "error.type" && values[i] == "" {
			continue
		}
		kvs = append(kvs, attribute.String(l, values[i]))
	}
	return attribute.NewSet(kvs...)
}

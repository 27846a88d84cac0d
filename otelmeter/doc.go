// Package otelmeter shows a [meter.Meter] to OpenTelemetry, and makes a span of
// each call.
//
// Metrics come through a producer, which a reader of the SDK asks:
//
//	m := meter.New(meter.Options{})
//	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(otelmeter.NewProducer(m, otelmeter.Options{})))
//	provider := metric.NewMeterProvider(metric.WithReader(reader))
//
// A producer can export histograms that were counted elsewhere, so a call costs
// what the Meter costs, and nothing more.
//
// Spans come through a RoundTripper above the Transport, which puts a span into
// the request's context, and hooks that fill it in:
//
//	spans := otelmeter.NewSpans(otelmeter.Options{})
//	rt, err := transport.New(transport.Options{Trace: meter.Join(m.Trace("openai"), spans.Trace())})
//	client := &http.Client{Transport: spans.Wrap(rt)}
//
// One span covers the logical call: the line, all attempts, and the body to its
// end. Each attempt is an event with http.request.resend_count. What otelhttp
// makes of an attempt, used as the Base, is a child of it.
//
// # Names
//
// The names of metrics are those of [meter.Meter.Metrics]. The GenAI conventions
// are moving: gen_ai.client.token.usage and gen_ai.client.operation.duration are
// what dashboards have and what is exported by default. The conventions' own
// switch, OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental, chooses the
// names of their release v0.1.0, gen_ai.client.inference.*, instead. The time to the
// first chunk of a stream is there under both: gen_ai.client.operation.time_to_first_chunk
// and gen_ai.client.inference.time_to_first_chunk. A repeated attempt starts it anew.
//
// Waits under pacing are spread evenly up to the time of one turn. Alert on the
// mean of tripmeter.wait, not on a quantile.
package otelmeter

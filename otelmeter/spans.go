package otelmeter

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/meter"
	"github.com/tripmeter/tripmeter/transport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Spans makes a span of each call. Its two halves belong together: [Spans.Wrap]
// above the Transport and [Spans.Trace] in it.
type Spans struct{ tracer trace.Tracer }

// NewSpans returns Spans.
func NewSpans(o Options) *Spans {
	p := o.TracerProvider
	if p == nil {
		p = otel.GetTracerProvider()
	}
	return &Spans{p.Tracer(ScopeName)}
}

// span is the span of a call on its way.
type span struct {
	trace.Span
	granted atomic.Bool
}

type spanKey struct{}

func spanOf(r *http.Request) *span {
	s, _ := r.Context().Value(spanKey{}).(*span)
	return s
}

// Wrap returns a RoundTripper that starts a span for each request and hands it to
// next. It changes nothing of request and response.
func (s *Spans) Wrap(next http.RoundTripper) http.RoundTripper { return &wrapper{s.tracer, next} }

type wrapper struct {
	tracer trace.Tracer
	next   http.RoundTripper
}

func (w *wrapper) RoundTrip(r *http.Request) (*http.Response, error) {
	operation := meter.OperationOf(r)
	kvs := []attribute.KeyValue{attribute.String("gen_ai.operation.name", operation)}
	if p := meter.ProviderOf(r); p != "" {
		kvs = append(kvs, attribute.String("gen_ai.provider.name", p))
	}
	if r.URL != nil {
		kvs = append(kvs, attribute.String("server.address", r.URL.Hostname()))
		if p, err := strconv.Atoi(r.URL.Port()); err == nil {
			kvs = append(kvs, attribute.Int("server.port", p))
		}
	}
	ctx, started := w.tracer.Start(r.Context(), operation, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(kvs...))
	sp := &span{Span: started}
	done := false
	defer func() {
		if !done { // a panic below
			sp.End()
		}
	}()
	out := r.WithContext(context.WithValue(ctx, spanKey{}, sp))
	resp, err := w.next.RoundTrip(out)
	done = true
	if err != nil {
		sp.SetStatus(codes.Error, "")
		sp.End() // the second End of a call that was settled does nothing
		return resp, err
	}
	if !sp.granted.Load() { // Options.Skip let it pass
		sp.End()
	}
	if resp.Request == out {
		resp.Request = r
	}
	return resp, nil
}

// CloseIdleConnections closes the idle connections of next, if it can.
func (w *wrapper) CloseIdleConnections() {
	if c, ok := w.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Trace returns the hooks that fill in the spans. Requests that did not come
// through [Spans.Wrap] have none, and cost a look into their context.
func (s *Spans) Trace() transport.Trace {
	return transport.Trace{
		Queued: func(r *http.Request, c limit.Cost) {
			if sp := spanOf(r); sp != nil {
				sp.note("tripmeter.queued",
					attribute.Int64("tripmeter.estimated.input_tokens", c.Input), attribute.Int64("tripmeter.estimated.output_tokens", c.Output))
			}
		},
		Granted: func(r *http.Request, _ limit.Cost, wait time.Duration) {
			if sp := spanOf(r); sp != nil {
				sp.granted.Store(true)
				sp.SetAttributes(attribute.Float64("tripmeter.wait", wait.Seconds()))
				sp.note("tripmeter.admitted")
			}
		},
		Refused: func(r *http.Request, err error) {
			if sp := spanOf(r); sp != nil {
				sp.note("tripmeter.refused", attribute.String("error.type", "tripmeter.refused"), attribute.String("tripmeter.reason", err.Error()))
				if !sp.granted.Load() {
					sp.SetAttributes(attribute.String("error.type", "tripmeter.refused"))
				}
			}
		},
		Answered: func(a transport.Attempt) {
			if sp := spanOf(a.Request); sp != nil {
				sp.attempt(a)
			}
		},
		Lowered: func(r *http.Request, dimension string, remaining int64) {
			if sp := spanOf(r); sp != nil {
				sp.note("tripmeter.lowered", attribute.String("tripmeter.limit", dimension), attribute.Int64("tripmeter.remaining", remaining))
			}
		},
		Paused: func(r *http.Request, p limit.Pause) {
			if sp := spanOf(r); sp != nil {
				sp.note("tripmeter.paused",
					attribute.Float64("tripmeter.pause", p.For.Seconds()), attribute.String("tripmeter.pause.by", p.By), attribute.String("tripmeter.pause.why", p.Why))
			}
		},
		Settled: func(e transport.Settlement) {
			if sp := spanOf(e.Request); sp != nil {
				sp.settle(e)
			}
		},
	}
}

// note adds an event.
func (sp *span) note(name string, kvs ...attribute.KeyValue) {
	sp.AddEvent(name, trace.WithAttributes(kvs...))
}

// attempt adds the event of an attempt.
func (sp *span) attempt(a transport.Attempt) {
	kvs := []attribute.KeyValue{attribute.Float64("tripmeter.attempt.duration", a.Duration.Seconds())}
	if a.N > 1 {
		kvs = append(kvs, attribute.Int("http.request.resend_count", a.N-1))
	}
	if a.Status != 0 {
		kvs = append(kvs, attribute.Int("http.response.status_code", a.Status))
	}
	// Err is the base's own, and may quote a URL: it is not recorded.
	sp.note("attempt", kvs...)
}

// settle says what the call came to, and ends its span.
func (sp *span) settle(e transport.Settlement) {
	kvs := []attribute.KeyValue{
		attribute.Int("tripmeter.attempts", e.Attempts),
		attribute.Int64("tripmeter.charged.input_tokens", e.Charged.Input),
		attribute.Int64("tripmeter.charged.output_tokens", e.Charged.Output),
		attribute.Bool("tripmeter.complete", e.Complete),
	}
	if e.Attempts > 1 {
		kvs = append(kvs, attribute.Int("http.request.resend_count", e.Attempts-1))
	}
	if e.Usage.Found {
		kvs = append(kvs, attribute.Int64("gen_ai.usage.input_tokens", e.Usage.Input), attribute.Int64("gen_ai.usage.output_tokens", e.Usage.Output))
	}
	switch {
	case e.Status == 0:
		kvs = append(kvs, attribute.String("error.type", "_OTHER"))
	case e.Status >= 400:
		kvs = append(kvs, attribute.Int("http.response.status_code", e.Status), attribute.String("error.type", strconv.Itoa(e.Status)))
	default:
		kvs = append(kvs, attribute.Int("http.response.status_code", e.Status))
	}
	sp.SetAttributes(kvs...)
	if e.Status == 0 || e.Status >= 400 {
		sp.SetStatus(codes.Error, "")
	}
	sp.End()
}

package meter

import "github.com/tripmeter/tripmeter/transport"

// Join returns hooks that call those of every trace, in order. A hook that no
// trace has stays nil, and costs nothing.
func Join(traces ...transport.Trace) transport.Trace {
	var out transport.Trace
	for _, t := range traces {
		out = transport.Trace{
			Who:          join3(out.Who, t.Who),
			Queued:       join2(out.Queued, t.Queued),
			Granted:      join3(out.Granted, t.Granted),
			Refused:      join2(out.Refused, t.Refused),
			Answered:     join1(out.Answered, t.Answered),
			Lowered:      join3(out.Lowered, t.Lowered),
			Paused:       join2(out.Paused, t.Paused),
			LimitChanged: join2(out.LimitChanged, t.LimitChanged),
			LawChanged:   join2(out.LawChanged, t.LawChanged),
			Settled:      join1(out.Settled, t.Settled),
			Doubted:      join2(out.Doubted, t.Doubted),
		}
	}
	return out
}

func join1[A any](f, g func(A)) func(A) {
	if f == nil || g == nil {
		if f == nil {
			return g
		}
		return f
	}
	return func(a A) { f(a); g(a) }
}

func join2[A, B any](f, g func(A, B)) func(A, B) {
	if f == nil || g == nil {
		if f == nil {
			return g
		}
		return f
	}
	return func(a A, b B) { f(a, b); g(a, b) }
}

func join3[A, B, C any](f, g func(A, B, C)) func(A, B, C) {
	if f == nil || g == nil {
		if f == nil {
			return g
		}
		return f
	}
	return func(a A, b B, c C) { f(a, b, c); g(a, b, c) }
}

package limit

import "context"

// Do waits for cost, runs fn, and keeps the cost: any call, such as a tool's,
// limited in one line. If fn is never run the error is an [*Error] of
// [Limiter.Acquire]. A panic in fn keeps the cost too.
func Do[T any](ctx context.Context, l *Limiter, cost Cost, fn func(context.Context) (T, error)) (T, error) {
	r, err := l.Acquire(ctx, cost)
	if err != nil {
		var zero T
		return zero, err
	}
	defer r.Keep()
	return fn(ctx)
}

// Wrap returns fn limited: a function of the same shape that waits its turn.
func Wrap[T any](l *Limiter, cost Cost, fn func(context.Context) (T, error)) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) { return Do(ctx, l, cost, fn) }
}

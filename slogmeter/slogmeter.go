// Package slogmeter writes the life of calls to a [slog.Logger].
//
//	rt, err := transport.New(transport.Options{Trace: slogmeter.Trace(slog.Default(), slogmeter.Options{})})
//
// Debug has one line a call. Info has what concerns all calls: a pause, a limit
// that answers changed. Warn has what needs a person: calls that the limiter
// refused, and a charge rule that answers contradict.
//
// # The promise
//
// No line has a key, a prompt, a header or a URL. A level that is off costs one
// question to the handler, and no allocation.
package slogmeter

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

// Options configure [Trace]. The zero value is fine.
type Options struct {
	// Budget is written as the attribute budget of each line, if it is set.
	Budget string

	// Tenant names the tenant of a request in the line of its call; nil names
	// none. Never return a key.
	Tenant func(*http.Request) string

	// Call is the level of the line of each call; nil is Debug. Change is that of
	// a pause or a changed limit; nil is Info. Refusal is that of a call that the
	// limiter refused; nil is Warn.
	Call, Change, Refusal slog.Leveler
}

// Trace returns hooks that write to l. Use meter.Join to have others beside them.
func Trace(l *slog.Logger, o Options) transport.Trace {
	if o.Budget != "" {
		l = l.With("budget", o.Budget)
	}
	call, change, refusal := level(o.Call, slog.LevelDebug), level(o.Change, slog.LevelInfo), level(o.Refusal, slog.LevelWarn)
	return transport.Trace{
		Refused: func(r *http.Request, err error) {
			ctx := r.Context()
			if l.Enabled(ctx, refusal.Level()) {
				l.LogAttrs(ctx, refusal.Level(), "call refused by the limiter", o.with(r, slog.String("error", err.Error()))...)
			}
		},
		Paused: func(r *http.Request, p limit.Pause) {
			ctx := r.Context()
			if l.Enabled(ctx, change.Level()) {
				l.LogAttrs(ctx, change.Level(), "paused", o.with(r, slog.Duration("for", p.For), slog.String("by", p.By), slog.String("why", p.Why))...)
			}
		},
		LimitChanged: func(old, new limit.Limit) {
			// A burst moves with every large call; the rate is what people know.
			if old.Rate != new.Rate && l.Enabled(context.Background(), change.Level()) {
				l.LogAttrs(context.Background(), change.Level(), "limit changed",
					slog.String("limit", new.Name), slog.String("from", old.Rate.String()), slog.String("to", new.Rate.String()))
			}
		},
		LawChanged: func(_, new limit.Limit) {
			if l.Enabled(context.Background(), change.Level()) {
				l.LogAttrs(context.Background(), change.Level(), "law of a limit", slog.String("limit", new.Name),
					slog.String("law", new.Law.Shape.String()), slog.String("why", new.LawWhy))
			}
		},
		Settled: func(s transport.Settlement) {
			ctx := s.Request.Context()
			if !l.Enabled(ctx, call.Level()) {
				return
			}
			attrs := o.with(s.Request,
				slog.Int("status", s.Status), slog.Int("attempts", s.Attempts),
				slog.Int64("estimated", s.Reserved.Input+s.Reserved.Output), slog.Int64("charged", s.Charged.Input+s.Charged.Output),
				slog.Bool("complete", s.Complete))
			if s.Usage.Found {
				attrs = append(attrs, slog.Int64("input", s.Usage.Input), slog.Int64("output", s.Usage.Output))
			}
			l.LogAttrs(ctx, call.Level(), "call", attrs...)
		},
		Doubted: func(profile, seen string) {
			l.LogAttrs(context.Background(), slog.LevelWarn, "answers contradict the charge rule",
				slog.String("rule", profile), slog.String("seen", seen),
				slog.String("do", "set Provider to a profile.Charging what was seen, or FollowRule"))
		},
	}
}

func level(l slog.Leveler, otherwise slog.Level) slog.Leveler {
	if l == nil {
		return otherwise
	}
	return l
}

func (o *Options) with(r *http.Request, attrs ...slog.Attr) []slog.Attr {
	if o.Tenant != nil {
		attrs = append(attrs, slog.String("tenant", o.Tenant(r)))
	}
	return attrs
}

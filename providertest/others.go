package providertest

import "time"

// traffic is one Load on its way. It has no answers: a call is charged, and
// settled, at the instant it is judged.
type traffic struct {
	Load
	next     int64 // ns since the start; never when it is over
	admitted int64
	refused  int64
}

// newTraffic is every load of an account. The first account has the loads that
// name none.
func newTraffic(loads []Load, account string, first bool) []traffic {
	var out []traffic
	for _, l := range loads {
		if l.Account == account || l.Account == "" && first {
			out = append(out, traffic{Load: l, next: int64(l.From)})
		}
	}
	return out
}

// call judges the call whose time has come, and plans the next one.
func (t *traffic) call(e *engine) {
	at := t.next
	p := price{model: t.Model, estimate: t.Input, prompt: t.Input, cap: t.Output, output: t.Output, produces: t.Output > 0}
	if v := e.judge(at, p); v.reason == "" {
		e.admit(at, p)
		e.finish(at, at, p, false, false)
		t.admitted++
	} else {
		t.refused++
	}
	t.next = at + int64(t.Every)
	if t.Until > 0 && t.next >= int64(t.Until) || t.next < at {
		t.next = never
	}
}

// outage is the answer that an outage has for a model at an instant.
func (o *Options) outage(model string, at time.Duration) (Step, bool) {
	for _, u := range o.Outages {
		if (u.Model == "" || u.Model == model) && at >= u.From && (u.For == 0 || at < u.From+u.For) {
			return u.Step, true
		}
	}
	return Step{}, false
}

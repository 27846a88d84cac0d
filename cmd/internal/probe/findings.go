package probe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

// dimension is one limit as the answers showed it.
type dimension struct {
	name     string // "requests", "tokens", "input tokens", "output tokens"
	field    string // of transport.Options, for a limit a minute
	readings []reading
}

// reading is a limit in one answer.
type reading struct {
	quota headers.Quota
	of    *answer
}

// findings is what a few answers show.
type findings struct {
	profile profile.Profile
	found   string // how the profile was found
	answers []answer
	dims    []*dimension
	retry   time.Duration // Retry-After that applies, 0 none
	unread  int
}

// study reads the headers of all answers.
func study(answers []answer, p profile.Profile, found string) *findings {
	f := &findings{profile: p, found: found, answers: answers}
	for i := range answers {
		a := &answers[i]
		h := headers.Parse(a.header, headers.Options{Status: a.status, Now: a.sent.Add(a.took), Dialect: p.Dialect})
		f.unread += h.Unread
		if h.Applies && h.NotBefore.OK {
			f.retry = max(f.retry, h.NotBefore.D)
		}
		for _, d := range []struct {
			name, field string
			q           headers.Quota
		}{
			{"requests", "RPM", h.Requests}, {"tokens", "TPM", h.Tokens},
			{"input tokens", "InputTPM", h.Input}, {"output tokens", "OutputTPM", h.Output},
		} {
			f.add(d.name, d.field, d.q, a)
		}
		for _, w := range h.Windows {
			f.add(strings.ReplaceAll(w.Dimension, "_", " ")+" (further window)", "", w.Quota, a)
		}
		for _, n := range h.Other {
			f.add(strings.ReplaceAll(n.Name, "_", " "), "", n.Quota, a)
		}
	}
	return f
}

func (f *findings) add(name, field string, q headers.Quota, a *answer) {
	if !q.Limit.OK && !q.Remaining.OK && !q.Reset.OK {
		return
	}
	i := slices.IndexFunc(f.dims, func(d *dimension) bool { return d.name == name })
	if i < 0 {
		f.dims = append(f.dims, &dimension{name: name, field: field})
		i = len(f.dims) - 1
	}
	f.dims[i].readings = append(f.dims[i].readings, reading{q, a})
}

// last is the newest reading of a dimension.
func (d *dimension) last() headers.Quota { return d.readings[len(d.readings)-1].quota }

// limit is the number that the headers name, 0 if they name none.
func (d *dimension) limit() int64 {
	for _, r := range slices.Backward(d.readings) {
		if r.quota.Limit.OK {
			return r.quota.Limit.N
		}
	}
	return 0
}

// window is its length, and how it is known: "" if it is not.
func (d *dimension) window() (time.Duration, string) {
	for _, r := range d.readings {
		if r.quota.Window > 0 {
			return r.quota.Window, "stated"
		}
	}
	// Arithmetic on one answer may err; it is believed if all that say something
	// say the same.
	var w time.Duration
	for _, r := range d.readings {
		if x := r.quota.Inferred; x > 0 {
			if w != 0 && x != w {
				return 0, ""
			}
			w = x
		}
	}
	if w > 0 {
		return w, "inferred from reset = missing x window / limit"
	}
	return 0, ""
}

// law is the kind of the limit that the readings fit, and what they do not show.
func (d *dimension) law() string {
	resets, linear, missing := 0, 0, 0
	window, _ := d.window()
	for _, r := range d.readings {
		q := r.quota
		if !q.Limit.OK || !q.Remaining.OK || q.Limit.N <= q.Remaining.N {
			continue
		}
		missing++
		if q.Reset.OK && q.Reset.D > 0 {
			resets++
			if linearReset(q, window) {
				linear++
			}
		}
	}
	switch {
	case linear > 0 && linear == resets:
		return "a bucket that refills evenly: each reset is what is missing at the rate of the limit"
	case resets > 0:
		return "not known: the resets are not what is missing at the rate of the limit; a fixed window would look like this"
	case missing > 0:
		return "not known: the headers have no reset; a sliding window would look like this, and so would others"
	case len(d.readings) > 0 && d.last().Remaining.OK:
		return "not known: the small calls left the limit full"
	}
	return "not known: the headers do not say what is left"
}

// fields are the names that a dimension's header fields may have.
func (d *dimension) fields() []string {
	switch d.name {
	case "requests":
		return []string{"requests", "req-minute"}
	case "tokens":
		return []string{"tokens", "tokens-minute"}
	}
	return []string{strings.ReplaceAll(d.name, " ", "-")}
}

// at is when the newest answer came.
func (f *findings) at() time.Time {
	if t := f.answers[len(f.answers)-1].sent; !t.IsZero() {
		return t
	}
	return time.Now()
}

// recordedLaw is what the profile table knows of a field at a time.
func recordedLaw(provider string, fields []string, at time.Time) string {
	for _, field := range fields {
		l, ok := profile.LawFor(provider, field, at)
		if !ok {
			continue
		}
		text := l.Shape.String()
		if l.Shape == limit.ShapeUnknown {
			text = "not known"
		}
		if l.Unused {
			text = "no counter: neither a balance nor evidence"
		}
		if l.FirstCall {
			text += ", from the first call on"
		}
		if l.Scope != profile.ScopeUnknown {
			text += ", of " + l.Scope.String()
		}
		return text
	}
	return "not known"
}

// linearReset reports whether a reset is the time in which a bucket refills what
// is missing. Remaining is rounded down, so up to one unit less may be missing;
// the reset is rounded down too, to a second by some.
func linearReset(q headers.Quota, window time.Duration) bool {
	if window <= 0 {
		return false
	}
	each := float64(window) / float64(q.Limit.N)
	most := each * float64(q.Limit.N-q.Remaining.N)
	unit := float64(time.Millisecond)
	if q.Reset.D%time.Second == 0 {
		unit = float64(time.Second)
	}
	return float64(q.Reset.D) <= most+unit && float64(q.Reset.D) >= most-each-unit
}

// rule is what a charge rule says a call cost.
type rule struct {
	name string
	cost func(a *answer) (int64, bool)
}

var rules = []rule{
	{"a quarter of the characters of the prompt, nothing of the output", func(a *answer) (int64, bool) {
		return a.asked.Quarters + a.asked.Messages + 1, a.asked.Understood
	}},
	{"the tokens of the prompt, nothing of the output", func(a *answer) (int64, bool) {
		return a.counts.Input.N, a.counts.Input.OK
	}},
	{"the tokens of the prompt and of the output", func(a *answer) (int64, bool) {
		return a.counts.Input.N + a.counts.Output.N, a.counts.Input.OK && a.counts.Output.OK
	}},
	{"the tokens of the prompt and the output cap", func(a *answer) (int64, bool) {
		return a.counts.Input.N + a.asked.OutputCap, a.counts.Input.OK && a.asked.OutputCap > 0
	}},
	{"a quarter of the characters of the prompt and the output cap", func(a *answer) (int64, bool) {
		return a.asked.Quarters + a.asked.Messages + 1 + a.asked.OutputCap, a.asked.Understood && a.asked.OutputCap > 0
	}},
}

// charge is the rule that the token readings fit best, and how it fits.
func (f *findings) charge() string {
	i := slices.IndexFunc(f.dims, func(d *dimension) bool { return d.name == "tokens" })
	if i < 0 {
		return "not known: the headers have no limit of tokens together"
	}
	d := f.dims[i]
	best, bestOff, seen := "", int64(-1), 0
	for _, r := range rules {
		off, n := int64(0), 0
		for _, x := range d.readings {
			missing, ok := d.missing(x)
			cost, can := r.cost(x.of)
			if !ok || !can {
				continue
			}
			n++
			off += max(missing-cost, cost-missing)
		}
		seen = max(seen, n)
		if n > 0 && n == seen && (bestOff < 0 || off/int64(n) < bestOff) {
			best, bestOff = r.name, off/int64(n)
		}
	}
	switch {
	case seen == 0:
		return "not known: the limit was full again, or shows no call alone"
	case bestOff > 3:
		return fmt.Sprintf("not known: the rule nearest to the headers, %s, is %d tokens off", best, bestOff)
	}
	return fmt.Sprintf("%s (%d answers, %d tokens off on average)", best, seen, bestOff)
}

// missing is what a reading shows one call alone to have been charged: of the
// first, or of one before which the limit was full again.
func (d *dimension) missing(x reading) (int64, bool) {
	q := x.quota
	if !q.Limit.OK || !q.Remaining.OK || q.Limit.N <= q.Remaining.N {
		return 0, false
	}
	if i := slices.IndexFunc(d.readings, func(r reading) bool { return r.of == x.of }); i > 0 {
		before := d.readings[i-1]
		if !before.quota.Reset.OK || before.of.sent.Add(before.of.took+before.quota.Reset.D).After(x.of.sent) {
			return 0, false
		}
	}
	return q.Limit.N - q.Remaining.N, true
}

// options is a literal for a program.
func (f *findings) options() string {
	var b strings.Builder
	b.WriteString("transport.Options{\n")
	if f.profile.Name != "unknown" {
		fmt.Fprintf(&b, "\t// The profile %q is found by the host; behind another one, set Provider.\n", f.profile.Name)
	}
	for _, d := range f.dims {
		n := d.limit()
		w, how := d.window()
		if d.field == "" || n == 0 {
			continue
		}
		field, comment := d.field, "a minute, "+how
		switch {
		case w == time.Minute:
		case w == 24*time.Hour && (field == "RPM" || field == "TPM"):
			field, comment = strings.Replace(field, "PM", "PD", 1), "a day, "+how
		case w == 0:
			comment = "taken for a minute: the headers name no window"
		default:
			fmt.Fprintf(&b, "\t// %s: %d each %v; see Options.Limits\n", d.name, n, w)
			continue
		}
		fmt.Fprintf(&b, "\t%s: %s, // %s\n", field, underscored(n), comment)
	}
	b.WriteString("}")
	return b.String()
}

// underscored writes 200000 as 200_000.
func underscored(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "_" + s[i:]
	}
	return s
}

// print says everything to a person.
func (f *findings) print(p func(format string, args ...any)) {
	p("Provider     %s (%s)", f.profile.Name, f.found)
	if f.profile.Source != "" {
		p("Profile      from: %s, %s", f.profile.Source, f.profile.AsOf)
	}
	counts := map[int]int{}
	for _, a := range f.answers {
		counts[a.status]++
	}
	var statuses []string
	for s, n := range counts {
		statuses = append(statuses, fmt.Sprintf("%d x %d", n, s))
	}
	slices.Sort(statuses)
	p("Answers      %s", strings.Join(statuses, ", "))
	if len(f.dims) == 0 {
		p("Limits       none in the headers")
	}
	for _, d := range f.dims {
		q := d.last()
		line := fmt.Sprintf("%-12s ", strings.ToUpper(d.name[:1])+d.name[1:])
		if n := d.limit(); n > 0 {
			line += fmt.Sprintf("limit %s", underscored(n))
		} else {
			line += "limit not named"
		}
		if w, how := d.window(); w > 0 {
			line += fmt.Sprintf(" each %v (%s)", w, how)
		} else {
			line += ", window not known"
		}
		if q.Remaining.OK {
			line += fmt.Sprintf(", %s left", underscored(q.Remaining.N))
		}
		if q.Reset.OK {
			line += fmt.Sprintf(", full in %v", q.Reset.D)
		}
		p("%s", line)
		p("             law, by these answers: %s", d.law())
		p("             law, by recorded traffic: %s", recordedLaw(f.profile.Name, d.fields(), f.at()))
	}
	p("Charge       seen: %s", f.charge())
	p("             the profile: %s", ruleOf(f.profile.Rule))
	if f.retry > 0 {
		p("Retry-After  %v: tripmeter would send nothing before", f.retry)
	}
	if f.unread > 0 {
		p("Unread       %d fields have a known name and a value that is not understood", f.unread)
	}
	p("")
	p("What tripmeter does with it")
	for _, line := range f.does() {
		p("  %s", line)
	}
	p("")
	p("Options")
	for line := range strings.SplitSeq(f.options(), "\n") {
		p("  %s", line)
	}
}

// does says how a Transport treats this provider.
func (f *findings) does() (lines []string) {
	limits := 0
	for _, d := range f.dims {
		if d.field != "" && d.limit() > 0 {
			limits++
		}
	}
	if limits > 0 {
		lines = append(lines, fmt.Sprintf("With no limit configured it learns what the headers name (%d of these) from the first answer.", limits))
	} else {
		lines = append(lines, "It can learn no limit from these headers: configure RPM and TPM.")
	}
	tokens, requests := cmp.Or(f.profile.TokenBurst, 10*time.Second), cmp.Or(f.profile.RequestBurst, time.Second)
	lines = append(lines, fmt.Sprintf("After idling it lets %v of the tokens and %v of the requests go at once.", tokens, requests))
	if h := f.profile.Headroom; h > 0 && h < 100 {
		lines = append(lines, fmt.Sprintf("It uses %d %% of each limit: the edges of the window cannot be seen.", h))
	}
	if f.profile.Foreign {
		lines = append(lines, "It does not use the fields: they speak of a deployment that others share.")
	}
	return append(lines, "Headers only lower its credit; Retry-After of a refusal is kept to the letter.")
}

// ruleOf is a charge rule in words.
func ruleOf(r estimate.Rule) string {
	prompt := "the prompt's tokens"
	if r.PromptByChars {
		prompt = "a quarter of the prompt's characters"
	}
	if r.CachedFree {
		prompt += " (cached ones free)"
	}
	switch {
	case r.Charge == estimate.ChargeEstimate && r.ReserveCap:
		return prompt + " and the output cap on arrival, never corrected"
	case r.Charge == estimate.ChargeEstimate:
		return prompt + " on arrival, nothing of the output"
	case r.Charge == estimate.ChargeActual:
		return prompt + " on arrival, the output as it is produced"
	case r.ReserveCap:
		return prompt + " and the output cap on arrival, corrected at the end"
	}
	return prompt + " and the expected output on arrival, corrected at the end"
}

package law

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

// A Result is how well the law and the charge rule of one field of one provider
// foretold what answers said is left.
type Result struct {
	Provider, Field string
	Answers         int // with a known law, each exchange once
	Foretold        int // within 2 % of the limit, or 60 tokens, or one request
	Unknown         int // of which no law is known: not foretold, and not in Answers
	Unused          int // refused answers, and fields that are no counters
	Misses          []Miss
}

// Share is the part of the answers that was foretold, in per cent.
func (r Result) Share() float64 {
	if r.Answers == 0 {
		return math.NaN()
	}
	return 100 * float64(r.Foretold) / float64(r.Answers)
}

// A Miss is an answer that was not foretold.
type Miss struct {
	Sequence            string
	Answer              int // its place in the sequence, from 0
	Limit, Want, Stated int64
	Why                 string // what is known of the reason
}

// String reads like "openai-1[3]: 900 of 1000 foretold, 700 stated: first answer".
func (m Miss) String() string {
	return fmt.Sprintf("%s[%d]: %d of %d foretold, %d stated: %s", m.Sequence, m.Answer, m.Want, m.Limit, m.Stated, m.Why)
}

// A sequence is recorded calls of one account, in the file's own terms.
type sequence struct {
	ID       string   `json:"id"`
	Provider string   `json:"provider"`
	Model    names    `json:"model"`
	API      string   `json:"api"`
	Date     string   `json:"date"`
	Answers  []answer `json:"answers"`
}

type answer struct {
	T        int64             `json:"t_ms"`
	Admitted *int64            `json:"admitted_ms"`
	Err      int64             `json:"err_ms"`
	Status   int               `json:"status"`
	Fields   map[string]string `json:"fields"`
	Model    string            `json:"model"`
	Cap      int64             `json:"max_tokens"`
	Usage    *struct {
		Prompt     int64 `json:"prompt"`
		Completion int64 `json:"completion"`
		Total      int64 `json:"total"`
		Cached     int64 `json:"cached"`
		CacheWrite int64 `json:"cache_write"`
	} `json:"usage"`
	Request struct {
		Chars    int64 `json:"chars"`
		Messages int64 `json:"messages"`
		Schema   int64 `json:"schema_chars"`
		Media    int64 `json:"media"`
		Stream   bool  `json:"stream"`
	} `json:"request"`
}

// names is one model or several.
type names []string

func (n *names) UnmarshalJSON(b []byte) error {
	var one string
	if err := json.Unmarshal(b, &one); err == nil {
		*n = names{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(n))
}

// Replay runs recorded sequences through the meters, laws and debits of package
// profile for their provider and date. What remains is foretold before an answer
// is read; then its reading may lower the books, as in the client.
//
// The file is a list of sequences: each with id, provider, model, api, date and
// answers; each answer with t_ms, admitted_ms, status, fields, usage, request and
// max_tokens. Results come by provider and field. A file that is no such list is
// an error.
func Replay(r io.Reader) ([]Result, error) {
	sequences, err := decode(r)
	if err != nil {
		return nil, err
	}
	results := map[[2]string]*Result{}
	for i := range sequences {
		s := &sequences[i]
		at, err := time.Parse(time.RFC3339, s.Date)
		if err != nil {
			return nil, fmt.Errorf("law: sequence %q: date: %w", s.ID, err)
		}
		p := replay{s: s, start: at, result: func(field string) *Result {
			key := [2]string{s.Provider, field}
			if results[key] == nil {
				results[key] = &Result{Provider: s.Provider, Field: field}
			}
			return results[key]
		}}
		p.run()
	}
	var all []Result
	for _, r := range results {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b Result) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Field, b.Field))
	})
	return all, nil
}

func decode(r io.Reader) (s []sequence, err error) {
	if err := json.NewDecoder(r).Decode(&s); err != nil {
		return nil, fmt.Errorf("law: not a list of sequences: %w", err)
	}
	return s, nil
}

// counter is one limit of the account. Where a window begins with the first call,
// that call may not be recorded: so books are kept for other beginnings too, and
// those count that fitted the readings so far best.
type counter struct {
	law   profile.Law
	n     int64
	read  int // readings so far
	books []account
}

// phases is how many beginnings of a window are tried.
const phases = 30

// account is one set of books of a counter.
type account struct {
	law   profile.Law
	n     int64
	rate  limit.Rate
	meter meter
	taken []taken // what readings took from the books
	off   float64 // by how much the readings so far were missed, older ones less
}

// taken is use by others, as a reading showed it.
type taken struct {
	at    time.Duration
	units int64
}

// meter is what a bucket and a window have in common.
type meter interface {
	Charge(now time.Duration, units int64)
	Lower(now time.Duration, units int64)
	Credit() int64
}

type replay struct {
	s        *sequence
	start    time.Time
	result   func(field string) *Result
	counters map[string]*counter
	assumed  int64 // an output cap that the recording has lost, as the first answer shows it
}

// what happens to the books, in the order of one instant
const (
	before = iota // a reading without the call's own debit
	arrive
	admitted // a reading with it
	lagged   // the same, some time later
	made     // a reading without the call's own output
	end
	answered
)

type event struct {
	at   int64 // milliseconds from the start of the sequence
	kind int
	i    int // of the answer
}

func (p *replay) run() {
	p.counters = map[string]*counter{}
	for _, e := range p.events() {
		p.happen(e)
	}
}

// events are what happens to the books, in order.
func (p *replay) events() (events []event) {
	seen := map[string]bool{}
	for i := range p.s.Answers {
		a := &p.s.Answers[i]
		if a.Admitted == nil {
			a.Admitted = &a.T
		}
		if key := fmt.Sprint(*a.Admitted, a.T, a.Fields, a.Request); seen[key] {
			continue // the same exchange, recorded in two places
		} else {
			seen[key] = true
		}
		done := max(a.T, *a.Admitted)
		events = append(events, event{*a.Admitted, before, i}, event{*a.Admitted, arrive, i},
			event{*a.Admitted, admitted, i}, event{min(done, *a.Admitted+1500), lagged, i},
			event{done, made, i}, event{done, end, i}, event{done, answered, i})
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return events
}

func (p *replay) happen(e event) {
	a := &p.s.Answers[e.i]
	model := cmp.Or(a.Model, first(p.s.Model))
	debit, known := profile.DebitFor(p.s.Provider, p.s.API, model, a.Request.Stream, p.start)
	call := callOf(a)
	if debit.Cap && call.Cap == 0 {
		call.Cap = p.assumed
	}
	for _, f := range fieldsOf(a.Fields) {
		law, ok := profile.LawFor(p.s.Provider, f.name, p.start)
		when := law.When
		// Output beyond the reservation is in the field that is written at the end.
		if debit.ReserveAtMost > 0 && when == profile.WhenMade {
			when = profile.WhenAdmitted // a stream's fields come with its beginning
		}
		if debit.AtEnd && f.name != "requests" && strings.Contains(f.name, "tokens") {
			when = profile.WhenAnswered
		}
		if e.kind == answered && (!ok || law.Shape == limit.ShapeUnknown || law.Unused) {
			if law.Unused {
				p.result(f.name).Unused++
			} else {
				p.result(f.name).Unknown++
			}
			continue
		}
		if !ok || law.Shape == limit.ShapeUnknown || law.Unused {
			continue
		}
		c := p.counter(law, f, model, e.at)
		if c == nil {
			continue
		}
		now := time.Duration(e.at-p.earliest()) * time.Millisecond
		reads := e.kind == readAt(when, law.Lag)
		switch {
		case e.kind == arrive || e.kind == end:
			if a.refused() && !requests(f.name) {
				continue // a refused call is charged no tokens
			}
			if !known && !requests(f.name) {
				continue
			}
			c.charge(now, p.units(f.name, a, debit, call, e.kind))
		case reads && a.refused():
			p.result(f.name).Unused++
		case reads:
			p.foretell(c, f, now, e.i, debit, a)
		}
	}
}

// readAt is the event at which a field is read.
func readAt(w profile.When, lag time.Duration) int {
	switch {
	case w == profile.WhenBefore:
		return before
	case w == profile.WhenAnswered:
		return answered
	case w == profile.WhenMade:
		return made
	case lag > 0:
		return lagged
	}
	return admitted
}

// refused reports whether the answer is a refusal or another error.
func (a *answer) refused() bool { return a.Status >= 400 }

// earliest is the first instant of the sequence.
func (p *replay) earliest() int64 {
	first := p.s.Answers[0].T
	for _, a := range p.s.Answers {
		first = min(first, a.T, *a.Admitted)
	}
	return first
}

func (c *counter) charge(now time.Duration, units int64) {
	for i := range c.books {
		c.books[i].charge(now, units)
	}
}

// credit is what the books that fitted best foretell.
func (c *counter) credit(now time.Duration) int64 {
	best := &c.books[0]
	for i := range c.books {
		// The first call's are left only for what is clearly better.
		if b := &c.books[i]; b.off < best.off && b.off < c.books[0].off/2-1 {
			best = b
		}
	}
	return best.credit(now)
}

func (c *counter) follow(now time.Duration, stated int64) {
	for i := range c.books {
		b := &c.books[i]
		miss := float64(abs(min(c.n, b.meter.Credit()) - stated))
		b.off = b.off*0.8 + miss
		b.follow(now, stated)
	}
}

// credit is what the books foretell now, in the provider's rounding.
func (c *account) credit(now time.Duration) int64 {
	c.charge(now, 0)
	credit := min(c.n, c.meter.Credit())
	if b, ok := c.meter.(*limit.Bucket); ok && c.law.Round == 1 && credit >= 0 && credit < c.n {
		next := *b
		if wait, err := next.Take(now, credit+1); err == nil && wait <= c.rate.Window/time.Duration(2*c.rate.N) {
			credit++
		}
	}
	return credit
}

func (c *account) charge(now time.Duration, units int64) {
	switch w := c.meter.(type) {
	case *limit.Bucket:
		if units < 0 {
			w.Return(-units)
			return
		}
	case *limit.Window:
		if units < 0 {
			w.Return(now, -units)
			return
		}
	}
	c.meter.Charge(now, units)
}

// units is what a field is charged by a call on arrival, or at its end.
func (p *replay) units(field string, a *answer, d profile.Debit, call profile.Call, kind int) int64 {
	if requests(field) {
		if kind == arrive {
			return 1
		}
		return 0
	}
	if cost, ok := ownCost(field, a.Fields); ok {
		if kind == end {
			return cost
		}
		return 0
	}
	in, out := d.Arrival(call)
	if kind == end {
		in, out = d.End(call)
	}
	switch {
	case field == "input-images":
		if kind == end {
			return 0
		}
		return 1
	case strings.HasPrefix(field, "input"):
		return in
	case strings.HasPrefix(field, "output"):
		return out
	}
	return in + out
}

// ownCost is the cost that the answer names itself, beside the field.
func ownCost(field string, fields map[string]string) (int64, bool) {
	for _, name := range []string{
		"x-ratelimit-" + strings.TrimSuffix(field, "-minute") + "-query-cost",
		"x-ratelimit-" + strings.TrimSuffix(field, "-month") + "-query-cost",
	} {
		if n, err := strconv.ParseInt(fields[name], 10, 64); err == nil {
			return n, true
		}
	}
	if strings.HasPrefix(field, "ratelimitbysize") {
		n, err := strconv.ParseInt(fields["ratelimitbysize-query-cost"], 10, 64)
		return n, err == nil
	}
	return 0, false
}

func (p *replay) foretell(c *counter, f field, now time.Duration, i int, d profile.Debit, a *answer) {
	want := c.credit(now)
	r := p.result(f.name)
	r.Answers++
	near := max(60, c.n/50)
	if requests(f.name) {
		near = max(1, c.n/50)
	}
	if abs(want-f.remaining) <= near {
		r.Foretold++
	} else {
		r.Misses = append(r.Misses, Miss{p.s.ID, i, c.n, want, f.remaining, p.why(c, a, want, f.remaining)})
		if d.Cap && a.Cap == 0 && f.name == "tokens" && p.assumed == 0 && want > f.remaining {
			p.assumed = want - f.remaining + d.DefaultCap
		}
	}
	c.read++
	c.follow(now, f.remaining)
}

// follow brings the books to what was stated. A ledger follows readings only down.
// Here the question is whether law and debit are right. So what a reading took
// comes back when a later one shows that the provider has forgotten it.
func (c *account) follow(now time.Duration, stated int64) {
	slack := c.law.Round / 2
	credit := c.meter.Credit()
	if x := credit - stated - slack; x > 0 {
		c.meter.Lower(now, stated+slack)
		c.taken = append(c.taken, taken{now, x})
		return
	}
	missing := stated - slack - credit
	for i := range c.taken {
		t := &c.taken[i]
		if missing <= 0 || t.units == 0 {
			continue
		}
		back := min(t.units, missing)
		c.charge(t.at, -back)
		t.units -= back
		missing = stated - slack - c.meter.Credit()
	}
	if c.law.Shape != limit.ShapeFixed || missing <= 0 {
		return
	}
	// More is back than others can have used: an edge passed where the books had
	// none. The window begins with this call.
	w, err := limit.NewWindow(c.rate, limit.Law{Shape: limit.ShapeFixed, Edge: now})
	if err != nil {
		return
	}
	w.Charge(now, c.n-stated)
	c.meter, c.taken = w, nil
}

// why is what is known of a miss.
func (p *replay) why(c *counter, a *answer, want, stated int64) string {
	switch {
	case c.read == 0 && stated < want:
		return "the first answer: what was used before is not recorded"
	case a.Usage == nil && a.Request.Chars == 0:
		return "neither usage nor text of the call is recorded"
	case a.Request.Media > 0:
		return "images or files, whose price is not known"
	case stated < want:
		return "more was charged than is recorded"
	}
	return "less was charged, or more came back"
}

// counter is the books of a field, one for each scope.
func (p *replay) counter(law profile.Law, f field, model string, at int64) *counter {
	key := f.name
	switch law.Scope {
	case profile.ScopeModel, profile.ScopeProject, profile.ScopeDeployment:
		key += "/" + model
	case profile.ScopeSameLimit, profile.ScopeFamily:
		key += "/" + strconv.FormatInt(f.limit, 10)
	}
	if c := p.counters[key]; c != nil {
		return c
	}
	window := cmp.Or(law.Window, windowOf(f))
	if f.limit <= 0 || f.limit > limit.MaxUnits {
		return nil
	}
	rate := limit.Rate{N: f.limit, Window: window}
	c := &counter{law: law, n: f.limit}
	open := func(m limit.Law) {
		a := account{law: law, n: f.limit, rate: rate}
		if law.Shape == limit.ShapeBucket {
			if b, err := limit.NewBucket(rate, f.limit); err == nil {
				a.meter = b
			}
		} else if w, err := limit.NewWindow(rate, m); err == nil {
			a.meter = w
		}
		if a.meter != nil {
			c.books = append(c.books, a)
		}
	}
	base := p.start.Add(time.Duration(p.earliest()) * time.Millisecond)
	m := law.At(base)
	// The instants of a recording are not exact: a log forgets that much later.
	if p.s.Answers[0].Err > 0 {
		m.Margin = min(window, time.Duration(p.s.Answers[0].Err)*time.Millisecond)
	}
	if law.Reset == profile.ResetEdge && f.resetAt != 0 && !law.Clock {
		m.Edge = time.Unix(f.resetAt, 0).Sub(base)
	}
	open(m)
	if law.FirstCall {
		for i := range time.Duration(phases) {
			open(limit.Law{Shape: law.Shape, Edge: i * window / phases})
		}
	}
	if len(c.books) == 0 {
		return nil
	}
	p.counters[key] = c
	return c
}

// windowOf is the shortest window whose missing / rate explains the reset.
func windowOf(f field) time.Duration {
	missing := f.limit - f.remaining
	if missing <= 0 || f.limit <= 0 || f.reset <= 0 {
		return time.Minute
	}
	if full := time.Duration(float64(missing) / float64(f.limit) * float64(time.Minute)); f.reset > 2*full+2*time.Second {
		return 24 * time.Hour
	}
	return time.Minute
}

func requests(field string) bool {
	return strings.HasPrefix(field, "req") || field == "project-requests"
}

func callOf(a *answer) profile.Call {
	c := profile.Call{Characters: a.Request.Chars, Messages: a.Request.Messages, Cap: a.Cap, Tools: a.Request.Schema > 0}
	if u := a.Usage; u != nil {
		c.Input, c.Output, c.Cached = u.Prompt+u.CacheWrite, u.Completion, u.Cached
		if u.Total > u.Prompt+u.Completion {
			c.Output = u.Total - u.Prompt
		}
	}
	return c
}

// field is one counter in the fields of an answer.
type field struct {
	name             string
	limit, remaining int64
	reset            time.Duration
	resetAt          int64 // seconds since 1970
}

// fieldsOf groups limit, remaining and reset. The name is what is left of the
// header's when those words and the prefix are gone.
func fieldsOf(fields map[string]string) []field {
	var out []field
	for name, value := range fields {
		n, err := strconv.ParseInt(value, 10, 64)
		if ok, _ := path.Match("*remaining*", name); !ok || err != nil {
			continue
		}
		other := func(word string) string { return fields[strings.Replace(name, "remaining", word, 1)] }
		f := field{name: bare(name), remaining: n}
		f.limit, _ = strconv.ParseInt(other("limit"), 10, 64)
		reset := other("reset")
		if d, err := time.ParseDuration(reset); err == nil {
			f.reset = d
		} else if s, err := strconv.ParseFloat(reset, 64); err == nil {
			f.reset = time.Duration(s * float64(time.Second))
		} else if t, err := time.Parse(time.RFC3339, reset); err == nil {
			f.resetAt = t.Unix()
		}
		if f.limit > 0 {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b field) int { return cmp.Compare(a.name, b.name) })
	return out
}

func bare(name string) string {
	name = strings.Replace(strings.Replace(name, "-remaining", "", 1), "remaining-", "", 1)
	for _, prefix := range []string{"anthropic-ratelimit-", "x-ratelimit-"} {
		name = strings.TrimPrefix(name, prefix)
	}
	return strings.TrimPrefix(name, "x-")
}

func first(n names) string {
	if len(n) == 0 {
		return ""
	}
	return n[0]
}

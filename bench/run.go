package bench

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/providertest"
)

// A Result is what one run came to.
type Result struct {
	Calls, Served, Failed int

	Sent    int    // requests on the wire
	Refused int    // 429s
	Thirds  [3]int // the same, by the third of the run they came in
	Most    int    // most attempts of one call
	Early   int64  // requests that came while a wait named to an earlier one ran

	Span  time.Duration // start to the last admission
	Ideal time.Duration // the same of a client that knows everything
	Used  float64       // tokens charged, of what the rate allows in Span

	// Waits is, for each call served, the admission after the ideal one, in
	// order of size. Below zero it came before: the ideal keeps the order.
	Waits []time.Duration
	// SmallWaits is the same of all tenants but the first.
	SmallWaits []time.Duration
	// Well is Waits of the models that have no outage, and WellFailed their calls that
	// failed.
	Well       []time.Duration
	WellFailed int
}

// OfIdeal is the throughput as a share of the ideal client's.
func (r Result) OfIdeal() float64 { return float64(r.Ideal) / float64(r.Span) }

// RefusedShare is the 429s for each call.
func (r Result) RefusedShare() float64 { return float64(r.Refused) / float64(r.Calls) }

// Quantile is the wait that a share q of sorted waits does not exceed.
func Quantile(waits []time.Duration, q float64) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	return waits[min(len(waits)-1, int(q*float64(len(waits))))]
}

// seen is what the wire has seen of each call.
type seen struct {
	mu       sync.Mutex
	start    time.Time
	attempts []int
	admitted []time.Duration // -1: not
	output   []int64
	refused  []time.Duration
	sent     int
}

const callHeader = "X-Attempt-Id"

// wire is the way to the provider and back, and notes what happens there.
type wire struct {
	base http.RoundTripper
	seed uint64
	seen *seen
}

func (w wire) RoundTrip(req *http.Request) (*http.Response, error) {
	i, err := strconv.Atoi(req.Header.Get(callHeader))
	if err != nil {
		return nil, err
	}
	s := w.seen
	s.mu.Lock()
	s.attempts[i]++
	s.sent++
	r := rand.New(rand.NewPCG(w.seed^uint64(i), uint64(s.attempts[i])))
	s.mu.Unlock()
	way := func() { time.Sleep(wayLow + time.Duration(r.Int64N(int64(wayHigh-wayLow)))) }
	way()
	at := time.Since(s.start)
	resp, err := w.base.RoundTrip(req)
	if err == nil {
		s.mu.Lock()
		switch resp.StatusCode {
		case http.StatusOK:
			s.admitted[i] = at
		case http.StatusTooManyRequests:
			s.refused = append(s.refused, at)
		}
		s.mu.Unlock()
	}
	way()
	return resp, err
}

// run plays a scenario with a policy. It is called inside a synctest bubble,
// whose time is virtual.
func run(s Scenario, p Policy, seed uint64) (Result, error) {
	if s.shape != nil {
		if err := s.shape.await(); err != nil {
			return Result{}, err
		}
	}
	// Windows stand on the wall clock; nobody starts at :00.
	time.Sleep(time.Duration(seed) * 7919 * time.Millisecond)
	o := s.options(seed)
	box, err := providertest.New(o)
	if err != nil {
		return Result{}, err
	}
	cs := s.calls(seed)
	w := &seen{start: time.Now(), attempts: make([]int, len(cs)), admitted: make([]time.Duration, len(cs)), output: make([]int64, len(cs))}
	for i := range w.admitted {
		w.admitted[i] = -1
	}
	knows := Knows{Limits: o.Limits, Options: o, Processes: 1}
	if s.Configured > 0 {
		knows.Limits.TPM = s.Configured
	}
	if s.Load == Processes {
		knows.Processes = 4
	}
	knows.Ledger = sync.OnceValues(func() (limit.Ledger, error) { return newStore() })
	var clients []http.RoundTripper
	for range knows.Processes {
		c, err := p.New(wire{box.RoundTripper(), seed, w}, knows)
		if err != nil {
			return Result{}, err
		}
		clients = append(clients, c)
	}

	var all sync.WaitGroup
	var failed sync.Map
	for i, c := range cs {
		time.Sleep(c.At - time.Since(w.start))
		all.Go(func() {
			out, ok := send(clients[i%len(clients)], s.path(), i, c)
			if !ok {
				failed.Store(i, true)
			}
			w.output[i] = out
		})
	}
	all.Wait()

	res := Result{Calls: len(cs), Sent: w.sent, Refused: len(w.refused), Early: box.Stats().Early}
	failed.Range(func(i, _ any) bool {
		if res.Failed++; well(o, cs[i.(int)]) {
			res.WellFailed++
		}
		return true
	})
	res.Served = res.Calls - res.Failed
	return res, res.score(cs, o, w)
}

// send makes one call and returns the output tokens of its answer.
func send(rt http.RoundTripper, path string, i int, c Call) (output int64, ok bool) {
	req, err := http.NewRequest("POST", "http://box.example"+path, bytes.NewReader(c.Body))
	if err != nil {
		return 0, false
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(callHeader, strconv.Itoa(i))
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return 0, false
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return 0, false
	}
	return outputOf(b)
}

// outputOf is the output tokens that an answer reports.
func outputOf(body []byte) (tokens int64, ok bool) {
	var answer struct {
		Usage struct {
			Chat     int64 `json:"completion_tokens"`
			Messages int64 `json:"output_tokens"`
		}
	}
	if json.Unmarshal(body, &answer) != nil {
		return 0, false
	}
	return answer.Usage.Chat + answer.Usage.Messages, true
}

// path is the endpoint that a provider of these options is called at.
func path(o providertest.Options) string {
	if o.Dialect == providertest.AnthropicHeaders {
		return "/v1/messages"
	}
	return "/v1/chat/completions"
}

// score measures a run against the ideal.
func (r *Result) score(cs []Call, o providertest.Options, w *seen) error {
	var costs []providertest.Cost
	var of []int
	var input, output int64 // charged
	for i, c := range cs {
		r.Most = max(r.Most, w.attempts[i])
		if w.admitted[i] < 0 {
			continue
		}
		costs = append(costs, cost(o, c, w.output[i]))
		of = append(of, i)
		r.Span = max(r.Span, w.admitted[i])
		in, out := charged(o, c, w.output[i])
		input, output = input+in, output+out
	}
	ideal, err := providertest.IdealTimes(costs, o, w.start)
	if err != nil {
		return err
	}
	for k, i := range of {
		r.Ideal = max(r.Ideal, ideal[k])
		wait := w.admitted[i] - ideal[k]
		r.Waits = append(r.Waits, wait)
		if well(o, cs[i]) {
			r.Well = append(r.Well, wait)
		}
		if c := cs[i]; c.Tenant > 0 {
			r.SmallWaits = append(r.SmallWaits, w.admitted[i]-c.At)
		}
	}
	slices.Sort(r.Waits)
	slices.Sort(r.SmallWaits)
	slices.Sort(r.Well)
	for _, at := range w.refused {
		r.Thirds[min(2, int(3*at/max(r.Span, 1)))]++
	}
	if minutes := r.Span.Minutes(); minutes > 0 {
		if n := float64(o.TPM); n > 0 {
			r.Used = float64(input+output) / (n * minutes)
		} else { // apart: the one that binds
			r.Used = max(float64(input)/(float64(o.InputTPM)*minutes), float64(output)/(float64(o.OutputTPM)*minutes))
		}
	}
	return nil
}

// well reports whether the model of a call has no outage.
func well(o providertest.Options, c Call) bool {
	return !slices.ContainsFunc(o.Outages, func(u providertest.Outage) bool { return u.Model == c.Model })
}

// cost is a call as the ideal client knows it.
func cost(o providertest.Options, c Call, output int64) providertest.Cost {
	k := providertest.Cost{At: c.At, Prompt: c.Prompt, Cap: c.Cap, Output: output}
	if o.EstimatePrompt != nil {
		k.Estimate = c.Prompt + o.EstimatePrompt(providertest.Prompt{}) - providertest.DefaultCount(providertest.Prompt{})
	}
	if o.Reserve != nil {
		k.Reserve = o.Reserve(providertest.Prompt{})
	}
	return k
}

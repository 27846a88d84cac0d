package meter

import "time"

// Counts are sums since the start of one series: a budget, a scope or a tenant.
// They never fall while the series exists.
type Counts struct {
	Queued   int64 `json:"queued"`   // calls that asked to be admitted
	Admitted int64 `json:"admitted"` // calls that were admitted
	Settled  int64 `json:"settled"`  // calls that are over, of the admitted ones
	Complete int64 `json:"complete"` // of those, bodies that were read to their end
	Reported int64 `json:"reported"` // of those, answers that reported their usage

	Refused  [Reasons]int64  `json:"refused"`  // by the limiter, nothing was sent; index is a Reason
	Attempts [Outcomes]int64 `json:"attempts"` // on the wire; index is an Outcome

	// Tokens of settled calls.
	Charged Tokens `json:"charged"` // as the ledger keeps them

	// Tokens of the calls that reported their usage.
	Estimated Tokens `json:"estimated"` // as reserved for one attempt, the output cap included where that is reserved
	Used      Tokens `json:"used"`      // as the answers report them
	Cached    int64  `json:"cached"`    // of Used.Input, read from the provider's cache

	Wait   Histogram `json:"-"` // seconds in the line, of admitted calls
	Header Histogram `json:"-"` // seconds from an attempt's start to its response header

	// The estimate divided by the reported usage, 1 is exact. Calls that
	// reported none, or nothing of the kind, are left out.
	InputError  Histogram `json:"-"`
	OutputError Histogram `json:"-"`
}

// Tokens are input and output tokens.
type Tokens struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
}

// Sum is both together.
func (t Tokens) Sum() int64 { return t.Input + t.Output }

// A Reason is why the limiter did not admit a call, or a further attempt.
type Reason uint8

// The reasons, in the order of [Counts.Refused].
const (
	TooLarge    Reason = iota // it costs more than its limit can ever admit
	QueueFull                 // the line is full
	WaitTooLong               // the wait would outlast the deadline or MaxWait
	Paused                    // the same, because the provider asked for a pause
	Canceled                  // the caller gave up in the line
	OtherReason               // anything else
	Reasons                   // how many there are
)

// String is the value of the label reason.
func (r Reason) String() string {
	return [...]string{"too_large", "queue_full", "wait_too_long", "paused", "canceled", "other", "unknown"}[min(r, Reasons)]
}

// An Outcome is how an attempt on the wire ended.
type Outcome uint8

// The outcomes, in the order of [Counts.Attempts].
const (
	Success     Outcome = iota // 2xx and 3xx
	RateLimited                // 429
	Overloaded                 // 503 and 529
	ClientError                // other 4xx
	ServerError                // other 5xx
	NoResponse                 // an error of the connection, or the caller left
	Outcomes                   // how many there are
)

// String is the value of the label outcome.
func (o Outcome) String() string {
	return [...]string{"success", "rate_limited", "overloaded", "client_error", "server_error", "no_response", "unknown"}[min(o, Outcomes)]
}

func outcomeOf(status int) Outcome {
	switch {
	case status == 0:
		return NoResponse
	case status == 429:
		return RateLimited
	case status == 503, status == 529:
		return Overloaded
	case status >= 500:
		return ServerError
	case status >= 400:
		return ClientError
	}
	return Success
}

// A Histogram counts values in buckets with fixed bounds. The zero Histogram
// has no bounds and counts nothing.
type Histogram struct {
	Bounds  []float64 // upper bounds, inclusive, rising; never changed
	Buckets []uint64  // one more than Bounds: the last is what is above all
	Count   uint64
	Sum     float64
}

func newHistogram(bounds []float64) Histogram {
	return Histogram{Bounds: bounds, Buckets: make([]uint64, len(bounds)+1)}
}

func (h *Histogram) add(v float64) { h.put(bucket(h.Bounds, v), v) }

// put counts v in bucket i. Several series count the same value, and look for its
// bucket once.
func (h *Histogram) put(i int, v float64) {
	h.Buckets[i]++
	h.Count++
	h.Sum += v
}

// bucket is the index of the bucket that v belongs to.
func bucket(bounds []float64, v float64) int {
	for i, b := range bounds {
		if v <= b {
			return i
		}
	}
	return len(bounds)
}

// Mean is the mean of the values; ok is false if there are none.
func (h *Histogram) Mean() (mean float64, ok bool) {
	if h.Count == 0 {
		return 0, false
	}
	return h.Sum / float64(h.Count), true
}

func (h Histogram) clone() Histogram {
	h.Buckets = append([]uint64(nil), h.Buckets...)
	return h
}

// Bounds of the histograms. For durations and tokens they are those of the GenAI
// conventions of OpenTelemetry, so that dashboards fit. For waits they reach from a
// wake-up of the runtime to a quarter of an hour.
var (
	waitBounds     = []float64{.001, .005, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900}
	durationBounds = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	chunkBounds    = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}
	tokenBounds    = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	ratioBounds    = []float64{.25, .5, .75, .9, .95, 1, 1.05, 1.1, 1.25, 1.5, 2, 4, 10}
)

func newCounts() *Counts {
	return &Counts{
		Wait: newHistogram(waitBounds), Header: newHistogram(durationBounds),
		InputError: newHistogram(ratioBounds), OutputError: newHistogram(ratioBounds),
	}
}

func (c *Counts) clone() Counts {
	d := *c
	for _, h := range []*Histogram{&d.Wait, &d.Header, &d.InputError, &d.OutputError} {
		*h = h.clone()
	}
	return d
}

func seconds(d time.Duration) float64 { return d.Seconds() }

package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// letter costs one request, the estimate of its prompt, and 100 tokens of
// output, which is its cap. The answer "200" reports 11 and 7.
const letter = `{"model":"gpt-4o","max_tokens":100,"messages":[{"role":"user","content":"Write me a letter."}]}`

// Every ending, and what the ledger keeps of it: requests; prompts that stay at
// their estimate, and tokens of prompt beside; tokens of output. Three attempts,
// unless the row says otherwise.
func TestLedger(t *testing.T) {
	for _, row := range []struct {
		ending, wire                               string
		requests, prompts, input, output, attempts int64
		do                                         func(*testing.T, *desk)
	}{
		// What never left costs nothing.
		{"too large for the limit", "200", 0, 0, 0, 0, 0, tooLarge},
		{"cancelled in line", "200", 0, 0, 0, 0, 0, cancelInLine},
		{"its deadline is before its turn", "200", 0, 0, 0, 0, 0, lateInLine},
		{"cancelled between line and wire", "200", 0, 0, 0, 0, 0, cancelWhenGranted},
		{"never dialled", "dial", 0, 0, 0, 0, 3, read},
		{"never dialled, cancelled before the next", "dial", 0, 0, 0, 0, 1, cancelAfter(100 * time.Millisecond)},
		{"net/http refuses to send it", "unsendable", 0, 0, 0, 0, 1, read},
		{"dialled at the second attempt", "dial 200", 1, 0, 11, 7, 2, read},

		// An answer costs what it reports. Without a report the estimate stands.
		{"usage seen", "200", 1, 0, 11, 7, 1, read},
		{"usage seen, closed three times", "200", 1, 0, 11, 7, 1, closeThrice},
		{"no usage", "bare", 1, 1, 0, 100, 1, read},
		{"no content", "204", 1, 1, 0, 100, 1, read},
		{"never read", "200", 1, 1, 0, 100, 1, closeUnread},
		{"cut short", "cut", 1, 1, 0, 100, 1, read},
		{"cut short, more seen than reserved", "long", 1, 1, 0, 999, 1, read},
		{"cut short after a first report", "usage-cut", 1, 0, 11, 100, 1, read},
		{"cancelled while the answer came", "stall", 1, 1, 0, 100, 1, cancelAfter(time.Minute)},
		{"closed while the answer came", "stall", 1, 1, 0, 100, 1, closeUnread},

		// A refusal costs its request. Its tokens are for the next attempt.
		{"refused once", "429 200", 2, 0, 11, 7, 2, read},
		{"refused twice", "429 429 200", 3, 0, 11, 7, 3, read},
		{"refused", "429", 3, 0, 0, 0, 3, read},
		{"refused, one attempt", "429", 1, 0, 0, 0, 1, once},
		{"refused, cancelled before the next", "429", 1, 0, 0, 0, 1, cancelAfter(100 * time.Millisecond)},
		{"refused, then no usage", "429 bare", 2, 1, 0, 100, 2, read},
		{"refused, then never dialled, then answered", "429 dial 200", 2, 0, 11, 7, 3, read},
		{"refused, then never dialled", "429 dial", 1, 0, 0, 0, 3, read},
		{"refused where refusals count", "429", 3, 3, 0, 300, 3, refusalsCount},
		{"refused where refusals count, then answered", "429 200", 2, 1, 11, 107, 2, refusalsCount},
		{"refused where refusals count, cancelled before the next", "429", 1, 1, 0, 100, 1, refusalsCountAndCancel},
		{"refused where refusals are free", "429 429 200", 1, 0, 11, 7, 3, refusalsAreFree},
		{"refused, admitted again too late", "429", 1, 0, 0, 0, 1, tooLate},
		{"server error, admitted again too late", "500", 1, 1, 0, 100, 1, tooLate},

		// Other answers of a server whose model did not run.
		{"bad request", "400", 1, 0, 0, 0, 1, read},
		{"redirect", "302", 1, 0, 0, 0, 1, read},
		{"upgrade", "101", 1, 0, 0, 0, 1, closeUnread},
		{"conflict, then answered", "409 200", 2, 0, 11, 7, 2, read},
		{"conflict", "409", 3, 0, 0, 0, 3, read},
		{"conflict where refusals count", "409", 3, 0, 0, 0, 3, refusalsCount},

		// What may have run is paid, each time.
		{"server error", "500", 3, 3, 0, 300, 3, read},
		{"server error, one attempt", "500", 1, 1, 0, 100, 1, once},
		{"server error, then answered", "500 200", 2, 1, 11, 107, 2, read},
		{"server error, cancelled before the next", "500", 1, 1, 0, 100, 1, cancelAfter(100 * time.Millisecond)},
		{"reset after sending", "reset", 3, 3, 0, 300, 3, read},
		{"timed out", "hang", 1, 1, 0, 100, 1, cancelAfter(time.Minute)},
		{"refused, then reset, then answered", "429 reset 200", 3, 1, 11, 107, 3, read},
		{"reset, then refused", "reset 429", 3, 1, 0, 100, 3, read},
		{"reset, then never dialled", "reset dial", 1, 1, 0, 100, 3, read},
		{"the base panics", "panic", 1, 1, 0, 100, 1, recovered},
		{"a hook panics before sending", "200", 0, 0, 0, 0, 0, hookPanics},
	} {
		t.Run(row.ending, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, row.wire)
				row.do(t, d)
				synctest.Wait() // a call that is cut settles beside the caller
				want := limit.Cost{Requests: row.requests, Input: row.prompts*d.prompt + row.input, Output: row.output}
				if got := spent(d.rt); got != want {
					t.Errorf("the ledger keeps %v, want %v", got, want)
				}
				if got := int64(d.wire.attempts()); got != row.attempts {
					t.Errorf("%d attempts, want %d", got, row.attempts)
				}
				d.balanced(t, d.rt)
				for _, s := range d.settled {
					if int64(s.Attempts) != row.attempts || s.Charged != want {
						t.Errorf("settled %+v", s)
					}
				}
				for _, b := range d.wire.bodies {
					if b != letter {
						t.Errorf("an attempt carried %q", b)
					}
				}
			})
		})
	}
}

// A desk sends one letter. Its limiter has one place in flight.
type desk struct {
	books
	o       transport.Options
	limiter *limit.Limiter
	rt      *transport.Transport
	wire    *wire
	prompt  int64 // the estimate of the letter's prompt
}

func newDesk(t *testing.T, words string) *desk {
	d := &desk{wire: script(words)}
	var err error
	d.limiter, err = limit.New(limit.Options{Limits: slow(1000, 1e6), MaxInFlight: 1})
	if err != nil {
		t.Fatal(err)
	}
	d.o = transport.Options{Base: d.wire, Trace: d.trace()}
	d.o.Trace.Queued = func(_ *http.Request, c limit.Cost) { d.prompt = c.Input }
	return d
}

// post sends the letter with the desk's options as they are now.
func (d *desk) post(t *testing.T, ctx context.Context) (*http.Response, error) {
	if d.o.Scopes.Budget == nil {
		d.o.Scopes.Budget = over(t, d.limiter)
	}
	d.rt = gate(t, d.o)
	return d.rt.RoundTrip(ask(t, ctx, letter))
}

func read(t *testing.T, d *desk) { finish(d.post(t, t.Context())) }

func once(t *testing.T, d *desk) {
	d.o.Attempts = 1
	read(t, d)
}

func closeThrice(t *testing.T, d *desk) {
	resp, err := d.post(t, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	for range 3 {
		resp.Body.Close()
	}
}

func closeUnread(t *testing.T, d *desk) {
	resp, err := d.post(t, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s := whole(d.rt); s.InFlight != 1 {
		t.Errorf("%d in flight while the body is open", s.InFlight)
	}
	resp.Body.Close()
}

// cancelAfter reads, and gives up that long after sending.
func cancelAfter(d time.Duration) func(*testing.T, *desk) {
	return func(t *testing.T, k *desk) {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		if d < time.Second { // shorter than any wait: it is slept, not foreseen
			ctx, cancel = context.WithCancel(t.Context())
			defer cancel()
			defer time.AfterFunc(d, cancel).Stop()
		}
		if _, _, err := finish(k.post(t, ctx)); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	}
}

func tooLarge(t *testing.T, d *desk) {
	if err := d.limiter.SetLimit(limit.Limit{Name: "output", Unit: limit.Output, Rate: limit.Rate{N: 99, Window: 700 * time.Hour}}); err != nil {
		t.Fatal(err)
	}
	_, err := d.post(t, t.Context())
	if !errors.Is(err, limit.ErrTooLarge) {
		t.Errorf("error %v", err)
	}
}

// busy takes the one place in flight for as long as f runs.
func (d *desk) busy(t *testing.T, f func()) {
	r, err := d.limiter.Acquire(t.Context(), limit.Cost{})
	if err != nil {
		t.Fatal(err)
	}
	f()
	r.Return()
}

func cancelInLine(t *testing.T, d *desk) {
	d.busy(t, func() { cancelAfter(100*time.Millisecond)(t, d) })
}

func lateInLine(t *testing.T, d *desk) {
	d.limiter.Pause(time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := d.post(t, ctx); !errors.Is(err, limit.ErrWaitTooLong) {
		t.Errorf("error %v", err)
	}
}

func cancelWhenGranted(t *testing.T, d *desk) {
	ctx, cancel := context.WithCancel(t.Context())
	granted := d.o.Trace.Granted
	d.o.Trace.Granted = func(r *http.Request, c limit.Cost, w time.Duration) {
		granted(r, c, w)
		cancel()
	}
	if _, err := d.post(t, ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func hookPanics(t *testing.T, d *desk) {
	granted := d.o.Trace.Granted
	d.o.Trace.Granted = func(r *http.Request, c limit.Cost, w time.Duration) {
		granted(r, c, w)
		panic("a hook")
	}
	recovered(t, d)
}

func recovered(t *testing.T, d *desk) {
	defer func() {
		if recover() == nil {
			t.Error("the panic was swallowed")
		}
	}()
	read(t, d)
}

func with(change func(*profile.Profile), do func(*testing.T, *desk)) func(*testing.T, *desk) {
	return func(t *testing.T, d *desk) {
		d.o.Provider = profile.Unknown()
		change(&d.o.Provider)
		do(t, d)
	}
}

var (
	refusalsCount          = with(func(p *profile.Profile) { p.Rule.RefusedCount = true }, read)
	refusalsCountAndCancel = with(func(p *profile.Profile) { p.Rule.RefusedCount = true }, cancelAfter(100*time.Millisecond))
	refusalsAreFree        = with(func(p *profile.Profile) { p.RefusedFree = true }, read)
)

// 1 call with 3 attempts charges 3 requests, and holds no place in flight while
// it waits between them.
func TestThreeAttemptsAreThreeRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, "500 429 200")
		var between []limit.Snapshot
		d.o.Retry.Deciding = func(retry.Event) { between = append(between, d.limiter.Snapshot()) }
		read(t, d)
		if got := spent(d.rt).Requests; got != 3 {
			t.Errorf("%d requests charged", got)
		}
		if len(between) != 2 {
			t.Fatalf("%d waits", len(between))
		}
		for i, s := range between {
			if s.InFlight != 0 {
				t.Errorf("wait %d: %d in flight", i+1, s.InFlight)
			}
		}
	})
}

// The answer may cost more than was reserved: the rest is debt, and the next
// caller waits it off.
func TestLedgerGoesIntoDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := script("200")
		w.usage = `{"prompt_tokens":3000,"completion_tokens":3000,"total_tokens":6000}`
		rt := gate(t, transport.Options{Base: w, TPM: 6000}) // 100 a second, 1000 at once
		finish(rt.RoundTrip(ask(t, t.Context(), letter)))
		start := time.Now()
		finish(rt.RoundTrip(ask(t, t.Context(), letter)))
		// 6000 charged, 1000 were there: 5000 to earn, and what the next reserves.
		if waited := time.Since(start); waited < 50*time.Second || waited > 52*time.Second {
			t.Errorf("the next call waited %v", waited)
		}
	})
}

// About four characters a token, at most 512 of output before anything is known;
// settled after, so that in the long run the charge is what was used.
func TestReserveAndSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := box(t, providertest.Options{Output: providertest.Uniform(1, 900), Seed: 3})
		var first limit.Cost
		b := new(books)
		tr := b.trace()
		tr.Queued = func(_ *http.Request, c limit.Cost) {
			if first == (limit.Cost{}) {
				first = c
			}
		}
		rt := gate(t, transport.Options{Base: p.RoundTripper(), Limits: slow(1e6, 1e9), Trace: tr})
		text := strings.Repeat("The limiter waits until there is credit for the whole request. ", 40)
		for range 300 {
			finish(rt.RoundTrip(ask(t, t.Context(), `{"model":"m","messages":[{"role":"user","content":"`+text+`"}]}`)))
		}
		if quarter := int64(len(text) / 4); first.Input < quarter*7/10 || first.Input > quarter*13/10 || first.Output != 512 {
			t.Errorf("the first call reserved %v for %d characters", first, len(text))
		}
		var in, out int64
		for _, e := range p.Ledger() {
			in += e.Prompt
			out += e.Produced
		}
		if got := spent(rt); got.Input != in || got.Output != out || got.Requests != 300 {
			t.Errorf("charged %v, used %d and %d", got, in, out)
		}
		b.balanced(t, rt)
	})
}

package bench

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/tripmeter/tripmeter/providertest"
)

// Rivals are what is commonly written. All of them sit on the same retries:
// Retry-After where it is sent, else 1 s doubled to at most 30 s, as
// go-retryablehttp's defaults are, but without end.

// RetryAlone sends at once and trusts in retries.
var RetryAlone = Policy{"retry alone", func(base http.RoundTripper, _ Knows) (http.RoundTripper, error) {
	return retrying{base}, nil
}}

type retrying struct{ base http.RoundTripper }

func (r retrying) RoundTrip(req *http.Request) (*http.Response, error) {
	for n := 0; ; n++ {
		again := req.Clone(req.Context())
		if n > 0 {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			again.Body = body
		}
		resp, err := r.base.RoundTrip(again)
		if err != nil || resp.StatusCode != http.StatusTooManyRequests || n+1 >= attempts {
			return resp, err
		}
		wait := min(time.Second<<min(n, 5), 30*time.Second)
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
			wait = time.Duration(s) * time.Second
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		time.Sleep(wait)
	}
}

// fields are what the rivals read of a request, at no cost: they are given the
// provider's own count of the prompt.
func fields(req *http.Request) (prompt, most int64) {
	body, err := req.GetBody()
	if err != nil {
		return 0, 0
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return 0, 0
	}
	var r struct {
		Max      int64 `json:"max_tokens"`
		Messages []struct{ Content string }
	}
	if json.Unmarshal(b, &r) != nil {
		return 0, 0
	}
	p := providertest.Prompt{Messages: int64(len(r.Messages))}
	for _, m := range r.Messages {
		p.Texts = append(p.Texts, m.Content)
	}
	return providertest.DefaultCount(p), r.Max
}

// capacity is the burst that the provider documents: the whole minute, where
// it is a window.
func (k Knows) capacity() time.Duration {
	switch k.Options.Algorithm {
	case providertest.FixedMinute, providertest.SlidingMinute:
		return time.Minute
	case providertest.Slices:
		return k.Options.Slice
	}
	return k.Options.Capacity
}

// tokens is the limit on tokens a minute, however the provider splits it.
func (k Knows) tokens() int64 {
	l := k.share()
	if l.TPM > 0 {
		return l.TPM
	}
	return l.InputTPM + l.OutputTPM
}

// ReserveCap takes the prompt and the whole output cap from x/time/rate, and
// gives nothing back, which x/time/rate cannot.
var ReserveCap = Policy{"x/time/rate, cap reserved", func(base http.RoundTripper, k Knows) (http.RoundTripper, error) {
	perSecond := float64(k.tokens()) / 60
	burst := int(perSecond * k.capacity().Seconds())
	return &reserving{retrying{base}, rate.NewLimiter(rate.Limit(perSecond), max(burst, promptMost+1024))}, nil
}}

type reserving struct {
	retrying
	tokens *rate.Limiter
}

func (r *reserving) RoundTrip(req *http.Request) (*http.Response, error) {
	prompt, most := fields(req)
	if err := r.tokens.WaitN(req.Context(), int(prompt+most)); err != nil {
		return nil, err
	}
	return r.retrying.RoundTrip(req)
}

// DebtBucket takes the prompt and a running mean of outputs from a bucket that
// may go into debt. A call sleeps off the debt that it saw when it came, and
// settles. Refunds reach only those who come later.
var DebtBucket = Policy{"debt bucket, sleep computed once", func(base http.RoundTripper, k Knows) (http.RoundTripper, error) {
	perSecond := float64(k.tokens()) / 60
	full := perSecond * k.capacity().Seconds()
	return &indebted{base: retrying{base}, rate: perSecond, full: full, level: full, last: time.Now(), mean: 512}, nil
}}

type indebted struct {
	base       retrying
	rate, full float64 // tokens a second, tokens

	mu    sync.Mutex
	level float64
	last  time.Time
	mean  float64 // tokens of an answer
}

func (d *indebted) take(n float64) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.level = min(d.full, d.level+d.rate*now.Sub(d.last).Seconds()) - n
	d.last = now
	return time.Duration(max(0, -d.level/d.rate) * float64(time.Second))
}

func (d *indebted) RoundTrip(req *http.Request) (*http.Response, error) {
	prompt, most := fields(req)
	d.mu.Lock()
	guess := float64(prompt) + min(d.mean, float64(most))
	d.mu.Unlock()
	time.Sleep(d.take(guess))
	return settling(d.base, req, func(output int64) {
		d.take(float64(prompt+output) - guess)
		d.mu.Lock()
		d.mean += (float64(output) - d.mean) / 20
		d.mu.Unlock()
	})
}

// settling sends req and tells done the output tokens that it used.
func settling(base http.RoundTripper, req *http.Request, done func(output int64)) (*http.Response, error) {
	resp, err := base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(b))
	output, _ := outputOf(b)
	done(output)
	return resp, nil
}

// FixedWindow counts prompt and cap in minutes of its own, and gives back what
// was not used. A call waits for the next minute when this one is used up.
var FixedWindow = Policy{"fixed window with refund", func(base http.RoundTripper, k Knows) (http.RoundTripper, error) {
	return &window{base: retrying{base}, limit: k.tokens(), start: time.Now()}, nil
}}

type window struct {
	base  retrying
	limit int64
	start time.Time

	mu    sync.Mutex
	index int64 // minutes since start
	used  int64
}

// turn moves on to the minute that runs.
func (w *window) turn() (left time.Duration) {
	since := time.Since(w.start)
	if i := int64(since / time.Minute); i != w.index {
		w.index, w.used = i, 0
	}
	return time.Duration(w.index+1)*time.Minute - since
}

func (w *window) RoundTrip(req *http.Request) (*http.Response, error) {
	prompt, most := fields(req)
	var index int64
	for {
		w.mu.Lock()
		left := w.turn()
		if w.used+prompt+most <= w.limit {
			w.used += prompt + most
			index = w.index
			w.mu.Unlock()
			break
		}
		w.mu.Unlock()
		// Everybody wakes at once, but for a spread of 50 ms.
		time.Sleep(left + rand.N(50*time.Millisecond))
	}
	return settling(w.base, req, func(output int64) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.turn(); w.index == index {
			w.used -= most - output
		}
	})
}

// ChargeAfter asks whether the last 60 s are under the limit, sends, and
// counts what the answer says it cost. Asked again every 250 ms.
var ChargeAfter = Policy{"check, then charge after", func(base http.RoundTripper, k Knows) (http.RoundTripper, error) {
	return &checking{base: retrying{base}, limit: k.tokens()}, nil
}}

type checking struct {
	base  retrying
	limit int64

	mu   sync.Mutex
	log  []spent
	used int64
}

type spent struct {
	at     time.Time
	tokens int64
}

func (c *checking) room() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.log) > 0 && time.Since(c.log[0].at) >= time.Minute {
		c.used -= c.log[0].tokens
		c.log = c.log[1:]
	}
	return c.used < c.limit
}

func (c *checking) RoundTrip(req *http.Request) (*http.Response, error) {
	prompt, _ := fields(req)
	for !c.room() {
		time.Sleep(250 * time.Millisecond)
	}
	return settling(c.base, req, func(output int64) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.log = append(c.log, spent{time.Now(), prompt + output})
		c.used += prompt + output
	})
}

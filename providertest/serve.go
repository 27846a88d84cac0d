package providertest

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"time"
)

// finish ends the call in the ledger, once: before the last byte of the answer, so
// that a reader of the whole answer finds the call settled.
func (c *exchange) finish(o Outcome, produced int64) {
	if c.finished {
		return
	}
	c.finished = true
	p := c.p
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	c.price.output = produced
	free := p.o.OverloadFree && o == Failed && (c.step.Kind == Unavailable || c.step.Kind == Overloaded)
	t := c.engine.finish(now, c.stamp, c.price, o == Failed, free)
	e := c.live
	c.settled = Tokens{t.in, t.out}
	e.Outcome, e.End, e.Produced, e.Settled = o, time.Duration(now), produced, c.settled
	p.countLocked(e)
}

// gone ends a call whose client left.
func (c *exchange) gone(produced int64) {
	c.finish(Gone, produced)
	panic(errCut)
}

// run serves a call that was let in.
func (c *exchange) run() {
	switch c.step.Kind {
	case ResetAfter:
		c.finish(Failed, 0)
		panic(errCut)
	case Hang:
		select {
		case <-c.ctx.Done():
		case <-c.p.done:
		}
		c.finish(Failed, 0)
		panic(errCut)
	}
	var timing Timing
	if f := c.p.o.Latency; f != nil {
		timing = f(Call{Path: c.path, Model: c.entry.Model, Prompt: c.price.prompt, Cap: c.price.cap,
			Output: c.price.output, Choices: c.choices, Stream: c.stream})
	}
	faulty := map[Kind]problem{ServerError: serverError, Unavailable: unavailable, Overloaded: overloaded}
	if !c.stream {
		faulty[StreamError] = serverError
	}
	if e, ok := faulty[c.step.Kind]; ok {
		if c.pause(timing.FirstByte) != nil {
			c.gone(0)
		}
		c.finish(Failed, 0)
		c.setStatus(e.status)
		if c.step.RetryAfter > 0 {
			c.p.mu.Lock()
			c.p.toldLocked(c.p.now(), c.step.RetryAfter)
			c.p.mu.Unlock()
		}
		c.readings = nil // OpenAI's 500s show no rate headers
		c.problem(e)
		return
	}
	if c.stream {
		c.serveStream(timing)
		return
	}
	if c.pause(timing.total(c.length)) != nil {
		c.gone(c.producedBy(timing))
	}
	body := c.body()
	c.read(ReadAtAnswer)
	if c.step.Kind != Truncate {
		c.finish(Served, c.output())
		c.read(ReadAtEnd)
	}
	c.header("application/json")
	if c.step.Kind == Gzip {
		body = zip(body)
		c.w.Header().Set("Content-Encoding", "gzip")
	}
	c.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	c.stepHeaders()
	c.setStatus(200)
	if c.step.Kind == Truncate {
		c.finish(Failed, c.output())
		c.w.WriteHeader(200)
		c.w.Write(body[:len(body)/2])
		flush(c.w)
		panic(errCut)
	}
	c.w.WriteHeader(200)
	c.w.Write(body)
}

// producedBy is what a call that does not stream has produced by now.
func (c *exchange) producedBy(t Timing) int64 {
	ran := time.Since(c.p.start) - time.Duration(c.stamp) - t.FirstByte
	if ran <= 0 {
		return 0
	}
	if t.PerToken <= 0 {
		return c.output()
	}
	return min(c.length, int64(ran/t.PerToken)) * c.choices
}

// serveStream sends the answer event by event, each when its last token is
// produced.
func (c *exchange) serveStream(t Timing) {
	if c.pause(t.FirstByte) != nil {
		c.gone(0)
	}
	c.read(ReadAtAnswer, ReadAtEnd)
	c.header("text/event-stream; charset=utf-8")
	c.w.Header().Set("Cache-Control", "no-cache")
	var out io.Writer = c.w
	if c.step.Kind == Gzip {
		c.w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(c.w)
		out = z
	}
	c.stepHeaders()
	c.setStatus(200)
	c.w.WriteHeader(200)
	s := newStream(c.answer, c.p.o.StreamUsage)
	produced := int64(0)
	send := func(b []byte) {
		_, err := out.Write(b)
		if z, ok := out.(*gzip.Writer); ok && err == nil {
			err = z.Flush()
		}
		if err != nil {
			c.gone(produced)
		}
		flush(c.w)
	}
	fault := c.step.Kind == Truncate || c.step.Kind == TruncateClean || c.step.Kind == StreamError
	send(s.open())
	events := 0
	for at := int64(0); at < c.length; {
		if fault && events >= c.step.Chunks {
			break
		}
		n := min(c.p.o.ChunkTokens, c.length-at)
		if c.pause(Timing{PerToken: t.PerToken}.total(n)) != nil {
			c.gone(produced)
		}
		at += n
		for choice := range c.choices {
			produced += n
			send(s.delta(choice, n))
			events++
			if fault && events >= c.step.Chunks {
				break
			}
		}
	}
	if c.pause(0) != nil {
		c.gone(produced)
	}
	if fault {
		c.finish(Failed, produced)
		switch c.step.Kind {
		case Truncate:
			panic(errCut)
		case StreamError:
			send(s.fault())
		}
		return
	}
	c.finish(Served, produced)
	send(s.close())
	if z, ok := out.(*gzip.Writer); ok {
		z.Close()
	}
}

func flush(w http.ResponseWriter) { http.NewResponseController(w).Flush() }

// header sets what every answer carries.
func (c *exchange) header(contentType string) {
	h := c.w.Header()
	h.Set("Content-Type", contentType)
	c.p.mu.Lock()
	now := c.p.now()
	number := c.p.number
	c.p.mu.Unlock()
	if c.answer != nil {
		number = c.number
	}
	h.Set("Date", c.p.start.Add(time.Duration(now)).UTC().Format(http.TimeFormat))
	name := "X-Request-Id"
	if c.anthropic {
		name = "Request-Id"
	}
	h.Set(name, "req_box"+strconv.FormatInt(number, 10))
	c.p.rateHeaders(h, c.readAt, c.readings)
	if c.p.o.Dialect == MistralHeaders && c.finished {
		h.Set("X-Ratelimit-Tokens-Query-Cost", strconv.FormatInt(c.settled.Total(), 10))
	}
}

// stepHeaders sets the step's header over everything.
func (c *exchange) stepHeaders() {
	for k, v := range c.step.Header {
		if len(v) == 0 {
			c.w.Header().Del(k)
			continue
		}
		c.w.Header()[http.CanonicalHeaderKey(k)] = v
	}
}

// setStatus notes in the ledger the status sent to a call that was let in.
func (c *exchange) setStatus(status int) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.live.Status = status
}

// problem answers with an error.
func (c *exchange) problem(e problem) {
	c.header("application/json")
	if c.step.RetryAfter > 0 {
		style := c.p.o.RetryAfter
		if style == NoRetryAfter {
			style = RetryAfterSeconds
		}
		c.p.mu.Lock()
		now := c.p.now()
		c.p.mu.Unlock()
		c.p.retryAfter(c.w.Header(), style, now, c.step.RetryAfter)
	}
	body := e.body(c.anthropic, c.w.Header().Get("Request-Id"))
	if e.message == "" {
		body = nil
	}
	if c.step.Body != "" {
		body = []byte(c.step.Body)
	}
	c.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	c.stepHeaders()
	c.w.WriteHeader(e.status)
	c.w.Write(body)
}

// models lists the models. It costs nothing and is not in the ledger.
func (c *exchange) models() {
	var data []object
	for _, m := range c.p.o.Models {
		data = append(data, object{"id": m, "object": "model", "created": c.p.start.Unix(), "owned_by": "box"})
	}
	body := encode(object{"object": "list", "data": data})
	c.header("application/json")
	c.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(200)
	c.w.Write(body)
}

// zip is b in gzip.
func zip(b []byte) []byte {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	z.Write(b)
	z.Close()
	return buf.Bytes()
}

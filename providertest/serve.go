package providertest

import (
	"bytes"
	"compress/gzip"
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
	if e, faulty := c.fault(); faulty {
		c.fail(e, timing)
	} else if c.stream {
		c.serveStream(timing)
	} else {
		c.serveWhole(timing)
	}
}

// fault is the error that the step puts in place of an answer.
func (c *exchange) fault() (e problem, faulty bool) {
	switch c.step.Kind {
	case ServerError:
		return serverError, true
	case Unavailable:
		return unavailable, true
	case Overloaded:
		return overloaded, true
	case StreamError:
		return serverError, !c.stream
	}
	return e, false
}

// fail answers with an error where the answer would have begun.
func (c *exchange) fail(e problem, t Timing) {
	if c.pause(t.FirstByte) != nil {
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
}

// serveWhole sends the answer at once, when its last token is produced.
func (c *exchange) serveWhole(t Timing) {
	if c.pause(t.total(c.length)) != nil {
		c.gone(c.producedBy(t))
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
	out := sender{exchange: c}
	if c.step.Kind == Gzip {
		c.w.Header().Set("Content-Encoding", "gzip")
		out.zip = gzip.NewWriter(c.w)
	}
	c.stepHeaders()
	c.setStatus(200)
	c.w.WriteHeader(200)
	s := newStream(c.answer, c.p.o.StreamUsage)
	out.send(s.open())
	cut := out.deltas(s, t)
	if c.pause(0) != nil {
		c.gone(out.produced)
	}
	if cut {
		c.finish(Failed, out.produced)
		switch c.step.Kind {
		case Truncate:
			panic(errCut)
		case StreamError:
			out.send(s.fault())
		}
		return
	}
	c.finish(Served, out.produced)
	out.send(s.close())
	if out.zip != nil {
		out.zip.Close()
	}
}

// sender sends the events of a stream, and counts what was produced for them.
type sender struct {
	*exchange
	zip      *gzip.Writer // nil: as they are
	produced int64
}

// send sends an event. It ends the call if the client has left.
func (o *sender) send(b []byte) {
	var err error
	if o.zip == nil {
		_, err = o.w.Write(b)
	} else if _, err = o.zip.Write(b); err == nil {
		err = o.zip.Flush()
	}
	if err != nil {
		o.gone(o.produced)
	}
	flush(o.w)
}

// deltas sends the tokens of all choices in turn. cut reports whether the step ends
// the answer before its end, or right behind it.
func (o *sender) deltas(s *stream, t Timing) (cut bool) {
	fault := o.step.Kind == Truncate || o.step.Kind == TruncateClean || o.step.Kind == StreamError
	events := 0
	for at := int64(0); at < o.length; {
		if fault && events >= o.step.Chunks {
			break
		}
		n := min(o.p.o.ChunkTokens, o.length-at)
		if o.pause(Timing{PerToken: t.PerToken}.total(n)) != nil {
			o.gone(o.produced)
		}
		at += n
		for choice := range o.choices {
			o.produced += n
			o.send(s.delta(choice, n))
			events++
			if fault && events >= o.step.Chunks {
				break
			}
		}
	}
	return fault
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

package providertest

import (
	"net/http"
	"time"
)

// Kind is what a scripted step does.
type Kind int

const (
	// Serve is an ordinary answer.
	Serve Kind = iota
	// Refuse is a 429 in the words of a token limit, rate headers included.
	// Nothing is charged, but for Options.RefusedCount.
	Refuse
	// RefuseBare is a 429 with no rate headers and an empty body.
	RefuseBare
	// InsufficientQuota is the 429 of an account without money.
	InsufficientQuota
	// Reject is Step.Status with Step.Body, before the limits.
	Reject
	// ResetBefore cuts the connection before the body is read.
	ResetBefore

	// The kinds from here on happen to a call that the limits let in, and leave its
	// charge on arrival. A step that meets a call that is refused or invalid stays
	// for the next.

	// ResetAfter cuts the connection after the body is read, before an answer.
	ResetAfter
	// Hang answers nothing until the request's context, or the provider, ends.
	Hang
	// ServerError is a 500.
	ServerError
	// Unavailable is a 503.
	Unavailable
	// Overloaded is Anthropic's 529.
	Overloaded
	// Truncate cuts the connection inside the answer: after Step.Chunks
	// content events of a stream, or half of a body.
	Truncate
	// TruncateClean ends a stream after Step.Chunks content events, without usage
	// or end mark. To HTTP the answer looks whole. A body that is not a stream is
	// served whole.
	TruncateClean
	// StreamError sends an error event after Step.Chunks content events and
	// ends the stream. A call that does not stream gets a 500.
	StreamError
	// Gzip is an ordinary answer, compressed for any Accept-Encoding. Like Serve it
	// is settled.
	Gzip

	kindsEnd
)

// admitted says whether the step needs a call that was let in.
func (k Kind) admitted() bool { return k >= ResetAfter }

// A Step is one scripted answer. Steps are used in order, one for each call
// that names a known endpoint and has the key.
type Step struct {
	Kind Kind
	// Status and Body are the answer of Reject (zero: 400 and an error of the
	// endpoint's shape), and replace those of any other answer that is an
	// error before its first byte.
	Status int
	Body   string
	// RetryAfter, if positive, is sent in the style of Options.RetryAfter, and as
	// whole seconds under NoRetryAfter. Refusals only promise what is set here.
	RetryAfter time.Duration
	// Header is set last, over what would have been sent. A name without
	// values is removed.
	Header http.Header
	// Chunks is how many content events of a stream are sent before the fault.
	Chunks int
	// Delay passes before anything is done.
	Delay time.Duration
}

// Script appends steps to the queue. It panics on an unknown kind.
func (p *Provider) Script(steps ...Step) {
	for _, s := range steps {
		if s.Kind < 0 || s.Kind >= kindsEnd {
			panic("providertest: Step.Kind is unknown")
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = append(p.script, steps...)
}

// Scripted is how many steps are still in the queue.
func (p *Provider) Scripted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.script)
}

// nextStep takes the first step, or Serve and false if there is none.
func (p *Provider) nextStep() (Step, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.script) == 0 {
		return Step{}, false
	}
	s := p.script[0]
	p.script = p.script[1:]
	return s, true
}

// putBackLocked returns a step that met no call it could happen to.
func (p *Provider) putBackLocked(s Step) {
	p.script = append([]Step{s}, p.script...)
}

package bench

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/providertest"
)

// A Call is one request that a client has to make.
type Call struct {
	At     time.Duration // when it is there to be sent, since the start
	Tenant int
	Prompt int64  // tokens, as the provider counts them
	Cap    int64  // output cap, tokens
	Model  string // empty is "box"
	Filler int    // of fillers
	Body   []byte
}

// Load says how calls come.
type Load int

const (
	// Overload is Poisson arrivals at three times what the limit drains.
	Overload Load = iota
	// Bursts is crowds of 60 calls at one instant, 0.6 of the drain on average.
	Bursts
	// Tenants is Overload of three tenants, the first with ten times the calls
	// of each of the others.
	Tenants
	// Processes is Overload on four clients that do not know each other.
	Processes
	// AtOnce is every call at the start, from a fresh process.
	AtOnce
)

func (l Load) String() string {
	return [...]string{"3x drain", "bursts at 0.6x", "three tenants, one a hog", "four processes", "all at once"}[l]
}

// Prompts are log-normal around 400 tokens, output caps are one of four, and
// answers are log-normal around 200 tokens and end at the cap. A real mix has
// longer tails; these are cut at 2000 so that every call fits into every
// provider's smallest burst, and no rule can hide behind a refusal for size.
const (
	promptMedian = 400
	promptSigma  = 0.7
	promptMost   = 2000
	outputMedian = 200
	outputSigma  = 0.8
)

var caps = [...]int64{128, 256, 512, 1024}

var outputs = providertest.LogNormal(outputMedian, outputSigma)

// calls draws n calls, whose mean price under charge is drained at tpm tokens
// per minute.
func calls(load Load, n int, tpm int64, charge providertest.Charge, seed uint64) []Call {
	r := rand.New(rand.NewPCG(seed, 1))
	var cs []Call
	for i := range n {
		prompt := int64(promptMedian * math.Exp(promptSigma*r.NormFloat64()))
		c := Call{Prompt: min(max(20, prompt), promptMost), Cap: caps[r.IntN(len(caps))]}
		c.Body = body(i, c)
		cs = append(cs, c)
	}
	drain := float64(tpm) / 60 / mean(charge) // calls a second
	at := 0.0
	for i := range cs {
		cs[i].At = time.Duration(at * float64(time.Second))
		switch load {
		case Bursts:
			if i%60 == 59 {
				at += 60 / (0.6 * drain)
			}
		case Tenants:
			cs[i].Tenant = max(0, r.IntN(12)-9)
			fallthrough
		default:
			at += r.ExpFloat64() / (3 * drain)
		}
	}
	return cs
}

// mean is what a call costs in tokens, on average, under a rule.
func mean(c providertest.Charge) float64 {
	r := rand.New(rand.NewPCG(0, 0))
	const n = 20_000
	sum := 0.0
	for range n {
		sum += min(max(20, promptMedian*math.Exp(promptSigma*r.NormFloat64())), promptMost)
		most := caps[r.IntN(len(caps))]
		if c == providertest.Estimate {
			sum += float64(most)
		} else {
			sum += float64(min(most, outputs(r)))
		}
	}
	return sum / n
}

// body is a chat request whose prompt the provider, and a client that counts
// as it does, count as c.Prompt tokens: a quarter of the characters, one for
// the message, one for the call. No two are alike, so that the length of an
// answer belongs to its call in any order.
func body(i int, c Call) []byte {
	text := prompt(i, c)
	return fmt.Appendf(nil, `{"model":%q,"max_tokens":%d,"messages":[{"role":"user","content":%q}]}`, cmp.Or(c.Model, "box"), c.Cap, text)
}

// fillers are what prompts are made of. The estimate of the first is 32 % lower than
// what the provider counts, and that of the second right.
var fillers = [...]string{"word ", "tell me about it "}

// prompt is the text of a call.
func prompt(i int, c Call) string {
	filler := fillers[c.Filler]
	text := fmt.Sprintf("%08d ", i)
	text += strings.Repeat(filler, int(4*c.Prompt)/len(filler)+1)
	return text[:max(4*(c.Prompt-2), 9)]
}

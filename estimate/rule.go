package estimate

import "fmt"

// A Charge says when a provider takes what a call costs from the limit.
type Charge uint8

const (
	// ChargeSettle takes an estimate on arrival and corrects it to the actual cost
	// at the end. It is the rule to assume of a provider nothing is known of.
	ChargeSettle Charge = iota

	// ChargeEstimate takes an estimate on arrival and never corrects it.
	ChargeEstimate

	// ChargeActual takes the prompt on arrival and the output as it is produced.
	ChargeActual

	// ChargePrompt takes the prompt on arrival, corrects it to the actual prompt at
	// the end, and takes no output.
	ChargePrompt
)

func (c Charge) String() string {
	switch c {
	case ChargeSettle:
		return "settle"
	case ChargeEstimate:
		return "estimate"
	case ChargeActual:
		return "actual"
	case ChargePrompt:
		return "prompt"
	}
	return fmt.Sprintf("Charge(%d)", uint8(c))
}

// ParseCharge reads a charge by the name that String gives it: "settle",
// "estimate", "actual" or "prompt".
func ParseCharge(name string) (Charge, error) {
	for c := ChargeSettle; c <= ChargePrompt; c++ {
		if c.String() == name {
			return c, nil
		}
	}
	return 0, fmt.Errorf("estimate: no charge %q: it must be settle, estimate, actual or prompt", name)
}

// FirstOutput is the output in tokens that a choice is expected to have before
// anything has been learned about the model.
const FirstOutput = 512

// A Rule is how a provider charges a call against its limits. The zero Rule is
// ChargeSettle with the output as expected, not as capped. A Rule is data and may
// be copied; its methods change nothing.
type Rule struct {
	Charge Charge

	// PromptByChars estimates the prompt as the provider's own header does: a
	// quarter of the characters of each text, rounded up, one token a message, and
	// one. False: Request.Input.
	PromptByChars bool

	// PromptFree charges nothing for the prompt but Added.
	PromptFree bool

	// Added is charged beside the prompt of every call, in tokens.
	Added int64

	// ReserveCap charges the output cap on arrival, for every choice. Without it
	// ChargeSettle and ChargeActual charge the output that is expected, and
	// ChargeEstimate charges no output. ChargeActual and ChargePrompt never reserve.
	ReserveCap bool

	// MostReserved is the most output that ReserveCap charges on arrival, for all
	// choices together, in tokens; 0 is no bound.
	MostReserved int64

	// OutputBeyond is how much output of a call is not charged, in tokens: Added
	// has paid for it, whether it is made or not.
	OutputBeyond int64

	// DefaultCap is the cap in tokens that the provider assumes when the request
	// states none; 0 is not known: the output that is expected stands for it.
	DefaultCap int64

	// ImageTokens is a flat price of every image; 0 prices images by their size
	// under the rule of the model.
	ImageTokens int64

	// OutputFactor multiplies output tokens that were made, or are expected, but not
	// a reserved cap. 0 is 1.
	OutputFactor int64

	// CachedFree is true if input that was read from a cache is not charged.
	CachedFree bool

	// AudioFree is true if audio in the prompt is not charged as tokens: the
	// provider counts its seconds instead.
	AudioFree bool

	// RefusedCount is true if refused calls are charged too.
	RefusedCount bool
}

// Validate reports a rule that contradicts itself; the error names the field.
func (u Rule) Validate() error {
	switch {
	case u.Charge > ChargePrompt:
		return fmt.Errorf("estimate: Rule.Charge: no charge %d", uint8(u.Charge))
	case u.DefaultCap < 0:
		return fmt.Errorf("estimate: Rule.DefaultCap: %d is negative; 0 leaves it unset", u.DefaultCap)
	case u.ImageTokens < 0:
		return fmt.Errorf("estimate: Rule.ImageTokens: %d is negative; 0 leaves it unset", u.ImageTokens)
	case u.OutputFactor < 0:
		return fmt.Errorf("estimate: Rule.OutputFactor: %d is negative; 0 leaves it unset", u.OutputFactor)
	case u.Added < 0:
		return fmt.Errorf("estimate: Rule.Added: %d is negative; 0 leaves it unset", u.Added)
	case u.MostReserved < 0:
		return fmt.Errorf("estimate: Rule.MostReserved: %d is negative; 0 leaves it unset", u.MostReserved)
	case u.OutputBeyond < 0:
		return fmt.Errorf("estimate: Rule.OutputBeyond: %d is negative; 0 leaves it unset", u.OutputBeyond)
	case u.Charge == ChargeActual && u.ReserveCap:
		return fmt.Errorf("estimate: Rule.ReserveCap: a rule that charges output as it is produced reserves no cap")
	case u.Charge == ChargePrompt && u.ReserveCap:
		return fmt.Errorf("estimate: Rule.ReserveCap: a rule that charges no output reserves no cap")
	}
	return nil
}

// A Price is what a request is charged on arrival, in tokens.
//
// Input and Output are what is expected. StatedInput and StatedOutput are the parts of
// them that the request itself states: the text it carries, the cap it sets. The rest
// is a guess: what the maker of the model adds, an assumed cap, learned outputs, the
// number of choices, the size of what was not read. Only the stated parts can make a
// request too large for a limit. A guess is reduced to the amount that the limit can
// admit.
type Price struct {
	Input, Output             int64
	StatedInput, StatedOutput int64
}

// Price returns what a request is charged on arrival. learned is the output in tokens
// that a whole answer of the model has had (all choices together), 0 if not enough
// answers have been seen. Prices are at least 0 and saturate at math.MaxInt64.
// StatedInput and StatedOutput are at most Input and Output.
func (u Rule) Price(r Request, learned int64) Price {
	var p Price
	p.Input, p.StatedInput = u.prompt(r)
	p.Output, p.StatedOutput = u.output(r, max(learned, 0))
	p.StatedInput = min(p.StatedInput, p.Input)
	p.StatedOutput = min(p.StatedOutput, p.Output)
	return p
}

func (u Rule) prompt(r Request) (input, stated int64) {
	if u.PromptFree {
		return max(u.Added, 0), 0
	}
	images := max(r.ImageTokens, 0)
	input = max(r.Input-images, 0)
	if u.PromptByChars {
		input = addSat(max(r.Quarters, 0), addSat(max(r.Messages, 0), 1))
		input = addSat(input, addSat(max(r.TokenIDs, 0), max(r.MediaTokens, 0)))
	}
	guess := max(r.Guess, 0)
	if u.ImageTokens > 0 { // what this price adds to that by size, no request states
		flat := mulSat(u.ImageTokens, max(r.Images, 0))
		guess = addSat(guess, max(flat-images, 0))
		images = flat
	}
	input = addSat(input, images)
	if u.PromptByChars && r.Understood {
		// What the maker adds is no character of the request, and not in this price.
		guess = addSat(max(r.MediaTokens, 0), min(images, guess))
	}
	return addSat(input, max(u.Added, 0)), max(input-guess, 0)
}

func (u Rule) output(r Request, learned int64) (output, stated int64) {
	if !makesOutput(r.Kind) || u.Charge == ChargePrompt {
		return 0, 0
	}
	choices := max(r.Choices, 1)
	outputCap := max(r.OutputCap, 0)

	expected := int64(FirstOutput)
	if outputCap > 0 {
		expected = min(expected, outputCap)
	}
	expected = mulSat(expected, choices)
	if learned > 0 {
		expected = learned
		if outputCap > 0 {
			expected = min(expected, mulSat(outputCap, choices))
		}
	}
	expected = mulSat(max(expected-max(u.OutputBeyond, 0), 0), max(u.OutputFactor, 1))

	switch {
	case u.Charge == ChargeActual:
		return expected, 0
	case u.ReserveCap && outputCap > 0:
		return u.reserved(mulSat(outputCap, choices)), u.reserved(outputCap)
	case u.ReserveCap && u.DefaultCap > 0:
		return u.reserved(mulSat(u.DefaultCap, choices)), 0
	case u.ReserveCap && u.MostReserved > 0:
		return u.MostReserved, 0
	case u.ReserveCap:
		return expected, 0
	case u.Charge == ChargeEstimate:
		return 0, 0
	}
	return expected, 0
}

// reserved is what is charged on arrival for a cap.
func (u Rule) reserved(tokens int64) int64 {
	if u.MostReserved > 0 {
		return min(tokens, u.MostReserved)
	}
	return tokens
}

// Used is what a call has really used, in tokens, as the response says. Input
// includes what was read from a cache and the tokens of audio, Output includes
// thinking. Negative is not known.
type Used struct {
	Input, Cached, Output int64

	Audio int64 // the part of Input that was audio
}

// Actual is what a call that was priced at (input, output) is charged in the end.
// Under ChargeEstimate that is the price itself. Else it is the usage, or the
// price if the usage is unknown.
func (u Rule) Actual(input, output int64, used Used) (actualInput, actualOutput int64) {
	if u.Charge == ChargeEstimate {
		return input, output
	}
	if used.Input >= 0 && !u.PromptFree {
		input = used.Input
		if u.CachedFree && used.Cached > 0 {
			input = max(input-used.Cached, 0)
		}
		if u.AudioFree && used.Audio > 0 {
			input = max(input-used.Audio, 0)
		}
		input = addSat(input, max(u.Added, 0))
	}
	if used.Output >= 0 {
		output = u.Made(used.Output)
	}
	return input, output
}

// Made is what is charged for so many tokens of output that were made, where output
// is charged as it is made.
func (u Rule) Made(tokens int64) int64 {
	if u.Charge == ChargePrompt {
		return 0
	}
	return mulSat(max(tokens-max(u.OutputBeyond, 0), 0), max(u.OutputFactor, 1))
}

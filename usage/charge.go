package usage

// A ChargeRule says how a provider turns the counts of a finished call into
// what it takes from the limit. The zero value: one token limit, on which
// everything counts once (OpenAI, Azure).
type ChargeRule struct {
	// Split: input and output have limits of their own (Anthropic).
	Split bool
	// InputOnly: only input is limited (Gemini).
	InputOnly bool
	// CachedFree: tokens read from a cache are not counted (Anthropic,
	// Bedrock, Groq, Mistral).
	CachedFree bool
	// AudioBySeconds: audio is counted in seconds, not in tokens (Mistral).
	AudioBySeconds bool
	// OutputFactor multiplies output tokens (Bedrock: 5 for Claude 3.7 and
	// later). 0 is 1; negative is 1.
	OutputFactor int64
}

// A Charge is what a call takes from the limits. What the rule does not limit,
// and what is not known, is unknown.
type Charge struct {
	Tokens       Count // of a common token limit
	Input        Count // of an input token limit, in tokens
	Output       Count // of an output token limit, in tokens
	AudioSeconds Count // of an audio limit, in seconds
}

// Charge applies a rule. Where a total exceeds the sum of its parts the
// difference counts too, once: it is output that the provider did not itemise.
func (c Counts) Charge(r ChargeRule) Charge {
	var free int64
	if r.CachedFree && c.CachedInput.OK {
		free += c.CachedInput.N
	}
	if r.AudioBySeconds && c.AudioInput.OK {
		free += c.AudioInput.N
	}
	factor := max(r.OutputFactor, 1)

	var out Charge
	if r.AudioBySeconds {
		out.AudioSeconds = c.AudioSeconds
	}
	if c.Input.OK {
		out.Input = Count{max(c.Input.N-free, 0), true}
	}
	if c.Output.OK {
		out.Output = Count{scaled(c.Output.N, factor), true}
	}
	switch {
	case r.InputOnly:
		out.Output = Count{}
		return out
	case r.Split:
		return out
	case out.Input.OK && out.Output.OK:
		rest := int64(0)
		if c.Total.OK {
			rest = max(c.Total.N-c.Input.N-c.Output.N, 0)
		}
		out.Tokens = Count{out.Input.N + out.Output.N + rest, true}
	case c.Total.OK && factor == 1:
		out.Tokens = Count{max(c.Total.N-free, 0), true}
	}
	out.Input, out.Output = Count{}, Count{}
	return out
}

// scaled is n*factor, at most 2^60.
func scaled(n, factor int64) int64 {
	const most = 1 << 60
	if n > most/factor {
		return most
	}
	return n * factor
}

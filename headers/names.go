package headers

import (
	"time"
)

// verb is what a field says about its dimension.
type verb uint8

const (
	verbNone verb = iota
	verbLimit
	verbRemaining
	verbReset
	verbPeriod // the window, in seconds
)

var verbs = [...]struct {
	word string
	verb verb
}{
	{"limit", verbLimit},
	{"remaining", verbRemaining},
	{"reset", verbReset},
	{"renewalperiod", verbPeriod},
}

// dimension is what is counted.
type dimension uint8

const (
	unsuffixed dimension = iota // the field names none; it counts requests
	requests
	tokens
	input
	output
	other      // named by name.label
	dimensions = iota
)

var dimensionNames = [dimensions]string{requests: "requests", tokens: "tokens", input: "input_tokens", output: "output_tokens"}

// aliases are the spellings of a dimension, with '-' written as '_'.
var aliases = [...]struct {
	spelled string
	dim     dimension
	label   string
}{
	{"requests", requests, ""},
	{"tokens", tokens, ""},
	{"input_tokens", input, ""},
	{"output_tokens", output, ""},
	{"req", requests, ""},            // Mistral
	{"tokens_prompt", input, ""},     // Fireworks
	{"tokens_generated", output, ""}, // Fireworks
	{"tokens_cache_adjusted_prompt", other, "cache_adjusted_prompt_tokens"}, // Fireworks
}

// notDimensions are words that stand where a dimension could and are none:
// ratelimit-reset-date, x-ratelimit-reset-after, x-ratelimit-over-limit.
var notDimensions = [...]string{"date", "after", "over"}

// units are the windows that a field name may end in.
var units = [...]struct {
	word   string
	length time.Duration // 0: no fixed length
}{
	{"second", time.Second},
	{"minute", time.Minute},
	{"hour", time.Hour},
	{"day", day},
	{"week", 7 * day},
	{"month", 0},
	{"year", 0},
}

// longestName bounds the field names that are looked at. The longest one known
// has 46 characters.
const longestName = 96

// name is a field name taken apart.
type name struct {
	family   *family
	verb     verb
	dim      dimension
	label    string // of other dimensions
	swapped  bool
	window   time.Duration
	calendar string
}

// parseName takes a field name apart. The grammar is that of all providers
// together; upper and lower case are the same.
//
//	field     = prefix rest                       ; prefix: see families
//	rest      = verb [ "-" dimension ] [ window ] ; OpenAI, Azure, Mistral, Cerebras, Kong
//	          / dimension [ window ] "-" verb     ; Anthropic
//	          / scope "-" verb "-" dimension      ; LiteLLM
//	verb      = "limit" / "remaining" / "reset" / "renewalperiod"
//	window    = "-" [ "per-" / 1*4DIGIT "-" ] ( "second" / "minute" / "hour" / "day" / "week" )
//	          / "-month" / "-year"
//
// A name without a verb (x-ratelimit-key, -type, -used, -query-cost) is not a
// quota and is refused.
func parseName(key string) (n name, ok bool) {
	if len(key) > longestName {
		return name{}, false
	}
	var buf [longestName]byte
	low := buf[:len(key)]
	for i := range low {
		c := key[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		low[i] = c
	}
	for i := range families {
		if p := families[i].prefix; len(low) > len(p) && string(low[:len(p)]) == p {
			n.family = &families[i]
			low = low[len(p):]
			break
		}
	}
	if n.family == nil {
		return name{}, false
	}

	before, after := n.takeVerb(low)
	if n.verb == verbNone {
		return name{}, false
	}
	n.swapped = len(before) > 0 && len(after) == 0
	if n.swapped {
		before = n.takeWindow(before)
	} else {
		after = n.takeWindow(after)
	}
	if n.family.window != 0 || n.family.calendar != "" {
		n.window, n.calendar = n.family.window, n.family.calendar
	}

	// The label is built in place: before and after lie in the same buffer, with
	// the verb between them.
	k := copy(buf[:], before)
	if len(before) > 0 && len(after) > 0 {
		buf[k] = '_'
		k++
	}
	k += copy(buf[k:], after)
	for i := range buf[:k] {
		if buf[i] == '-' {
			buf[i] = '_'
		}
	}
	return n, n.setDimension(buf[:k])
}

// takeVerb finds the verb of s and returns the words before and after it. The
// first word is preferred, then the last, then any other.
func (n *name) takeVerb(s []byte) (before, after []byte) {
	for _, v := range verbs {
		w := v.word
		switch {
		case len(s) < len(w):
		case string(s[:len(w)]) == w && len(s) == len(w):
			n.verb = v.verb
			return nil, nil
		case string(s[:len(w)]) == w && s[len(w)] == '-':
			n.verb = v.verb
			return nil, s[len(w)+1:]
		}
	}
	for _, v := range verbs {
		w := v.word
		if i := len(s) - len(w); i > 1 && s[i-1] == '-' && string(s[i:]) == w {
			n.verb = v.verb
			return s[:i-1], nil
		}
	}
	for i := 1; i < len(s); i++ {
		if s[i-1] != '-' {
			continue
		}
		for _, v := range verbs {
			w := v.word
			if j := i + len(w); j+1 < len(s) && s[j] == '-' && string(s[i:j]) == w && i > 1 {
				n.verb = v.verb
				return s[:i-1], s[j+1:]
			}
		}
	}
	return nil, nil
}

// takeWindow removes the window from the end of s, where it has one.
func (n *name) takeWindow(s []byte) []byte {
	for _, u := range units {
		i := len(s) - len(u.word)
		if i < 0 || string(s[i:]) != u.word || i > 0 && s[i-1] != '-' {
			continue
		}
		rest := s[:max(i-1, 0)]
		if u.length == 0 {
			n.calendar = u.word
			return rest
		}
		n.window = u.length
		j := len(rest)
		for j > 0 && '0' <= rest[j-1] && rest[j-1] <= '9' {
			j--
		}
		if digits := rest[j:]; len(digits) > 0 && len(digits) <= 4 && (j == 0 || rest[j-1] == '-') {
			k := 0
			for _, c := range digits {
				k = k*10 + int(c-'0')
			}
			n.window *= time.Duration(k)
			return rest[:max(j-1, 0)]
		}
		if string(rest) == "per" {
			return nil
		}
		if k := len(rest) - len("-per"); k >= 0 && string(rest[k:]) == "-per" {
			return rest[:k]
		}
		return rest
	}
	return s
}

// setDimension names what spelled counts.
func (n *name) setDimension(spelled []byte) bool {
	if n.family.dim != unsuffixed {
		n.dim = n.family.dim
		return len(spelled) == 0
	}
	if len(spelled) == 0 {
		n.dim = unsuffixed
		return true
	}
	for _, a := range aliases {
		if string(spelled) == a.spelled {
			n.dim, n.label = a.dim, a.label
			return true
		}
	}
	for _, w := range notDimensions {
		if string(spelled) == w {
			return false
		}
	}
	n.dim, n.label = other, string(spelled)
	return true
}

// common holds the names that nearly every answer with limits has, taken apart
// once. It is filled by parseName, so it cannot disagree with it.
var common = func() map[string]name {
	m := map[string]name{}
	add := func(key string) {
		if n, ok := parseName(key); ok {
			m[key] = n
		}
	}
	for _, v := range []string{"Limit", "Remaining", "Reset"} {
		for _, d := range []string{"Requests", "Tokens"} {
			add("X-Ratelimit-" + v + "-" + d)
		}
		for _, d := range []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"} {
			add("Anthropic-Ratelimit-" + d + "-" + v)
		}
	}
	return m
}()

// foldPrefix reports whether key begins with prefix, which is in lower case.
// Only ASCII folds: strings.EqualFold would take a Kelvin sign for a k.
func foldPrefix(key, prefix string) bool {
	if len(key) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		c := key[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != prefix[i] {
			return false
		}
	}
	return true
}

// foldEqual is the same for the whole key.
func foldEqual(key, lower string) bool { return len(key) == len(lower) && foldPrefix(key, lower) }

// kind tells fields apart by their first letters, at the price of a few
// comparisons for the many fields that are none of ours.
type kind uint8

const (
	kindNone kind = iota
	kindQuota
	kindIETF    // RateLimit, RateLimit-Policy, X-RateLimit-Policy
	kindUnified // anthropic-ratelimit-unified-*
	kindCodex   // x-codex-*
	kindRetry   // Retry-After and its relatives
	kindShould  // x-should-retry
)

func kindOf(key string) kind {
	if len(key) < len("ratelimit") {
		return kindNone
	}
	switch key[0] | 0x20 {
	case 'r':
		switch {
		case foldEqual(key, "ratelimit"), foldEqual(key, "ratelimit-policy"):
			return kindIETF
		case foldPrefix(key, "ratelimit-"), foldPrefix(key, "ratelimitbysize-"):
			return kindQuota
		case foldPrefix(key, "retry-after"):
			return kindRetry
		}
	case 'a':
		switch {
		case !foldPrefix(key, "anthropic-ratelimit-"):
		case foldPrefix(key, "anthropic-ratelimit-unified-"):
			return kindUnified
		default:
			return kindQuota
		}
	case 'x':
		if key[1] != '-' {
			return kindNone
		}
		switch c := key[2] | 0x20; {
		case c == 'r' && foldEqual(key, "x-ratelimit-retry-after"), c == 'a' && foldEqual(key, "x-ai-ratelimit-retry-after"):
			return kindRetry
		case c == 'r' && (foldEqual(key, "x-retry-after") || foldEqual(key, "x-retry-after-ms")):
			return kindRetry
		case c == 'r' && !foldPrefix(key, "x-rate"): // X-Request-Id, on nearly every answer
		case c == 'r' && foldEqual(key, "x-ratelimit-policy"):
			return kindIETF
		case c == 'r' && (foldPrefix(key, "x-ratelimit-") || foldPrefix(key, "x-rate-limit-") || foldPrefix(key, "x-ratelimitbysize-")):
			return kindQuota
		case c == 'm' && foldEqual(key, "x-ms-retry-after-ms"):
			return kindRetry
		case c == 's' && foldEqual(key, "x-should-retry"):
			return kindShould
		case c == 'c' && foldPrefix(key, "x-codex-"):
			return kindCodex
		case c == 't' && foldPrefix(key, "x-trial-endpoint-call-"), c == 'e' && foldPrefix(key, "x-endpoint-monthly-call-"):
			return kindQuota
		}
	}
	return kindNone
}

package refusal

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/internal/retryafter"
)

// times are the waits that a body asks for.
type times struct {
	retry   time.Duration // when to try again
	resetIn time.Duration // when a limit is restored, as a length of time
	resetAt time.Duration // the same as an instant, which needs a clock
}

// join keeps the longer of each.
func (w *times) join(o *times) {
	w.retry, w.resetIn, w.resetAt = max(w.retry, o.retry), max(w.resetIn, o.resetIn), max(w.resetAt, o.resetAt)
}

// reset is when a limit is restored. A length and an instant in one body say the
// same, and the length needs no clock, so it counts.
func (w *times) reset() time.Duration {
	if w.resetIn > 0 {
		return w.resetIn
	}
	return w.resetAt
}

// longest is the wait that is never too short.
func (w *times) longest() time.Duration { return max(w.retry, w.reset()) }

type waitKind uint8

const (
	retryIn waitKind = iota
	resetIn
	resetAt
)

// waitMembers are the names of members that hold a wait, in lower case without
// "_" and "-". A number is in the unit, or an instant.
var waitMembers = map[string]struct {
	kind   waitKind
	unit   time.Duration
	source string
}{
	"retryafter":             {retryIn, time.Second, "diegosouzapw/OmniRoute#14188; LiteLLM proxy; Discord's form"},
	"retryafterseconds":      {retryIn, time.Second, "gateways"},
	"retryaftersecs":         {retryIn, time.Second, "gateways"},
	"retryaftersec":          {retryIn, time.Second, "gateways"},
	"retryin":                {retryIn, time.Second, "gateways"},
	"retryinseconds":         {retryIn, time.Second, "gateways"},
	"retrydelay":             {retryIn, time.Second, "google.rpc.RetryInfo: a duration"},
	"retrydelayseconds":      {retryIn, time.Second, "gateways"},
	"retryat":                {retryIn, time.Second, "gateways: an instant"},
	"waitseconds":            {retryIn, time.Second, "gateways"},
	"waittime":               {retryIn, time.Second, "gateways"},
	"waittimeseconds":        {retryIn, time.Second, "gateways"},
	"cooldownseconds":        {retryIn, time.Second, "gateways"},
	"backoffseconds":         {retryIn, time.Second, "gateways"},
	"estimatedtime":          {retryIn, time.Second, "Hugging Face: until a model is loaded"},
	"timeremaining":          {retryIn, time.Second, "GitHub Models, as in its header"},
	"retryafterms":           {retryIn, time.Millisecond, "Azure OpenAI, as in its header"},
	"retryaftermillis":       {retryIn, time.Millisecond, "gateways"},
	"retryaftermilliseconds": {retryIn, time.Millisecond, "gateways"},
	"retryinms":              {retryIn, time.Millisecond, "gateways"},
	"retrydelayms":           {retryIn, time.Millisecond, "gateways"},
	"waitms":                 {retryIn, time.Millisecond, "gateways"},
	"cooldownms":             {retryIn, time.Millisecond, "gateways"},
	"resetsinseconds":        {resetIn, time.Second, "NousResearch/hermes-agent#26893: ChatGPT plans"},
	"resetinseconds":         {resetIn, time.Second, "gateways"},
	"resetsin":               {resetIn, time.Second, "gateways"},
	"resetin":                {resetIn, time.Second, "gateways"},
	"resetafter":             {resetIn, time.Second, "gateways"},
	"resetafterseconds":      {resetIn, time.Second, "ChatGPT plans, as in x-codex-primary-reset-after-seconds"},
	"secondsuntilreset":      {resetIn, time.Second, "gateways"},
	"quotaresetdelay":        {resetIn, time.Second, "Google Cloud Code, google.rpc.ErrorInfo: a duration"},
	"resetinms":              {resetIn, time.Millisecond, "gateways"},
	"resetsinms":             {resetIn, time.Millisecond, "gateways"},
	"resetafterms":           {resetIn, time.Millisecond, "gateways"},
	"resetsat":               {resetAt, time.Second, "NousResearch/hermes-agent#26893: ChatGPT plans"},
	"resetat":                {resetAt, time.Second, "diegosouzapw/OmniRoute#14188"},
	"resettime":              {resetAt, time.Second, "gateways"},
	"resettimestamp":         {resetAt, time.Second, "gateways"},
	"quotaresettimestamp":    {resetAt, time.Second, "Google Cloud Code, google.rpc.ErrorInfo"},
	"nextresettime":          {resetAt, time.Second, "gateways"},
	"nextflushtime":          {resetAt, time.Second, "Zhipu error codes"},
	"availableat":            {resetAt, time.Second, "gateways"},
	"nextavailableat":        {resetAt, time.Second, "gateways"},
}

// longestMember bounds the names that are looked up.
const longestMember = 40

// waitMember is the name of a member as waitMembers has it.
func waitMember(key string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(key))
}

// member keeps the wait of one member, if it holds one.
//
//	value = number / duration / date / time span / ISO 8601
func (w *times) member(key string, raw []byte, isString bool, clock *retryafter.Clock) {
	if len(key) > longestMember || len(raw) == 0 || len(raw) > maxWord {
		return
	}
	m, ok := waitMembers[waitMember(key)]
	if !ok {
		return
	}
	s := string(raw)
	if isString {
		s = strings.TrimSpace(text(raw))
	} else if strings.ContainsAny(s, "eE") {
		s = withoutExponent(s)
	}
	d, instant, ok := clock.Number(s, m.unit)
	if !ok && isString {
		var rest string
		if d, instant, rest, ok = clock.Spelled(strings.ToLower(s)); rest != "" {
			ok = false
		}
		if !ok {
			d, ok = clock.Date(s)
			instant = ok
		}
		if !ok {
			d, ok = retryafter.TimeSpan(s)
		}
		if !ok {
			d, ok = retryafter.ISO(s)
		}
	}
	if !ok {
		return
	}
	w.keep(m.kind, d, instant)
}

// keep keeps the wait of a member of that kind.
func (w *times) keep(kind waitKind, d time.Duration, instant bool) {
	d = min(d, MaxWait)
	switch {
	case kind == retryIn:
		w.retry = max(w.retry, d)
	case kind == resetAt || instant:
		w.resetAt = max(w.resetAt, d)
	default:
		w.resetIn = max(w.resetIn, d)
	}
}

// span keeps the wait of a member that is a google.protobuf.Duration or Timestamp
// written as an object: {"seconds": "41", "nanos": 999999999}.
func (w *times) span(key string, object []byte, clock *retryafter.Clock) {
	if len(key) > longestMember || len(object) > maxWord {
		return
	}
	m, ok := waitMembers[waitMember(key)]
	if !ok {
		return
	}
	var at struct{ Seconds, Nanos json.Number }
	if json.Unmarshal(object, &at) != nil || at.Seconds == "" && at.Nanos == "" {
		return
	}
	if d, instant, ok := clock.Number(protoSeconds(at.Seconds.String(), at.Nanos.String()), time.Second); ok {
		w.keep(m.kind, d, instant)
	}
}

// withoutExponent writes a JSON number without its exponent: encoders that print
// fourteen digits write milliseconds since 1970 as 1.789819242e+12. Other words
// stay as they are.
func withoutExponent(s string) string {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 1) {
		return s
	}
	return strconv.FormatFloat(min(f, math.MaxInt64), 'f', -1, 64)
}

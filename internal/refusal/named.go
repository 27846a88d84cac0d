package refusal

import (
	"regexp"
	"strings"
	"time"
)

// The sentences by which providers name a limit. A message is at most 8 KiB here,
// and expressions of this package take linear time.
var (
	// "rate limit of 30,000 input tokens per minute", "limited to 10 API calls / minute"
	ratePhrase = regexp.MustCompile(`(\d[\d,]{0,18}) ?(k|m)? ?(input tokens|output tokens|prompt tokens|completion tokens|tokens|requests|api calls|calls|queries|images)? ?(?:per|/|a|every|each) ?(second|sec|minute|min|hour|day)\b`)
	// "organization max RPM: 3", "TPM rate limit, current: 1410, limit: 100", "limit (TPM): 100"
	shortPhrase = regexp.MustCompile(`\b(rpm|tpm|rpd|tpd|itpm|otpm|rps|qps|tps)\b[^.\n\d]{0,40}?(?:current: ?\d[\d,]*[^.\n\d]{1,20})?:? (\d[\d,]{0,18})`)
)

var phraseWindows = map[string]time.Duration{
	"second": time.Second, "sec": time.Second, "minute": time.Minute, "min": time.Minute,
	"hour": time.Hour, "day": 24 * time.Hour,
}

var phraseDimensions = map[string]string{
	"input tokens": "input", "prompt tokens": "input", "output tokens": "output", "completion tokens": "output",
	"tokens": "tokens", "requests": "requests", "api calls": "requests", "calls": "requests", "queries": "requests",
}

var shortNames = map[string]struct {
	dimension string
	window    time.Duration
}{
	"rpm": {"requests", time.Minute}, "tpm": {"tokens", time.Minute}, "rpd": {"requests", 24 * time.Hour},
	"tpd": {"tokens", 24 * time.Hour}, "itpm": {"input", time.Minute}, "otpm": {"output", time.Minute},
	"rps": {"requests", time.Second}, "qps": {"requests", time.Second}, "tps": {"tokens", time.Second},
}

// name fills in the limit that the body names, and its dimension where that is not
// known yet. Nothing is named where two phrases disagree.
func (v *Verdict) name(f *fields, s sentenceText) {
	if f.quotaValue > 0 {
		id := strings.ToLower(f.quotaOf)
		v.Stated = f.quotaValue
		switch {
		case strings.Contains(id, "perday"):
			v.Window = 24 * time.Hour
		case strings.Contains(id, "perminute"):
			v.Window = time.Minute
		case strings.Contains(id, "perhour"):
			v.Window = time.Hour
		case strings.Contains(id, "persecond"):
			v.Window = time.Second
		}
		return
	}
	text := string(s)
	if !strings.ContainsAny(text, "0123456789") {
		return
	}
	for _, m := range ratePhrase.FindAllStringSubmatch(text, 8) {
		n, _, ok := count(m[1])
		if !ok || n <= 0 {
			continue
		}
		switch m[2] {
		case "k":
			n *= 1000
		case "m":
			n *= 1000000
		}
		v.state(n, phraseWindows[m[4]], phraseDimensions[m[3]])
	}
	for _, m := range shortPhrase.FindAllStringSubmatch(text, 8) {
		if n, rest, ok := count(strings.TrimRight(m[2], ",")); ok && rest == "" && n > 0 && v.Limit == 0 {
			v.state(n, shortNames[m[1]].window, shortNames[m[1]].dimension)
		}
	}
	if v.Stated < 0 {
		v.Stated, v.Window = 0, 0
	}
}

// state keeps one phrase. A second one that says something else leaves -1.
func (v *Verdict) state(n int64, window time.Duration, dimension string) {
	switch {
	case dimension != "" && v.Dimension != "" && dimension != v.Dimension && !(v.Dimension == "tokens" && (dimension == "input" || dimension == "output")):
		return // it speaks of another limit
	case v.Stated != 0 && (v.Stated != n || v.Window != window):
		v.Stated = -1
		return
	}
	v.Stated, v.Window = n, window
	if dimension != "" {
		v.Dimension = dimension
	}
}

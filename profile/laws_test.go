package profile

import (
	"fmt"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
)

func day(s string) time.Time {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		panic(err)
	}
	return t.Add(12 * time.Hour)
}

func TestEveryLawAndDebitIsWhole(t *testing.T) {
	names := append(Names(), "huggingface-router")
	for _, l := range laws {
		where := l.Provider + " " + l.Field + " " + l.From
		if _, err := path.Match(l.Field, ""); err != nil || l.Field == "" {
			t.Errorf("%s: field", where)
		}
		if !slices.Contains(names, l.Provider) || l.Source == "" {
			t.Errorf("%s: no such provider, or no source", where)
		}
		if l.Until != "" && l.From >= l.Until {
			t.Errorf("%s: from %s until %s", where, l.From, l.Until)
		}
		if l.Shape.Windowed() && l.Window == 0 {
			t.Errorf("%s: a window without length", where)
		}
		if l.Zone != "" {
			if _, err := time.LoadLocation(l.Zone); err != nil {
				t.Errorf("%s: %v", where, err)
			}
		}
	}
	for _, d := range debits {
		if !slices.Contains(names, d.Provider) || d.Source == "" || d.Prompt == ByUnknown {
			t.Errorf("%s %s %s: not whole", d.Provider, d.Endpoint, d.Model)
		}
	}
}

func TestALawHoldsFromItsDayOn(t *testing.T) {
	for _, c := range []struct {
		provider, field, day string
		want                 limit.Shape
		full                 bool
	}{
		{"anthropic", "requests", "2024-06-12", limit.ShapeFixed, false},
		{"anthropic", "requests", "2024-11-14", limit.ShapeBucket, true},
		{"anthropic", "tokens", "2025-01-01", limit.ShapeUnknown, false}, // a sum, no counter
		{"azure", "tokens", "2026-03-30", limit.ShapeLog, false},
		{"azure", "tokens", "2026-03-31", limit.ShapeBucket, true},
		{"mistral", "req-minute", "2025-09-01", limit.ShapeFixed, false},
		{"mistral", "req-minute", "2026-01-13", limit.ShapeTwoWindows, false},
		{"mistral", "tokens-month", "2026-01-13", limit.ShapeUnknown, false},
		{"openai", "project-tokens", "2026-01-13", limit.ShapeBucket, true},
		{"groq", "tokens", "2026-01-13", limit.ShapeBucket, true},
		{"groq", "requests", "2026-01-13", limit.ShapeUnknown, false},
		{"xai", "requests", "2026-01-13", limit.ShapeLog, false},
	} {
		l, ok := LawFor(c.provider, c.field, day(c.day))
		if !ok || l.Shape != c.want || l.FullWindow() != c.full {
			t.Errorf("%s %s on %s: %v, %v, full %v; want %v, full %v", c.provider, c.field, c.day, ok, l.Shape, l.FullWindow(), c.want, c.full)
		}
	}
	for _, p := range []string{"together", "cohere", "bedrock", "nowhere"} {
		if l, ok := LawFor(p, "requests", day("2026-01-01")); ok {
			t.Errorf("%s: %+v, but nothing is known", p, l)
		}
	}
}

func TestADayBeginsAtMidnightOfItsZone(t *testing.T) {
	base := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	l, _ := LawFor("gemini", "requests-day", base)
	if m := l.At(base); m.Shape != limit.ShapeFixed || m.Edge != -19*time.Hour {
		t.Errorf("Pacific midnight: %+v", m)
	}
	l, _ = LawFor("openrouter", "requests-day", base)
	if m := l.At(base); m.Edge != -3*time.Hour {
		t.Errorf("UTC midnight: %+v", m)
	}
	l.Zone = ""
	if m := l.At(base); m.Shape != limit.ShapeUnknown {
		t.Errorf("a day of an unknown zone: %+v", m)
	}
}

func TestADebitIsWhatTheFieldsShowed(t *testing.T) {
	for _, c := range []struct {
		name, provider, endpoint, model, day string
		stream                               bool
		call                                 Call
		arrive, end                          int64
	}{
		{"characters and the cap, until March 2025", "openai", "/v1/chat/completions", "gpt-4", "2023-07-29", false,
			Call{Characters: 3000, Cap: 500, Choices: 2}, 750 + 1000, 0},
		{"16 where no cap is set", "openai", "/v1/chat/completions", "gpt-4", "2023-07-29", false, Call{Characters: 400}, 100 + 16, 0},
		{"characters alone since", "openai", "/v1/chat/completions", "gpt-4.1", "2026-01-01", false,
			Call{Characters: 3001, Cap: 500, Output: 90}, 751, 0},
		{"input tokens and 19", "openai", "/v1/responses", "gpt-4o", "2026-01-01", false, Call{Characters: 9000, Input: 100, Output: 500}, 119, 0},
		{"and 217 with function tools", "openai", "/v1/responses", "gpt-4o", "2026-01-01", true, Call{Input: 100, Tools: true}, 317, 0},
		{"output beyond the reservation", "openai", "/v1/responses", "gpt-5-nano", "2026-06-11", false, Call{Input: 100, Output: 300}, 317, 83},
		{"none beyond it", "openai", "/v1/responses", "gpt-5-nano", "2026-06-11", false, Call{Input: 100, Output: 200}, 317, 0},
		{"cache reads are free", "anthropic", "/v1/messages", "claude", "2026-01-01", false, Call{Input: 1000, Cached: 900, Output: 50, Cap: 4096}, 100, 50},
		{"streams reserved output until June 2025", "anthropic", "/v1/messages", "claude", "2025-05-01", true, Call{Input: 10, Output: 50, Cap: 8192}, 4010, -3950},
		{"the total at the end, less what was cached", "mistral", "/v1/chat", "mistral-small", "2026-01-01", false, Call{Input: 100, Cached: 60, Output: 50}, 0, 90},
		{"a flat number", "azure", "/models/chat/completions", "Kimi-K2.5", "2026-02-06", false, Call{Characters: 9000}, 16, 0},
		{"characters without the cap", "azure", "/openai/deployments/x/chat/completions", "gpt-4o", "2026-06-01", false, Call{Characters: 400, Cap: 4000}, 100, 0},
	} {
		d, ok := DebitFor(c.provider, c.endpoint, c.model, c.stream, day(c.day))
		in, out := d.Arrival(c.call)
		endIn, endOut := d.End(c.call)
		if !ok || in+out != c.arrive || endIn+endOut != c.end {
			t.Errorf("%s: %v, on arrival %d, at the end %d; want %d and %d", c.name, ok, in+out, endIn+endOut, c.arrive, c.end)
		}
	}
}

// The charge rule that the ledger runs charges what the debit says, on arrival and
// in the end.
func TestARuleChargesAsItsDebit(t *testing.T) {
	for i, d := range debits {
		for _, c := range []Call{
			{Characters: 400, Input: 100, Output: 90, Cap: 500, Choices: 1},
			{Characters: 400, Input: 100, Cached: 60, Output: 900, Choices: 1},
			{Characters: 400, Input: 100, Output: 3000, Cap: 9000, Choices: 1, Tools: true},
			{Characters: 4, Input: 1, Output: 0, Cap: 20, Choices: 1},
		} {
			rule := d.Rule(estimate.Rule{}, c.Tools)
			if err := rule.Validate(); err != nil {
				t.Errorf("debit %d: %v", i, err)
			}
			in, out := d.Arrival(c)
			// The form of messages is no character of a prompt: a quarter less one.
			r := estimate.Request{Kind: "chat", Understood: true, Input: c.Input, Quarters: c.Characters/4 - 1, Chars: c.Characters, OutputCap: c.Cap, Choices: c.Choices}
			p := rule.Price(r, 0)
			free := int64(0)
			if d.CachedFree && d.Prompt == ByTokens {
				free = c.Cached // which only the answer tells
			}
			if d.Prompt != ByTotal && p.Input != in+free {
				t.Errorf("debit %d: %+v: the rule takes %d of input on arrival, the debit %d", i, c, p.Input, in+free)
			}
			if rule.ReserveCap && p.Output != out {
				t.Errorf("debit %d: %+v: the rule reserves %d, the debit %d", i, c, p.Output, out)
			}
			endIn, endOut := d.End(c)
			gotIn, gotOut := rule.Actual(p.Input, p.Output, estimate.Used{Input: c.Input, Cached: c.Cached, Output: c.Output})
			if d.Provider == "groq" {
				gotIn = p.Input // corrected to the usage, which no record contradicts
			}
			if gotIn != in+endIn || gotOut != out+endOut {
				t.Errorf("debit %d: %+v: the rule charges %d and %d in the end, the debit %d and %d", i, c, gotIn, gotOut, in+endIn, out+endOut)
			}
		}
	}
}

func TestARuleOfTheUserGoesBeforeTheRecords(t *testing.T) {
	p, _ := ByName("openai")
	if !p.AsRecorded() {
		t.Error("the table's own profile does not charge as recorded")
	}
	p.Rule.ReserveCap = true
	if p.AsRecorded() {
		t.Error("a changed rule charges as recorded")
	}
	for _, name := range []string{"github-models", "unknown"} {
		if p, _ := ByName(name); p.AsRecorded() {
			t.Errorf("%s charges as recorded", name)
		}
	}
}

func ExampleLawFor() {
	for _, d := range []string{"2026-03-01", "2026-06-01"} {
		l, _ := LawFor("azure", "tokens", day(d))
		fmt.Println(d, l.Shape, "full window at once:", l.FullWindow())
	}
	// Output:
	// 2026-03-01 sliding log full window at once: false
	// 2026-06-01 bucket full window at once: true
}

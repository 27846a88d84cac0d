package estimate

import (
	"math"
	"strings"
	"testing"
)

// This test reads like the rules do.
func TestAPriceFollowsTheRule(t *testing.T) {
	r := Request{Kind: "chat", Input: 900, Quarters: 120, Messages: 3, Images: 1, ImageTokens: 300, OutputCap: 4000, Choices: 2}
	for _, c := range []struct {
		name          string
		rule          Rule
		cap           int64
		learned       int64
		input, output int64
	}{
		{"settle, expected", Rule{}, 4000, 0, 900, 2 * 512},
		{"settle, small cap", Rule{}, 100, 0, 900, 2 * 100},
		{"settle, learned", Rule{}, 4000, 250, 900, 250},
		{"settle, learned above the cap", Rule{}, 100, 250, 900, 200},
		{"settle, no cap", Rule{}, 0, 0, 900, 2 * 512},
		{"settle, no cap, learned", Rule{}, 0, 9000, 900, 9000},
		{"settle, reserved", Rule{ReserveCap: true}, 4000, 250, 900, 8000},
		{"settle, reserved, default", Rule{ReserveCap: true, DefaultCap: 16}, 0, 250, 900, 32},
		{"settle, reserved, nothing known", Rule{ReserveCap: true}, 0, 0, 900, 2 * 512},
		{"settle, reserved, factor at the end only", Rule{ReserveCap: true, OutputFactor: 5}, 4000, 0, 900, 8000},
		{"estimate", Rule{Charge: ChargeEstimate}, 4000, 250, 900, 0},
		{"estimate, reserved", Rule{Charge: ChargeEstimate, ReserveCap: true}, 4000, 250, 900, 8000},
		{"estimate by characters", Rule{Charge: ChargeEstimate, PromptByChars: true}, 4000, 0, 120 + 3 + 1 + 300, 0},
		{"estimate by characters, flat images", Rule{Charge: ChargeEstimate, PromptByChars: true, ImageTokens: 765}, 4000, 0, 120 + 3 + 1 + 765, 0},
		{"flat images", Rule{ImageTokens: 765}, 4000, 0, 600 + 765, 2 * 512},
		{"actual", Rule{Charge: ChargeActual}, 4000, 0, 900, 2 * 512},
		{"actual, learned", Rule{Charge: ChargeActual}, 4000, 70, 900, 70},
		{"actual, factor", Rule{Charge: ChargeActual, OutputFactor: 5}, 4000, 70, 900, 350},
		{"negative learned is none", Rule{}, 4000, -1, 900, 2 * 512},
	} {
		r := r
		r.OutputCap = c.cap
		if p := c.rule.Price(r, c.learned); p.Input != c.input || p.Output != c.output {
			t.Errorf("%s: %d, %d; want %d, %d", c.name, p.Input, p.Output, c.input, c.output)
		}
	}
	for _, kind := range []string{"embeddings", "moderations", "rerank", "count"} {
		if p := (Rule{ReserveCap: true, DefaultCap: 16}).Price(Request{Kind: kind, OutputCap: 9}, 50); p.Output != 0 {
			t.Errorf("%s: %d tokens of output", kind, p.Output)
		}
	}
}

func TestTheActualChargeFollowsTheRule(t *testing.T) {
	for _, c := range []struct {
		name          string
		rule          Rule
		used          Used
		input, output int64
	}{
		{"settle", Rule{}, Used{Input: 90, Cached: 40, Output: 7}, 90, 7},
		{"settle, cached free", Rule{CachedFree: true}, Used{Input: 90, Cached: 40, Output: 7}, 50, 7},
		{"settle, cached unknown", Rule{CachedFree: true}, Used{Input: 90, Cached: -1, Output: 7}, 90, 7},
		{"settle, more cached than read", Rule{CachedFree: true}, Used{Input: 90, Cached: 100, Output: 7}, 0, 7},
		{"settle, audio free", Rule{AudioFree: true}, Used{Input: 90, Cached: 10, Output: 7, Audio: 40}, 50, 7},
		{"settle, audio and cached free", Rule{AudioFree: true, CachedFree: true}, Used{Input: 90, Cached: 10, Output: 7, Audio: 40}, 40, 7},
		{"settle, more audio than read", Rule{AudioFree: true}, Used{Input: 90, Output: 7, Audio: 99}, 0, 7},
		{"settle, audio charged", Rule{}, Used{Input: 90, Output: 7, Audio: 40}, 90, 7},
		{"settle, factor", Rule{OutputFactor: 5}, Used{Input: 90, Output: 7}, 90, 35},
		{"settle, nothing known", Rule{}, Used{Input: -1, Cached: -1, Output: -1}, 100, 200},
		{"settle, output unknown", Rule{}, Used{Input: 90, Output: -1}, 90, 200},
		{"settle, zero is known", Rule{}, Used{}, 0, 0},
		{"actual", Rule{Charge: ChargeActual, CachedFree: true}, Used{Input: 90, Cached: 40, Output: 7}, 50, 7},
		{"estimate is never corrected", Rule{Charge: ChargeEstimate, CachedFree: true}, Used{Input: 90, Cached: 40, Output: 7}, 100, 200},
	} {
		if in, out := c.rule.Actual(100, 200, c.used); in != c.input || out != c.output {
			t.Errorf("%s: %d, %d; want %d, %d", c.name, in, out, c.input, c.output)
		}
	}
}

// No number in a request or a rule makes a price wrap round.
func TestNoPriceWrapsRound(t *testing.T) {
	edges := []int64{math.MinInt64, -1, 0, 1, 5, math.MaxInt64 - 1, math.MaxInt64}
	n := 0
	for _, a := range edges {
		for _, b := range edges {
			for _, c := range []Charge{ChargeSettle, ChargeEstimate, ChargeActual} {
				for _, reserve := range []bool{false, true} {
					r := Request{Input: a, Quarters: b, Messages: a, TokenIDs: b, Images: a, ImageTokens: b, MediaTokens: a, OutputCap: b, Choices: a}
					u := Rule{Charge: c, ReserveCap: reserve, PromptByChars: reserve, ImageTokens: a, OutputFactor: b, DefaultCap: a, CachedFree: true}
					r.Guess = b
					p := u.Price(r, b)
					ain, aout := u.Actual(p.Input, p.Output, Used{Input: a, Cached: b, Output: a})
					if p.Input < 0 || p.Output < 0 || ain < 0 || aout < 0 ||
						p.StatedInput < 0 || p.StatedInput > p.Input || p.StatedOutput < 0 || p.StatedOutput > p.Output {
						t.Fatalf("%+v %+v: %+v, %d, %d", u, r, p, ain, aout)
					}
					n++
				}
			}
		}
	}
	if n == 0 {
		t.Fatal("nothing was tried")
	}
}

func TestChargesHaveNames(t *testing.T) {
	for c, want := range map[Charge]string{ChargeSettle: "settle", ChargeEstimate: "estimate", ChargeActual: "actual", 9: "Charge(9)"} {
		if c.String() != want {
			t.Errorf("%v, want %s", c, want)
		}
	}
}

func TestARuleThatContradictsItselfIsNamed(t *testing.T) {
	for field, u := range map[string]Rule{
		"":             {Charge: ChargeSettle, ReserveCap: true, DefaultCap: 1, ImageTokens: 1, OutputFactor: 5},
		"Charge":       {Charge: 9},
		"DefaultCap":   {DefaultCap: -1},
		"ImageTokens":  {ImageTokens: -1},
		"OutputFactor": {OutputFactor: -1},
		"ReserveCap":   {Charge: ChargeActual, ReserveCap: true},
	} {
		err := u.Validate()
		if field == "" && err != nil || field != "" && (err == nil || !strings.Contains(err.Error(), "Rule."+field+":")) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// Some providers bill a document as the text that its
// base64 is. In the end the charge is the usage, and no estimate caps it. If the
// usage is below the price, the rest comes back.
func TestWhatWasUsedBeyondThePriceIsCharged(t *testing.T) {
	pdf := strings.Repeat("q7Zt/0Xa+9PbLm3R", 100_000)
	r := Inspect([]byte(`{"model":"mistral-small","messages":[{"role":"user","content":[{"type":"document_url","document_url":"data:application/pdf;base64,`+pdf+`"}]}],"max_tokens":100}`), Options{})
	for _, rule := range []Rule{{}, {ReserveCap: true}, {Charge: ChargeActual}, {PromptByChars: true, CachedFree: true}} {
		p := rule.Price(r, 0)
		if p.Input > maxGuessedPages*pageTokens+1000 {
			t.Errorf("%+v: %d tokens on arrival", rule, p.Input)
		}
		for _, used := range []int64{1_200_000, 3, 0} {
			if in, out := rule.Actual(p.Input, p.Output, Used{Input: used, Output: 7}); in != used || out != 7 {
				t.Errorf("%+v: %d and 7 were used, charged %d and %d", rule, used, in, out)
			}
		}
	}
}

// Only the text that a request carries and the cap that it sets are stated. What is
// assumed, learned, multiplied by choices or not read is a guess.
func TestAPriceTellsWhatTheRequestStates(t *testing.T) {
	inspect := func(body string) Request { return Inspect([]byte(body), Options{Counter: oneToken{}}) }
	for _, c := range []struct {
		name          string
		rule          Rule
		request       Request
		learned       int64
		input, output int64 // stated
	}{
		{"no cap, nothing learned", Rule{}, inspect(`{"prompt":"x"}`), 0, 1, 0},
		{"no cap, learned", Rule{}, inspect(`{"prompt":"x"}`), 700, 1, 0},
		{"a cap that is not reserved", Rule{}, inspect(`{"prompt":"x","max_tokens":90}`), 0, 1, 0},
		{"a cap that is reserved", Rule{ReserveCap: true}, inspect(`{"prompt":"x","max_tokens":90}`), 0, 1, 90},
		{"a cap for each of three choices", Rule{ReserveCap: true}, inspect(`{"prompt":"x","max_tokens":90,"n":3}`), 0, 1, 90},
		{"an assumed cap", Rule{ReserveCap: true, DefaultCap: 4096}, inspect(`{"prompt":"x"}`), 0, 1, 0},
		{"a body that cannot be read", Rule{}, Unread("application/json", 12), 0, 0, 0},
		{"a body that is not JSON", Rule{}, inspect(`{"prompt":`), 0, 0, 0},
		{"characters", Rule{PromptByChars: true}, inspect(`{"prompt":"12345678"}`), 0, 2 + 1 + 1, 0},
		{"an image that is elsewhere", Rule{}, inspect(`{"messages":[{"content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"https://example.org/a"}}]}]}`), 0, 1, 0},
	} {
		if p := c.rule.Price(c.request, c.learned); p.StatedInput != c.input || p.StatedOutput != c.output {
			t.Errorf("%s: %d and %d stated of %d and %d, want %d and %d", c.name, p.StatedInput, p.StatedOutput, p.Input, p.Output, c.input, c.output)
		}
	}
}

// oneToken counts every text as one token.
type oneToken struct{}

func (oneToken) CountJSON(string, []byte) int64 { return 1 }

// Every charge is read by its own name, and by no other.
func TestEveryChargeIsReadByItsOwnName(t *testing.T) {
	for c := ChargeSettle; c <= ChargeActual; c++ {
		if got, err := ParseCharge(c.String()); got != c || err != nil {
			t.Errorf("%v: %v, %v", c, got, err)
		}
	}
	for _, name := range []string{"", "Settle", "sometimes", "Charge(3)"} {
		if got, err := ParseCharge(name); err == nil {
			t.Errorf("%q is read as %v", name, got)
		}
	}
}

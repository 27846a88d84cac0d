package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

// nano is money: a billionth of the price list's unit. A price of 0.15 a
// million tokens is 150 nano a token.
type nano int64

func (n nano) String() string {
	return fmt.Sprintf("$%.2f", float64(n)/1e9)
}

// price is what the tokens of a model cost, each.
type price struct{ input, cached, output nano }

// prices are those of a list, by model. The name "*" is every other model.
type prices map[string]price

// readPrices reads a list such as
//
//	{"gpt-4o-mini": {"input": 0.15, "cached": 0.075, "output": 0.60}}
//
// in money a million tokens. Without "cached", cached tokens cost as input.
func readPrices(name string) (prices, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var list map[string]struct {
		Input, Output *json.Number
		Cached        *json.Number
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if d.More() {
		return nil, fmt.Errorf("%s: more than one object", name)
	}
	out := prices{}
	for model, p := range list {
		if p.Input == nil || p.Output == nil {
			return nil, fmt.Errorf("%s: %s needs input and output", name, model)
		}
		if p.Cached == nil {
			p.Cached = p.Input
		}
		var each price
		for _, f := range []struct {
			from *json.Number
			to   *nano
		}{{p.Input, &each.input}, {p.Cached, &each.cached}, {p.Output, &each.output}} {
			if *f.to, err = money(f.from.String(), 3); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", name, model, err)
			}
		}
		out[model] = each
	}
	return out, nil
}

var errMoney = errors.New("a price must be a number from 0 to 1000000, with at most nine digits behind the point")

// money reads a decimal exactly: digits behind the point up to places count,
// more must be zero. places 3 makes a price a million tokens one a token; 9
// reads an amount.
func money(s string, places int) (nano, error) {
	whole, part, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(s), "$"), ".")
	part = strings.TrimRight(part, "0")
	if whole == "" && part == "" || len(whole) > 7 || len(part) > places {
		return 0, errMoney
	}
	n := int64(0)
	for _, c := range whole + part + strings.Repeat("0", places-len(part)) {
		if c < '0' || c > '9' {
			return 0, errMoney
		}
		n = 10*n + int64(c-'0')
	}
	return nano(n), nil
}

// of is the price of a model: by its name, by the name without its date, or
// that of "*".
func (p prices) of(model string) (price, bool) {
	if x, ok := p[model]; ok {
		return x, true
	}
	// gpt-4o-mini-2024-07-18 is listed as gpt-4o-mini: the longest listed name
	// that it begins with, up to a hyphen.
	names := make([]string, 0, len(p))
	for name := range p {
		if strings.HasPrefix(model, name+"-") {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		return p[slices.MaxFunc(names, func(a, b string) int { return len(a) - len(b) })], true
	}
	x, ok := p["*"]
	return x, ok
}

// cost is what tokens cost; cached are part of input.
func (p price) cost(input, cached, output int64) nano {
	cached = min(max(0, cached), input)
	return times(p.input, input-cached) + times(p.cached, cached) + times(p.output, output)
}

// times is n x tokens, at most a third of what fits, so that three can be added.
func times(n nano, tokens int64) nano {
	if n > 0 && tokens > math.MaxInt64/3/int64(n) {
		return math.MaxInt64 / 3
	}
	return n * nano(max(0, tokens))
}

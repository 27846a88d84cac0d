package estimate_test

import (
	"fmt"

	"github.com/tripmeter/tripmeter/estimate"
)

// The same prompt in two languages: a character is not a quarter of a token.
func ExampleCount() {
	for _, text := range []string{
		"All human beings are born free and equal in dignity and rights.",
		"人人生而自由,在尊严和权利上一律平等。",
	} {
		tokens := (estimate.Count([]byte(text)) + 999) / 1000
		fmt.Println(tokens, "tokens,", estimate.Runes([]byte(text))/4, "by four characters a token")
	}
	// Output:
	// 14 tokens, 15 by four characters a token
	// 16 tokens, 4 by four characters a token
}

// A provider whose tokenizer counts a quarter more than the weights.
func ExampleCalibrator() {
	var c estimate.Calibrator
	for n := range int64(10) {
		sent := estimate.Request{Model: "their-model", Input: 8000 * (n + 1), Understood: true}
		c.Observe(sent.Prompt(), 10_000*(n+1)) // when the usage has come
	}
	for _, model := range []string{"their-model", "another-model"} {
		r := c.Correct(estimate.Request{Model: model, Input: 40_000, Understood: true})
		fmt.Println(model, (r.Input+500)/1000*1000)
	}
	// Output:
	// their-model 50000
	// another-model 40000
}

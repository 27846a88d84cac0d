package estimate_test

import (
	"fmt"
	"os"
	"strings"

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
	// 15 tokens, 15 by four characters a token
	// 18 tokens, 4 by four characters a token
}

// A provider whose tokenizer counts a quarter more than the weights.
func ExampleCalibrator() {
	var c estimate.Calibrator
	for range 10 {
		c.Observe("their-model", 800, 1000)
	}
	fmt.Println(c.Scale("their-model", 400))
	fmt.Println(c.Scale("another-model", 400))
	// Output:
	// 500
	// 400
}

// See the error on your own traffic.
func ExampleReport() {
	log := strings.NewReader(`{"model": "gpt-4o", "estimated": 950, "actual": 1000}
{"model": "gpt-4o", "estimated": 1100, "actual": 1000}
{"model": "claude-sonnet", "estimated": 800, "actual": 1000}
`)
	var r estimate.Report
	if err := r.Read(log); err != nil {
		fmt.Println(err)
		return
	}
	r.WriteTo(os.Stdout)
	// Output:
	// model          answers  estimated  actual  mean error  bias     p95 underestimate
	// claude-sonnet  1        800        1000    20.0 %      -20.0 %  20.0 %
	// gpt-4o         2        2050       2000    7.5 %       +2.5 %   5.0 %
}

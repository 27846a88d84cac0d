package main

import (
	"bytes"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// Each model and each provider is used to its own limit, with few refusals.
func TestEachModelIsUsedToItsOwnLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := run(&out, 5*time.Minute); err != nil {
			t.Fatal(err)
		}
		t.Log(out.String())
		number := func(pattern string) int {
			m := regexp.MustCompile(pattern).FindStringSubmatch(out.String())
			if m == nil {
				t.Fatalf("no %q in the output", pattern)
			}
			n, _ := strconv.Atoi(m[1])
			return n
		}
		// A call costs less than 100 tokens: 300,000 tokens are 3,000 calls at least.
		small, large := number(`small +(\d+) answers`), number(`large +(\d+) answers`)
		if small < 2900 || large < 10*small*9/10 {
			t.Errorf("%d and %d answers", small, large)
		}
		if n := number(`other +(\d+) answers`); n < 3000 { // of 80 tokens: 60,000 a minute are 3,750
			t.Errorf("%d answers of the other provider", n)
		}
		if n := number(`first\.example +(\d+) refusals`); n > 10 {
			t.Errorf("%d refusals", n)
		}
	})
}

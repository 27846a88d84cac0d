package main

import (
	"bytes"
	"testing"
	"testing/synctest"
)

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := run(&out); err != nil {
			t.Fatal(err)
		}
		const want = `0.0 s  call 1: 7 °C, rain
0.0 s  call 2: 7 °C, rain
0.0 s  call 3: 7 °C, rain
0.5 s  call 4: 7 °C, rain
1.0 s  call 5: 7 °C, rain
1.5 s  2 + 3 = 5
now? false
four at once? false
`
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
	})
}

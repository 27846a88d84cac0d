package accuracy_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/tripmeter/tripmeter/estimate/accuracy"
)

// See the error on your own traffic.
func ExampleReport() {
	log := strings.NewReader(`{"model": "gpt-4o", "estimated": 950, "actual": 1000}
{"model": "gpt-4o", "estimated": 1100, "actual": 1000}
{"model": "claude-sonnet", "estimated": 800, "actual": 1000}
`)
	var r accuracy.Report
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

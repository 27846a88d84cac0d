package accuracy

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestAReportSumsUpByModel(t *testing.T) {
	var r Report
	log := `{"model":"b","estimated":110,"actual":100,"status":200}
{"actual":200,"model":"b","estimated":180}

{"model":"a\u001b[2J","estimated":50,"actual":100}
{"model":"b","estimated":0,"actual":100}
{"model":"b","estimated":100,"actual":-1}
`
	if err := r.Read(strings.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	lines := r.Lines()
	if len(lines) != 2 {
		t.Fatalf("%d lines: %+v", len(lines), lines)
	}
	if l := lines[1]; l.Model != "b" || l.N != 2 || l.Estimated != 290 || l.Actual != 300 || near(l.MeanError, 10) || near(l.Bias, 0) || near(l.P95Underestimate, 10) {
		t.Errorf("%+v", l)
	}
	if l := lines[0]; l.N != 1 || near(l.MeanError, 50) || near(l.Bias, -50) || near(l.P95Underestimate, 50) {
		t.Errorf("%+v", l)
	}
	var b bytes.Buffer
	n, err := r.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Errorf("WriteTo: %d, %v; %d bytes written", n, err, b.Len())
	}
	if strings.ContainsRune(b.String(), '\x1b') {
		t.Error("a control character of a name reached the table")
	}
}

func near(got, want float64) bool { return math.Abs(got-want) > 1e-9 }

// Nineteen in twenty: of 100 answers the five worst are left out.
func TestTheUnderestimateThatNineteenInTwentyDoNotExceed(t *testing.T) {
	var r Report
	for i := range int64(100) {
		r.Add("m", 1000-10*i, 1000)
	}
	if l := r.Lines()[0]; near(l.P95Underestimate, 94) {
		t.Errorf("p95 underestimate %v, want 94", l.P95Underestimate)
	}
}

func TestABadLineIsNamed(t *testing.T) {
	for name, c := range map[string]struct{ log, want string }{
		"not JSON":      {"{\"model\":\"m\",\"estimated\":1,\"actual\":1}\nhello\n", "line 2"},
		"member absent": {`{"model":"m","estimated":1}`, "line 1: model, estimated and actual are needed"},
		"null":          {`{"model":"m","estimated":null,"actual":3}`, "line 1"},
		"a fraction":    {`{"model":"m","estimated":1.5,"actual":3}`, "line 1"},
		"an array":      {`[1,2]`, "line 1"},
		"too large":     {`{"model":"m","estimated":99999999999999999999,"actual":3}`, "line 1"},
		"too long":      {"\n" + strings.Repeat("x", 2<<20), "line 2"},
	} {
		var r Report
		err := r.Read(strings.NewReader(c.log))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
	var r Report
	if err := r.Read(strings.NewReader("")); err != nil || len(r.Lines()) != 0 {
		t.Errorf("empty log: %v, %v", err, r.Lines())
	}
}

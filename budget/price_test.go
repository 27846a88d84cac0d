package budget

import (
	"encoding/json"
	"maps"
	"os"
	"testing"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/usage"
)

// models are those of the recorded responses whose charge depends on the model.
var models = map[string]string{"bedrock-converse-cache-claude": "anthropic.claude-sonnet-4-v1:0"}

// Every recorded or documented response that states its cost is charged just
// that. The rule is the one in use, under the provider's own profile.
func TestRecordedResponsesAreChargedWhatTheySay(t *testing.T) {
	b, err := os.ReadFile("../usage/testdata/usage.json")
	if err != nil {
		t.Fatal(err)
	}
	var facts []struct {
		ID, Provider, Body string
		ContentType        string `json:"content_type"`
		Expect             map[string]any
		Hint               map[string]int64 `json:"charge_hint"`
	}
	if err := json.Unmarshal(b, &facts); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, f := range facts {
		want := maps.Clone(f.Hint) // a hint is the safest charge, where no rule is documented
		rule := estimate.Rule{}
		if charge, ok := f.Expect["charge"].(map[string]any); ok {
			want = map[string]int64{}
			for name, n := range charge {
				want[name] = int64(n.(float64))
			}
			p, ok := profile.ByName(f.Provider)
			if !ok {
				t.Fatalf("%s: no profile %s", f.ID, f.Provider)
			}
			rule = p.RuleFor(models[f.ID])
			rule.Charge = estimate.ChargeSettle // what was used, whenever it is charged
		}
		delete(want, "audio_seconds") // of a limit that no ledger here has
		if len(want) == 0 {
			continue
		}
		compared++
		r := usage.Read(f.ContentType, "", []byte(f.Body))
		input, output := Price{}.Actual(&r, rule)
		got := map[string]int64{"input_tokens": input, "output_tokens": output, "tokens": input + output}
		for name, n := range want {
			if got[name] != n {
				t.Errorf("%s: %s %d, charged %d", f.ID, name, n, got[name])
			}
		}
	}
	if compared < 9 {
		t.Fatalf("compared only %d charges", compared)
	}
}

// What a response does not say is filled in from what it does say, and the price
// stands for the rest. The price is 100 of input and 50 of output.
func TestActual(t *testing.T) {
	n := func(n int64) usage.Count { return usage.Count{N: n, OK: true} }
	none := usage.Count{}
	for _, row := range []struct {
		name                         string
		input, output, total, cached usage.Count
		audio                        usage.Count
		cut                          bool
		seen                         int64 // bytes of output
		rule                         estimate.Rule
		wantInput, wantOutput        int64
	}{
		{name: "all said", input: n(11), output: n(7), total: n(18), wantInput: 11, wantOutput: 7},
		{name: "nothing said", wantInput: 100, wantOutput: 50},
		{name: "a total alone is input", total: n(17), wantInput: 17, wantOutput: 0},
		{name: "a total and output", output: n(20), total: n(1000), wantInput: 980, wantOutput: 20},
		{name: "a total below the output", output: n(20), total: n(7), wantInput: 0, wantOutput: 20},
		{name: "input alone", input: n(17), wantInput: 17, wantOutput: 50},
		{name: "output alone", output: n(17), wantInput: 100, wantOutput: 17},
		{name: "a total above the sum is more output", input: n(35), output: n(12), total: n(109), wantInput: 35, wantOutput: 74},
		{name: "and it counts as output does", input: n(35), output: n(12), total: n(109), rule: estimate.Rule{OutputFactor: 2}, wantInput: 35, wantOutput: 148},
		{name: "zero is said", input: n(0), output: n(0), wantInput: 0, wantOutput: 0},
		{name: "cache reads charged", input: n(90), output: n(7), cached: n(40), wantInput: 90, wantOutput: 7},
		{name: "cache reads free", input: n(90), output: n(7), cached: n(40), rule: estimate.Rule{CachedFree: true}, wantInput: 50, wantOutput: 7},
		{name: "more from the cache than there is", input: n(17), output: n(1), cached: n(99), rule: estimate.Rule{CachedFree: true}, wantInput: 0, wantOutput: 1},
		{name: "total alone, cache free", total: n(17), cached: n(7), rule: estimate.Rule{CachedFree: true}, wantInput: 10, wantOutput: 0},
		{name: "audio by its seconds", input: n(384), output: n(248), audio: n(375), rule: estimate.Rule{AudioFree: true}, wantInput: 9, wantOutput: 248},
		{name: "a factor", input: n(17), output: n(7), rule: estimate.Rule{OutputFactor: 5}, wantInput: 17, wantOutput: 35},
		{name: "a negative factor is none", input: n(1), output: n(2), rule: estimate.Rule{OutputFactor: -3}, wantInput: 1, wantOutput: 2},
		{name: "cut short: the price stands", input: n(11), output: n(7), cut: true, wantInput: 11, wantOutput: 50},
		{name: "cut short after more than the price", input: n(11), output: n(7), cut: true, seen: 6000, wantInput: 11, wantOutput: 1000},
		{name: "no output said, and more seen than the price", input: n(11), output: none, seen: 6000, wantInput: 11, wantOutput: 1000},
		{name: "never corrected", input: n(11), output: n(7), rule: estimate.Rule{Charge: estimate.ChargeEstimate}, wantInput: 100, wantOutput: 50},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := usage.Result{OutputBytes: row.seen, Complete: !row.cut}
			r.Input, r.Output, r.Total, r.CachedInput, r.AudioInput = row.input, row.output, row.total, row.cached, row.audio
			r.Found = r.Input.OK || r.Output.OK || r.Total.OK
			if in, out := (Price{input: 100, output: 50}).Actual(&r, row.rule); in != row.wantInput || out != row.wantOutput {
				t.Errorf("charged %d and %d, want %d and %d", in, out, row.wantInput, row.wantOutput)
			}
		})
	}
}

// No count and no factor overflows.
func TestChargesDoNotOverflow(t *testing.T) {
	r := usage.Read("application/json", "", []byte(`{"usage":{"prompt_tokens":9007199254740992,"completion_tokens":9007199254740992,"total_tokens":9007199254740992}}`))
	if in, out := (Price{}).Actual(&r, estimate.Rule{OutputFactor: 1 << 62}); in <= 0 || out <= 0 {
		t.Errorf("charged %d and %d", in, out)
	}
}

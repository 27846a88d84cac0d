package law

import (
	"compress/gzip"
	"os"
	"testing"
)

func recordings(t *testing.T) []Result {
	t.Helper()
	f, err := os.Open("testdata/sequences.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Replay(z)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestReplay(t *testing.T) {
	sum := map[string][2]int{}
	for _, r := range recordings(t) {
		t.Logf("%-12s %-28s %4d answers, %5.1f %% foretold, %d unknown, %d unused", r.Provider, r.Field, r.Answers, r.Share(), r.Unknown, r.Unused)
		s := sum[r.Provider]
		sum[r.Provider] = [2]int{s[0] + r.Answers, s[1] + r.Foretold}
		why := map[string]int{}
		for _, m := range r.Misses {
			why[m.Sequence+" "+m.Why]++
			if testing.Verbose() {
				t.Log("  ", m)
			}
		}
		for w, n := range why {
			t.Logf("    %d: %s", n, w)
		}
	}
	t.Log(sum)
}

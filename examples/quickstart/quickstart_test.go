package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var keys = []string{"completed", "ideal_seconds", "quota_used", "refused_429", "requests", "seconds", "wire_attempts"}

// The whole comparison, in fake time.
func TestJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, progress bytes.Buffer
		start := time.Now()
		if err := run(&out, &progress, true, ""); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("took %v", took)
		}
		d := json.NewDecoder(&out)
		var got map[string]map[string]float64
		if err := d.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if d.More() || len(got) != 2 {
			t.Fatalf("not one object of two: %v", got)
		}
		for _, client := range []string{"plain", "tripmeter"} {
			if have := slices.Sorted(maps.Keys(got[client])); !slices.Equal(have, keys) {
				t.Errorf("%s has %v", client, have)
			}
		}
		plain, ours := got["plain"], got["tripmeter"]
		if ours["requests"] != requests || ours["completed"] != requests || ours["wire_attempts"] != requests || ours["refused_429"] != 0 {
			t.Errorf("tripmeter: %v", ours)
		}
		if used := ours["quota_used"]; used < 0.95 || used > 1 {
			t.Errorf("tripmeter used %.3f of the quota", used)
		}
		if ours["seconds"] < ours["ideal_seconds"] {
			t.Errorf("better than can be: %v", ours)
		}
		if plain["refused_429"] == 0 || plain["wire_attempts"] != plain["completed"]+plain["refused_429"] {
			t.Errorf("plain: %v", plain)
		}
	})
}

func TestTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, progress bytes.Buffer
		if err := run(&out, &progress, false, t.TempDir()); err != nil {
			t.Fatal(err)
		}
		readme, err := os.ReadFile("../../README.md")
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range []string{
			`requests +160 +160`, `completed +\d+ +160`, `refused \(429\) +\d+ +0`, `sent on the wire +\d+ +160`,
			`seconds for all of them +- +\d+\.\d`, `seconds at best +\d+\.\d +\d+\.\d`, `quota used +\d+ % +\d+ %`,
		} {
			if !regexp.MustCompile(`(?m)^` + row + `$`).MatchString(out.String()) {
				t.Errorf("no row %s in\n%s", row, &out)
			}
			if !regexp.MustCompile(`(?m)^` + row + `$`).Match(readme) {
				t.Errorf("the README shows no row %s", row)
			}
		}
		// Elsewhere than in a terminal progress is plain lines.
		if p := progress.String(); strings.Contains(p, "\x1b") || strings.Contains(p, "\r") || strings.Count(p, "\n") < 6 {
			t.Errorf("progress:\n%q", p)
		}
	})
}

func TestReportsWhoGaveUp(t *testing.T) {
	var out bytes.Buffer
	table(&out, result{Requests: 10, Completed: 8}, result{Requests: 10, Completed: 10})
	if !strings.Contains(out.String(), "gave up on 2 requests") {
		t.Error(out.String())
	}
	out.Reset()
	table(&out, result{Requests: 10, Completed: 10}, result{Requests: 10, Completed: 10})
	if strings.Contains(out.String(), "gave up") {
		t.Error(out.String())
	}
}

package bench

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var situations = flag.Bool("situations", false, "play the situations of many models, providers and tenants, and write their section of docs/scoreboard.md")

var scoreboard = flag.Bool("scoreboard", false, "play the whole scoreboard and write docs/scoreboard.md and its plots")

// docs is where the scoreboard is written.
const docs = "../docs"

// TestScoreboard writes the scoreboard. Without -scoreboard it plays a small
// part, so that the writing is tested, and writes nothing.
func TestScoreboard(t *testing.T) {
	scenarios, seeds := boardScenarios(), 3
	if !*scoreboard {
		scenarios, seeds = scenarios[4:5], 1
		scenarios[0].N = 60
	}
	n := 0
	for _, s := range scenarios {
		n += len(policies(s.Load))
	}
	rows := make([]Row, n)
	n = 0
	t.Run("play", func(t *testing.T) {
		for _, s := range scenarios {
			for _, p := range policies(s.Load) {
				at := n
				n++
				t.Run(fmt.Sprintf("%s/%s/%v/%s", s.provider, s.rule, s.Load, p.Name), func(t *testing.T) {
					t.Parallel()
					var rs []Result
					for seed := range seeds {
						rs = append(rs, bubble(t, s.Scenario, p, uint64(seed)))
					}
					rows[at] = row(s, p.Name, rs)
				})
			}
		}
	})
	if t.Failed() {
		return
	}
	var md, quota, waits bytes.Buffer
	writeBoard(&md, rows)
	if *scoreboard {
		writeSituations(&md, playSituations(t, true))
	} else {
		writeSituations(&md, nil)
	}
	for _, err := range []error{quotaPlot(&quota, rows), waitPlot(&waits, rows)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if md.Len() == 0 || quota.Len() == 0 || waits.Len() == 0 {
		t.Fatal("nothing was written")
	}
	if !*scoreboard {
		return
	}
	if err := os.MkdirAll(docs, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*bytes.Buffer{"scoreboard.md": &md, "scoreboard-quota.svg": &quota, "scoreboard-waits.svg": &waits} {
		if err := os.WriteFile(filepath.Join(docs, name), b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestScoreboardOfSituations writes the last section of the scoreboard alone.
func TestScoreboardOfSituations(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(docs, "scoreboard.md"))
	if err != nil {
		t.Fatal(err)
	}
	rest, section, found := strings.Cut(string(page), situationsHead)
	if !found || strings.Contains(section, "\n## ") {
		t.Fatalf("docs/scoreboard.md does not end with %q", situationsHead)
	}
	if !*situations {
		return
	}
	md := bytes.NewBufferString(rest)
	writeSituations(md, playSituations(t, true))
	if err := os.WriteFile(filepath.Join(docs, "scoreboard.md"), md.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

const situationsHead = "\n## Several models, providers and tenants\n"

// writeSituations is the last section of the scoreboard.
func writeSituations(md *bytes.Buffer, rows []situationRow) {
	md.WriteString(situationsHead + `
Five minutes of a program that sends to more than one model, provider or tenant. One
client of tripmeter serves all of it unconfigured, but for the name of the
tenant in the context. Each rival has what its technique allows: a client for each
crowd, with the limits of that crowd, or its share of what tenants have in common.

- **answers, and tokens a minute**: of each crowd.
- **p99 s**: the wait of each crowd's calls, from their arrival to the end of the answer.

| situation | policy | answers | tokens a minute | 429s | p99 s |
| --- | --- | --- | --- | ---: | --- |
`)
	last := ""
	for _, r := range rows {
		name := r.situation.Name
		if name == last {
			name = ""
		} else {
			last = name
		}
		list := func(f func(i int) string) string {
			var all []string
			for i, c := range r.situation.Crowds {
				all = append(all, c.Name+" "+f(i))
			}
			return strings.Join(all, ", ")
		}
		fmt.Fprintf(md, "| %s | %s | %s | %s | %d | %s |\n", name, r.policy,
			list(func(i int) string { return fmt.Sprint(r.got[i].Answers) }),
			list(func(i int) string { return fmt.Sprint(r.got[i].Tokens / 5) }), r.refused,
			list(func(i int) string { return fmt.Sprintf("%.1f", r.got[i].P99.Seconds()) }))
	}
}

func writeBoard(md *bytes.Buffer, rows []Row) {
	fmt.Fprintf(md, `# Scoreboard

Client policies against provider rules, in virtual time. tripmeter is the real
package; the provider is providertest, which shares no code with it;
rivals are the techniques, written in bench/rivals.go, and given all that the
technique allows. Regenerate with

    cd bench && go test -run 'TestBars|TestScoreboard' -scoreboard -timeout 30m

![Throughput against refusals](scoreboard-quota.svg)

![Waits](scoreboard-waits.svg)

## How it is measured

The limits are %d tokens and %d requests a minute, and tokens bind. Prompts are
log-normal around %d tokens, caps are 128 to 1024, answers log-normal around %d
and cut at the cap. An answer takes 300 ms and 10 ms a token; the way takes 5 to
40 ms in each direction. Every policy tries a refused call again until it is
served.

tripmeter has the profile of the provider: its charge rule, its prompt count
(a quarter of the characters, as in the provider's own estimate), a burst a
second shorter than a bucket holds, and the window profile (95 %% of the limit,
from nothing) where minutes are counted. **tripmeter, unconfigured** has no limit
and no profile: it reads headers and assumes that what a call reserves is
settled.

It is weak where tokens are judged by the second and one call is a third of what
a second allows: calls do not fit together into slices, the refusals look like
somebody else's use, and the rate is cut. Rivals that refuse to slow down fill
more of the slices with hundreds of refusals for each hundred calls.

- **of ideal**: throughput as a share of a client that knows every call, in
  order, beforehand, and is never refused. For a provider that counts minutes,
  or holds one, that client sends a minute's tokens in one instant, so a paced
  one stays behind by up to a minute in a run of three, however well it fills
  the minutes after. Out of order more can be served than in order: where calls
  must fit into slices, some policies pass 100.
- **quota used**: tokens charged, of what the rate allows until the last
  admission. What was in the bucket at the start comes on top of 100.
- **429s for 100 calls**: all, also those whose call was served in the end.
- **too early**: requests that came while a wait that a refusal had named was
  running. tripmeter's were on their way when it was named.
- **added wait**: admission after the ideal client's; below zero it came before,
  out of order.
`, TPM, RPM, promptMedian, outputMedian)
	if board.lines != nil {
		slices.SortFunc(board.lines, func(a, b line) int { return a.order - b.order })
		fmt.Fprintf(md, "\n## Bars\n\ntripmeter with the right profile, one process, 2000 calls at three times the\ndrain, %d seeds. The worst seed counts, but for the share of 429s, which is of all\ncalls. The bars are in bench/bars_test.go.\n\n", seedsOfABar())
		fmt.Fprintf(md, "| provider | of ideal %% | quota used %% | 429s %% | by thirds of the run | most in a run | added wait p99 s | most attempts | bar |\n| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | --- |\n")
		for _, l := range board.lines {
			fmt.Fprintln(md, l.text)
		}
	}
	fmt.Fprintf(md, "\n## Laws and starts whose bars are not met\n\nThe bars, and all other rows, are in bench/shapes_test.go. Play them with\n`cd bench && go test -run 'TestShapes|TestStarts' -shapes -seeds 3 -v`. With `-filler 1`\nthe prompts of the shapes are estimated right.\n\n%s\n", unmet())
	for _, l := range []Load{Overload, Bursts, Tenants, Processes} {
		if !slices.ContainsFunc(rows, func(r Row) bool { return r.Load == l }) {
			continue
		}
		fmt.Fprintf(md, "\n## Load: %v\n", l)
		switch l {
		case Bursts:
			fmt.Fprintf(md, "\nCrowds of 60 calls at one instant.\n")
		case Tenants:
			fmt.Fprintf(md, "\nThe hog has ten of twelve calls. All share one budget and one line; the wait of\nthe small ones is their whole wait, from their own arrival.\n")
		case Processes:
			fmt.Fprintf(md, "\nEach of the four is configured with a quarter of the limits; the unconfigured\none learns the whole limit from headers in each process. Those with one budget have the whole limits\nbetween them: the ledger of package limit stands in for the store, 1 ms away.\n")
		}
		table(md, rows, l)
	}
}

// board collects the bars' lines for the page.
var board struct {
	sync.Mutex
	lines []line
}

type line struct {
	order int
	text  string
}

package shadow

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Report is what would have happened.
type Report struct {
	Since       time.Time        // when the Ledger was made
	Asked       int64            // attempts that asked to be admitted, and were
	Waited      int64            // of those, would have waited; those that wait now included
	Waiting     int              // wait on paper now
	Wait        Waits            // of those whose turn came on paper
	For         map[string]Waits // the same by what they would have waited for
	Refused     map[string]int64 // would have been refused before they were sent, by reason
	Unfollowed  int64            // would have waited, too many at once to be followed
	RateLimited int64            // 429s that came
	Spared      int64            // of those, would not have come
}

// Waits are several waits together.
type Waits struct {
	Count   int64
	Total   time.Duration
	Longest time.Duration
}

func (w *Waits) add(d time.Duration) {
	w.Count++
	w.Total += d
	w.Longest = max(w.Longest, d)
}

// Mean is the mean wait, 0 if there was none.
func (w Waits) Mean() time.Duration {
	if w.Count == 0 {
		return 0
	}
	return w.Total / time.Duration(w.Count)
}

// Report returns what would have happened so far.
func (l *Ledger) Report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.report
	r.For, r.Refused = maps.Clone(r.For), maps.Clone(r.Refused)
	return r
}

// String tells the report in sentences, a line each.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d attempts asked. With these limits %d would have waited", r.Asked, r.Waited)
	if r.Wait.Count > 0 {
		fmt.Fprintf(&b, ", %v on average and %v at most", r.Wait.Mean().Round(time.Millisecond), r.Wait.Longest.Round(time.Millisecond))
	}
	b.WriteString(".\n")
	names := slices.SortedFunc(maps.Keys(r.For), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.For[b].Total, r.For[a].Total), cmp.Compare(a, b))
	})
	for _, name := range names {
		w := r.For[name]
		fmt.Fprintf(&b, "  for %s: %d, %v on average, %v at most\n", name, w.Count, w.Mean().Round(time.Millisecond), w.Longest.Round(time.Millisecond))
	}
	for _, why := range slices.Sorted(maps.Keys(r.Refused)) {
		fmt.Fprintf(&b, "%d would have been refused before they were sent: %s.\n", r.Refused[why], why)
	}
	if r.Unfollowed > 0 {
		fmt.Fprintf(&b, "%d more would have waited; too many to be followed.\n", r.Unfollowed)
	}
	fmt.Fprintf(&b, "The provider refused %d (429); %d would have been spared.", r.RateLimited, r.Spared)
	return b.String()
}

// LogValue has the numbers, for package log/slog.
func (r Report) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int64("asked", r.Asked), slog.Int64("waited", r.Waited), slog.Duration("mean", r.Wait.Mean()),
		slog.Duration("longest", r.Wait.Longest), slog.Int64("rateLimited", r.RateLimited), slog.Int64("spared", r.Spared),
	)
}

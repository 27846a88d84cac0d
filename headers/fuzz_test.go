package headers

import (
	"net/http"
	"net/textproto"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/tripmeter/tripmeter/internal/retryafter"
)

// text renders a header as the lines that parseText reads.
func text(h http.Header) string {
	var b strings.Builder
	for name, lines := range h {
		for _, line := range lines {
			b.WriteString(name + ": " + line + "\n")
		}
	}
	return b.String()
}

func parseText(s string) http.Header {
	h := http.Header{}
	for line := range strings.SplitSeq(s, "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			name = textproto.CanonicalMIMEHeaderKey(name)
			h[name] = append(h[name], value)
		}
	}
	return h
}

// checkInfo holds what must be true of any Info.
func checkInfo(t *testing.T, i Info) {
	t.Helper()
	span := func(at string, s Span) {
		if s.D < 0 || s.D > retryafter.Max || !s.OK && s.D != 0 {
			t.Errorf("%s: %+v", at, s)
		}
	}
	quota := func(at string, q Quota) {
		const most = 999_999_999_999_999
		for _, c := range []Count{q.Limit, q.Remaining} {
			if c.N > most || c.N < -most || !c.OK && c.N != 0 {
				t.Errorf("%s: %+v", at, q)
			}
		}
		span(at, q.Reset)
		switch {
		case q.Limit.N < 0, q.Limit.OK && q.Remaining.N > q.Limit.N:
			t.Errorf("%s raises: %+v", at, q)
		case q.Window < 0, q.Window > retryafter.Max, q.Inferred < 0, q.Window != 0 && q.Inferred != 0:
			t.Errorf("%s: %+v", at, q)
		case !q.known() && q != Quota{}:
			t.Errorf("%s knows a window of nothing: %+v", at, q)
		}
	}
	quota("requests", i.Requests)
	quota("tokens", i.Tokens)
	quota("input", i.Input)
	quota("output", i.Output)
	for _, o := range i.Other {
		quota(o.Name, o.Quota)
		if !o.known() {
			t.Errorf("%+v says nothing", o)
		}
	}
	for _, w := range i.Windows {
		quota(w.Dimension, w.Quota)
		if !w.known() || w.Dimension == "" {
			t.Errorf("%+v says nothing", w)
		}
	}
	for _, p := range i.Policies {
		quota(p.Name, p.Quota)
	}
	if n := len(i.Other) + len(i.Windows) + len(i.Policies); n > 5*mostSlots {
		t.Errorf("%d items", n)
	}
	span("NotBefore", i.NotBefore)
	span("ResetWait", i.ResetWait())
	if i.Applies && !i.NotBefore.OK {
		t.Errorf("%+v", i)
	}
}

func FuzzParse(f *testing.F) {
	for _, e := range loadEntries(f) {
		f.Add(text(e.header()), e.Status, e.Provider, e.ObservedAt.Unix())
	}
	f.Add("X-Ratelimit-Limit-Tokens: -9223372036854775808\nX-Ratelimit-Reset-Tokens: 9223372036854775807ns", 200, "", int64(-1<<62))
	f.Add("Date: Sat, 01 Jan 0001 00:00:00 GMT\nX-Ratelimit-Reset: 9999-12-31T23:59:59Z", 429, "groq", int64(1<<62))
	f.Fuzz(func(t *testing.T, raw string, status int, dialect string, now int64) {
		o := Options{Status: status, Now: time.Unix(now, 0), Dialect: dialects[dialect]}
		h := parseText(raw)
		i := Parse(h, o)
		checkInfo(t, i)
		if again := Parse(h, o); !reflect.DeepEqual(i, again) {
			t.Errorf("the same header twice: %+v, then %+v", i, again)
		}
		if !reflect.DeepEqual(h, parseText(raw)) {
			t.Errorf("the header became %v", h)
		}

		// A field that is none of ours changes nothing, and a further wait only
		// ever makes the wait longer.
		h["X-Request-Id"] = []string{"5"}
		if more := Parse(h, o); !reflect.DeepEqual(i, more) {
			t.Errorf("with an unrelated field %+v became %+v", i, more)
		}
		h["Retry-After"] = append(h["Retry-After"], "7")
		if more := Parse(h, o); more.NotBefore.D < i.NotBefore.D || more.NotBefore.D < 7*time.Second {
			t.Errorf("with a further wait %+v became %+v", i.NotBefore, more.NotBefore)
		}
	})
}

func FuzzCount(f *testing.F) {
	for _, s := range []string{"", "-", "0", "-1", "+1", "999999999999999", "1000000000000000", "1_0", "007"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := parseCount(s)
		n, err := strconv.ParseInt(s, 10, 64)
		valid := err == nil && !strings.HasPrefix(s, "+") && len(strings.TrimPrefix(s, "-")) <= 15
		if got.OK != valid || valid && got.N != n || !valid && got.N != 0 {
			t.Errorf("%q is %+v, want %d, %v", s, got, n, err)
		}
	})
}

// The rewriting of partitions never makes a readable line unreadable, and
// changes nothing but partitions.
func FuzzPartitions(f *testing.F) {
	for _, s := range []string{`"a";q=1;pk=:YQ==:`, `"a;pk=:b:"; q=1`, `"a\"";pk=:?:, "b";pk=:c:`, `pk=:a:`, `"x";pk=:":`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if len(line) > longestValue {
			return
		}
		list, err := httpsfv.UnmarshalList([]string{line})
		if err != nil {
			_, _ = parseList(line) // for its panics
			return
		}
		items, ok := parseList(line)
		plain := true
		for _, m := range list {
			_, isItem := m.(httpsfv.Item)
			plain = plain && isItem
		}
		if ok != (plain && len(list) > 0) {
			t.Fatalf("%q can be read, but not as %q", line, quotePartitions(line))
		}
		for i := range items {
			was := list[i].(httpsfv.Item)
			if was.Value != nil && !reflect.DeepEqual(items[i].Value, was.Value) {
				t.Errorf("%q: item %d is %v, was %v", line, i, items[i].Value, was.Value)
			}
			for _, name := range was.Params.Names() {
				a, _ := items[i].Params.Get(name)
				b, _ := was.Params.Get(name)
				if name != "pk" && !reflect.DeepEqual(a, b) {
					t.Errorf("%q: %s is %v, was %v", line, name, a, b)
				}
			}
		}
	})
}

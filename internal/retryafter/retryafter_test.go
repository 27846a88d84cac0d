package retryafter

import (
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 9, 19, 12, 0, 0, 0, time.UTC)

func header(lines ...string) http.Header {
	h := http.Header{}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ":")
		h.Add(name, value)
	}
	return h
}

func TestParse(t *testing.T) {
	const none = time.Duration(-1)
	for _, c := range []struct {
		name   string
		lines  []string
		wait   time.Duration // none: nothing could be read
		beside time.Duration // a longer one, 0: there is none
	}{
		{"absent", nil, none, 0},
		{"zero is a wait", []string{"Retry-After: 0"}, 0, 0},
		{"IMF-fixdate", []string{"Retry-After: Sat, 19 Sep 2026 12:00:05 GMT"}, 5 * time.Second, 0},
		{"RFC 850", []string{"Retry-After: Saturday, 19-Sep-26 12:00:05 GMT"}, 5 * time.Second, 0},
		{"asctime", []string{"Retry-After: Sat Sep 19 12:00:05 2026"}, 5 * time.Second, 0},
		{"asctime, one digit day", []string{"Retry-After: Thu Oct  1 12:00:00 2026"}, 12 * 24 * time.Hour, 0},
		{"past date", []string{"Retry-After: Fri, 31 Dec 1999 23:59:59 GMT"}, 0, 0},
		{"far date saturates", []string{"Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"}, Max, 0},
		{"RFC 850 zone is not guessed", []string{"Retry-After: Saturday, 19-Sep-26 12:00:05 PST"}, none, 0},
		{"RFC 850 numeric zone", []string{"Retry-After: Saturday, 19-Sep-26 12:00:05 GMT-8"}, none, 0},
		{"half a date", []string{"Retry-After: Sat, 19 Sep 2026"}, none, 0},
		{"measured against Date", []string{"Date: Sat, 19 Sep 2026 11:59:00 GMT", "Retry-After: Sat, 19 Sep 2026 12:00:05 GMT"}, 65 * time.Second, 0},
		{"rubbish Date", []string{"Date: yesterday", "Retry-After: Sat, 19 Sep 2026 12:00:05 GMT"}, 5 * time.Second, 0},
		{"two Dates", []string{"Date: Sat, 19 Sep 2026 11:59:00 GMT", "Date: Sat, 19 Sep 2026 12:00:05 GMT", "Retry-After: Sat, 19 Sep 2026 12:00:05 GMT"}, 5 * time.Second, 0},
		{"seconds", []string{"Retry-After: 2"}, 2 * time.Second, 0},
		{"milliseconds", []string{"Retry-After-Ms: 2"}, 2 * time.Millisecond, 0},
		{"fraction", []string{"Retry-After: 1.5"}, 1500 * time.Millisecond, 0},
		{"fraction only", []string{"Retry-After: .5"}, 500 * time.Millisecond, 0},
		{"nine digits", []string{"Retry-After: 0.000000001"}, 1, 0},
		{"rounded up", []string{"Retry-After: 0.0000000001"}, 1, 0},
		{"rounded up late", []string{"Retry-After: 1.0000000000000000000000000000001"}, time.Second + 1, 0},
		{"zeros are not rounded up", []string{"Retry-After: 1.00000000000000"}, time.Second, 0},
		{"ms fraction", []string{"Retry-After-Ms: 1573.4"}, 1573400 * time.Microsecond, 0},
		{"plus", []string{"Retry-After: +3"}, none, 0},
		{"minus", []string{"Retry-After: -1"}, none, 0},
		{"minus zero", []string{"Retry-After: -0"}, none, 0},
		// A number with its unit, in quotes or before parameters has one reading: to
		// send before it would break the server's word.
		{"unit", []string{"Retry-After: 3s"}, 3 * time.Second, 0},
		{"long unit", []string{"Retry-After: 3 seconds"}, 3 * time.Second, 0},
		{"long unit in capitals", []string{"Retry-After: 3 Seconds"}, 3 * time.Second, 0},
		{"unit without a number", []string{"Retry-After: seconds"}, none, 0},
		{"unit that nobody knows", []string{"Retry-After: 3 parsecs"}, none, 0},
		{"negative with a unit", []string{"Retry-After: -3s"}, none, 0},
		{"two units", []string{"Retry-After: 1m30s"}, 90 * time.Second, 0},
		{"two units in words", []string{"Retry-After: 1 minute, 30 seconds"}, 90 * time.Second, 0},
		{"rising units", []string{"Retry-After: 30s1m"}, none, 0},
		{"text behind a unit", []string{"Retry-After: 3s or so"}, none, 0},
		{"units in a list", []string{"Retry-After: 5s, 10s"}, 10 * time.Second, 0},
		{"units saturate", []string{"Retry-After: 99999999999999999999h"}, Max, 0},
		{"hours, minutes and seconds", []string{"Retry-After: 00:00:45"}, 45 * time.Second, 0},
		{"one digit of hours", []string{"Retry-After: 1:02:03"}, time.Hour + 2*time.Minute + 3*time.Second, 0},
		{"61 seconds of a minute", []string{"Retry-After: 00:00:61"}, none, 0},
		{"minutes and seconds, or hours and minutes", []string{"Retry-After: 01:30"}, none, 0},
		{"parameters", []string{"Retry-After: 45;x"}, 45 * time.Second, 0},
		{"parameters with a blank", []string{"Retry-After: 45 ; comment=busy"}, 45 * time.Second, 0},
		{"parameters alone", []string{"Retry-After: ;x"}, none, 0},
		{"parameters in a list", []string{"Retry-After: 5;x, 10"}, 10 * time.Second, 0},
		{"parameters after a date", []string{"Retry-After: Sat, 19 Sep 2026 12:00:05 GMT;x"}, 5 * time.Second, 0},
		{"X-Retry-After", []string{"X-Retry-After: 45"}, 45 * time.Second, 0},
		{"X-Retry-After beside the field: longest", []string{"X-Retry-After: 45", "Retry-After: 5"}, 45 * time.Second, 0},
		{"X-Retry-After is shorter", []string{"X-Retry-After: 4", "Retry-After: 5"}, 5 * time.Second, 0},
		{"X-Retry-After-Ms", []string{"X-Retry-After-Ms: 1500"}, 1500 * time.Millisecond, 0},
		{"X-Retry-After-Ms, an instant", []string{"X-Retry-After-Ms: 946684845000", "Date: Sat, 01 Jan 2000 00:00:00 GMT"}, 45 * time.Second, 0},
		{"empty members", []string{"Retry-After: ,5,"}, 5 * time.Second, 0},
		{"empty members alone", []string{"Retry-After: , ,"}, none, 0},
		{"X-Retry-After rubbish", []string{"X-Retry-After: soon"}, none, 0},
		{"exponent", []string{"Retry-After: 1e3"}, none, 0},
		{"hex", []string{"Retry-After: 0x10"}, none, 0},
		{"underscore", []string{"Retry-After: 1_000"}, none, 0},
		{"thousands", []string{"Retry-After: 1,000"}, none, 0},
		{"list", []string{"Retry-After: 5, 10"}, 10 * time.Second, 0},
		{"NaN", []string{"Retry-After: NaN"}, none, 0},
		{"Inf", []string{"Retry-After: Inf"}, none, 0},
		{"dot", []string{"Retry-After: ."}, none, 0},
		{"trailing dot", []string{"Retry-After: 5."}, none, 0},
		{"two dots", []string{"Retry-After: 1.2.3"}, none, 0},
		{"inner space", []string{"Retry-After: 1 2"}, none, 0},
		{"other digits", []string{"Retry-After: ٣"}, none, 0},
		{"quoted", []string{`Retry-After: "3"`}, 3 * time.Second, 0},
		{"single quotes", []string{`Retry-After: '3'`}, 3 * time.Second, 0},
		{"quoted with parameters", []string{`Retry-After: "3";x`}, 3 * time.Second, 0},
		{"quoted unit", []string{`Retry-After: "3s"`}, 3 * time.Second, 0},
		{"quoted list", []string{`Retry-After: "3", "7"`}, 7 * time.Second, 0},
		{"quoted date", []string{`Retry-After: "Sat, 19 Sep 2026 12:00:05 GMT"`}, 5 * time.Second, 0},
		{"one quote", []string{`Retry-After: "3`}, none, 0},
		{"quotes alone", []string{`Retry-After: ""`}, none, 0},
		{"quoted text", []string{`Retry-After: "soon"`}, none, 0},
		{"text", []string{"Retry-After: soon"}, none, 0},
		{"empty", []string{"Retry-After:"}, none, 0},
		{"outer space", []string{"Retry-After: \t 3 \t"}, 3 * time.Second, 0},
		{"leading zeros", []string{"Retry-After: 0003"}, 3 * time.Second, 0},
		{"int64", []string{"Retry-After: 9223372036854775807"}, Max, 0},
		{"above int64", []string{"Retry-After: 99999999999999999999999999"}, Max, 0},
		{"above int64 with fraction", []string{"Retry-After: 99999999999999999999999999.9"}, Max, 0},
		{"wraps in nanoseconds", []string{"Retry-After: 18446744074"}, Max, 0},
		{"ms", []string{"Retry-After-Ms: 9223372036854775807"}, Max, 0},
		{"lines: longest", []string{"Retry-After: 3", "Retry-After: 7", "Retry-After: 5"}, 7 * time.Second, 0},
		{"lines: rubbish beside", []string{"Retry-After: soon", "Retry-After: 7", "Retry-After: -9"}, 7 * time.Second, 0},
		{"lines: date and seconds", []string{"Retry-After: Sat, 19 Sep 2026 12:00:05 GMT", "Retry-After: 3"}, 5 * time.Second, 0},
		{"ms is precise, seconds are longest", []string{"Retry-After-Ms: 1500", "Retry-After: 9"}, 1500 * time.Millisecond, 9 * time.Second},
		{"ms above seconds", []string{"Retry-After-Ms: 9500", "Retry-After: 9"}, 9500 * time.Millisecond, 0},
		{"ms zero says nothing", []string{"Retry-After-Ms: 0", "Retry-After: 1"}, time.Second, 0},
		{"ms zero alone says nothing", []string{"Retry-After-Ms: 0"}, none, 0},
		{"ms rubbish", []string{"Retry-After-Ms: soon", "Retry-After: 2"}, 2 * time.Second, 0},
		{"ms fine, seconds rubbish", []string{"Retry-After-Ms: 2", "Retry-After: soon"}, 2 * time.Millisecond, 0},
		// The unit of the field is that of a bare number only.
		{"ms span", []string{"Retry-After-Ms: 00:00:01"}, time.Second, 0},
		{"ms with its unit", []string{"Retry-After-Ms: 1500ms"}, 1500 * time.Millisecond, 0},
		{"ms with a blank and its unit", []string{"Retry-After-Ms: 1500 ms"}, 1500 * time.Millisecond, 0},
		{"ms with another unit", []string{"Retry-After-Ms: 1.5s"}, 1500 * time.Millisecond, 0},
		{"ms in words and capitals", []string{"Retry-After-Ms: 1500 Milliseconds"}, 1500 * time.Millisecond, 0},
		{"ms quoted", []string{`Retry-After-Ms: "1500"`}, 1500 * time.Millisecond, 0},
		{"ms with parameters", []string{"Retry-After-Ms: 1500;x"}, 1500 * time.Millisecond, 0},
		{"ms in a list", []string{"Retry-After-Ms: 100, 1500ms"}, 1500 * time.Millisecond, 0},
		{"ms date", []string{"Retry-After-Ms: Sat, 19 Sep 2026 12:00:05 GMT"}, 5 * time.Second, 0},
		{"ms past date", []string{"Retry-After-Ms: Sat, 19 Sep 2026 11:00:05 GMT"}, 0, 0},
		{"ms zero with its unit says nothing", []string{"Retry-After-Ms: 0ms"}, none, 0},
		{"ms, a unit that nobody knows", []string{"Retry-After-Ms: 1500 ticks"}, none, 0},
		{"x-ms with its unit", []string{"X-Ms-Retry-After-Ms: 1500ms"}, 1500 * time.Millisecond, 0},
		{"x-ms in ISO 8601", []string{"X-Ms-Retry-After-Ms: PT1.5S"}, 1500 * time.Millisecond, 0},
		{"x-retry-after in milliseconds", []string{"X-Retry-After: 1500ms"}, 1500 * time.Millisecond, 0},
		{"seconds in milliseconds", []string{"Retry-After: 1500ms"}, 1500 * time.Millisecond, 0},
		{"seconds in microseconds", []string{"Retry-After: 1500us"}, 1500 * time.Microsecond, 0},
		{"a unit with a full stop", []string{"Retry-After: 30 sec."}, 30 * time.Second, 0},
		{"a week", []string{"Retry-After: 1 week"}, 7 * 24 * time.Hour, 0},
		{"ISO 8601", []string{"Retry-After: PT1H2M3.5S"}, time.Hour + 2*time.Minute + 3500*time.Millisecond, 0},
		{"ISO 8601, days", []string{"Retry-After: P1DT1S"}, 24*time.Hour + time.Second, 0},
		{"ISO 8601, weeks, in lower case", []string{"Retry-After: p1w"}, 7 * 24 * time.Hour, 0},
		{"ISO 8601, fraction of an hour", []string{"Retry-After: PT0.5H"}, 30 * time.Minute, 0},
		{"ISO 8601, months have no length", []string{"Retry-After: P1M"}, none, 0},
		{"ISO 8601, a year", []string{"Retry-After: P1Y"}, none, 0},
		{"ISO 8601, nothing", []string{"Retry-After: PT"}, none, 0},
		{"ISO 8601, rising", []string{"Retry-After: PT1S1M"}, none, 0},
		{"ISO 8601, negative", []string{"Retry-After: -PT1S"}, none, 0},
		{"ISO 8601 saturates", []string{"Retry-After: P99999999999W"}, Max, 0},
		{"a date of RFC 9651", []string{"Retry-After: @1789819230"}, 30 * time.Second, 0},
		{"a past date of RFC 9651", []string{"Retry-After: @1789819195"}, 0, 0},
		{"a date of RFC 9651 that is none", []string{"Retry-After: @soon"}, none, 0},
		{"x-ms", []string{"X-Ms-Retry-After-Ms: 100"}, 100 * time.Millisecond, 0},
		{"x-ms span", []string{"X-Ms-Retry-After-Ms: 00:00:00.033"}, 33 * time.Millisecond, 0},
		{"x-ms span, days", []string{"X-Ms-Retry-After-Ms: 1.02:03:04.5"}, 26*time.Hour + 3*time.Minute + 4500*time.Millisecond, 0},
		{"x-ms span, seven digits", []string{"X-Ms-Retry-After-Ms: 00:01:00.0000001"}, time.Minute + 100, 0},
		{"x-ms span saturates", []string{"X-Ms-Retry-After-Ms: 99999999.00:00:00"}, Max, 0},
		{"x-ms span negative", []string{"X-Ms-Retry-After-Ms: -00:00:01"}, none, 0},
		{"x-ms span, 61 s", []string{"X-Ms-Retry-After-Ms: 00:00:61"}, none, 0},
		{"x-ms span, 24 h", []string{"X-Ms-Retry-After-Ms: 24:00:00"}, none, 0},
		{"x-ms span, short", []string{"X-Ms-Retry-After-Ms: 0:01:00"}, time.Minute, 0},
		{"x-ms span, letters", []string{"X-Ms-Retry-After-Ms: aa:bb:cc"}, none, 0},
		{"x-ms span, no days", []string{"X-Ms-Retry-After-Ms: .00:00:01"}, none, 0},
		{"x-ms span, too many days", []string{"X-Ms-Retry-After-Ms: 123456789.00:00:01"}, none, 0},
		{"x-ms span, loose end", []string{"X-Ms-Retry-After-Ms: 00:01:001"}, none, 0},
		{"x-ms and ms: longer", []string{"X-Ms-Retry-After-Ms: 100", "Retry-After-Ms: 200"}, 200 * time.Millisecond, 0},
		{"hour", []string{"Retry-After: 3600"}, time.Hour, 0},
		{"epoch seconds", []string{"Retry-After: 1789819230"}, 30 * time.Second, 0},
		{"epoch just gone", []string{"Retry-After: 1789819195"}, 0, 0},
		{"epoch long gone stays a delay", []string{"Retry-After: 1234567890"}, 1234567890 * time.Second, 0},
		{"epoch next year", []string{"Retry-After: 1820000000"}, time.Unix(1820000000, 0).Sub(noon), 0},
		{"saturates", []string{"Retry-After: 99999999999"}, Max, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := Wait{}
			if c.wait != none {
				want = Wait{Longest: max(c.wait, c.beside), OK: true}
			}
			if got := Parse(header(c.lines...), noon); got != want {
				t.Errorf("Parse(%q) = %+v, want %+v", c.lines, got, want)
			}
		})
	}
}

// A two-digit year is never more than fifty years ahead (RFC 9110 5.6.7).
func TestParseDateCentury(t *testing.T) {
	for _, c := range []struct {
		now  int
		text string
		want int
	}{
		{1994, "Sunday, 06-Nov-94 08:49:37 GMT", 1994},
		{1994, "Sunday, 06-Nov-43 08:49:37 GMT", 2043},
		{1994, "Sunday, 06-Nov-45 08:49:37 GMT", 1945},
		{2026, "Sunday, 06-Nov-94 08:49:37 GMT", 1994},
		{2026, "Sunday, 06-Nov-70 08:49:37 GMT", 2070},
		{2099, "Sunday, 06-Nov-01 08:49:37 GMT", 2101},
	} {
		now := time.Date(c.now, 1, 1, 0, 0, 0, 0, time.UTC)
		got, ok := ParseDate(c.text, now)
		if !ok || got.Year() != c.want {
			t.Errorf("in %d, ParseDate(%q) = %v, %v; want the year %d", c.now, c.text, got, ok, c.want)
		}
	}
}

func TestZeroNowIsTheLocalClock(t *testing.T) {
	in := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	w := Parse(header("Retry-After: "+in), time.Time{})
	if !w.OK || w.Longest < 50*time.Minute || w.Longest > time.Hour {
		t.Errorf("an hour ahead reads as %+v", w)
	}
}

// The oracle: exact rational arithmetic, rounded up, clamped to Max.
func decimalOracle(s string, unit time.Duration) (time.Duration, bool) {
	digit := false
	for i, dots := 0, 0; i < len(s); i++ {
		switch {
		case s[i] == '.' && dots == 0 && i+1 < len(s):
			dots++
		case '0' <= s[i] && s[i] <= '9':
			digit = true
		default:
			return 0, false
		}
	}
	if !digit {
		return 0, false
	}
	r, _ := new(big.Rat).SetString(s)
	r.Mul(r, new(big.Rat).SetInt64(int64(unit)))
	q, m := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if m.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if q.Cmp(big.NewInt(int64(Max))) > 0 {
		return Max, true
	}
	return time.Duration(q.Int64()), true
}

func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"", "0", ".", ".5", "5.", "1.5", "00.10", "9223372036.854775807", "4611686018", "4611686018.427387903", "4611686018.5", "4611686018427.387903", "1e3", "+1", "1.0000000000001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 400 {
			return // big.Rat would take the time, not the code under test
		}
		for _, unit := range []time.Duration{time.Second, time.Millisecond} {
			got, ok := Decimal(s, unit)
			want, wantOK := decimalOracle(s, unit)
			if !ok {
				got = 0
			}
			if got != want || ok != wantOK {
				t.Errorf("Decimal(%q, %v) = %v, %v; want %v, %v", s, unit, got, ok, want, wantOK)
			}
		}
	})
}

// FuzzSpelled compares the strict reader with time.ParseDuration, which is
// wider (signs, any order of units) but must agree where both accept.
func FuzzSpelled(f *testing.F) {
	for _, s := range []string{"17m31.056s", "644ms", "1h0m0s", "0.0000000001s", "5s5s", "48.939935699s", "1.5h", "9223372036s", "2562047h48m",
		"6m0s", "1h56m38.4s", "547ms", "4h17m", "30µs", "999999999h", "1d", "1s1h", ".5s", "5.s", "0.0000000001h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, rest, ok := Spelled(s)
		if d < 0 || d > Max {
			t.Fatalf("%q: %v", s, d)
		}
		if !ok || rest != "" || strings.ContainsAny(s, " ,") {
			return
		}
		std, err := time.ParseDuration(s)
		if err != nil || strings.Contains(s, ".") && len(s) > 16 {
			return // words for units, days, overflow; or the float64 of the standard library
		}
		if std > Max {
			std = Max
		}
		if d < std || d-std > 1 {
			t.Fatalf("%q: %v, standard library %v", s, d, std)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"120", "1.5", "+5", "99999999999", "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
		"Sun Nov  6 08:49:37 1994", "00:00:00.033", "9.23:59:59.9999999", "1789819230", "NaN", "",
		"45s", "1 minute, 30 seconds", `"45"`, "5;x, 10", "1:02:03",
	} {
		f.Add(s, "0", "", int64(noon.Unix()))
		f.Add("3", s, s, int64(0))
		f.Add("", "", s, int64(-1<<62))
	}
	f.Fuzz(func(t *testing.T, ra, ms, date string, now int64) {
		at := time.Unix(now, 0)
		h := http.Header{"Retry-After": {ra, ms}, "Retry-After-Ms": {ms}, "X-Ms-Retry-After-Ms": {date}, "X-Retry-After": {date}, "Date": {date}}
		w := Parse(h, at)
		if w.Longest < 0 || w.Longest > Max || !w.OK && w != (Wait{}) {
			t.Errorf("Parse(%v) = %+v", h, w)
		}
		// Quotes and parameters change nothing.
		for _, dressed := range []string{`"` + ra + `"`, ra + ";x"} {
			plain, got := Parse(http.Header{"Retry-After": {ra}}, at), Parse(http.Header{"Retry-After": {dressed}}, at)
			if plain.OK && !strings.ContainsAny(ra, `,;"'`) && got != plain {
				t.Errorf("%q is %+v, and %q is %+v", ra, plain, dressed, got)
			}
		}
		// A further line never shortens what is waited for.
		h["Retry-After"] = append(h["Retry-After"], "7")
		if more := Parse(h, at); more.Longest < w.Longest || more.Longest < 7*time.Second {
			t.Errorf("with a further line %+v became %+v", w, more)
		}
	})
}

// FuzzWaits writes a length of time in one of its spellings into one of the fields. It
// is dressed in one of the ways of servers, with other lines beside it. Never a shorter
// wait is read.
func FuzzWaits(f *testing.F) {
	for i := range uint64(200) {
		f.Add(i*0x9e3779b97f4a7c15, int64(i*i*i*7919), uint8(i))
	}
	f.Fuzz(func(t *testing.T, pick uint64, nanos int64, more uint8) {
		d := time.Duration(nanos & (1<<50 - 1)) // up to 13 days
		choose := func(n uint64) uint64 {
			c := pick % n
			pick /= n
			return c
		}
		field := [...]string{"Retry-After", "X-Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms", "X-Retry-After-Ms"}[choose(5)]
		unit := time.Second
		if strings.HasSuffix(field, "Ms") {
			unit = time.Millisecond
			d = max(d, time.Second) // zero says nothing there
		}
		in := noon.Add(d)
		decimals := func(u time.Duration) string {
			return strings.TrimRight(strings.TrimRight(new(big.Rat).SetFrac64(int64(d), int64(u)).FloatString(9), "0"), ".")
		}
		var value string
		switch want := d; choose(12) {
		case 0:
			value = decimals(unit)
		case 1:
			value = in.Format(http.TimeFormat)
			d = want.Truncate(time.Second)
		case 2:
			value = in.Format("Monday, 02-Jan-06 15:04:05 MST")
			d = want.Truncate(time.Second)
		case 3:
			value = in.Format(time.ANSIC)
			d = want.Truncate(time.Second)
		case 4:
			value = in.Format(time.RFC3339Nano)
		case 5:
			value = in.Format(time.RFC1123Z)
			d = want.Truncate(time.Second)
		case 6:
			value = d.String() // "1h2m3.5s"
		case 7:
			value = decimals(time.Second) + " seconds"
		case 8:
			value = decimals(time.Second) + "s"
		case 9:
			value = "PT" + decimals(time.Second) + "S"
		case 10:
			value = "@" + strconv.FormatInt(in.Unix(), 10)
			d = want.Truncate(time.Second)
		case 11:
			value = fmt.Sprintf("%d.%02d:%02d:%02d.%09d", d/(24*time.Hour), d/time.Hour%24, d/time.Minute%60, d/time.Second%60, d%time.Second)
		}
		switch choose(5) {
		case 1:
			value = " \t" + value + " "
		case 2:
			value = `"` + value + `"`
		case 3:
			value += ";comment=x"
		case 4:
			value = strings.ToUpper(value)
		}
		h := http.Header{field: {value}, "Date": {noon.Format(http.TimeFormat)}}
		least, most := d, d+time.Nanosecond
		if more&1 != 0 { // a second line of another server
			h[field] = append(h[field], strconv.Itoa(int(more)))
			least, most = max(least, time.Duration(more)*unit), max(most, time.Duration(more)*unit)
		}
		if more&2 != 0 {
			h["Retry-After"] = append([]string{strconv.Itoa(int(more))}, h["Retry-After"]...)
			least, most = max(least, time.Duration(more)*time.Second), max(most, time.Duration(more)*time.Second)
		}
		if w := Parse(h, noon); !w.OK || w.Longest < least || w.Longest > most {
			t.Errorf("%v is %+v, want %v", h, w, least)
		}
	})
}

func TestParseAllocatesNothing(t *testing.T) {
	for _, h := range []http.Header{header(), header("Retry-After: 1.5", "Retry-After-Ms: 1500", "X-Ms-Retry-After-Ms: 00:00:01")} {
		if n := testing.AllocsPerRun(100, func() { Parse(h, noon) }); n != 0 {
			t.Errorf("Parse(%v) makes %v allocations", h, n)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct {
		name string
		h    http.Header
	}{
		{"none", header()},
		{"seconds", header("Retry-After: 20")},
		{"date", header("Date: Sat, 19 Sep 2026 12:00:00 GMT", "Retry-After: Sat, 19 Sep 2026 12:00:05 GMT")},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Parse(c.h, noon)
			}
		})
	}
}

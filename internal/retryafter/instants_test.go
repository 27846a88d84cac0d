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

// Every field reads an instant in every unit, ahead and past, with and without a
// Date of the response. The year 2000 is the clock of package synctest.
func TestAnInstantIsReadInEveryUnitAndField(t *testing.T) {
	for _, now := range []time.Time{noon, y2k, time.Date(2031, 2, 28, 23, 59, 59, 0, time.UTC)} {
		for _, ahead := range []time.Duration{
			30 * time.Second, 1500 * time.Millisecond, time.Hour, 40 * 24 * time.Hour, 200 * 24 * time.Hour,
			0, -time.Second, -2 * time.Minute, -40 * 24 * time.Hour, -300 * 24 * time.Hour,
		} {
			at := now.Add(ahead)
			for unit, value := range map[string]string{
				"s": fmt.Sprintf("%d.%03d", at.Unix(), at.Nanosecond()/1e6), "ms": strconv.FormatInt(at.UnixMilli(), 10),
				"us": strconv.FormatInt(at.UnixMicro(), 10), "ns": strconv.FormatInt(at.UnixNano(), 10),
			} {
				for _, field := range []string{"Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
					want := Wait{Longest: max(ahead, 0), OK: true}
					if got := Parse(http.Header{field: {value}}, now); got != want {
						t.Errorf("at %v, %s: %s (%v ahead, in %s) is %+v", now, field, value, ahead, unit, got)
					}
					dated := http.Header{field: {value}, "Date": {now.Format(http.TimeFormat)}}
					if got := Parse(dated, now.Add(-3*time.Minute)); got != want {
						t.Errorf("with a Date, %s: %s is %+v", field, value, got)
					}
				}
			}
		}
	}
}

var y2k = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// A length stays a length, however long: no suspicion makes a wait shorter.
func TestALengthOfTimeStaysOne(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"31536000":  year,
		"315360000": 3650 * 24 * time.Hour,
		"630720000": 20 * year,
		"86400":     24 * time.Hour,
	} {
		if got := Parse(http.Header{"Retry-After": {value}}, noon); got.Longest != want {
			t.Errorf("%s s is %v, want %v", value, got.Longest, want)
		}
		if got := Parse(http.Header{"Retry-After-Ms": {value}}, noon); got.Longest != want/1000 {
			t.Errorf("%s ms is %v, want %v", value, got.Longest, want/1000)
		}
	}
}

// Report: AstroVela/vane#170
func TestADateIsReadInEverySpelling(t *testing.T) {
	for _, s := range []string{
		"Sat, 19 Sep 2026 12:00:05 GMT", "Sat, 19 Sep 2026 12:00:05 UTC", "Sat, 19 Sep 2026 12:00:05 UT",
		"Sat, 19 Sep 2026 12:00:05 Z", "Sat, 19 Sep 2026 12:00:05 gmt",
		"Sat, 19 Sep 2026 12:00:05 +0000", "Sat, 19 Sep 2026 12:00:05 -0000", "Sat, 19 Sep 2026 12:00:05 +00:00",
		"Sat, 19 Sep 2026 14:00:05 +0200", "Sat, 19 Sep 2026 07:30:05 -0430",
		"Sat, 19 Sep 2026 12:00:05 GMT+0000", "Sat, 19 Sep 2026 20:00:05 UTC+08:00",
		"19 Sep 2026 12:00:05 GMT", "Sat, 19 Sep 2026 12:00:05",
		"Saturday, 19-Sep-26 12:00:05 GMT", "Saturday, 19-Sep-26 12:00:05 UTC", "Saturday, 19-Sep-26 12:00:05 +0000",
		"Saturday, 19-Sep-2026 12:00:05 GMT", "Sat, 19-Sep-2026 12:00:05 GMT",
		"Sat 19 Sep 2026 12:00:05 GMT", "Sat 19 Sep 2026 14:00:05 +0200",
		"Sat Sep 19 12:00:05 2026", "Sat Sep 19 2026 12:00:05 GMT+0000", "Sat Sep 19 2026 14:00:05 GMT+0200",
		"2026-09-19T12:00:05Z", "2026-09-19t12:00:05z", "2026-09-19T12:00:05.000Z", "2026-09-19T12:00:05+00:00",
		"2026-09-19T14:00:05+02:00", "2026-09-19T20:00:05+0800", "2026-09-19T08:00:05-04:00", "2026-09-19T12:00:05",
		"2026-09-19 12:00:05", "2026-09-19 12:00:05Z", "2026-09-19 12:00:05 UTC", "2026-09-19 12:00:05 GMT",
		"2026-09-19 12:00:05 +0000", "2026-09-19 12:00:05 +0000 UTC", "2026-09-19 20:00:05 UTC+8:00", "2026/09/19 12:00:05",
		"Sat, 19 Sep 2026 12:00:04.5 GMT", "Sat, 19 Sep 2026 11:59:60 GMT",
	} {
		w := Parse(http.Header{"Retry-After": {s}}, noon)
		if want := 5 * time.Second; !w.OK || w.Longest != want && s != "Sat, 19 Sep 2026 12:00:04.5 GMT" && s != "Sat, 19 Sep 2026 11:59:60 GMT" {
			t.Errorf("%q is %+v, want %v", s, w, want)
		}
	}
	if at, ok := ParseDate("Sat, 31 Dec 2016 23:59:60 GMT", noon); !ok || !at.Equal(time.Date(2017, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("a leap second is %v, %v", at, ok)
	}
}

func TestADateThatCannotBeToldIsUnknown(t *testing.T) {
	for _, s := range []string{
		"Sat, 19 Sep 2026 12:00:05 PST", "Sat, 19 Sep 2026 12:00:05 +25:00", "Sat, 19 Sep 2026 12:00:05 +2", "Sat, 32 Sep 2026 12:00:05 GMT",
		"Sat, 19 Sep 2026 25:00:05 GMT", "2026-09-19", "2026-13-19T12:00:05Z", "19/09/2026 12:00:05", "Sat, 19 Sep 2026 12:00:61 GMT",
		"Saturday, 19-Sep-26 12:00:05 GMT-8", "::::::::::::::::::::", "+++++++++++++++++++++++", "Z:Z:Z:Z:Z:Z:Z:Z:Z:Z:Z",
	} {
		if w := Parse(http.Header{"Retry-After": {s}}, noon); w.OK {
			t.Errorf("%q is %+v", s, w)
		}
	}
}

// Lines in either order, as lines and joined into one.
func TestOfSeveralWaitsTheLongestCounts(t *testing.T) {
	values := []string{"3", "Sat, 19 Sep 2026 12:00:09 GMT", "1.5", "Saturday, 19-Sep-26 12:00:04 GMT"}
	for i := range values {
		for j := range values {
			lines := Parse(http.Header{"Retry-After": {values[i], values[j]}}, noon)
			joined := Parse(http.Header{"Retry-After": {values[i] + ", " + values[j]}}, noon)
			one, other := Parse(http.Header{"Retry-After": {values[i]}}, noon), Parse(http.Header{"Retry-After": {values[j]}}, noon)
			if want := max(one.Longest, other.Longest); lines.Longest != want || joined.Longest != want {
				t.Errorf("%q and %q: %v as lines, %v joined, want %v", values[i], values[j], lines.Longest, joined.Longest, want)
			}
		}
	}
	if w := Parse(http.Header{"Retry-After": {"3, soon"}}, noon); w.OK {
		t.Errorf("a list with a word is %+v", w)
	}
}

// numberOracle reads a number with big rationals: every reading that can be
// believed, of which one must be the answer.
func numberOracle(s string, unit time.Duration, now time.Time) (readings []time.Duration) {
	length, ok := decimalOracle(s, unit)
	if !ok {
		return nil
	}
	readings = append(readings, length)
	r, _ := new(big.Rat).SetString(s)
	for _, u := range epochUnits {
		ns := new(big.Rat).Mul(r, new(big.Rat).SetInt64(int64(u)))
		left := ns.Sub(ns, new(big.Rat).SetInt64(now.UnixNano()))
		q := new(big.Int).Quo(left.Num(), left.Denom())
		if !left.IsInt() && left.Sign() > 0 {
			q.Add(q, big.NewInt(1))
		}
		if q.IsInt64() && q.Int64() >= -int64(farBack) && q.Int64() <= int64(farAhead) {
			readings = append(readings, time.Duration(max(q.Int64(), 0)))
		}
	}
	return readings
}

// A number is one of the readings that an exact oracle gives. Without a believable
// instant it is the length. It is a shorter wait than the length only where the
// length is above ten days.
func FuzzNumber(f *testing.F) {
	for _, s := range []string{"30", "1767225660", "1767225660000", "1767225660000000", "1767225660000000000", "1767225660.5", "946684830", "315360000", "99999999999", "0", ".5"} {
		f.Add(s, int64(1767225600))
		f.Add(s, int64(946684800))
	}
	f.Fuzz(func(t *testing.T, s string, at int64) {
		if len(s) > 100 || at < 0 || at > 1<<32 {
			return
		}
		now := time.Unix(at, 0)
		for _, unit := range []time.Duration{time.Second, time.Millisecond} {
			c := Clock{Local: now}
			got, instant, ok := c.Number(s, unit)
			readings := numberOracle(s, unit, now)
			if ok != (readings != nil) {
				t.Fatalf("Number(%q) is %v, %v; the oracle has %v", s, got, ok, readings)
			}
			if !ok {
				continue
			}
			if !instant && got != readings[0] {
				t.Errorf("Number(%q, %v) is the length %v, want %v", s, unit, got, readings[0])
			}
			fits := false
			for _, r := range readings {
				fits = fits || r == got
			}
			if !fits || got < readings[0] && readings[0] < leastInstant {
				t.Errorf("Number(%q, %v) at %v is %v, none of %v", s, unit, now, got, readings)
			}
		}
	})
}

// A date that the standard library reads is the same instant here.
func FuzzParseDate(f *testing.F) {
	for _, s := range []string{"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "2026-09-19T14:00:05+02:00", "2026-09-19 12:00:05 -0000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := ParseDate(s, noon)
		if want, err := time.Parse(http.TimeFormat, s); err == nil && (!ok || !got.Equal(want)) {
			t.Errorf("%q is %v, %v; want %v", s, got, ok, want)
		}
		if want, err := time.Parse(time.RFC3339, s); err == nil && len(s) <= longestDate && (!ok || !got.Equal(want)) {
			t.Errorf("%q is %v, %v; want %v", s, got, ok, want)
		}
		if want, err := time.Parse(time.ANSIC, s); err == nil && len(s) <= longestDate && (!ok || !got.Equal(want)) {
			t.Errorf("%q is %v, %v; want %v", s, got, ok, want)
		}
	})
}

// FuzzSpellings writes an instant in every spelling and expects the time left to
// it, to the second, from Parse.
func FuzzSpellings(f *testing.F) {
	f.Add(int64(1767225600), int64(30), uint8(0))
	f.Add(int64(946684800), int64(-120), uint8(3))
	f.Add(int64(1900000000), int64(86400*40), uint8(9))
	layouts := []string{
		http.TimeFormat, time.RFC850, time.ANSIC, time.RFC1123Z, time.RFC3339, time.RFC3339Nano, time.DateTime,
		"2 Jan 2006 15:04:05 GMT", "Mon, 02-Jan-2006 15:04:05 UTC", "2006/01/02 15:04:05 UTC", "Mon Jan 02 2006 15:04:05 GMT-0700",
	}
	zones := []*time.Location{time.UTC, time.FixedZone("", 8*3600), time.FixedZone("", -(4*3600 + 1800))}
	f.Fuzz(func(t *testing.T, nowS, ahead int64, spelling uint8) {
		if nowS < 946684800 || nowS > 2000000000 || ahead < -9*365*86400 || ahead > 40*365*86400 {
			return
		}
		now := time.Unix(nowS, 0)
		at := time.Unix(nowS+ahead, 0).UTC()
		want := time.Duration(max(ahead, 0)) * time.Second
		field, value := "Retry-After", ""
		switch n := int(spelling) % (len(layouts) + 6); {
		case n < len(layouts):
			layout := layouts[n]
			if strings.Contains(layout, "Z07") || strings.Contains(layout, "-0700") {
				at = at.In(zones[int(spelling)%len(zones)])
			}
			value = at.Format(layout)
		default:
			value = []string{
				strconv.FormatInt(at.Unix(), 10), strconv.FormatInt(at.UnixMilli(), 10), strconv.FormatInt(at.UnixMicro(), 10),
				strconv.FormatInt(at.UnixNano(), 10), strconv.FormatInt(at.UnixMilli(), 10), strconv.FormatInt(at.UnixMicro(), 10),
			}[n-len(layouts)]
			if n >= len(layouts)+4 {
				field = "Retry-After-Ms"
			}
		}
		for _, h := range []http.Header{{field: {value}}, {field: {value}, "Date": {now.UTC().Format(http.TimeFormat)}}} {
			if got := Parse(h, now); !got.OK || got.Longest != want {
				t.Errorf("at %v, %v is %+v, want %v", now.UTC(), h, got, want)
			}
		}
	})
}

// An instant that a program gave a unit is one; a length of time with that unit is none.
func TestAnInstantWithAUnit(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"1789819245s": 45 * time.Second, "1789819245 seconds": 45 * time.Second, "1789819245.5s": 45500 * time.Millisecond,
		"1789819245000ms": 45 * time.Second, "1789819245000000us": 45 * time.Second, "1789819245000000000ns": 45 * time.Second,
		"1789819245000s": 45 * time.Second, "1789819100s": 0, "@1789819245000": 45 * time.Second, "@1789819100": 0, "@5": 0,
		"45s": 45 * time.Second, "1e3s": -1, "864000s": 240 * time.Hour, "31536000s": 365 * 24 * time.Hour, "315360000000ms": 3650 * 24 * time.Hour,
		"1789819245 minutes": Max, "29830320 minutes": 29830320 * time.Minute, "0.5h 3s": 30*time.Minute + 3*time.Second,
	} {
		w := Parse(http.Header{"Retry-After": {s}}, noon)
		if w.OK != (want >= 0) || w.OK && w.Longest != want {
			t.Errorf("%q is %+v, want %v", s, w, want)
		}
	}
}

// A Date more than a year off measures no instant that is nearer to the local clock. A
// server whose clock is off by less, or that names an instant of its own clock, is
// believed.
func TestADateThatIsNoClock(t *testing.T) {
	for _, c := range []struct {
		date, value string
		want        time.Duration
	}{
		{"Thu, 01 Jan 1970 00:00:00 GMT", "Sat, 19 Sep 2026 12:00:30 GMT", 30 * time.Second},
		{"Thu, 01 Jan 1970 00:00:00 GMT", "1789819230", 30 * time.Second},
		{"Thu, 01 Jan 1970 00:00:00 GMT", "Thu, 01 Jan 1970 00:00:30 GMT", 30 * time.Second},
		{"Thu, 01 Jan 2099 00:00:00 GMT", "Sat, 19 Sep 2026 12:00:30 GMT", 30 * time.Second},
		{"Thu, 01 Jan 2099 00:00:00 GMT", "1789819230000", 30 * time.Second},
		{"Thu, 01 Jan 2099 00:00:00 GMT", "Thu, 01 Jan 2099 00:01:00 GMT", time.Minute},
		{"Wed, 19 Aug 2026 12:00:00 GMT", "Wed, 19 Aug 2026 12:00:30 GMT", 30 * time.Second},
		{"Wed, 19 Aug 2026 12:00:00 GMT", "Sat, 19 Sep 2026 12:00:30 GMT", 31*24*time.Hour + 30*time.Second},
	} {
		w := Parse(http.Header{"Retry-After": {c.value}, "Date": {c.date}}, noon)
		if !w.OK || w.Longest != c.want {
			t.Errorf("Date %s, %s is %+v, want %v", c.date, c.value, w, c.want)
		}
	}
}

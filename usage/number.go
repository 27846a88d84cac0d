package usage

import "strings"

// parseCount reads a JSON number as a count: a whole number from 0 to 2^53,
// also when written 12.0 or 1.5e1. Anything else is unknown.
func parseCount(b []byte) (int64, bool) {
	if n, ok := plainCount(b); ok {
		return n, true
	}
	// number = [ "-" ] int [ "." 1*DIGIT ] [ "e" [ "+" / "-" ] 1*DIGIT ]
	s := string(b)
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa = s[:i]
		e := s[i+1:]
		negative := strings.HasPrefix(e, "-")
		e = strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(e, "-"), "+"), "0")
		if rest := s[i+1:]; strings.Trim(rest, "+-") == "" || !digits(strings.TrimLeft(rest, "+-")) || strings.LastIndexAny(rest, "+-") > 0 {
			return 0, false
		}
		if len(e) > 4 {
			e = "9999" // more than any mantissa of 256 digits makes up for
		}
		for _, c := range []byte(e) {
			exponent = exponent*10 + int(c-'0')
		}
		if negative {
			exponent = -exponent
		}
	}
	whole, fraction, dotted := strings.Cut(mantissa, ".")
	if whole == "" || len(whole) > 1 && whole[0] == '0' || !digits(whole) || !digits(fraction) || dotted && fraction == "" {
		return 0, false
	}
	// The value is all * 10^(exponent - len(fraction)).
	all := strings.TrimLeft(whole+fraction, "0")
	shift := exponent - len(fraction)
	trimmed := strings.TrimRight(all, "0")
	if trimmed == "" {
		return 0, true
	}
	shift += len(all) - len(trimmed)
	if shift < 0 || len(trimmed)+shift > 16 {
		return 0, false
	}
	return plainCount([]byte(trimmed + strings.Repeat("0", shift)))
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// plainCount reads the digits of a whole number without leading zeros.
func plainCount(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 16 || len(b) > 1 && b[0] == '0' {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, n <= maxCount
}

package estimate

import "math"

// Prices are sums and products of numbers that callers and bodies choose. None
// of them may wrap round to a small or negative price: they stop at the largest
// number instead, which every limit refuses.

// addSat is a+b for a, b >= 0, at most math.MaxInt64.
func addSat(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// mulSat is a*b for a, b >= 0, at most math.MaxInt64.
func mulSat(a, b int64) int64 {
	if a != 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// ceilDiv is a/b rounded up, for a >= 0 and b > 0.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 {
		q++
	}
	return q
}

// isqrt is the largest n with n*n <= x, for 0 <= x < 1<<62.
func isqrt(x int64) int64 {
	n := int64(math.Sqrt(float64(x)))
	for n*n > x {
		n--
	}
	for (n+1)*(n+1) <= x {
		n++
	}
	return n
}

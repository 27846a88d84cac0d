// Package retryafter reads how long a server asks its caller to stay away.
//
// It promises that a wait is known or unknown and never guessed: what cannot be
// read is unknown, which is not the same as zero. A wait is never negative,
// never shorter than what was written (it is rounded up to the nanosecond), and
// never overflows: it saturates at [Max].
//
// It refuses everything outside the grammar given at each parser: signs,
// exponents, units, infinities and lists. A list is refused although a proxy
// might have joined two field lines into one, because "1,000" would then be read
// as one second.
//
// Start with [Parse].
package retryafter

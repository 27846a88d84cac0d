// Package retryafter reads how long a server asks its caller to stay away.
//
// It promises that a wait is known or unknown and never guessed. A value that cannot
// be read is unknown, which is not the same as zero. A wait is never negative and never
// shorter than written: it is rounded up to the nanosecond. It never overflows: it
// saturates at [Max].
//
// It refuses everything outside the grammar given at each parser: signs, exponents,
// units that nobody knows, infinities. "1,000" is refused: it is a second and more, or
// a thousand. "1, 30" is read, as two lines that a proxy has joined into one.
//
// Start with [Parse].
package retryafter

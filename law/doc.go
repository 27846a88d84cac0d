// Package law learns how a limit gives back what was used: as a bucket that
// refills evenly, or in one of the windows of package limit.
//
// # The promise
//
// A [Learner] takes what answers say of one limit, and what was sent to it, and
// believes in a law or in none. It believes nothing on one answer's word. A
// belief is dated, says why it is held, and ends for ten minutes after the second
// refusal on which its books had room. Nothing here is a balance: what an answer
// says is left may lower credit elsewhere, and raises none.
//
// # The refusal
//
// It knows nothing of HTTP and of no provider; the recordings of [Replay] are the
// one place that names some. It does not decide what may go: [Belief.Law] is
// handed to a meter of package limit, which does.
//
// # How laws differ
//
//	reset = missing / rate on several answers              a bucket
//	remaining rises between sends at the rate              a bucket
//	it stands still between sends                          a window
//	it rises in the rhythm of the sends of a window ago    a sliding log
//	it rises evenly by the use of the last window          two weighted windows
//	it is what the books hold, three times in a row        the sliding window of those books
//	an edge passed, and all but own sends since is back    a fixed window
//
// That answers name one and the same instant as their reset does not prove a
// fixed window: two weighted windows may name the same edge, at which most of
// what was used still counts. Only the edge itself proves it.
//
// No evidence are:
//
//   - fields of a refused answer: some say 0 for "not for this request";
//   - a reset that never changes, or one in the past, such as 1970;
//   - a reset of 0 with nearly all remaining;
//   - a difference within the error of a debit, or of a call's time on the way.
//
// A field that adds up two counters is no counter. A Learner must not see it.
//
// The files follow an answer: learner.go takes it in, and books.go keeps what each window
// would hold. reset.go, compare.go and level.go ask which law explains it, ended.go whether
// calls are charged when they end; conclude.go believes it.
package law

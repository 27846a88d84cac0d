// Package limit admits calls under exact limits: so many requests, so many
// tokens, in so long, and so many at once. Limits belong to scopes, and those who
// wait share them fairly. Most callers use [New], [Limiter.Acquire] and
// [Reservation.Settle], or [Do] for a function.
//
// # The promise
//
// The ledger is exact. A rate is two whole numbers, N units in a window. Credit
// is whole numbers too, and nothing is ever rounded away: for windows from a
// millisecond to a year, and up to 10^12 units. A wait that is named is the wait
// there is. Under no other use the call is admitted at exactly that instant, and
// not a nanosecond before.
//
// All limits and places in flight that a call needs grant together, or none is
// touched. Leaving the line leaves the ledger as if the caller had never come.
//
// # The refusal
//
// What cannot go is refused at once, before anything changes, as a typed
// [*Error] with the numbers in it:
//
//   - a cost that no wait can make admissible;
//   - one caller more than may wait;
//   - a wait that must outlast the deadline or the longest wait.
//
// The package does not guess an actual cost, forgive a debt, or raise credit on
// anybody's word. It does not read the wall clock or run a goroutine of its own. It
// knows nothing of HTTP. It does not coordinate processes: a limit in each of n
// processes is n limits, unless each is given its share.
//
// # Where to begin
//
// [Limiter.Acquire] waits and returns a [Reservation], to be settled when the
// actual cost is known. [Limiter.Wait] and [Limiter.Allow] need no end.
// [Limiter.Reserve] gives a [Ticket] to select on. [Limiter.Admit] is Acquire
// for a call with scopes, a tenant and a class. [Limiter.Forecast] asks instead
// of waiting. [Limiter.Snapshot] is for people and metrics. [Ledger] is what
// another implementation must do, and package limittest tests it. [Bucket],
// [GCRA] and [Window] are the arithmetic alone, with the instant as an argument.
//
// # Scopes
//
// A scope has limits, a pause and places in flight of its own. A call takes from
// its path: the root, the scopes of its [Ask], and its tenant. When one of them
// refuses, nothing is spent in any.
//
// Scopes are made when their names are first used, as [Options.Open] says. A scope
// that is idle and full is forgotten once more than [Options.KeepIdle] are idle;
// that takes constant time for each call. One that is in debt, paused, in use or
// set by hand is kept. A kept scope takes less than 200 bytes and its name, and
// 130 bytes more for each limit of its own. So all that is kept is KeepIdle
// scopes, and those that used something in their own longest window.
//
// # The fair line
//
// Each limit has a line of those who lack it, and so have the places and the pause
// of a scope. The waiting calls of one tenant and class with the same scopes and
// needs are a lane. A lane stands in one line: that of the first thing it lacks,
// from the tenant outwards to the root. When its turn comes there it goes, if it
// lacks nothing else, or moves on. Hence:
//
//   - Calls that wait for different limits do not wait for each other.
//   - A tenant that is stopped by something of its own blocks nobody.
//   - A call that needs nothing of a limit passes those who wait for it.
//   - A small call does not overtake a large one at a limit that both need.
//
// In a line, the tenants are served by start-time fair queueing, in the units of
// the limit:
//
//	tag  = start + served / weight     of each tenant, first the least
//	time = the largest tag granted     the virtual time of the line
//
// A tenant that comes, or comes back, starts at the later of two: the virtual time,
// and the tag of the first who waits. So nobody saves up turns. A settlement
// moves the tag as it moves the ledger; without that the shares follow the
// estimates. The bound: while two tenants wait in a line, what they were served,
// each divided by its weight, differs by at most one largest call of each. What
// settlements move is made up for before anything else.
//
// Within a tenant the order is first come, first served. [Ask.First] puts a
// further attempt before the others of its tenant and class. Calls of the class
// [Interactive] go before those of [Batch]. While both wait, Batch earns a share of
// all that the limit grants, [Options.Floor], 10 per cent unless set; it has its
// turn when that has earned its next call. What the one class leaves, the other
// gets at once.
//
// A large call that needs two limits could be passed for ever by calls that need
// only the one or the other. A lane that comes back to a line that it had got
// through claims what it needs: others then take only what does not delay it.
//
// # Pauses
//
// [Limiter.PauseScope] holds a scope, and keeps who asked for it and why. After
// [Pause.ProbeAfter] one call at a time goes as a probe; its settlement ends the
// pause. [Limiter.ResumeScope] ends it at once.
//
// # The arithmetic
//
// With a rate of N units in W nanoseconds, credit is counted in grains, W of
// them to a unit. Each nanosecond earns N grains. So, without a division,
//
//	level(t) = min(burst*W, level(t0) + N*(t - t0))
//
// and with one, only where a wait is named,
//
//	wait(c) = ceil((c*W - level) / N)
//
// The level is a signed integer of 128 bits; below zero it is debt. [GCRA]
// keeps the theoretical arrival time in the same grains, level = burst*W -
// max(0, TAT - N*t), and answers alike.
//
// An interval per unit would not do: 7 a minute is one each 8,571,428,571.43 ns.
// Cut to whole nanoseconds it runs fast for ever; at 300 million a second by 11 %.
// Floating point would not do either: stamps that cross make it earn twice.
//
// # Invariants
//
// For each limit of each scope, after every operation, in grains:
//
//	level <= burst*W
//	credit - debt + outstanding + spent = earned
//
// Here credit - debt is the level, outstanding is what open reservations hold, and
// spent is what ended ones cost. Earned is the initial credit and all refill that
// found room, less what [Reservation.Lower], [Limiter.Drain] and [Limiter.Pause]
// took. A settlement that charges what a reading took before gives that back. Hence in any span d at most [Limit.Most] is admitted.
//
// Time does not go back: an instant older than the last earns nothing and moves
// nothing. A reservation ends once. What was due by an instant happens before
// anything else is done at it. So an answer depends on instants alone, and not on
// how late a timer or a goroutine was.
//
// One timer is set for the first of all lines, and only while somebody waits. Each
// admission wakes one goroutine, its own. Joining, leaving and going take O(log n)
// for n lanes, with any number of calls in them.
//
// # Bounds
//
// [MaxUnits] is 10^12 < 2^40, [MaxWindow] is 366 days < 2^55 ns, and instants
// are below 2^63 ns. Then, in grains,
//
//	a burst or a cost            2^40 * 2^55  = 2^95
//	earned over all time         2^40 * 2^63  = 2^103
//	the line, 2^22 waiters       2^63 * 2^55  = 2^118
//	the sums of Lower            2^63 * 2^55  = 2^118
//	debt, saturating at                         2^126
//	what is missing at most      2^126 + 2^118 + 2^95  < 2^127
//
// so nothing wraps. A tag is counted in 2^-40 units: 2^63 units served make 2^103.
// The sum of all who wait is 2^22 * 2 * (MaxUnits+1) < 2^63 units; for that reason
// no more than 2^22 may wait.
//
// Debt saturates only after two thousand million charges of MaxUnits in the
// longest window, and later in shorter ones. A wait above 2^63 ns, 292 years, is
// given as that. A change of the window rounds credit down to the new grain, at
// most a millionth of a unit. With a burst of 1 the part of a nanosecond in
// which a unit ends is lost, so strict pacing rounds each gap up. Any larger burst paces the k-th unit at exactly ceil(k*W/N).
package limit

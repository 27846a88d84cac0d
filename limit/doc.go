// Package limit admits calls under exact limits: so many requests, so many
// tokens, in so long, and so many at once.
//
// # The promise
//
// The ledger is exact. A rate is two whole numbers, N units in a window; credit
// and its remainder are whole numbers too, and nothing is ever rounded away,
// however often it is looked at, from a millisecond to a year and up to 10^12
// units. A wait that is named is the wait there is: under no other use the call
// is admitted at exactly that instant, and not a nanosecond before.
//
// All limits and the in-flight gate grant together, or none is touched. Those
// who must wait stand in one line, first come first served, and the head is
// looked at again whenever credit comes back. Leaving the line leaves the ledger
// as if the caller had never come.
//
// # The refusal
//
// What cannot go is refused at once, before anything changes, as a typed
// [*Error] with the numbers in it: a cost that no wait can make admissible, a
// full line, a wait that must outlast the deadline or the longest wait.
//
// The package will not: guess an actual cost, forgive a debt, raise credit on
// anybody's word, read the wall clock, or run a goroutine of its own. It knows
// nothing of HTTP. It does not coordinate processes: a limit in each of n
// processes is n limits, unless each is given its share.
//
// # Where to begin
//
// [New] makes a [Limiter]. [Do] and [Wrap] limit any function in one line.
// [Limiter.Acquire] waits and returns a [Reservation], to be settled when the
// real cost is known. [Limiter.Wait] and [Limiter.Allow] need no end.
// [Limiter.Reserve] gives a [Ticket] to select on. [Limiter.Snapshot] is for
// people and metrics. [Bucket] and [GCRA] are the arithmetic alone, with the
// instant as an argument.
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
// An interval per unit would not do: 7 a minute is one each 8,571,428,571.43 ns,
// and an interval cut to whole nanoseconds runs fast for ever; at 300 million a
// second by 11 %. Floating point would not either, though less for its drift
// than for what becomes of it under crossing stamps.
//
// # Invariants
//
// For each limit, after every operation, in grains:
//
//	level <= burst*W
//	credit - debt + outstanding + spent = earned
//
// where credit - debt is the level, outstanding is what open reservations hold,
// spent is what ended ones cost, and earned is the initial credit and all refill
// that found room, less what [Reservation.Lower], [Limiter.Drain] and
// [Limiter.Pause] took. Hence in any span d at most [Limit.Most] is admitted.
//
// Time does not go back: an instant older than the last earns nothing and moves
// nothing. A reservation ends once, and those that have not are what is in flight.
// What was due by an instant happens before anything else is done at it, so an
// answer depends on instants alone and not on how late a timer or a goroutine was.
//
// The timer is set for the head alone, and only while somebody waits; each
// admission wakes one goroutine, its own. Joining the line, leaving it from any
// place, and refusing are O(1), whatever its length. When the line empties,
// nothing is left.
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
// so nothing wraps. The line's sum in units is 2^22 * 2 * (MaxUnits+1) < 2^63,
// for which reason no more than 2^22 may wait. Debt saturates only after two
// thousand million charges of MaxUnits in the longest window, and later in
// shorter ones. A wait above 2^63 ns, 292 years, is told as that. A change of
// the window rounds credit down to the new grain, at most a millionth of a unit.
// A burst of 1 has no room for the part of a nanosecond in which a unit ends, so
// strict pacing rounds each gap up to the next one; any larger burst paces the
// k-th unit at exactly ceil(k*W/N).
//
// # Figures
//
// Two cores of a shared virtual machine (AMD EPYC), Go 1.26. Acquire and settle
// count requests, tokens and a place in flight, and allocate nothing; beside
// them, in turns of the same run, golang.org/x/time/rate v0.16.0. The ranges are
// of five runs.
//
//	goroutines                             1             8          1000
//	acquire + settle                74..126 ns   118..140 ns   126..153 ns
//	of one AllowN                    0.70..1.01    0.63..0.79    0.57..0.72
//	of two AllowN                    0.35..0.51    0.35..0.47    0.37..0.69
//	of two WaitN                     0.28..0.40    0.26..0.35    0.31..0.50
//
//	admit + settle, 1000 goroutines    4 million a second at the least
//	handle ended in another goroutine  0 allocations (x/time: 1)
//	join, wait, be admitted            0.7 to 0.9 µs with 10 to 100,000 waiting;
//	                                   2 allocations
//	cancel in the line, join again     0.8 to 1.0 µs with 10 to 100,000 waiting
//	phantom credit under spinning      0
//
// One goroutine takes 70 ns where it has a core to itself, of which 31 read the
// clock, and up to 125 where somebody else uses the other half of the core: the
// ledger is many short instructions, AllowN fewer and slower ones, which such
// company hurts less. Eight and a thousand are near one because whoever finds
// the lock taken keeps away from it for a microsecond or two.
//
// The wake is as late as the runtime's own timers, which in an idle program wait
// for whole milliseconds on Linux: 0.58 ms in the middle and 1.16 ms at the 99th
// percentile of 10,000 waiters, where time.Sleep had 0.55 and 1.13. On a machine
// with more to run than it has cores both are later, several milliseconds at the
// 99th percentile. Only spinning until the instant would be earlier.
//
// To reproduce:
//
//	go test ./limit -run '^$' -bench Against -benchtime 60x
//	go test ./limit -run '^$' -bench 'Kept|Line|Admissions|Phantom'
//	go test ./limit -run '^$' -bench Wake -benchtime 1x
//	go test ./limit -run Oracle -limit.ops 10000000 -timeout 60m
//	go test ./limit -run Lives -limit.lives 1000000
//	go test ./limit -run '^$' -fuzz FuzzLimiter   (or FuzzBucket, FuzzWide)
package limit

// Package redislimit keeps one budget for many processes: the ledger of package
// limit, with its state in Redis or Valkey.
//
// It counts as package limit does, number for number: by buckets, windows, guards, and the
// further books of limits that are charged when calls end ([limit.Law.AtEnd]). Two things are
// plainer. A guard holds nothing of the balances of a first crowd back
// ([limit.Reservation.Unsure]). And calls that left before a limit was learned give nothing
// back to it ([limit.Limiter.EarlyScope]).
//
// # The promise
//
// The ledger is as exact as the local one, for all processes together. Levels are
// whole numbers, on the clock of the server alone. No instant of a process reaches
// it; the edge of a window that a process saw reaches it as a span from now. All limits, places in flight and pauses of a call's path decide in one
// script, all or none, and a refusal changes nothing. The allowances of a
// scope ([limit.Allowances]) are part of that decision. Debt is kept: no key ends before
// its debt is paid off or its month is over.
//
// Every call to the store has a number and is decided once. One whose answer was
// lost is sent again, byte for byte, and gets the same answer; so a settlement
// counts once. A script that the server has forgotten is the only thing that a
// client sends again without asking.
//
// Who waits stands in one line over all processes, fair between tenants. Each turn
// has its instant; a refund moves those behind up, in every process. A call that waits is
// priced anew ([limit.Ask.Pricer]) when its process calls the store, and keeps its place.
// One that another process's call admits is charged the difference to its new price at once.
// What one process learns all know with their next call: pauses, drains, readings,
// limits in force. A process that dies gives back its places and turns after
// [Options.MemberTTL]. Where calls are charged when they end, its calls end then, as they
// were reserved.
//
// No call takes longer than [Options.Timeout], even where the client does not heed
// its context. While the store is away each process has its share, beginning from
// nothing; errors, hooks and [Limiter.State] say so. After it is back nothing is
// admitted for a learning period, and then from nothing: there is no burst.
//
// # The refusal
//
// The package will not: lease slices ahead, forgive debt after a restart, or send
// without a limit when the store is away. It cannot tell a process that is cut off
// from one that is dead: the share that such a process uses meanwhile is beyond the limit,
// and is charged when it is back. Windows are in whole microseconds.
// After a gap in the state nobody knows what a window held, so it counts as used up.
//
// # Where to begin
//
//	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
//	l, err := redislimit.New(redislimit.Options{
//		Name:   "openai",
//		Runner: goredis.New(client),
//		Limits: []limit.Limit{{Name: "tpm", Unit: limit.Tokens, Rate: limit.PerMinute(200_000)}},
//	})
//
// A [Limiter] is a [limit.Ledger]. Calls pass through it by a budget and a Transport:
//
//	b, err := budget.New(budget.Options{Ledger: l})
//	rt, err := transport.New(transport.Options{Scopes: transport.Scopes{Budget: b}})
//
// Every process hashes credentials with the key of the ledger ([Limiter.HashKey]), so that
// they name an account alike. Without a store, [Split] divides a limit by the
// number of processes in one line.
//
// # One call for all who wait
//
// A process has one call under way. Those who ask meanwhile go with the next one,
// together with what has ended. So an idle process pays one round trip for a
// decision, and a busy one some microseconds of the server.
//
// # The store
//
// The state has the number of its layout. A state in the layout before is read on, and
// is in the new one from then. Any other one is left as it is, and a [LayoutError] says so.
//
// Redis 6.2 or later, or Valkey, with or without a cluster. All keys of a budget
// begin with "tripmeter:{Name}:" and lie in one slot; they are made in the script,
// so a server that insists on declared keys cannot be used. The eviction policy
// should be noeviction: any other may take a budget, which is then found as a gap.
//
// # Bounds
//
// Numbers in Lua are exact up to 2^53. A level is kept as whole units, at most
// 2^52 up or down, and a remainder in grains. A unit has as many grains as the
// window has microseconds, below 2^45. A product of two of these is split into pieces of seven
// bits, each of which stays below 2^53. Sums over all time are kept modulo 2^52. So a
// reading is carried forward rightly while less than 2^51 units are charged or come back.
// What ends come to travels in pieces of 2^50 units, however much it is. Spans are at most
// 2^52 microseconds, 142 years; a longer one counts as that.
// Callers in the line may ask for 2^51 units together. Tags of the fair line are fractions;
// they decide the order of callers and no credit. Sums of allowances end at 2^52, and a
// larger allowance counts as that.
package redislimit

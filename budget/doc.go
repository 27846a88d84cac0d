// Package budget decides about credit: what a call is charged, what an answer
// teaches about the limits, and what each ending of a call does to the ledger.
// It knows no request and no response. Every decision takes the instant as an
// argument, so that a table of times can test it.
//
// Most programs should use package transport, which calls it. Use it alone to
// let several Transports share one budget: make it with [New] and hand it to
// each of them.
//
// # The parts
//
//	Budget   the ledger, and the limits that the user configured
//	Path     what a call takes from: all, the account, models that share, the model
//	Scope    everything that answers taught: limits, cut, drain, streak, doubt
//	Tenant   what one user may have of it
//	Call     one call: its price, its reservation, its ending
//	Ending   how an attempt ended, and what the ledger does then
//
// [Budget.Path] is the one place that finds the scopes of a call.
//
// # Promises
//
// A header can lower credit and never raise it. No header makes a rate exceed the
// configured one. Configured limits are kept apart from those in force: a second
// Transport on the same budget never takes a cut rate for the user's own. Every
// reservation gets exactly one end.
//
// # What the ledger does at each ending
//
//	ending     request                    tokens
//	Unsent     returned                   returned
//	Refused    kept, unless refused       returned, unless the rule charges
//	           calls are free             refused calls
//	Free       kept                       returned
//	Overloaded kept                       returned
//	Unknown    kept                       kept
//	Answered   kept                       settled to the usage; the estimate
//	                                      stands where the usage is unknown
package budget

// Package limittest holds the promises of a [limit.Ledger] as a suite of tests, to
// be run on anything that claims to be one: the limiter of package limit, or one
// whose ledger lives elsewhere.
//
// What it promises: a ledger that passes admits no more than its limits allow
// and all that they allow, in order. It refuses in time and without a trace. It
// gives back exactly what was not used. It keeps scopes, tenants, classes and
// pauses apart. What it refuses: to pass without having run anything, and to judge
// by the wall clock. Some implementations have a clock that the test cannot move.
// Such a one says by how much its instants may be off, and gets that much room and
// no more.
//
//	func TestPromises(t *testing.T) {
//		limittest.Run(t, open, limittest.FakeTime)
//	}
package limittest

package limit

import (
	"context"
	"time"
)

// An Ask is what one call wants: a cost, and the scopes that it takes it from.
// The zero Ask costs nothing, in the root scope and for the common tenant.
type Ask struct {
	// Cost is reserved when the call is admitted.
	Cost Cost

	// Likely is what the call will probably cost in the end. It prices those who
	// wait when a wait is forecast, and nothing else. Zero means Cost.
	Likely Cost

	// Scopes are the scopes that the call takes from besides the root, outermost
	// first, such as an account and a model. A name that comes twice counts once.
	// The slice is read during the call and not kept.
	Scopes []string

	// Tenant says for whom the call is made. Waiting calls of one tenant are in
	// order of arrival; tenants share a limit fairly, by weight. A tenant is a
	// scope as well, the innermost one: its name is in the same space as those of
	// Scopes, and limits set on that scope are the tenant's own. The empty name
	// is the common tenant, which is the root scope.
	Tenant string

	// Spend is what the call will spend of the [Allowances] on its path. It is
	// corrected by [Reservation.SettleSpent]. A ledger without [Meters].Allowances does
	// not read it.
	Spend Spend

	// Class is the priority. Zero is Interactive.
	Class Class

	// Pricer prices the call anew when it has waited and its turn comes. Nil keeps
	// Cost. A ledger without [Meters].Prices does not read it.
	Pricer Pricer

	// First puts the call before the others of its tenant and class that wait. It
	// is for a further attempt of what was admitted before; used for every call
	// it means nothing.
	First bool
}

// A Pricer knows what a call costs now. An estimate of a call that has waited may be
// old: answers of others have taught more since.
type Pricer interface {
	// Price is the cost of the call and, as in [Ask.Likely], what it will probably
	// cost in the end. A price in other units than [Ask.Cost], or above what a limit
	// admits at all, is not used.
	//
	// The limiter holds its lock: Price must return at once and must not call the
	// limiter.
	Price() (cost, likely Cost)
}

// A Class is a priority. Of two calls that wait for the same limit, the one of the
// higher class goes first; but [Options.Floor] keeps a share for the lower class.
type Class uint8

const (
	// Interactive calls go first. It is the zero Class.
	Interactive Class = iota

	// Batch calls take what Interactive calls leave, and at least the floor.
	Batch

	classes = 2
)

// String is "interactive" or "batch".
func (c Class) String() string {
	switch c {
	case Interactive:
		return "interactive"
	case Batch:
		return "batch"
	}
	return "unknown class"
}

// A Ledger admits calls under the limits of several scopes at once.
// [*Limiter] is one, whose scopes are in this process. Package limittest tests
// any other one for the same promises.
//
// The root scope has the empty name, and every call takes from it. Any other
// scope is made when its name is first used.
type Ledger interface {
	// Admit waits until a is admitted in every scope of its path: the root, its
	// Scopes and its Tenant. All of them grant in one decision, or none is
	// touched. The errors are those of [Limiter.Admit].
	Admit(ctx context.Context, a Ask) (Reservation, error)

	// TryAdmit is Admit without waiting: what would have to wait is refused with
	// ErrLimited.
	TryAdmit(a Ask) (Reservation, error)

	// Forecast is what a would have to wait if it came now, and for what. It
	// changes nothing.
	Forecast(a Ask) Forecast

	// SetScope sets the options of a scope, all of them. The zero ScopeOptions
	// are the defaults.
	SetScope(scope string, o ScopeOptions) error

	// SetScopeLimit configures one limit of a scope: it adds the limit, or
	// changes the limit of that name, or removes it if its Rate is zero. The limit
	// is in force at once.
	SetScopeLimit(scope string, l Limit) error

	// EnforceScopeLimit puts l in force in place of the limit of its name. The
	// configured limit stays in LimitState.Configured. With a zero Rate it is in
	// force again, and a limit that was never configured is removed.
	EnforceScopeLimit(scope string, l Limit) error

	// PauseScope holds every call that takes from the scope. Of two pauses the
	// later end wins.
	PauseScope(scope string, p Pause)

	// ResumeScope ends the pause of a scope now.
	ResumeScope(scope string)

	// DrainScope lowers the credit of a limit so that it holds keep units after
	// d. It reports whether credit fell. See [Limiter.Drain].
	DrainScope(scope, name string, keep int64, d time.Duration) bool

	// Snapshot is the state now: the root scope, with the others in it.
	Snapshot() Snapshot
}

// ScopeOptions are what a scope has besides its limits. The zero value has the
// defaults in every field. A negative value is a [*ConfigError].
type ScopeOptions struct {
	// Weight is the scope's share as a tenant: of two tenants that wait for the
	// same limit, one with twice the weight gets twice as much. From 1 to
	// [MaxWeight]; zero means 1. It has no meaning for scopes that are no tenant.
	Weight int

	// MaxInFlight is how many reservations of the scope may be open at once.
	// Zero means any number.
	MaxInFlight int

	// MaxQueue is how many callers of the scope may wait; one more is refused
	// with [ErrQueueFull]. Zero means any number, within that of the root.
	MaxQueue int

	// Allowances are what the calls of the scope may spend in a day and a month. Nil
	// is any amount. The value behind it must not be changed: set another one. A ledger
	// without [Meters].Allowances may refuse it. The sums of the day and the month stay
	// when they change, or are taken away for a while.
	Allowances *Allowances
}

// MaxWeight is the largest weight of a tenant.
const MaxWeight = 1_000_000

// A Pause holds every call that takes from a scope. The zero Pause holds
// nobody.
type Pause struct {
	// For is how long nobody goes, from now on. With a ProbeAfter, zero means
	// until a probe succeeds or the scope is resumed.
	For time.Duration

	// ProbeAfter is the ceiling of a long pause: from then on one call at a time
	// goes as a probe, while the others are still held. A probe that is settled
	// has succeeded, and ends the pause. A probe that is kept has failed, and the
	// next one goes after another ProbeAfter. One that is returned was never
	// sent, and the next goes at once. A new pause of the scope renews the wait,
	// and ResumeScope ends it. Zero means no probes.
	ProbeAfter time.Duration

	// KeepCredit leaves the limits their credit. Without it those of a minute or
	// less start again from nothing after the pause.
	KeepCredit bool

	// By and Why say who asked for the pause and for what reason. They are shown
	// in errors and snapshots, and must hold no secret.
	By, Why string

	// Scope is the name of the scope that is held, for code that is notified of a
	// pause. A ledger does not read it.
	Scope string
}

// A Forecast is what a call would have to wait if it came now.
type Forecast struct {
	// Wait is the expected wait; zero if the call would go at once. Those who go
	// before it are priced at their Ask.Likely. For the first of a line, under no
	// other use, it is exact.
	Wait time.Duration

	// Known is false if the call waits for something that has no known instant,
	// such as a place in flight. Wait is then the least it would be.
	Known bool

	// Scope and Dimension are what it waits for, as in [Error]. They are empty if
	// the call would go at once.
	Scope, Dimension string

	// By and Why are those of the pause, if that is what it waits for.
	By, Why string

	// Err is not nil if the call would be refused after any wait: an [*Error]
	// with [ErrTooLarge], [ErrInvalid] or [ErrQueueFull].
	Err error
}

// A Holder ends the reservations of a ledger other than [*Limiter]. It gives
// them out with [Hold]; the handle tells them apart. Every method may be called
// by any goroutine, at any time and more than once for a handle: ends after the
// first do nothing.
type Holder interface {
	Settle(handle uint64, actual Cost)
	Keep(handle uint64)
	Return(handle uint64)

	// Cost is what is reserved, zero after the end.
	Cost(handle uint64) Cost

	// Sent notes that an attempt leaves now; see [Reservation.Sent].
	Sent(handle uint64)

	// Lower lowers the limit of that name in a scope, the root if scope is
	// empty; see [Reservation.LowerIn].
	Lower(handle uint64, scope, name string, remaining int64, own Cost) bool
}

// A SpendHolder is a [Holder] of a ledger that keeps [Allowances].
type SpendHolder interface {
	Holder

	// SettleSpent is Settle with what was spent; see [Reservation.SettleSpent].
	SettleSpent(handle uint64, actual Cost, spent Spend)
}

// An Opener is a [Ledger] that asks how a scope begins which nobody has set. OpenWith
// gives it the function to ask, unless it has one already, and reports whether it took
// it. The function must be quick, and not use the ledger: a lock may be held.
type Opener interface {
	OpenWith(open func(scope string) (ScopeOptions, []Limit)) bool
}

// A Keyed ledger is shared by several processes that must name an account alike, though
// its name is made of a credential. HashKey is the key of the hash that stands for the
// credential: the same in each of them. The caller keeps it. Package budget asks for it
// where its own Secret is unset.
type Keyed interface {
	HashKey() []byte
}

// Hold is the reservation that by knows under handle. It allocates nothing.
func Hold(by Holder, handle uint64) Reservation { return Reservation{by: by, seq: handle} }

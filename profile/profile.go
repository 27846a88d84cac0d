package profile

import (
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
)

// A Profile is how one provider limits, charges, refuses and reports: data,
// each value with its source. The zero Profile is not usable; start from
// [Unknown] or another one and change what differs.
type Profile struct {
	// Name is what [ByName] finds it by, in lower case, such as "openai".
	Name string

	// Hosts are the hosts it is chosen for: a name, or ".example.com" for every
	// host under it.
	Hosts []string

	// Rule is what a call is charged.
	Rule estimate.Rule

	// InputOnly: a limit on "tokens per minute" counts the prompt alone.
	InputOnly bool

	// RequestBurst and TokenBurst are how much of the rate, as a time, may go
	// in one instant after idling, for limits of a minute or less. 0 is 1 s for
	// requests and 10 s for tokens. Sub-second judges ask for less.
	RequestBurst, TokenBurst time.Duration

	// Headroom is the share of each limit, in per cent, that is used. 0 is 100.
	Headroom int64

	// StartEmpty: nothing is taken as left when the program starts. For windows
	// that may have been half used by the one before.
	StartEmpty bool

	// Dialect tells package headers whose fields it reads; "" is generic.
	Dialect string

	// Linear: a reset field is the time until a continuous bucket is full, so
	// that it tells which window the limit has.
	Linear bool

	// RemainingAfter: a remaining field is the balance at the end of the call,
	// not at its admission.
	RemainingAfter bool

	// RefusedFree: a refused call is not counted as a request.
	RefusedFree bool

	// Source names where the values come from, AsOf when ("2026-10").
	Source, AsOf string
}

// Unknown is the profile of a provider that nothing is known of: the prompt
// and the output cap are reserved, and corrected by the usage that comes back.
func Unknown() Profile {
	return Profile{
		Name: "unknown",
		Rule: estimate.Rule{Charge: estimate.ChargeSettle, ReserveCap: true},
	}
}

// ForHost returns the profile for a host, with or without a port: [Unknown] if
// there is none. The longest match counts.
func ForHost(host string) Profile {
	host = strings.ToLower(host)
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	best, found := "", Unknown()
	for _, p := range profiles {
		for _, h := range p.Hosts {
			if len(h) > len(best) && (h == host || h[0] == '.' && strings.HasSuffix(host, h)) {
				best, found = h, p
			}
		}
	}
	return found
}

// ByName returns the profile of that name, in any case.
func ByName(name string) (Profile, bool) {
	name = strings.ToLower(name)
	if name == "unknown" {
		return Unknown(), true
	}
	for _, p := range profiles {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}

// Names lists every profile's name, in order.
func Names() []string {
	names := make([]string, 0, len(profiles)+1)
	for _, p := range profiles {
		names = append(names, p.Name)
	}
	return append(names, "unknown")
}

// Package debug is a live page of what Transports do, and of why a call waits.
//
//	m := meter.New(meter.Options{})
//	rt, err := transport.New(transport.Options{Trace: m.Trace("openai")})
//	m.Watch("openai", rt)
//	mux.Handle("/debug/tripmeter/", debug.Handler(m, debug.Options{}))
//
// The page shows each budget with its limits (credit, debt, refill, pause). It shows
// the line with the reason of each wait, the last five minutes, the tenants, and how
// good the estimates are. It updates itself once a second. Beside it, state.json has
// the same as JSON, and events is the stream that the page reads.
//
// # The promise
//
// The page only reads. It shows no key, no prompt and no URL, since a Meter holds
// none. It loads nothing from elsewhere, and a content security policy keeps it
// from doing so. It works without JavaScript, by keyboard, on a phone, in light
// and in dark. However many look at it, its state is read once a second at most.
//
// # The refusal
//
// Who may look is decided before anything is read: by default only a client on
// the same machine, who names the machine itself as the host. Behind a reverse
// proxy every client is on the same machine: set [Options.Authorize] there.
package debug

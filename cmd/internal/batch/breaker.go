package batch

import "time"

// trip is how many ends in a row of one kind, without a success, hold a lane.
const trip = 20

// lane is the requests of one model. There is one more lane for what concerns
// all of them: connections, the key, the account.
type lane struct {
	model string

	row     int  // ends in a row of kind, without a success
	kind    kind // of the row
	detail  string
	held    bool
	since   time.Time // held, or of the first end of the row
	next    time.Time // when a probe may go
	probing bool

	stopped   bool // nothing more of it is sent in this run
	underWay  int
	successes int64     // answers, whatever they say of the request
	born      time.Time // when its first request was read
	queue     []*item   // to be sent again, or parked while the lane is held
}

// passed notes an end that shows the lane in order.
func (l *lane) passed() {
	l.row, l.held, l.probing = 0, false, false
}

// failed notes an end that does not, and reports whether the row is long enough
// to hold.
func (l *lane) failed(now time.Time, k kind, detail string) bool {
	if l.kind != k {
		l.row = 0
	}
	if l.row == 0 && !l.held {
		l.since = now
	}
	l.row++
	l.kind, l.detail = k, detail
	return l.row >= trip || l.held
}

// hold stops the lane until a probe shows it in order.
func (l *lane) hold(now time.Time, every time.Duration) {
	if l.held {
		return // since an end that was under way at the time
	}
	if l.kind == tooFast {
		every = 0 // the limiter holds the probe for as long as the server said
	}
	l.held, l.next = true, now.Add(every)
}

// probed notes the end of a probe. What it showed comes after.
func (l *lane) probed(now time.Time, every time.Duration) {
	if l.probing {
		l.probing, l.next = false, now.Add(every)
	}
}

// room is how many more may be begun, so that a row never grows beyond trip by
// what was already under way.
func (l *lane) room(now time.Time) int {
	switch {
	case l.held && (l.probing || now.Before(l.next)):
		return 0
	case l.held:
		return 1
	case l.row > 0 || l.successes == 0:
		return max(0, trip-l.row-l.underWay)
	}
	return 1 << 30
}

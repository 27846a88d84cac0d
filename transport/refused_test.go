package transport_test

import (
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/retry"
)

// tooLate holds everybody until MaxElapsed is over, so that the second attempt
// is admitted and must not leave.
func tooLate(t *testing.T, d *desk) {
	d.o.Retry.MaxElapsed = 5 * time.Second
	d.o.Retry.Deciding = func(retry.Event) { d.limiter.Pause(10 * time.Second) }
	read(t, d)
}

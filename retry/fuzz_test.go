package retry

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/refusal"
	"github.com/tripmeter/tripmeter/internal/retryafter"
)

// FuzzTheServersWord makes refusals of every kind. The next attempt is not before
// the longest wait in it, nor beyond the deadline, nor made if it cannot succeed.
// The caller gets the answer byte for byte.
func FuzzTheServersWord(f *testing.F) {
	f.Add(429, "7", "", "", "", "", int64(0), uint8(3))
	f.Add(429, "0.5", "1500", "", tooFast, "", int64(0), uint8(2))
	f.Add(503, "Sat, 01 Jan 2000 00:00:09 GMT", "", "", "", "true", int64(8000), uint8(5))
	f.Add(500, "", "0", "00:00:03.5", `{"error":{"message":"Please retry after 33 seconds."}}`, "", int64(40000), uint8(1))
	f.Add(429, "", "", "", noCredit, "true", int64(1), uint8(9))
	f.Add(400, "61", "99999999999999999999", "-1", "", "TRUE", int64(61000), uint8(0))
	f.Add(501, "1", "", "", "", "false", int64(0), uint8(4))
	f.Fuzz(func(t *testing.T, status int, after, ms, span, body, should string, deadlineMs int64, attempts uint8) {
		if status < 200 || status > 999 || len(body) > 1<<16 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			h := http.Header{}
			for name, v := range map[string]string{"Retry-After": after, "Retry-After-Ms": ms, "X-Ms-Retry-After-Ms": span, "X-Should-Retry": should} {
				if v != "" {
					h.Set(name, v)
				}
			}
			var arrived []time.Time
			s := play(func(r *http.Request) (*http.Response, error) {
				arrived = append(arrived, time.Now())
				var fields []string
				for name := range h {
					fields = append(fields, name, h.Get(name))
				}
				return answer(status, body, fields...)(r)
			})
			ctx, cancel := t.Context(), func() {}
			var deadline time.Time
			if deadlineMs > 0 && deadlineMs < 1<<40 {
				deadline = time.Now().Add(time.Duration(deadlineMs) * time.Millisecond)
				ctx, cancel = context.WithDeadline(ctx, deadline)
			}
			defer cancel()
			o := Options{Attempts: int(attempts)}
			r := send(t, mustNew(t, s, o), post(ctx, t, chat))
			if r.err != nil || r.status != status || r.body != body {
				t.Errorf("the caller got %d, %d bytes, %v", r.status, len(r.body), r.err)
			}
			v := refusal.Classify(status, []byte(body))
			if n := max(int(attempts), 1); attempts > 0 && len(arrived) > n {
				t.Errorf("%d attempts of %d", len(arrived), n)
			}
			if len(arrived) > 1 && (v.Known && !v.Retryable || status < 400 || status > 599) {
				t.Errorf("sent again after %d %+v", status, v)
			}
			for i := 1; i < len(arrived); i++ {
				w := retryafter.Parse(h, arrived[i-1])
				if waited, order := arrived[i].Sub(arrived[i-1]), max(w.Longest, v.Wait); waited < order || order > DefaultMaxRetryAfter {
					t.Errorf("attempt %d came after %v, the order was %v", i+1, waited, order)
				}
				if !deadline.IsZero() && !arrived[i].Before(deadline) {
					t.Errorf("attempt %d came after the deadline", i+1)
				}
			}
			s.allClosed(t)
		})
	})
}

// FuzzHeldBody sends a refused body in pieces of any size and at any pace. The
// caller reads all of it.
func FuzzHeldBody(f *testing.F) {
	f.Add([]byte("hello"), uint16(1), uint16(0), uint8(3))
	f.Add([]byte("0123456789"), uint16(3), uint16(90), uint8(1))
	f.Add([]byte{}, uint16(1), uint16(500), uint8(1))
	f.Add(make([]byte, 3<<15), uint16(7000), uint16(30), uint8(200))
	f.Fuzz(func(t *testing.T, body []byte, piece, paceMs uint16, read uint8) {
		if len(body)/(int(piece)+1) > 1000 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			b := &paced{data: body, piece: int(piece) + 1, pace: time.Duration(paceMs) * time.Millisecond}
			h := hold(&http.Response{Body: b, ContentLength: -1}, heldAtLeast, t.Context().Done())
			var got []byte
			p := make([]byte, int(read)+1)
			for {
				n, err := h.Read(p)
				got = append(got, p[:n]...)
				if err != nil {
					break
				}
			}
			if string(got) != string(body) {
				t.Errorf("read %d bytes of %d", len(got), len(body))
			}
			h.Close()
			if b.closes == 0 {
				t.Error("open")
			}
		})
	})
}

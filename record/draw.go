package record

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/internal/svg"
)

// A Run is a recording with its name, such as "tripmeter".
type Run struct {
	Name   string
	Events []Event
}

// Options configure [Draw]. The zero value is fine.
type Options struct {
	Title string // over the picture

	// Tokens is what the provider's limit allows a minute, and Held how much of
	// it was there at the start, in tokens. Drawn if Tokens is above 0.
	Tokens, Held int64

	// Small leaves out the waits, and makes a picture for a README.
	Small bool
}

// Sums are what a recording came to.
type Sums struct {
	Calls     int           // that the program made
	Served    int           // that came back with 2xx
	Attempts  int           // on the wire
	Refused   int           // of those, 429
	Tokens    int64         // reported
	Longest   time.Duration // of a call that was served, to its header
	Last      time.Duration // when the last answer came
	Unstarted int           // that the limiter refused
}

// SumsOf adds up a recording.
func SumsOf(events []Event) Sums {
	var s Sums
	for _, e := range events {
		switch e.Kind {
		case Start:
			s.Calls++
		case Return:
			if e.Status/100 == 2 {
				s.Served++
				s.Longest = max(s.Longest, e.Took)
			}
		case Answer:
			s.Attempts++
			if e.Status == 429 {
				s.Refused++
			}
			s.Last = max(s.Last, e.At)
		case Usage:
			s.Tokens += e.Input + e.Output
		case Refuse:
			s.Unstarted++
		}
	}
	return s
}

const (
	plotW, plotH = 330.0, 120.0
	left, top    = 56.0, 78.0
	columnW      = 410.0
	rowH         = 178.0
)

// Draw draws runs beside each other, on the same scales: attempts and refusals
// over time, tokens served, and how long calls took.
func Draw(w io.Writer, o Options, runs ...Run) error {
	if len(runs) == 0 {
		return fmt.Errorf("record: no run to draw")
	}
	if o.Title == "" {
		o.Title = "Calls over time"
	}
	rows := 3
	if o.Small {
		rows = 2
	}
	var desc strings.Builder
	var end, rate, tokens, longest float64
	buckets := make([][2][]float64, len(runs))
	for _, r := range runs {
		s := SumsOf(r.Events)
		fmt.Fprintf(&desc, "%s: %d of %d calls served, %d attempts, %d of them refused with 429, the last answer after %.1f seconds. ", r.Name, s.Served, s.Calls, s.Attempts, s.Refused, s.Last.Seconds())
		end, tokens, longest = max(end, s.Last.Seconds()), max(tokens, float64(s.Tokens)), max(longest, s.Longest.Seconds())
	}
	end = max(end, 1)
	step := svg.Nice(end*1000/60) / 1000 // seconds a bar
	for i, r := range runs {
		buckets[i] = bars(r.Events, step)
		for k := range buckets[i][0] {
			rate = max(rate, buckets[i][0][k]+buckets[i][1][k])
		}
	}
	rate, tokens, longest = svg.Nice(rate), svg.Nice(tokens), svg.Nice(longest)

	c := svg.New(int(columnW)*len(runs)+10, int(rowH)*rows+62, o.Title, strings.TrimSpace(desc.String()))
	c.Text(left, 22, "start", `font-size="15" font-weight="bold"`, o.Title)
	for i, r := range runs {
		s := SumsOf(r.Events)
		x := svg.Scale{Lo: 0, Hi: end, From: left + columnW*float64(i), To: left + columnW*float64(i) + plotW}
		c.Text(x.From, 46, "start", `font-weight="bold"`, fmt.Sprintf("%s: %d of %d served, %d refused (429)", r.Name, s.Served, s.Calls, s.Refused))
		panel := func(row int, title string, hi float64) svg.Scale {
			y := svg.Scale{Lo: 0, Hi: hi, From: top + rowH*float64(row) + plotH, To: top + rowH*float64(row)}
			c.Text(x.From, y.To-6, "start", `class="soft"`, title)
			for _, v := range []float64{0, hi / 2, hi} {
				c.Line(x.From, y.At(v), x.To, y.At(v), "grid")
				c.Text(x.From-6, y.At(v)+4, "end", `class="soft" font-size="10"`, short(v))
			}
			for _, v := range ticks(end) {
				c.Text(x.At(v), y.From+14, "middle", `class="soft" font-size="10"`, short(v)+" s")
			}
			c.Line(x.From, y.From, x.To, y.From, "axis")
			return y
		}

		y := panel(0, fmt.Sprintf("attempts in %s s", short(step)), rate)
		for k := range buckets[i][0] {
			good, bad := buckets[i][0][k], buckets[i][1][k]
			x0, x1 := x.At(float64(k)*step), x.At(float64(k+1)*step)
			if good > 0 {
				c.Rect(x0, y.At(good), max(1, x1-x0-.8), y.At(0)-y.At(good), "f5")
			}
			if bad > 0 {
				c.Rect(x0, y.At(good+bad), max(1, x1-x0-.8), y.At(good)-y.At(good+bad), "f7")
			}
		}

		y = panel(1, "tokens served", tokens)
		if o.Tokens > 0 {
			allowed := func(t float64) float64 { return float64(o.Held) + float64(o.Tokens)/60*t }
			c.Curve("axis", `stroke-dasharray="4 4"`, [][2]float64{{x.At(0), y.At(allowed(0))}, {x.At(until(allowed, tokens, end)), y.At(allowed(until(allowed, tokens, end)))}})
		}
		c.Curve("s5", "", served(r.Events, x, y))

		if !o.Small {
			y = panel(2, "how long calls took to their answer, seconds", longest)
			for _, e := range r.Events {
				if e.Kind == Return && e.Status/100 == 2 {
					c.Dot(x.At(e.At.Seconds()), y.At(e.Took.Seconds()), 1.6, "f5")
				}
			}
		}
	}
	h := rowH*float64(rows) + 52
	c.Rect(left, h-9, 10, 10, "f5")
	c.Text(left+15, h, "start", `class="soft"`, "answered")
	c.Rect(left+90, h-9, 10, 10, "f7")
	c.Text(left+105, h, "start", `class="soft"`, "refused (429)")
	if o.Tokens > 0 {
		c.Curve("axis", `stroke-dasharray="4 4"`, [][2]float64{{left + 215, h - 4}, {left + 240, h - 4}})
		c.Text(left+246, h, "start", `class="soft"`, "what the limit allows")
	}
	_, err := c.WriteTo(w)
	return err
}

// until is when the allowance reaches the top, or the end.
func until(allowed func(float64) float64, top, end float64) float64 {
	lo, hi := 0.0, end
	if allowed(end) <= top {
		return end
	}
	for range 50 {
		if mid := (lo + hi) / 2; allowed(mid) > top {
			hi = mid
		} else {
			lo = mid
		}
	}
	return lo
}

// mostBars is how many bars there may be: a picture has at most 60 steps, and what
// lies at its very end.
const mostBars = 62

// bars counts answers by the time at which their attempt left, refused ones
// apart.
func bars(events []Event, step float64) (out [2][]float64) {
	out[0], out[1] = make([]float64, mostBars), make([]float64, mostBars)
	for _, e := range events {
		if e.Kind != Answer {
			continue
		}
		k := min(mostBars-1, max(0, int((e.At-e.Took).Seconds()/step)))
		if e.Status == 429 {
			out[1][k]++
		} else {
			out[0][k]++
		}
	}
	return out
}

// served is the curve of tokens, as their bodies ended.
func served(events []Event, x, y svg.Scale) [][2]float64 {
	points := [][2]float64{{x.At(0), y.At(0)}}
	sum := int64(0)
	for _, e := range events {
		if e.Kind == Usage {
			points = append(points, [2]float64{x.At(e.At.Seconds()), y.At(float64(sum))})
			sum += e.Input + e.Output
			points = append(points, [2]float64{x.At(e.At.Seconds()), y.At(float64(sum))})
		}
	}
	return thin(points)
}

// thin leaves out points that fall on the pixel of the last one.
func thin(points [][2]float64) [][2]float64 {
	out := points[:1]
	for i, p := range points[1:] {
		if p[0]-out[len(out)-1][0] >= 1 || i == len(points)-2 {
			out = append(out, p)
		}
	}
	return out
}

func ticks(end float64) []float64 {
	step := svg.Nice(end*10/6) / 10
	var out []float64
	for v := 0.0; v <= end; v += step {
		out = append(out, v)
	}
	return out
}

// short writes a number for an axis.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v/1e6), ".0") + "M"
	case v >= 1e4:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v/1e3), ".0") + "k"
	case v == float64(int64(v)):
		return fmt.Sprint(int64(v))
	}
	return fmt.Sprintf("%.2g", v)
}

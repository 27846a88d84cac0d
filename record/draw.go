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
	p := picture{Options: o, sums: make([]Sums, len(runs)), buckets: make([][2][]float64, len(runs))}
	p.measure(runs)
	p.Canvas = svg.New(int(columnW)*len(runs)+10, int(rowH)*rows+62, o.Title, p.description(runs))
	p.Text(left, 22, "start", `font-size="15" font-weight="bold"`, o.Title)
	for i, r := range runs {
		p.draw(i, r)
	}
	p.legend(rowH*float64(rows) + 52)
	_, err := p.WriteTo(w)
	return err
}

// picture is runs on the same scales.
type picture struct {
	Options
	*svg.Canvas
	sums    []Sums
	buckets [][2][]float64 // for each run the bars, refused ones apart
	step    float64        // seconds a bar

	// The ends of the scales: seconds, attempts a bar, tokens, seconds of a call.
	end, rate, tokens, longest float64
}

// measure finds the scales that all runs fit in.
func (p *picture) measure(runs []Run) {
	for i, r := range runs {
		s := SumsOf(r.Events)
		p.sums[i] = s
		p.end, p.tokens, p.longest = max(p.end, s.Last.Seconds()), max(p.tokens, float64(s.Tokens)), max(p.longest, s.Longest.Seconds())
	}
	p.end = max(p.end, 1)
	p.step = svg.Nice(p.end*1000/60) / 1000
	for i, r := range runs {
		p.buckets[i] = bars(r.Events, p.step)
		for k := range p.buckets[i][0] {
			p.rate = max(p.rate, p.buckets[i][0][k]+p.buckets[i][1][k])
		}
	}
	p.rate, p.tokens, p.longest = svg.Nice(p.rate), svg.Nice(p.tokens), svg.Nice(p.longest)
}

// description is the picture in words.
func (p *picture) description(runs []Run) string {
	var out []string
	for i, s := range p.sums {
		out = append(out, fmt.Sprintf("%s: %d of %d calls served, %d attempts, %d of them refused with 429, the last answer after %.1f seconds.",
			runs[i].Name, s.Served, s.Calls, s.Attempts, s.Refused, s.Last.Seconds()))
	}
	return strings.Join(out, " ")
}

// draw draws the column of run i.
func (p *picture) draw(i int, r Run) {
	s := p.sums[i]
	x := svg.Scale{Lo: 0, Hi: p.end, From: left + columnW*float64(i), To: left + columnW*float64(i) + plotW}
	p.Text(x.From, 46, "start", `font-weight="bold"`, fmt.Sprintf("%s: %d of %d served, %d refused (429)", r.Name, s.Served, s.Calls, s.Refused))

	p.drawBars(x, p.panel(x, 0, fmt.Sprintf("attempts in %s s", short(p.step)), p.rate), p.buckets[i])

	y := p.panel(x, 1, "tokens served", p.tokens)
	if p.Tokens > 0 {
		allowed := func(t float64) float64 { return float64(p.Held) + float64(p.Tokens)/60*t }
		stop := until(allowed, p.tokens, p.end)
		p.Curve("axis", dashed, [][2]float64{{x.At(0), y.At(allowed(0))}, {x.At(stop), y.At(allowed(stop))}})
	}
	p.Curve("s5", "", served(r.Events, x, y))

	if !p.Small {
		y = p.panel(x, 2, "how long calls took to their answer, seconds", p.longest)
		for _, e := range r.Events {
			if e.Kind == Return && e.Status/100 == 2 {
				p.Dot(x.At(e.At.Seconds()), y.At(e.Took.Seconds()), 1.6, "f5")
			}
		}
	}
}

const dashed = `stroke-dasharray="4 4"`

// panel draws the frame of a plot, and returns its scale from 0 to hi.
func (p *picture) panel(x svg.Scale, row int, title string, hi float64) svg.Scale {
	y := svg.Scale{Lo: 0, Hi: hi, From: top + rowH*float64(row) + plotH, To: top + rowH*float64(row)}
	p.Text(x.From, y.To-6, "start", `class="soft"`, title)
	for _, v := range []float64{0, hi / 2, hi} {
		p.Line(x.From, y.At(v), x.To, y.At(v), "grid")
		p.Text(x.From-6, y.At(v)+4, "end", `class="soft" font-size="10"`, short(v))
	}
	for _, v := range ticks(p.end) {
		p.Text(x.At(v), y.From+14, "middle", `class="soft" font-size="10"`, short(v)+" s")
	}
	p.Line(x.From, y.From, x.To, y.From, "axis")
	return y
}

func (p *picture) drawBars(x, y svg.Scale, bars [2][]float64) {
	for k, good := range bars[0] {
		bad := bars[1][k]
		x0, x1 := x.At(float64(k)*p.step), x.At(float64(k+1)*p.step)
		if good > 0 {
			p.Rect(x0, y.At(good), max(1, x1-x0-.8), y.At(0)-y.At(good), "f5")
		}
		if bad > 0 {
			p.Rect(x0, y.At(good+bad), max(1, x1-x0-.8), y.At(good)-y.At(good+bad), "f7")
		}
	}
}

// legend says at height h what the colours mean.
func (p *picture) legend(h float64) {
	p.Rect(left, h-9, 10, 10, "f5")
	p.Text(left+15, h, "start", `class="soft"`, "answered")
	p.Rect(left+90, h-9, 10, 10, "f7")
	p.Text(left+105, h, "start", `class="soft"`, "refused (429)")
	if p.Tokens > 0 {
		p.Curve("axis", dashed, [][2]float64{{left + 215, h - 4}, {left + 240, h - 4}})
		p.Text(left+246, h, "start", `class="soft"`, "what the limit allows")
	}
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

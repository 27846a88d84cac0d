// Package svg writes plots that fit a light page and a dark one, and that say in
// words what they show.
package svg

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// A Canvas collects a picture. Lengths are in pixels.
type Canvas struct{ b strings.Builder }

// style has a colour for each class in both schemes. The colours of series follow
// Okabe and Ito, so that people who do not see red and green can tell them apart.
// Series have a contrast of 3 to 1 with their background, text one of 4.5 to 1.
const style = `
text{fill:#222}.soft{fill:#555}.bg{fill:#fff}.grid{stroke:#e2e2e2}.axis{stroke:#222}
.f0{fill:#b97a00}.f1{fill:#2f8fcb}.f2{fill:#00805d}.f3{fill:#927600}.f4{fill:#b4558a}.f5{fill:#005a9c}.f6{fill:#000}.f7{fill:#b3261e}
.s0{stroke:#b97a00}.s1{stroke:#2f8fcb}.s2{stroke:#00805d}.s3{stroke:#927600}.s4{stroke:#b4558a}.s5{stroke:#005a9c}.s6{stroke:#000}.s7{stroke:#b3261e}
@media (prefers-color-scheme:dark){
text{fill:#e8eaed}.soft{fill:#b0b7c0}.bg{fill:#14171b}.grid{stroke:#343a42}.axis{stroke:#e8eaed}
.f0{fill:#e69f00}.f1{fill:#56b4e9}.f2{fill:#2fc49b}.f3{fill:#f0e442}.f4{fill:#e08fc0}.f5{fill:#6fa8ff}.f6{fill:#fff}.f7{fill:#ff8f86}
.s0{stroke:#e69f00}.s1{stroke:#56b4e9}.s2{stroke:#2fc49b}.s3{stroke:#f0e442}.s4{stroke:#e08fc0}.s5{stroke:#6fa8ff}.s6{stroke:#fff}.s7{stroke:#ff8f86}
}
`

// New starts a picture. The title names it and desc describes it, for people who
// cannot see it.
func New(w, h int, title, desc string) *Canvas {
	c := &Canvas{}
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title desc" font-family="Helvetica, Arial, sans-serif" font-size="12">`+"\n", w, h, w, h)
	fmt.Fprintf(&c.b, "<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n<style>%s</style>\n", html.EscapeString(title), html.EscapeString(desc), style)
	fmt.Fprintf(&c.b, `<rect class="bg" width="%d" height="%d"/>`+"\n", w, h)
	return c
}

// Text writes s; anchor is start, middle or end, extra further attributes.
func (c *Canvas) Text(x, y float64, anchor, extra, s string) {
	if extra != "" {
		extra = " " + extra
	}
	fmt.Fprintf(&c.b, `<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>`+"\n", x, y, anchor, extra, html.EscapeString(s))
}

// Line draws a straight line.
func (c *Canvas) Line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&c.b, `<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", class, x1, y1, x2, y2)
}

// Rect fills a rectangle.
func (c *Canvas) Rect(x, y, w, h float64, class string) {
	fmt.Fprintf(&c.b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n", class, x, y, w, h)
}

// Dot draws a filled circle.
func (c *Canvas) Dot(x, y, r float64, class string) {
	fmt.Fprintf(&c.b, `<circle class="%s" cx="%.1f" cy="%.1f" r="%.1f"/>`+"\n", class, x, y, r)
}

// Curve draws a line through points; extra is further attributes, but for fill and
// stroke-width.
func (c *Canvas) Curve(class, extra string, points [][2]float64) {
	if extra != "" {
		extra = " " + extra
	}
	fmt.Fprintf(&c.b, `<polyline class="%s" fill="none" stroke-width="1.8"%s points="`, class, extra)
	for i, p := range points {
		if i > 0 {
			c.b.WriteByte(' ')
		}
		fmt.Fprintf(&c.b, "%.1f,%.1f", p[0], p[1])
	}
	c.b.WriteString("\"/>\n")
}

// signs are the second way to tell series apart, for those who see no colour.
var signs = []string{"square", "diamond", "up", "down", "plus", "ring", "disc"}

// Mark draws the sign of series i, in its colour.
func (c *Canvas) Mark(i int, x, y float64) {
	const r = 5.0
	n := i % len(signs)
	poly := func(points string) { fmt.Fprintf(&c.b, `<polygon class="f%d" points="%s"/>`+"\n", n, points) }
	switch signs[n] {
	case "square":
		c.Rect(x-r+1, y-r+1, 2*r-2, 2*r-2, fmt.Sprintf("f%d", n))
	case "diamond":
		poly(fmt.Sprintf("%.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f", x, y-r, x+r, y, x, y+r, x-r, y))
	case "up":
		poly(fmt.Sprintf("%.1f,%.1f %.1f,%.1f %.1f,%.1f", x, y-r, x+r, y+r, x-r, y+r))
	case "down":
		poly(fmt.Sprintf("%.1f,%.1f %.1f,%.1f %.1f,%.1f", x, y+r, x+r, y-r, x-r, y-r))
	case "plus":
		fmt.Fprintf(&c.b, `<path class="s%d" d="M%.1f %.1fh%.1fM%.1f %.1fv%.1f" stroke-width="3"/>`+"\n", n, x-r, y, 2*r, x, y-r, 2*r)
	case "ring":
		fmt.Fprintf(&c.b, `<circle class="s%d" cx="%.1f" cy="%.1f" r="%.1f" fill="none" stroke-width="2.5"/>`+"\n", n, x, y, r)
	default:
		c.Dot(x, y, r, fmt.Sprintf("f%d", n))
	}
}

// Raw adds SVG as it is.
func (c *Canvas) Raw(s string) { c.b.WriteString(s) }

// WriteTo ends the picture and writes it.
func (c *Canvas) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, c.b.String()+"</svg>\n")
	return int64(n), err
}

// A Scale maps values to a stretch of the picture.
type Scale struct {
	Lo, Hi   float64 // values; what is outside is drawn at the end
	From, To float64 // pixels
	Log      bool
}

// At is where v stands.
func (s Scale) At(v float64) float64 {
	v = max(s.Lo, min(v, s.Hi))
	lo, hi := s.Lo, s.Hi
	if s.Log {
		v, lo, hi = math.Log(v), math.Log(lo), math.Log(hi)
	}
	if hi == lo {
		return s.From
	}
	return s.From + (v-lo)/(hi-lo)*(s.To-s.From)
}

// Nice is the least of 1, 2, 5, 10, 20, ... that is not below v, and at least 1.
func Nice(v float64) float64 {
	for p := 1.0; ; p *= 10 {
		for _, f := range []float64{1, 2, 5} {
			if p*f >= v {
				return p * f
			}
		}
	}
}

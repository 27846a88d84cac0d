package bench

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"time"
)

// Colours of the policies, in the order of Policies: told apart also by those
// who do not see red and green, after Okabe and Ito. tripmeter is the darkest.
var colours = []string{"#e69f00", "#56b4e9", "#009e73", "#f0c808", "#cc79a7", "#0072b2", "#000000"}

// shapes are the second sign, for those who see no colour.
var shapes = []string{"square", "diamond", "up", "down", "plus", "ring", "disc"}

// canvas writes SVG.
type canvas struct{ strings.Builder }

func (c *canvas) open(w, h int) {
	fmt.Fprintf(c, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#222">`+"\n", w, h, w, h)
	fmt.Fprintf(c, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", w, h)
}

func (c *canvas) text(x, y float64, anchor, extra, s string) {
	fmt.Fprintf(c, `<text x="%.1f" y="%.1f" text-anchor="%s" %s>%s</text>`+"\n", x, y, anchor, extra, html.EscapeString(s))
}

func (c *canvas) line(x1, y1, x2, y2 float64, stroke string) {
	fmt.Fprintf(c, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, stroke)
}

// mark draws the sign of policy i.
func (c *canvas) mark(i int, x, y float64) {
	const r = 5.0
	col := colours[i%len(colours)]
	poly := func(points string) {
		fmt.Fprintf(c, `<polygon points="%s" fill="%s"/>`+"\n", points, col)
	}
	switch shapes[i%len(shapes)] {
	case "square":
		fmt.Fprintf(c, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x-r+1, y-r+1, 2*r-2, 2*r-2, col)
	case "diamond":
		poly(fmt.Sprintf("%.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f", x, y-r, x+r, y, x, y+r, x-r, y))
	case "up":
		poly(fmt.Sprintf("%.1f,%.1f %.1f,%.1f %.1f,%.1f", x, y-r, x+r, y+r, x-r, y+r))
	case "down":
		poly(fmt.Sprintf("%.1f,%.1f %.1f,%.1f %.1f,%.1f", x, y+r, x+r, y-r, x-r, y-r))
	case "plus":
		fmt.Fprintf(c, `<path d="M%.1f %.1fh%.1fM%.1f %.1fv%.1f" stroke="%s" stroke-width="3"/>`+"\n", x-r, y, 2*r, x, y-r, 2*r, col)
	case "ring":
		fmt.Fprintf(c, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="none" stroke="%s" stroke-width="2.5"/>`+"\n", x, y, r, col)
	default:
		fmt.Fprintf(c, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s"/>`+"\n", x, y, r, col)
	}
}

// legend lists the policies below the panels, in columns.
func (c *canvas) legend(x, y float64) {
	for i, p := range Policies {
		lx, ly := x+float64(i%4)*255, y+float64(i/4)*22
		c.mark(i, lx, ly-4)
		c.text(lx+12, ly, "start", "", p.Name)
	}
}

// scale maps values to a stretch of the picture.
type scale struct {
	lo, hi   float64 // values
	from, to float64 // picture
	log      bool
}

func (s scale) at(v float64) float64 {
	v = max(s.lo, min(v, s.hi))
	lo, hi := s.lo, s.hi
	if s.log {
		v, lo, hi = math.Log(v), math.Log(lo), math.Log(hi)
	}
	return s.from + (v-lo)/(hi-lo)*(s.to-s.from)
}

// Panels of both figures: three beside each other.
const (
	panelW, panelH = 340, 300
	left, top      = 52.0, 58.0
	plotW, plotH   = 268.0, 200.0
)

// panel draws the frame, ticks and title of panel k and returns its scales.
func (c *canvas) panel(k int, title string, x, y scale, xs, ys []float64, label, ylabel func(float64) string) (scale, scale) {
	px, py := float64(k%3*panelW), float64(k/3*panelH)
	x.from, x.to = px+left, px+left+plotW
	y.from, y.to = py+top+plotH, py+top
	c.text(px+left, py+top-10, "start", `font-weight="bold"`, title)
	for _, v := range xs {
		c.line(x.at(v), y.from, x.at(v), y.to, "#e6e6e6")
		c.text(x.at(v), y.from+15, "middle", `font-size="10"`, label(v))
	}
	for _, v := range ys {
		c.line(x.from, y.at(v), x.to, y.at(v), "#e6e6e6")
		c.text(x.from-6, y.at(v)+4, "end", `font-size="10"`, ylabel(v))
	}
	c.line(x.from, y.from, x.to, y.from, "#222")
	c.line(x.from, y.from, x.from, y.to, "#222")
	return x, y
}

// quotaPlot draws the quota used against 429s: one panel for each provider, one
// mark for each policy and rule. No 429s at all stands at the left edge.
func quotaPlot(w io.Writer, rows []Row) error {
	var c canvas
	c.open(3*panelW+20, 2*panelH+110)
	c.text(left, 22, "start", `font-size="15" font-weight="bold"`, "Quota used against refusals, at three times what the limit drains (better: up and left)")
	const none, most = 0.003, 130
	for k, a := range algorithms {
		x, y := c.panel(k, a.name, scale{lo: none, hi: 100, log: true}, scale{lo: 30, hi: most},
			[]float64{none, 0.01, 0.1, 1, 10, 100}, []float64{40, 60, 80, 100, most}, func(v float64) string {
				if v == none {
					return "0"
				}
				return fmt.Sprint(v)
			}, func(v float64) string {
				if v == most {
					return "≥ 130"
				}
				return fmt.Sprint(v)
			})
		for i, p := range Policies {
			for _, r := range rows {
				if r.Load == Overload && r.Provider == a.name && r.Policy == p.Name {
					c.mark(i, x.at(max(none, r.Refused)), y.at(100*r.Used))
				}
			}
		}
	}
	c.text(left+plotW*1.8, 2*panelH+12, "middle", "", "429s for each call (logarithmic); three marks for each policy: the rules estimate, settle, actual")
	fmt.Fprintf(&c, `<text transform="translate(14 %d) rotate(-90)" text-anchor="middle">quota used, %% (above 100: what was there at the start)</text>`+"\n", panelH)
	c.legend(left, 2*panelH+46)
	c.WriteString("</svg>\n")
	_, err := io.WriteString(w, c.String())
	return err
}

// waitPlots are the providers and rules whose waits are drawn.
var waitPlots = []struct{ provider, rule string }{
	{"bucket of 10 s", "estimate"}, {"bucket of 10 s", "settle"}, {"bucket of 10 s", "actual"},
	{"fixed minute", "estimate"}, {"sliding minute", "estimate"}, {"slices of 1 s", "settle"},
}

// waitPlot draws how many calls waited at most so long beyond the ideal.
func waitPlot(w io.Writer, rows []Row) error {
	var c canvas
	c.open(3*panelW+20, 2*panelH+110)
	c.text(left, 22, "start", `font-size="15" font-weight="bold"`, "Wait beyond that of the ideal client, at three times what the limit drains (better: up and left)")
	const least = 0.1 // seconds
	for k, f := range waitPlots {
		x, y := c.panel(k, f.provider+", "+f.rule, scale{lo: least, hi: 300, log: true}, scale{lo: 0, hi: 100},
			[]float64{least, 1, 10, 100}, []float64{0, 25, 50, 75, 100}, func(v float64) string {
				if v == least {
					return "≤ 0.1"
				}
				return fmt.Sprint(v)
			}, func(v float64) string { return fmt.Sprint(v) })
		for i, p := range Policies {
			for _, r := range rows {
				if r.Load == Overload && r.Provider == f.provider && r.Rule == f.rule && r.Policy == p.Name {
					c.curve(i, x, y, r.Waits)
				}
			}
		}
	}
	c.text(left+plotW*1.8, 2*panelH+12, "middle", "", "seconds (logarithmic)")
	fmt.Fprintf(&c, `<text transform="translate(14 %d) rotate(-90)" text-anchor="middle">calls that waited at most so long, %%</text>`+"\n", panelH)
	c.legend(left, 2*panelH+46)
	c.WriteString("</svg>\n")
	_, err := io.WriteString(w, c.String())
	return err
}

// curve draws the distribution of sorted waits, with the policy's mark at the
// 99th percentile.
func (c *canvas) curve(i int, x, y scale, waits []time.Duration) {
	if len(waits) == 0 {
		return
	}
	dash := ""
	if shapes[i%len(shapes)] == "plus" { // often the same as retry alone, which shows between
		dash = `stroke-dasharray="6 6"`
	}
	fmt.Fprintf(c, `<polyline fill="none" stroke="%s" stroke-width="1.8" %s points="`, colours[i%len(colours)], dash)
	const steps = 100
	for k := range steps + 1 {
		q := float64(k) / steps
		fmt.Fprintf(c, "%.1f,%.1f ", x.at(Quantile(waits, q).Seconds()), y.at(100*q))
	}
	fmt.Fprint(c, `"/>`+"\n")
	c.mark(i, x.at(Quantile(waits, .99).Seconds()), y.at(99))
}

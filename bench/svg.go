package bench

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/internal/svg"
)

// dashed is the policy whose curve is often the same as that of the first, which
// then shows between its dashes.
const dashed = 4

// legend lists the policies below the panels, in columns.
func legend(c *svg.Canvas, x, y float64) {
	for i, p := range Policies {
		lx, ly := x+float64(i%4)*260, y+float64(i/4)*22
		c.Mark(i, lx, ly-4)
		c.Text(lx+12, ly, "start", "", p.Name)
	}
}

// Panels of both figures: three beside each other.
const (
	panelW, panelH = 350, 300
	left, top      = 62.0, 58.0
	plotW, plotH   = 268.0, 200.0
	width          = 3*panelW + 20
	height         = 2*panelH + 116
)

// panel draws the frame, ticks and title of panel k and returns its scales.
func panel(c *svg.Canvas, k int, title string, x, y svg.Scale, xs, ys []float64, label, ylabel func(float64) string) (svg.Scale, svg.Scale) {
	px, py := float64(k%3*panelW), float64(k/3*panelH)
	x.From, x.To = px+left, px+left+plotW
	y.From, y.To = py+top+plotH, py+top
	c.Text(px+left, py+top-10, "start", `font-weight="bold"`, title)
	for _, v := range xs {
		c.Line(x.At(v), y.From, x.At(v), y.To, "grid")
		c.Text(x.At(v), y.From+15, "middle", `class="soft" font-size="10"`, label(v))
	}
	for _, v := range ys {
		c.Line(x.From, y.At(v), x.To, y.At(v), "grid")
		c.Text(x.From-9, y.At(v)+4, "end", `class="soft" font-size="10"`, ylabel(v))
	}
	c.Line(x.From, y.From, x.To, y.From, "axis")
	c.Line(x.From, y.From, x.From, y.To, "axis")
	return x, y
}

// upright writes the label of the upright axis.
func upright(c *svg.Canvas, s string) {
	c.Raw(fmt.Sprintf(`<text transform="translate(16 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", panelH, s))
}

// best names what tripmeter and the first policy came to, for those who cannot
// see the picture.
func best(rows []Row, value func(Row) string) string {
	var b strings.Builder
	for _, name := range []string{"retry alone", "tripmeter"} {
		var said []string
		for _, r := range rows {
			if r.Load == Overload && r.Policy == name {
				said = append(said, r.Provider+", "+r.Rule+": "+value(r))
			}
		}
		if len(said) > 0 {
			fmt.Fprintf(&b, " %s: %s.", name, strings.Join(said, "; "))
		}
	}
	return b.String()
}

// quotaPlot draws the quota used against 429s: one panel for each provider, one
// mark for each policy and rule. No 429s at all stands at the left edge.
func quotaPlot(w io.Writer, rows []Row) error {
	c := svg.New(width, height, "Quota used against refusals",
		"One panel for each kind of limit, one mark for each policy and charge rule, at three times what the limit drains. Better is up and left."+
			best(rows, func(r Row) string {
				return fmt.Sprintf("%.0f %% used, %s refused of 100", 100*r.Used, count(100*r.Refused))
			}))
	c.Text(left, 22, "start", `font-size="15" font-weight="bold"`, "Quota used against refusals, at three times what the limit drains (better: up and left)")
	const none, most = 0.3, 130
	for k, a := range algorithms {
		x, y := panel(c, k, a.name, svg.Scale{Lo: none, Hi: 10000, Log: true}, svg.Scale{Lo: 30, Hi: most},
			[]float64{none, 1, 10, 100, 1000, 10000}, []float64{40, 60, 80, 100, most}, func(v float64) string {
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
					c.Mark(i, x.At(max(none, 100*r.Refused)), y.At(100*r.Used))
				}
			}
		}
	}
	c.Text(width/2, 2*panelH+12, "middle", "", "429s for 100 calls (logarithmic); three marks for each policy: the rules estimate, settle, actual")
	upright(c, "quota used, % (above 100: what was there at the start)")
	legend(c, left, 2*panelH+46)
	_, err := c.WriteTo(w)
	return err
}

// waitPlots are the providers and rules whose waits are drawn.
var waitPlots = []struct{ provider, rule string }{
	{"bucket of 10 s", "estimate"}, {"bucket of 10 s", "settle"}, {"bucket of 10 s", "actual"},
	{"fixed minute", "estimate"}, {"sliding minute", "estimate"}, {"slices of 1 s", "settle"},
}

// waitPlot draws how many calls waited at most so long beyond the ideal.
func waitPlot(w io.Writer, rows []Row) error {
	c := svg.New(width, height, "Wait beyond that of the ideal client",
		"How many calls waited at most so long, one line for each policy, at three times what the limit drains. The sign stands where 99 of 100 calls have been admitted. Better is up and left."+
			best(rows, func(r Row) string { return fmt.Sprintf("99 %% within %.1f s", Quantile(r.Waits, .99).Seconds()) }))
	c.Text(left, 22, "start", `font-size="15" font-weight="bold"`, "Wait beyond that of the ideal client, at three times what the limit drains (better: up and left)")
	const least = 0.1 // seconds
	for k, f := range waitPlots {
		x, y := panel(c, k, f.provider+", "+f.rule, svg.Scale{Lo: least, Hi: 300, Log: true}, svg.Scale{Lo: 0, Hi: 100},
			[]float64{least, 1, 10, 100}, []float64{0, 25, 50, 75, 100}, func(v float64) string {
				if v == least {
					return "≤ 0.1"
				}
				return fmt.Sprint(v)
			}, func(v float64) string { return fmt.Sprint(v) })
		for i, p := range Policies {
			for _, r := range rows {
				if r.Load == Overload && r.Provider == f.provider && r.Rule == f.rule && r.Policy == p.Name {
					curve(c, i, x, y, r.Waits)
				}
			}
		}
	}
	c.Text(width/2, 2*panelH+12, "middle", "", "seconds (logarithmic); the sign stands at the 99th percentile")
	upright(c, "calls that waited at most so long, %")
	legend(c, left, 2*panelH+46)
	_, err := c.WriteTo(w)
	return err
}

// curve draws the distribution of sorted waits, with the policy's sign at the 99th
// percentile.
func curve(c *svg.Canvas, i int, x, y svg.Scale, waits []time.Duration) {
	if len(waits) == 0 {
		return
	}
	extra := ""
	if i == dashed {
		extra = `stroke-dasharray="6 6"`
	}
	const steps = 100
	points := make([][2]float64, 0, steps+1)
	for k := range steps + 1 {
		q := float64(k) / steps
		points = append(points, [2]float64{x.At(Quantile(waits, q).Seconds()), y.At(100 * q)})
	}
	c.Curve(fmt.Sprintf("s%d", i%7), extra, points)
	c.Mark(i, x.At(Quantile(waits, .99).Seconds()), y.At(99))
}

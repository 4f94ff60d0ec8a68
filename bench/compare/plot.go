package compare

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Series is a line of a plot.
type Series struct {
	Name   string    // text of the legend
	Color  string    // color of line and points, as "#rrggbb"
	X, Y   []float64 // coordinates of the points, greater than zero; both axes are logarithmic
	Dashed bool      // draw a dashed line
}

// Plot is one panel of a picture.
type Plot struct {
	Title, Below, Left string   // heading, and the labels of the x axis and the y axis
	Series             []Series // the lines
}

// The size of a panel and its margins, in pixels.
const (
	panelWidth, panelHeight                        = 560.0, 460.0
	marginLeft, marginRight, marginTop, marginFoot = 70.0, 30.0, 40.0, 130.0
)

// SVG draws the panels in a row.
func SVG(plots ...Plot) string {
	var b strings.Builder
	width := panelWidth * float64(len(plots))
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12" fill="#222">`,
		width, panelHeight)
	fmt.Fprintf(&b, "\n<rect width=\"%.0f\" height=\"%.0f\" fill=\"white\"/>\n", width, panelHeight)
	for i, p := range plots {
		fmt.Fprintf(&b, "<g transform=\"translate(%.0f 0)\">\n", panelWidth*float64(i))
		p.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// axis maps a number between 10^low and 10^high to a pixel between from and to.
type axis struct{ low, high, from, to float64 }

// newAxis returns an axis for all values. If whole is true, or log10 of the values differs by less than 0.1, the axis
// starts and ends at a power of ten.
func newAxis(values []float64, whole bool, from, to float64) axis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, math.Log10(v)), max(high, math.Log10(v))
	}
	if math.IsInf(low, 1) {
		low, high = 0, 1
	}
	if whole || high-low < 0.1 {
		low, high = math.Floor(low), max(math.Ceil(high), math.Floor(low)+1)
	}
	return axis{low, high, from, to}
}

// ticks returns the powers of ten on the axis; if fine is true, also twice and five times each of them.
func (a axis) ticks(fine bool) []float64 {
	var out []float64
	for exponent := math.Floor(a.low); exponent <= a.high; exponent++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, exponent)
			if (m == 1 || fine) && math.Log10(v) > a.low-1e-9 && math.Log10(v) < a.high+1e-9 {
				out = append(out, v)
			}
		}
	}
	return out
}

func (a axis) pixel(v float64) float64 {
	return a.from + (math.Log10(v)-a.low)/(a.high-a.low)*(a.to-a.from)
}

func (p Plot) draw(b *strings.Builder) {
	var xs, ys []float64
	for _, s := range p.Series {
		xs, ys = append(xs, s.X...), append(ys, s.Y...)
	}
	right, foot := panelWidth-marginRight, panelHeight-marginFoot
	x, y := newAxis(xs, false, marginLeft, right), newAxis(ys, true, foot, marginTop)

	text := func(px, py float64, anchor, content string) {
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", px, py, anchor, content)
	}
	for _, v := range x.ticks(true) {
		px := x.pixel(v)
		fmt.Fprintf(b, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", px, marginTop, px, foot)
		text(px, foot+16, "middle", tickLabel(v))
	}
	for _, v := range y.ticks(false) {
		py := y.pixel(v)
		fmt.Fprintf(b, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", marginLeft, py, right, py)
		text(marginLeft-6, py+4, "end", tickLabel(v))
	}
	text((marginLeft+right)/2, 20, "middle", p.Title)
	text((marginLeft+right)/2, foot+34, "middle", p.Below)
	fmt.Fprintf(b, "<text transform=\"translate(16 %.1f) rotate(-90)\" text-anchor=\"middle\">%s</text>\n", (marginTop+foot)/2, p.Left)
	for i, s := range p.Series {
		s.draw(b, x, y)
		legendY := foot + 60 + 18*float64(i)
		fmt.Fprintf(b, "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"4\" fill=\"%s\"/>\n", marginLeft+10, legendY-6, s.Color)
		text(marginLeft+30, legendY, "start", s.Name)
	}
}

// draw draws a circle for each point, and a line that connects the points.
func (s Series) draw(b *strings.Builder, x, y axis) {
	var points []string
	for i := range s.X {
		px, py := x.pixel(s.X[i]), y.pixel(s.Y[i])
		points = append(points, fmt.Sprintf("%.1f,%.1f", px, py))
		fmt.Fprintf(b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", px, py, s.Color)
	}
	dash := ""
	if s.Dashed {
		dash = ` stroke-dasharray="5 4"`
	}
	fmt.Fprintf(b, "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s/>\n", strings.Join(points, " "), s.Color, dash)
}

// tickLabel formats a tick: 0.01, 1, 20,000.
func tickLabel(v float64) string {
	if v < 1 {
		return strconv.FormatFloat(v, 'g', 1, 64)
	}
	return thousands(int(math.Round(v)))
}

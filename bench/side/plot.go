package side

import (
	"fmt"
	"math"
	"strings"
)

// Series is a line of a plot.
type Series struct {
	Name   string
	Color  string
	X, Y   []float64 // above zero; both axes are logarithmic
	Dashed bool
}

// Plot is one panel.
type Plot struct {
	Title, Below, Left string
	Series             []Series
}

// The size of a panel and what is left around it, in pixels.
const (
	panelWidth, panelHeight                        = 560.0, 400.0
	marginLeft, marginRight, marginTop, marginFoot = 70.0, 20.0, 40.0, 50.0
)

// SVG draws the panels side by side.
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

// axis maps decades to pixels.
type axis struct{ low, high, from, to float64 } // low, high: whole decades

func newAxis(values []float64, from, to float64) axis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, math.Log10(v)), max(high, math.Log10(v))
	}
	if math.IsInf(low, 1) {
		low, high = 0, 1
	}
	low, high = math.Floor(low), math.Ceil(high)
	return axis{low, max(high, low+1), from, to}
}

func (a axis) at(v float64) float64 {
	return a.from + (math.Log10(v)-a.low)/(a.high-a.low)*(a.to-a.from)
}

func (p Plot) draw(b *strings.Builder) {
	var xs, ys []float64
	for _, s := range p.Series {
		xs, ys = append(xs, s.X...), append(ys, s.Y...)
	}
	right, foot := panelWidth-marginRight, panelHeight-marginFoot
	x, y := newAxis(xs, marginLeft, right), newAxis(ys, foot, marginTop)

	text := func(px, py float64, anchor, what string) {
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", px, py, anchor, what)
	}
	for d := x.low; d <= x.high; d++ {
		px := x.at(math.Pow(10, d))
		fmt.Fprintf(b, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", px, marginTop, px, foot)
		text(px, foot+16, "middle", decade(d))
	}
	for d := y.low; d <= y.high; d++ {
		py := y.at(math.Pow(10, d))
		fmt.Fprintf(b, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", marginLeft, py, right, py)
		text(marginLeft-6, py+4, "end", decade(d))
	}
	text((marginLeft+right)/2, 20, "middle", p.Title)
	text((marginLeft+right)/2, panelHeight-12, "middle", p.Below)
	fmt.Fprintf(b, "<text transform=\"translate(16 %.1f) rotate(-90)\" text-anchor=\"middle\">%s</text>\n", (marginTop+foot)/2, p.Left)
	for i, s := range p.Series {
		s.draw(b, x, y)
		top := marginTop + 18*float64(i) + 14
		fmt.Fprintf(b, "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"4\" fill=\"%s\"/>\n", marginLeft+10, top-6, s.Color)
		text(marginLeft+30, top, "start", s.Name)
	}
}

func (s Series) draw(b *strings.Builder, x, y axis) {
	var points []string
	for i := range s.X {
		px, py := x.at(s.X[i]), y.at(s.Y[i])
		points = append(points, fmt.Sprintf("%.1f,%.1f", px, py))
		fmt.Fprintf(b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", px, py, s.Color)
	}
	dash := ""
	if s.Dashed {
		dash = ` stroke-dasharray="5 4"`
	}
	fmt.Fprintf(b, "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s/>\n", strings.Join(points, " "), s.Color, dash)
}

// decade writes 10 to the d: 0.01, 1, 1,000.
func decade(d float64) string {
	if d < 0 {
		return fmt.Sprintf("%.*f", int(-d), math.Pow(10, d))
	}
	return thousands(int(math.Pow(10, d)))
}

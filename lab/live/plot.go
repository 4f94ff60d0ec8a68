package live

import (
	"fmt"
	"image/color"
	"io"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	plotWidth  = 24 * vg.Centimeter
	plotHeight = 9 * vg.Centimeter
	plotMargin = 4 * vg.Millimeter
	plotStep   = 3 * time.Second // minimum distance of points
)

// The colors of the lines differ in brightness too, for readers who cannot distinguish the hues.
var (
	joinerColor   = color.RGBA{R: 0x00, G: 0x5a, B: 0xb5, A: 0xff}
	upstreamColor = color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff}
	boundColor    = color.RGBA{R: 0x55, G: 0x55, B: 0x55, A: 0xff}
)

// plotPair writes the price over time of both sides of a pair as SVG, with the lower bound in Joiner's phases.
func plotPair(w io.Writer, joiner, upstream Result) error {
	p := plot.New()
	for _, style := range []*draw.TextStyle{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label,
		&p.Legend.TextStyle} {
		style.Font.Variant = "Sans"
	}
	p.Title.Text = fmt.Sprintf("%s, seed %d", joiner.key(), joiner.Seed)
	p.X.Label.Text, p.Y.Label.Text = "seconds since the start of the script", "dollars per hour"
	p.Y.Min, p.Legend.Top, p.Legend.Padding = 0, true, vg.Millimeter
	p.Add(plotter.NewGrid())
	for _, l := range []struct {
		name   string
		points plotter.XYs
		color  color.Color
		dashes []vg.Length
	}{
		{"Karpenter", prices(upstream.Samples), upstreamColor, nil},
		{"Joiner", prices(joiner.Samples), joinerColor, nil},
		{"lower bound", bounds(joiner.Phases), boundColor, []vg.Length{vg.Points(4), vg.Points(3)}},
	} {
		if len(l.points) == 0 {
			continue
		}
		line, err := plotter.NewLine(l.points)
		if err != nil {
			return fmt.Errorf("plot %s: %w", l.name, err)
		}
		line.Color, line.Width, line.Dashes = l.color, vg.Points(1.5), l.dashes
		p.Add(line)
		p.Legend.Add(l.name, line)
	}
	p.Y.Max *= 1.2 // room for the legend above the lines
	canvas := vgsvg.New(plotWidth, plotHeight)
	p.Draw(draw.Crop(draw.New(canvas), plotMargin, -plotMargin, plotMargin, -plotMargin))
	if _, err := canvas.WriteTo(w); err != nil {
		return fmt.Errorf("write plot: %w", err)
	}
	return nil
}

func prices(samples []Sample) plotter.XYs {
	var out plotter.XYs
	for _, s := range samples {
		if n := len(out); n > 0 {
			if s.At.Seconds()-out[n-1].X < plotStep.Seconds() {
				continue
			}
			out = append(out, plotter.XY{X: s.At.Seconds(), Y: out[n-1].Y})
		}
		out = append(out, plotter.XY{X: s.At.Seconds(), Y: s.Price})
	}
	return out
}

func bounds(phases []Phase) plotter.XYs {
	var out plotter.XYs
	for _, p := range phases {
		out = append(out, plotter.XY{X: p.Begin.Seconds(), Y: p.Bound},
			plotter.XY{X: (p.Begin + p.Took + p.Held).Seconds(), Y: p.Bound})
	}
	return out
}

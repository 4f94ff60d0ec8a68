package live

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// newResult returns a result with two phases, in which the nodes cost price dollars per hour.
func newResult(side Side, seed uint64, price float64) Result {
	r := Result{Spec: Spec{Side: side, Script: "scale", Mix: Plain, Market: OnDemand(), Seed: seed, Boots: "even"}}
	for i := range 120 {
		r.Samples = append(r.Samples, Sample{At: time.Duration(i) * time.Second, Price: price})
	}
	for i, name := range []string{"up", "half"} {
		r.Phases = append(r.Phases, Phase{Name: name, Done: true, Begin: time.Duration(i) * time.Minute, Took: 20 * time.Second,
			Held: 40 * time.Second, Price: price, Paid: price / 60, Bound: 8})
	}
	return r
}

// TestPage checks that each kind has one table below its plot, with the medians of the seeds that have both sides
// (seed 3 has not).
func TestPage(t *testing.T) {
	t.Parallel()
	kinds := Kinds([]Result{
		newResult(Joiner, 1, 9), newResult(Upstream, 1, 12), newResult(Joiner, 2, 10), newResult(Upstream, 2, 10), newResult(Joiner, 3, 11),
	})
	if len(kinds) != 1 || len(kinds[0].pairs) != 2 {
		t.Fatalf("kinds %+v, want one with the pairs of seeds 1 and 2", kinds)
	}
	if got := kinds[0].Slug(); got != "scale-plain" {
		t.Errorf("the slug is %q, want scale-plain", got)
	}
	page := Markdown(kinds, map[string]string{kinds[0].Title: "live-a.svg"})
	// The prices are 9 and 10 dollars with Joiner, 12 and 10 with Karpenter; the bound is 8.
	for _, part := range []string{"## " + kinds[0].Title, "](live-a.svg)", "Seeds: 1 (on-demand, amd64, boot times even); 2 (on-demand, amd64, boot times even).",
		"| half | price over the bound, % | +18.8 / +25.0 | +37.5 / +50.0 | 0 |", "median -12.5 %, worst +0.0 %"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q:\n%s", part, page)
		}
	}
	var svg bytes.Buffer
	if err := kinds[0].Plot(&svg); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"Joiner", "Karpenter", "lower bound", "dollars per hour"} {
		if !strings.Contains(svg.String(), part) {
			t.Errorf("the plot lacks %q", part)
		}
	}
	decoder := xml.NewDecoder(&svg)
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the plot is not XML: %v", err)
		}
	}
}

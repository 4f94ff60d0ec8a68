package compare

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	got := median([]Sample{{Seconds: 3, Objects: 1, Peak: 7}, {Seconds: 1, Objects: 9, Peak: 9}, {Seconds: 2, Objects: 2, Peak: 8}})
	if want := (Sample{Seconds: 2, Objects: 2, Peak: 9}); got != want {
		t.Errorf("of three: %+v, want %+v", got, want)
	}
	if got := median([]Sample{{Seconds: 1}, {Seconds: 2}}).Seconds; got != 1.5 {
		t.Errorf("of two: %v, want 1.5", got)
	}
	if got := median(nil); got != (Sample{}) {
		t.Errorf("of none: %+v", got)
	}
}

// TestMeasure allocates 64 MiB and wants to find them again.
func TestMeasure(t *testing.T) {
	const size = 64 << 20
	var block []byte
	s := measure(func() {
		block = make([]byte, size)
		for i := range block {
			block[i] = 1
		}
	})
	if len(block) != size || s.Allocated < size || s.Peak < size || s.Seconds <= 0 {
		t.Errorf("64 MiB were measured as %+v", s)
	}
}

// rows are three that were run: one that reaches all it should, one that does not, one that was skipped.
func rows() []Row {
	good := Row{
		Workload: workload.Workload{Name: "good", About: "a good one", Group: workload.Speed, Aim: workload.Aim{Ratio: 100}},
		Pods:     1000, Classes: 10, Bound: 100 * catalog.Dollar,
		Ours:   Outcome{Pods: 1000, Sample: Sample{Seconds: 0.01}, Runs: 7, Machines: 5, Price: 101 * catalog.Dollar, Checked: true},
		Theirs: &Outcome{Pods: 1000, Sample: Sample{Seconds: 2}, Runs: 3, Workers: 1, Machines: 2, Price: 150 * catalog.Dollar, Checked: true},
	}
	bad := good
	bad.Workload.Name = "bad"
	bad.Ours.Seconds, bad.Ours.Price, bad.Ours.Violations = 1, 200*catalog.Dollar, []string{"pod a|b is nowhere"}
	refused := good
	refused.Workload.Name, refused.Ours.Refused, refused.Ours.Why = "refused", 3, "TooSmall: cpu"
	return []Row{good, bad, refused, {Workload: workload.Workload{Name: "gone", Group: workload.Speed}, Skipped: "its file is not there"}}
}

func TestReport(t *testing.T) {
	t.Parallel()
	report := Report(rows(), "plot.svg")
	for _, want := range []string{
		"| `good` | 1/100 of upstream's time | 1/200 | reached |",
		"| `good` | within 3 % of the bound | 1.0 % | reached |",
		"| `bad` | 1/100 of upstream's time | 1/2.0 | **not yet** |",
		"| `bad` | no dearer than upstream, 150.00 | 200.00 | **not yet** |",
		"| `bad` | within 3 % of the bound | 100.0 % | **not yet** |",
		"| `bad` | a plan that holds | it breaks 1 rule | **not yet** |",
		"| `refused` | 1/100 of upstream's time | 1/200, but 3 pods refused | **not yet** |",
		"| `good` a good one | 1,000 | 10 | joiner | 0.010 | 100,000 | 200 |",
		"|  | 1,000 |  | upstream | 2.00 | 500 |  |",
		"`bad`: joiner's plan is wrong: pod a/b is nowhere.",
		"`refused`: joiner refuses 3 pods",
		"`gone` was skipped: its file is not there.",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(report)
	}
}

// TestGapOfWhom: a plan for fewer pods says nothing about the price of all.
func TestGapOfWhom(t *testing.T) {
	t.Parallel()
	all := rows()
	if gap, ok := all[0].Gap(&all[0].Ours); !ok || gap < 0.99 || gap > 1.01 {
		t.Errorf("1 %% above the bound is %.2f, %v", gap, ok)
	}
	if _, ok := all[2].Gap(&all[2].Ours); ok {
		t.Error("a plan that refuses pods has a gap")
	}
	all[2].Hopeless = 3
	if _, ok := all[2].Gap(&all[2].Ours); !ok {
		t.Error("a plan that refuses only those who fit nowhere has no gap")
	}
	all[0].Theirs.Pods = 500
	if _, ok := all[0].Gap(all[0].Theirs); ok {
		t.Error("a plan for half of the pods has a gap")
	}
	if ratio := all[0].Ratio(); ratio != 400 {
		t.Errorf("two seconds for half of the pods are %v times 0.01 for all, want 400", ratio)
	}
}

// TestCheapestCounts: of several plans the cheapest is noted, unless it refuses more.
func TestCheapestCounts(t *testing.T) {
	t.Parallel()
	plan := func(price catalog.Price, refusals int) packing.Plan {
		return packing.Plan{
			PlannedNodes: make([]packing.PlannedNode, 1), Price: price,
			Refusals: make([]packing.Refusal, refusals),
		}
	}
	var o Outcome
	for _, p := range []packing.Plan{plan(50, 0), plan(40, 0), plan(60, 0), plan(10, 2)} {
		o.read(p)
	}
	if o.Price != 40 || o.Refused != 0 {
		t.Errorf("price %d, %d refused; want 40 and 0", o.Price, o.Refused)
	}
}

func TestGrowthIsXML(t *testing.T) {
	t.Parallel()
	var all []Row
	for i, name := range []string{"fixed-1000", "fixed-2000", "growing-1000"} {
		r := rows()[0]
		r.Workload.Name, r.Ours.Allocated = name, uint64(i+1)<<20
		r.Theirs.Allocated = 5 << 20
		all = append(all, r)
	}
	svg := Growth(all)
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") || strings.Count(svg, "<polyline") != 6 {
		t.Errorf("want three lines in each of two panels:\n%s", svg)
	}
}

// TestRun plans one small workload with both and wants both plans to hold.
func TestRun(t *testing.T) {
	for _, w := range workload.All("") {
		if w.Name != "thousand" {
			continue
		}
		row, err := Quick.Run(w, verify.Check)
		if err != nil {
			t.Fatal(err)
		}
		for who, o := range map[string]*Outcome{"joiner": &row.Ours, "upstream": row.Theirs} {
			if o.Pods != 1000 || o.Machines == 0 || o.Refused > 0 || !o.Checked || len(o.Violations) > 0 || o.Late || o.Price < row.Bound {
				t.Errorf("%s: %+v, bound %v", who, o, row.Bound)
			}
		}
	}
}

func TestSkipped(t *testing.T) {
	t.Parallel()
	for _, w := range workload.All(t.TempDir()) {
		if w.Name != "openb-cpu" {
			continue
		}
		row, err := Quick.Run(w, func(cluster.Snapshot, catalog.Market, packing.Plan) []string { return nil })
		if err != nil || row.Skipped == "" {
			t.Errorf("without its file: %q, %v", row.Skipped, err)
		}
	}
}

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
	if want := (Sample{Seconds: 2, Objects: 2, Peak: 9}); got != want { // Peak: the maximum
		t.Errorf("median of three samples: %+v, want %+v", got, want)
	}
	if got := median([]Sample{{Seconds: 1}, {Seconds: 2}}).Seconds; got != 1.5 {
		t.Errorf("median of two samples: %v, want 1.5", got)
	}
	if got := median(nil); got != (Sample{}) {
		t.Errorf("median without samples: %+v, want zero", got)
	}
}

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
		t.Errorf("64 MiB were measured as %+v, want at least 64 MiB allocated and at the peak", s)
	}
}

// rows returns four rows: one that reaches all targets, one with an invalid and expensive plan, one whose plan refuses
// pods, and a skipped one.
func rows() []Row {
	good := Row{
		Workload: workload.Workload{Name: "good", About: "a good one", Group: workload.Speed, Target: workload.Target{Ratio: 100}},
		Pods:     1000, Classes: 10, Bound: 100 * catalog.Dollar,
		Ours:   Outcome{Pods: 1000, Sample: Sample{Seconds: 0.01}, Runs: 7, NewNodes: 5, Price: 101 * catalog.Dollar, Checked: true},
		Theirs: &Outcome{Pods: 1000, Sample: Sample{Seconds: 2}, Runs: 3, Workers: 1, NewNodes: 2, Price: 150 * catalog.Dollar, Checked: true},
	}
	bad := good
	bad.Workload.Name = "bad"
	bad.Ours.Seconds, bad.Ours.Price, bad.Ours.Violations = 1, 200*catalog.Dollar, []string{"pod a|b is nowhere"}
	refused := good
	refused.Workload.Name, refused.Ours.Refused, refused.Ours.Reason = "refused", 3, "TooSmall: cpu"
	return []Row{good, bad, refused, {Workload: workload.Workload{Name: "gone", Group: workload.Speed}, Skipped: "file does not exist"}}
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
		"`gone` was skipped: file does not exist.",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(report)
	}
}

// TestGap: a plan has a gap only if it places all pods that can be placed. The ratio is computed per pod.
func TestGap(t *testing.T) {
	t.Parallel()
	all := rows()
	good, refused := &all[0], &all[2]
	if gap, ok := good.Gap(&good.Ours); !ok || gap < 0.99 || gap > 1.01 {
		t.Errorf("the gap of a price 1 %% above the bound is %.2f %%, %v; want 1.00 %%, true", gap, ok)
	}
	if _, ok := refused.Gap(&refused.Ours); ok {
		t.Error("a plan that refuses pods has a gap, want none")
	}
	refused.Unplaceable = 3
	if _, ok := refused.Gap(&refused.Ours); !ok {
		t.Error("a plan that refuses only unplaceable pods has no gap, want one")
	}
	good.Theirs.Pods = 500
	if _, ok := good.Gap(good.Theirs); ok {
		t.Error("a plan for half of the pods has a gap, want none")
	}
	if ratio := good.Ratio(); ratio != 400 {
		t.Errorf("the ratio of 2 s for half of the pods to 0.01 s for all is %v, want 400", ratio)
	}
}

// TestKeepBetter: keepBetter keeps the cheapest of the plans that refuse the fewest pods.
func TestKeepBetter(t *testing.T) {
	t.Parallel()
	plan := func(price catalog.Price, refusals int) packing.Plan {
		return packing.Plan{
			PlannedNodes: make([]packing.PlannedNode, 1), Price: price,
			Refusals: make([]packing.Refusal, refusals),
		}
	}
	var o Outcome
	for _, p := range []packing.Plan{plan(50, 0), plan(40, 0), plan(60, 0), plan(10, 2)} {
		o.keepBetter(p)
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
			t.Fatalf("%v, want valid XML:\n%s", err, svg)
		}
	}
	if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") || strings.Count(svg, "<polyline") != 6 {
		t.Errorf("want six lines: fixed by Joiner and by upstream, and growing by Joiner, in two panels:\n%s", svg)
	}
}

// TestRun plans one small workload with both schedulers, and checks that both plans are valid.
func TestRun(t *testing.T) {
	for _, w := range workload.All("") {
		if w.Name != "thousand" {
			continue
		}
		row, err := Quick.Run(w, verify.Check)
		if err != nil {
			t.Fatal(err)
		}
		for scheduler, o := range map[string]*Outcome{"joiner": &row.Ours, "upstream": row.Theirs} {
			if o.Pods != 1000 || o.NewNodes == 0 || o.Refused > 0 || !o.Checked || len(o.Violations) > 0 || o.Stopped || o.Price < row.Bound {
				t.Errorf("%s: %+v, want a complete and valid plan that costs at least %v", scheduler, o, row.Bound)
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
			t.Errorf("a workload without its file: skipped because of %q, error %v; want a reason", row.Skipped, err)
		}
	}
}

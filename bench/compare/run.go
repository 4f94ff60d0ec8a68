package compare

import (
	"errors"
	"fmt"
	"time"

	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Patience has the limits of the measurements.
type Patience struct {
	Ours      time.Duration // total time of Joiner's first run and its repetitions: once before upstream's runs, and once after
	OursRuns  int           // maximum number of repetitions, before and after each
	Theirs    time.Duration // time limit of one run of upstream
	TheirRuns int           // number of runs of upstream; the report has the best price
	Slow      time.Duration // upstream is not run again after a run that takes longer

	// Watch is called before Joiner's runs of a workload; the function that it returns is called after them. nil
	// disables it.
	Watch func(workload string) (func(), error)
}

// Usual has the limits of make bench; Quick is a smoke test.
var (
	Usual = Patience{Ours: 2 * time.Second, OursRuns: 31, Theirs: 5 * time.Minute, TheirRuns: 3, Slow: 30 * time.Second}
	Quick = Patience{Ours: 200 * time.Millisecond, OursRuns: 3, Theirs: 20 * time.Second, TheirRuns: 1, Slow: time.Second}
)

// Check checks a plan. It returns no findings for a valid plan.
type Check func(s cluster.Snapshot, market catalog.Market, plan packing.Plan) []string

// Run plans the workload with both schedulers.
func (p Patience) Run(w workload.Workload, check Check) (Row, error) {
	row := Row{Workload: w}
	c, err := w.Build()
	if errors.Is(err, workload.ErrMissing) {
		row.Skipped = err.Error()
		return row, nil
	}
	if err != nil {
		return row, fmt.Errorf("build %s: %w", w.Name, err)
	}
	row.Pods = c.Pending
	ours := &ours{patience: p, c: c, check: check, row: &row}
	if err := ours.run(); err != nil {
		return row, err
	}
	if !w.OursOnly {
		snapshot := ours.snapshot
		if w.Smaller != nil {
			if c, err = w.Smaller(); err != nil {
				return row, fmt.Errorf("build the smaller %s: %w", w.Name, err)
			}
			snapshot = c.Objects.Snapshot(c.View())
		}
		t := theirs{patience: p, c: c, snapshot: snapshot, check: check, out: &Outcome{Pods: c.Pending}, samples: map[int][]Sample{}}
		row.Theirs = t.out
		if err := t.run(); err != nil {
			return row, err
		}
		ours.repeat() // the load of this computer may have changed during upstream's runs
	}
	ours.judge()
	return row, nil
}

// watch calls Watch for the workload with this name, and returns a function that ends the watching. Both do nothing
// without Watch.
func (p Patience) watch(name string) (func(), error) {
	if p.Watch == nil {
		return func() {}, nil
	}
	return p.Watch(name)
}

// ours runs Joiner's solver on a workload.
type ours struct {
	patience Patience
	c        workload.Case
	check    Check
	row      *Row

	snapshot cluster.Snapshot
	plan     packing.Plan
	cold     Sample
	samples  []Sample
}

// run makes the first plan and repeats it.
func (o *ours) run() error {
	out := &o.row.Ours
	out.Pods = o.c.Pending
	stop, err := o.patience.watch(o.row.Workload.Name)
	if err != nil {
		return err
	}
	defer stop()
	out.Prepare = measure(func() { o.snapshot = o.c.Objects.Snapshot(o.c.View()) }).Seconds
	o.cold = measure(o.solve)
	o.repeat()
	return nil
}

// solve makes a plan of the snapshot.
func (o *ours) solve() { o.plan = packing.Solve(o.snapshot, o.c.Market, packing.Usual) }

// repeat makes more plans, within the limits.
func (o *ours) repeat() {
	spent := o.cold.Seconds
	for n := 0; n < o.patience.OursRuns && spent < o.patience.Ours.Seconds(); n++ {
		s := again(o.solve)
		o.samples = append(o.samples, s)
		spent += s.Seconds
	}
}

// judge records the measurements, the plan and the lower bound. Before and Peak are those of the first, cold run; the
// other measurements are those of the repetitions, if there are any.
func (o *ours) judge() {
	out := &o.row.Ours
	out.Sample, out.Runs = o.cold, 1
	if len(o.samples) > 0 {
		out.Sample, out.Runs = median(o.samples), len(o.samples)
		out.Before, out.Peak = o.cold.Before, o.cold.Peak
	}
	out.read(o.plan)
	out.judge(o.check, o.snapshot, o.c.Market, o.plan)
	o.row.Classes = o.plan.Classes
	o.row.Bound, o.row.Hopeless, o.row.Loose = boundOf(o.row.Workload.Kind, o.snapshot, o.c.Market, o.plan)
}

// judge records the findings of the checker.
func (o *Outcome) judge(check Check, s cluster.Snapshot, market catalog.Market, plan packing.Plan) {
	if check == nil {
		return
	}
	o.Checked = true
	for _, v := range check(s, market, plan) {
		if len(o.Violations) < maxViolations {
			o.Violations = append(o.Violations, v)
		}
	}
}

// maxViolations is the maximum number of findings kept per row.
const maxViolations = 1000

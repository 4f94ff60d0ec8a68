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

// Limits has the limits of the measurements. Joiner's first run is repeated in two series: before upstream's runs, and
// after them.
type Limits struct {
	Ours      time.Duration // maximum time of one series, including the time of the first run
	OursRuns  int           // maximum number of repetitions in each series
	Theirs    time.Duration // maximum time of one run of upstream
	TheirRuns int           // maximum number of runs of upstream; the best price counts
	Slow      time.Duration // upstream is not run again after a run that takes longer

	// StartProfile is called before Joiner's first run of a workload. The returned function is called after Joiner's
	// first series. nil disables profiles.
	StartProfile func(workload string) (stop func(), err error)
}

// Usual has the limits of make bench; Quick those of a smoke test.
var (
	Usual = Limits{Ours: 2 * time.Second, OursRuns: 31, Theirs: 5 * time.Minute, TheirRuns: 3, Slow: 30 * time.Second}
	Quick = Limits{Ours: 200 * time.Millisecond, OursRuns: 3, Theirs: 20 * time.Second, TheirRuns: 1, Slow: time.Second}
)

// Check checks a plan. It returns no findings for a valid plan.
type Check func(s cluster.Snapshot, market catalog.Market, plan packing.Plan) []string

// Run plans the workload with both schedulers.
func (l Limits) Run(w workload.Workload, check Check) (Row, error) {
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
	o := &joinerRun{limits: l, input: c, check: check, row: &row}
	if err := o.run(); err != nil {
		return row, err
	}
	if !w.OursOnly {
		snapshot := o.snapshot
		if w.Smaller != nil {
			if c, err = w.Smaller(); err != nil {
				return row, fmt.Errorf("build the smaller %s: %w", w.Name, err)
			}
			snapshot = c.Objects.Snapshot(c.View())
		}
		t := upstreamRun{limits: l, input: c, snapshot: snapshot, check: check, out: &Outcome{Pods: c.Pending}, samples: map[int][]Sample{}}
		row.Theirs = t.out
		if err := t.run(); err != nil {
			return row, err
		}
		o.repeat() // the load of the host may have changed during upstream's runs
	}
	o.record()
	return row, nil
}

// startProfile calls StartProfile for the workload with this name, unless StartProfile is nil. stop ends the
// profile and is not nil, unless err is set.
func (l Limits) startProfile(name string) (stop func(), err error) {
	if l.StartProfile == nil {
		return func() {}, nil
	}
	return l.StartProfile(name)
}

type joinerRun struct {
	limits Limits
	input  workload.Case
	check  Check
	row    *Row

	snapshot cluster.Snapshot
	plan     packing.Plan
	cold     Sample   // measurements of the first run
	samples  []Sample // measurements of the repetitions
}

func (o *joinerRun) run() error {
	out := &o.row.Ours
	out.Pods = o.input.Pending
	stop, err := o.limits.startProfile(o.row.Workload.Name)
	if err != nil {
		return err
	}
	defer stop()
	out.Prepare = measure(func() { o.snapshot = o.input.Objects.Snapshot(o.input.View()) }).Seconds
	o.cold = measure(o.solve)
	o.repeat()
	return nil
}

func (o *joinerRun) solve() {
	o.plan = packing.Solve(o.snapshot, o.input.Market, packing.DefaultEffort)
}

func (o *joinerRun) repeat() {
	spent := o.cold.Seconds
	for n := 0; n < o.limits.OursRuns && spent < o.limits.Ours.Seconds(); n++ {
		s := measureWarm(o.solve)
		o.samples = append(o.samples, s)
		spent += s.Seconds
	}
}

// record stores the measurements, the plan and the lower bound in the row. Before and Peak are those of the first, cold
// run; the other measurements are those of the repetitions, if there are any.
func (o *joinerRun) record() {
	out := &o.row.Ours
	out.Sample, out.Runs = o.cold, 1
	if len(o.samples) > 0 {
		out.Sample, out.Runs = median(o.samples), len(o.samples)
		out.Before, out.Peak = o.cold.Before, o.cold.Peak
	}
	out.keepBetter(o.plan)
	out.recordFindings(o.check, o.snapshot, o.input.Market, o.plan)
	o.row.Classes = o.plan.Classes
	o.row.Bound, o.row.Unplaceable, o.row.BoundScope = boundOf(o.row.Workload.Kind, o.snapshot, o.input.Market, o.plan)
}

// recordFindings checks the plan, and records at most maxViolations findings. It does nothing if check is nil.
func (o *Outcome) recordFindings(check Check, s cluster.Snapshot, market catalog.Market, plan packing.Plan) {
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

// maxViolations is the maximum number of findings of an Outcome. A wrong plan can break very many rules.
const maxViolations = 1000

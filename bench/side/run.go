package side

import (
	"errors"
	"fmt"
	"time"

	"github.com/joiner-sh/joiner/bench/upstream"
	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/catalog"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/packing"
)

// Patience says how long and how often things are tried.
type Patience struct {
	Ours      time.Duration // as long are our runs repeated
	OursRuns  int           // but no more often than this
	Theirs    time.Duration // one run of upstream takes no longer
	TheirRuns int           // complete runs of upstream: the best price counts
	Slow      time.Duration // a run that takes this long is not repeated
}

// Usual is what make bench has; Quick looks only whether everything works.
var (
	Usual = Patience{Ours: 2 * time.Second, OursRuns: 7, Theirs: 5 * time.Minute, TheirRuns: 3, Slow: 30 * time.Second}
	Quick = Patience{Ours: 200 * time.Millisecond, OursRuns: 3, Theirs: 20 * time.Second, TheirRuns: 1, Slow: time.Second}
)

// Check judges a plan: nil if it holds.
type Check func(s cluster.Snapshot, market catalog.Market, plan packing.Plan) []string

// Run plans the workload with both.
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
	snapshot := p.ours(&row, c, check)
	if w.OursOnly {
		return row, nil
	}
	if w.Smaller != nil {
		if c, err = w.Smaller(); err != nil {
			return row, fmt.Errorf("build the smaller %s: %w", w.Name, err)
		}
		snapshot = c.Objects.Snapshot(c.View())
	}
	return row, p.theirs(&row, c, snapshot, check)
}

// ours makes our plans, and returns what they were made for.
func (p Patience) ours(row *Row, c workload.Case, check Check) cluster.Snapshot {
	o := &row.Ours
	o.Pods = c.Pending
	var snapshot cluster.Snapshot
	o.Prepare = measure(func() { snapshot = c.Objects.Snapshot(c.View()) }).Seconds
	var plan packing.Plan
	solve := func() { plan = packing.Solve(snapshot, c.Market, packing.Usual) }

	samples := []Sample{measure(solve)} // cold: it counts only where there is no other
	spent := samples[0].Seconds
	for n := 0; n < p.OursRuns && spent < p.Ours.Seconds(); n++ {
		s := measure(solve)
		samples = append(samples, s)
		spent += s.Seconds
	}
	if len(samples) > 1 {
		samples = samples[1:]
	}
	o.Sample, o.Runs = median(samples), len(samples)
	o.read(plan)
	o.check(check, snapshot, c.Market, plan)
	row.Classes = plan.Classes
	row.Bound, row.Hopeless, row.Loose = boundOf(snapshot, c.Market, plan)
	return snapshot
}

func (o *Outcome) check(check Check, s cluster.Snapshot, market catalog.Market, plan packing.Plan) {
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

// maxViolations is how many are kept of a row.
const maxViolations = 1000

// theirs makes upstream's plans: with one worker, which is what its controller has by default, with five, then with
// the quicker of the two until there are enough.
func (p Patience) theirs(row *Row, c workload.Case, snapshot cluster.Snapshot, check Check) error {
	row.Theirs = &Outcome{Pods: c.Pending}
	o := row.Theirs
	var loaded *upstream.Cluster
	var err error
	load := measure(func() { loaded, err = upstream.Load(c.Objects, c.Market) })
	if err != nil {
		return err
	}
	_ = load // it follows the cluster as it changes: not part of a plan
	samples := map[int][]Sample{}
	for _, workers := range []int{1, 5, 0, 0} {
		if workers == 0 {
			workers = quicker(samples)
		}
		if len(samples[1])+len(samples[5]) >= max(p.TheirRuns, 1) {
			break
		}
		limit := p.Theirs
		if workers == 5 { // of interest only if they are quicker
			limit = min(limit, time.Duration(1.2*samples[1][0].Seconds*float64(time.Second))+time.Second)
		}
		sample, late, err := p.once(o, loaded, workers, limit, c.Market, snapshot, check)
		switch {
		case err != nil:
			return err
		case late && len(samples[1]) == 0: // not even once
			o.Late, o.Sample, o.Runs, o.Workers = true, sample, 1, workers
			return nil
		case late:
			continue
		}
		samples[workers] = append(samples[workers], sample)
		if sample.Seconds > p.Slow.Seconds() {
			break
		}
	}
	o.Workers = quicker(samples)
	o.Sample, o.Runs = median(samples[o.Workers]), len(samples[1])+len(samples[5])
	return nil
}

// quicker is the number of workers with which upstream took less.
func quicker(samples map[int][]Sample) int {
	if len(samples[5]) > 0 && median(samples[5]).Seconds < median(samples[1]).Seconds {
		return 5
	}
	return 1
}

// once makes one plan of upstream's; late says that it was stopped.
func (p Patience) once(o *Outcome, loaded *upstream.Cluster, workers int, limit time.Duration, market catalog.Market,
	snapshot cluster.Snapshot, check Check,
) (Sample, bool, error) {
	var run *upstream.Run
	var err error
	o.Prepare = measure(func() { run, err = loaded.Prepare(workers) }).Seconds
	if err != nil {
		return Sample{}, false, err
	}
	var results upstream.Results
	sample := measure(func() { results, err = run.Solve(limit) })
	late := errors.Is(err, upstream.ErrLate)
	if err != nil && !late {
		return sample, false, err
	}
	if late && o.Runs+o.Machines+o.Placed > 0 {
		return sample, true, nil // there is a complete plan already
	}
	plan, err := results.Plan(market)
	if err != nil {
		return sample, late, err
	}
	o.read(plan)
	if !late {
		o.check(check, snapshot, market, plan)
	}
	return sample, late, nil
}

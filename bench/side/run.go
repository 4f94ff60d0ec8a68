package side

import (
	"errors"
	"fmt"
	"time"

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

	// Watch is called before our runs of a workload, and what it returns after them; nil: nobody watches.
	Watch func(workload string) (func(), error)
}

// Usual is what make bench has; Quick looks only whether everything works.
var (
	Usual = Patience{Ours: 2 * time.Second, OursRuns: 31, Theirs: 5 * time.Minute, TheirRuns: 3, Slow: 30 * time.Second}
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
	stop, err := p.watch(w.Name)
	if err != nil {
		return row, err
	}
	snapshot := p.ours(&row, c, check, stop)
	if w.OursOnly {
		return row, nil
	}
	if w.Smaller != nil {
		if c, err = w.Smaller(); err != nil {
			return row, fmt.Errorf("build the smaller %s: %w", w.Name, err)
		}
		snapshot = c.Objects.Snapshot(c.View())
	}
	t := theirs{patience: p, c: c, snapshot: snapshot, check: check, out: &Outcome{Pods: c.Pending}, samples: map[int][]Sample{}}
	row.Theirs = t.out
	return row, t.run()
}

func (p Patience) watch(name string) (func(), error) {
	if p.Watch == nil {
		return func() {}, nil
	}
	return p.Watch(name)
}

// ours makes our plans, calls ready when they are made, and returns what they were made for.
func (p Patience) ours(row *Row, c workload.Case, check Check, ready func()) cluster.Snapshot {
	o := &row.Ours
	o.Pods = c.Pending
	var snapshot cluster.Snapshot
	o.Prepare = measure(func() { snapshot = c.Objects.Snapshot(c.View()) }).Seconds
	var plan packing.Plan
	solve := func() { plan = packing.Solve(snapshot, c.Market, packing.Usual) }

	cold := measure(solve) // its time counts only where there is no other
	var samples []Sample
	for spent := cold.Seconds; len(samples) < p.OursRuns && spent < p.Ours.Seconds(); {
		s := again(solve)
		samples = append(samples, s)
		spent += s.Seconds
	}
	ready()
	o.Sample, o.Runs = cold, 1
	if len(samples) > 0 {
		o.Sample, o.Runs = median(samples), len(samples)
		o.Before, o.Peak = cold.Before, cold.Peak
	}
	o.read(plan)
	o.judge(check, snapshot, c.Market, plan)
	row.Classes = plan.Classes
	row.Bound, row.Hopeless, row.Loose = boundOf(snapshot, c.Market, plan)
	return snapshot
}

// judge notes what the checker says.
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

// maxViolations is how many are kept of a row.
const maxViolations = 1000

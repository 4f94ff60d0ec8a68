package compare

import (
	"errors"
	"time"

	"github.com/joiner-sh/joiner/bench/upstream"
	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

type upstreamRun struct {
	limits   Limits
	input    workload.Case
	snapshot cluster.Snapshot // snapshot of the input, for the checker
	check    Check

	loaded  *upstream.Cluster
	out     *Outcome
	samples map[int][]Sample // measurements of complete plans, by number of workers
}

// run makes upstream's plans: the first with one worker, as upstream's controller does by default, the second with five
// workers, and the others with the faster of these two numbers. run stops after a slow plan; see Limits.Slow.
func (t *upstreamRun) run() error {
	var err error
	if t.loaded, err = upstream.Load(t.input.Objects, t.input.Market); err != nil {
		return err
	}
	for n := range t.limits.TheirRuns {
		workers, limit := t.fasterWorkers(), t.limits.Theirs
		if n == 1 { // five workers count only if they are faster than one, so stop soon after the time of one
			workers, limit = 5, min(limit, time.Duration(1.2*t.samples[1][0].Seconds*float64(time.Second))+time.Second)
		}
		sample, stopped, err := t.plan(workers, limit)
		if err != nil {
			return err
		}
		if stopped && n == 0 {
			t.out.Stopped, t.out.Sample, t.out.Runs, t.out.Workers = true, sample, 1, workers
			return nil
		}
		if stopped {
			continue
		}
		t.samples[workers] = append(t.samples[workers], sample)
		if sample.Seconds > t.limits.Slow.Seconds() {
			break
		}
	}
	t.out.Workers = t.fasterWorkers()
	t.out.Sample, t.out.Runs = median(t.samples[t.out.Workers]), len(t.samples[1])+len(t.samples[5])
	return nil
}

// fasterWorkers returns the number of workers with which upstream was faster.
func (t *upstreamRun) fasterWorkers() int {
	if len(t.samples[5]) > 0 && median(t.samples[5]).Seconds < median(t.samples[1]).Seconds {
		return 5
	}
	return 1
}

// plan makes one plan. stopped reports whether upstream was stopped at the time limit. A partial plan is recorded only
// if there is no complete plan yet.
func (t *upstreamRun) plan(workers int, limit time.Duration) (sample Sample, stopped bool, err error) {
	var run *upstream.Run
	t.out.Prepare = measure(func() { run, err = t.loaded.Prepare(workers) }).Seconds
	if err != nil {
		return Sample{}, false, err
	}
	var results upstream.Results
	sample = measure(func() { results, err = run.Solve(limit) })
	stopped = errors.Is(err, upstream.ErrStopped)
	switch {
	case err != nil && !stopped:
		return sample, false, err
	case stopped && len(t.samples) > 0:
		return sample, true, nil
	}
	var plan packing.Plan
	if plan, err = results.Plan(); err != nil {
		return sample, stopped, err
	}
	t.out.keepBetter(plan)
	if !stopped {
		t.out.recordFindings(t.check, t.snapshot, t.input.Market, plan)
	}
	return sample, stopped, nil
}

package compare

import (
	"errors"
	"time"

	"github.com/joiner-sh/joiner/bench/upstream"
	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// theirs runs upstream on one case.
type theirs struct {
	patience Patience
	c        workload.Case
	snapshot cluster.Snapshot // of the case, for the checker
	check    Check

	loaded  *upstream.Cluster
	out     *Outcome
	samples map[int][]Sample // of complete plans, by number of workers
}

// run makes upstream's plans: the first with one worker (the default of upstream's controller), the second with five
// workers, the others with the faster of the two numbers. run stops after a slow plan; see Patience.Slow.
func (t *theirs) run() error {
	var err error
	if t.loaded, err = upstream.Load(t.c.Objects, t.c.Market); err != nil {
		return err
	}
	for n := range t.patience.TheirRuns {
		workers, limit := t.quicker(), t.patience.Theirs
		if n == 1 { // stop the run with five workers when it is clearly slower than that with one: 20 % and one second
			workers, limit = 5, min(limit, time.Duration(1.2*t.samples[1][0].Seconds*float64(time.Second))+time.Second)
		}
		sample, late, err := t.once(workers, limit)
		if err != nil {
			return err
		}
		if late && n == 0 {
			t.out.Late, t.out.Sample, t.out.Runs, t.out.Workers = true, sample, 1, workers
			return nil
		}
		if late {
			continue
		}
		t.samples[workers] = append(t.samples[workers], sample)
		if sample.Seconds > t.patience.Slow.Seconds() {
			break
		}
	}
	t.out.Workers = t.quicker()
	t.out.Sample, t.out.Runs = median(t.samples[t.out.Workers]), len(t.samples[1])+len(t.samples[5])
	return nil
}

// quicker returns the number of workers with which upstream was faster.
func (t *theirs) quicker() int {
	if len(t.samples[5]) > 0 && median(t.samples[5]).Seconds < median(t.samples[1]).Seconds {
		return 5
	}
	return 1
}

// once makes one plan; late reports that upstream was stopped. A partial plan is recorded only if no complete plan
// exists.
func (t *theirs) once(workers int, limit time.Duration) (sample Sample, late bool, err error) {
	var run *upstream.Run
	t.out.Prepare = measure(func() { run, err = t.loaded.Prepare(workers) }).Seconds
	if err != nil {
		return Sample{}, false, err
	}
	var results upstream.Results
	sample = measure(func() { results, err = run.Solve(limit) })
	late = errors.Is(err, upstream.ErrLate)
	switch {
	case err != nil && !late:
		return sample, false, err
	case late && len(t.samples) > 0:
		return sample, true, nil
	}
	var plan packing.Plan
	if plan, err = results.Plan(); err != nil {
		return sample, late, err
	}
	t.out.read(plan)
	if !late {
		t.out.judge(t.check, t.snapshot, t.c.Market, plan)
	}
	return sample, late, nil
}

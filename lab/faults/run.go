package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/joiner-sh/joiner/lab"
)

// Plan defines the labs, faults and pairs of a run.
type Plan struct {
	Joiner    string       // path of the joiner program
	Lab       lab.Options  // options of each lab; AuthMode must be empty: the faults set the mode
	Labs      int          // number of labs that run in parallel; less than 1 means 1
	Faults    []Fault      // faults to play
	Pairs     int          // number of pairs of faults to play
	Seed      uint64       // seed for the selection of the pairs
	NoHealthy bool         // skip the healthy scenes
	Say       func(string) // receives progress lines; nil discards them
}

// Report is the result of a plan.
type Report struct {
	Results []Result      // in the order of the faults
	Pairs   []Pair        // in the order of Pairs
	Healthy Healthy       // zero if the healthy scenes were skipped
	Seed    uint64        // seed that selected the pairs
	Labs    int           // number of labs
	Took    time.Duration // total time of the run
}

// Run starts the labs and plays the plan. The report has the failed faults. The error reports labs that did not start,
// and labs that ended before all faults were played.
func Run(ctx context.Context, p Plan) (Report, error) {
	started := time.Now()
	p.Labs = max(p.Labs, 1)
	r := Report{Seed: p.Seed, Labs: p.Labs, Results: make([]Result, len(p.Faults)), Pairs: Pairs(p.Faults, p.Pairs, p.Seed)}
	jobs := make(chan func(*Stage), len(p.Faults)+len(r.Pairs)+1) // 1: the healthy scenes
	var errs []error
	jobs <- func(s *Stage) {
		var err error
		if p.NoHealthy {
			return
		}
		if r.Healthy, err = s.PlayHealthy(ctx); err != nil {
			r.Healthy.Alarms = append(r.Healthy.Alarms, "healthy scenes not completed: "+err.Error())
		}
	}
	// Start the longest jobs first.
	order := make([]int, len(p.Faults))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		faultA, faultB := p.Faults[a], p.Faults[b]
		// Faults of the same mode are adjacent, because switching the mode takes time.
		return cmp.Or(cmp.Compare(durationRank(faultA), durationRank(faultB)), cmp.Compare(faultA.AuthMode, faultB.AuthMode))
	})
	for _, i := range order {
		jobs <- func(s *Stage) {
			r.Results[i] = s.Play(ctx, p.Faults[i])
			p.say(r.Results[i].line())
		}
	}
	for i := range r.Pairs {
		jobs <- func(s *Stage) {
			r.Pairs[i] = s.PlayPair(ctx, r.Pairs[i])
			p.say(r.Pairs[i].line())
		}
	}
	close(jobs)
	var group sync.WaitGroup
	var mu sync.Mutex
	for range p.Labs {
		group.Go(func() {
			if err := p.runJobs(ctx, jobs); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	group.Wait()
	r.Took = time.Since(started)
	return r, errors.Join(errs...)
}

// durationRank returns a sort key that puts slow faults first.
func durationRank(f Fault) int {
	if f.Slow {
		return 0
	}
	return 1
}

// runJobs starts one lab and runs jobs in it until no job is left.
func (p Plan) runJobs(ctx context.Context, jobs <-chan func(*Stage)) error {
	l, err := lab.Start(ctx, p.Lab)
	if err != nil {
		return fmt.Errorf("start a lab: %w", err)
	}
	defer l.Close()
	c, err := l.RunController(ctx, p.Joiner, Settings()...)
	if err != nil {
		return err
	}
	defer c.Kill()
	stage, err := NewStage(ctx, l, p.Joiner)
	if err != nil {
		return err
	}
	for job := range jobs {
		select {
		case err := <-l.Failed():
			return err
		case <-c.Done():
			return fmt.Errorf("the controller has ended: %w", c.Err())
		case <-ctx.Done():
			return context.Cause(ctx)
		default:
			job(stage)
		}
	}
	return nil
}

func (p Plan) say(line string) {
	if p.Say != nil {
		p.Say(line)
	}
}

func (r Result) line() string {
	if r.Err != nil {
		return fmt.Sprintf("FAIL  %s: %v", r.Fault.Name, r.Err)
	}
	return fmt.Sprintf("ok    %s: found %s, fixed", r.Fault.Name, r.foundWhen())
}

func (p Pair) line() string {
	if p.Err != nil {
		return fmt.Sprintf("FAIL  %s and %s: %v", p.FaultA.Name, p.FaultB.Name, p.Err)
	}
	return fmt.Sprintf("ok    %s and %s: both found", p.FaultA.Name, p.FaultB.Name)
}

package consolidation

import (
	"errors"
	"fmt"
	"time"

	"github.com/joiner-sh/joiner/bench/fleet"
	"github.com/joiner-sh/joiner/bench/upstream"
	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Options are the limits and other settings of a run.
type Options struct {
	Horizon time.Duration // maximum simulated time after the ChurnTime of the fleet
	Real    time.Duration // maximum real time per side of a row

	Only    Side         // run only this side; empty: both
	Results ResultFolder // results that are stored here are not measured again; empty: no results are stored
}

// Usual is for make bench, Quick for a smoke test.
var (
	Usual = Options{Horizon: 2 * time.Hour, Real: 10 * time.Minute}
	Quick = Options{Horizon: 2 * time.Hour, Real: 20 * time.Second}
)

// scanInterval is the time between two scans of Joiner. A fleet has converged after idleTime without an action.
// idleTime is longer than five minutes, because upstream scans an unchanged cluster every five minutes.
const (
	scanInterval = 10 * time.Second
	idleTime     = 6 * time.Minute
)

// Row is one fleet, and the results of both sides.
type Row struct {
	Fleet   workload.WastefulFleet // the fleet that both sides make cheaper
	Skipped string                 // why the fleet was not run; empty if it was run

	Nodes, Pods  int           // initial numbers
	Price        catalog.Price // initial price
	Bounds       []fleet.Step  // lower bound over time; nil if Fleet.ChurnTime is 0
	Ours, Theirs Outcome       // zero if the side was not run
}

// Outcome is the result of one side.
type Outcome struct {
	// ConvergedAt is the simulated time from the start to the last change of the price. Stored results call it Rest.
	ConvergedAt time.Duration `json:"Rest"`

	Ran     time.Duration // simulated time from the start to the end of the run
	Stopped string        // why the run was stopped; empty if the fleet converged
	Price   catalog.Price // final price per hour
	Bound   catalog.Price // lower bound for all pods at the end, pending ones included
	Nodes   int           // final number of nodes
	Moved   int           // number of evicted pods
	Waiting int           // number of pending pods at the end
	Bill    []fleet.Step  // price over time
	Passes  int           // number of passes: scans of the cluster that were measured
	Seconds float64       // duration of the longest pass
	Peak    uint64        // maximum memory of a pass, in bytes; 0 if it was not measured
}

// Run runs both sides, each on its own fleet.
func (p Options) Run(w workload.WastefulFleet) (Row, error) {
	row := Row{Fleet: w}
	f, err := w.Build()
	if errors.Is(err, workload.ErrMissing) {
		row.Skipped = err.Error()
		return row, nil
	}
	if err != nil {
		return row, fmt.Errorf("build %s: %w", w.Name, err)
	}
	row.Nodes, row.Price = len(f.Instances()), f.Price()
	for _, m := range f.Instances() {
		row.Pods += m.PodCount()
	}
	if w.ChurnTime > 0 {
		row.Bounds = boundOverTime(f, w.ChurnTime)
	}
	if row.Ours, err = p.runSide(Joiner, w, p.runJoiner); err == nil {
		row.Theirs, err = p.runSide(Upstream, w, p.runUpstream)
	}
	return row, err
}

// runSide runs one side on the fleet, unless a stored result exists or the side is excluded.
func (p Options) runSide(by Side, w workload.WastefulFleet,
	run func(workload.WastefulFleet, *fleet.Fleet) (Outcome, error)) (Outcome, error) {
	out, isStored, err := p.Results.load(w.Name, by)
	if isStored || err != nil || p.Only != "" && p.Only != by {
		return out, err
	}
	f, err := w.Build()
	if err == nil {
		out, err = run(w, f)
	}
	if err != nil {
		return out, fmt.Errorf("%s, %s: %w", w.Name, by, err)
	}
	return out, p.Results.save(w.Name, by, out)
}

func (p Options) runJoiner(w workload.WastefulFleet, f *fleet.Fleet) (Outcome, error) {
	f.LargeFirst = true // package drain evicts in this order, too
	o := &joinerController{fleet: f, reader: newReader(f), spotToSpot: w.SpotToSpot, scannedChanges: -1}
	run := newSideRun(p, w, f)
	for run.continues() {
		busy, err := o.pass()
		if err != nil {
			return Outcome{}, err
		}
		run.recordPass(busy)
		if err := o.wait(); err != nil {
			return Outcome{}, err
		}
	}
	out := run.outcome()
	out.Passes, out.Seconds, out.Peak = len(o.record.seconds), o.record.longest(), o.record.peak
	return out, nil
}

// wait advances the simulated time to the next scan, and meanwhile completes moves as soon as possible.
func (o *joinerController) wait() error {
	until := o.fleet.Now().Add(scanInterval)
	for len(o.moves) > 0 {
		next, ok := o.fleet.Next()
		if !ok || !next.Before(until) {
			break
		}
		o.fleet.Advance(next)
		if err := o.finish(); err != nil {
			return err
		}
	}
	o.fleet.Advance(until)
	return o.finish()
}

// runUpstream runs upstream on the fleet. It skips scans of an unchanged cluster until the next event of the fleet, but
// for at most five minutes plus scanInterval: after five minutes, upstream scans even an unchanged cluster.
func (p Options) runUpstream(w workload.WastefulFleet, f *fleet.Fleet) (Outcome, error) {
	d, err := upstream.Disrupt(f, w.SpotToSpot, secondsWorked)
	if err != nil {
		return Outcome{}, err
	}
	run := newSideRun(p, w, f)
	var r record
	for run.continues() {
		before := f.Changes()
		var delay time.Duration
		from := f.Now()
		if delay, err = d.Pass(); err != nil {
			return Outcome{}, err
		}
		r.seconds = append(r.seconds, d.WorkTime().Seconds())
		busy := d.Busy() || f.Changes() != before
		run.recordPass(busy)
		d.Wait(delay)
		// A scan of an unchanged cluster has the same result. After a pass of a minute or more, no scan is skipped.
		if !busy && f.Now().Sub(from) < time.Minute {
			next, ok := f.Next()
			if due := from.Add(5*time.Minute + scanInterval); !ok || next.After(due) {
				next = due
			}
			d.Wait(max(next.Sub(f.Now()), 0))
		}
	}
	out := run.outcome()
	out.Passes, out.Seconds = len(r.seconds), r.longest()
	return out, nil
}

type sideRun struct {
	options    Options
	churnTime  time.Duration // see WastefulFleet.ChurnTime
	fleet      *fleet.Fleet
	started    time.Time     // real time
	lastAction time.Duration // simulated time from the start to the last action
	changes    int           // value of Fleet.Changes at the last action
	stopped    string        // see Outcome.Stopped
	ended      bool          // the fleet has converged, or a time limit was reached
}

func newSideRun(p Options, w workload.WastefulFleet, f *fleet.Fleet) *sideRun {
	return &sideRun{options: p, churnTime: w.ChurnTime, fleet: f, started: time.Now(), changes: -1}
}

// continues reports whether the run continues. It ends the run when the limit of simulated or of real time is reached.
func (r *sideRun) continues() bool {
	switch {
	case r.ended:
	case r.fleet.Since() >= r.churnTime+r.options.Horizon:
		r.ended, r.stopped = true, "after "+(r.churnTime+r.options.Horizon).String()
	case time.Since(r.started) >= r.options.Real:
		r.ended, r.stopped = true, fmt.Sprintf("after %s of real time", r.options.Real)
	}
	return !r.ended
}

// recordPass records whether the last pass did anything, and ends the run after idleTime without an action.
func (r *sideRun) recordPass(busy bool) {
	if busy || r.fleet.Changes() != r.changes {
		r.lastAction, r.changes = r.fleet.Since(), r.fleet.Changes()
	}
	r.ended = r.ended || r.fleet.Since()-max(r.lastAction, r.churnTime) >= idleTime
}

// outcome returns the result of the run without the measurements of the passes, which the caller adds.
func (r *sideRun) outcome() Outcome {
	f := r.fleet
	out := Outcome{
		ConvergedAt: fleet.ConvergedAt(f.Bill()), Ran: f.Since(), Stopped: r.stopped, Price: f.Price(), Nodes: len(f.Instances()),
		Moved: f.Moved(), Waiting: f.PendingPods(), Bill: f.Bill(),
	}
	out.Bound = bound(f)
	return out
}

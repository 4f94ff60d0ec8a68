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

// Patience limits a run.
type Patience struct {
	Horizon time.Duration // simulated time after Waste.Lasts
	Real    time.Duration // real time per side of a row

	Only Side // run only this side; empty: both
	Keep Keep // stored results are not measured again; empty: no results are stored
}

// Usual is for make bench, Quick for a smoke test.
var (
	Usual = Patience{Horizon: 2 * time.Hour, Real: 10 * time.Minute}
	Quick = Patience{Horizon: 2 * time.Hour, Real: 20 * time.Second}
)

// scanInterval is the time between two scans of Joiner. A fleet has converged if no action happens for idleTime.
// idleTime exceeds five minutes, after which upstream scans an unchanged cluster again.
const (
	scanInterval = 10 * time.Second
	idleTime     = 6 * time.Minute
)

// Row is one fleet, and the results of both sides.
type Row struct {
	Waste   workload.Waste // the fleet
	Skipped string         // why the fleet was not run

	Nodes, Pods  int           // initial numbers
	Price        catalog.Price // initial price
	Least        []fleet.Step  // lower bound over time; nil if Waste.Lasts is 0
	Ours, Theirs Outcome       // zero if the side was not run
}

// Outcome is the result of one side.
type Outcome struct {
	Rest    time.Duration // simulated time from the start to the last change of the price
	Ran     time.Duration // simulated time from the start to the end of the run
	Stopped string        // why the run was stopped; empty if the fleet converged
	Price   catalog.Price // final price per hour
	Bound   catalog.Price // lower bound for the running pods
	Nodes   int           // final number of nodes
	Moved   int           // number of evicted pods
	Waiting int           // pending pods
	Bill    []fleet.Step  // price over time
	Passes  int           // number of measured scans
	Seconds float64       // duration of the longest pass
	Peak    uint64        // maximum memory of a pass, in bytes; 0 if it was not measured
}

// Run runs both sides, each on its own fleet.
func (p Patience) Run(w workload.Waste) (Row, error) {
	row := Row{Waste: w}
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
		row.Pods += m.Pods()
	}
	if w.Lasts > 0 {
		row.Least = leastOf(f, w.Lasts)
	}
	if row.Ours, err = p.side(Joiner, w, p.ours); err == nil {
		row.Theirs, err = p.side(Upstream, w, p.theirs)
	}
	return row, err
}

// side runs one side on the fleet, unless a stored result exists or the side is excluded.
func (p Patience) side(by Side, w workload.Waste, run func(workload.Waste, *fleet.Fleet) (Outcome, error)) (Outcome, error) {
	out, known, err := p.Keep.load(w.Name, by)
	if known || err != nil || p.Only != "" && p.Only != by {
		return out, err
	}
	f, err := w.Build()
	if err == nil {
		out, err = run(w, f)
	}
	if err != nil {
		return out, fmt.Errorf("%s, %s: %w", w.Name, by, err)
	}
	return out, p.Keep.save(w.Name, by, out)
}

// ours runs Joiner on the fleet.
func (p Patience) ours(w workload.Waste, f *fleet.Fleet) (Outcome, error) {
	f.LargeFirst = true // as package drain does
	o := &ours{fleet: f, reader: watch(f), spotToSpot: w.SpotToSpot, seen: -1}
	t := newTurn(p, w, f)
	for t.goes() {
		busy, err := o.pass()
		if err != nil {
			return Outcome{}, err
		}
		t.saw(busy)
		if err := o.wait(); err != nil {
			return Outcome{}, err
		}
	}
	out := t.outcome()
	out.Passes, out.Seconds, out.Peak = len(o.record.seconds), o.record.longest(), o.record.peak
	return out, nil
}

// wait advances the time until the next scan, and completes moves as soon as possible.
func (o *ours) wait() error {
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

// theirs runs upstream on the fleet. It skips scans of an unchanged cluster, until the next event or until upstream
// would scan it again because five minutes have passed.
func (p Patience) theirs(w workload.Waste, f *fleet.Fleet) (Outcome, error) {
	d, err := upstream.Disrupt(f, w.SpotToSpot, work)
	if err != nil {
		return Outcome{}, err
	}
	t := newTurn(p, w, f)
	var r record
	for t.goes() {
		before := f.Changes()
		var rest time.Duration
		from := f.Now()
		if rest, err = d.Pass(); err != nil {
			return Outcome{}, err
		}
		r.seconds = append(r.seconds, d.WorkTime().Seconds())
		busy := d.Busy() || f.Changes() != before
		t.saw(busy)
		d.Wait(rest)
		if !busy && f.Now().Sub(from) < time.Minute { // a scan of an unchanged cluster has the same result
			next, ok := f.Next()
			if due := from.Add(5*time.Minute + scanInterval); !ok || next.After(due) {
				next = due
			}
			d.Wait(max(next.Sub(f.Now()), 0))
		}
	}
	out := t.outcome()
	out.Passes, out.Seconds = len(r.seconds), r.longest()
	return out, nil
}

// turn is the run of one side on a fleet.
type turn struct {
	patience Patience
	waste    workload.Waste
	fleet    *fleet.Fleet
	began    time.Time
	still    time.Duration // simulated time from the start to the last action
	changes  int           // value of Fleet.Changes at the last action
	stopped  string        // see Outcome.Stopped
	over     bool          // the fleet has converged, or a time limit was reached
}

// newTurn returns the turn of one side, which begins now.
func newTurn(p Patience, w workload.Waste, f *fleet.Fleet) *turn {
	return &turn{patience: p, waste: w, fleet: f, began: time.Now(), changes: -1}
}

// goes reports whether the turn continues. It ends the turn at the limits of simulated and real time.
func (t *turn) goes() bool {
	switch {
	case t.over:
	case t.fleet.Since() >= t.waste.Lasts+t.patience.Horizon:
		t.over, t.stopped = true, "after "+(t.waste.Lasts+t.patience.Horizon).String()
	case time.Since(t.began) >= t.patience.Real:
		t.over, t.stopped = true, fmt.Sprintf("after %s of real time", t.patience.Real)
	}
	return !t.over
}

// saw records whether the last pass did anything, and ends the turn after the duration idleTime without an action.
func (t *turn) saw(busy bool) {
	if busy || t.fleet.Changes() != t.changes {
		t.still, t.changes = t.fleet.Since(), t.fleet.Changes()
	}
	t.over = t.over || t.fleet.Since()-max(t.still, t.waste.Lasts) >= idleTime
}

// outcome returns the result of the turn, as far as the fleet shows it.
func (t *turn) outcome() Outcome {
	f := t.fleet
	out := Outcome{
		Rest: fleet.Rest(f.Bill()), Ran: f.Since(), Stopped: t.stopped, Price: f.Price(), Nodes: len(f.Instances()), Moved: f.Moved(),
		Waiting: f.Waiting(), Bill: f.Bill(),
	}
	out.Bound = bound(f)
	return out
}

package compare

import (
	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Row is a workload and its results.
type Row struct {
	Workload workload.Workload
	Skipped  string // why the workload was not run; empty if it was run
	Unasked  string // why upstream was not run this time; empty if it was run, or never is

	Pods    int // pending pods
	Classes int // number of pod groups of Joiner's solver
	Bound   catalog.Price
	// Hopeless is the number of pods that no plan can place.
	Hopeless int
	// Loose describes why the lower bound may be too low; empty if it is that of the workload.
	Loose string

	Ours   Outcome
	Theirs *Outcome // nil: upstream was not run
}

// Outcome is the result of one of the two schedulers.
type Outcome struct {
	Pods    int     // pending pods; fewer than the row's if upstream got a smaller workload
	Prepare float64 // seconds of preparation in the controller before the plan
	Sample          // median of all runs
	Runs    int
	Workers int  // upstream's number of workers
	Late    bool // upstream was stopped; the numbers are those of a partial plan

	Machines   int
	Placed     int // pods on existing nodes
	Refused    int
	Why        string        // the most frequent reason for refusing pods
	Price      catalog.Price // price of the cheapest plan of all runs
	Violations []string      // findings of the checker in all runs
	Checked    bool
}

// PodsPerSecond returns the number of planned pods per second.
func (o *Outcome) PodsPerSecond() float64 {
	if o.Seconds == 0 {
		return 0
	}
	return float64(o.Pods) / o.Seconds
}

// Ratio returns upstream's time per pod divided by Joiner's; 0 if upstream was not run.
func (r *Row) Ratio() float64 {
	if r.Theirs == nil || r.Theirs.PodsPerSecond() == 0 {
		return 0
	}
	return r.Ours.PodsPerSecond() / r.Theirs.PodsPerSecond()
}

// Gap returns how far the price is above the lower bound, in percent; false if the comparison is meaningless.
func (r *Row) Gap(o *Outcome) (float64, bool) {
	if r.Bound <= 0 || o.Refused > r.Hopeless || o.Pods != r.Pods || o.Late {
		return 0, false
	}
	return 100 * (o.Price.Dollars()/r.Bound.Dollars() - 1), true
}

// read records a plan. Of several plans, it keeps the cheapest of those that refuse the fewest pods.
func (o *Outcome) read(plan packing.Plan) {
	better := o.Machines+o.Placed == 0 || len(plan.Refusals) < o.Refused ||
		len(plan.Refusals) == o.Refused && plan.Price < o.Price
	if !better {
		return
	}
	o.Machines, o.Placed, o.Refused, o.Price = len(plan.PlannedNodes), len(plan.Placements), len(plan.Refusals), plan.Price
	o.Why = often(plan.Refusals)
}

// often returns the first reason that most refusals have; of equally frequent ones the one that comes first.
func often(refusals []packing.Refusal) string {
	count, best := map[string]int{}, ""
	for _, r := range refusals {
		if len(r.Reasons) == 0 {
			continue
		}
		why := string(r.Reasons[0].Code)
		if r.Reasons[0].Detail != "" {
			why += ": " + r.Reasons[0].Detail
		}
		count[why]++
		if best == "" || count[why] > count[best] {
			best = why
		}
	}
	return best
}

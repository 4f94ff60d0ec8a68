package compare

import (
	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Row is a workload and what became of it.
type Row struct {
	Workload workload.Workload
	Skipped  string // why it was not run; empty if it was
	Unasked  string // why upstream was not asked this time; empty if it was, or never is

	Pods    int // that wait
	Classes int // as our solver counts them
	Bound   catalog.Price
	// Hopeless is how many pods fit nowhere, whatever is done.
	Hopeless int
	// Loose says in which way the bound is less than it could be; empty if it
	// bounds just what was asked for.
	Loose string

	Ours   Outcome
	Theirs *Outcome // nil: upstream was not asked
}

// Outcome is how one of the two did.
type Outcome struct {
	Pods    int     // that waited: fewer than the row's where upstream got less
	Prepare float64 // seconds until the plan could be made: what the controller does besides
	Sample          // the median of Runs
	Runs    int
	Workers int  // of upstream
	Late    bool // upstream was stopped; the numbers are those of a part of the plan

	Machines   int
	Placed     int // pods onto nodes that were there
	Refused    int
	Why        string        // the most frequent reason of refusals
	Price      catalog.Price // of the cheapest plan of all runs
	Violations []string      // what the checker says against it; of all runs
	Checked    bool
}

// PodsPerSecond is how many pods were planned for in a second.
func (o *Outcome) PodsPerSecond() float64 {
	if o.Seconds == 0 {
		return 0
	}
	return float64(o.Pods) / o.Seconds
}

// Ratio is how many times longer upstream takes for a pod; 0 if it was not asked.
func (r *Row) Ratio() float64 {
	if r.Theirs == nil || r.Theirs.PodsPerSecond() == 0 {
		return 0
	}
	return r.Ours.PodsPerSecond() / r.Theirs.PodsPerSecond()
}

// Gap is how far the price is above the bound, in percent; false if that says nothing.
func (r *Row) Gap(o *Outcome) (float64, bool) {
	if r.Bound <= 0 || o.Refused > r.Hopeless || o.Pods != r.Pods || o.Late {
		return 0, false
	}
	return 100 * (o.Price.Dollars()/r.Bound.Dollars() - 1), true
}

// read notes what the plan is; of several plans the cheapest counts, of those that refuse least.
func (o *Outcome) read(plan packing.Plan) {
	better := o.Machines+o.Placed == 0 || len(plan.Refusals) < o.Refused ||
		len(plan.Refusals) == o.Refused && plan.Price < o.Price
	if !better {
		return
	}
	o.Machines, o.Placed, o.Refused, o.Price = len(plan.Machines), len(plan.Placements), len(plan.Refusals), plan.Price
	o.Why = often(plan.Refusals)
}

// often is the reason that stands first in most refusals; ties go to the one that comes first.
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

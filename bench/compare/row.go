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
	NotRun   string // why upstream was not run although the workload includes upstream; else empty

	Pods    int           // pending pods
	Classes int           // number of classes (pods with equal requirements) of Joiner's solver
	Bound   catalog.Price // lower bound of the price; see boundOf
	// Unplaceable is the number of pods that no plan can place.
	Unplaceable int
	// BoundScope describes the plans or pods for which the bound is valid; empty if it is valid for all plans for the
	// workload. The text completes the sentence "the bound is that …".
	BoundScope string

	Ours   Outcome  // Joiner's result
	Theirs *Outcome // upstream's result; nil if upstream was not run
}

// Outcome is the result of one of the two schedulers.
type Outcome struct {
	Pods    int     // pending pods; fewer than the row's if upstream got a smaller workload
	Prepare float64 // seconds to prepare the input of the plan from the objects
	Sample          // median of the runs; for upstream, of the runs with this number of Workers
	Runs    int     // number of measured runs
	Workers int     // upstream's number of workers; 0 for Joiner
	Stopped bool    // upstream was stopped at the time limit; the numbers are those of a partial plan

	NewNodes   int           // planned nodes
	Placed     int           // pods on existing nodes
	Refused    int           // pods that the plan does not place
	Reason     string        // the most frequent reason for refusing pods
	Price      catalog.Price // price of the best plan of all runs; see keepBetter
	Violations []string      // findings of the checker in all runs
	Checked    bool          // the checker has checked a plan
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

// Gap returns how far the price is above the lower bound, in percent. It returns false if there is no bound, or if the
// plan does not place all pods that can be placed.
func (r *Row) Gap(o *Outcome) (float64, bool) {
	if r.Bound <= 0 || o.Refused > r.Unplaceable || o.Pods != r.Pods || o.Stopped {
		return 0, false
	}
	return 100 * (o.Price.Dollars()/r.Bound.Dollars() - 1), true
}

// keepBetter records a plan if it is better than the recorded one: it refuses fewer pods, or as many at a lower price.
func (o *Outcome) keepBetter(plan packing.Plan) {
	placesNone := o.NewNodes+o.Placed == 0 // no plan is recorded yet, or one without placements
	better := placesNone || len(plan.Refusals) < o.Refused || len(plan.Refusals) == o.Refused && plan.Price < o.Price
	if !better {
		return
	}
	o.NewNodes, o.Placed, o.Refused, o.Price = len(plan.PlannedNodes), len(plan.Placements), len(plan.Refusals), plan.Price
	o.Reason = mostFrequentReason(plan.Refusals)
}

// mostFrequentReason counts only the first reason of each refusal. On a tie, it returns the reason that reached this
// count first.
func mostFrequentReason(refusals []packing.Refusal) string {
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

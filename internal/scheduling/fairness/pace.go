package fairness

import "time"

// pace states how the duration of a plan changes the limit on the cost of later plans.
type pace struct {
	slow        time.Duration // a longer plan lowers the limit
	fast        time.Duration // a shorter plan doubles the limit, if it cost at least half the limit
	least, most int           // bounds of the limit
}

// The paces of plans and slices. Costs are only estimates, so the limits on them follow the durations of plans.
var (
	planPace  = pace{slow: 3 * time.Second, fast: time.Second, least: 100, most: DefaultShare().MaxPlanCost}
	slicePace = pace{slow: time.Second, fast: 250 * time.Millisecond, least: 1, most: DefaultShare().MaxSliceCost}
)

// AfterPlan returns the share to use after a plan for all pods with this cost and duration.
func (s Share) AfterPlan(cost int, took time.Duration) Share {
	s.MaxPlanCost = planPace.adapt(s.MaxPlanCost, cost, took)
	return s
}

// AfterSlice returns the share to use after a plan of a slice with this cost and duration.
func (s Share) AfterSlice(cost int, took time.Duration) Share {
	s.MaxSliceCost = slicePace.adapt(s.MaxSliceCost, cost, took)
	return s
}

// adapt returns the new limit after a plan with this cost and duration. After a slow plan, the limit is the cost that a
// plan of duration fast would have had.
func (p pace) adapt(limit, cost int, took time.Duration) int {
	switch {
	case took > p.slow:
		fits := float64(cost) * float64(p.fast) / float64(took)
		return max(p.least, min(limit, int(fits)))
	case took < p.fast && cost >= limit/2:
		return min(p.most, 2*limit)
	}
	return limit
}

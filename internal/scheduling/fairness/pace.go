package fairness

import "time"

// pace has the durations of a plan that change the limit of its cost.
type pace struct {
	slow, good  time.Duration // longer than slow cuts the limit; less than good, at half the limit or more, doubles it
	least, most int
}

// The paces of plans and slices. Costs are estimates: when plans take too long, the limits are lowered until plans are fast enough.
var (
	planPace  = pace{slow: 3 * time.Second, good: time.Second, least: 100, most: Usual().Whole}
	slicePace = pace{slow: time.Second, good: 250 * time.Millisecond, least: 1, most: Usual().Slice}
)

// AfterPlan returns the share to use after a plan for all pods with this cost and duration.
func (s Share) AfterPlan(cost int, took time.Duration) Share {
	s.Whole = planPace.adapt(s.Whole, cost, took)
	return s
}

// AfterSlice returns the share to use after a plan of a slice with this cost and duration.
func (s Share) AfterSlice(cost int, took time.Duration) Share {
	s.Slice = slicePace.adapt(s.Slice, cost, took)
	return s
}

func (p pace) adapt(limit, cost int, took time.Duration) int {
	switch {
	case took > p.slow:
		fits := float64(cost) * float64(p.good) / float64(took)
		return max(p.least, min(limit, int(fits)))
	case took < p.good && cost >= limit/2:
		return min(p.most, 2*limit)
	}
	return limit
}

package lifecycle

// Outcomes records whether the last launches of a pool, at most maxOutcomes, led to a node. The zero value has none.
type Outcomes struct {
	failed [maxOutcomes]bool // the latest launch first
	count  int               // number of recorded launches
}

const maxOutcomes = 4

// With returns the outcomes with one more launch. joined reports whether it led to a node.
func (o Outcomes) With(joined bool) Outcomes {
	copy(o.failed[1:], o.failed[:])
	o.failed[0] = !joined
	o.count = min(o.count+1, maxOutcomes)
	return o
}

// Count returns how many launches are recorded, and how many of them failed.
func (o Outcomes) Count() (recorded, failed int) {
	for _, f := range o.failed[:o.count] {
		if f {
			failed++
		}
	}
	return o.count, failed
}

// IsHealthy reports whether fewer than two of the recorded launches failed: less than half of maxOutcomes.
func (o Outcomes) IsHealthy() bool {
	_, failed := o.Count()
	return failed*2 < maxOutcomes
}

// OutcomesOf returns outcomes whose IsHealthy returns healthy. It is for a caller that has stored only the result of
// IsHealthy, not the launches.
func OutcomesOf(healthy bool) Outcomes {
	if healthy {
		return Outcomes{}.With(true)
	}
	return Outcomes{}.With(false).With(false)
}

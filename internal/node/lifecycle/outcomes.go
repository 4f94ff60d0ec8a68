package lifecycle

// Outcomes records whether the last launches of a pool, four at most, led to a node. The zero value has no launches.
type Outcomes struct {
	failed [recorded]bool // the latest launch first
	count  int
}

// recorded is the number of launches that Outcomes keeps.
const recorded = 4

// With returns the outcomes with one more launch. joined reports whether it led to a node.
func (o Outcomes) With(joined bool) Outcomes {
	copy(o.failed[1:], o.failed[:])
	o.failed[0] = !joined
	o.count = min(o.count+1, recorded)
	return o
}

// Count returns how many launches are recorded, and how many of them failed.
func (o Outcomes) Count() (known, failed int) {
	for _, f := range o.failed[:o.count] {
		if f {
			failed++
		}
	}
	return o.count, failed
}

// IsHealthy reports whether fewer than two of the recorded launches failed.
func (o Outcomes) IsHealthy() bool {
	_, failed := o.Count()
	return failed*2 < recorded
}

// OutcomesOf returns outcomes whose IsHealthy returns healthy. The caller has only stored that result, not the
// launches.
func OutcomesOf(healthy bool) Outcomes {
	if healthy {
		return Outcomes{}.With(true)
	}
	return Outcomes{}.With(false).With(false)
}

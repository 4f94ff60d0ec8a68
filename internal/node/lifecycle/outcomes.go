package lifecycle

// Outcomes are how the last launches of a pool ended, four at most: with a node or without. The zero value knows of none.
type Outcomes struct {
	failed [recorded]bool // the latest first
	count  int
}

const recorded = 4

// With returns the outcomes with one more launch, which led to a node or did not.
func (o Outcomes) With(joined bool) Outcomes {
	copy(o.failed[1:], o.failed[:])
	o.failed[0] = !joined
	o.count = min(o.count+1, recorded)
	return o
}

// Count returns how many launches are known of, and how many of them failed.
func (o Outcomes) Count() (known, failed int) {
	for _, f := range o.failed[:o.count] {
		if f {
			failed++
		}
	}
	return o.count, failed
}

// IsHealthy reports whether fewer than two of the last four launches failed, however few are known of.
func (o Outcomes) IsHealthy() bool {
	_, failed := o.Count()
	return failed*2 < recorded
}

// OutcomesOf are outcomes that are healthy or not: what is left of those of which only the verdict was written down.
func OutcomesOf(healthy bool) Outcomes {
	if healthy {
		return Outcomes{}.With(true)
	}
	return Outcomes{}.With(false).With(false)
}

package pending

import "github.com/joiner-sh/joiner/internal/scheduling/packing/dualprice"

// DemandOf returns the class and the accept set under which the lower bound counts the units of class c. A part in its
// first stage is counted under its whole class, if the first stage of the whole class has no preferences: this plan
// chose the domains of the part, but the bound must hold for every plan.
func (q *Queue) DemandOf(c int) (class, set int) {
	own := &q.Classes[c]
	if whole := &q.Classes[own.WholeClass]; own.Domains != nil && q.Stage[c] == 0 && whole.FirstStage == whole.HardSet {
		return own.WholeClass, whole.HardSet
	}
	return c, q.CurrentSet(c)
}

// Demands returns the unplaced units of the active classes, as the lower bound counts them.
func (q *Queue) Demands(active []int) []dualprice.Demand {
	units := map[dualprice.Demand]int{}
	for _, c := range active {
		class, set := q.DemandOf(c)
		dualprice.Add(units, class, set, q.Left[c])
	}
	return dualprice.Sorted(units)
}

// AddBaseDemand adds n units of the class to the demands, without preferences. A part is counted as its whole class,
// and a bundle as its members, unless every plan must put the bundle on one node (OneNodeOnly).
func (q *Queue) AddBaseDemand(units map[dualprice.Demand]int, class, n int) {
	c := &q.Classes[class]
	if c.Members == nil || c.OneNodeOnly {
		dualprice.Add(units, c.WholeClass, q.Classes[c.WholeClass].HardSet, n)
		return
	}
	for _, m := range c.Members {
		q.AddBaseDemand(units, m.Class, n*m.N)
	}
}

package packing

import "github.com/joiner-sh/joiner/internal/scheduling/packing/dualprice"

// demandOf returns the class and the accept set by which the lower bound counts a class. A part
// that could have been assigned to any domain counts as its whole class. The plan chose the
// domains, and the bound must hold for every plan.
func (q *queue) demandOf(c int) (class, set int) {
	p := &q.classes[c]
	if whole := &q.classes[p.base]; p.domains != nil && q.stage[c] == 0 && whole.firstStage == whole.hardSet {
		return p.base, whole.hardSet
	}
	return c, q.currentSet(c)
}

// demands returns the unplaced units of the active classes, as the lower bound counts them.
func (q *queue) demands(active []int) []dualprice.Demand {
	units := map[dualprice.Demand]int{}
	for _, c := range active {
		class, set := q.demandOf(c)
		dualprice.Add(units, class, set, q.left[c])
	}
	return dualprice.Sorted(units)
}

// addBaseDemand adds n units of the whole class that a part belongs to, or of the members of a
// bundle. A bundle that fits no plan on more than one node stays one demand.
func (q *queue) addBaseDemand(units map[dualprice.Demand]int, class, n int) {
	c := &q.classes[class]
	if c.members == nil || c.oneNodeOnly {
		base := &q.classes[c.base]
		dualprice.Add(units, c.base, base.hardSet, n)
		return
	}
	for _, m := range c.members {
		q.addBaseDemand(units, m.class, n*m.n)
	}
}

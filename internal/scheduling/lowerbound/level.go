package lowerbound

import (
	"cmp"
	"slices"
)

// If nodes differ in little but size, the best shares of all kinds come from one price for each unit of
// a resource, and one for a slot of each group. At these prices no node holds more than its own price,
// and the sum over all requests of the pods is as high as possible. They are the duals of a small
// linear program. The ascent alone gets there slowly, because a slot that is scarce on small nodes
// costs nearly nothing on large ones, and has another share on each. So it also starts from these
// prices where several classes are in one group.

const (
	mostLevel   = 16   // groups with a price
	levelRounds = 24   // from there on
	leastShare  = 1e-5 // of what costs nothing there, so that it can come back
)

// level betters the dual prices by the shares that come from one price for each unit.
func (a *ascent) level() {
	if !slices.ContainsFunc(a.classes, func(c class) bool { return c.shared >= 0 }) {
		return
	}
	groups := a.scarce()
	prices, slots := a.unitPrices(groups), a.slotsOf(groups)
	for i := range a.kinds {
		a.share(i, slots[i], groups, prices)
	}
	before := a.value
	if a.round(hardest, true); a.value > before {
		a.climb(levelRounds, rougher, hardest)
	}
}

// group is pods of which one node holds no more than cap.
type group struct {
	number, cap int
	pods        float64
}

// scarce returns those groups whose pods need the most nodes.
func (a *ascent) scarce() []group {
	pods := make([]float64, len(a.problem.Caps))
	for i := range a.classes {
		for _, g := range a.classes[i].groups {
			pods[g] += float64(a.classes[i].count)
		}
	}
	var out []group
	for g, n := range pods {
		if n > 0 && a.problem.Caps[g] > 0 {
			out = append(out, group{g, a.problem.Caps[g], n})
		}
	}
	slices.SortFunc(out, func(x, y group) int {
		return cmp.Or(cmp.Compare(y.pods/float64(y.cap), x.pods/float64(x.cap)), cmp.Compare(x.number, y.number))
	})
	return out[:min(len(out), mostLevel)]
}

// unitPrices returns the price of a unit of each resource, and then of a slot of each group: the duals
// of how many nodes of each kind together have what all pods request.
func (a *ascent) unitPrices(groups []group) []float64 {
	n := len(a.classes[0].ask)
	wanted := make([]float64, n, n+len(groups))
	for i := range a.classes {
		for r, ask := range a.classes[i].ask {
			wanted[r] += ask * float64(a.classes[i].count)
		}
	}
	for _, g := range groups {
		wanted = append(wanted, g.pods)
	}
	s := newSimplex(len(wanted))
	for i := range s.high {
		s.high[i] = mostRise * a.value
	}
	s.reprice()
	for i := range a.kinds {
		c := column{cost: a.kinds[i].price}
		for row, all := range wanted {
			var has float64
			if row < n {
				has = a.kinds[i].room[row]
			} else {
				has = float64(groups[row-n].cap)
			}
			if all > 0 && has > 0 {
				c.rows, c.values = append(c.rows, int32(row)), append(c.values, has/all)
			}
		}
		s.columns = append(s.columns, c)
	}
	s.solve()
	out := make([]float64, len(wanted))
	for i, all := range wanted {
		if all > 0 {
			out[i] = max(s.price[i], 0) / all
		}
	}
	return out
}

// mostRise is how many times what was proved before all that is wanted of one thing may be taken to cost.
const mostRise = 8

// slotsOf returns, by kind, the slot for each of the groups, or -1.
func (a *ascent) slotsOf(groups []group) [][]int32 {
	out, at := grid[int32](len(a.kinds), len(groups)), map[int]int{}
	for i := range out {
		for n := range out[i] {
			out[i][n] = -1
		}
	}
	for n, g := range groups {
		at[g.number] = n
	}
	for c := range a.classes {
		for n, g := range a.classes[c].groups {
			i, ok := at[g]
			if !ok {
				continue
			}
			for _, o := range a.options[c] {
				out[o.kind][i] = a.takes[c][int(o.from)+n].slot // those for groups come first
			}
		}
	}
	return out
}

// share sets the shares of a kind to what its room and its slots come to at those prices.
func (a *ascent) share(i int, slots []int32, groups []group, prices []float64) {
	k, shares := &a.kinds[i], a.shares[i]
	least, total := leastShare*k.price, 0.0
	for r, room := range k.room {
		a.pace[i][r], shares[r] = pace{speed: 1}, room*prices[r]+least
		total += shares[r]
	}
	for _, n := range a.live[i] {
		a.slots[i][n].pace, a.slots[i][n].share = pace{speed: 1}, least
		total += least
	}
	for n, s := range slots {
		if s >= 0 {
			paid := prices[len(k.room)+n] * float64(groups[n].cap)
			a.slots[i][s].share += paid
			total += paid
		}
	}
	for r := range shares {
		shares[r] /= total
	}
	for _, n := range a.live[i] {
		a.slots[i][n].share /= total
	}
	a.price(i)
}

package lowerbound

import (
	"cmp"
	"slices"
)

// If nodes differ mainly in size, the best shares of a node's price (see ascent) follow from a few prices: one for a
// unit of each resource, and one for a slot of each group. At these prices, the room and slots of a node never cost
// more than the node, and all requests of the pods together cost as much as possible. The prices are the duals of a
// small linear program. The ascent alone finds the best shares slowly, because they differ by kind: a slot can be a
// large part of the price of a small node, and a tiny part of the price of a large node. So the ascent also starts from
// these prices if several classes are in one group.

const (
	maxPricedGroups = 16   // maximum number of groups for whose slots there is a price
	unitPriceRounds = 24   // rounds of the ascent from these prices
	minShare        = 1e-5 // minimum share of a resource with price 0, so that its share can grow again
)

// climbFromUnitPrices improves the dual prices, starting from the shares that follow from the unit prices. It does
// nothing if no two classes are in one group, and stops after one round if that round proves no higher bound.
func (a *ascent) climbFromUnitPrices() {
	if !slices.ContainsFunc(a.classes, func(c class) bool { return c.shared >= 0 }) {
		return
	}
	groups := a.scarceGroups()
	prices, slots := a.unitPrices(groups), a.slotsOf(groups)
	for i := range a.kinds {
		a.setShares(i, slots[i], groups, prices)
	}
	before := a.value
	if a.round(endSoftness, true); a.value > before {
		a.climb(unitPriceRounds, roughEndSoftness, endSoftness)
	}
}

// group is a set of pods of which one node holds at most cap.
type group struct {
	number, cap int     // index into Problem.Caps, and that cap
	pods        float64 // number of pods
}

// scarceGroups returns the groups whose pods need the most nodes, at most maxPricedGroups of them.
func (a *ascent) scarceGroups() []group {
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
	return out[:min(len(out), maxPricedGroups)]
}

// unitPrices returns the price of a unit of each resource, followed by the price of a slot of each group. They are
// the duals of the linear program that chooses numbers of nodes of each kind whose room covers all requests.
func (a *ascent) unitPrices(groups []group) []float64 {
	n := len(a.classes[0].ask)
	wanted := make([]float64, n, n+len(groups)) // by resource: all requests; then by group: all pods
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
		s.high[i] = maxRise * a.value
	}
	s.reprice()
	for i := range a.kinds {
		c := column{cost: a.kinds[i].price}
		for row, total := range wanted {
			var room float64 // of one node, or its number of slots
			if row < n {
				room = a.kinds[i].room[row]
			} else {
				room = float64(groups[row-n].cap)
			}
			if total > 0 && room > 0 {
				c.rows, c.values = append(c.rows, int32(row)), append(c.values, room/total)
			}
		}
		s.columns = append(s.columns, c)
	}
	s.solve()
	out := make([]float64, len(wanted))
	for i, total := range wanted {
		if total > 0 {
			out[i] = max(s.price[i], 0) / total
		}
	}
	return out
}

// maxRise limits the price of all requests for one resource, or of all slots for one group, in multiples of the bound
// that was proved before.
const maxRise = 8

// slotsOf returns, by kind and by position in groups, the index of the kind's slots for the group; -1 if it has none.
func (a *ascent) slotsOf(groups []group) [][]int32 {
	out, position := grid[int32](len(a.kinds), len(groups)), map[int]int{} // position: in groups, by number
	for i := range out {
		for n := range out[i] {
			out[i][n] = -1
		}
	}
	for n, g := range groups {
		position[g.number] = n
	}
	for c := range a.classes {
		for i, number := range a.classes[c].groups {
			n, ok := position[number]
			if !ok {
				continue
			}
			for _, o := range a.options[c] {
				out[o.kind][n] = a.slotUses[c][int(o.from)+i].slot // slots for groups come first
			}
		}
	}
	return out
}

// setShares sets the shares of the kind with index i in proportion to the prices of its room and its slots. prices is
// the result of unitPrices.
func (a *ascent) setShares(i int, slots []int32, groups []group, prices []float64) {
	k, shares := &a.kinds[i], a.shares[i]
	least, total := minShare*k.price, 0.0
	for r, room := range k.room {
		a.pace[i][r], shares[r] = pace{speed: 1}, room*prices[r]+least
		total += shares[r]
	}
	for _, n := range a.usedSlots[i] {
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
	for _, n := range a.usedSlots[i] {
		a.slots[i][n].share /= total
	}
	a.updateRates(i)
}

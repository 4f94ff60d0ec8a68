package packing

import (
	"cmp"
	"math"
	"slices"
)

// reopenFractions are divisors of the plan's price: that fraction of it is planned again, small
// fractions first.
var reopenFractions = [...]float64{32, 16, 8, 4, 2}

// improveRatio is the price, relative to the previous round, below which improve does another
// round.
const improveRatio = 0.998

// improve removes planned nodes, lets their pods fill gaps on the others, and plans new nodes for
// the rest, as long as that makes the plan cheaper. It first removes the nodes with the highest
// price per value. Then it removes the most expensive ones: the rest of a large full node needs a
// smaller node.
func (pl *planner) improve(o outcome, classes []int, lots []lot, stepLimit int) outcome {
	defer func(prices []float64) { pl.dualPrice = prices }(pl.dualPrice)
	r := pl.newRun(o.strategy, o.left, o.budgets)
	r.planned, r.lots = o.planned, pl.priceLots(classes, lots, o.strategy.hardPrices)
	price := r.totalPrice()
	for before := math.Inf(1); price < before*improveRatio; {
		before = price
		for _, order := range [...]func(a, b plannedNode) int{byPricePerValue, byPrice} {
			for _, parts := range reopenFractions {
				for r.steps <= stepLimit {
					next := r.reopen(price/parts, classes, order)
					cheaper := next.totalPrice()
					if next.leavesMore(r) || cheaper >= price {
						break
					}
					r, price = next, cheaper
				}
			}
		}
	}
	return r.outcome()
}

func byPricePerValue(a, b plannedNode) int { return cmp.Compare(b.pricePerValue(), a.pricePerValue()) }

func byPrice(a, b plannedNode) int { return cmp.Compare(b.price, a.price) }

// reopen returns a run that planned again for the pods of the first nodes in that order: nodes of
// that total price, at least two.
func (r *strategyRun) reopen(amount float64, classes []int, order func(a, b plannedNode) int) *strategyRun {
	next := r.planner.newRun(r.strategy, slices.Clone(r.left), cloneBudgets(r.budgets))
	next.lots = r.lots
	first := slices.Clone(r.planned)
	slices.SortStableFunc(first, order)
	count := 0
	for _, m := range first {
		n := 0
		for n < m.copies && (amount > 0 || count < 2) {
			amount -= m.price
			count++
			n++
		}
		next.unassign(&m, n)
		if m.copies -= n; m.copies > 0 {
			next.planned = append(next.planned, m)
		}
	}
	next.planned = next.topUp(next.planned, classes)
	next.addNodes(classes, 0)
	return next
}

// pricePerValue is the node's price per dual price of its pods.
func (m *plannedNode) pricePerValue() float64 { return m.price / max(m.value, 1e-9) }

// unassign returns the pods of n copies of the node to the unplaced ones.
func (r *strategyRun) unassign(m *plannedNode, n int) {
	for _, a := range m.allocations {
		r.left[a.class] += a.n * n
	}
	r.budgets[r.stock.VariantOf(m.offer).Pool].Spend(r.stock.TypeOf(m.offer).Capacity, -n)
}

// totalPrice returns the price of all nodes.
func (r *strategyRun) totalPrice() float64 {
	sum := 0.0
	for _, m := range r.planned {
		sum += float64(m.copies) * m.price
	}
	return sum
}

// leavesMore reports whether the run leaves more pods of some class unplaced than other does.
func (r *strategyRun) leavesMore(other *strategyRun) bool {
	for c := range r.left {
		if r.left[c] > other.left[c] {
			return true
		}
	}
	return false
}

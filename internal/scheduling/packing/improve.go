package packing

import (
	"cmp"
	"math"
	"slices"
)

// reopenDivisors determine how many nodes improve plans again at once: nodes that together cost 1/32 of the plan's
// price, then 1/16, and so on.
var reopenDivisors = [...]float64{32, 16, 8, 4, 2}

// improveRatio is the price after a round, relative to the price before, below which improve makes another round.
const improveRatio = 0.998

// improve removes planned nodes, places their pods in gaps on other nodes, and plans new nodes for the remaining pods.
// It continues as long as the plan becomes cheaper, and returns the new outcome. The nodes with the highest price per
// value are removed first, then the most expensive nodes: if some pods of a large full node fit into gaps, the other
// pods of that node need only a smaller node.
func (nc nodeChooser) improve(o outcome, classes []int, lots []lot, stepLimit int) outcome {
	defer func(prices []float64) { nc.prices.dualPrice = prices }(nc.prices.dualPrice)
	run := nc.newRun(o.strategy, o.left, o.remaining)
	run.planned, run.lots = o.planned, nc.prices.priceLots(classes, lots, o.strategy.hardPrices)
	price := run.totalPrice()
	for before := math.Inf(1); price < before*improveRatio; {
		before = price
		for _, order := range [...]func(a, b plannedNode) int{byPricePerValue, byPrice} {
			for _, divisor := range reopenDivisors {
				for run.work.steps <= stepLimit {
					next := run.reopen(price/divisor, classes, order)
					nextPrice := next.totalPrice()
					if next.leavesMore(run) || nextPrice >= price {
						break
					}
					run, price = next, nextPrice
				}
			}
		}
	}
	return run.outcome()
}

// byPricePerValue compares nodes: the highest price per value first.
func byPricePerValue(a, b plannedNode) int { return cmp.Compare(b.pricePerValue(), a.pricePerValue()) }

// byPrice compares nodes: the most expensive first.
func byPrice(a, b plannedNode) int { return cmp.Compare(b.price, a.price) }

// reopen returns a copy of the run in which the first nodes by the given order are removed and their pods planned
// again. It removes at least two nodes, and more until their total price reaches amount.
func (run *strategyRun) reopen(amount float64, classes []int, order func(a, b plannedNode) int) *strategyRun {
	next := newNodeChooser(run.sol).newRun(run.strategy, slices.Clone(run.filler.left), cloneRemaining(run.remaining))
	next.lots = run.lots
	nodes := slices.Clone(run.planned)
	slices.SortStableFunc(nodes, order)
	count := 0
	for _, pn := range nodes {
		n := 0
		for n < pn.copies && (amount > 0 || count < 2) {
			amount -= pn.price
			count++
			n++
		}
		next.unassign(&pn, n)
		if pn.copies -= n; pn.copies > 0 {
			next.planned = append(next.planned, pn)
		}
	}
	next.planned = next.filler.topUp(next.planned, classes)
	next.addNodes(classes, 0)
	return next
}

func (pn *plannedNode) pricePerValue() float64 { return pn.price / max(pn.value, 1e-9) }

// unassign makes the pods of n copies of the node unplaced again, and adds the resources of the copies back to the
// NodePool's remaining limits.
func (run *strategyRun) unassign(pn *plannedNode, n int) {
	for _, a := range pn.allocations {
		run.filler.left[a.class] += a.n * n
	}
	run.remaining[run.problem.Stock.VariantOf(pn.offer).Pool].Subtract(run.problem.Stock.TypeOf(pn.offer).Capacity, -n)
}

func (run *strategyRun) totalPrice() float64 {
	sum := 0.0
	for _, pn := range run.planned {
		sum += float64(pn.copies) * pn.price
	}
	return sum
}

// leavesMore reports whether the run leaves more pods of some class unplaced than other does.
func (run *strategyRun) leavesMore(other *strategyRun) bool {
	for c := range run.filler.left {
		if run.filler.left[c] > other.filler.left[c] {
			return true
		}
	}
	return false
}

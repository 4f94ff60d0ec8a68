package packing

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/dualprice"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
)

// strategy is one method to choose new nodes.
type strategy struct {
	savesLimits  bool // use as little of the NodePools' limits as possible, regardless of price
	hardPrices   bool // use the hard dual prices (last rounds of the lower bound), not the soft ones (first rounds)
	refinesNodes bool // see filler.refine; takes more work
	byPriority   bool // place pods of higher priority first instead of all together
	spreadOut    bool // put at most classFacts.maxShare units of a class on one node
}

type outcome struct {
	strategy  strategy
	planned   []plannedNode
	left      []int                      // by class: number of unplaced units
	remaining []offering.RemainingLimits // by NodePool: its remaining limits
	price     float64                    // of all planned nodes, in billionths of a dollar per hour
	count     int                        // number of planned nodes, with copies
	crowded   int                        // units above a quarter of their class on one node, summed over all nodes
}

// nodeChooser chooses which nodes to launch, and places pods on them.
type nodeChooser struct {
	problem *pending.Problem
	queue   *pending.Queue
	prices  *pricer
	work    *work
	sol     *solution
}

func newNodeChooser(sol *solution) nodeChooser {
	return nodeChooser{problem: sol.problem, queue: sol.queue, prices: sol.prices, work: sol.work, sol: sol}
}

// placeOnNewNodes plans new nodes until every pod is placed or no offering is left to try. Each
// class starts with its first stage. Units that cannot be placed within limits continue with the next stage.
func (nc nodeChooser) placeOnNewNodes() {
	for round := 1; ; round++ {
		active := nc.queue.Active()
		if len(active) == 0 || nc.work.steps > nc.work.limit {
			return
		}
		if len(nc.sol.planned) > 0 {
			f := newFiller(nc.sol, nc.queue.Left)
			nc.sol.planned = f.topUp(nc.sol.planned, active)
		}
		newReservationFiller(nc.sol).fillReservations(active)
		nc.chooseNodes(active)
		for _, c := range active {
			switch {
			case nc.queue.Left[c] == 0:
			case round < maxRounds:
				nc.queue.DropPreference(c)
			default:
				nc.queue.DropAllPreferences(c)
			}
		}
	}
}

// maxRounds is the number of rounds after which a class drops all its remaining preferences at once.
const maxRounds = 48

// chooseNodes plans new nodes for the active classes. It compares the outcomes of several strategies, and of
// improvements of the cheapest outcome, and adds the nodes of the best outcome to the solution.
func (nc nodeChooser) chooseNodes(active []int) {
	p := nc.prices.solver.For(nc.queue.Demands(active), false)
	p.Start() // the bound is computed while the first strategy runs
	nc.prices.priceClasses(active)
	lots := lotsFor(nc.problem, active, nc.queue.CurrentSet)
	if o, ok := nc.solveExactly(active, lots); ok {
		nc.sol.addOutcome(nc.bestOutcome([]outcome{o, nc.runStrategy(strategy{spreadOut: true}, active, lots)}, active, p))
		return
	}
	// A plan that is close to the lower bound and spreads the classes cannot be improved much.
	stepLimit := nc.stepLimit(active)
	outcomes, found := nc.tryStrategies([]strategy{{spreadOut: true}, {spreadOut: true, refinesNodes: true}, {refinesNodes: true}},
		active, lots, p, stepLimit)
	if !found && nc.queue.LeavesPods(outcomes[0].left, active) {
		for _, s := range nc.limitStrategies(active) {
			outcomes = append(outcomes, nc.runStrategy(s, active, lots))
		}
	}
	if !found && nc.cheapestOutcome(outcomes, active).price > p.BoundTimes(retryGap) && nc.work.steps < stepLimit {
		more, done := nc.tryStrategies([]strategy{{spreadOut: true, hardPrices: true},
			{spreadOut: true, hardPrices: true, refinesNodes: true}, {hardPrices: true, refinesNodes: true}}, active, lots, p, stepLimit)
		outcomes, found = append(outcomes, more...), done
	}
	if found {
		nc.sol.addOutcome(outcomes[len(outcomes)-1])
		return
	}
	best := nc.bestOutcome(outcomes, active, p)
	if best.price > p.BoundTimes(targetGap) && nc.work.steps < stepLimit {
		outcomes = append(outcomes, nc.improve(nc.cheapestOutcome(outcomes, active), active, lots, stepLimit))
		best = nc.bestOutcome(outcomes, active, p)
	}
	if best.price > p.BoundTimes(targetGap) {
		least := nc.cheapestOutcome(outcomes, active)
		if exchanged := nc.exchangePods(least,
			nc.work.steps+int(exchangeShare*float64(nc.stepLimit(active)-nc.work.steps))); exchanged.price < least.price {
			best = nc.bestOutcome(append(outcomes, exchanged), active, p)
		}
	}
	nc.sol.addOutcome(best)
}

// stepLimit returns the step count after which no further strategy is tried. The limit grows with the number of
// unplaced units, because the possible savings grow too, and a few pods should not wait long.
func (nc nodeChooser) stepLimit(active []int) int {
	units := 0
	for _, c := range active {
		units = min(units+nc.queue.Left[c], maxStepLimitUnits)
	}
	return min(nc.work.steps+units*(2000+16*units), nc.work.limit/2)
}

// maxStepLimitUnits is the number of units up to which the step limit grows. For this number of units, the limit
// is about 60 million steps, 1900 × (2000 + 16 × 1900), which take two seconds.
const maxStepLimitUnits = 1900

// tryStrategies runs the strategies in order until an outcome is good enough: it places all pods, crowded is 0, and its
// price is within targetGap of the lower bound. tryStrategies returns all outcomes, and reports whether the last one is
// good enough.
func (nc nodeChooser) tryStrategies(all []strategy, active []int, lots []lot, p *dualprice.Pricing, stepLimit int) ([]outcome, bool) {
	var out []outcome
	for _, s := range all {
		if len(out) > 0 && nc.work.steps > stepLimit {
			break
		}
		o := nc.runStrategy(s, active, lots)
		out = append(out, o)
		if o.price <= p.BoundTimes(targetGap) && o.crowded == 0 && !nc.queue.LeavesPods(o.left, active) {
			return out, true
		}
	}
	return out, false
}

// cheapestOutcome returns the cheapest of the outcomes that leave the fewest pods unplaced.
func (nc nodeChooser) cheapestOutcome(outcomes []outcome, active []int) outcome {
	return slices.MinFunc(outcomes, func(a, b outcome) int {
		return cmp.Or(nc.queue.CompareUnplaced(a.left, b.left, active), cmp.Compare(a.price, b.price))
	})
}

// targetGap is the maximum price, relative to the lower bound, of a plan that is accepted without
// further search.
const targetGap = 1.025

// retryGap is the price, relative to the lower bound, above which the hard dual prices are tried
// after the soft ones.
const retryGap = 1.04

// limitStrategies returns the strategies to try when a strategy leaves pods unplaced, probably because of
// NodePool limits. The classes are sorted by priority.
func (nc nodeChooser) limitStrategies(active []int) []strategy {
	out := []strategy{{savesLimits: true}}
	if classes := nc.queue.Classes; classes[active[0]].Priority != classes[active[len(active)-1]].Priority {
		out = append(out, strategy{byPriority: true}, strategy{byPriority: true, savesLimits: true})
	}
	return out
}

// priceTolerance is the price, relative to the cheapest plan, up to which other criteria decide
// between plans.
const priceTolerance = 1.02

// bestOutcome returns the outcome that leaves the fewest pods of the highest priority unplaced. Of several such
// outcomes, those within priceTolerance of the cheapest are compared: the one with the fewest crowded pods is chosen,
// then the one with the fewest nodes.
//
// The chosen plan costs at most priceTolerance times the lower bound or, if every plan costs more than that, no more
// than the cheapest plan.
func (nc nodeChooser) bestOutcome(outcomes []outcome, active []int, p *dualprice.Pricing) outcome {
	slices.SortStableFunc(outcomes, func(a, b outcome) int {
		return cmp.Or(nc.queue.CompareUnplaced(a.left, b.left, active), cmp.Compare(a.price, b.price))
	})
	best := outcomes[0]
	maxPrice := min(best.price*priceTolerance, max(best.price, p.BoundTimes(priceTolerance)))
	for _, o := range outcomes[1:] {
		if nc.queue.CompareUnplaced(o.left, outcomes[0].left, active) != 0 || o.price > maxPrice {
			continue
		}
		if cmp.Or(cmp.Compare(o.crowded, best.crowded), cmp.Compare(o.count, best.count)) < 0 {
			best = o
		}
	}
	return best
}

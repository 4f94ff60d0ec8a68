package packing

import (
	"container/heap"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
	"github.com/joiner-sh/joiner/internal/scheduling/parallel"
)

// strategyRun is the state of one strategy while it is tried.
type strategyRun struct {
	filler  filler
	sol     *solution
	problem *pending.Problem
	queue   *pending.Queue
	prices  *pricer
	work    *work

	strategy   strategy
	lots       []lot
	remaining  []offering.RemainingLimits
	planned    []plannedNode
	rowsByMark map[uint64]*candidateRows // by offering.Lot.Mark: the classes that accept lots with the mark
	lastFilled map[int]plannedNode       // by offering: the node as it was last filled
}

// newRun returns a run of the strategy without nodes. The run changes left and remaining.
func (nc nodeChooser) newRun(s strategy, left []int, remaining []offering.RemainingLimits) *strategyRun {
	f := newFiller(nc.sol, left)
	f.refinesNodes, f.spreadOut = s.refinesNodes, s.spreadOut
	return &strategyRun{
		filler:    f,
		sol:       nc.sol,
		problem:   nc.problem,
		queue:     nc.queue,
		prices:    nc.prices,
		work:      nc.work,
		strategy:  s,
		remaining: remaining,
	}
}

// runStrategy plans nodes for the active classes with one strategy, and returns the outcome. Of the solution,
// it changes only the number of steps.
func (nc nodeChooser) runStrategy(s strategy, active []int, lots []lot) outcome {
	defer func(prices []float64) { nc.prices.dualPrice = prices }(nc.prices.dualPrice)
	run := nc.newRun(s, slices.Clone(nc.queue.Left), cloneRemaining(nc.sol.remaining))
	run.lots = nc.prices.priceLots(active, lots, s.hardPrices)
	tiers := [][]int{active}
	if s.byPriority {
		tiers = nc.queue.TiersOf(active)
	}
	rounds := repriceRounds
	if len(tiers) > maxRepricedTiers {
		rounds = 0
	}
	for _, tier := range tiers {
		run.planned = run.filler.topUp(run.planned, tier)
		for range rounds {
			run.addNodes(tier, repriceAt)
			run.lots = nc.prices.repriceLots(tier, run.filler.left, run.lots, s.hardPrices)
		}
		run.addNodes(tier, 0)
	}
	return run.outcome()
}

// When a run computes the dual prices again.
const (
	repriceAt     = 0.4 // when at most this part of the unplaced pods' total dual price is left to place
	repriceRounds = 2   // how many times

	maxRepricedTiers = 64 // with more priorities, dual prices are not computed again, because few pods share a priority
)

// addNodes repeatedly adds the node with the lowest price per value. The value of a node, or of unplaced pods, is the
// total dual price of the pods. addNodes stops when the value of the classes' unplaced pods has fallen to
// stopAt times the initial value. It also stops when no node takes a pod, or when the limit of steps is exceeded.
func (run *strategyRun) addNodes(classes []int, stopAt float64) {
	lots := lotQueue(slices.Clone(run.lots))
	heap.Init(&lots)
	run.work.steps += len(lots)
	run.rowsByMark, run.lastFilled = map[uint64]*candidateRows{}, map[int]plannedNode{}
	value := 0.0 // of the unplaced pods
	for _, c := range classes {
		value += float64(run.filler.left[c]) * run.prices.dualPrice[c]
	}
	rest := stopAt * value
	defer run.computePrices()
	for count := 1; (stopAt == 0 || value > rest) && run.work.steps <= run.work.limit; count++ {
		pn, ok := run.bestNode(&lots, classes, value)
		if !ok {
			return
		}
		value -= run.addCopies(pn)
		if count%32 == 0 { // often enough to keep rows short, rarely enough to cost little
			for _, candidates := range run.rowsByMark {
				candidates.dropPlaced(run.filler.left)
			}
		}
	}
}

func (run *strategyRun) computePrices() {
	parallel.Each(len(run.planned), func(i int) {
		if pn := &run.planned[i]; pn.price == 0 {
			pn.price = run.sol.nodeOffers.cheapestPrice(pn)
		}
	})
}

// acceptRatio ends the search of bestNode: no further lot is checked once the lowest price per value is at most
// acceptRatio times the lowest key of the unchecked lots. It is above 1 to save work: a node may be 0.3 % more
// expensive than the best.
const acceptRatio = 1.003

// bestNode returns the node with the lowest price per value. It returns false if no node takes a pod. total is
// the value of all unplaced pods of the classes.
//
// A lot's key is a lower limit of its price per value: the price per value when it was last filled, or an
// estimate before that. The price per value only grows as fewer pods are left, and stays the same while the
// same node can be added again. So lots are checked in order of their keys, until no key is lower than the
// lowest price per value found.
func (run *strategyRun) bestNode(lots *lotQueue, classes []int, total float64) (plannedNode, bool) {
	var best plannedNode
	var tried []lot
	ratio := math.Inf(1)
	for lots.Len() > 0 && (*lots)[0].key*acceptRatio < ratio {
		l := heap.Pop(lots).(lot)
		run.work.steps += 4 // about the logarithm of the queue's length
		cost := run.scoreCost(l)
		if lowest := cost / max(total, 1e-300); lowest >= ratio { // as if the node took all unplaced pods
			l.key = max(l.key, lowest)
			tried = append(tried, l)
			continue
		}
		pn, ok := run.lastFilled[l.Offer]
		if !ok || !run.canRepeat(&pn) {
			pn = run.fillNode(l, classes, cost, ratio)
			if pn.value == 0 {
				continue // the node takes no unplaced pods
			}
			run.lastFilled[l.Offer] = pn
		}
		l.key = cost / pn.value
		tried = append(tried, l)
		if l.key < ratio {
			best, ratio = pn, l.key
		}
	}
	for _, l := range tried {
		heap.Push(lots, l)
	}
	return best, len(best.allocations) > 0
}

// canRepeat reports whether one more node with the same pods can be added.
func (run *strategyRun) canRepeat(pn *plannedNode) bool {
	lacksUnits := func(a allocation) bool { return run.filler.left[a.class] < a.n }
	return !slices.ContainsFunc(pn.allocations, lacksUnits) && run.isWithinLimits(pn.offer)
}

func (run *strategyRun) isWithinLimits(offer int) bool {
	return run.remaining[run.problem.Stock.VariantOf(offer).Pool].MaxNodes(run.problem.Stock.TypeOf(offer).Capacity, 1) > 0
}

// scoreCost returns the price of a node of the lot, for comparison. If the strategy saves limits, the share of
// the remaining limits that the node would use decides first, and the price second.
func (run *strategyRun) scoreCost(l lot) float64 {
	price := max(l.Price, 1)
	if !run.strategy.savesLimits {
		return price
	}
	pool := run.problem.Stock.VariantOf(l.Offer).Pool
	return price + aboveAnyPrice*run.remaining[pool].Share(run.problem.Stock.TypeOf(l.Offer).Capacity)
}

// refineGain is the lowest price per value that refining a node is expected to reach, relative to the price
// per value before.
const refineGain = 0.92

// fillNode returns a node of the lot, filled with pods of the classes; without pods if a limit forbids the node.
// It refines the node if the strategy refines nodes and this could bring the price per value below ratio.
func (run *strategyRun) fillNode(l lot, classes []int, cost, ratio float64) plannedNode {
	shape := run.problem.Stock.ShapeOf(l.Offer)
	pn := plannedNode{offer: l.Offer, copies: 1, free: shape.Room.Clone(), ports: daemonPorts(shape)}
	if run.isWithinLimits(l.Offer) {
		candidates, ok := run.rowsByMark[l.Mark]
		if !ok {
			candidates = run.filler.facts.groupRows(run.filler.acceptingClasses(l.Offer, classes))
			run.rowsByMark[l.Mark] = candidates
		}
		pn.countDaemonPods(run.queue) // before the clone, which must include these pods
		empty := pn.clone()
		run.filler.fill(&pn, candidates)
		if run.filler.refinesNodes && pn.value > 0 && cost/pn.value*refineGain < ratio {
			run.filler.refine(&pn, empty, candidates)
		}
	}
	return pn
}

// addCopies adds the node as often as pods and limits allow, and returns the total dual price of the pods of
// all copies.
func (run *strategyRun) addCopies(pn plannedNode) float64 {
	pn.copies = math.MaxInt
	for _, a := range pn.allocations {
		pn.copies = min(pn.copies, run.filler.left[a.class]/a.n)
	}
	pool, size := run.problem.Stock.VariantOf(pn.offer).Pool, run.problem.Stock.TypeOf(pn.offer).Capacity
	pn.copies = run.remaining[pool].MaxNodes(size, pn.copies)
	run.remaining[pool].Subtract(size, pn.copies)
	for _, a := range pn.allocations {
		run.filler.left[a.class] -= a.n * pn.copies
	}
	run.planned = append(run.planned, pn)
	return pn.value * float64(pn.copies)
}

// outcome returns the nodes that the run planned, with their price and the other criteria of bestOutcome.
func (run *strategyRun) outcome() outcome {
	run.filler.facts.refreshFacts()
	o := outcome{strategy: run.strategy, planned: run.planned, left: run.filler.left, remaining: run.remaining}
	for i := range run.planned {
		pn := &run.planned[i]
		o.count += pn.copies
		o.price += float64(pn.copies) * pn.price
		for _, a := range pn.allocations {
			o.crowded += pn.copies * max(0, a.n-run.filler.facts.maxShare[a.class])
		}
	}
	return o
}

// acceptingClasses returns the classes that have units to place and accept the offering in their current stage.
func (f *filler) acceptingClasses(offer int, classes []int) []int {
	var out []int
	for _, c := range classes {
		if set := f.queue.CurrentSet(c); set >= 0 && f.left[c] > 0 && f.problem.Accepts.Sets[set].Has(offer) {
			out = append(out, c)
		}
	}
	return out
}

// topUp adds pods of the classes to planned nodes with free room, and returns all nodes. If pods are left only
// for some copies of a node, it splits the node in two.
func (f *filler) topUp(nodes []plannedNode, classes []int) []plannedNode {
	var out []plannedNode
	classes = slices.DeleteFunc(slices.Clone(classes), func(c int) bool { return f.left[c] == 0 })
	if len(classes) == 0 {
		return nodes
	}
	for _, pn := range nodes {
		candidates := f.facts.groupRows(f.acceptingClasses(pn.offer, classes))
		for pn.copies > 0 {
			more := pn.clone()
			if f.fill(&more, candidates) == 0 {
				out = append(out, pn)
				break
			}
			for i, a := range more.allocations {
				if added := a.n - pn.unitsAt(i); added > 0 {
					more.copies = min(more.copies, f.left[a.class]/added)
				}
			}
			for i, a := range more.allocations {
				f.left[a.class] -= (a.n - pn.unitsAt(i)) * more.copies
			}
			more.price = f.sol.nodeOffers.cheapestPrice(&more)
			out = append(out, more)
			pn.copies -= more.copies
		}
	}
	return out
}

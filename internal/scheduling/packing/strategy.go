package packing

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/offering"
)

// strategy is one method to choose new nodes.
type strategy struct {
	sparing    bool // use as little of the NodePools' limits as possible, at any price
	hardPrices bool // use the dual prices of the last rounds of the lower bound, instead of the first (soft) ones
	careful    bool // refine each node; takes more work
	byPriority bool // place pods of higher priority first instead of all together
	spreadOut  bool // put no large part of a class on one node unless there is no other choice
}

// outcome is the result of one strategy.
type outcome struct {
	strategy strategy
	planned  []plannedNode
	left     []int
	budgets  []offering.Budget
	price    float64
	count    int
	crowded  int // pods above a quarter of their class on one node
}

// placeOnNewNodes plans new nodes until every pod is placed or no offering is left to try. Each
// class starts with its first stage. Units that limits keep out continue with the next stage.
func (pl *planner) placeOnNewNodes() {
	for round := 1; ; round++ {
		active := pl.active()
		if len(active) == 0 || pl.steps > pl.effort {
			return
		}
		if len(pl.planned) > 0 {
			f := filler{planner: pl, left: pl.left}
			pl.planned = f.topUp(pl.planned, active)
		}
		pl.fillReservations(active)
		pl.chooseNodes(active)
		for _, c := range active {
			switch {
			case pl.left[c] == 0:
			case round < maxRounds:
				pl.dropPreference(c)
			default:
				pl.dropAllPreferences(c)
			}
		}
	}
}

// maxRounds is the round after which a class drops all its remaining preferences at once.
const maxRounds = 48

// chooseNodes plans new nodes for the active classes with the strategy that has the best outcome.
func (pl *planner) chooseNodes(active []int) {
	p := pl.pricingFor(pl.demands(active), false)
	p.start() // the bound is computed while the first strategy runs
	pl.priceClasses(active)
	lots := pl.lotsFor(active, pl.currentSet)
	if o, ok := pl.solveExactly(active, lots); ok {
		pl.adopt(pl.bestOutcome([]outcome{o, pl.runStrategy(strategy{spreadOut: true}, active, lots)}, active, p))
		return
	}
	// A plan that spreads the classes well, at a price close to the lower bound, cannot be
	// improved. A more expensive one is worth more work.
	stepLimit := pl.stepLimit(active)
	outcomes, found := pl.tryStrategies([]strategy{{spreadOut: true}, {spreadOut: true, careful: true}, {careful: true}}, active, lots, p, stepLimit)
	if !found && pl.leavesPods(outcomes[0], active) {
		for _, s := range pl.limitStrategies(active) {
			outcomes = append(outcomes, pl.runStrategy(s, active, lots))
		}
	}
	if !found && pl.cheapestOutcome(outcomes, active).price > p.boundTimes(retryGap) && pl.steps < stepLimit {
		more, done := pl.tryStrategies([]strategy{{spreadOut: true, hardPrices: true}, {spreadOut: true, hardPrices: true, careful: true}, {hardPrices: true, careful: true}}, active, lots, p, stepLimit)
		outcomes, found = append(outcomes, more...), done
	}
	if found {
		pl.adopt(outcomes[len(outcomes)-1])
		return
	}
	best := pl.bestOutcome(outcomes, active, p)
	if best.price > p.boundTimes(targetGap) && pl.steps < stepLimit {
		outcomes = append(outcomes, pl.improve(pl.cheapestOutcome(outcomes, active), active, lots, stepLimit))
		best = pl.bestOutcome(outcomes, active, p)
	}
	if best.price > p.boundTimes(targetGap) {
		least := pl.cheapestOutcome(outcomes, active)
		if exchanged := pl.exchangePods(least, pl.steps+int(exchangeShare*float64(pl.stepLimit(active)-pl.steps))); exchanged.price < least.price {
			best = pl.bestOutcome(append(outcomes, exchanged), active, p)
		}
	}
	pl.adopt(best)
}

// stepLimit returns the step count after which no further strategy is tried. A few pods should not
// wait long; the possible savings grow with the number of pods.
func (pl *planner) stepLimit(active []int) int {
	units := 0
	for _, c := range active {
		units = min(units+pl.left[c], maxStepLimitUnits)
	}
	return min(pl.steps+units*(2000+16*units), pl.effort/2)
}

// maxStepLimitUnits is the number of units above which the step limit does not grow any more. It
// allows about 60 million steps, which take two seconds.
const maxStepLimitUnits = 1900

// tryStrategies runs the strategies in order until one is good enough, and reports whether one was.
// That outcome is the last.
func (pl *planner) tryStrategies(all []strategy, active []int, lots []lot, p *pricing, stepLimit int) ([]outcome, bool) {
	var out []outcome
	for _, s := range all {
		if len(out) > 0 && pl.steps > stepLimit {
			break
		}
		o := pl.runStrategy(s, active, lots)
		out = append(out, o)
		if o.price <= p.boundTimes(targetGap) && o.crowded == 0 && !pl.leavesPods(o, active) {
			return out, true
		}
	}
	return out, false
}

// cheapestOutcome returns the cheapest of the outcomes that leave the fewest pods unplaced.
func (pl *planner) cheapestOutcome(outcomes []outcome, active []int) outcome {
	return slices.MinFunc(outcomes, func(a, b outcome) int {
		return cmp.Or(pl.compareUnplaced(a.left, b.left, active), cmp.Compare(a.price, b.price))
	})
}

// targetGap is the price, relative to the lower bound, up to which a plan is accepted without
// further search.
const targetGap = 1.025

// retryGap is the price, relative to the lower bound, above which the hard dual prices are tried
// after the soft ones.
const retryGap = 1.04

// limitStrategies returns the strategies to try when NodePool limits leave pods unplaced.
func (pl *planner) limitStrategies(active []int) []strategy {
	out := []strategy{{sparing: true}}
	if p := pl.q.classes; p[active[0]].Priority != p[active[len(active)-1]].Priority {
		out = append(out, strategy{byPriority: true}, strategy{byPriority: true, sparing: true})
	}
	return out
}

// adopt makes the outcome part of the plan.
func (pl *planner) adopt(o outcome) {
	pl.planned = append(pl.planned, o.planned...)
	pl.left, pl.budgets = o.left, o.budgets
}

// leavesPods reports whether the outcome leaves pods of the active classes unplaced.
func (pl *planner) leavesPods(o outcome, active []int) bool {
	return slices.ContainsFunc(active, func(c int) bool { return o.left[c] > 0 })
}

// priceTolerance is the price, relative to the cheapest plan, up to which other criteria decide
// between plans.
const priceTolerance = 1.02

// bestOutcome returns the outcome that leaves the fewest pods of the highest priority unplaced.
// Among those whose price is within priceTolerance of the cheapest, the fewest crowded pods win,
// then the fewest nodes.
//
// The chosen plan is never further above the lower bound than priceTolerance, unless the cheapest
// is.
func (pl *planner) bestOutcome(outcomes []outcome, active []int, p *pricing) outcome {
	slices.SortStableFunc(outcomes, func(a, b outcome) int {
		return cmp.Or(pl.compareUnplaced(a.left, b.left, active), cmp.Compare(a.price, b.price))
	})
	best := outcomes[0]
	most := min(best.price*priceTolerance, max(best.price, p.boundTimes(priceTolerance)))
	for _, o := range outcomes[1:] {
		if pl.compareUnplaced(o.left, outcomes[0].left, active) != 0 || o.price > most {
			continue
		}
		if cmp.Or(cmp.Compare(o.crowded, best.crowded), cmp.Compare(o.count, best.count)) < 0 {
			best = o
		}
	}
	return best
}

// compareUnplaced compares the numbers of unplaced pods, the highest priority first.
func (pl *planner) compareUnplaced(a, b []int, active []int) int {
	diff := 0
	for i, c := range active {
		if i > 0 && diff != 0 && pl.q.classes[c].Priority != pl.q.classes[active[i-1]].Priority {
			break
		}
		diff += a[c] - b[c]
	}
	return diff
}

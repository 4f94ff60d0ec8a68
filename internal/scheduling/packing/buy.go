package packing

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/offering"
)

// strategy is one way to go about buying.
type strategy struct {
	scarce  bool // spend the pools' limits sparingly, whatever it costs
	hard    bool // by the hard worths of the bound
	careful bool // more work for each machine
	tiered  bool // higher priorities first, rather than all together
	apart   bool // no machine gets a large part of a class, unless nothing else will do
}

// outcome is what a strategy led to.
type outcome struct {
	strategy strategy
	machines []machine
	left     []int
	budgets  []offering.Budget
	price    float64
	count    int
	crowded  int // pods beyond a quarter of their class on one machine
}

// buyAll buys machines until every pod has a place or nothing more can be
// bought for it. Each class first tries the first of its stages; what limits
// turn away tries the next.
func (w *work) buyAll() {
	for round := 1; ; round++ {
		active := w.active()
		if len(active) == 0 || w.steps > w.effort {
			return
		}
		if len(w.machines) > 0 {
			f := filler{work: w, left: w.left}
			w.machines = f.topUp(w.machines, active)
		}
		w.fillReserves(active)
		w.buy(active)
		for _, c := range active {
			switch {
			case w.left[c] == 0:
			case round < mostRounds:
				w.giveUp(c)
			default:
				w.giveUpAll(c)
			}
		}
	}
}

// mostRounds is after how many rounds a class gives up all preferences that it has left.
const mostRounds = 48

// buy buys for the active classes, by the strategy that leads to the best outcome.
func (w *work) buy(active []int) {
	p := w.priced(w.demands(active), false)
	p.begin() // the bound is there when the first plan is to be judged
	w.appraise(active)
	lots := w.lots(active, w.set)
	if o, ok := w.exactly(active, lots); ok {
		w.take(w.better([]outcome{o, w.try(strategy{apart: true}, active, lots)}, active, p))
		return
	}
	// A plan that shares the classes out well and costs next to nothing more
	// than the least cannot be beaten. If it costs more, more work is spent.
	patience := w.patience(active)
	outcomes, found := w.tryAll([]strategy{{apart: true}, {apart: true, careful: true}, {careful: true}}, active, lots, p, patience)
	if !found && w.turned(outcomes[0], active) {
		for _, s := range w.sparing(active) {
			outcomes = append(outcomes, w.try(s, active, lots))
		}
	}
	if !found && w.leastOf(outcomes, active).price > p.times(poor) && w.steps < patience {
		more, done := w.tryAll([]strategy{{apart: true, hard: true}, {apart: true, hard: true, careful: true}, {hard: true, careful: true}}, active, lots, p, patience)
		outcomes, found = append(outcomes, more...), done
	}
	if found {
		w.take(outcomes[len(outcomes)-1])
		return
	}
	best := w.better(outcomes, active, p)
	if best.price > p.times(good) && w.steps < patience {
		outcomes = append(outcomes, w.improve(w.leastOf(outcomes, active), active, lots, patience))
		best = w.better(outcomes, active, p)
	}
	if best.price > p.times(good) {
		least := w.leastOf(outcomes, active)
		if traded := w.trade(least, w.steps+int(tradingShare*float64(w.patience(active)-w.steps))); traded.price < least.price {
			best = w.better(append(outcomes, traded), active, p)
		}
	}
	w.take(best)
}

// patience is after how many steps nothing more is tried. A few pods should not wait long, and what a better plan
// saves grows with their number.
func (w *work) patience(active []int) int {
	units := 0
	for _, c := range active {
		units = min(units+w.left[c], manyUnits)
	}
	return min(w.steps+units*(2000+16*units), w.effort/2)
}

// manyUnits is from how many on no more steps are spent: some 60 million, which take two seconds.
const manyUnits = 1900

// tryAll tries the strategies one after the other, and reports whether the last one led to a plan that is good enough.
func (w *work) tryAll(all []strategy, active []int, lots []lot, p *pricing, patience int) ([]outcome, bool) {
	var out []outcome
	for _, s := range all {
		if len(out) > 0 && w.steps > patience {
			break
		}
		o := w.try(s, active, lots)
		out = append(out, o)
		if o.price <= p.times(good) && o.crowded == 0 && !w.turned(o, active) {
			return out, true
		}
	}
	return out, false
}

// leastOf returns the cheapest of the outcomes that leave the fewest pods.
func (w *work) leastOf(outcomes []outcome, active []int) outcome {
	return slices.MinFunc(outcomes, func(a, b outcome) int {
		return cmp.Or(w.compareLeft(a.left, b.left, active), cmp.Compare(a.price, b.price))
	})
}

// good is how far above the bound a plan may cost and be taken without looking for a better one.
const good = 1.025

// poor is how far above the bound plans by its soft worths must be for the hard ones to be tried.
const poor = 1.04

// sparing returns what to try when limits turn pods away: they must be spent on the right ones.
func (w *work) sparing(active []int) []strategy {
	out := []strategy{{scarce: true}}
	if p := w.q.classes; p[active[0]].Priority != p[active[len(active)-1]].Priority {
		out = append(out, strategy{tiered: true}, strategy{tiered: true, scarce: true})
	}
	return out
}

// take makes the outcome part of the plan.
func (w *work) take(o outcome) {
	w.machines = append(w.machines, o.machines...)
	w.left, w.budgets = o.left, o.budgets
}

// turned reports whether the outcome leaves pods without a place.
func (w *work) turned(o outcome, active []int) bool {
	return slices.ContainsFunc(active, func(c int) bool { return o.left[c] > 0 })
}

// like is how much more a plan may cost than the cheapest to be judged by other things.
const like = 1.02

// better returns the best outcome: the one that leaves the fewest pods of
// the highest priority without a place; then, among those that cost about as
// much as the cheapest, the one that crowds the fewest pods of one class onto
// one machine; then the one with the fewest machines.
//
// No plan is given up for one that is further from the least than that.
func (w *work) better(outcomes []outcome, active []int, p *pricing) outcome {
	slices.SortStableFunc(outcomes, func(a, b outcome) int {
		return cmp.Or(w.compareLeft(a.left, b.left, active), cmp.Compare(a.price, b.price))
	})
	best := outcomes[0]
	most := min(best.price*like, max(best.price, p.times(like)))
	for _, o := range outcomes[1:] {
		if w.compareLeft(o.left, outcomes[0].left, active) != 0 || o.price > most {
			continue
		}
		if cmp.Or(cmp.Compare(o.crowded, best.crowded), cmp.Compare(o.count, best.count)) < 0 {
			best = o
		}
	}
	return best
}

// compareLeft compares how many pods are left, the highest priority first.
func (w *work) compareLeft(a, b []int, active []int) int {
	diff := 0
	for i, c := range active {
		if i > 0 && diff != 0 && w.q.classes[c].Priority != w.q.classes[active[i-1]].Priority {
			break
		}
		diff += a[c] - b[c]
	}
	return diff
}

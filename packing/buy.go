package packing

import (
	"cmp"
	"slices"
)

// strategy is one way to go about buying.
type strategy struct {
	cap    float64 // no machine dearer than this, unless nothing else will do; 0: no cap
	scarce bool    // spend the pools' limits sparingly, whatever it costs
	near   float64 // what filler.near is; 0: as usual
	tiered bool    // higher priorities first, rather than all together
	apart  bool    // no machine gets a large part of a class, unless nothing else will do
}

// outcome is what a strategy led to.
type outcome struct {
	strategy strategy
	machines []machine
	left     []int
	budgets  []budget
	price    float64
	count    int
	crowded  int // pods beyond a quarter of their class on one machine
}

// buyAll buys machines until every pod has a place or nothing more can be
// bought for it. Each class first tries the first of its stages; what limits
// turn away tries the next.
func (w *work) buyAll() {
	for {
		active := w.active()
		if len(active) == 0 || w.steps > w.effort {
			return
		}
		if len(w.machines) > 0 {
			f := filler{work: w, left: w.left}
			w.machines = f.topUp(w.machines, active)
		}
		w.buy(active)
		for _, c := range active {
			if w.left[c] > 0 {
				w.giveUp(c)
			}
		}
	}
}

// buy buys for the active classes, by the strategy that leads to the best outcome.
func (w *work) buy(active []int) {
	lots, least := w.appraise(active)
	// A plan that shares the classes out well and costs next to nothing more
	// than the least cannot be beaten.
	shared := w.try(strategy{apart: true}, active, lots)
	if shared.price <= least*like && shared.crowded == 0 && !w.turned(shared, active) {
		w.take(shared)
		return
	}
	first := w.try(strategy{}, active, lots)
	outcomes := []outcome{shared, first}
	for _, s := range w.strategies(first, active) {
		if w.steps > w.effort/2 {
			break
		}
		outcomes = append(outcomes, w.try(s, active, lots))
	}
	exact := false
	if w.steps <= w.effort/2 {
		var all outcome
		if all, exact = w.exactly(active, lots); exact {
			outcomes = append(outcomes, all)
		}
	}
	best := w.better(outcomes, active)
	if !exact && best.price > least*loose && w.steps < polish {
		for _, s := range w.variations(outcomes) {
			outcomes = append(outcomes, w.try(s, active, lots))
		}
		best = w.improve(w.better(outcomes, active), active, lots)
	}
	w.take(best)
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

// loose is how far above the bound a plan may cost before more work is spent on it.
const loose = 1.02

// polish is how many steps a plan may have taken for more work to be spent on
// it: large plans come close to the bound by themselves.
const polish = 4_000_000

// variations returns the strategies of these outcomes with other ways to weigh
// the size of a pod against balance.
func (w *work) variations(outcomes []outcome) []strategy {
	var out []strategy
	for _, o := range outcomes {
		if o.strategy.scarce || o.strategy.tiered {
			continue
		}
		for _, n := range [...]float64{0.8, 0.99} {
			s := o.strategy
			s.near = n
			out = append(out, s)
		}
	}
	return out
}

// strategies returns what to try besides buying freely. Smaller machines cost
// nearly the same and lose less when they go; when limits turn pods away, they
// must be spent on the right ones.
func (w *work) strategies(first outcome, active []int) []strategy {
	var out []strategy
	dearest := 0.0
	for _, m := range first.machines {
		dearest = max(dearest, float64(w.st.offers[m.offer].Price))
	}
	for parts := 2.0; parts <= 16; parts *= 2 {
		if limit := first.price / parts; limit < dearest {
			out = append(out, strategy{cap: limit})
		}
	}
	if !w.turned(first, active) {
		return out
	}
	out = append(out, strategy{scarce: true})
	if p := w.q.classes; p[active[0]].priority != p[active[len(active)-1]].priority {
		out = append(out, strategy{tiered: true}, strategy{tiered: true, scarce: true})
	}
	return out
}

// like is how much more a plan may cost than the cheapest to be judged by other things.
const like = 1.02

// better returns the best outcome: the one that leaves the fewest pods of
// the highest priority without a place; then, among those that cost about as
// much as the cheapest, the one that crowds the fewest pods of one class onto
// one machine; then the one with the fewest machines.
func (w *work) better(outcomes []outcome, active []int) outcome {
	slices.SortStableFunc(outcomes, func(a, b outcome) int {
		return cmp.Or(w.compareLeft(a.left, b.left, active), cmp.Compare(a.price, b.price))
	})
	best := outcomes[0]
	for _, o := range outcomes[1:] {
		if w.compareLeft(o.left, outcomes[0].left, active) != 0 || o.price > outcomes[0].price*like {
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
		if i > 0 && diff != 0 && w.q.classes[c].priority != w.q.classes[active[i-1]].priority {
			break
		}
		diff += a[c] - b[c]
	}
	return diff
}

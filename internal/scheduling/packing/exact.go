package packing

import (
	"cmp"
	"math"
	"slices"
)

// maxStates bounds the problems that are solved exactly. A state is a choice of unplaced pods; pods
// of one class are interchangeable.
const maxStates = 256

// exact computes the cheapest plan of a few pods by dynamic programming over all choices of them.
type exact struct {
	*strategyRun
	classes     []int
	stride      []int // by class: the distance between states that differ by one pod of it
	states      int
	singlePrice []float64 // by state: the price of the cheapest single node for exactly these pods; +Inf if none
	singleOffer []int     // by state: the offering of that node
	minPrice    []float64 // by state: the lowest price of any plan for these pods
	firstPart   []int     // by state: the pods of one node of that plan, as a state
}

// solveExactly returns the cheapest plan for the active classes. It reports false if they have too
// many pods, if a pod would be unplaced, or if a limit would be exceeded.
func (pl *planner) solveExactly(active []int, lots []lot) (outcome, bool) {
	r := pl.newRun(strategy{}, slices.Clone(pl.left), cloneBudgets(pl.budgets))
	e := &exact{strategyRun: r, classes: active, states: 1}
	for _, c := range active {
		e.stride = append(e.stride, e.states)
		if e.states *= pl.left[c] + 1; e.states > maxStates {
			return outcome{}, false
		}
	}
	if pl.steps+e.states*(len(lots)+e.states/2) > pl.effort {
		return outcome{}, false
	}
	e.priceStates(lots)
	e.partition()
	all := e.states - 1
	if math.IsInf(e.minPrice[all], 1) || !e.addNodesFor(all) {
		return outcome{}, false
	}
	return r.outcome(), true
}

// priceStates finds the cheapest single node for every state.
func (e *exact) priceStates(lots []lot) {
	lots = slices.Clone(lots)
	slices.SortStableFunc(lots, func(a, b lot) int { return cmp.Compare(a.Price, b.Price) })
	for state := range e.states {
		allocations := e.allocationsOf(state)
		price, offer := math.Inf(1), -1
		i := slices.IndexFunc(lots, func(l lot) bool { return e.fitsOn(l.Offer, allocations) })
		if i >= 0 && state > 0 {
			price, offer = lots[i].Price, lots[i].Offer
		}
		e.steps += len(lots)
		e.singlePrice, e.singleOffer = append(e.singlePrice, price), append(e.singleOffer, offer)
	}
}

// allocationsOf returns the pods of a state.
func (e *exact) allocationsOf(state int) []allocation {
	var out []allocation
	for i, c := range e.classes {
		if n := e.count(state, i); n > 0 {
			out = append(out, allocation{class: c, n: n, acceptSet: e.currentSet(c)})
		}
	}
	return out
}

// count returns the number of pods of the i-th class in a state.
func (e *exact) count(state, i int) int { return state / e.stride[i] % (e.left[e.classes[i]] + 1) }

// fitsOn reports whether one node of the offering can have these pods.
func (e *exact) fitsOn(offer int, allocations []allocation) bool {
	shape := e.stock.ShapeOf(offer)
	m := plannedNode{offer: offer, allocations: allocations, ports: daemonPorts(shape)}
	for _, a := range allocations {
		c := &e.q.classes[a.class]
		if !e.accepts.Sets[a.acceptSet].Has(offer) || len(c.Ports) > 0 && (a.n > 1 || e.q.hasPortConflict(c, m.ports)) {
			return false
		}
		m.ports = append(slices.Clip(m.ports), c.Lists...)
		if e.hostRuleRoom(&m, a.class) < a.n {
			return false
		}
		e.addToTally(&m.host, c, a.n)
	}
	return !shape.Broken && m.used(e.planner).Fits(shape.Room) && e.keepsMinValues(&m)
}

// partition finds the cheapest partition into nodes for every state.
func (e *exact) partition() {
	e.minPrice, e.firstPart = make([]float64, e.states), make([]int, e.states)
	for state := 1; state < e.states; state++ {
		e.minPrice[state] = math.Inf(1)
		for part := 1; part <= state; part++ {
			if math.IsInf(e.singlePrice[part], 1) || !e.isSubset(part, state) {
				continue
			}
			if price := e.singlePrice[part] + e.minPrice[state-part]; price < e.minPrice[state] {
				e.minPrice[state], e.firstPart[state] = price, part
			}
		}
		e.steps += state
	}
}

// isSubset reports whether state has all the pods of part.
func (e *exact) isSubset(part, state int) bool {
	for i := range e.classes {
		if e.count(part, i) > e.count(state, i) {
			return false
		}
	}
	return true
}

// addNodesFor plans the nodes of the cheapest partition of a state, and reports whether the limits
// allow them.
func (e *exact) addNodesFor(state int) bool {
	for ; state > 0; state -= e.firstPart[state] {
		part := e.firstPart[state]
		offer := e.singleOffer[part]
		m := e.nodeWith(offer, e.allocationsOf(part))
		m.copies, m.price, m.value = 1, e.singlePrice[part], e.valueOf(&m)
		pool, size := e.stock.VariantOf(offer).Pool, e.stock.TypeOf(offer).Capacity
		if e.budgets[pool].Times(size, 1) == 0 {
			return false
		}
		e.budgets[pool].Spend(size, 1)
		e.planned = append(e.planned, m)
	}
	for _, c := range e.classes {
		e.left[c] = 0
	}
	return true
}

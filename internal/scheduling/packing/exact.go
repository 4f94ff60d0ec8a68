package packing

import (
	"cmp"
	"math"
	"slices"
)

// mostStates bounds the problems that are solved exactly: the ways to choose
// some of the pods that are left, alike ones not told apart.
const mostStates = 256

// exact is a few pods and the cheapest machine for every choice of them.
type exact struct {
	*run
	classes []int
	size    []int // by class: how many states one more pod of it skips
	states  int
	own     []float64 // by state: the price of the cheapest machine that holds just these pods; +Inf if none does
	offer   []int     // by state: that machine's offer
	least   []float64 // by state: the least for which all these pods can be had
	first   []int     // by state: the state of the pods on one of the machines of that plan
}

// exactly returns the cheapest of all ways to buy for the active classes, if
// they have few enough pods to try them all, and if no pod is left over and no
// limit overrun by it.
func (w *work) exactly(active []int, lots []lot) (outcome, bool) {
	r := w.run(strategy{}, slices.Clone(w.left), cloneBudgets(w.budgets))
	e := &exact{run: r, classes: active, states: 1}
	for _, c := range active {
		e.size = append(e.size, e.states)
		if e.states *= w.left[c] + 1; e.states > mostStates {
			return outcome{}, false
		}
	}
	if w.steps+e.states*(len(lots)+e.states/2) > w.effort {
		return outcome{}, false
	}
	e.price(lots)
	e.partition()
	all := e.states - 1
	if math.IsInf(e.least[all], 1) || !e.purchase(all) {
		return outcome{}, false
	}
	return r.outcome(), true
}

// price finds the cheapest machine for every state.
func (e *exact) price(lots []lot) {
	lots = slices.Clone(lots)
	slices.SortStableFunc(lots, func(a, b lot) int { return cmp.Compare(a.Price, b.Price) })
	for state := range e.states {
		takes := e.takes(state)
		price, offer := math.Inf(1), -1
		i := slices.IndexFunc(lots, func(l lot) bool { return e.holds(l.Offer, takes) })
		if i >= 0 && state > 0 {
			price, offer = lots[i].Price, lots[i].Offer
		}
		e.steps += len(lots)
		e.own, e.offer = append(e.own, price), append(e.offer, offer)
	}
}

// takes returns the pods of a state.
func (e *exact) takes(state int) []take {
	var out []take
	for i, c := range e.classes {
		if n := e.count(state, i); n > 0 {
			out = append(out, take{class: c, n: n, set: e.set(c)})
		}
	}
	return out
}

// count returns how many pods of the i-th class a state has.
func (e *exact) count(state, i int) int { return state / e.size[i] % (e.left[e.classes[i]] + 1) }

// holds reports whether a machine of the offer may hold these pods.
func (e *exact) holds(offer int, takes []take) bool {
	shape := e.st.ShapeOf(offer)
	m := machine{offer: offer, takes: takes, ports: taken(shape)}
	for _, t := range takes {
		c := &e.q.classes[t.class]
		if !e.accepts.Sets[t.set].Has(offer) || len(c.Ports) > 0 && (t.n > 1 || e.q.clashes(c, m.ports)) {
			return false
		}
		m.ports = append(slices.Clip(m.ports), c.Lists...)
		if e.most(&m, t.class) < t.n {
			return false
		}
		e.tally(&m.host, c, t.n)
	}
	return !shape.Broken && m.used(e.work).Fits(shape.Room) && e.isDiverse(&m)
}

// partition finds, for every state, the cheapest way to spread its pods over machines.
func (e *exact) partition() {
	e.least, e.first = make([]float64, e.states), make([]int, e.states)
	for state := 1; state < e.states; state++ {
		e.least[state] = math.Inf(1)
		for part := 1; part <= state; part++ {
			if math.IsInf(e.own[part], 1) || !e.within(part, state) {
				continue
			}
			if price := e.own[part] + e.least[state-part]; price < e.least[state] {
				e.least[state], e.first[state] = price, part
			}
		}
		e.steps += state
	}
}

// within reports whether a state has all the pods of part.
func (e *exact) within(part, state int) bool {
	for i := range e.classes {
		if e.count(part, i) > e.count(state, i) {
			return false
		}
	}
	return true
}

// purchase buys the machines of the plan for a state, and reports whether the limits allow them.
func (e *exact) purchase(state int) bool {
	for ; state > 0; state -= e.first[state] {
		part := e.first[state]
		offer := e.offer[part]
		m := e.laden(offer, e.takes(part))
		m.copies, m.price, m.worth = 1, e.own[part], e.valueOf(&m)
		pool, size := e.st.VariantOf(offer).Pool, e.st.TypeOf(offer).Capacity
		if e.budgets[pool].Times(size, 1) == 0 {
			return false
		}
		e.budgets[pool].Spend(size, 1)
		e.machines = append(e.machines, m)
	}
	for _, c := range e.classes {
		e.left[c] = 0
	}
	return true
}

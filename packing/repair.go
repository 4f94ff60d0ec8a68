package packing

import (
	"cmp"
	"slices"
)

// reopened are the shares of a plan's price, in parts, that are taken back and
// bought again: first a little of it, then more.
var reopened = [...]float64{32, 16, 8, 4, 2}

// improve takes back the machines that give least for their money, lets their
// pods fill gaps in the others, and buys for the rest again; as long as that
// makes the whole cheaper.
func (w *work) improve(o outcome, classes []int, lots []lot) outcome {
	defer func(worth []float64) { w.worth = worth }(w.worth)
	r := &run{filler: filler{work: w, near: o.strategy.near, careful: o.strategy.careful, apart: o.strategy.apart, left: o.left}, strategy: o.strategy, budgets: o.budgets, machines: o.machines}
	r.lots = w.setOut(classes, lots, o.strategy.hard)
	price := r.total()
	for _, parts := range reopened {
		for r.steps <= r.effort/2 {
			again := r.reopen(price/parts, classes)
			cheaper := again.total()
			if again.placedLess(r) || cheaper >= price {
				break
			}
			r, price = again, cheaper
		}
	}
	return r.outcome()
}

// reopen returns a run that has bought again for the pods of the worst
// machines, which cost that much together, and of two at least.
func (r *run) reopen(amount float64, classes []int) *run {
	again := &run{
		filler: filler{work: r.work, near: r.near, careful: r.careful, apart: r.apart, left: slices.Clone(r.left)}, strategy: r.strategy, lots: r.lots,
	}
	for _, b := range r.budgets {
		again.budgets = append(again.budgets, b.clone())
	}
	order := slices.Clone(r.machines)
	slices.SortStableFunc(order, func(a, b machine) int { return cmp.Compare(b.waste(), a.waste()) })
	count := 0
	for _, m := range order {
		n := 0
		for n < m.copies && (amount > 0 || count < 2) {
			amount -= m.price
			count++
			n++
		}
		again.giveBack(&m, n)
		if m.copies -= n; m.copies > 0 {
			again.machines = append(again.machines, m)
		}
	}
	again.machines = again.topUp(again.machines, classes)
	again.buy(classes, 0)
	return again
}

// waste is what the machine costs for each unit of worth on it.
func (m *machine) waste() float64 { return m.price / max(m.worth, 1e-9) }

// giveBack returns the pods of n copies of the machine to those that are left.
func (r *run) giveBack(m *machine, n int) {
	for _, t := range m.takes {
		r.left[t.class] += t.n * n
	}
	r.budgets[r.st.variantOf(m.offer).pool].spend(r.st.typeOf(m.offer).Capacity, -n)
}

// total is what the machines cost.
func (r *run) total() float64 {
	sum := 0.0
	for _, m := range r.machines {
		sum += float64(m.copies) * m.price
	}
	return sum
}

// placedLess reports whether the run leaves more pods of some class than other does.
func (r *run) placedLess(other *run) bool {
	for c := range r.left {
		if r.left[c] > other.left[c] {
			return true
		}
	}
	return false
}

package packing

import (
	"cmp"
	"math"
	"slices"
)

// reopened are the shares of a plan's price, in parts, that are taken back and
// bought again: first a little of it, then more.
var reopened = [...]float64{32, 16, 8, 4, 2}

// worthwhile is by how much all that must have made a plan cheaper for it to be done once more.
const worthwhile = 0.998

// improve takes back machines, lets their pods fill gaps in the others, and
// buys for the rest again; as long as that makes the whole cheaper. First it takes those that give least for
// their money, then the dearest: what is left of a large full machine needs a smaller one.
func (w *work) improve(o outcome, classes []int, lots []lot, patience int) outcome {
	defer func(worth []float64) { w.worth = worth }(w.worth)
	r := w.run(o.strategy, o.left, o.budgets)
	r.machines, r.lots = o.machines, w.setOut(classes, lots, o.strategy.hard)
	price := r.total()
	for before := math.Inf(1); price < before*worthwhile; {
		before = price
		for _, order := range [...]func(a, b machine) int{wasteful, dear} {
			for _, parts := range reopened {
				for r.steps <= patience {
					again := r.reopen(price/parts, classes, order)
					cheaper := again.total()
					if again.placedLess(r) || cheaper >= price {
						break
					}
					r, price = again, cheaper
				}
			}
		}
	}
	return r.outcome()
}

func wasteful(a, b machine) int { return cmp.Compare(b.waste(), a.waste()) }

func dear(a, b machine) int { return cmp.Compare(b.price, a.price) }

// reopen returns a run that has bought again for the pods of the first
// machines in that order, which cost that much together, and of two at least.
func (r *run) reopen(amount float64, classes []int, order func(a, b machine) int) *run {
	again := r.work.run(r.strategy, slices.Clone(r.left), cloneBudgets(r.budgets))
	again.lots = r.lots
	first := slices.Clone(r.machines)
	slices.SortStableFunc(first, order)
	count := 0
	for _, m := range first {
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
	r.budgets[r.st.VariantOf(m.offer).Pool].Spend(r.st.TypeOf(m.offer).Capacity, -n)
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

package packing

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/catalog"
)

// leastPrice is the lower bound of the plan: no plan for the pods on machines
// costs less. The bound itself knows only what can be bought any number of times.
//
// Why it holds where capacity reservations are: take any plan, and exchange each of its
// reserved machines for one that is bought, has as much room, and is accepted by all who
// accept the reserved one. What comes of it costs no less than the bound, and is dearer
// than the plan by what the exchanges cost; a reservation allows no more of
// them than it has instances, or than there are pods that accept it. So the plan
// costs at least the bound less all of that. And it costs at least as much as
// the pods that accept no reservation.
func (w *work) leastPrice() catalog.Price {
	if len(w.st.reserves) == 0 {
		return w.lowerBound()
	}
	gathered := map[demand]int{}
	for _, m := range w.machines {
		for _, t := range m.takes {
			w.gatherBase(gathered, t.class, t.n*m.copies)
		}
	}
	all := sortedDemands(gathered)
	never := slices.DeleteFunc(slices.Clone(all), func(d demand) bool { return w.accepts.sets[d.set].meets(w.st.reserved) })
	alone := w.priced(never).least()
	if len(never) == len(all) {
		return alone
	}
	c := newCredit(w, all)
	return max(alone, w.priced(c.demands).least()-c.total())
}

// credit is what capacity reservations could save at most.
type credit struct {
	*work
	lots    []lot
	demands []demand // those that what is bought could serve too
	saves   []catalog.Price
}

func newCredit(w *work, demands []demand) *credit {
	sets := make([]int, len(demands))
	for i, d := range demands {
		sets[i] = d.set
	}
	c := &credit{work: w, lots: w.lotsIn(sets), demands: demands, saves: make([]catalog.Price, len(w.st.reserves))}
	c.demands = slices.DeleteFunc(slices.Clone(demands), func(d demand) bool { return c.choices(d) == 0 })
	for n := range w.st.reserves {
		for _, o := range w.st.reserves[n].offers {
			c.saves[n] = max(c.saves[n], c.exchange(o))
		}
	}
	return c
}

// choices returns how many lots the demand accepts.
func (c *credit) choices(d demand) int {
	n := 0
	for _, l := range c.lots {
		if c.accepts.sets[d.set].has(l.offer) {
			n++
		}
	}
	return n
}

// exchange returns what it costs to buy a machine that does all that one of the
// reserved offer does. Demands that leave no such machine, those with the fewest choices first, are dropped:
// a bound for some of the pods is one for all.
func (c *credit) exchange(o int) catalog.Price {
	for {
		users := slices.DeleteFunc(slices.Clone(c.demands), func(d demand) bool { return !c.accepts.sets[d.set].has(o) })
		if len(users) == 0 {
			return 0
		}
		best := catalog.Price(-1)
		for _, l := range c.lots {
			lacks := func(d demand) bool { return !c.accepts.sets[d.set].has(l.offer) }
			if price := c.st.offers[l.offer].Price; (best < 0 || price < best) && c.st.room(o).fits(c.st.room(l.offer)) &&
				!slices.ContainsFunc(users, lacks) {
				best = price
			}
		}
		if best >= 0 {
			return max(best-c.st.offers[o].Price, 0)
		}
		first := slices.MinFunc(users, func(a, b demand) int { return cmp.Compare(c.choices(a), c.choices(b)) })
		c.demands = slices.DeleteFunc(c.demands, func(d demand) bool { return d == first })
	}
}

// total is what all instances could save together.
func (c *credit) total() catalog.Price {
	sum := catalog.Price(0)
	for n := range c.st.reserves {
		r := &c.st.reserves[n]
		pods := 0
		for _, d := range c.demands {
			if slices.ContainsFunc(r.offers, c.accepts.sets[d.set].has) {
				pods += d.n * c.q.classes[d.class].unit
			}
		}
		sum += c.saves[n] * catalog.Price(max(min(r.left, pods), 0))
	}
	return sum
}

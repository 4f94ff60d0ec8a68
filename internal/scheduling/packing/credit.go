package packing

import (
	"cmp"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
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
	if len(w.st.Reserves) == 0 {
		return w.lowerBound()
	}
	gathered := map[demand]int{}
	for _, m := range w.machines {
		for _, t := range m.takes {
			w.gatherBase(gathered, t.class, t.n*m.copies)
		}
	}
	all := sortedDemands(gathered)
	never := slices.DeleteFunc(slices.Clone(all), func(d demand) bool { return w.accepts.Sets[d.set].Meets(w.st.Reserved) })
	alone := w.priced(never, true).least()
	if len(never) == len(all) {
		return alone
	}
	c := newCredit(w, all)
	exchanged := w.priced(c.demands, true).least() - c.total(c.demands)
	return max(alone, exchanged, w.beyond(all))
}

// beyond is another lower bound for the demands: what their pods are worth, less
// the most that the instances of capacity reservations can hold. It holds as
// no machine that is bought can hold pods worth more than its price. It is the better one
// where what is reserved is large or odd, and what could stand in for it dear.
func (w *work) beyond(demands []demand) catalog.Price {
	p := w.priced(demands, true)
	c := &credit{work: w, demands: demands, saves: make([]catalog.Price, len(w.st.Reserves))}
	for n := range w.st.Reserves {
		for _, o := range w.st.Reserves[n].Offers {
			holds := catalog.Price(min(c.holds(o, p.worths(true).Worth), float64(mostSaved))) + 1
			c.saves[n] = max(c.saves[n], holds-w.st.Offers[o].Price)
		}
	}
	sum := 0.0
	for i, d := range demands {
		sum += p.worths(true).Worth[i] * float64(d.n)
	}
	return catalog.Price(sum*(1-1e-9)) - c.total(demands)
}

// mostSaved keeps sums of savings from overflowing.
const mostSaved = 1_000_000 * catalog.Dollar

// holds returns an amount that pods on one machine of the offer can at most be
// worth together. If no pod is worth more than some rates for what it asks for, no
// machine holds more than they make of its room; rates in a few proportions are tried.
func (c *credit) holds(o int, worth []float64) float64 {
	room := c.st.Room(o)
	least := math.Inf(1)
	for _, rates := range proportions(c.st.Dims) {
		amount := func(v resources.Vector) float64 {
			sum := 0.0
			for r, n := range v {
				sum += rates[r] * float64(max(n, 0))
			}
			return sum
		}
		most := 0.0
		for i, d := range c.demands {
			if ask := c.q.classes[d.class].Ask; worth[i] > 0 && c.accepts.Sets[d.set].Has(o) && ask.Fits(room) {
				most = max(most, worth[i]/amount(ask)) // infinite for what it does not ask for
			}
		}
		if !math.IsInf(most, 1) {
			least = min(least, most*amount(room))
		}
	}
	return least
}

// proportions are rates for resources: each alone, and memory that costs as
// much as a processor in several amounts.
func proportions(dims resources.Dimensions) [][]float64 {
	var out [][]float64
	for i := range dims {
		alone := make([]float64, len(dims))
		alone[i] = 1
		out = append(out, alone)
	}
	cpu, memory := slices.Index(dims, resources.CPU), slices.Index(dims, resources.Memory)
	if cpu < 0 || memory < 0 {
		return out
	}
	for _, gibibytes := range [...]float64{1, 2, 4, 6, 8, 12, 16, 24, 32} {
		both := make([]float64, len(dims))
		both[cpu], both[memory] = 1, 1000/(gibibytes*(1<<30))
		out = append(out, both)
	}
	return out
}

// credit is what capacity reservations could save at most.
type credit struct {
	*work
	lots    []offering.Lot
	demands []demand        // those that what is bought could serve too
	saves   []catalog.Price // by reservation: what one of its instances saves at most
	options map[demand]int  // how many lots a demand accepts
}

func newCredit(w *work, demands []demand) *credit {
	sets := make([]int, len(demands))
	for i, d := range demands {
		sets[i] = d.set
	}
	c := &credit{work: w, lots: w.accepts.Lots(sets), saves: make([]catalog.Price, len(w.st.Reserves)), options: map[demand]int{}}
	for _, d := range demands {
		for _, l := range c.lots {
			if w.accepts.Sets[d.set].Has(l.Offer) {
				c.options[d]++
			}
		}
	}
	c.demands = slices.DeleteFunc(slices.Clone(demands), func(d demand) bool { return c.options[d] == 0 })
	for n := range w.st.Reserves {
		for _, o := range w.st.Reserves[n].Offers {
			c.saves[n] = max(c.saves[n], c.exchange(o))
		}
	}
	return c
}

// exchange returns what it costs to buy a machine that does all that one of the
// reserved offer does. Demands that leave no such machine, those with the fewest options first, are dropped:
// a bound for some of the pods is one for all.
func (c *credit) exchange(o int) catalog.Price {
	for {
		users := slices.DeleteFunc(slices.Clone(c.demands), func(d demand) bool { return !c.accepts.Sets[d.set].Has(o) })
		if len(users) == 0 {
			return 0
		}
		best := catalog.Price(-1)
		for _, l := range c.lots {
			lacks := func(d demand) bool { return !c.accepts.Sets[d.set].Has(l.Offer) }
			if price := c.st.Offers[l.Offer].Price; (best < 0 || price < best) && c.st.Room(o).Fits(c.st.Room(l.Offer)) &&
				!slices.ContainsFunc(users, lacks) {
				best = price
			}
		}
		if best >= 0 {
			return max(best-c.st.Offers[o].Price, 0)
		}
		first := slices.MinFunc(users, func(a, b demand) int { return cmp.Compare(c.options[a], c.options[b]) })
		c.demands = slices.DeleteFunc(c.demands, func(d demand) bool { return d == first })
	}
}

// total is what all instances could save together, for these demands.
func (c *credit) total(demands []demand) catalog.Price {
	sum := catalog.Price(0)
	for n := range c.st.Reserves {
		r := &c.st.Reserves[n]
		pods := 0
		for _, d := range demands {
			if slices.ContainsFunc(r.Offers, c.accepts.Sets[d.set].Has) {
				pods += d.n * c.q.classes[d.class].unit
			}
		}
		sum += c.saves[n] * catalog.Price(max(min(r.Left, pods), 0))
	}
	return sum
}

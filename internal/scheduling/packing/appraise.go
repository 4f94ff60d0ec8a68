package packing

import (
	"cmp"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/lowerbound"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/parallel"
)

// demand is a number of units that can be bought for from one accept set, as
// the bound sees them.
type demand struct{ class, set, n int }

// demandOf returns the class and the accept set that stand for a class in the
// bound. Parts of a class that could be in any domain count as the whole: it is the
// plan that chose the domains, and the bound holds for all plans.
func (w *work) demandOf(c int) (class, set int) {
	p := &w.q.classes[c]
	if whole := &w.q.classes[p.base]; p.cell != nil && w.stage[c] == 0 && whole.first == whole.hard {
		return p.base, whole.hard
	}
	return c, w.set(c)
}

// gather adds n units to the demands.
func gather(demands map[demand]int, class, set, n int) {
	if n > 0 {
		demands[demand{class: class, set: set}] += n
	}
}

func sortedDemands(demands map[demand]int) []demand {
	out := make([]demand, 0, len(demands))
	for d, n := range demands {
		d.n = n
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b demand) int { return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.set, b.set)) })
	return out
}

// pricing is the bound of some demands.
type pricing struct {
	demands []demand
	lots    []offering.Lot // the offers that the bound knows
	solver  *lowerbound.Solver
	answer  func() lowerbound.Answer // the whole of it, once begun
	sound   bool                     // no plan at all is below it, and not only none that would be made here
	at      map[demand]int           // what places has found
}

// priced returns the pricing of the demands: the last one, if it is theirs.
func (w *work) priced(demands []demand, sound bool) *pricing {
	if w.prices == nil || !slices.Equal(w.prices.demands, demands) || sound && !w.prices.sound {
		w.prices = w.newPricing(demands, sound)
	}
	return w.prices
}

// begin sets out for the lower bound, which is found while others are at work.
func (p *pricing) begin() {
	if p.answer == nil {
		p.solver.Soft() // whoever begins asks for them next
		p.answer = parallel.Later(p.solver.Least)
	}
}

// least returns the lower bound for the demands.
func (p *pricing) least() catalog.Price {
	p.begin()
	return p.answer().Price
}

// times returns so many times the lower bound.
func (p *pricing) times(n float64) float64 { return float64(p.least()) * n }

// worths returns what the demands are worth as they are: the soft worths, or the hard ones.
func (p *pricing) worths(hard bool) lowerbound.Worths {
	if hard {
		p.begin()
		return p.answer().Hard
	}
	return p.solver.Soft()
}

// appraise sets what a unit of each class with any left is worth: its share of
// the least that all of them together can cost. What nothing on the market
// takes is worth more than anything: a node that is there is its only chance.
func (w *work) appraise(active []int) {
	p := w.priced(w.demands(active), false)
	w.value(active, p, p.worths(false).Worth)
}

// demands returns what of the active classes is left, as the bound sees it.
func (w *work) demands(active []int) []demand {
	gathered := map[demand]int{}
	for _, c := range active {
		class, set := w.demandOf(c)
		gather(gathered, class, set, w.left[c])
	}
	return sortedDemands(gathered)
}

// value sets what the classes are worth by the worths of the demands.
func (w *work) value(active []int, p *pricing, worth []float64) {
	at := p.places()
	w.worth = slices.Repeat([]float64{priceless}, len(w.q.classes))
	for _, c := range active {
		class, set := w.demandOf(c)
		w.worth[c] = w.q.classes[c].size()
		if i, ok := at[demand{class: class, set: set}]; ok {
			w.worth[c] = max(w.worth[c], worth[i])
		}
	}
}

// places returns the index of each demand.
func (p *pricing) places() map[demand]int {
	if p.at == nil {
		p.at = make(map[demand]int, len(p.demands))
		for i, d := range p.demands {
			d.n = 0
			p.at[d] = i
		}
	}
	return p.at
}

// expect returns the lots in the order in which they promise most, when their machines
// hold no more than that.
func (w *work) expect(lots []lot, p *pricing, holds []float64) []lot {
	most := make([]float64, len(w.st.Models))
	for i, l := range p.lots {
		m := w.st.Offers[l.Offer].Model
		most[m] = max(most[m], holds[i])
	}
	out := slices.Clone(lots)
	for i := range out {
		l := &out[i]
		l.key = l.Price / max(most[w.st.Offers[l.Offer].Model], 1e-9)
	}
	return out
}

// setOut sets what the classes are worth, by the soft worths or the hard ones, and returns the lots with what they promise.
func (w *work) setOut(active []int, lots []lot, hard bool) []lot {
	worths := w.prices.worths(hard)
	w.value(active, w.prices, worths.Worth)
	return w.expect(lots, w.prices, worths.Holds)
}

// reprice does the same when so many are left. What sold first was what the
// market has most cheaply together; the rest must do with each other.
func (w *work) reprice(active, left []int, lots []lot, hard bool) []lot {
	p := w.prices
	at, counts := p.places(), make([]int, len(p.demands))
	for _, c := range active {
		class, set := w.demandOf(c)
		if i, ok := at[demand{class: class, set: set}]; ok {
			counts[i] += left[c]
		}
	}
	worths := p.solver.Worth(counts, hard)
	w.steps += len(p.demands) * len(p.lots) / 4 // about as long
	if hard {
		w.steps += len(p.demands) * len(p.lots)
	}
	w.value(active, p, worths.Worth)
	return w.expect(lots, p, worths.Holds)
}

// priceless is more than any real pod is worth: a million dollars per hour.
const priceless = 1e6 * float64(catalog.Dollar)

// size is a worth for pods that cost nothing, so that they too are placed, the
// larger first: a billionth of a dollar for a thousand cores.
func (c *class) size() float64 {
	return (float64(c.Amounts.CPU) + float64(c.Amounts.Memory)/(4<<20) + 1) * 1e-6
}

// lowerBound is that of the pods on machines, whatever their preferences and
// the weights of the pools.
func (w *work) lowerBound() catalog.Price {
	gathered := map[demand]int{}
	for _, m := range w.machines {
		for _, t := range m.takes {
			w.gatherBase(gathered, t.class, t.n*m.copies)
		}
	}
	return w.priced(sortedDemands(gathered), true).least()
}

// gatherBase adds what n units of a class are parts of, or made of. Pods that
// no plan could put on more than one machine stay together.
func (w *work) gatherBase(gathered map[demand]int, class, n int) {
	c := &w.q.classes[class]
	if c.members == nil || c.forced {
		base := &w.q.classes[c.base]
		gather(gathered, c.base, base.hard, n)
		return
	}
	for _, m := range c.members {
		w.gatherBase(gathered, m.class, n*m.n)
	}
}

// newPricing prepares the bound for the demands: for any plan, or for those that are made here, in
// which no machine has more pods of a spread over hosts than its skew.
func (w *work) newPricing(demands []demand, sound bool) *pricing {
	sets := make([]int, len(demands))
	for i, d := range demands {
		sets[i] = d.set
	}
	lots := w.accepts.Lots(sets)
	p := lowerbound.Problem{Offers: make([]lowerbound.Offer, len(lots))}
	for i, l := range lots {
		p.Offers[i] = lowerbound.Offer{Price: w.st.Offers[l.Offer].Price, Room: w.st.Room(l.Offer)}
	}
	type key struct {
		set     int
		devices string
	}
	numbers, groups := map[key]int{}, map[int]int{}
	p.Effort = boundEffort(demands)
	counts, all := w.capping(demands, sound)
	for _, d := range demands {
		class := &w.q.classes[d.class]
		k := key{d.set, class.devices(w.st.Dims)}
		s, ok := numbers[k]
		if !ok {
			s = len(p.Sets)
			numbers[k] = s
			p.Sets = append(p.Sets, w.offering(class, w.accepts.Sets[d.set], lots))
		}
		need := lowerbound.Demand{Count: d.n, Ask: class.Ask, Set: s}
		if most, group := w.q.profile(class).Cap(counts); most < math.MaxInt {
			g, ok := groups[group]
			if !ok {
				g = len(p.Caps)
				groups[group] = g
				p.Caps = append(p.Caps, most)
			}
			p.Caps[g] = max(p.Caps[g], most)
			need.Groups = []int{g}
		}
		p.Demands = append(p.Demands, need)
	}
	return &pricing{demands: demands, lots: lots, solver: lowerbound.New(p), sound: all}
}

// boundEffort is how many numbers the bound of the demands may touch. What its
// search finds is a share of their price, so few pods are worth little of it.
func boundEffort(demands []demand) int {
	const least, perUnit, most = 250_000, 1_000, 5_000_000
	effort := least
	for _, d := range demands {
		effort += min(d.n, most/perUnit) * perUnit
	}
	return min(effort, most)
}

// offering returns the lots in the set that have all the devices which the class asks for.
func (w *work) offering(c *class, set bitset.Set, lots []offering.Lot) []int {
	var out []int
	for i, l := range lots {
		if !set.Has(l.Offer) {
			continue
		}
		room, enough := w.st.Room(l.Offer), true
		for r := range c.Ask {
			enough = enough && (c.Ask[r] <= 0 || room[r] > 0)
		}
		if enough {
			out = append(out, i)
		}
	}
	return out
}

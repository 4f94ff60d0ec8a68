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

// demand is a number of units that accept the same set of offerings, as the lower bound counts
// them.
type demand struct{ class, set, n int }

// demandOf returns the class and the accept set by which the lower bound counts a class. A part
// that could have been assigned to any domain counts as its whole class. The plan chose the
// domains, and the bound must hold for every plan.
func (pl *planner) demandOf(c int) (class, set int) {
	p := &pl.q.classes[c]
	if whole := &pl.q.classes[p.base]; p.domains != nil && pl.stage[c] == 0 && whole.firstStage == whole.hardSet {
		return p.base, whole.hardSet
	}
	return c, pl.currentSet(c)
}

// addDemand adds n units to the demands.
func addDemand(demands map[demand]int, class, set, n int) {
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

// pricing is the lower bound of a list of demands, and their dual prices.
type pricing struct {
	demands    []demand
	lots       []offering.Lot // the offerings in the lower bound's problem
	solver     *lowerbound.Solver
	result     func() lowerbound.Answer // the finished lower bound; nil until start was called
	forAnyPlan bool                     // the bound holds for any plan, not only for plans of this package
	index      map[demand]int           // cache of demandIndex
}

// pricingFor returns the pricing of the demands. It reuses the last one if the demands are the
// same.
func (pl *planner) pricingFor(demands []demand, sound bool) *pricing {
	if pl.pricing == nil || !slices.Equal(pl.pricing.demands, demands) || sound && !pl.pricing.forAnyPlan {
		pl.pricing = pl.newPricing(demands, sound)
	}
	return pl.pricing
}

// start computes the lower bound in the background.
func (p *pricing) start() {
	if p.result == nil {
		p.solver.Soft() // the caller of start reads the soft prices next
		p.result = parallel.Later(p.solver.Least)
	}
}

// lowerBound waits for the lower bound of the demands and returns it.
func (p *pricing) lowerBound() catalog.Price {
	p.start()
	return p.result().Price
}

// boundTimes returns the lower bound multiplied by n.
func (p *pricing) boundTimes(n float64) float64 { return float64(p.lowerBound()) * n }

// dualPrices returns the hard or the soft dual prices of the demands, at the counts of the problem.
func (p *pricing) dualPrices(hard bool) lowerbound.Worths {
	if hard {
		p.start()
		return p.result().Hard
	}
	return p.solver.Soft()
}

// priceClasses sets the dual price of a unit of each active class: its share of the lowest possible
// price of all of them. A class that no offering accepts gets a price above any real one, because
// only an existing node can take it.
func (pl *planner) priceClasses(active []int) {
	p := pl.pricingFor(pl.demands(active), false)
	pl.setDualPrices(active, p, p.dualPrices(false).Worth)
}

// demands returns the unplaced units of the active classes, as the lower bound counts them.
func (pl *planner) demands(active []int) []demand {
	units := map[demand]int{}
	for _, c := range active {
		class, set := pl.demandOf(c)
		addDemand(units, class, set, pl.left[c])
	}
	return sortedDemands(units)
}

// setDualPrices copies the dual prices of the demands to the classes.
func (pl *planner) setDualPrices(active []int, p *pricing, prices []float64) {
	at := p.demandIndex()
	pl.dualPrice = slices.Repeat([]float64{aboveAnyPrice}, len(pl.q.classes))
	for _, c := range active {
		class, set := pl.demandOf(c)
		pl.dualPrice[c] = pl.q.classes[c].minimalPrice()
		if i, ok := at[demand{class: class, set: set}]; ok {
			pl.dualPrice[c] = max(pl.dualPrice[c], prices[i])
		}
	}
}

// demandIndex returns the index of each demand, by class and accept set.
func (p *pricing) demandIndex() map[demand]int {
	if p.index == nil {
		p.index = make(map[demand]int, len(p.demands))
		for i, d := range p.demands {
			d.n = 0
			p.index[d] = i
		}
	}
	return p.index
}

// expectedLots returns the lots with the lowest price per value that each can reach. holds is, by
// offering of the bound, the highest total dual price of the pods on one node.
func (pl *planner) expectedLots(lots []lot, p *pricing, holds []float64) []lot {
	most := make([]float64, len(pl.stock.Models))
	for i, l := range p.lots {
		m := pl.stock.Offers[l.Offer].Model
		most[m] = max(most[m], holds[i])
	}
	out := slices.Clone(lots)
	for i := range out {
		l := &out[i]
		l.key = l.Price / max(most[pl.stock.Offers[l.Offer].Model], 1e-9)
	}
	return out
}

// priceLots sets the dual prices of the active classes, hard or soft, and returns the lots with
// their expected price per value.
func (pl *planner) priceLots(active []int, lots []lot, hard bool) []lot {
	prices := pl.pricing.dualPrices(hard)
	pl.setDualPrices(active, pl.pricing, prices.Worth)
	return pl.expectedLots(lots, pl.pricing, prices.Holds)
}

// repriceLots does the same for the units in left. The pods placed first took the cheapest
// combinations; the rest has other prices.
func (pl *planner) repriceLots(active, left []int, lots []lot, hard bool) []lot {
	p := pl.pricing
	at, counts := p.demandIndex(), make([]int, len(p.demands))
	for _, c := range active {
		class, set := pl.demandOf(c)
		if i, ok := at[demand{class: class, set: set}]; ok {
			counts[i] += left[c]
		}
	}
	prices := p.solver.Worth(counts, hard)
	pl.steps += len(p.demands) * len(p.lots) / 4 // about as long as that many steps
	if hard {
		pl.steps += len(p.demands) * len(p.lots)
	}
	pl.setDualPrices(active, p, prices.Worth)
	return pl.expectedLots(lots, p, prices.Holds)
}

// aboveAnyPrice is more than any real pod can cost, in billionths of a dollar per hour: a million
// dollars.
const aboveAnyPrice = 1e6 * float64(catalog.Dollar)

// minimalPrice is the dual price of pods that cost nothing, so that they are placed too, the larger
// first. A thousand cores get a billionth of a dollar.
func (c *class) minimalPrice() float64 {
	return (float64(c.Amounts.CPU) + float64(c.Amounts.Memory)/(4<<20) + 1) * 1e-6
}

// lowerBound is the lower bound of the pods on planned nodes, without their preferences and without
// the weights of the NodePools. It knows no capacity reservations; see planLowerBound.
func (pl *planner) lowerBound() catalog.Price {
	units := map[demand]int{}
	for _, pn := range pl.planned {
		for _, a := range pn.allocations {
			pl.addBaseDemand(units, a.class, a.n*pn.copies)
		}
	}
	return pl.pricingFor(sortedDemands(units), true).lowerBound()
}

// addBaseDemand adds n units of the whole class that a part belongs to, or of the members of a
// bundle. A bundle that fits no plan on more than one node stays one demand.
func (pl *planner) addBaseDemand(units map[demand]int, class, n int) {
	c := &pl.q.classes[class]
	if c.members == nil || c.oneNodeOnly {
		base := &pl.q.classes[c.base]
		addDemand(units, c.base, base.hardSet, n)
		return
	}
	for _, m := range c.members {
		pl.addBaseDemand(units, m.class, n*m.n)
	}
}

// newPricing prepares the lower bound of the demands. With forAnyPlan it holds for every plan.
// Otherwise it holds for the plans of this package, in which no new node has more pods of a host
// spread than its maxSkew.
func (pl *planner) newPricing(demands []demand, sound bool) *pricing {
	sets := make([]int, len(demands))
	for i, d := range demands {
		sets[i] = d.set
	}
	lots := pl.accepts.Lots(sets)
	p := lowerbound.Problem{Offers: make([]lowerbound.Offer, len(lots))}
	for i, l := range lots {
		p.Offers[i] = lowerbound.Offer{Price: pl.stock.Offers[l.Offer].Price, Room: pl.stock.Room(l.Offer)}
	}
	type key struct {
		set     int
		devices string
	}
	numbers, groups := map[key]int{}, map[int]int{}
	p.Effort = boundEffort(demands)
	counts, all := pl.spreadCaps(demands, sound)
	for _, d := range demands {
		class := &pl.q.classes[d.class]
		k := key{d.set, class.devices(pl.stock.Dims)}
		s, ok := numbers[k]
		if !ok {
			s = len(p.Sets)
			numbers[k] = s
			p.Sets = append(p.Sets, pl.eligibleLots(class, pl.accepts.Sets[d.set], lots))
		}
		need := lowerbound.Demand{Count: d.n, Ask: class.Ask, Set: s}
		if most, group := pl.q.profile(class).Cap(counts); most < math.MaxInt {
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
	return &pricing{demands: demands, lots: lots, solver: lowerbound.New(p), forAnyPlan: all}
}

// boundEffort returns how many numbers the search for the lower bound may touch. The search gains a
// share of the pods' price, so few pods justify little work.
func boundEffort(demands []demand) int {
	const least, perUnit, most = 250_000, 1_000, 5_000_000
	effort := least
	for _, d := range demands {
		effort += min(d.n, most/perUnit) * perUnit
	}
	return min(effort, most)
}

// eligibleLots returns the indexes of the lots in the set that have every resource which the class
// requests.
func (pl *planner) eligibleLots(c *class, set bitset.Set, lots []offering.Lot) []int {
	var out []int
	for i, l := range lots {
		if !set.Has(l.Offer) {
			continue
		}
		room, enough := pl.stock.Room(l.Offer), true
		for r := range c.Ask {
			enough = enough && (c.Ask[r] <= 0 || room[r] > 0)
		}
		if enough {
			out = append(out, i)
		}
	}
	return out
}

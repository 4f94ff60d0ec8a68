package packing

import (
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/lowerbound"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
)

// pricing is the lower bound of a list of demands, and their dual prices.
type pricing struct {
	demands    []demand
	lots       []offering.Lot // the offerings in the lower bound's problem
	solver     *lowerbound.Solver
	result     func() lowerbound.Answer // the finished lower bound; nil until start was called
	forAnyPlan bool                     // the bound holds for any plan, not only for plans of this package
	index      map[demand]int           // cache of demandIndex
}

// pricer computes the dual prices of the classes.
type pricer struct {
	problem *problem
	queue   *queue
	ground  *existing.Ground
	work    *work

	dualPrice []float64 // by class: the marginal price of one unit, in billionths of a dollar per hour
	last      *pricing  // the last one computed
}

// pricingFor returns the pricing of the demands. It reuses the last one if the demands are the
// same.
func (pc *pricer) pricingFor(demands []demand, sound bool) *pricing {
	if pc.last == nil || !slices.Equal(pc.last.demands, demands) || sound && !pc.last.forAnyPlan {
		pc.last = pc.newPricing(demands, sound)
	}
	return pc.last
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
func (pc *pricer) priceClasses(active []int) {
	p := pc.pricingFor(pc.queue.demands(active), false)
	pc.setDualPrices(active, p, p.dualPrices(false).Worth)
}

// setDualPrices copies the dual prices of the demands to the classes.
func (pc *pricer) setDualPrices(active []int, p *pricing, prices []float64) {
	at := p.demandIndex()
	pc.dualPrice = slices.Repeat([]float64{aboveAnyPrice}, len(pc.queue.classes))
	for _, c := range active {
		class, set := pc.queue.demandOf(c)
		pc.dualPrice[c] = pc.queue.classes[c].minimalPrice()
		if i, ok := at[demand{class: class, set: set}]; ok {
			pc.dualPrice[c] = max(pc.dualPrice[c], prices[i])
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
func (pr *problem) expectedLots(lots []lot, p *pricing, holds []float64) []lot {
	most := make([]float64, len(pr.stock.Models))
	for i, l := range p.lots {
		m := pr.stock.Offers[l.Offer].Model
		most[m] = max(most[m], holds[i])
	}
	out := slices.Clone(lots)
	for i := range out {
		l := &out[i]
		l.key = l.Price / max(most[pr.stock.Offers[l.Offer].Model], 1e-9)
	}
	return out
}

// priceLots sets the dual prices of the active classes, hard or soft, and returns the lots with
// their expected price per value.
func (pc *pricer) priceLots(active []int, lots []lot, hard bool) []lot {
	prices := pc.last.dualPrices(hard)
	pc.setDualPrices(active, pc.last, prices.Worth)
	return pc.problem.expectedLots(lots, pc.last, prices.Holds)
}

// repriceLots does the same for the units in left. The pods placed first took the cheapest
// combinations; the rest has other prices.
func (pc *pricer) repriceLots(active, left []int, lots []lot, hard bool) []lot {
	p := pc.last
	at, counts := p.demandIndex(), make([]int, len(p.demands))
	for _, c := range active {
		class, set := pc.queue.demandOf(c)
		if i, ok := at[demand{class: class, set: set}]; ok {
			counts[i] += left[c]
		}
	}
	prices := p.solver.Worth(counts, hard)
	pc.work.steps += len(p.demands) * len(p.lots) / 4 // about as long as that many steps
	if hard {
		pc.work.steps += len(p.demands) * len(p.lots)
	}
	pc.setDualPrices(active, p, prices.Worth)
	return pc.problem.expectedLots(lots, p, prices.Holds)
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
func (pb planBound) lowerBound() catalog.Price {
	units := map[demand]int{}
	for _, pn := range pb.sol.planned {
		for _, a := range pn.allocations {
			pb.queue.addBaseDemand(units, a.class, a.n*pn.copies)
		}
	}
	return pb.prices.pricingFor(sortedDemands(units), true).lowerBound()
}

// newPricing prepares the lower bound of the demands. With forAnyPlan it holds for every plan.
// Otherwise it holds for the plans of this package, in which no new node has more pods of a host
// spread than its maxSkew.
func (pc *pricer) newPricing(demands []demand, sound bool) *pricing {
	sets := make([]int, len(demands))
	for i, d := range demands {
		sets[i] = d.set
	}
	lots := pc.problem.accepts.Lots(sets)
	p := lowerbound.Problem{Offers: make([]lowerbound.Offer, len(lots))}
	for i, l := range lots {
		p.Offers[i] = lowerbound.Offer{Price: pc.problem.stock.Offers[l.Offer].Price, Room: pc.problem.stock.Room(l.Offer)}
	}
	type key struct {
		set     int
		devices string
	}
	numbers, groups := map[key]int{}, map[int]int{}
	p.Effort = boundEffort(demands)
	counts, all := pc.spreadCaps(demands, sound)
	for _, d := range demands {
		class := &pc.queue.classes[d.class]
		k := key{d.set, class.devices(pc.problem.stock.Dims)}
		s, ok := numbers[k]
		if !ok {
			s = len(p.Sets)
			numbers[k] = s
			p.Sets = append(p.Sets, pc.problem.eligibleLots(class, pc.problem.accepts.Sets[d.set], lots))
		}
		need := lowerbound.Demand{Count: d.n, Ask: class.Ask, Set: s}
		if most, group := pc.queue.profile(class).Cap(counts); most < math.MaxInt {
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

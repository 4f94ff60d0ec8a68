package packing

import (
	"cmp"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
)

// planBound computes the lower bound of a solution's price.
type planBound struct {
	problem *problem
	queue   *queue
	prices  *pricer
	sol     *solution
}

func newPlanBound(sol *solution) planBound {
	return planBound{problem: sol.problem, queue: sol.queue, prices: sol.prices, sol: sol}
}

// planLowerBound returns the lower bound of the plan: no plan for the pods on its new nodes costs
// less.
//
// The lower bound itself assumes unlimited instances of each offering. With capacity reservations
// it still holds, for this reason. Take any plan. Replace each reserved node by one of an on-demand
// or spot offering with at least its room, that all pods accept which accept the reserved one. The
// result costs no less than the bound. The replacements add at most the credit: a reservation
// allows no more of them than it has instances left, or than pods that accept it. So the plan costs
// at least the bound minus the credit. It also costs at least as much as the pods that accept no
// reservation.
func (pb planBound) planLowerBound() catalog.Price {
	if len(pb.problem.stock.Reserves) == 0 {
		return pb.lowerBound()
	}
	units := map[demand]int{}
	for _, pn := range pb.sol.planned {
		for _, a := range pn.allocations {
			pb.queue.addBaseDemand(units, a.class, a.n*pn.copies)
		}
	}
	all := sortedDemands(units)
	unreservable := slices.DeleteFunc(slices.Clone(all), func(d demand) bool { return pb.problem.accepts.Sets[d.set].Meets(pb.problem.stock.Reserved) })
	alone := pb.prices.pricingFor(unreservable, true).lowerBound()
	if len(unreservable) == len(all) {
		return alone
	}
	rc := newReservationCredit(pb.problem, pb.queue, all)
	withReplacements := pb.prices.pricingFor(rc.demands, true).lowerBound() - rc.total(rc.demands)
	return max(alone, withReplacements, pb.dualPriceBound(all))
}

// dualPriceBound returns another lower bound of the demands: the sum of their dual prices, minus
// the most that the instances of capacity reservations can hold. It holds because no node can hold
// pods whose dual prices exceed its price. It is the tighter bound where reserved instances are
// large or unusual and their replacements expensive.
func (pb planBound) dualPriceBound(demands []demand) catalog.Price {
	p := pb.prices.pricingFor(demands, true)
	rc := &reservationCredit{problem: pb.problem, queue: pb.queue, demands: demands, savings: make([]catalog.Price, len(pb.problem.stock.Reserves))}
	for n := range pb.problem.stock.Reserves {
		for _, o := range pb.problem.stock.Reserves[n].Offers {
			holds := catalog.Price(min(rc.maxValue(o, p.dualPrices(true).Worth), float64(maxSavings))) + 1
			rc.savings[n] = max(rc.savings[n], holds-pb.problem.stock.Offers[o].Price)
		}
	}
	sum := 0.0
	for i, d := range demands {
		sum += p.dualPrices(true).Worth[i] * float64(d.n)
	}
	return catalog.Price(sum*(1-1e-9)) - rc.total(demands)
}

// maxSavings keeps sums of savings from overflowing.
const maxSavings = 1_000_000 * catalog.Dollar

// maxValue returns an upper limit for the total dual price of the pods on one node of the offering.
// If no pod's dual price exceeds given rates for its requests, no node holds more than its room at
// these rates. Several ratios between rates are tried.
func (rc *reservationCredit) maxValue(o int, prices []float64) float64 {
	room := rc.problem.stock.Room(o)
	least := math.Inf(1)
	for _, rates := range rateRatios(rc.problem.stock.Dims) {
		amount := func(v resources.Vector) float64 {
			sum := 0.0
			for r, n := range v {
				sum += rates[r] * float64(max(n, 0))
			}
			return sum
		}
		most := 0.0
		for i, d := range rc.demands {
			if ask := rc.queue.classes[d.class].Ask; prices[i] > 0 && rc.problem.accepts.Sets[d.set].Has(o) && ask.Fits(room) {
				most = max(most, prices[i]/amount(ask)) // infinite if the pod requests none of these resources
			}
		}
		if !math.IsInf(most, 1) {
			least = min(least, most*amount(room))
		}
	}
	return least
}

// rateRatios returns rates per unit of each resource to try: each resource alone, and CPU with
// memory at several ratios of GiB per core.
func rateRatios(dims resources.Dimensions) [][]float64 {
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

// reservationCredit is an upper limit for what capacity reservations can save.
type reservationCredit struct {
	problem *problem
	queue   *queue
	lots    []offering.Lot
	demands []demand        // the demands that unreserved offerings can serve too
	savings []catalog.Price // by reservation: the most that one instance saves
	options map[demand]int  // number of lots that each demand accepts
}

func newReservationCredit(pr *problem, q *queue, demands []demand) *reservationCredit {
	sets := make([]int, len(demands))
	for i, d := range demands {
		sets[i] = d.set
	}
	rc := &reservationCredit{problem: pr, queue: q, lots: pr.accepts.Lots(sets), savings: make([]catalog.Price, len(pr.stock.Reserves)), options: map[demand]int{}}
	for _, d := range demands {
		for _, l := range rc.lots {
			if pr.accepts.Sets[d.set].Has(l.Offer) {
				rc.options[d]++
			}
		}
	}
	rc.demands = slices.DeleteFunc(slices.Clone(demands), func(d demand) bool { return rc.options[d] == 0 })
	for n := range pr.stock.Reserves {
		for _, o := range pr.stock.Reserves[n].Offers {
			rc.savings[n] = max(rc.savings[n], rc.replacementCost(o))
		}
	}
	return rc
}

// replacementCost returns the extra price of a node that serves every demand which the reserved
// offering serves. If there is no such node, it drops demands, those with the fewest options first.
// A bound for some of the pods is a bound for all.
func (rc *reservationCredit) replacementCost(o int) catalog.Price {
	for {
		users := slices.DeleteFunc(slices.Clone(rc.demands), func(d demand) bool { return !rc.problem.accepts.Sets[d.set].Has(o) })
		if len(users) == 0 {
			return 0
		}
		best := catalog.Price(-1)
		for _, l := range rc.lots {
			lacks := func(d demand) bool { return !rc.problem.accepts.Sets[d.set].Has(l.Offer) }
			if price := rc.problem.stock.Offers[l.Offer].Price; (best < 0 || price < best) && rc.problem.stock.Room(o).Fits(rc.problem.stock.Room(l.Offer)) &&
				!slices.ContainsFunc(users, lacks) {
				best = price
			}
		}
		if best >= 0 {
			return max(best-rc.problem.stock.Offers[o].Price, 0)
		}
		first := slices.MinFunc(users, func(a, b demand) int { return cmp.Compare(rc.options[a], rc.options[b]) })
		rc.demands = slices.DeleteFunc(rc.demands, func(d demand) bool { return d == first })
	}
}

// total returns the most that all instances of all reservations can save for these demands.
func (rc *reservationCredit) total(demands []demand) catalog.Price {
	sum := catalog.Price(0)
	for n := range rc.problem.stock.Reserves {
		r := &rc.problem.stock.Reserves[n]
		pods := 0
		for _, d := range demands {
			if slices.ContainsFunc(r.Offers, rc.problem.accepts.Sets[d.set].Has) {
				pods += d.n * rc.queue.classes[d.class].podsPerUnit
			}
		}
		sum += rc.savings[n] * catalog.Price(max(min(r.Left, pods), 0))
	}
	return sum
}

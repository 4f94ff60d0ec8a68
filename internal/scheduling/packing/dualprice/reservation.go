package dualprice

import (
	"cmp"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
)

// PlanBound returns a lower bound of the price of any plan for the demands.
//
// Pricing.LowerBound assumes unlimited instances of each offering, and no capacity reservations. With capacity
// reservations, LowerBound minus a credit is still a lower bound. Proof: take any plan, and replace each reserved
// node by a node of an on-demand or spot offering. This offering has at least the room of the reserved node, and the
// pods accept it. The result costs at least the bound. The replacements add at most the credit, because the number of
// replaced nodes of a reservation is limited by its unused instances and by the pods that accept the reservation. So
// the plan costs at least the bound minus the credit. The plan also costs at least the bound of the pods that accept
// no reservation.
func (pr *Pricer) PlanBound(all []Demand) catalog.Price {
	if len(pr.Stock.Reservations) == 0 {
		return pr.For(all, true).LowerBound()
	}
	acceptsReserved := func(d Demand) bool { return pr.Accepts.Sets[d.Set].Intersects(pr.Stock.Reserved) }
	unreservable := slices.DeleteFunc(slices.Clone(all), acceptsReserved)
	unreservableBound := pr.For(unreservable, true).LowerBound()
	if len(unreservable) == len(all) {
		return unreservableBound
	}
	rc := newReservationCredit(pr, all)
	withReplacements := pr.For(rc.demands, true).LowerBound() - rc.total(rc.demands)
	return max(unreservableBound, withReplacements, pr.dualPriceBound(all))
}

// dualPriceBound returns another lower bound of the demands: the sum of their hard dual prices, minus a credit. The
// credit is the maximum by which the dual prices of pods on reserved instances can exceed the price of these instances.
// The bound holds because the total dual price of the pods on any other node never exceeds the price of that node.
// It is tighter than the bound minus the cost of replacements if reserved instances are large or unusual, so that their
// replacements are expensive.
func (pr *Pricer) dualPriceBound(demands []Demand) catalog.Price {
	p := pr.For(demands, true)
	rc := &reservationCredit{pricer: pr, demands: demands, savings: make([]catalog.Price, len(pr.Stock.Reservations))}
	for n := range pr.Stock.Reservations {
		for _, o := range pr.Stock.Reservations[n].Offers {
			value := catalog.Price(min(rc.maxValue(o, p.DualPrices(true).PerPod), float64(maxSavings))) + 1 // rounded up
			rc.savings[n] = max(rc.savings[n], value-pr.Stock.Offers[o].Price)
		}
	}
	sum := 0.0
	for i, d := range demands {
		sum += p.DualPrices(true).PerPod[i] * float64(d.N)
	}
	return catalog.Price(sum*(1-1e-9)) - rc.total(demands) // 1e-9 exceeds the rounding error of the sum
}

// maxSavings is the maximum that one instance is assumed to save. It keeps sums of savings from overflowing.
const maxSavings = 1_000_000 * catalog.Dollar

// maxValue returns an upper limit for the total dual price of the pods on one node of the offering; +Inf if none was
// found. prices are the dual prices, by demand. A rate is a price per unit of a resource. Suppose that no pod's dual
// price exceeds the price of its requests at some rates. Then the pods on a node are worth at most the price of the
// node's room at these rates. maxValue tries several ratios between the rates, and returns the lowest limit.
func (rc *reservationCredit) maxValue(o int, prices []float64) float64 {
	room := rc.pricer.Stock.Room(o)
	least := math.Inf(1)
	for _, rates := range rateRatios(rc.pricer.Stock.Dims) {
		amount := func(v resources.Vector) float64 {
			sum := 0.0
			for r, n := range v {
				sum += rates[r] * float64(max(n, 0))
			}
			return sum
		}
		scale := 0.0 // the factor that the rates need, so that no pod's dual price exceeds the price of its requests
		for i, d := range rc.demands {
			if ask := rc.pricer.Class(d.Class).Ask; prices[i] > 0 && rc.pricer.Accepts.Sets[d.Set].Has(o) && ask.Fits(room) {
				scale = max(scale, prices[i]/amount(ask)) // infinite if the pod requests none of these resources
			}
		}
		if !math.IsInf(scale, 1) {
			least = min(least, scale*amount(room))
		}
	}
	return least
}

// rateRatios returns the rates to try, by resource: each resource alone, and CPU together with memory. In the latter,
// one core is worth as much as 1 to 32 GiB.
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
	pricer  *Pricer
	lots    []offering.Lot  // unreserved offerings that a demand accepts
	demands []Demand        // the demands that unreserved offerings can serve too
	savings []catalog.Price // by reservation: the maximum that one instance saves
	options map[Demand]int  // number of lots that each demand accepts
}

// newReservationCredit computes the savings for the demands. It drops the demands that no replacement of a reserved
// node can serve.
func newReservationCredit(pr *Pricer, demands []Demand) *reservationCredit {
	sets := make([]int, len(demands))
	for i, d := range demands {
		sets[i] = d.Set
	}
	rc := &reservationCredit{
		pricer:  pr,
		lots:    pr.Accepts.Lots(sets),
		savings: make([]catalog.Price, len(pr.Stock.Reservations)),
		options: map[Demand]int{},
	}
	for _, d := range demands {
		for _, l := range rc.lots {
			if pr.Accepts.Sets[d.Set].Has(l.Offer) {
				rc.options[d]++
			}
		}
	}
	rc.demands = slices.DeleteFunc(slices.Clone(demands), func(d Demand) bool { return rc.options[d] == 0 })
	for n := range pr.Stock.Reservations {
		for _, o := range pr.Stock.Reservations[n].Offers {
			rc.savings[n] = max(rc.savings[n], rc.replacementCost(o))
		}
	}
	return rc
}

// replacementCost returns the extra price of the cheapest unreserved offering that has the room of the reserved
// offering and serves every demand that the reserved offering serves. If there is no such offering, replacementCost
// drops demands, those with the fewest options first. That is valid because a lower bound for some of the pods is also
// a lower bound for all.
func (rc *reservationCredit) replacementCost(o int) catalog.Price {
	for {
		served := slices.DeleteFunc(slices.Clone(rc.demands), func(d Demand) bool { return !rc.pricer.Accepts.Sets[d.Set].Has(o) })
		if len(served) == 0 {
			return 0
		}
		best := catalog.Price(-1)
		for _, l := range rc.lots {
			lacks := func(d Demand) bool { return !rc.pricer.Accepts.Sets[d.Set].Has(l.Offer) }
			if price := rc.pricer.Stock.Offers[l.Offer].Price; (best < 0 || price < best) &&
				rc.pricer.Stock.Room(o).Fits(rc.pricer.Stock.Room(l.Offer)) &&
				!slices.ContainsFunc(served, lacks) {
				best = price
			}
		}
		if best >= 0 {
			return max(best-rc.pricer.Stock.Offers[o].Price, 0)
		}
		fewest := slices.MinFunc(served, func(a, b Demand) int { return cmp.Compare(rc.options[a], rc.options[b]) })
		rc.demands = slices.DeleteFunc(rc.demands, func(d Demand) bool { return d == fewest })
	}
}

// total returns the most that all instances of all reservations can save for these demands.
func (rc *reservationCredit) total(demands []Demand) catalog.Price {
	sum := catalog.Price(0)
	for n := range rc.pricer.Stock.Reservations {
		r := &rc.pricer.Stock.Reservations[n]
		pods := 0
		for _, d := range demands {
			if slices.ContainsFunc(r.Offers, rc.pricer.Accepts.Sets[d.Set].Has) {
				pods += d.N * rc.pricer.PodsOf(d.Class)
			}
		}
		sum += rc.savings[n] * catalog.Price(max(min(r.Left, pods), 0))
	}
	return sum
}

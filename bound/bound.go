// Package bound says what the cheapest conceivable plan would cost.
//
// In: what is asked for and what can be bought, as numbers.
// Out: a price that no plan can beat, and what one pod of each kind is worth.
// Never: a machine, a name, or a number that some plan could go below.
package bound

import (
	"math"

	"github.com/joiner-sh/joiner/catalog"
)

// Offer is a machine that can be bought any number of times.
type Offer struct {
	Price catalog.Price
	Room  []int64 // for pods, by resource
}

// Demand is Count pods that each ask for Ask and can run on the offers of one set.
type Demand struct {
	Count int
	Ask   []int64 // by resource, as in Offer.Room
	Set   int     // index into Problem.Sets
	// Groups are those of Problem.Caps that the pods belong to, in rising
	// order; most pods are in none or in one.
	Groups []int
}

// Problem is what to buy for.
type Problem struct {
	Offers  []Offer
	Sets    [][]int // each: indexes into Offers; an empty set contributes nothing
	Demands []Demand
	// Caps is, by group of pods, the most of them that one machine may hold,
	// as anti-affinity and spread over host names have it.
	Caps []int
}

// Answer is the bound and the prices that prove it.
type Answer struct {
	Price catalog.Price
	// Worth is, for each demand, what one of its pods adds to the bound, in
	// billionths of a dollar per hour: the dual price of the pod. No offer
	// holds pods whose worth together exceeds its price.
	Worth []float64
	// Holds is, for each offer, the most that pods on one machine of it can be
	// worth together: at most its price, and 0 for an offer of no set.
	Holds []float64
}

// Least returns a lower bound on the price of any set of offers that holds all
// the demands.
//
// Why it is one: split the price of each offer over its resources, in whatever
// shares. A pod on a machine of the offer then pays, for each resource, the
// share of the room that it takes. Pods on one machine take no more than all
// of it, so together they pay no more than its price; and a pod pays at least
// what it would pay where it pays least. Summed over the pods, that is no more
// than any plan costs, whatever the shares are, so Least looks for shares that
// make the sum large: first by one weight per resource for all offers, then by
// shares for each offer. The best of all shares prove the linear relaxation, in which
// pods are spread in fractions over machines in fractions.
//
// A group with a cap is one more resource, of which every machine has as much
// as the cap, and each pod of the group takes one: where the cap is 1, a pod
// may pay for the machine alone.
//
// Demands that share no offer, such as those of two architectures, never share a
// machine: each such part is bounded by itself. And two things make small
// problems tighter: a demand that shares no offer with others fills machines
// with a whole number of pods, and no plan costs less than one machine for its
// most demanding pod.
func Least(p Problem) Answer {
	out := Answer{Worth: make([]float64, len(p.Demands)), Holds: make([]float64, len(p.Offers))}
	total := 0.0
	for _, part := range parts(p) {
		total += max(part.solve(&out), part.dearest())
	}
	// Prices are whole, so rounding to the nearest goes above no plan; the
	// errors of the sums are far below a part in 1e12.
	out.Price = catalog.Price(math.Floor(total*(1-1e-12) + 0.5))
	return out
}

// part is a set of demands that share offers, directly or through others.
type part struct {
	demands []int // indexes into problem.Demands
	groups  []group
	problem Problem
	scale   []float64 // amount of each resource asked for in all
}

// group is what the demands of one set ask for together.
type group struct {
	set   int
	asked []float64
	rates [][]float64 // for each offer that may set the rate: room/price by resource
}

// solve returns the bound of the part, and notes in out the prices of its
// demands and offers.
func (p *part) solve(out *Answer) float64 {
	if len(p.demands) == 1 {
		return p.alone(out)
	}
	weights, _ := p.search()
	r := p.refine(weights)
	for i, d := range p.demands {
		out.Worth[d] = r.worth[i]
	}
	r.hold(out)
	return r.value
}

// alone solves a part with a single demand, where the pods of a machine can be
// counted: an offer holds a whole number of them.
func (p *part) alone(out *Answer) float64 {
	d := p.problem.Demands[p.demands[0]]
	set := p.problem.Sets[d.Set]
	least := math.Inf(1)
	for _, o := range set {
		offer := p.problem.Offers[o]
		if n := p.problem.times(d, offer); n > 0 {
			least = min(least, max(float64(offer.Price), 0)/n)
		}
	}
	if math.IsInf(least, 1) {
		return 0 // no offer takes the pod: no plan buys for it
	}
	for _, o := range set {
		out.Holds[o] = least * p.problem.times(d, p.problem.Offers[o])
	}
	out.Worth[p.demands[0]] = least
	return least * float64(d.Count)
}

// times returns how many pods of the demand one machine of the offer holds, at most 1e9.
func (p *Problem) times(d Demand, o Offer) float64 {
	n := int64(1e9)
	for r, a := range d.Ask {
		if a > 0 {
			n = min(n, max(o.Room[r], 0)/a)
		}
	}
	for _, g := range d.Groups {
		n = min(n, int64(max(p.Caps[g], 0)))
	}
	return float64(n)
}

// dearest returns the price of the cheapest machine that takes one pod, of the
// demand for which that is most: whatever else is bought, it is.
func (p *part) dearest() float64 {
	most := 0.0
	for _, i := range p.demands {
		d := p.problem.Demands[i]
		least := math.Inf(1)
		for _, o := range p.problem.Sets[d.Set] {
			if offer := p.problem.Offers[o]; p.problem.times(d, offer) >= 1 {
				least = min(least, float64(offer.Price))
			}
		}
		if d.Count > 0 && !math.IsInf(least, 1) {
			most = max(most, least)
		}
	}
	return most
}

// value is the bound that these weights prove.
func (p *part) value(weights []float64) float64 {
	total := 0.0
	for _, g := range p.groups {
		asked := 0.0
		for r, w := range weights {
			asked += w * g.asked[r]
		}
		total += asked * g.rate(weights)
	}
	return total
}

// rate is the least that a unit of size costs among the offers of the set.
func (g *group) rate(weights []float64) float64 {
	most := 0.0 // size per price; the rate is its inverse
	for _, perPrice := range g.rates {
		n := 0.0
		for r, w := range weights {
			n += w * perPrice[r]
		}
		most = max(most, n)
	}
	if most <= 0 || math.IsInf(most, 1) {
		return 0
	}
	return 1 / most
}

// The search moves one weight at a time by a factor, first by e^4, in the end
// by less than a thousandth.
const (
	firstStep = 4.0
	lastStep  = 0.0005
	maxRounds = 400
)

// search returns good weights and the bound they prove. It starts from each
// resource alone and from all alike, and climbs from the best.
func (p *part) search() ([]float64, float64) {
	n := len(p.scale)
	best, weights := -1.0, make([]float64, n)
	consider := func(candidate []float64) bool {
		v := p.value(candidate)
		if v <= best*(1+1e-12) {
			return false
		}
		best = v
		copy(weights, candidate)
		return true
	}
	try := make([]float64, n)
	for start := 0; start <= n; start++ {
		for r := range try {
			try[r] = 0
			if p.scale[r] > 0 && (start == r || start == n) {
				try[r] = 1 / p.scale[r]
			}
		}
		consider(try)
	}
	for step, round := firstStep, 0; step > lastStep && round < maxRounds; round++ {
		better := false
		for r := range n {
			for _, factor := range [2]float64{math.Exp(step), math.Exp(-step)} {
				copy(try, weights)
				if p.scale[r] > 0 {
					try[r] = max(try[r], 1e-9/p.scale[r]) * factor
				}
				better = consider(try) || better
			}
		}
		if !better {
			step /= 2
		}
	}
	return weights, max(best, 0)
}

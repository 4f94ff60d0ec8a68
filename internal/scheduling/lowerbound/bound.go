// Package lowerbound computes a lower bound on the price of any plan, and a dual price for each class of pods.
//
// In: demands and offerings, as numbers.
// Out: a lower bound of the price of any plan, and the dual price of one pod of each class.
// Never: a planned node, a name, or a bound above the price of some plan.
//
// Every step except cover is based on this theorem (proof: see Compute). If the dual prices of the pods on any
// one node add up to at most the node's price, then no plan costs less than the sum of the dual prices of all pods.
// The steps differ in how they find dual prices, and in how they prove the limit for each node. ascent divides the
// price of each node among its resources; generation tries nodes with whole pods.
package lowerbound

import (
	"cmp"
	"math"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Offer is an offering that can be launched any number of times.
type Offer struct {
	Price catalog.Price // price per hour
	Room  []int64       // room for pods, by resource
}

// Demand is Count pods that each request Ask and can run on the offers of one set.
type Demand struct {
	Count int     // number of pods
	Ask   []int64 // by resource, as in Offer.Room
	Set   int     // index into Problem.Sets
	// Groups are indices into Problem.Caps of the groups that the pods belong to, ascending. Most pods are
	// in at most one group.
	Groups []int
}

// Problem has the demands and the offerings.
type Problem struct {
	Offers  []Offer  // the offerings that can be launched
	Sets    [][]int  // by set: indices into Offers; demands with an empty set add nothing to the bound
	Demands []Demand // the pods
	// Caps is, by group, the maximum number of its pods on one node, from anti-affinity and spread over host names.
	Caps []int
	// Effort limits the search for dual prices beyond the linear relaxation. Its unit is one number read or written; a
	// million take a few milliseconds. 0 means 5 million.
	Effort int
}

// usualEffort is the default of Problem.Effort.
const usualEffort = 5_000_000

// Result has the lower bound and the dual prices of pods.
type Result struct {
	Price catalog.Price // the lower bound, per hour
	// Soft are the dual prices after the first rounds (see softRounds). Hard are the dual prices after the last round;
	// their sum is higher. Price may be higher still: climbFromUnitPrices, generate and cover improve only Price.
	Soft, Hard DualPrices
}

// DualPrices are dual prices of pods: the sum over the pods on a node of an offering never exceeds the offering's
// price.
type DualPrices struct {
	// PerPod is, for each demand, the dual price of one pod in billionths of a dollar per hour. It is 0 for a
	// demand of no pods, and for pods that fit no offering.
	PerPod []float64
	// PerNode is, for each offering, an upper limit of the sum of dual prices on one node. It is at most the price of
	// the offering, and 0 for an offering that is in no set.
	PerNode []float64
}

// Compute returns a lower bound on the price of any set of offers that holds all
// the demands.
//
// The proof: choose a dual price for each pod such that the sum over the pods on any node never
// exceeds the node's price. The nodes of a plan hold all pods, so they cost at least the sum of all dual
// prices. This holds for any such dual prices; Compute searches for dual prices with a large sum. The largest
// sum is the optimum of a linear program. Its dual program covers the pods by fractions of nodes that
// each hold whole pods.
//
// Demands without a common offer, such as demands for two architectures, never share a node, so each such part of the
// problem has its own bound. A part also costs at least as much as the pods of any single demand or group. cover
// computes this limit with whole nodes.
func Compute(p Problem) Result { return New(p).Bound() }

// Solver solves one problem, and the problems of parts of its pods. Bound and DualPrices may run
// concurrently, but DualPrices must not be called concurrently with itself.
type Solver struct {
	problem       Problem
	parts         []*ascent // by part: the common data, never started
	forDualPrices []*ascent // by part: the ascent of method DualPrices

	forBound []*ascent  // by part: the ascent of method Bound, which SoftPrices creates and starts
	soft     DualPrices // result of SoftPrices; zero before its first call
}

// New returns a Solver for the problem. The problem must not be changed afterwards.
func New(p Problem) *Solver {
	s := &Solver{problem: p}
	for _, q := range parts(p) {
		a := q.newAscent()
		s.parts, s.forDualPrices = append(s.parts, a), append(s.forDualPrices, a.fork())
	}
	return s
}

// SoftPrices returns the soft dual prices of the whole problem, from which Bound continues. Call it before Bound or not
// at all.
func (s *Solver) SoftPrices() DualPrices {
	if s.soft.PerPod != nil {
		return s.soft
	}
	s.soft = s.zeroDualPrices()
	for _, part := range s.parts {
		a := part.fork()
		a.reset(a.counts(nil))
		a.computeSoft()
		a.setDualPrices(&s.soft)
		s.forBound = append(s.forBound, a)
	}
	return s.soft
}

// Bound returns the result for the whole problem. It must be called at most once.
func (s *Solver) Bound() Result {
	out := Result{Soft: s.SoftPrices(), Hard: s.zeroDualPrices()}
	effort := cmp.Or(s.problem.Effort, usualEffort)
	total := 0.0
	for _, a := range s.forBound {
		a.computeHard()
		a.setDualPrices(&out.Hard)
		a.climbFromUnitPrices()
		dualPrice := a.dualPrice
		if n := len(a.classes); n > 1 && n <= maxGeneratedClasses {
			g := a.generate(dualPrice, effort)
			dualPrice, effort = g.dualPrice, max(effort-g.steps, 1)
		}
		value := a.total(dualPrice)
		total += max(value, a.cover(value))
	}
	out.Price = toPrice(total)
	return out
}

// DualPrices returns the soft or the hard dual prices for other numbers of pods. counts has, by demand, the number of
// pods, at most that of the problem. DualPrices takes a small part of the time of Bound.
func (s *Solver) DualPrices(counts []int, hard bool) DualPrices {
	out := s.zeroDualPrices()
	for _, a := range s.forDualPrices {
		a.reset(a.counts(counts))
		a.computeSoft()
		if hard {
			a.computeHard()
		}
		a.setDualPrices(&out)
	}
	return out
}

func (s *Solver) zeroDualPrices() DualPrices {
	return DualPrices{PerPod: make([]float64, len(s.problem.Demands)), PerNode: make([]float64, len(s.problem.Offers))}
}

// toPrice converts a lower bound to a price. Prices of plans are integers, so no plan costs less than the bound rounded
// up, and rounding to the nearest integer is safe. The total is first lowered by 1e-12 of it, which is far more than
// its rounding errors.
func toPrice(total float64) catalog.Price { return catalog.Price(math.Floor(total*(1-1e-12) + 0.5)) }

// counts converts numbers of pods by demand to numbers of pods by class. nil means the numbers of the problem.
func (p *part) counts(byDemand []int) []float64 {
	out := make([]float64, len(p.classes))
	for i := range p.classes {
		if byDemand == nil {
			out[i] = float64(p.classes[i].count)
			continue
		}
		for _, d := range p.classes[i].demands {
			out[i] += float64(byDemand[d])
		}
	}
	return out
}

func (p *part) total(dualPrice []float64) float64 {
	sum := 0.0
	for i := range p.classes {
		sum += dualPrice[i] * float64(p.classes[i].count)
	}
	return sum
}

// profitLimit returns an upper limit of the sum of (dual price − payment) over the pods on one node. perUnit has the
// rates: by resource, the price of one unit. The node is of the kind, or of an offer that the kind dominates. The
// payment of all pods is at most the price of the node's whole room at these rates.
func (p *part) profitLimit(k *kind, perUnit, dualPrice []float64) float64 {
	sum := 0.0
	for _, i := range k.classes {
		c := &p.classes[i]
		profit := dualPrice[i]
		for r, a := range c.ask {
			profit -= a * perUnit[r]
		}
		if profit > 0 {
			sum += profit * float64(k.maxPods(c))
		}
	}
	return sum
}

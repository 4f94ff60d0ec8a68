// Package lowerbound computes a lower bound on the price of any plan, and a dual price for each class of pods.
//
// In: demands and offerings, as numbers.
// Out: a price below which no plan can be, and the dual price of one pod of each class.
// Never: a planned node, a name, or a number that a plan could be below.
//
// Every step is based on one theorem (Compute has the proof): if no node can hold pods whose dual prices exceed its price, then no plan
// costs less than the sum of the dual prices of its pods. The steps differ in how they find dual prices, and in how they prove what a
// node can hold: ascent splits prices into shares, generation tries nodes with whole pods.
package lowerbound

import (
	"cmp"
	"math"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Offer is an offering that can be launched any number of times.
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

// Problem has the demands and the offerings.
type Problem struct {
	Offers  []Offer
	Sets    [][]int // each: indexes into Offers; an empty set contributes nothing
	Demands []Demand
	// Caps is, by group of pods, the most of them on one node, from anti-affinity and spread over host names.
	Caps []int
	// Effort bounds the search for dual prices beyond the linear relaxation, in numbers
	// touched; a million take some milliseconds. 0 is 5 million.
	Effort int
}

// usualEffort is the effort of a problem that names none.
const usualEffort = 5_000_000

// Result is the bound, and prices for pods.
type Result struct {
	Price catalog.Price
	// Soft are dual prices of the first rounds (see softRounds), Hard those of the last, which prove more.
	Soft, Hard DualPrices
}

// DualPrices are dual prices of pods: no offering holds pods whose sum of dual prices exceeds its price.
type DualPrices struct {
	// PerPod is, for each demand, what one of its pods is worth, in billionths of a dollar per hour. 0 for a
	// demand of no pods, and for what nothing holds.
	PerPod []float64
	// PerNode is, for each offering, the largest sum of dual prices on one node of it: at most its price, and 0 for an offering
	// of no set.
	PerNode []float64
}

// Compute returns a lower bound on the price of any set of offers that holds all
// the demands.
//
// The proof: give each pod a dual price, such that no node can hold pods whose dual prices together
// exceed its price. The nodes of a plan hold all pods, so they cost at least the sum of all dual
// prices. That is so for any such dual prices; Compute searches for ones with a large sum. The largest
// sum is the optimum of a linear program, whose dual spreads the pods in fractions over nodes that
// each hold whole pods.
//
// Demands that share no offer, such as those of two architectures, never share a node: each such part
// has a bound of its own. And a part costs no less than the pods of one demand, or of one group, do
// alone, which is computed with whole nodes (cover).
func Compute(p Problem) Result { return New(p).Bound() }

// Solver solves one problem, and the problems of parts of its pods. Bound and DualPrices may run
// concurrently, but DualPrices must not be called concurrently with itself.
type Solver struct {
	problem   Problem
	parts     []*ascent // never started
	dualPrice []*ascent // those for Worth

	started []*ascent // those for Bound, once the soft dual prices are found
	soft    DualPrices
}

// New prepares the answers. The problem must not be altered any more.
func New(p Problem) *Solver {
	s := &Solver{problem: p}
	for _, q := range parts(p) {
		a := q.newAscent()
		s.parts, s.dualPrice = append(s.parts, a), append(s.dualPrice, a.fork())
	}
	return s
}

// SoftPrices returns the soft dual prices of the whole problem, from which Bound continues. It must not be called once Bound has started.
func (s *Solver) SoftPrices() DualPrices {
	if s.soft.PerPod != nil {
		return s.soft
	}
	s.soft = s.zeroDualPrices()
	for _, part := range s.parts {
		a := part.fork()
		a.begin(a.counts(nil))
		a.soften()
		a.answer(&s.soft)
		s.started = append(s.started, a)
	}
	return s.soft
}

// Bound returns the result for the whole problem. It must be called once.
func (s *Solver) Bound() Result {
	out := Result{Soft: s.SoftPrices(), Hard: s.zeroDualPrices()}
	effort := cmp.Or(s.problem.Effort, usualEffort)
	total := 0.0
	for _, a := range s.started {
		a.harden()
		a.answer(&out.Hard)
		a.level()
		dualPrice := a.dualPrice
		if n := len(a.classes); n > 1 && n <= mostGenerated {
			g := a.generate(dualPrice, effort)
			dualPrice, effort = g.dualPrice, max(effort-g.steps, 1)
		}
		value := a.total(dualPrice)
		total += max(value, a.cover(value))
	}
	out.Price = floor(total)
	return out
}

// DualPrices returns the soft or the hard dual prices for these numbers of pods of each demand, at most
// those of the problem. It takes a small part of the time of Bound.
func (s *Solver) DualPrices(counts []int, hard bool) DualPrices {
	out := s.zeroDualPrices()
	for _, a := range s.dualPrice {
		a.begin(a.counts(counts))
		a.soften()
		if hard {
			a.harden()
		}
		a.answer(&out)
	}
	return out
}

func (s *Solver) zeroDualPrices() DualPrices {
	return DualPrices{PerPod: make([]float64, len(s.problem.Demands)), PerNode: make([]float64, len(s.problem.Offers))}
}

// floor makes a price of a sum. Prices are whole, so rounding to the nearest
// goes above no plan; the errors of the sums are far below a part in 1e12.
func floor(total float64) catalog.Price { return catalog.Price(math.Floor(total*(1-1e-12) + 0.5)) }

// counts returns the pods by class for these numbers of pods of each demand; nil means those of the
// problem.
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

// total is what all pods of the part are worth.
func (p *part) total(dualPrice []float64) float64 {
	sum := 0.0
	for i := range p.classes {
		sum += dualPrice[i] * float64(p.classes[i].count)
	}
	return sum
}

// beyond returns by how much the dual prices of the pods on one node can exceed what they pay at those
// rates. The node is of the kind, or of an offer that the kind makes superfluous. The pods pay at most
// the rates of all its room.
func (p *part) beyond(k *kind, per, dualPrice []float64) float64 {
	sum := 0.0
	for _, i := range k.classes {
		c := &p.classes[i]
		profit := dualPrice[i]
		for r, a := range c.ask {
			profit -= a * per[r]
		}
		if profit > 0 {
			sum += profit * float64(k.times(c))
		}
	}
	return sum
}

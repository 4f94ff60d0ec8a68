package dualprice

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/lowerbound"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/parallel"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// Pricing computes the lower bound of a list of demands, and their dual prices.
type Pricing struct {
	Demands    []Demand       // sorted by class and accept set
	Lots       []offering.Lot // the offerings in the lower bound's problem
	solver     *lowerbound.Solver
	result     func() lowerbound.Result // waits for the lower bound and returns it; nil until Start was called
	forAnyPlan bool                     // the bound holds for any plan, not only for plans of package packing
	index      map[Demand]int           // cache of Index
}

// Pricer computes the lower bound and the dual prices of demands. It caches the last result.
type Pricer struct {
	Stock    *offering.Stock                  // the offerings
	Accepts  *offering.Acceptance             // the accept sets of the demands
	Index    *topology.Index                  // the topology profiles of the classes
	Topology *existing.TopologyState          // the topology domains
	Class    func(number int) *podgroup.Class // returns the class of the given number
	PodsOf   func(number int) int             // returns the number of pods in one unit of that class

	Last *Pricing // result of the last call of For; nil before the first call
}

// For returns the pricing of the demands. With forAnyPlan, its bound holds for every plan, not only for plans of
// package packing. For returns the last pricing again if it has the same demands, and its bound holds for the
// requested plans.
func (pr *Pricer) For(demands []Demand, forAnyPlan bool) *Pricing {
	if pr.Last == nil || !slices.Equal(pr.Last.Demands, demands) || forAnyPlan && !pr.Last.forAnyPlan {
		pr.Last = pr.newPricing(demands, forAnyPlan)
	}
	return pr.Last
}

// Start computes the soft dual prices, then starts computing the lower bound in the background. Further calls do
// nothing.
func (p *Pricing) Start() {
	if p.result == nil {
		p.solver.SoftPrices() // the caller of Start reads the soft prices next
		p.result = parallel.Later(p.solver.Bound)
	}
}

// LowerBound waits for the lower bound of the demands and returns it.
func (p *Pricing) LowerBound() catalog.Price {
	p.Start()
	return p.result().Price
}

// BoundTimes returns the lower bound multiplied by the factor.
func (p *Pricing) BoundTimes(factor float64) float64 { return float64(p.LowerBound()) * factor }

// DualPrices returns the hard or the soft dual prices of Demands (see lowerbound.Result).
func (p *Pricing) DualPrices(hard bool) lowerbound.DualPrices {
	if hard {
		p.Start()
		return p.result().Hard
	}
	return p.solver.SoftPrices()
}

// Reprice returns the dual prices for other numbers of units. counts has one for each of Demands.
func (p *Pricing) Reprice(counts []int, hard bool) lowerbound.DualPrices {
	return p.solver.DualPrices(counts, hard)
}

func (pr *Pricer) profile(c *podgroup.Class) *topology.Profile { return &pr.Index.Profiles[c.Profile] }

// Index returns the index in Demands of each demand. In the keys, Demand.N is 0. The caller must not change the map.
func (p *Pricing) Index() map[Demand]int {
	if p.index == nil {
		p.index = make(map[Demand]int, len(p.Demands))
		for i, d := range p.Demands {
			d.N = 0
			p.index[d] = i
		}
	}
	return p.index
}

package dualprice

import (
	"math"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/lowerbound"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// newPricing prepares the lower bound of the demands. With forAnyPlan, the bound holds for every plan.
// Otherwise it holds only for plans of package packing, in which no new node has more pods of a host
// spread than its maxSkew.
func (pr *Pricer) newPricing(demands []Demand, forAnyPlan bool) *Pricing {
	sets := make([]int, len(demands))
	for i, d := range demands {
		sets[i] = d.Set
	}
	lots := pr.Accepts.Lots(sets)
	p := lowerbound.Problem{Offers: make([]lowerbound.Offer, len(lots))}
	for i, l := range lots {
		p.Offers[i] = lowerbound.Offer{Price: pr.Stock.Offers[l.Offer].Price, Room: pr.Stock.Room(l.Offer)}
	}
	type key struct {
		set     int
		devices string
	}
	setIndex, capIndex := map[key]int{}, map[int]int{} // indices in p.Sets and, by group of a host spread, in p.Caps
	p.Effort = boundEffort(demands)
	isCapped, holdForAnyPlan := pr.spreadCaps(demands, forAnyPlan)
	for _, d := range demands {
		class := pr.Class(d.Class)
		k := key{d.Set, devices(class, pr.Stock.Dims)}
		s, ok := setIndex[k]
		if !ok {
			s = len(p.Sets)
			setIndex[k] = s
			p.Sets = append(p.Sets, pr.eligibleLots(class, pr.Accepts.Sets[d.Set], lots))
		}
		need := lowerbound.Demand{Count: d.N, Ask: class.Ask, Set: s}
		if most, group := pr.profile(class).MaxPerNode(isCapped); most < math.MaxInt {
			g, ok := capIndex[group]
			if !ok {
				g = len(p.Caps)
				capIndex[group] = g
				p.Caps = append(p.Caps, most)
			}
			p.Caps[g] = max(p.Caps[g], most) // the largest maxSkew holds for the pods of all classes
			need.Groups = []int{g}
		}
		p.Demands = append(p.Demands, need)
	}
	return &Pricing{Demands: demands, Lots: lots, solver: lowerbound.New(p), forAnyPlan: holdForAnyPlan}
}

// boundEffort returns the work limit of the search for the lower bound, in the unit of lowerbound.Problem.Effort. A
// better bound can save a share of the pods' price, so few pods justify little work.
func boundEffort(demands []Demand) int {
	const least, perUnit, most = 250_000, 1_000, 5_000_000 // most is lowerbound's default; 4,750 units reach it
	effort := least
	for _, d := range demands {
		effort += min(d.N, most/perUnit) * perUnit
	}
	return min(effort, most)
}

// eligibleLots returns the indices of the lots in the set that have some of every resource that the class requests.
func (pr *Pricer) eligibleLots(c *podgroup.Class, set bitset.Set, lots []offering.Lot) []int {
	var out []int
	for i, l := range lots {
		if !set.Has(l.Offer) {
			continue
		}
		room, hasAll := pr.Stock.Room(l.Offer), true
		for r := range c.Ask {
			hasAll = hasAll && (c.Ask[r] <= 0 || room[r] > 0)
		}
		if hasAll {
			out = append(out, i)
		}
	}
	return out
}

// spreadCaps returns which host spreads cap the pods per node in the lower bound, and whether all these caps hold for
// any plan. With forAnyPlan, only spreads whose cap holds for any plan are included. Otherwise the bound is for plans
// of package packing, in which no new node has more of a spread's pods than its maxSkew. Then all spreads that can
// affect the price are included.
func (pr *Pricer) spreadCaps(demands []Demand, forAnyPlan bool) (isCapped func(group int) bool, holdForAnyPlan bool) {
	nodesNeeded, pods := map[int]int{}, 0 // nodesNeeded: by group, the minimum number of nodes for its pods
	for _, d := range demands {
		pods += d.N
		if most, group := pr.profile(pr.Class(d.Class)).MaxPerNode(nil); most < math.MaxInt {
			nodesNeeded[group] += (d.N + most - 1) / most
		}
	}
	capped := map[int]bool{}
	holdForAnyPlan = true
	for group, n := range nodesNeeded {
		if pr.Index.Groups[group].Kind != topology.Spread {
			continue
		}
		capped[group] = pr.Topology.AlwaysHasEmptyHost(group)
		if !forAnyPlan && !capped[group] && n*podsPerCappedNode > pods {
			capped[group], holdForAnyPlan = true, false
		}
	}
	return func(group int) bool { return capped[group] }, holdForAnyPlan
}

// podsPerCappedNode decides whether the lower bound includes a host spread. It does if the demands have fewer pods than
// podsPerCappedNode × the minimum number of nodes for the pods of the spread. With more pods, the demands need enough
// nodes anyway, so the spread adds no cost.
const podsPerCappedNode = 64

// devices returns the requested resources that not every node has, joined by commas. They decide, with the accept set,
// which lots are eligible.
func devices(c *podgroup.Class, dims resources.Dimensions) string {
	var names []string
	for r, name := range dims {
		if c.Ask[r] > 0 && !isBasicResource(name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// isBasicResource reports whether every node has some of the resource.
func isBasicResource(name string) bool {
	switch name {
	case resources.CPU, resources.Memory, resources.EphemeralStorage, resources.Pods:
		return true
	}
	return strings.HasPrefix(name, resources.AttachableVolumes)
}

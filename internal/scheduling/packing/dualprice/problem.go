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
	numbers, groups := map[key]int{}, map[int]int{}
	p.Effort = boundEffort(demands)
	counts, all := pr.spreadCaps(demands, forAnyPlan)
	for _, d := range demands {
		class := pr.Class(d.Class)
		k := key{d.Set, devices(class, pr.Stock.Dims)}
		s, ok := numbers[k]
		if !ok {
			s = len(p.Sets)
			numbers[k] = s
			p.Sets = append(p.Sets, pr.eligibleLots(class, pr.Accepts.Sets[d.Set], lots))
		}
		need := lowerbound.Demand{Count: d.N, Ask: class.Ask, Set: s}
		if most, group := pr.profile(class).MaxPerNode(counts); most < math.MaxInt {
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
	return &Pricing{Demands: demands, Lots: lots, solver: lowerbound.New(p), forAnyPlan: all}
}

// boundEffort returns the work limit of the search for the lower bound, as the number of numbers it may touch.
// The search saves a share of the pods' price, so few pods justify little work.
func boundEffort(demands []Demand) int {
	const least, perUnit, most = 250_000, 1_000, 5_000_000
	effort := least
	for _, d := range demands {
		effort += min(d.N, most/perUnit) * perUnit
	}
	return min(effort, most)
}

// eligibleLots returns the indices of the lots in the set that have every resource which the class
// requests.
func (pr *Pricer) eligibleLots(c *podgroup.Class, set bitset.Set, lots []offering.Lot) []int {
	var out []int
	for i, l := range lots {
		if !set.Has(l.Offer) {
			continue
		}
		room, enough := pr.Stock.Room(l.Offer), true
		for r := range c.Ask {
			enough = enough && (c.Ask[r] <= 0 || room[r] > 0)
		}
		if enough {
			out = append(out, i)
		}
	}
	return out
}

// spreadCaps returns which host spreads the lower bound of the demands includes, and whether all of
// them hold for any plan. With forAnyPlan, only spreads that hold for any plan are included. Otherwise the
// bound is for plans of package packing, in which no new node has more of a spread's pods than its maxSkew, and
// all spreads that can affect the price are included.
func (pr *Pricer) spreadCaps(demands []Demand, forAnyPlan bool) (counts func(group int) bool, all bool) {
	nodesNeeded, pods := map[int]int{}, 0
	for _, d := range demands {
		pods += d.N
		if most, group := pr.profile(pr.Class(d.Class)).MaxPerNode(nil); most < math.MaxInt {
			nodesNeeded[group] += (d.N + most - 1) / most
		}
	}
	capped := map[int]bool{}
	all = true
	for group, n := range nodesNeeded {
		if pr.Index.Groups[group].Kind != topology.Spread {
			continue
		}
		capped[group] = pr.Topology.AlwaysHasEmptyHost(group)
		if !forAnyPlan && !capped[group] && n*podsPerCappedNode > pods {
			capped[group], all = true, false
		}
	}
	return func(group int) bool { return capped[group] }, all
}

// podsPerCappedNode is the maximum number of pods in the plan, per node that a host spread needs at least, for
// which the lower bound includes the spread. With more pods, there is so much choice among nodes that the
// spread adds no cost.
const podsPerCappedNode = 64

// devices returns the requested resources that not every node has, joined by commas.
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

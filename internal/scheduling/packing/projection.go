package packing

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// domainProjection computes how the planned nodes change topology domains and host counts.
type domainProjection struct {
	problem     *pending.Problem
	queue       *pending.Queue
	topo        *existing.TopologyState
	sol         *solution
	possible    []bitset.Set // by planned node: the offerings that it may be launched as; filled on demand
	allPossible bitset.Set   // the union of possible over all planned nodes; nil until needed
}

func newDomainProjection(sol *solution) *domainProjection {
	return &domainProjection{problem: sol.problem, queue: sol.queue, topo: sol.topo, sol: sol}
}

// projectDomains returns topo, the state before any pod was placed, with the changes by the planned nodes: spreads
// count the domains of these nodes, and the nodes may be hosts with few pods of a spread. projectDomains returns nil if
// the planned nodes change nothing that the plan assumed.
func (dp *domainProjection) projectDomains(topo *existing.TopologyState) *existing.TopologyState {
	domains, groups := dp.addedDomains(), dp.emptierHostGroups()
	if len(domains) == 0 && len(groups) == 0 {
		return nil
	}
	out := topo.Fork()
	out.EmptyHosts = maps.Clone(topo.EmptyHosts)
	for g := range groups {
		out.EmptyHosts[g] = true
	}
	out.CountedDomains = slices.Clone(topo.CountedDomains)
	for g, counted := range domains {
		out.CountedDomains[g] = counted
		out.DomainCounts.SetCounted(g, counted)
	}
	return out
}

// addedDomains returns, for each spread group that gains domains by the plan, which domains then count, by number
// of the domain.
func (dp *domainProjection) addedDomains() map[int][]bool {
	out := map[int][]bool{}
	for g := range dp.queue.Pods.Topology.Groups {
		if counted, more := dp.withPlannedDomains(g, dp.topo.CountedDomains[g]); more {
			out[g] = counted
		}
	}
	return out
}

// withPlannedDomains returns the domains that count for a spread group: those in counted, and those that planned nodes
// may have. It also reports whether planned nodes add any domain. It does not change counted.
func (dp *domainProjection) withPlannedDomains(g int, counted []bool) (all []bool, more bool) {
	if !dp.queue.Pods.Topology.Groups[g].Hard || !slices.Contains(counted, false) {
		return counted, false
	}
	if dp.allPossible == nil {
		dp.allPossible = bitset.New(len(dp.problem.Stock.Offers))
		for i := range dp.sol.planned {
			dp.allPossible.Or(dp.possibleOffers(i))
		}
	}
	possible := dp.allPossible.Intersection(dp.countedOffers(g))
	all = slices.Clone(counted)
	for d, set := range dp.topo.Keys[dp.queue.Pods.Topology.Groups[g].Key].Offers[:len(counted)] {
		if !counted[d] && possible.Intersects(set) {
			all[d], more = true, true
		}
	}
	return all, more
}

// topologyAfterPlan returns topo, the state before any pod was placed, as it will be once the planned nodes exist,
// without the pods of the plan. Only the domains of existing and planned nodes count, not the domains of other
// offerings that could be launched.
func (dp *domainProjection) topologyAfterPlan(topo *existing.TopologyState) *existing.TopologyState {
	out := topo.Fork()
	out.CountedDomains = slices.Clone(topo.CountedDomains)
	for g, counted := range topo.CertainDomains {
		if counted == nil {
			continue
		}
		out.CountedDomains[g], _ = dp.withPlannedDomains(g, counted)
		out.DomainCounts.SetCounted(g, out.CountedDomains[g])
	}
	for i := range dp.sol.planned {
		out.AddPlannedNode(dp.possibleOffers(i))
	}
	return out
}

func (dp *domainProjection) possibleOffers(node int) bitset.Set {
	if dp.possible == nil {
		dp.possible = make([]bitset.Set, len(dp.sol.planned))
	}
	if dp.possible[node] == nil {
		dp.possible[node] = dp.sol.nodeOffers.feasibleOffers(&dp.sol.planned[node])
	}
	return dp.possible[node]
}

// countedOffers returns the offerings whose nodes count for a spread group: those that the pods with the spread
// accept.
func (dp *domainProjection) countedOffers(group int) bitset.Set {
	return existing.CountedOffers(dp.problem.Stock, dp.queue.Pods, group)
}

// emptierHostGroups returns the groups of host spreads that a planned node could violate. The node would have so few
// of the group's pods that pods placed on existing nodes exceed the maxSkew.
func (dp *domainProjection) emptierHostGroups() map[int]bool {
	least := map[int]int{} // by group: how many of its pods each planned node must have
	for _, placement := range dp.sol.placements {
		dp.queue.EachProfile(placement.class, func(p *topology.Profile) {
			for _, r := range p.Host {
				if r.Kind == topology.Spread && r.Weight == 0 && !dp.topo.EmptyHosts[r.Group] {
					least[r.Group] = max(least[r.Group], dp.sol.rooms.Hosts[placement.node].Matched(r.Group)-r.MaxSkew)
				}
			}
		})
	}
	out := map[int]bool{}
	for g, n := range least {
		if n > 0 && dp.anyNodeBelow(g, n) {
			out[g] = true
		}
	}
	return out
}

// anyNodeBelow reports whether a planned node counts for the group and has fewer than the given number of
// the group's pods.
func (dp *domainProjection) anyNodeBelow(group, pods int) bool {
	counted := dp.countedOffers(group)
	for i := range dp.sol.planned {
		if dp.sol.planned[i].matchedPods(dp.queue, group) < pods && counted.Intersects(dp.possibleOffers(i)) {
			return true
		}
	}
	return false
}

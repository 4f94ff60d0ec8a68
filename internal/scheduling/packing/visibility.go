package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/binding"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// spreadVisibility finds pods of a plan that a spread selects but does not count. A spread counts no pods on nodes
// that the pods with the spread do not accept. When pods were assigned to domains, their nodes were not known, so the
// domain counts include all pods that a spread selects.
type spreadVisibility struct {
	projection   *domainProjection
	problem      *pending.Problem
	queue        *pending.Queue
	sol          *solution
	countedCache map[int]bitset.Set // by group: cache of countedOffers
}

func newSpreadVisibility(sol *solution) *spreadVisibility {
	return &spreadVisibility{
		projection:   newDomainProjection(sol),
		problem:      sol.problem,
		queue:        sol.queue,
		sol:          sol,
		countedCache: map[int]bitset.Set{},
	}
}

// mayNotCount reports whether the group, which selects the pods of the class, may ignore some of them because of their
// node. The group counts all of them if both conditions hold:
//
//   - the pods with the spread accept the same nodes as the class, or any node;
//   - a node needs no other label to count.
func (sv *spreadVisibility) mayNotCount(group int, c *pending.Class) bool {
	g := &sv.queue.Pods.Topology.Groups[group]
	if g.Kind != topology.Spread || !g.Hard {
		return false
	}
	sameNodes := g.Signature == c.Sig || !g.HonorTaints && (g.AnyNode || len(sv.queue.Pods.Signatures[g.Signature].Required) == 0)
	return !sameNodes || len(g.Keys) > 0
}

func (sv *spreadVisibility) mayBeUncounted(c *pending.Class) bool {
	return slices.ContainsFunc(sv.queue.Profile(c).In, func(g int) bool { return sv.mayNotCount(g, c) })
}

// uncountedBy returns the groups that select the pods at this location but certainly do not count them, each with
// the domain of the pods.
func (sv *spreadVisibility) uncountedBy(loc podLocation) []binding.GroupDomain {
	c := &sv.queue.Classes[loc.class]
	if c.Domains == nil {
		return nil
	}
	var out []binding.GroupDomain
	profile := sv.queue.Profile(c)
	for _, g := range profile.In {
		k := slices.Index(profile.Keys, sv.queue.Pods.Topology.Groups[g].Key)
		if k >= 0 && sv.mayNotCount(g, c) && !sv.countsAt(g, loc.host) {
			out = append(out, binding.GroupDomain{Group: g, Domain: c.Domains[k]})
		}
	}
	return out
}

// countsAt reports whether the group may count pods on the host; see podLocation.host.
func (sv *spreadVisibility) countsAt(group, host int) bool {
	if nodes := len(sv.sol.rooms.Nodes); host < nodes {
		return sv.sol.topo.Counted[group] == nil || sv.sol.topo.Counted[group].Has(host)
	}
	return sv.cachedCountedOffers(group).Intersects(sv.projection.possibleOffers(host - len(sv.sol.rooms.Nodes)))
}

func (sv *spreadVisibility) cachedCountedOffers(group int) bitset.Set {
	if _, ok := sv.countedCache[group]; !ok {
		sv.countedCache[group] = sv.projection.countedOffers(group)
	}
	return sv.countedCache[group]
}

// narrowOfferings removes offerings from planned nodes, so that it is certain which spreads count the pods of a node.
// It processes each planned node with each spread that selects pods of the node:
//
//   - If the spread counts nodes of the offering that the node was planned with, the node keeps only offerings whose
//     nodes the spread counts.
//   - Otherwise the node keeps only offerings whose nodes the spread does not count.
//   - A node that would then violate minValues is not changed.
func (sv *spreadVisibility) narrowOfferings() {
	for i := range sv.sol.planned {
		for _, a := range sv.sol.planned[i].allocations {
			sv.eachUncertainGroup(a.class, func(group int) { sv.narrowFor(i, group) })
		}
	}
}

// eachUncertainGroup visits the groups that select pods of the class but may ignore some of these pods because of their
// node. If the class is a bundle, it also visits the groups of the bundle's members.
func (sv *spreadVisibility) eachUncertainGroup(class int, visit func(group int)) {
	c := &sv.queue.Classes[class]
	for _, m := range c.Members {
		sv.eachUncertainGroup(m.Class, visit)
	}
	for _, g := range sv.queue.Profile(c).In {
		if c.Domains != nil && sv.mayNotCount(g, c) {
			visit(g)
		}
	}
}

// narrowFor narrows the offerings of one planned node for one group; see narrowOfferings.
func (sv *spreadVisibility) narrowFor(node, group int) {
	possible, counted := sv.projection.possibleOffers(node), sv.cachedCountedOffers(group)
	if !possible.Intersects(counted) {
		return
	}
	uncounted := possible.Clone()
	uncounted.AndNot(counted)
	if uncounted.Any() {
		narrowed := sv.sol.planned[node]
		narrowed.allocations = slices.Clone(narrowed.allocations)
		a := &narrowed.allocations[0] // all accept sets apply to the node, so it is enough to narrow one
		if counted.Has(narrowed.offer) {
			a.acceptSet = sv.problem.Accepts.Number(sv.problem.Accepts.Sets[a.acceptSet].Intersection(counted))
		} else {
			uncounted = sv.problem.Accepts.Sets[a.acceptSet].Clone()
			uncounted.AndNot(counted)
			a.acceptSet = sv.problem.Accepts.Number(uncounted)
		}
		if _, isMissing := sv.sol.nodeOffers.missingMinValue(&narrowed); !isMissing {
			narrowed.price = sv.sol.nodeOffers.cheapestPrice(&narrowed)
			sv.sol.planned[node], sv.projection.possible[node] = narrowed, nil
		}
	}
}

// removeUncounted subtracts pods from the domain counts of each group that selects the pods but does not count them at
// their location.
func (sv *spreadVisibility) removeUncounted() {
	for _, loc := range sv.sol.podLocations() {
		for _, u := range sv.uncountedBy(loc) {
			sv.sol.topo.DomainCounts.AddPods(u.Group, u.Domain, -loc.n)
		}
	}
}

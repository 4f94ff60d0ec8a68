package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// spreadVisibility finds pods of a plan that a spread does not count because they are on nodes
// which the spread's owner does not accept. When pods were assigned to domains, their nodes were
// not known.
type spreadVisibility struct {
	*domainProjection
	countedCache map[int]bitset.Set // by group: cache of countedOffers
}

// groupDomain is a topology group and one of its domains.
type groupDomain struct{ group, domain int }

func (pl *planner) newSpreadVisibility() *spreadVisibility {
	return &spreadVisibility{domainProjection: &domainProjection{planner: pl}, countedCache: map[int]bitset.Set{}}
}

// mayNotCount reports whether the group, which selects pods of the class, may ignore some of them
// because of their node. It counts all if its owners accept the same nodes as the class, or any
// node.
func (s *spreadVisibility) mayNotCount(group int, c *class) bool {
	g := &s.q.Book.Groups[group]
	if g.Form != topology.Spread || !g.Hard {
		return false
	}
	sameNodes := g.Nodes == c.Sig || !g.HonorTaints && (g.AnyNode || len(s.q.Signatures[g.Nodes].Required) == 0)
	return !sameNodes || len(g.Keys) > 0
}

// mayBeUncounted reports whether some group may ignore pods of the class.
func (s *spreadVisibility) mayBeUncounted(c *class) bool {
	return slices.ContainsFunc(s.q.profile(c).In, func(g int) bool { return s.mayNotCount(g, c) })
}

// uncountedBy returns the groups that certainly do not count the pods at this location, with the
// domain.
func (s *spreadVisibility) uncountedBy(loc podLocation) []groupDomain {
	c := &s.q.classes[loc.class]
	if c.domains == nil {
		return nil
	}
	var out []groupDomain
	profile := s.q.profile(c)
	for _, g := range profile.In {
		k := slices.Index(profile.Keys, s.q.Book.Groups[g].Key)
		if k >= 0 && s.mayNotCount(g, c) && !s.countsAt(g, loc.host) {
			out = append(out, groupDomain{g, c.domains[k]})
		}
	}
	return out
}

// countsAt reports whether pods on that node may count for the group.
func (s *spreadVisibility) countsAt(group, at int) bool {
	if nodes := len(s.rooms.Nodes); at < nodes {
		return s.ground.Counted[group] == nil || s.ground.Counted[group].Has(at)
	}
	return s.cachedCountedOffers(group).Meets(s.possibleOffers(at - len(s.rooms.Nodes)))
}

// cachedCountedOffers is countedOffers with a cache.
func (s *spreadVisibility) cachedCountedOffers(group int) bitset.Set {
	if _, ok := s.countedCache[group]; !ok {
		s.countedCache[group] = s.countedOffers(group)
	}
	return s.countedCache[group]
}

// narrowOfferings makes it certain for each planned node whether a spread counts its pods. It
// removes the offerings that differ in this from the one that the node was planned with. A node
// that would then violate minValues is left as it is.
func (pl *planner) narrowOfferings() {
	s := pl.newSpreadVisibility()
	for i := range pl.planned {
		for _, a := range pl.planned[i].allocations {
			s.eachUncertainGroup(a.class, func(group int) { s.narrowFor(i, group) })
		}
	}
}

// eachUncertainGroup visits the groups that may ignore pods of the class, or of the members of a
// bundle.
func (s *spreadVisibility) eachUncertainGroup(class int, visit func(group int)) {
	c := &s.q.classes[class]
	for _, m := range c.members {
		s.eachUncertainGroup(m.class, visit)
	}
	for _, g := range s.q.profile(c).In {
		if c.domains != nil && s.mayNotCount(g, c) {
			visit(g)
		}
	}
}

// narrowFor leaves the node only the offerings that the group counts, or only the others.
func (s *spreadVisibility) narrowFor(node, group int) {
	possible, visible := s.possibleOffers(node), s.cachedCountedOffers(group)
	if !possible.Meets(visible) {
		return
	}
	uncounted := possible.Clone()
	uncounted.AndNot(visible)
	if uncounted.Any() {
		less := s.planned[node]
		less.allocations = slices.Clone(less.allocations)
		a := &less.allocations[0]
		if visible.Has(less.offer) {
			a.acceptSet = s.accepts.Number(s.accepts.Sets[a.acceptSet].Both(visible))
		} else {
			others := s.accepts.Sets[a.acceptSet].Clone()
			others.AndNot(visible)
			a.acceptSet = s.accepts.Number(others)
		}
		if _, lacks := s.missingMinValue(&less); !lacks {
			less.price = s.cheapestPrice(&less)
			s.planned[node], s.possible[node] = less, nil
		}
	}
}

// removeUncounted subtracts the pods that are not counted at their location from the census.
func (pl *planner) removeUncounted() {
	s := pl.newSpreadVisibility()
	for _, loc := range pl.podLocations() {
		for _, u := range s.uncountedBy(loc) {
			pl.ground.Census.Resident(u.group, u.domain, -loc.n)
		}
	}
}

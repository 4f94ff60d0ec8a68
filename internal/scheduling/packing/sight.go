package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// sight tells which pods of a plan the spreads do not count where they are: on nodes and machines that the owner of
// the spread does not accept. When pods were sent to domains, nobody knew.
type sight struct {
	*arrivals
	accepted map[int]bitset.Set // by group: see arrivals.sees
}

// unseen is a group of a spread that does not count certain pods, and the domain in which it would.
type unseen struct{ group, domain int }

func (w *work) sight() *sight {
	return &sight{arrivals: &arrivals{work: w}, accepted: map[int]bitset.Set{}}
}

// mayMiss reports whether the group, which counts pods of the class, may miss some where they are. It does not if
// its owners accept the same nodes, or any.
func (s *sight) mayMiss(group int, c *class) bool {
	g := &s.q.Book.Groups[group]
	if g.Form != topology.Spread || !g.Hard {
		return false
	}
	alike := g.Nodes == c.Sig || !g.HonorTaints && (g.AnyNode || len(s.q.Signatures[g.Nodes].Required) == 0)
	return !alike || len(g.Keys) > 0
}

// mayBeMissed reports whether some group may miss pods of the class.
func (s *sight) mayBeMissed(c *class) bool {
	return slices.ContainsFunc(s.q.profile(c).In, func(g int) bool { return s.mayMiss(g, c) })
}

// unseen returns the groups that certainly do not count the pods where they are.
func (s *sight) unseen(at stand) []unseen {
	c := &s.q.classes[at.class]
	if c.cell == nil {
		return nil
	}
	var out []unseen
	profile := s.q.profile(c)
	for _, g := range profile.In {
		k := slices.Index(profile.Keys, s.q.Book.Groups[g].Key)
		if k >= 0 && s.mayMiss(g, c) && !s.notices(g, at.at) {
			out = append(out, unseen{g, c.cell[k]})
		}
	}
	return out
}

// notices reports whether pods there may count for the group.
func (s *sight) notices(group, at int) bool {
	if nodes := len(s.rooms.Nodes); at < nodes {
		return s.ground.Counted[group] == nil || s.ground.Counted[group].Has(at)
	}
	return s.acceptedBy(group).Meets(s.turn(at - len(s.rooms.Nodes)))
}

// acceptedBy returns the offers that count for the group: see arrivals.sees.
func (s *sight) acceptedBy(group int) bitset.Set {
	if _, ok := s.accepted[group]; !ok {
		s.accepted[group] = s.sees(group)
	}
	return s.accepted[group]
}

// clarify narrows machines that some spread may count or not, by what they turn out to be, so that it is certain: to what
// the machine was filled for. Where minValues would not be kept then, it stays open.
func (w *work) clarify() {
	s := w.sight()
	for i := range w.machines {
		for _, t := range w.machines[i].takes {
			s.eachMissing(t.class, func(group int) { s.narrow(i, group) })
		}
	}
}

// eachMissing visits the groups that may miss pods of the class, or those of the members of a bundle.
func (s *sight) eachMissing(class int, visit func(group int)) {
	c := &s.q.classes[class]
	for _, m := range c.members {
		s.eachMissing(m.class, visit)
	}
	for _, g := range s.q.profile(c).In {
		if c.cell != nil && s.mayMiss(g, c) {
			visit(g)
		}
	}
}

// narrow leaves a machine only the offers that the group counts, or only those that it does not.
func (s *sight) narrow(machine, group int) {
	turns, seen := s.turn(machine), s.acceptedBy(group)
	if !turns.Meets(seen) {
		return
	}
	unseen := turns.Clone()
	unseen.AndNot(seen)
	if unseen.Any() {
		less := s.machines[machine]
		less.takes = slices.Clone(less.takes)
		t := &less.takes[0]
		if seen.Has(less.offer) {
			t.set = s.accepts.Number(s.accepts.Sets[t.set].Both(seen))
		} else {
			others := s.accepts.Sets[t.set].Clone()
			others.AndNot(seen)
			t.set = s.accepts.Number(others)
		}
		if _, short := s.lack(&less); !short {
			less.price = s.cheapest(&less)
			s.machines[machine], s.turns[machine] = less, nil
		}
	}
}

// discount takes the pods that are not counted where they are out of the census.
func (w *work) discount() {
	s := w.sight()
	for _, at := range w.stands() {
		for _, u := range s.unseen(at) {
			w.ground.Census.Resident(u.group, u.domain, -at.n)
		}
	}
}

package packing

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/topology"
)

// foresee returns the ground as rules about other pods will find it once the
// machines of the plan are there: a machine makes its domain count, and is
// a host without any pods of a spread, whoever it was bought for. It returns nil
// if the plan reckoned with all of that.
func (w *work) foresee(ground *terrain) *terrain {
	domains, hosts := w.newDomains(), w.newHosts()
	if len(domains) == 0 && len(hosts) == 0 {
		return nil
	}
	out := ground.fork()
	out.bare = maps.Clone(ground.bare)
	for g := range hosts {
		out.bare[g] = true
	}
	out.domains = slices.Clone(ground.domains)
	for g, counted := range domains {
		out.domains[g] = counted
		out.census.Count(g, counted)
	}
	return out
}

// newDomains returns, by group of a spread, which domains count, for those groups of which more do
// than the plan reckoned with.
func (w *work) newDomains() map[int][]bool {
	out := map[int][]bool{}
	var coming bitset
	for g := range w.q.book.Groups {
		if !w.q.book.Groups[g].Hard || !slices.Contains(w.ground.domains[g], false) {
			continue
		}
		if coming == nil {
			coming = w.coming()
		}
		seen := coming.both(w.sees(g))
		for d, set := range w.ground.keys[w.q.book.Groups[g].Key].offers[:len(w.ground.domains[g])] {
			if w.ground.domains[g][d] || !seen.meets(set) {
				continue
			}
			if out[g] == nil {
				out[g] = slices.Clone(w.ground.domains[g])
			}
			out[g][d] = true
		}
	}
	return out
}

// coming returns the offers that the machines of the plan may turn out to be.
func (w *work) coming() bitset {
	out := newBitset(len(w.st.offers))
	for i := range w.machines {
		out.or(w.survivors(&w.machines[i]))
	}
	return out
}

// sees returns the offers that count for the group of a spread: what the owner of the rule would accept.
func (w *work) sees(group int) bitset {
	g := &w.q.book.Groups[group]
	s := &w.q.signatures[g.Nodes]
	var out bitset
	if g.AnyNode {
		out = w.st.labels.satisfying(nil)
	} else {
		out = w.st.labels.satisfyingOne(s.required)
	}
	if g.HonorTaints {
		out.and(w.st.tolerated(s.tolerations))
	}
	return out
}

// newHosts returns the groups of spreads over host names of which nodes have more pods than
// they may beside an empty machine, if there will be one.
func (w *work) newHosts() map[int]bool {
	out := map[int]bool{}
	for _, at := range w.placed {
		w.eachMember(at.class, func(p *topology.Profile) {
			for _, r := range p.Host {
				over := r.Form == topology.Spread && r.Weight == 0 && w.rooms.hosts[at.node].Matched(r.Group) > r.MaxSkew
				if over && !out[r.Group] && !w.ground.bare[r.Group] && w.anyWithout(r.Group) {
					out[r.Group] = true
				}
			}
		})
	}
	return out
}

// anyWithout reports whether some machine of the plan counts for the group, and has none of its pods.
func (w *work) anyWithout(group int) bool {
	sees := w.sees(group)
	return slices.ContainsFunc(w.machines, func(m machine) bool {
		return m.host.Matched(group) == 0 && sees.meets(w.survivors(&m))
	})
}

// eachMember visits the profile of the class, or those of the members of a bundle.
func (w *work) eachMember(class int, visit func(*topology.Profile)) {
	c := &w.q.classes[class]
	if c.members == nil {
		visit(w.q.profile(c))
	}
	for _, m := range c.members {
		visit(w.q.profile(&w.q.classes[m.class]))
	}
}

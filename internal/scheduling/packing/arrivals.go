package packing

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// arrivals is what the machines of a plan change for rules about other pods.
type arrivals struct {
	*work
	turns  []bitset.Set // by machine: the offers that it may turn out to be
	coming bitset.Set   // those of all machines
}

// foresee returns the ground as rules about other pods will find it once the
// machines of the plan are there: a machine makes its domain count, and is
// a host without any pods of a spread, whoever it was bought for. It returns nil
// if the plan reckoned with all of that.
func (w *work) foresee(ground *existing.Ground) *existing.Ground {
	a := &arrivals{work: w}
	domains, hosts := a.newDomains(), a.newHosts()
	if len(domains) == 0 && len(hosts) == 0 {
		return nil
	}
	out := ground.Fork()
	out.Bare = maps.Clone(ground.Bare)
	for g := range hosts {
		out.Bare[g] = true
	}
	out.Domains = slices.Clone(ground.Domains)
	for g, counted := range domains {
		out.Domains[g] = counted
		out.Census.Count(g, counted)
	}
	return out
}

// newDomains returns, by group of a spread, which domains count, for those groups of which more do
// than the plan reckoned with.
func (a *arrivals) newDomains() map[int][]bool {
	out := map[int][]bool{}
	for g := range a.q.Book.Groups {
		if counted, more := a.withMachines(g, a.ground.Domains[g]); more {
			out[g] = counted
		}
	}
	return out
}

// withMachines adds the domains in which machines of the plan may come up to those that count for the group
// of a spread, and reports whether there are more.
func (a *arrivals) withMachines(g int, counted []bool) (all []bool, more bool) {
	if !a.q.Book.Groups[g].Hard || !slices.Contains(counted, false) {
		return counted, false
	}
	if a.coming == nil {
		a.coming = bitset.New(len(a.st.Offers))
		for i := range a.machines {
			a.coming.Or(a.turn(i))
		}
	}
	seen := a.coming.Both(a.sees(g))
	all = slices.Clone(counted)
	for d, set := range a.ground.Keys[a.q.Book.Groups[g].Key].Offers[:len(counted)] {
		if !counted[d] && seen.Meets(set) {
			all[d], more = true, true
		}
	}
	return all, more
}

// standing returns the ground on which only those domains count that are there once the plan is carried out, and none
// that could be bought besides: as kube-scheduler sees it.
func (w *work) standing(ground *existing.Ground) *existing.Ground {
	a := &arrivals{work: w}
	out := ground.Fork()
	out.Domains = slices.Clone(ground.Domains)
	for g, counted := range ground.There {
		if counted == nil {
			continue
		}
		out.Domains[g], _ = a.withMachines(g, counted)
		out.Census.Count(g, out.Domains[g])
	}
	for i := range a.machines {
		out.Bring(a.turn(i))
	}
	return out
}

// turn returns the offers that a machine may turn out to be.
func (a *arrivals) turn(machine int) bitset.Set {
	if a.turns == nil {
		a.turns = make([]bitset.Set, len(a.machines))
	}
	if a.turns[machine] == nil {
		a.turns[machine] = a.survivors(&a.machines[machine])
	}
	return a.turns[machine]
}

// sees returns the offers that count for the group of a spread: what the owner of the rule would accept.
func (a *arrivals) sees(group int) bitset.Set { return existing.Sees(a.st, a.q.Queue, group) }

// newHosts returns the groups of spreads over host names of which nodes have more pods than
// they may beside a machine with as few as one of the plan will have.
func (a *arrivals) newHosts() map[int]bool {
	least := map[int]int{} // by group: how many pods each machine must have
	for _, at := range a.placed {
		a.eachMember(at.class, func(p *topology.Profile) {
			for _, r := range p.Host {
				if r.Form == topology.Spread && r.Weight == 0 && !a.ground.Bare[r.Group] {
					least[r.Group] = max(least[r.Group], a.rooms.Hosts[at.node].Matched(r.Group)-r.MaxSkew)
				}
			}
		})
	}
	out := map[int]bool{}
	for g, n := range least {
		if n > 0 && a.anyBelow(g, n) {
			out[g] = true
		}
	}
	return out
}

// anyBelow reports whether some machine of the plan counts for the group, and has fewer of its pods.
func (a *arrivals) anyBelow(group, pods int) bool {
	sees := a.sees(group)
	for i := range a.machines {
		if a.matched(&a.machines[i], group) < pods && sees.Meets(a.turn(i)) {
			return true
		}
	}
	return false
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

package packing

import (
	"cmp"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/hashkey"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// split assigns the pods of every class that has domain rules, or that such rules select, to
// topology domains. Each class gets one part per combination of domains. Pods that no domain may
// take stay with the class, which then accepts nothing.
func (pl *planner) split() {
	var all []int
	for c := range pl.q.classes {
		all = append(all, c)
	}
	pl.splitClasses(all)
}

// splitClasses splits these classes. Classes with preferred affinity to others are split after
// those, and classes with required affinity once their targets are assigned.
func (pl *planner) splitClasses(classes []int) {
	var first, later []int
	for _, c := range classes {
		p := pl.q.profile(&pl.q.classes[c])
		switch {
		case len(p.Keys) == 0:
		case slices.ContainsFunc(p.Domain, func(r topology.Rule) bool { return r.Form == topology.Near && r.Weight > 0 && !r.Self }):
			later = append(later, c)
		default:
			first = append(first, c)
		}
	}
	rest := pl.splitPossible(first)
	if len(later) > 0 {
		pl.countPinned()
		rest = pl.splitPossible(append(rest, later...))
	}
	for _, c := range rest {
		pl.markUnplaceable(c)
	}
	pl.sortClasses()
}

// countPinned counts pods that only preferred affinities select and that therefore are not split,
// if they can be in one domain only.
func (pl *planner) countPinned() {
	for c := range pl.wholeClasses {
		class := &pl.q.classes[c]
		if pl.left[c] == 0 || len(class.stages) == 0 {
			continue
		}
		profile := pl.q.profile(class)
		for _, g := range profile.In {
			group := &pl.q.Book.Groups[g]
			if group.Form != topology.Near || slices.Contains(profile.Keys, group.Key) {
				continue
			}
			in, only := 0, 0
			for d, offers := range pl.ground.Keys[group.Key].Offers {
				if pl.accepts.Sets[class.hardSet].Meets(offers) {
					in, only = in+1, d
				}
			}
			if in == 1 {
				pl.ground.Census.Resident(g, only, pl.left[c])
			}
		}
	}
}

// splitPossible splits the classes that can be split, as long as each round makes more of them
// possible, and returns the others.
func (pl *planner) splitPossible(classes []int) []int {
	for len(classes) > 0 {
		var blocked []int
		for _, c := range classes {
			if !pl.splitClass(c) {
				blocked = append(blocked, c)
			}
		}
		if len(blocked) == len(classes) {
			break
		}
		classes = blocked
	}
	return classes
}

// sortClasses orders the classes by priority, then the larger first.
func (pl *planner) sortClasses() {
	for len(pl.stage) < len(pl.q.classes) {
		c := len(pl.stage)
		pl.stage, pl.droppedWeight = append(pl.stage, 0), append(pl.droppedWeight, pl.initialDroppedWeight(pl.q.classes[c].base))
	}
	pl.order = pl.order[:0]
	for c := range pl.q.classes {
		pl.order = append(pl.order, c)
	}
	slices.SortStableFunc(pl.order, func(a, b int) int {
		x, y := &pl.q.classes[a], &pl.q.classes[b]
		return cmp.Or(
			cmp.Compare(y.Priority, x.Priority), y.Amounts.Compare(x.Amounts), cmp.Compare(x.base, y.base), cmp.Compare(a, b),
		)
	})
}

// splitClass makes the parts of a class, for as many of its pods as have a domain. It reports
// false, and changes nothing, if none of them has one yet.
func (pl *planner) splitClass(c int) bool {
	class := pl.q.classes[c]
	profile := pl.q.profile(&class)
	places := pl.candidatePlaces(c)
	counts := pl.ground.Census.Assign(profile, class.units(), places)
	given := 0
	for i, n := range counts {
		if n == 0 {
			continue
		}
		part := class
		part.base, part.domains = c, places[i].Domains
		part.Pods = class.Pods[given : given+n]
		part.nodes = pl.existingNodesFor(profile, part.domains)
		part.stages, _ = pl.stagesIn(&class, part.domains)
		pl.q.classes = append(pl.q.classes, part)
		pl.assigned[len(pl.q.classes)-1] = n
		pl.left = append(pl.left, n)
		given += n
	}
	if given == 0 && len(places) > 0 {
		return false
	}
	pl.q.classes[c].Pods = class.Pods[given:]
	pl.left[c] = class.units() - given
	pl.markUnplaceable(c)
	return true
}

// markUnplaceable makes the rest of the class accept no offering and no node.
func (pl *planner) markUnplaceable(c int) {
	pl.q.classes[c].stages, pl.q.classes[c].nodes = nil, bitset.New(len(pl.rooms.Nodes))
}

// candidatePlaces returns the combinations of domains where pods of the class could be.
func (pl *planner) candidatePlaces(c int) []topology.Place {
	class := &pl.q.classes[c]
	profile := pl.q.profile(class)
	var out []topology.Place
	for _, domains := range pl.ground.Cells(profile) {
		at := topology.Place{Domains: domains, Free: pl.existingRoomFor(class, pl.existingNodesFor(profile, domains))}
		at.Price = math.Inf(1)
		if stages, rank := pl.stagesIn(class, domains); len(stages) > 0 {
			at.Most, at.Price, at.Rank = class.units(), pl.pricePerSize(stages[0]), rank
		}
		at.Most = max(at.Most, at.Free)
		if most, ok := pl.domainCaps[capKey(c, domains)]; ok {
			at.Most, at.Free = min(at.Most, most), min(at.Free, most)
		}
		if at.Most > 0 {
			out = append(out, at)
		}
	}
	return out
}

// stagesIn returns the stages of the class, limited to offerings in the domains. rank is how many
// stages it lost before the first of them.
func (pl *planner) stagesIn(class *class, domains []int) (out []int, rank int) {
	profile := pl.q.profile(class)
	for i, stage := range class.stages {
		key := stageKey(stage, profile.Keys, domains)
		set, ok := pl.narrowedSets[key]
		if !ok {
			set = pl.accepts.Number(pl.ground.OffersIn(profile, domains, pl.accepts.Sets[stage]))
			pl.narrowedSets[key] = set
		}
		set = pl.withDaemonPods(set, profile, domains)
		if !slices.Contains(out, set) && pl.accepts.AnyTakes(pl.accepts.Sets[set], &class.Class) {
			if len(out) == 0 {
				rank = i
			}
			out = append(out, set)
		}
	}
	return out, rank
}

// existingRoomFor estimates how many pods of the class have room on these nodes.
func (pl *planner) existingRoomFor(class *class, nodes bitset.Set) int {
	n, units := 0, class.units()
	pl.rooms.Hard[class.Sig].Both(nodes).Each(func(i int) {
		if n < units && !pl.rooms.Full.Has(i) {
			n += class.Ask.Times(pl.rooms.Room[i], units-n)
		}
	})
	return n
}

// pricePerSize returns the lowest price of an offering in the set, relative to its size.
func (pl *planner) pricePerSize(set int) float64 {
	for len(pl.sizePrices) <= set {
		pl.sizePrices = append(pl.sizePrices, -1)
	}
	if pl.sizePrices[set] < 0 {
		least := math.Inf(1)
		pl.accepts.Sets[set].Each(func(o int) {
			size := pl.stock.TypeOf(o).Allocatable
			least = min(least, float64(pl.stock.Offers[o].Price)/(float64(size.CPU)+float64(size.Memory)/(8<<20)+1))
		})
		pl.sizePrices[set] = least
	}
	return pl.sizePrices[set]
}

// capKey is the key of a part in planner.domainCaps.
func capKey(class int, domains []int) string { return string(intsKey([]int{class}, domains)) }

// stageKey is the key of an accept set within domains in planner.narrowedSets.
func stageKey(set int, labels []string, domains []int) string {
	b := intsKey([]int{set}, domains)
	return string(hashkey.Text(b, labels...))
}

// intsKey encodes the numbers as a key.
func intsKey(lists ...[]int) []byte {
	var b []byte
	for _, list := range lists {
		for _, n := range list {
			b = hashkey.Int(b, n)
		}
	}
	return b
}

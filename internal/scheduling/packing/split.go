package packing

import (
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/hashkey"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// splitter assigns pods with domain rules to topology domains. Domain rules are rules over a label other than the
// host name.
type splitter struct {
	problem *pending.Problem
	queue   *pending.Queue
	rooms   *existing.Rooms
	topo    *existing.TopologyState
	sol     *solution
}

func newSplitter(sol *solution) splitter {
	return splitter{problem: sol.problem, queue: sol.queue, rooms: sol.rooms, topo: sol.topo, sol: sol}
}

// split assigns pods to topology domains. It does so for each class with domain rules, and for each class that a
// domain rule selects. Each class gets one part per combination of domains. Pods that are not allowed in any
// domain stay in the class, which then accepts no offering and no node.
func (sp splitter) split() {
	var all []int
	for c := range sp.queue.Classes {
		all = append(all, c)
	}
	sp.splitClasses(all)
}

// splitClasses splits these classes. Classes with preferred affinity are split after the classes without, and
// classes with required affinity after their targets are assigned.
func (sp splitter) splitClasses(classes []int) {
	var first, later []int // later: classes with preferred affinity to pods of other classes
	for _, c := range classes {
		p := sp.queue.Profile(&sp.queue.Classes[c])
		switch {
		case len(p.Keys) == 0:
		case slices.ContainsFunc(p.Domain, func(r topology.Rule) bool { return r.Kind == topology.Affinity && r.Weight > 0 && !r.Self }):
			later = append(later, c)
		default:
			first = append(first, c)
		}
	}
	rest := sp.splitPossible(first)
	if len(later) > 0 {
		sp.countPinned()
		rest = sp.splitPossible(append(rest, later...))
	}
	for _, c := range rest {
		sp.markUnplaceable(c)
	}
	sp.queue.SortClasses()
}

// countPinned adds unplaced pods to the domain counts of the preferred affinities that select them. A class that only
// preferred affinities select is not split, so its pods are not in these counts yet. countPinned adds the pods of such
// a class if all its offerings are in one domain of the affinity's label.
func (sp splitter) countPinned() {
	for c := range sp.queue.WholeCount {
		class := &sp.queue.Classes[c]
		if sp.queue.Left[c] == 0 || len(class.Stages) == 0 {
			continue
		}
		profile := sp.queue.Profile(class)
		for _, g := range profile.In {
			group := &sp.queue.Pods.Topology.Groups[g]
			if group.Kind != topology.Affinity || slices.Contains(profile.Keys, group.Key) {
				continue
			}
			possible, last := 0, 0 // number of possible domains, and the last of them
			for d, offers := range sp.topo.Keys[group.Key].Offers {
				if sp.problem.Accepts.Sets[class.HardSet].Intersects(offers) {
					possible, last = possible+1, d
				}
			}
			if possible == 1 {
				sp.topo.DomainCounts.AddPods(g, last, sp.queue.Left[c])
			}
		}
	}
}

// splitPossible splits the classes that can be split, and returns the others. Splitting one class can make it
// possible to split another, so it repeats until a round splits no class.
func (sp splitter) splitPossible(classes []int) []int {
	for len(classes) > 0 {
		var blocked []int
		for _, c := range classes {
			if !sp.splitClass(c) {
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

// splitClass makes the parts of a class, for all of its pods that are allowed in a domain now. It reports false,
// and changes nothing, if the class has candidate domains but none of them allows a pod yet. Otherwise, the pods
// without a part stay in the class, and are unplaceable.
func (sp splitter) splitClass(c int) bool {
	class := sp.queue.Classes[c]
	profile := sp.queue.Profile(&class)
	places := sp.candidatePlaces(c)
	counts := sp.topo.DomainCounts.Assign(profile, class.Units(), places)
	assigned := 0 // pods assigned to a domain
	for i, n := range counts {
		if n == 0 {
			continue
		}
		part := class
		part.WholeClass, part.Domains = c, places[i].Domains
		part.Pods = class.Pods[assigned : assigned+n]
		part.Nodes = sp.existingNodesFor(profile, part.Domains)
		part.Stages, _ = sp.stagesIn(&class, part.Domains)
		sp.queue.Classes = append(sp.queue.Classes, part)
		sp.queue.Assigned[len(sp.queue.Classes)-1] = n
		sp.queue.Left = append(sp.queue.Left, n)
		assigned += n
	}
	if assigned == 0 && len(places) > 0 {
		return false
	}
	sp.queue.Classes[c].Pods = class.Pods[assigned:]
	sp.queue.Left[c] = class.Units() - assigned
	sp.markUnplaceable(c)
	return true
}

// markUnplaceable makes the remaining pods of the class accept no offering and no node.
func (sp splitter) markUnplaceable(c int) {
	sp.queue.Classes[c].Stages, sp.queue.Classes[c].Nodes = nil, bitset.New(len(sp.rooms.Nodes))
}

// candidatePlaces returns the combinations of domains that have room for pods of the class, on existing or new
// nodes, and that domainCaps does not exclude. It ignores the class's own domain rules.
func (sp splitter) candidatePlaces(c int) []topology.Place {
	class := &sp.queue.Classes[c]
	profile := sp.queue.Profile(class)
	var out []topology.Place
	for _, domains := range sp.topo.DomainCombinations(profile) {
		place := topology.Place{Domains: domains, Free: sp.sol.existingRoomFor(class, sp.existingNodesFor(profile, domains))}
		place.Price = math.Inf(1)
		if stages, rank := sp.stagesIn(class, domains); len(stages) > 0 {
			place.Most, place.Price, place.Rank = class.Units(), sp.pricePerSize(stages[0]), rank
		}
		place.Most = max(place.Most, place.Free)
		if limit, ok := sp.sol.domainCaps[pending.PartKey(c, domains)]; ok {
			place.Most, place.Free = min(place.Most, limit), min(place.Free, limit)
		}
		if place.Most > 0 {
			out = append(out, place)
		}
	}
	return out
}

// stagesIn returns the stages of the class, limited to offerings in the domains. Stages without such offerings
// are left out; rank is the number of stages left out before the first result.
func (sp splitter) stagesIn(class *pending.Class, domains []int) (out []int, rank int) {
	profile := sp.queue.Profile(class)
	for i, stage := range class.Stages {
		key := stageKey(stage, profile.Keys, domains)
		set, ok := sp.sol.narrowedSets[key]
		if !ok {
			set = sp.problem.Accepts.Number(sp.topo.OffersIn(profile, domains, sp.problem.Accepts.Sets[stage]))
			sp.sol.narrowedSets[key] = set
		}
		set = sp.withDaemonPods(set, profile, domains)
		if !slices.Contains(out, set) && sp.problem.Accepts.AnyHasRoom(sp.problem.Accepts.Sets[set], &class.Class) {
			if len(out) == 0 {
				rank = i
			}
			out = append(out, set)
		}
	}
	return out, rank
}

// pricePerSize returns the lowest price of an offering in the accept set, per millicore. 8 MiB of memory count as
// one millicore. It is +Inf for an empty set.
func (sp splitter) pricePerSize(set int) float64 {
	for len(sp.sol.sizePrices) <= set {
		sp.sol.sizePrices = append(sp.sol.sizePrices, -1)
	}
	if sp.sol.sizePrices[set] < 0 {
		least := math.Inf(1)
		sp.problem.Accepts.Sets[set].Each(func(o int) {
			size := sp.problem.Stock.TypeOf(o).Allocatable
			least = min(least, float64(sp.problem.Stock.Offers[o].Price)/(float64(size.CPU)+float64(size.Memory)/(8<<20)+1))
		})
		sp.sol.sizePrices[set] = least
	}
	return sp.sol.sizePrices[set]
}

// stageKey returns the key in solution.narrowedSets for an accept set, limited to domains of the labels.
func stageKey(set int, labels []string, domains []int) string {
	b := pending.IntsKey([]int{set}, domains)
	return string(hashkey.Text(b, labels...))
}

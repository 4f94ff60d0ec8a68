package consolidation

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

const (
	maxScarcePlans         = 40  // maximum number of plans
	maxUnplacedShareScarce = 0.8 // maximum share of a node's pods, by requests, that need a new node
	minRelativeSaving      = 0.7 // minimum saving per cost of a further node, divided by the saving per cost of the best node
	awaitedDivisor         = 4   // existingNodesAwaitPods: its limit is one in four pods of terminating nodes
	podHeadroom            = 1   // headroom.pods, in percent
)

// isScarce reports whether free capacity is scarce: the possible saving, as a share of the price, is more than
// MinWorth, and more than twice the free shares of CPU and of memory on the nodes. This happens when nodes are full and
// prices have changed. Each node will be replaced sooner or later, so the free room should be used for the pods of the
// nodes that save most.
func (s *search) isScarce() bool {
	var free, all resources.Amounts
	for i := range s.p.in.Snapshot.Nodes {
		n := &s.p.in.Snapshot.Nodes[i]
		if n.Leaving || !n.Initialized || n.Cordoned() {
			continue
		}
		free, all = free.Add(n.Allocatable.Sub(n.Requested).Max(resources.Amounts{})), all.Add(n.Allocatable)
	}
	saving := s.p.priceShare(s.p.price - s.target)
	return saving > MinWorth && 2*max(shareOf(free.CPU, all.CPU), shareOf(free.Memory, all.Memory)) < saving
}

// shareOf returns part as a share of all; all below 1 counts as 1.
func shareOf(part, all int64) float64 { return float64(part) / float64(max(all, 1)) }

// replaceForScarcity replaces the single nodes with the highest saving per cost, if capacity is scarce and no pods are
// in transit. A move must be worth as much as the removal of all candidates.
func replaceForScarcity(s *search, order []int) []Move {
	s.threshold = s.p.priceShare(s.p.price - s.target)
	if !s.scarce || !s.p.isSettled() {
		return nil
	}
	s.arrivalOrder = drainOrders
	x := s.newExtension(attempt{}, nil)
	x.replaceBest(x.byPricePerCost(order))
	x.confirm(nil)
	return x.result()
}

// byPricePerCost returns the candidates whose removal may be worth it and whose pods can be simulated, sorted by price
// per cost, highest first.
func (x *extension) byPricePerCost(order []int) []int {
	out := slices.DeleteFunc(slices.Clone(order), func(c int) bool {
		return slices.ContainsFunc(x.p.candidates[c].node.Pods, isNotSimulated) ||
			x.p.priceShare(x.p.candidates[c].price) < x.s.threshold*x.p.costShare(x.p.candidates[c].cost)
	})
	slices.SortFunc(out, func(a, b int) int { return cmp.Or(cmp.Compare(x.pricePerCost(b), x.pricePerCost(a)), a-b) })
	return out
}

func (x *extension) pricePerCost(c int) float64 {
	return x.p.candidates[c].price.Dollars() / (x.p.candidates[c].cost + 1)
}

// partialFit is a candidate of which some pods fit other nodes.
type partialFit struct {
	candidate int
	maxSaving float64 // upper limit of the saving per cost
}

// replaceBest adds the moves of single nodes with the highest saving per cost. It tries the candidates with the highest
// price per cost first, in batches whose pods may fit the free room of other nodes. Candidates of a batch take none of
// each other's pods. If all pods of some candidates fit other nodes, only these candidates are removed. Otherwise new
// nodes are planned for those pods of a candidate that do not fit. The search ends as soon as no other candidate can
// save more, even if its new nodes were free of charge.
func (x *extension) replaceBest(order []int) {
	var left []partialFit       // not tried yet
	best, bestSaving := -1, 0.0 // the best candidate and its saving per cost
	maxPlans, checks := x.s.plans+maxScarcePlans, 0
	for len(order) > 0 && checks < maxNodeChecks && (best < 0 || bestSaving < x.pricePerCost(order[0])) {
		n := min(max(x.countUntilFull(order), 1), len(order))
		group := order[:n]
		order = order[n:]
		x.cordon(group, true)
		x.removeOntoOthers(group)
		x.cordon(group, false)
		if len(x.moves) > 0 {
			return
		}
		for _, c := range group {
			checks += len(x.p.candidates[c].node.Pods) * len(x.sim.nodes)
		}
		left = append(left, x.partialFits(group)...)
		slices.SortStableFunc(left, func(a, b partialFit) int { return cmp.Compare(b.maxSaving, a.maxSaving) })
		for len(left) > 0 && left[0].maxSaving > bestSaving && x.s.plans < maxPlans {
			if saves := x.savingPerCost(left[0].candidate); saves > bestSaving {
				best, bestSaving = left[0].candidate, saves
			}
			left = left[1:]
		}
	}
	if best < 0 {
		return
	}
	x.replaceRemainder(best)
	for i := 0; i < len(left) && left[i].maxSaving >= minRelativeSaving*bestSaving && x.s.plans < maxPlans; i++ {
		x.replaceRemainder(left[i].candidate)
	}
}

// partialFits returns the candidates of the group for which enough pods fit other nodes that a move may be worth it.
func (x *extension) partialFits(group []int) []partialFit {
	var out []partialFit
	for _, c := range group {
		if unplaced := x.unplacedShare(c); unplaced < maxUnplacedShareScarce &&
			x.p.priceShare(x.p.candidates[c].price)*(1-unplaced) > x.s.threshold*x.p.costShare(x.p.candidates[c].cost) {
			out = append(out, partialFit{c, x.pricePerCost(c) * (1 - unplaced)})
		}
	}
	return out
}

// savingPerCost returns the saving per cost of removing the candidate with replaceRemainder; 0 if the removal is not
// worth it. The extension must have no moves yet, and is unchanged afterwards.
func (x *extension) savingPerCost(c int) float64 {
	before, saves := x.clone(), 0.0
	if x.replaceRemainder(c) {
		saves = x.moves[0].savingPerCost()
	}
	*x = before
	return saves
}

// unplacedShare returns the share of the requests of the candidate's pods that does not fit other nodes; 1 if the
// candidate may not be removed.
func (x *extension) unplacedShare(c int) float64 {
	n := x.p.candidates[c].node
	if x.isTaken(c) || x.removalsLeft(n.Pool) < 1 {
		return 1
	}
	x.sim.cordon(n.Name, true)
	defer x.sim.cordon(n.Name, false)
	return x.sim.unplacedShare(n.Pods)
}

// countUntilFull returns how many of the first candidates of the order can be removed until their pods fill the other
// nodes. It assumes that all free room is in one piece.
func (x *extension) countUntilFull(order []int) int {
	var free resources.Amounts
	for i := range x.sim.nodes {
		if s := &x.sim.nodes[i]; !s.cordoned && !s.isPlanned {
			free = free.Add(s.free.Max(resources.Amounts{}))
		}
	}
	for i, c := range order {
		n := x.p.candidates[c].node
		free = free.Sub(n.Allocatable.Sub(n.Requested).Max(resources.Amounts{})) // the removed node's own free room
		for k := range n.Pods {
			free = free.Sub(n.Pods[k].Requests)
		}
		if free.CPU < 0 || free.Memory < 0 {
			return i + 1
		}
	}
	return len(order)
}

// replaceRemainder removes the candidate, with new nodes for the pods that do not fit other nodes. The plan leaves as
// little headroom as kube-scheduler needs. replaceRemainder reports whether it removed the candidate. The candidate
// stays if the move is not worth it, or if the used room is worth more than the saving.
func (x *extension) replaceRemainder(c int) bool {
	if x.isTaken(c) || x.removalsLeft(x.p.candidates[c].node.Pool) < 1 {
		return false
	}
	before, added := x.clone(), len(x.moves) // added: the index of the new move
	x.cordon([]int{c}, true)
	value := x.valueOfFreeRoom()
	x.cordon([]int{c}, false)
	if !x.replaceWithLeastHeadroom(c) {
		return false
	}
	if value-x.valueOfFreeRoom() > x.moves[added].Saving {
		*x = before
		return false
	}
	return true
}

// replaceWithLeastHeadroom removes the candidate with the least headroom.nodes that succeeds, found by bisection. It
// reports whether it removed the candidate.
func (x *extension) replaceWithLeastHeadroom(c int) bool {
	group := []int{c}
	if x.try(group, headroom{}) > 0 {
		return true
	}
	at, least := int64(50), int64(0) // in percent: to try next; the least that has succeeded, or 0
	for _, step := range []int64{25, 12, 6, 3} {
		before := x.clone()
		if x.try(group, headroom{at, podHeadroom}) == 0 {
			at += step
			continue
		}
		*x = before
		least, at = at, at-step
	}
	return x.try(group, headroom{at, podHeadroom}) > 0 || least > 0 && x.try(group, headroom{least, podHeadroom}) > 0
}

// valueOfFreeRoom returns the value of the free room of the candidates that stay; 0 if capacity is not scarce. For each
// node the smaller of its free shares of CPU and memory counts, because free CPU without free memory, or memory without
// CPU, is useless.
func (x *extension) valueOfFreeRoom() catalog.Price {
	if !x.s.scarce {
		return 0
	}
	sum := 0.0
	for i := range x.sim.nodes {
		sum += x.valueOfNode(&x.sim.nodes[i])
	}
	return catalog.Price(sum)
}

// valueOfNode returns the value of the node's free room at its price × target / price of all candidates; 0 if the node
// is no candidate or is cordoned.
func (x *extension) valueOfNode(n *simNode) float64 {
	c, isCandidate := x.p.byNode[n.name]
	if !isCandidate || n.cordoned {
		return 0
	}
	free := min(shareOf(n.free.CPU, n.allocatable.CPU), shareOf(n.free.Memory, n.allocatable.Memory))
	return max(free, 0) * float64(x.p.candidates[c].price) * shareOf(int64(x.s.target), int64(x.p.price))
}

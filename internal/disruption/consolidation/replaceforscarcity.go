package consolidation

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

const (
	maxScarcePlans         = 40  // maximum number of plans
	maxUnplacedShareScarce = 0.8 // the share of the requests of a node's pods that need a new node must be below this
	minRelativeSaving      = 0.7 // minimum saving per cost of a further node, as a share of that of the best node
	transitDivisor         = 4   // pods in transit: more than one in this many (hasPodsInTransit)
	podHeadroom            = 1   // headroom.pods, in percent
)

// isScarce reports whether free capacity is scarce: the possible saving, as a share of the price, is more than
// MinWorth, and more than twice the share of CPU and of memory that is free on the nodes. This is the case when nodes
// are full and prices have changed. Each node will be replaced sooner or later, so the free room should go to the nodes
// that save most.
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

// shareOf returns part as a share of all.
func shareOf(part, all int64) float64 { return float64(part) / float64(max(all, 1)) }

// replaceForScarcity replaces single nodes if capacity is scarce and no pods are in transit: the nodes with the highest
// saving per cost. A move must be worth as much as the removal of all candidates.
func replaceForScarcity(s *search, order []int) []Move {
	s.threshold = s.p.priceShare(s.p.price - s.target)
	if !s.scarce || !s.p.isSettled() {
		return nil
	}
	s.order = drainOrders
	x := s.newExtension(attempt{}, nil)
	x.replaceBest(x.byPricePerCost(order))
	x.confirm(nil)
	return x.result()
}

// byPricePerCost returns the candidates whose removal may be worth it and whose pods can be simulated, sorted by price
// per cost, highest first.
func (x *extension) byPricePerCost(of []int) []int {
	out := slices.DeleteFunc(slices.Clone(of), func(c int) bool {
		return slices.ContainsFunc(x.p.candidates[c].node.Pods, isNotSimulated) ||
			x.p.priceShare(x.p.candidates[c].price) < x.s.threshold*x.p.costShare(x.p.candidates[c].cost)
	})
	slices.SortFunc(out, func(a, b int) int { return cmp.Or(cmp.Compare(x.pricePerCost(b), x.pricePerCost(a)), a-b) })
	return out
}

// pricePerCost returns the candidate's price per unit of the cost of moving its pods.
func (x *extension) pricePerCost(c int) float64 {
	return x.p.candidates[c].price.Dollars() / (x.p.candidates[c].cost + 1)
}

// partialFit is a candidate some of whose pods fit other nodes.
type partialFit struct {
	candidate int
	maxSaving float64 // upper limit of the saving per cost
}

// replaceBest adds the moves of single nodes with the highest saving per cost. It takes the candidates with the highest
// price per cost first, in batches for which other nodes may have room. Candidates of a batch take none of each other's
// pods. If all pods of some candidates fit other nodes, these are the moves. For the remaining candidates, nodes are
// launched for a part of the pods. The search ends as soon as no other candidate can save more, even with a free
// replacement.
func (x *extension) replaceBest(order []int) {
	var left []partialFit
	best, most, maxPlans, checks := -1, 0.0, x.s.plans+maxScarcePlans, 0 // most: saving per cost of the candidate best
	for len(order) > 0 && checks < maxNodeChecks && (best < 0 || most < x.pricePerCost(order[0])) {
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
		for len(left) > 0 && left[0].maxSaving > most && x.s.plans < maxPlans {
			if saves := x.savingPerCost(left[0].candidate); saves > most {
				best, most = left[0].candidate, saves
			}
			left = left[1:]
		}
	}
	if best < 0 {
		return
	}
	x.replaceRemainder(best)
	for i := 0; i < len(left) && left[i].maxSaving >= minRelativeSaving*most && x.s.plans < maxPlans; i++ {
		x.replaceRemainder(left[i].candidate)
	}
}

// partialFits returns the candidates of which enough pods fit other nodes for a move that may be worth it.
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

// savingPerCost returns the saving per cost of removing the candidate with replaceRemainder; 0 if that is not worth it.
// It leaves the extension unchanged, which must have no moves yet.
func (x *extension) savingPerCost(c int) float64 {
	before, saves := x.clone(), 0.0
	if x.replaceRemainder(c) {
		saves = x.moves[0].perCost()
	}
	*x = before
	return saves
}

// unplacedShare returns the share of the requests of the candidate's pods that does not fit other nodes; 1 if the
// candidate may not be removed.
func (x *extension) unplacedShare(c int) float64 {
	n := x.p.candidates[c].node
	if x.mustStay(c) || x.removalsLeft(n.Pool) < 1 {
		return 1
	}
	x.sim.cordon(n.Name, true)
	defer x.sim.cordon(n.Name, false)
	return x.sim.unplacedShare(n.Pods)
}

// countUntilFull returns the number of candidates of the order after which the other nodes have no room left. It
// assumes that all free room is in one piece.
func (x *extension) countUntilFull(order []int) int {
	var free resources.Amounts
	for i := range x.sim.nodes {
		if s := &x.sim.nodes[i]; !s.cordoned && !s.planned {
			free = free.Add(s.free.Max(resources.Amounts{}))
		}
	}
	for i, c := range order {
		n := x.p.candidates[c].node
		free = free.Sub(n.Allocatable.Sub(n.Requested).Max(resources.Amounts{}))
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
// little headroom as kube-scheduler needs. replaceRemainder reports whether it removed the candidate; it does not if
// the move is not worth it or the used room is worth more than the saving.
func (x *extension) replaceRemainder(c int) bool {
	if x.mustStay(c) || x.removalsLeft(x.p.candidates[c].node.Pool) < 1 {
		return false
	}
	before, added := x.clone(), len(x.moves) // added: the index of the new move
	x.cordon([]int{c}, true)
	room := x.valueOfFreeRoom()
	x.cordon([]int{c}, false)
	if !x.replaceWithLeastHeadroom(c) {
		return false
	}
	if room-x.valueOfFreeRoom() > x.moves[added].Saving {
		*x = before
		return false
	}
	return true
}

// replaceWithLeastHeadroom removes the candidate with a plan of the least headroom.nodes, found by bisection. It
// reports whether it removed the candidate.
func (x *extension) replaceWithLeastHeadroom(c int) bool {
	group := []int{c}
	if x.try(group, headroom{}) > 0 {
		return true
	}
	at, least := int64(50), int64(0)
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

// valueOfFreeRoom returns the value of the free room of the candidates that stay, at the target price; 0 if capacity is
// not scarce. Only the room counts that pods with requests in the proportions of the node could use, because a
// remainder of one resource is useless.
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

// valueOfNode returns the value of the node's free room; 0 if the node is no candidate or is cordoned.
func (x *extension) valueOfNode(of *simNode) float64 {
	c, known := x.p.byNode[of.name]
	if !known || of.cordoned {
		return 0
	}
	free := min(shareOf(of.free.CPU, of.allocatable.CPU), shareOf(of.free.Memory, of.allocatable.Memory))
	return max(free, 0) * float64(x.p.candidates[c].price) * shareOf(int64(x.s.target), int64(x.p.price))
}

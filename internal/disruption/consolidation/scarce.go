package consolidation

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// How far bargain looks.
const (
	maxScarcePlans         = 40  // plans that are made
	maxUnplacedShareScarce = 0.8 // how much of a node's pods may need a machine
	minRelativeSaving      = 0.7 // how much of what the best saves for its cost others must, to go with it
	transitDivisor         = 4   // of so many pods on the way one may go to a node that is there
	podHeadroom            = 1   // percent that pods are taken for larger
)

// isScarce reports whether room is scarce: what may be saved by buying otherwise is more than twice what there is free on nodes, of processors as of
// memory, as a share of them. Then all is full and prices have changed. Each node will be replaced sooner or later, and what is free is
// best for those whose pods are moved for most.
func (s *search) isScarce() bool {
	var free, all resources.Amounts
	for i := range s.p.in.Snapshot.Nodes {
		n := &s.p.in.Snapshot.Nodes[i]
		if n.Leaving || !n.Initialized || n.Cordoned() {
			continue
		}
		free, all = free.Add(n.Allocatable.Sub(n.Requested).Max(resources.Amounts{})), all.Add(n.Allocatable)
	}
	share := s.p.priceShare(s.p.price - s.target)
	return share > MinWorth && 2*max(shareOf(free.CPU, all.CPU), shareOf(free.Memory, all.Memory)) < share
}

func shareOf(part, all int64) float64 { return float64(part) / float64(max(all, 1)) }

// isOnTheWay reports whether a good part of the pods that are on the way to other places go to nodes that are there. Their room is not to be
// given to others: what is left over of a node then needs a machine that nobody has bought.
func (p *problem) hasPodsInTransit() bool {
	leaving, isThere := map[string]bool{}, map[string]bool{}
	for i := range p.in.Snapshot.Nodes {
		n := &p.in.Snapshot.Nodes[i]
		isThere[n.Name] = n.Initialized && !n.Leaving
		if n.Leaving && !p.in.Stale[n.Name] {
			for k := range n.Pods {
				leaving[n.Pods[k].ID()] = true
			}
		}
	}
	there := 0
	for _, placed := range p.pendingPlan.Placements {
		if leaving[placed.Pod] && isThere[placed.Node] {
			there++
		}
	}
	return there*transitDivisor > len(leaving)
}

// bargains returns moves of single nodes where room is scarce, and nobody is on the way to another place: those that save most for their cost.
// They must save, for what they move, as much as all nodes together would. A result without moves says that there are none.
func (s *search) replaceForScarcity(of []int) Result {
	s.threshold = s.p.priceShare(s.p.price - s.target)
	if !s.scarce || !s.p.isSettled() {
		return Result{Price: s.p.price, Plans: s.plans}
	}
	s.order = drainOrder
	f := s.newExtension(attempt{}, nil)
	f.replaceBest(f.byPricePerCost(of))
	f.confirm(nil)
	return s.result(nil, f.result())
}

// dearest returns those of the candidates that may be worth it, the highest price for the cost first.
func (f *extension) byPricePerCost(of []int) []int {
	out := slices.DeleteFunc(slices.Clone(of), func(c int) bool {
		return slices.ContainsFunc(f.p.candidates[c].node.Pods, isNotSimulated) || f.p.priceShare(f.p.candidates[c].Price) < f.s.threshold*f.p.costShare(f.p.candidates[c].Cost)
	})
	slices.SortFunc(out, func(a, b int) int { return cmp.Or(cmp.Compare(f.pricePerCost(b), f.pricePerCost(a)), a-b) })
	return out
}

// dear is what the candidate costs, for what it takes to move its pods.
func (f *extension) pricePerCost(c int) float64 {
	return f.p.candidates[c].Price.Dollars() / (f.p.candidates[c].Cost + 1)
}

// partly is a candidate of which a part of the pods would find places on other nodes.
type partialFit struct {
	candidate int
	maxSaving float64 // that it may save, for its cost
}

// bargain adds the moves of single nodes that save most for their cost. The dearest are looked at first, as many together as others may have
// room for, and these are out of the way of each other's pods. If all pods of some find places, these go. Of the others, machines are
// bought for a part of the pods; the best of that is made as soon as no other node, if it went for nothing, could save more.
func (f *extension) replaceBest(order []int) {
	var left []partialFit
	best, most, until, deals := -1, 0.0, f.s.plans+maxScarcePlans, 0
	for len(order) > 0 && deals < maxNodeChecks && (best < 0 || most < f.pricePerCost(order[0])) {
		n := min(max(f.countUntilFull(order), 1), len(order))
		group := order[:n]
		order = order[n:]
		f.cordon(group, true)
		f.removeOntoOthers(group)
		f.cordon(group, false)
		if len(f.moves) > 0 {
			return
		}
		for _, c := range group {
			deals += len(f.p.candidates[c].node.Pods) * len(f.sim.nodes)
		}
		left = append(left, f.partialFits(group)...)
		slices.SortStableFunc(left, func(a, b partialFit) int { return cmp.Compare(b.maxSaving, a.maxSaving) })
		for len(left) > 0 && left[0].maxSaving > most && f.s.plans < until {
			if saves := f.savingPerCost(left[0].candidate); saves > most {
				best, most = left[0].candidate, saves
			}
			left = left[1:]
		}
	}
	if best < 0 {
		return
	}
	f.replaceRemainder(best)
	for i := 0; i < len(left) && left[i].maxSaving >= minRelativeSaving*most && f.s.plans < until; i++ {
		f.replaceRemainder(left[i].candidate)
	}
}

// partlies are those of the candidates of which so many pods find places on other nodes that it may be worth it.
func (f *extension) partialFits(group []int) []partialFit {
	var out []partialFit
	for _, c := range group {
		if over := f.unplacedShare(c); over < maxUnplacedShareScarce && f.p.priceShare(f.p.candidates[c].Price)*(1-over) > f.s.threshold*f.p.costShare(f.p.candidates[c].Cost) {
			out = append(out, partialFit{c, f.pricePerCost(c) * (1 - over)})
		}
	}
	return out
}

// wouldSave is what it would save for its cost if the candidate went by halve; 0 if that is not worth it.
func (f *extension) savingPerCost(c int) float64 {
	was, saves := f.clone(), 0.0
	if f.replaceRemainder(c) {
		saves = f.moves[0].perCost()
	}
	*f = was
	return saves
}

// shut keeps pods off the candidates, or lets them come again to those that do not go.
func (f *extension) cordon(group []int, is bool) {
	for _, c := range group {
		if is || !f.removed[c] {
			f.sim.cordon(f.p.candidates[c].node.Name, is)
		}
	}
}

// overflow is how much of the candidate's pods finds no place on other nodes; all of it if it may not go.
func (f *extension) unplacedShare(c int) float64 {
	n := f.p.candidates[c].node
	if f.mustStay(c) || f.removalsLeft(n.Pool) < 1 {
		return 1
	}
	f.sim.cordon(n.Name, true)
	defer f.sim.cordon(n.Name, false)
	return f.sim.unplacedShare(n.Pods)
}

// fitting is after how many of the first of the order the others have no room left, if they had it all in one piece.
func (f *extension) countUntilFull(order []int) int {
	var free resources.Amounts
	for i := range f.sim.nodes {
		if s := &f.sim.nodes[i]; !s.cordoned && !s.planned {
			free = free.Add(s.free.Max(resources.Amounts{}))
		}
	}
	for i, c := range order {
		n := f.p.candidates[c].node
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

// halve lets the candidate go, with machines for those of its pods that find no place on other nodes: with as little room left free
// there as kube-scheduler needs for its ways. It reports whether that is worth it, and more than what it takes of the room.
func (f *extension) replaceRemainder(c int) bool {
	if f.mustStay(c) || f.removalsLeft(f.p.candidates[c].node.Pool) < 1 {
		return false
	}
	was, moves := f.clone(), len(f.moves)
	f.cordon([]int{c}, true)
	room := f.valueOfFreeRoom()
	f.cordon([]int{c}, false)
	if !f.replaceWithLeastHeadroom(c) {
		return false
	}
	if room-f.valueOfFreeRoom() > f.moves[moves].Saving {
		*f = was
		return false
	}
	return true
}

// leastEased lets the candidate go by a plan that leaves as little free on other nodes as may be. It reports whether there is one.
func (f *extension) replaceWithLeastHeadroom(c int) bool {
	group := []int{c}
	if f.try(group, headroom{}) > 0 {
		return true
	}
	at, least := int64(50), int64(0)
	for _, step := range []int64{25, 12, 6, 3} {
		was := f.clone()
		if f.try(group, headroom{at, podHeadroom}) == 0 {
			at += step
			continue
		}
		*f = was
		least, at = at, at-step
	}
	return f.try(group, headroom{at, podHeadroom}) > 0 || least > 0 && f.try(group, headroom{least, podHeadroom}) > 0
}

// worthOfRoom is what is free on nodes that are open is worth, if all is bought as it should be: nothing where room is not scarce. Of a node it is
// as much as pods could use that ask for what the node has. Pods of another kind take more than their share of one thing, and leave what
// nobody can use of the other.
func (f *extension) valueOfFreeRoom() catalog.Price {
	if !f.s.scarce {
		return 0
	}
	sum := 0.0
	for i := range f.sim.nodes {
		sum += f.valueOfNode(&f.sim.nodes[i])
	}
	return catalog.Price(sum)
}

func (f *extension) valueOfNode(of *simNode) float64 {
	c, known := f.p.byNode[of.name]
	if !known || of.cordoned {
		return 0
	}
	free := min(shareOf(of.free.CPU, of.allocatable.CPU), shareOf(of.free.Memory, of.allocatable.Memory))
	return max(free, 0) * float64(f.p.candidates[c].Price) * shareOf(int64(f.s.target), int64(f.p.price))
}

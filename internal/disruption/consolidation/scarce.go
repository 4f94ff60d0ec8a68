package consolidation

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// How far bargain looks.
const (
	mostBargains = 40  // plans that are made
	mostNeeds    = 0.8 // how much of a node's pods may need a machine
	alsoGood     = 0.7 // how much of what the best saves for its cost others must, to go with it
	passing      = 4   // of so many pods on the way one may go to a node that is there
	looser       = 1   // percent that pods are taken for larger
)

// isScarce reports whether room is scarce: what may be saved by buying otherwise is more than twice what there is free on nodes, of processors as of
// memory, as a share of them. Then all is full and prices have changed. Each node will be replaced sooner or later, and what is free is
// best for those whose pods are moved for most.
func (s *scene) isScarce() bool {
	var free, all resources.Amounts
	for i := range s.p.in.Snapshot.Nodes {
		n := &s.p.in.Snapshot.Nodes[i]
		if n.Leaving || !n.Initialized || n.Cordoned() {
			continue
		}
		free, all = free.Add(n.Allocatable.Sub(n.Requested).Max(resources.Amounts{})), all.Add(n.Allocatable)
	}
	share := s.p.share(s.p.price - s.target)
	return share > Usual && 2*max(shareOf(free.CPU, all.CPU), shareOf(free.Memory, all.Memory)) < share
}

func shareOf(part, all int64) float64 { return float64(part) / float64(max(all, 1)) }

// isOnTheWay reports whether a good part of the pods that are on the way to other places go to nodes that are there. Their room is not to be
// given to others: what is left over of a node then needs a machine that nobody has bought.
func (p *problem) isOnTheWay() bool {
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
	for _, placed := range p.alone.Placements {
		if leaving[placed.Pod] && isThere[placed.Node] {
			there++
		}
	}
	return there*passing > len(leaving)
}

// bargains returns moves of single nodes where room is scarce, and nobody is on the way to another place: those that save most for their cost.
// They must save, for what they move, as much as all nodes together would. A result without moves says that there are none.
func (s *scene) bargains(of []int) Result {
	s.bar = s.p.share(s.p.price - s.target)
	if !s.thrifty || !s.p.isCalm() {
		return Result{Price: s.p.price, Trials: s.made}
	}
	s.arriving = usual
	f := s.furtherTo(trial{}, nil)
	f.bargain(f.dearest(of))
	f.confirm(nil)
	return s.result(nil, f.together())
}

// dearest returns those of the candidates that may be worth it, the highest price for the cost first.
func (f *further) dearest(of []int) []int {
	out := slices.DeleteFunc(slices.Clone(of), func(c int) bool {
		return slices.ContainsFunc(f.p.candidates[c].node.Pods, isBound) || f.p.share(f.p.candidates[c].Price) < f.s.bar*f.p.effort(f.p.candidates[c].Cost)
	})
	slices.SortFunc(out, func(a, b int) int { return cmp.Or(cmp.Compare(f.dear(b), f.dear(a)), a-b) })
	return out
}

// dear is what the candidate costs, for what it takes to move its pods.
func (f *further) dear(c int) float64 {
	return f.p.candidates[c].Price.Dollars() / (f.p.candidates[c].Cost + 1)
}

// partly is a candidate of which a part of the pods would find places on other nodes.
type partly struct {
	candidate int
	most      float64 // that it may save, for its cost
}

// bargain adds the moves of single nodes that save most for their cost. The dearest are looked at first, as many together as others may have
// room for, and these are out of the way of each other's pods. If all pods of some find places, these go. Of the others, machines are
// bought for a part of the pods; the best of that is made as soon as no other node, if it went for nothing, could save more.
func (f *further) bargain(order []int) {
	var left []partly
	best, most, until, deals := -1, 0.0, f.s.made+mostBargains, 0
	for len(order) > 0 && deals < mostDeals && (best < 0 || most < f.dear(order[0])) {
		n := min(max(f.fitting(order), 1), len(order))
		group := order[:n]
		order = order[n:]
		f.shut(group, true)
		f.spill(group)
		f.shut(group, false)
		if len(f.moves) > 0 {
			return
		}
		for _, c := range group {
			deals += len(f.p.candidates[c].node.Pods) * len(f.board.seats)
		}
		left = append(left, f.partlies(group)...)
		slices.SortStableFunc(left, func(a, b partly) int { return cmp.Compare(b.most, a.most) })
		for len(left) > 0 && left[0].most > most && f.s.made < until {
			if saves := f.wouldSave(left[0].candidate); saves > most {
				best, most = left[0].candidate, saves
			}
			left = left[1:]
		}
	}
	if best < 0 {
		return
	}
	f.halve(best)
	for i := 0; i < len(left) && left[i].most >= alsoGood*most && f.s.made < until; i++ {
		f.halve(left[i].candidate)
	}
}

// partlies are those of the candidates of which so many pods find places on other nodes that it may be worth it.
func (f *further) partlies(group []int) []partly {
	var out []partly
	for _, c := range group {
		if over := f.overflow(c); over < mostNeeds && f.p.share(f.p.candidates[c].Price)*(1-over) > f.s.bar*f.p.effort(f.p.candidates[c].Cost) {
			out = append(out, partly{c, f.dear(c) * (1 - over)})
		}
	}
	return out
}

// wouldSave is what it would save for its cost if the candidate went by halve; 0 if that is not worth it.
func (f *further) wouldSave(c int) float64 {
	was, saves := f.clone(), 0.0
	if f.halve(c) {
		saves = f.moves[0].perCost()
	}
	*f = was
	return saves
}

// shut keeps pods off the candidates, or lets them come again to those that do not go.
func (f *further) shut(group []int, is bool) {
	for _, c := range group {
		if is || !f.gone[c] {
			f.board.shut(f.p.candidates[c].node.Name, is)
		}
	}
}

// overflow is how much of the candidate's pods finds no place on other nodes; all of it if it may not go.
func (f *further) overflow(c int) float64 {
	n := f.p.candidates[c].node
	if f.stays(c) || f.room(n.Pool) < 1 {
		return 1
	}
	f.board.shut(n.Name, true)
	defer f.board.shut(n.Name, false)
	return f.board.overflow(n.Pods)
}

// fitting is after how many of the first of the order the others have no room left, if they had it all in one piece.
func (f *further) fitting(order []int) int {
	var free resources.Amounts
	for i := range f.board.seats {
		if s := &f.board.seats[i]; !s.shut && !s.bought {
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
func (f *further) halve(c int) bool {
	if f.stays(c) || f.room(f.p.candidates[c].node.Pool) < 1 {
		return false
	}
	was, moves := f.clone(), len(f.moves)
	f.shut([]int{c}, true)
	room := f.worthOfRoom()
	f.shut([]int{c}, false)
	if !f.leastEased(c) {
		return false
	}
	if room-f.worthOfRoom() > f.moves[moves].Saving {
		*f = was
		return false
	}
	return true
}

// leastEased lets the candidate go by a plan that leaves as little free on other nodes as may be. It reports whether there is one.
func (f *further) leastEased(c int) bool {
	group := []int{c}
	if f.try(group, ease{}) > 0 {
		return true
	}
	at, least := int64(50), int64(0)
	for _, step := range []int64{25, 12, 6, 3} {
		was := f.clone()
		if f.try(group, ease{at, looser}) == 0 {
			at += step
			continue
		}
		*f = was
		least, at = at, at-step
	}
	return f.try(group, ease{at, looser}) > 0 || least > 0 && f.try(group, ease{least, looser}) > 0
}

// worthOfRoom is what is free on nodes that are open is worth, if all is bought as it should be: nothing where room is not scarce. Of a node it is
// as much as pods could use that ask for what the node has. Pods of another kind take more than their share of one thing, and leave what
// nobody can use of the other.
func (f *further) worthOfRoom() catalog.Price {
	if !f.s.thrifty {
		return 0
	}
	sum := 0.0
	for i := range f.board.seats {
		sum += f.worthOfSeat(&f.board.seats[i])
	}
	return catalog.Price(sum)
}

func (f *further) worthOfSeat(of *seat) float64 {
	c, known := f.p.byNode[of.name]
	if !known || of.shut {
		return 0
	}
	free := min(shareOf(of.free.CPU, of.all.CPU), shareOf(of.free.Memory, of.all.Memory))
	return max(free, 0) * float64(f.p.candidates[c].Price) * shareOf(int64(f.s.target), int64(f.p.price))
}

package consolidation

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

// How far more looks.
const (
	firstGroupSize     = 8      // nodes that are tried together at first
	largestGroupSize   = 64     // and at most
	maxExtensionPlans  = 96     // plans that are made for a bar until sift ends
	minExtensionPlans  = 32     // and where there are many nodes, as each plan takes longer then
	extensionPlanNodes = 64_000 // nodes, counted once for each plan, between the two
)

// further is what goes beyond the best trial: nodes that are tried on top of it, in small groups.
type extension struct {
	s             *search
	p             *problem
	seq           *sequence
	base          attempt // what it goes beyond
	sim           *simulation
	removed       []bool          // by candidate
	removedByPool map[string]int  // by pool: nodes that go
	receiving     map[string]bool // nodes that stay because pods come to them
	moves         []Move
}

// more returns moves that are worth making beside those of the best trial, of nodes that were not in it.
func (s *search) extend(best attempt, order []int) []Move {
	f := s.newExtension(best, s.p.withinLimits(order))
	if f == nil {
		return nil
	}
	if !s.scarce {
		f.removeOntoOthers(order)
	}
	if s.isLowest() {
		f.trySmallGroups(order)
	}
	f.replaceBundles(order)
	f.confirm(best.moves)
	return f.result()
}

// mostAlone is how many nodes filled looks at one by one, where no more may go.
const maxSingleBundles = 8

// filled returns moves where there are no others, of nodes whose pods all fit onto one cheaper machine. What was found before, and then was not
// made, had kept those nodes from going to which its pods were to come. Where few may go, and would share machines with more, they are planned for
// one by one.
func (s *search) replaceBundled(order []int) []Move {
	s.order = smallFirst
	may := s.p.withinLimits(order)
	f := s.newExtension(attempt{}, may)
	f.replaceBundles(order)
	for i := 0; i < len(order) && i < maxSingleBundles && len(may) <= maxSingleBundles && len(f.moves) == 0; i++ {
		if t := f.planBundled(order[i : i+1]); t != nil {
			f.acceptBest(*t)
		}
	}
	f.confirm(nil)
	return f.result()
}

// confirm keeps the moves of which kube-scheduler finds all places when those who may go and do not are there to take pods, too: until
// now they were out of the way. A move that only seems to come to its end would be begun and undone for ever.
func (f *extension) confirm(before []Move) {
	b := newSimulation(f.p.in.Snapshot.Nodes, f.s.order, func(i int) bool {
		c, ok := f.p.byNode[f.p.in.Snapshot.Nodes[i].Name]
		return ok && f.removed[c]
	})
	f.p.reservePending(b)
	for i := range before {
		f.p.schedule(b, &before[i])
	}
	f.moves = slices.DeleteFunc(f.moves, func(m Move) bool { return !f.p.schedule(b, &m) })
}

// sift tries small groups of nodes, in their order. Groups that come to nothing are made smaller, down to one node: what many nodes
// together buy is packed so tightly that kube-scheduler may not manage.
func (f *extension) trySmallGroups(order []int) {
	size := firstGroupSize
	for len(order) > 0 && f.s.plans-f.s.plansBefore < f.s.extensionPlans() {
		var group []int
		group, order = f.nextGroup(order, size)
		if len(group) == 0 {
			break
		}
		switch went := f.try(group, headroom{}); {
		case went == len(group):
			size = min(2*size, largestGroupSize)
		case went == 0 && len(group) > 1:
			size = max(len(group)/4, 1)
			order = append(group, order...)
		}
	}
}

// trials is how many plans are made for a bar until sift ends.
func (s *search) extensionPlans() int {
	return s.p.planLimit(extensionPlanNodes, minExtensionPlans, maxExtensionPlans)
}

// perNode is how many plans are made where that many nodes may be looked at in all, between few and most.
func (p *problem) planLimit(nodes, few, most int) int {
	return min(max(nodes/len(p.candidates), few), most)
}

// together returns the moves, or as many of the first as are right beside those of the best trial, and each other. Each group was, for
// what came before it; but machines that may come up in any zone can be where others count on nobody.
func (f *extension) result() []Move { return f.s.verified(f.base, f.moves) }

// proven returns the moves, or as many of the first as the checker accepts when all of them are made beside the trial.
func (s *search) verified(base attempt, moves []Move) []Move {
	for ; len(moves) > 0; moves = moves[:len(moves)/2] {
		gone, plan := slices.Clone(base.removed), base.plan
		plan.Machines, plan.Placements = slices.Clone(plan.Machines), slices.Clone(plan.Placements)
		for i := range moves {
			for _, name := range moves[i].Nodes {
				gone[s.p.byNode[name]] = true
			}
			plan.Placements = append(plan.Placements, moves[i].Placements...)
			plan.Machines = append(plan.Machines, moves[i].Machines...)
			plan.Price += priceOf(moves[i].Machines)
		}
		for i := range plan.Machines { // each group's plan has counted from one
			plan.Machines[i].Name = fmt.Sprint("~", i)
		}
		if len(verify.Check(s.snapshotWithout(gone), s.p.in.Market, plan)) == 0 {
			return moves
		}
	}
	return nil
}

// furtherTo starts where the best trial ends. It is nil if kube-scheduler would need the nodes that may go for that.
func (s *search) newExtension(best attempt, may []int) *extension {
	f := &extension{s: s, p: s.p, seq: newSequence(s, may), removedByPool: map[string]int{}, receiving: map[string]bool{}}
	base := attempt{removed: make([]bool, len(s.p.candidates)), plan: s.p.pendingPlan}
	for i := range best.moves {
		for _, name := range best.moves[i].Nodes {
			c := s.p.byNode[name]
			base.removed[c] = true
			f.removedByPool[s.p.candidates[c].node.Pool]++
		}
	}
	closed := make([]bool, len(s.p.candidates))
	for _, c := range may {
		closed[c] = true
	}
	f.sim = newSimulation(s.p.in.Snapshot.Nodes, s.order, func(i int) bool {
		c, ok := s.p.byNode[s.p.in.Snapshot.Nodes[i].Name]
		return ok && (closed[c] || base.removed[c])
	})
	s.p.reservePending(f.sim)
	for i := range best.moves {
		if !s.p.schedule(f.sim, &best.moves[i]) {
			return nil
		}
	}
	if len(best.moves) > 0 {
		base.plan = s.p.restrict(best, base.removed)
	}
	for _, p := range append(base.plan.Placements, s.p.pendingPlan.Placements...) {
		f.receiving[p.Node] = true
	}
	f.base, f.removed = base, slices.Clone(base.removed)
	f.seq.start(base)
	return f
}

// next takes so many nodes from the order as may still go, and returns what is left of it.
func (f *extension) nextGroup(order []int, size int) (group, rest []int) {
	room := map[string]int{}
	for len(order) > 0 && len(group) < size {
		c := order[0]
		pool := f.p.candidates[c].node.Pool
		order = order[1:]
		if f.mustStay(c) || room[pool] >= f.removalsLeft(pool) {
			continue
		}
		room[pool]++
		group = append(group, c)
	}
	return group, order
}

// try lets the group go as far as it is worth it and its pods find their places, and returns how many nodes went. What is left of
// a plan when some of its nodes stay must still be right by itself, as pods stay with them: if it is not, nobody goes.
func (f *extension) try(group []int, e headroom) int {
	t := attempt{removed: f.p.prefix(group, len(group))}
	snapshot := f.seq.snapshotWith(t.removed)
	e.inflateRequests(&snapshot)
	t.plan = f.s.solve(snapshot)
	e.restoreRequests(&t.plan, f.seq.podByID)
	stuck := f.p.unplaceable(t.plan)
	was := f.sim.clone()
	for _, c := range group {
		f.sim.cordon(f.p.candidates[c].node.Name, true)
	}
	kept, stay := make([]bool, len(f.p.candidates)), slices.Clone(group)
	for _, m := range f.p.splitIntoMoves(t) {
		if _, ok := f.s.evaluate(&m, stuck); !ok || !f.p.schedule(f.sim, &m) {
			continue
		}
		t.moves = append(t.moves, m)
		for _, name := range m.Nodes {
			kept[f.p.byNode[name]] = true
		}
	}
	stay = slices.DeleteFunc(stay, func(c int) bool { return kept[c] })
	rest := f.p.restrict(t, kept)
	if len(t.moves) == 0 || len(stay) > 0 && len(verify.Check(f.seq.snapshotWith(kept), f.p.in.Market, rest)) > 0 {
		f.sim = was
		return 0
	}
	for _, c := range stay {
		f.sim.cordon(f.p.candidates[c].node.Name, false)
	}
	f.seq.apply(attempt{removed: kept, plan: rest})
	for i := range t.moves {
		f.accept(&t.moves[i])
	}
	return len(group) - len(stay)
}

// clone is as f is now, to go on with if what is tried next comes to nothing.
func (f *extension) clone() extension {
	out, r := *f, *f.seq
	r.now.Nodes, r.now.Pools, r.nodes = slices.Clone(r.now.Nodes), slices.Clone(r.now.Pools), maps.Clone(r.nodes)
	out.seq, out.sim, out.moves = &r, f.sim.clone(), slices.Clone(f.moves)
	out.removed, out.removedByPool, out.receiving = slices.Clone(f.removed), maps.Clone(f.removedByPool), maps.Clone(f.receiving)
	return out
}

// keep adds the move to those that are made.
func (f *extension) accept(m *Move) {
	f.moves = append(f.moves, *m)
	for _, name := range m.Nodes {
		c := f.p.byNode[name]
		f.removed[c] = true
		f.removedByPool[f.p.candidates[c].node.Pool]++
	}
	for _, p := range m.Placements {
		f.receiving[p.Node] = true
	}
}

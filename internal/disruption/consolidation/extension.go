package consolidation

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

const (
	firstGroupSize     = 8      // number of nodes of the first group
	largestGroupSize   = 64     // maximum number of nodes of a group
	maxExtensionPlans  = 96     // plan limit per threshold if there are few candidates
	minExtensionPlans  = 32     // plan limit per threshold if there are many candidates
	extensionPlanNodes = 64_000 // plan limit × candidates, unless the minimum or maximum applies (see planLimit)
)

// extension adds moves to an attempt: it removes further nodes in groups.
type extension struct {
	s    *search
	p    *problem
	seq  *sequence   // the cluster after the moves so far
	base attempt     // the attempt that is extended
	sim  *simulation // the simulation of kube-scheduler, after the moves so far

	removed       []bool          // by candidate
	removedByPool map[string]int  // number of removed nodes by pool
	receiving     map[string]bool // nodes that stay because pods are moved to them
	moves         []Move          // the added moves
}

// newExtension starts with the moves of the attempt. Candidates in removable get no pods, because the extension may
// remove these candidates. Other candidates get pods until they are removed. newExtension returns nil if a pod of the
// moves is unschedulable without the candidates in removable.
func (s *search) newExtension(best attempt, removable []int) *extension {
	x := &extension{s: s, p: s.p, seq: newSequence(s, removable), removedByPool: map[string]int{}, receiving: map[string]bool{}}
	base := attempt{removed: make([]bool, len(s.p.candidates)), plan: s.p.pendingPlan}
	for i := range best.moves {
		for _, name := range best.moves[i].Nodes {
			c := s.p.byNode[name]
			base.removed[c] = true
			x.removedByPool[s.p.candidates[c].node.Pool]++
		}
	}
	excluded := make([]bool, len(s.p.candidates))
	for _, c := range removable {
		excluded[c] = true
	}
	x.sim = newSimulation(s.p.kinds, s.arrivalOrder, func(i int) nodeRole {
		c, ok := s.p.byNode[s.p.in.Snapshot.Nodes[i].Name]
		if ok && excluded[c] && !base.removed[c] {
			return full
		}
		return roleOf(ok && base.removed[c])
	})
	s.p.reservePending(x.sim)
	for i := range best.moves {
		if !s.p.schedule(x.sim, &best.moves[i]) {
			return nil
		}
	}
	if len(best.moves) > 0 {
		base.plan = s.p.restrict(best, base.removed)
	}
	for _, p := range append(base.plan.Placements, s.p.pendingPlan.Placements...) {
		x.receiving[p.Node] = true
	}
	x.base, x.removed = base, slices.Clone(base.removed)
	x.seq.start(base)
	return x
}

// extend returns moves that are worth it in addition to the moves of the attempt. They remove other nodes than the
// attempt.
func (s *search) extend(best attempt, order []int) []Move {
	x := s.newExtension(best, s.p.withinLimits(order))
	if x == nil {
		return nil
	}
	if !s.scarce { // scarce room is kept for the nodes that save most: see isScarce
		x.removeOntoOthers(order)
	}
	if s.isLowest() {
		x.trySmallGroups(order)
	}
	x.replaceBundles(order)
	x.confirm(best.moves)
	return x.result()
}

// trySmallGroups tries groups of nodes in the order of the candidates. After a group that is removed as a whole, the
// next group is twice as large. If no node of a group can be removed, the next group is its first quarter, at least one
// node. A plan for many nodes is packed so tightly that kube-scheduler may not find a node for each pod.
func (x *extension) trySmallGroups(order []int) {
	size := firstGroupSize
	for len(order) > 0 && x.s.plans-x.s.plansBefore < x.s.extensionPlans() {
		var group []int
		group, order = x.nextGroup(order, size)
		if len(group) == 0 {
			break
		}
		switch removed := x.try(group, headroom{}); {
		case removed == len(group):
			size = min(2*size, largestGroupSize)
		case removed == 0 && len(group) > 1:
			size = max(len(group)/4, 1)
			order = append(group, order...)
		}
	}
}

func (s *search) extensionPlans() int {
	return s.p.planLimit(extensionPlanNodes, minExtensionPlans, maxExtensionPlans)
}

// nextGroup splits the order: it returns the first nodes that may still be removed, at most size, and the rest of the
// order.
func (x *extension) nextGroup(order []int, size int) (group, rest []int) {
	taken := map[string]int{} // by pool
	for len(order) > 0 && len(group) < size {
		c := order[0]
		pool := x.p.candidates[c].node.Pool
		order = order[1:]
		if x.isTaken(c) || taken[pool] >= x.removalsLeft(pool) {
			continue
		}
		taken[pool]++
		group = append(group, c)
	}
	return group, order
}

// try plans the removal of the group, with spare room, and accepts the moves that are worth it and whose pods are
// schedulable. It returns the number of removed nodes. If some nodes of the group stay, their pods stay too, so verify
// must accept the plan of the removed nodes alone. If verify does not accept that plan, no node is removed.
func (x *extension) try(group []int, spare headroom) int {
	t := attempt{removed: x.p.prefix(group, len(group))}
	snapshot := x.seq.snapshotWith(t.removed)
	spare.inflateRequests(&snapshot)
	t.plan = x.s.solve(snapshot)
	spare.restoreRequests(&t.plan, x.seq.podByID)
	stuck := x.p.unplaceable(t.plan)
	before := x.sim.clone()
	for _, c := range group {
		x.sim.cordon(x.p.candidates[c].node.Name, true)
	}
	accepted, stay := make([]bool, len(x.p.candidates)), slices.Clone(group)
	for _, m := range x.p.splitIntoMoves(t) {
		if _, ok := x.s.evaluate(&m, stuck); !ok || !x.p.schedule(x.sim, &m) {
			continue
		}
		t.moves = append(t.moves, m)
		for _, name := range m.Nodes {
			accepted[x.p.byNode[name]] = true
		}
	}
	stay = slices.DeleteFunc(stay, func(c int) bool { return accepted[c] })
	rest := x.p.restrict(t, accepted)
	if len(t.moves) == 0 || len(stay) > 0 && len(verify.Check(x.seq.snapshotWith(accepted), x.p.in.Market, rest)) > 0 {
		x.sim = before
		return 0
	}
	for _, c := range stay {
		x.sim.cordon(x.p.candidates[c].node.Name, false)
	}
	x.seq.apply(attempt{removed: accepted, plan: rest})
	for i := range t.moves {
		x.accept(&t.moves[i])
	}
	return len(group) - len(stay)
}

func (x *extension) clone() extension {
	out, seq := *x, *x.seq
	seq.current.Nodes, seq.current.Pools, seq.nodes = slices.Clone(seq.current.Nodes), slices.Clone(seq.current.Pools), maps.Clone(seq.nodes)
	out.seq, out.sim, out.moves = &seq, x.sim.clone(), slices.Clone(x.moves)
	out.removed, out.removedByPool, out.receiving = slices.Clone(x.removed), maps.Clone(x.removedByPool), maps.Clone(x.receiving)
	return out
}

func (x *extension) accept(m *Move) {
	x.moves = append(x.moves, *m)
	for _, name := range m.Nodes {
		c := x.p.byNode[name]
		x.removed[c] = true
		x.removedByPool[x.p.candidates[c].node.Pool]++
	}
	for _, p := range m.Placements {
		x.receiving[p.Node] = true
	}
}

// acceptBest accepts the moves of the attempt that are worth it, schedulable and within the removal limits of their
// pools. It accepts the best moves first (see bySavingPerCost).
func (x *extension) acceptBest(t attempt) {
	stuck := x.p.unplaceable(t.plan)
	moves := x.p.splitIntoMoves(t)
	slices.SortFunc(moves, bySavingPerCost)
	for i := range moves {
		m := &moves[i]
		if _, ok := x.s.evaluate(m, stuck); ok && x.mayRemove(m.Nodes) && x.scheduleElsewhere(m) {
			x.accept(m)
		}
	}
}

// isTaken reports whether no further move can remove the candidate: it is removed already, or pods are moved to it.
func (x *extension) isTaken(c int) bool {
	n := x.p.candidates[c].node
	return x.removed[c] || x.receiving[n.Name] || x.sim.hasNewPods(n.Name)
}

// removalsLeft returns how many more nodes of the pool may be removed.
func (x *extension) removalsLeft(pool string) int {
	if limit, isLimited := x.p.in.MaxRemovals[pool]; isLimited {
		return limit - x.removedByPool[pool]
	}
	return len(x.p.candidates)
}

// mayRemove reports whether the nodes may be removed together, in addition to those removed so far.
func (x *extension) mayRemove(nodes []string) bool {
	need := map[string]int{}
	for _, name := range nodes {
		c := x.p.byNode[name]
		pool := x.p.candidates[c].node.Pool
		need[pool]++
		if x.isTaken(c) || need[pool] > x.removalsLeft(pool) {
			return false
		}
	}
	return true
}

// scheduleElsewhere cordons the move's nodes and schedules their pods on other nodes. It reports whether each pod was
// scheduled. If not, it uncordons the nodes.
func (x *extension) scheduleElsewhere(m *Move) bool {
	for _, name := range m.Nodes {
		x.sim.cordon(name, true)
	}
	ok := x.p.schedule(x.sim, m)
	for _, name := range m.Nodes {
		x.sim.cordon(name, ok)
	}
	return ok
}

// cordon cordons the candidates in the simulation, or uncordons those that are not removed.
func (x *extension) cordon(group []int, cordoned bool) {
	for _, c := range group {
		if cordoned || !x.removed[c] {
			x.sim.cordon(x.p.candidates[c].node.Name, cordoned)
		}
	}
}

// confirm repeats the simulation of kube-scheduler so that all candidates that stay accept pods; x.sim excludes some of
// these candidates. confirm drops the added moves whose pods are not schedulable in the new simulation. A move that
// cannot be completed would be started and undone again and again. baseMoves are the moves of the attempt.
func (x *extension) confirm(baseMoves []Move) {
	sim := newSimulation(x.p.kinds, x.s.arrivalOrder, func(i int) nodeRole {
		c, ok := x.p.byNode[x.p.in.Snapshot.Nodes[i].Name]
		return roleOf(ok && x.removed[c])
	})
	x.p.reservePending(sim)
	for i := range baseMoves {
		x.p.schedule(sim, &baseMoves[i])
	}
	x.moves = slices.DeleteFunc(x.moves, func(m Move) bool { return !x.p.schedule(sim, &m) })
}

// result returns the added moves. If verify does not accept the added moves together with the moves of the attempt,
// result returns fewer of them (verifiedPrefix). Although each group was valid after the groups before it, a planned
// node that may launch in any zone can break a spread constraint of another move.
func (x *extension) result() []Move { return x.s.verifiedPrefix(x.base, x.moves) }

// verifiedPrefix tries all moves, then the first half of them, the first quarter and so on. It returns the first of
// these lists that verify accepts when all of its moves are made together with the attempt; nil if verify accepts none.
func (s *search) verifiedPrefix(base attempt, moves []Move) []Move {
	for ; len(moves) > 0; moves = moves[:len(moves)/2] {
		gone, plan := slices.Clone(base.removed), base.plan
		plan.PlannedNodes, plan.Placements = slices.Clone(plan.PlannedNodes), slices.Clone(plan.Placements)
		for i := range moves {
			for _, name := range moves[i].Nodes {
				gone[s.p.byNode[name]] = true
			}
			plan.Placements = append(plan.Placements, moves[i].Placements...)
			plan.PlannedNodes = append(plan.PlannedNodes, moves[i].PlannedNodes...)
			plan.Price += priceOf(moves[i].PlannedNodes)
		}
		for i := range plan.PlannedNodes { // each plan numbers its nodes from one
			plan.PlannedNodes[i].Name = fmt.Sprint("~", i)
		}
		if len(verify.Check(s.snapshotWithout(gone), s.p.in.Market, plan)) == 0 {
			return moves
		}
	}
	return nil
}

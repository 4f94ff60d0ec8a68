package consolidation

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// fill adds moves as long as more nodes may go: nodes whose pods fit, all together, onto a cheaper machine or a node that stays. All nodes
// are planned for at once, so that the best can be chosen, and none is held up by others. The pods of several may share a machine.
func (f *extension) replaceBundles(order []int) {
	t := f.s.bundled
	if t == nil || slices.Contains(f.removed, true) {
		if t = f.planBundled(order); t == nil {
			return
		}
	}
	if !slices.Contains(f.removed, true) {
		f.s.bundled = t // it is the same, whatever the bar
	}
	f.acceptBest(*t)
}

// pick adds the best moves of the trial, as many as may go.
func (f *extension) acceptBest(t attempt) {
	stuck := f.p.unplaceable(t.plan)
	moves := f.p.splitIntoMoves(t)
	slices.SortFunc(moves, byWorth)
	for i := range moves {
		m := &moves[i]
		if _, ok := f.s.evaluate(m, stuck); ok && f.mayRemove(m.Nodes) && f.scheduleElsewhere(m) {
			f.accept(m)
		}
	}
}

// tie plans for all nodes that may go, the pods of each as one; nil if there are none.
func (f *extension) planBundled(order []int) *attempt {
	tied := newBundles(f.s)
	t := attempt{removed: make([]bool, len(f.p.candidates))}
	var pods []cluster.Pod
	for _, c := range order {
		if f.mustStay(c) || f.removalsLeft(f.p.candidates[c].node.Pool) < 1 {
			continue
		}
		if pod, ok := tied.bundle(c, f.p.candidates[c].node); ok {
			t.removed[c] = true
			pods = append(pods, pod)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	slices.SortFunc(pods, byID)
	snapshot := f.seq.snapshotWith(t.removed)
	snapshot.Pods = pods
	t.plan = f.s.solve(snapshot)
	tied.unbundle(&t.plan, f.p.candidates)
	return &t
}

// stays reports whether the candidate may not go any more: it goes already, or pods come to it.
func (f *extension) mustStay(c int) bool {
	n := f.p.candidates[c].node
	return f.removed[c] || f.receiving[n.Name] || f.sim.hasNewPods(n.Name)
}

// room is how many nodes of the pool may go beside those that do.
func (f *extension) removalsLeft(pool string) int {
	if left, bound := f.p.in.MaxRemovals[pool]; bound {
		return left - f.removedByPool[pool]
	}
	return len(f.p.candidates)
}

// mayGo reports whether those nodes may go together.
func (f *extension) mayRemove(nodes []string) bool {
	need := map[string]int{}
	for _, name := range nodes {
		c := f.p.byNode[name]
		pool := f.p.candidates[c].node.Pool
		need[pool]++
		if f.mustStay(c) || need[pool] > f.removalsLeft(pool) {
			return false
		}
	}
	return true
}

// closeAndSeat puts the move's pods on the board, but not onto the nodes that they come from.
func (f *extension) scheduleElsewhere(m *Move) bool {
	for _, name := range m.Nodes {
		f.sim.cordon(name, true)
	}
	ok := f.p.schedule(f.sim, m)
	for _, name := range m.Nodes {
		f.sim.cordon(name, ok)
	}
	return ok
}

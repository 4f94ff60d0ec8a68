package consolidation

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// fill adds moves as long as more nodes may go: nodes whose pods fit, all together, onto a cheaper machine or a node that stays. All nodes
// are planned for at once, so that the best can be chosen, and none is held up by others. The pods of several may share a machine.
func (f *further) fill(order []int) {
	t := f.s.tied
	if t == nil || slices.Contains(f.gone, true) {
		if t = f.tie(order); t == nil {
			return
		}
	}
	if !slices.Contains(f.gone, true) {
		f.s.tied = t // it is the same, whatever the bar
	}
	f.pick(*t)
}

// pick adds the best moves of the trial, as many as may go.
func (f *further) pick(t trial) {
	stuck := f.p.stuck(t.plan)
	moves := f.p.fallApart(t)
	slices.SortFunc(moves, byWorth)
	for i := range moves {
		m := &moves[i]
		if _, ok := f.s.weigh(m, stuck); ok && f.mayGo(m.Nodes) && f.closeAndSeat(m) {
			f.keep(m)
		}
	}
}

// tie plans for all nodes that may go, the pods of each as one; nil if there are none.
func (f *further) tie(order []int) *trial {
	tied := newBundles(f.s)
	t := trial{gone: make([]bool, len(f.p.candidates))}
	var pods []cluster.Pod
	for _, c := range order {
		if f.stays(c) || f.room(f.p.candidates[c].node.Pool) < 1 {
			continue
		}
		if pod, ok := tied.tie(c, f.p.candidates[c].node); ok {
			t.gone[c] = true
			pods = append(pods, pod)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	slices.SortFunc(pods, byID)
	snapshot := f.relay.with(t.gone)
	snapshot.Pods = pods
	t.plan = f.s.solve(snapshot)
	tied.untie(&t.plan, f.p.candidates)
	return &t
}

// stays reports whether the candidate may not go any more: it goes already, or pods come to it.
func (f *further) stays(c int) bool {
	n := f.p.candidates[c].node
	return f.gone[c] || f.used[n.Name] || f.board.isUsed(n.Name)
}

// room is how many nodes of the pool may go beside those that do.
func (f *further) room(pool string) int {
	if left, bound := f.p.in.Rooms[pool]; bound {
		return left - f.taken[pool]
	}
	return len(f.p.candidates)
}

// mayGo reports whether those nodes may go together.
func (f *further) mayGo(nodes []string) bool {
	need := map[string]int{}
	for _, name := range nodes {
		c := f.p.byNode[name]
		pool := f.p.candidates[c].node.Pool
		need[pool]++
		if f.stays(c) || need[pool] > f.room(pool) {
			return false
		}
	}
	return true
}

// closeAndSeat puts the move's pods on the board, but not onto the nodes that they come from.
func (f *further) closeAndSeat(m *Move) bool {
	for _, name := range m.Nodes {
		f.board.shut(name, true)
	}
	ok := f.p.seat(f.board, m)
	for _, name := range m.Nodes {
		f.board.shut(name, ok)
	}
	return ok
}

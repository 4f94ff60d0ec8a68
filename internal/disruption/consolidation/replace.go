package consolidation

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// parts is into how many plans nodes that must go are shared out: up to so many each have one of their own, and are one
// move each; of more, some are planned together, so that the work does not grow with them.
const replacePlans = 16

// Stuck is a node that must be removed and cannot, because of a pod.
type Stuck struct {
	Node    string
	Pods    int             // pods that do not fit
	Refusal packing.Refusal // of the first of these pods
}

// Replace returns moves that remove the nodes at any price. It ignores rules, prices and Input.Nodes, except for the prices and costs there.
// Each node is a move of its own. With more than 16 nodes, some may share a planned node and are one move. Pods go to nodes that stay if they
// fit there, and never to another of the nodes. Planned nodes keep all offerings that hold their pods, and pending pods keep the places that
// they would have.
//
// Nodes with a pod that does not fit stay and are in Result.Stuck. Names are ignored if the node does not exist, has no NodeClaim, is not
// initialized or is terminating. Moves are in the order of their first nodes; Saving may be negative.
func Replace(in Input, nodes []string) Result {
	goes := make(map[string]Candidate, len(nodes))
	for _, name := range nodes {
		goes[name] = in.Nodes[name]
	}
	in.Nodes = goes
	s := newSearch(in)
	out := Result{Price: s.p.price}
	if len(s.p.candidates) > 0 {
		all := make([]int, len(s.p.candidates))
		for i := range all {
			all[i] = i
		}
		r := newSequence(s, all)
		waiting := attempt{removed: make([]bool, len(all))}
		if len(in.Snapshot.Pods) > 0 {
			waiting.plan = s.solve(r.now)
		}
		r.start(waiting)
		for group := range slices.Chunk(all, (len(all)+replacePlans-1)/replacePlans) {
			moves, stuck := r.removeGroup(group)
			out.Moves, out.Stuck = append(out.Moves, moves...), append(out.Stuck, stuck...)
		}
	}
	slices.SortFunc(out.Moves, func(a, b Move) int { return slices.Compare(a.Nodes, b.Nodes) })
	slices.SortFunc(out.Stuck, func(a, b Stuck) int { return cmp.Compare(a.Node, b.Node) })
	nameNodes(out.Moves)
	for i := range out.Moves {
		out.Saving += out.Moves[i].Saving
		out.Target += priceOf(out.Moves[i].Machines)
	}
	out.Plans = s.plans
	return out
}

// number gives planned nodes unique names, because each plan numbers its own from one.
func nameNodes(moves []Move) {
	count := map[string]int{}
	for i := range moves {
		for n := range moves[i].Machines {
			m := &moves[i].Machines[n]
			count[m.Pool]++
			m.Name = fmt.Sprintf("%s-%d", m.Pool, count[m.Pool])
		}
	}
}

// leave lets those candidates go, on top of who went before.
func (r *sequence) removeGroup(group []int) ([]Move, []Stuck) {
	var stuck []Stuck
	for len(group) > 0 {
		t := attempt{removed: make([]bool, len(r.p.candidates))}
		for _, c := range group {
			t.removed[c] = true
		}
		t.plan = r.s.solve(r.snapshotWith(t.removed))
		left := r.stuckNodes(t.plan)
		if len(left) == 0 {
			r.apply(t)
			return r.p.splitIntoMoves(t), stuck
		}
		stuck = append(stuck, left...)
		group = slices.DeleteFunc(slices.Clone(group), func(c int) bool {
			return slices.ContainsFunc(left, func(s Stuck) bool { return s.Node == r.p.candidates[c].node.Name })
		})
	}
	return nil, stuck
}

// stay returns the candidates of which the plan refuses a pod.
func (r *sequence) stuckNodes(plan packing.Plan) []Stuck {
	var out []Stuck
	at := map[int]int{} // index into out, by candidate
	for _, refusal := range plan.Refusals {
		c, ok := r.p.byPod[refusal.Pod]
		if !ok {
			continue
		}
		i, known := at[c]
		if !known {
			i = len(out)
			at[c], out = i, append(out, Stuck{Node: r.p.candidates[c].node.Name, Refusal: refusal})
		}
		out[i].Pods++
	}
	return out
}

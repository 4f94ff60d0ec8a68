package consolidation

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// maxReplaceGroups is the maximum number of groups that Replace plans. Up to this number of nodes, each node is a
// group: it has its own plan and move. With more nodes, a group has several nodes, so that the number of plans does not
// grow.
const maxReplaceGroups = 16

// Stuck is a node that must be removed but cannot be, because of a pod.
type Stuck struct {
	Node    string          // name of the cluster.Node
	Pods    int             // number of pods that do not fit
	Refusal packing.Refusal // of the first of these pods
}

// Replace returns moves that remove the nodes at any price. It ignores rules. nodes are the candidates; of Input.Nodes,
// Replace uses only their prices and costs. Each node is a move of its own. With more than maxReplaceGroups nodes, some
// may share a planned node and form one move. Pods go to nodes that stay, if they fit there, and never to another
// removed node. Planned nodes keep all offerings that hold their pods, and pending pods keep their planned places.
//
// Nodes with a pod that does not fit stay and are in Result.Stuck. Replace ignores a name if the node does not exist,
// has no NodeClaim, is not initialized or is terminating. Moves are in the order of their first nodes. Saving may be
// negative.
func Replace(in Input, nodes []string) Result {
	replaced := make(map[string]Candidate, len(nodes))
	for _, name := range nodes {
		replaced[name] = in.Nodes[name]
	}
	in.Nodes = replaced
	s := newSearch(in)
	out := Result{Price: s.p.price}
	if len(s.p.candidates) > 0 {
		all := make([]int, len(s.p.candidates))
		for i := range all {
			all[i] = i
		}
		seq := newSequence(s, all)
		pending := attempt{removed: make([]bool, len(all))}
		if len(in.Snapshot.Pods) > 0 {
			pending.plan = s.solve(seq.current)
		}
		seq.start(pending)
		for group := range slices.Chunk(all, (len(all)+maxReplaceGroups-1)/maxReplaceGroups) {
			moves, stuck := seq.removeGroup(group)
			out.Moves, out.Stuck = append(out.Moves, moves...), append(out.Stuck, stuck...)
		}
	}
	slices.SortFunc(out.Moves, func(a, b Move) int { return slices.Compare(a.Nodes, b.Nodes) })
	slices.SortFunc(out.Stuck, func(a, b Stuck) int { return cmp.Compare(a.Node, b.Node) })
	nameNodes(out.Moves)
	for i := range out.Moves {
		out.Saving += out.Moves[i].Saving
		out.Target += priceOf(out.Moves[i].PlannedNodes)
	}
	out.Plans = s.plans
	return out
}

// nameNodes gives planned nodes unique names, because each plan starts numbering its nodes at one.
func nameNodes(moves []Move) {
	count := map[string]int{}
	for i := range moves {
		for n := range moves[i].PlannedNodes {
			m := &moves[i].PlannedNodes[n]
			count[m.Pool]++
			m.Name = fmt.Sprintf("%s-%d", m.Pool, count[m.Pool])
		}
	}
}

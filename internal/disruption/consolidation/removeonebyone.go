package consolidation

import (
	"strings"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// removeOneByOne removes one group of up to three nodes whose pods are schedulable only in a certain order. Each pod is
// evicted after the previous one is scheduled. The result has only this move, because pods of other moves would take
// the room of its pods.
func removeOneByOne(s *search, order []int) []Move {
	if s.scarce || !s.p.isSettled() || !s.isLowest() || !s.p.in.LowChurn || !s.p.in.OneAtATime {
		return nil
	}
	s.arrivalOrder = oneAtATime
	x := s.newExtension(attempt{}, nil)
	x.tryNodeGroups(order)
	if len(x.moves) > 1 {
		// The group is split into several moves. Only the nodes of the first move are removed; the other nodes take
		// pods.
		x.moves = x.moves[:1]
		x.removed = make([]bool, len(s.p.candidates))
		for _, name := range x.moves[0].Nodes {
			x.removed[s.p.byNode[name]] = true
		}
	}
	x.confirm(nil)
	return x.result()
}

// systemCritical is the priority of system-node-critical and system-cluster-critical pods. The priorities of users' own
// classes are at most half of this value.
const systemCritical = 2_000_000_000

// isEvictedInSequence reports whether the pod can be evicted in a given order. A ReplicaSet replaces an evicted pod at
// once, and a pod without a controller is not replaced. Other controllers recreate a pod only after the old pod has
// ended. Critical pods are evicted last, and pods that tolerate disruptedTaint are never evicted.
func isEvictedInSequence(p *cluster.Pod) bool {
	disrupted := requirements.Taint{Key: disruptedTaint, Effect: requirements.NoSchedule}
	return (p.Owner == "" || strings.HasPrefix(p.Owner, "ReplicaSet/")) && p.Priority < systemCritical &&
		!requirements.Tolerated(disrupted, p.Tolerations)
}

const disruptedTaint = "karpenter.sh/disrupted"

package snapshot

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// snapshot returns the cluster at the time now. late are the NodeClaims that the API server has although no informer
// event has reported them yet.
func (s *state) snapshot(now time.Time, market catalog.Market, late []*karpv1.NodeClaim) cluster.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes.setMarket(market)
	s.view.Now = now
	s.refresh()
	s.nodes.assignSlots(late)
	s.nodes.computeWithoutPods(s.volumes.csiNodes)

	unplaced := s.placePods(s.builder())
	out := cluster.Snapshot{
		Taken:   now,
		Pools:   poolsOf(Objects{Pools: s.pools.list(), Classes: s.classes.list()}, s.view, s.nodes.views),
		Nodes:   s.nodes.list(),
		Daemons: s.nodes.daemons,
	}
	if len(unplaced) > 0 {
		out.Pods = make([]cluster.Pod, len(unplaced))
	}
	hasVolumes := false
	for i, value := range unplaced {
		out.Pods[i] = *value
		hasVolumes = hasVolumes || len(value.Volumes) > 0
	}
	if hasVolumes {
		s.dropUnshared(out.Pods)
	}
	return out
}

// placePods counts all pods on their nodes. It returns the pods that need a node, sorted by namespace and name.
func (s *state) placePods(b *builder) []*cluster.Pod {
	waiting := s.pods.waiting.sorted()
	unplaced := make([]*cluster.Pod, 0, len(waiting))
	nominated, coming := map[int][]unplacedPod{}, map[int][]unplacedPod{} // pods by index of their slot
	planned := plannedNodesAt(s.nodes.views, s.view.Now)
	// assign adds the pod to the coming pods of its planned node. It returns false if there is no such node.
	assign := func(pod unplacedPod) bool {
		i, ok := planned.of(pod.value, s.nodes.views)
		if ok {
			coming[i] = append(coming[i], pod)
		}
		return ok
	}
	var indexes map[*slot]int // the index of each slot; made on first use
	for _, p := range waiting {
		pod := unplacedPod{p.object, s.pods.valueOf(p)}
		if x := s.nominatedSlot(p.object); x != nil {
			if indexes == nil {
				indexes = slotIndexes(s.nodes.slots)
			}
			nominated[indexes[x]] = append(nominated[indexes[x]], pod)
		} else if conversion.WasTried(p.object) && !assign(pod) {
			unplaced = append(unplaced, pod.value)
		}
	}
	// Terminating nodes come first: their pods may be planned for other nodes, but no pod is planned for a terminating
	// node.
	var moving []*cluster.Pod // pods that need another node
	for _, x := range s.nodes.slots {
		if !x.withoutPods.isTerminating {
			continue
		}
		s.nodes.addPods(x, b, nil, nil)
		for _, pod := range x.leaving {
			if !assign(pod) {
				moving = append(moving, pod.value)
			}
		}
	}
	for i, x := range s.nodes.slots {
		if !x.withoutPods.isTerminating {
			s.nodes.addPods(x, b, nominated[i], coming[i])
			for _, pod := range x.withoutRoom {
				moving = append(moving, pod.value)
			}
		}
	}
	if len(moving) == 0 {
		return unplaced
	}
	slices.SortFunc(moving, byPodID)
	return merged(unplaced, moving, byPodID)
}

// nominatedSlot returns the slot of the node that kube-scheduler has nominated for the pod. It returns nil if no node
// is nominated, or if the node does not accept nominated pods.
func (s *state) nominatedSlot(pod *corev1.Pod) *slot {
	if !conversion.IsNominated(pod) {
		return nil
	}
	if x := s.nodes.byNode[pod.Status.NominatedNodeName]; x != nil && x.withoutPods.acceptsNominated() {
		return x
	}
	return nil
}

func slotIndexes(slots []*slot) map[*slot]int {
	out := make(map[*slot]int, len(slots))
	for i, x := range slots {
		out[x] = i
	}
	return out
}

// dropUnshared calls conversion.DropUnsharedVolumes for pods that need a node. The users of a volume claim are these
// pods and the pods of all slots.
func (s *state) dropUnshared(pods []cluster.Pod) {
	users := map[string]int{}
	for _, x := range s.nodes.slots {
		conversion.CountUsers(users, x.shared)
	}
	for i := range pods {
		conversion.CountUsers(users, pods[i].Volumes)
	}
	conversion.DropUnsharedVolumes(pods, users)
}

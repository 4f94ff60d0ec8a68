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

// snapshot returns the cluster as it is at now. late are claims that the server
// has and no informer event has reported yet.
func (s *state) snapshot(now time.Time, market catalog.Market, late []*karpv1.NodeClaim) cluster.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes.setMarket(market)
	s.view.Now = now
	s.refresh()
	s.nodes.pair(late)
	s.nodes.lay(s.volumes.drivers)

	homeless := s.settle(s.builder())
	out := cluster.Snapshot{
		Taken:   now,
		Pools:   poolsOf(Objects{Pools: s.pools.list(), Classes: s.classes.list()}, s.view, s.nodes.views),
		Nodes:   s.nodes.list(),
		Daemons: s.nodes.daemons,
	}
	if len(homeless) > 0 {
		out.Pods = make([]cluster.Pod, len(homeless))
	}
	anyShares := false
	for i, value := range homeless {
		out.Pods[i] = *value
		anyShares = anyShares || len(value.Volumes) > 0
	}
	if anyShares {
		s.keepShared(out.Pods)
	}
	return out
}

// settle puts all pods onto nodes, and returns those that need a place, in order.
func (s *state) settle(b *builder) []*cluster.Pod {
	waiting := s.pods.waiting.tidy()
	homeless := make([]*cluster.Pod, 0, len(waiting))
	held, coming := map[int][]mover{}, map[int][]mover{}
	planned := plannedOn(s.nodes.views, s.view.Now)
	send := func(m mover) bool {
		i, ok := planned.of(m.value, s.nodes.views)
		if ok {
			coming[i] = append(coming[i], m)
		}
		return ok
	}
	var numbers map[*slot]int // made when it is needed
	for _, p := range waiting {
		m := mover{p.object, s.pods.valueOf(p)}
		if x := s.expecting(p.object); x != nil {
			if numbers == nil {
				numbers = numbered(s.nodes.slots)
			}
			held[numbers[x]] = append(held[numbers[x]], m)
		} else if conversion.WasTried(p.object) && !send(m) {
			homeless = append(homeless, m.value)
		}
	}
	// Nodes on their way out first: where their pods go is never another such node.
	var moving []*cluster.Pod
	for _, x := range s.nodes.slots {
		if !x.bare.going {
			continue
		}
		s.nodes.fill(x, b, nil, nil)
		for _, m := range x.leaving {
			if !send(m) {
				moving = append(moving, m.value)
			}
		}
	}
	for i, x := range s.nodes.slots {
		if !x.bare.going {
			s.nodes.fill(x, b, held[i], coming[i])
			for _, m := range x.unseated {
				moving = append(moving, m.value)
			}
		}
	}
	if len(moving) == 0 {
		return homeless
	}
	slices.SortFunc(moving, byPodID)
	return merged(homeless, moving, byPodID)
}

// expecting returns the node on which kube-scheduler holds room for the pod, as long as it may yet come there; nil if there is none.
func (s *state) expecting(pod *corev1.Pod) *slot {
	if !conversion.IsNominated(pod) {
		return nil
	}
	if x := s.nodes.byNode[pod.Status.NominatedNodeName]; x != nil && x.bare.welcomes() {
		return x
	}
	return nil
}

func numbered(slots []*slot) map[*slot]int {
	out := make(map[*slot]int, len(slots))
	for i, x := range slots {
		out[x] = i
	}
	return out
}

// keepShared calls conversion.DropUnsharedVolumes, with the users that slots know of.
func (s *state) keepShared(pods []cluster.Pod) {
	users := map[string]int{}
	for _, x := range s.nodes.slots {
		conversion.CountUsers(users, x.shared)
	}
	for i := range pods {
		conversion.CountUsers(users, pods[i].Volumes)
	}
	conversion.DropUnsharedVolumes(pods, users)
}

package kube

import (
	"slices"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/catalog"
	"github.com/joiner-sh/joiner/cluster"
)

// snapshot returns the cluster as it is at now. Late are claims that the server
// has and no event has told of yet.
func (s *state) snapshot(now time.Time, market catalog.Market, late []*karpv1.NodeClaim) cluster.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setMarket(market)
	s.view.Now = now
	s.refresh()
	s.pair(late)
	s.lay()

	homeless := s.settle(s.builder())
	out := cluster.Snapshot{
		Taken:   now,
		Pools:   poolsOf(Objects{Pools: s.pools.list(), Classes: s.classes.list()}, s.view, s.views),
		Nodes:   s.list(),
		Daemons: s.daemons,
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
	waiting := s.waiting.tidy()
	homeless := make([]*cluster.Pod, 0, len(waiting))
	coming := map[int][]mover{}
	planned := plannedOn(s.views, s.view.Now)
	send := func(m mover) bool {
		i, ok := planned.of(m.value, s.views)
		if ok {
			coming[i] = append(coming[i], m)
		}
		return ok
	}
	for _, p := range waiting {
		if m := (mover{p.object, s.valueOf(p)}); !send(m) {
			homeless = append(homeless, m.value)
		}
	}
	// Nodes on their way out first: where their pods go is never another such node.
	var moving []*cluster.Pod
	for _, x := range s.slots {
		if !x.bare.going {
			continue
		}
		s.fill(x, b, nil)
		for _, m := range x.leaving {
			if !send(m) {
				moving = append(moving, m.value)
			}
		}
	}
	for i, x := range s.slots {
		if !x.bare.going {
			s.fill(x, b, coming[i])
		}
	}
	if len(moving) == 0 {
		return homeless
	}
	slices.SortFunc(moving, byPodID)
	return merged(homeless, moving, byPodID)
}

// keepShared is the function of the same name, with the users that slots know of.
func (s *state) keepShared(pods []cluster.Pod) {
	users := map[string]int{}
	for _, x := range s.slots {
		count(users, x.shared)
	}
	for i := range pods {
		count(users, pods[i].Volumes)
	}
	keepShared(pods, users)
}

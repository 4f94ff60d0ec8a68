package disruptor

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// replaceStatic starts a move for each drifted node of a static pool: one additional node of the same pool replaces it.
// If limits.nodes leaves no room for it, the drifted node is excluded from moves for a while. others are the drifted
// nodes of pools that are not static.
func (m *Disruptor) replaceStatic(ctx context.Context, s *DisruptionInput, drifted []string, now time.Time) (others []string) {
	pools, claimCounts := map[string]*karpv1.NodePool{}, map[string]int{}
	for _, p := range s.objects.Pools {
		pools[p.Name] = p
	}
	for _, c := range s.objects.Claims {
		claimCounts[c.Labels[karpv1.LabelNodePool]]++
	}
	nodeByName := nodestate.NodesByName(s.In.Snapshot)
	for _, name := range drifted {
		pool := pools[nodeByName[name].Pool]
		claim := s.Claims[nodeByName[name].Claim]
		switch {
		case pool == nil || pool.Spec.Replicas == nil:
			others = append(others, name)
			continue
		case nodestate.NodeLimit(pool) != nil && claimCounts[pool.Name] >= *nodestate.NodeLimit(pool):
			m.holdStuck(claim, "limits.nodes of its NodePool leaves no room for its replacement", now)
			continue
		case !m.LaunchBackoff.Admit([]packing.PlannedNode{{Pool: pool.Name}}, now):
			m.Lock.Forget(claim.UID)
			continue // launches of the pool are on hold, which the pool's status reports
		}
		claimCounts[pool.Name]++
		leaving := []*karpv1.NodeClaim{m.newest.Of(claim)}
		mark := nodestate.MoveMark{
			ID:      nodestate.MoveID(leaving, now),
			Reason:  disruption.Drifted,
			Started: now.UTC(),
			Nodes:   1,
			Claims:  1,
			Pods:    len(nodeByName[name].Pods),
		}
		m.logError(m.startMove(ctx, mark, leaving, s.nodesOf(leaving), func(annotations map[string]string) error {
			created, err := m.Claims.CreateStaticReplacement(ctx, pool.Name, annotations)
			if err == nil {
				m.Metrics.Claims.Created.WithLabelValues("disrupted", pool.Name, "false").Inc()
				m.Log.Info("created NodeClaim", "NodeClaim", created.Name, "nodePool", pool.Name, "move", mark.ID, "cause", "spec.replicas")
			}
			return err
		}, now))
	}
	return others
}

func (s *DisruptionInput) nodesOf(claims []*karpv1.NodeClaim) []*corev1.Node {
	var out []*corev1.Node
	for _, c := range claims {
		for _, n := range s.objects.Nodes {
			if snapshot.IsNodeOf(c, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

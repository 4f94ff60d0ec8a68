package gc

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// labelPartitions labels claims and their Nodes with the placement group partition that EC2 has chosen. The response to
// a launch does not contain the partition.
func (s *Collector) labelPartitions(ctx context.Context, instances []ec2.Instance, claims []*karpv1.NodeClaim) error {
	chosen := map[string]ec2.PlacementRef{} // by provider ID; only placements in a partition
	for _, i := range instances {
		if i.Placement.Partition > 0 && !i.State.Ended() {
			chosen[i.ProviderID()] = i.Placement
		}
	}
	var errs []error
	for _, c := range claims {
		ref, ok := chosen[c.Status.ProviderID]
		if ok && nodestate.IsServed(c.Spec.NodeClassRef) && c.DeletionTimestamp == nil && c.Labels[awsv1.LabelPlacementGroupPartition] == "" {
			errs = append(errs, s.labelPartition(ctx, c, offerings.PlacementLabels(ref)))
		}
	}
	return errors.Join(errs...)
}

func (s *Collector) labelPartition(ctx context.Context, claim *karpv1.NodeClaim, labels map[string]string) error {
	nodes, err := nodestate.NodesOf(ctx, s.Cluster, claim)
	if err != nil {
		return err
	}
	addTo := func(all *map[string]string) {
		if *all == nil {
			*all = map[string]string{}
		}
		for key, value := range labels {
			(*all)[key] = value
		}
	}
	for _, n := range nodes { // Nodes first, because a claim that still lacks the label is processed again
		_, err := s.Objects.PatchNode(ctx, n, func(n *corev1.Node) { addTo(&n.Labels) })
		if err != nil && kubeclient.Classify(err) != kubeclient.Gone {
			return err
		}
	}
	_, err = s.Objects.PatchClaim(ctx, claim, func(c *karpv1.NodeClaim) { addTo(&c.Labels) })
	if err != nil && kubeclient.Classify(err) != kubeclient.Gone {
		return err
	}
	return nil
}

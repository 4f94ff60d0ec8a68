package gc

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/interruption"
	"github.com/joiner-sh/joiner/internal/controller/interruptions"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// updateReserved updates the claims whose instances run in capacity reservations. Claims in an expiring capacity block
// are marked as interrupted, even if the interruption message was lost. When a reservation of another kind ends, its
// instances keep running as on-demand instances, and their claims are labelled as on-demand.
func (s *Collector) updateReserved(ctx context.Context, now time.Time, instances []ec2.Instance, claims []*karpv1.NodeClaim) error {
	var reservedClaims []*karpv1.NodeClaim
	for _, c := range claims {
		if c.Labels[karpv1.LabelCapacityType] == karpv1.CapacityTypeReserved && c.DeletionTimestamp == nil &&
			nodestate.IsServed(c.Spec.NodeClassRef) {
			reservedClaims = append(reservedClaims, c)
		}
	}
	if len(reservedClaims) == 0 {
		return nil
	}
	// 1. read
	var classes awsv1.EC2NodeClassList
	if err := s.Cache.List(ctx, &classes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list node classes: %w", err)
	}
	expiring := map[string]bool{} // by ID of the reservation
	for i := range classes.Items {
		for _, r := range classes.Items[i].Status.CapacityReservations {
			expiring[r.ID] = expiring[r.ID] || r.State == awsv1.CapacityReservationExpiring
		}
	}
	isOnDemand := map[string]bool{} // by provider ID: the instance runs as on-demand now
	for _, i := range instances {
		isOnDemand[i.ProviderID()] = i.State == ec2.Running && i.CapacityType == catalog.OnDemand
	}
	// 2. decide, 3. act, 4. report
	var errs []error
	for _, c := range reservedClaims {
		if _, markedAt := interruptions.MarkOf(c); expiring[c.Labels[awsv1.LabelCapacityReservationID]] && markedAt.IsZero() {
			errs = append(errs, s.markExpiring(ctx, c, now))
		} else if isOnDemand[c.Status.ProviderID] {
			errs = append(errs, s.relabel(ctx, c))
		}
	}
	return errors.Join(errs...)
}

func (s *Collector) markExpiring(ctx context.Context, claim *karpv1.NodeClaim, now time.Time) error {
	_, err := s.Objects.PatchClaim(ctx, claim, func(c *karpv1.NodeClaim) { interruptions.Mark(c, interruption.BlockExpiring, now) })
	if err != nil && kubeclient.Classify(err) != kubeclient.Gone {
		return err
	}
	s.Log.Info("the capacity block of an instance is about to end", "NodeClaim", claim.Name, "Node", claim.Status.NodeName,
		"capacityReservation", claim.Labels[awsv1.LabelCapacityReservationID])
	return nil
}

// relabel labels the claim of an ended reservation, and its Nodes, as on-demand.
func (s *Collector) relabel(ctx context.Context, claim *karpv1.NodeClaim) error {
	nodes, err := nodestate.NodesOf(ctx, s.Cluster, claim)
	if err != nil {
		return err
	}
	for _, n := range nodes { // Nodes first, because a claim with the old label is processed again
		_, err := s.Objects.PatchNode(ctx, n, func(n *corev1.Node) { labelAsOnDemand(n.Labels) })
		if err != nil && kubeclient.Classify(err) != kubeclient.Gone {
			return err
		}
	}
	_, err = s.Objects.PatchClaim(ctx, claim, func(c *karpv1.NodeClaim) { labelAsOnDemand(c.Labels) })
	if err != nil && kubeclient.Classify(err) != kubeclient.Gone {
		return err
	}
	s.Log.Info("the capacity reservation of an instance has ended; the instance keeps running as on-demand",
		"NodeClaim", claim.Name, "Node", claim.Status.NodeName,
		"capacityReservation", claim.Labels[awsv1.LabelCapacityReservationID])
	return nil
}

// labelAsOnDemand changes the labels of a reserved instance to those of an on-demand instance.
func labelAsOnDemand(labels map[string]string) {
	if labels == nil {
		return
	}
	labels[karpv1.LabelCapacityType] = karpv1.CapacityTypeOnDemand
	for _, key := range offerings.ReservationKeys() {
		delete(labels, key)
	}
}

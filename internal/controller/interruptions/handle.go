package interruptions

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/interruption"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// claimIndex finds the claims that an interruption message is about.
type claimIndex struct {
	byInstance    map[string]*karpv1.NodeClaim   // by instance ID
	byReservation map[string][]*karpv1.NodeClaim // by ID of the capacity reservation
	reservations  map[string]bool                // IDs of the reservations that node classes have found
}

func (i *Handler) readIndex(ctx context.Context) (claimIndex, error) {
	var list karpv1.NodeClaimList
	if err := i.Cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return claimIndex{}, fmt.Errorf("list nodeclaims: %w", err)
	}
	var classes awsv1.EC2NodeClassList
	if err := i.Cache.List(ctx, &classes, client.UnsafeDisableDeepCopy); err != nil {
		return claimIndex{}, fmt.Errorf("list node classes: %w", err)
	}
	index := claimIndex{
		byInstance:    map[string]*karpv1.NodeClaim{},
		byReservation: map[string][]*karpv1.NodeClaim{},
		reservations:  map[string]bool{},
	}
	for n := range classes.Items {
		for _, r := range classes.Items[n].Status.CapacityReservations {
			index.reservations[r.ID] = true
		}
	}
	for n := range list.Items {
		c := &list.Items[n]
		if !i.isOurs(c) {
			continue
		}
		if id, ok := ec2.ParseProviderID(c.Status.ProviderID); ok {
			index.byInstance[id] = c
		}
		if id := c.Labels[awsv1.LabelCapacityReservationID]; id != "" {
			index.byReservation[id] = append(index.byReservation[id], c)
		}
	}
	return index, nil
}

// isOurs reports whether the claim belongs to this controller: its node class is an EC2NodeClass, and it was created in
// this cluster. A claim that was copied here from another cluster has that cluster's UID.
func (i *Handler) isOurs(c *karpv1.NodeClaim) bool {
	uid := c.Annotations[karpv1.KeyClusterUID]
	return nodestate.IsServed(c.Spec.NodeClassRef) && (uid == "" || uid == i.ClusterUID)
}

// resolve sets claims and unclaimed of the message.
func (x claimIndex) resolve(q *queuedMessage) {
	for _, id := range q.parsed.Instances {
		if c := x.byInstance[id]; c != nil {
			q.claims = append(q.claims, c)
		} else {
			q.unclaimed = append(q.unclaimed, id)
		}
	}
	if q.parsed.Reservation != "" {
		q.claims = x.byReservation[q.parsed.Reservation]
	}
}

// maxContradicted is how often a message about an ended instance is received before it is dropped, if EC2 shows the
// instance as running each time. EC2's data may be half a minute old; the times between the receipts are
// interruption.VisibilityTimeout.
const maxContradicted = 4

// handle processes the interruption message for one claim. The first result is false if the message must stay in the queue.
func (i *Handler) handle(ctx context.Context, claim *karpv1.NodeClaim, q *queuedMessage, now time.Time) (bool, error) {
	claim = i.newest.Of(claim)
	parsed := q.parsed
	if claim.DeletionTimestamp != nil || !parsed.Ends.IsZero() && parsed.Ends.Before(now) {
		return true, nil // the claim is being deleted anyway, or the message is outdated
	}
	if parsed.Kind.IsEnd() {
		hasEnded, err := i.hasEnded(ctx, claim)
		if err != nil || !hasEnded {
			return err == nil && q.message.Received >= maxContradicted, err
		}
	}
	if err := i.announce(ctx, claim, parsed); err != nil {
		return false, err
	}
	markedKind, _ := MarkOf(claim)
	if markedKind != parsed.Kind { // a repeated message is no new shortage
		i.noteShortage(claim, parsed.Kind, now)
	}
	if parsed.Kind == interruption.RebalanceRecommended || !parsed.Kind.Outranks(markedKind) {
		return true, nil // the message needs no action, is a repeat, or is another sign of the same interruption
	}
	err := i.mark(ctx, claim, parsed, now)
	return err == nil, err
}

func (i *Handler) announce(ctx context.Context, claim *karpv1.NodeClaim, parsed interruption.ParsedMessage) error {
	nodes, err := nodestate.NodesOf(ctx, i.Cluster, claim)
	if err != nil {
		return err
	}
	if reason, message := eventOf(parsed); reason != "" {
		i.Events.Emit(claim, reason, message)
		for _, node := range nodes {
			i.Events.Emit(node, reason, message)
		}
	}
	return nil
}

// mark marks the claim as interrupted, and wakes the loop that drains marked claims.
func (i *Handler) mark(ctx context.Context, claim *karpv1.NodeClaim, parsed interruption.ParsedMessage, now time.Time) error {
	marked, err := i.Objects.PatchClaim(ctx, claim, func(c *karpv1.NodeClaim) { Mark(c, parsed.Kind, now) })
	if err != nil {
		if kubeclient.Classify(err) == kubeclient.Gone {
			return nil
		}
		return err
	}
	i.newest.Note(marked)
	i.Log.Info("an instance will be interrupted", "NodeClaim", claim.Name, "Node", claim.Status.NodeName, "kind", string(parsed.Kind),
		"instance", claim.Status.ProviderID, "messageTime", parsed.At)
	select {
	case i.Wake <- struct{}{}:
	default:
	}
	return nil
}

// hasEnded reports whether EC2 shows the claim's instance neither as running nor as pending. The message about the end
// may be outdated: a stopped instance may have been started again.
func (i *Handler) hasEnded(ctx context.Context, claim *karpv1.NodeClaim) (bool, error) {
	id, _ := ec2.ParseProviderID(claim.Status.ProviderID)
	instance, err := i.Instances.Instance(ctx, id)
	if awserr.Is(err, awserr.Gone) {
		return true, nil
	}
	return instance.State != ec2.Running && instance.State != ec2.Pending, err
}

// noteShortage records that EC2 has no capacity for the claim's offering if EC2 reclaims the instance. Otherwise the next
// plan, which is for the pods of this instance, could choose the same offering again.
func (i *Handler) noteShortage(claim *karpv1.NodeClaim, kind interruption.Kind, now time.Time) {
	switch kind {
	case interruption.ReservationInterrupted, interruption.BlockExpiring:
		i.noteEnding(claim.Labels[awsv1.LabelCapacityReservationID], kind, now)
		return
	case interruption.SpotInterrupted:
	default:
		return
	}
	s := ec2.Shortage{
		CapacityType: claim.Labels[karpv1.LabelCapacityType], InstanceType: claim.Labels[corev1.LabelInstanceTypeStable],
		Zone: claim.Labels[corev1.LabelTopologyZone], Reason: "SpotInterrupted",
	}
	if s.CapacityType == karpv1.CapacityTypeSpot && s.InstanceType != "" && s.Zone != "" {
		i.Shortages.Note(now, s)
	}
}

// noteEnding records that a capacity reservation ends or is reclaimed, because EC2 reports the reservation as unchanged
// for a while. It ignores an empty ID.
func (i *Handler) noteEnding(reservation string, kind interruption.Kind, now time.Time) {
	if reservation != "" {
		i.Shortages.Note(now, ec2.Shortage{CapacityType: karpv1.CapacityTypeReserved, Reservation: reservation, Reason: endingReasons()[kind]})
	}
}

func endingReasons() map[interruption.Kind]string {
	return map[interruption.Kind]string{
		interruption.ReservationInterrupted: "CapacityReservationInterrupted", interruption.BlockExpiring: "CapacityBlockExpiring",
	}
}

func eventOf(parsed interruption.ParsedMessage) (kubeclient.Reason, string) {
	switch parsed.Kind {
	case interruption.SpotInterrupted:
		return kubeclient.ReasonSpotInterrupted, "EC2 reclaims the spot instance in two minutes"
	case interruption.RebalanceRecommended:
		return kubeclient.ReasonRebalanceRecommended, "EC2 reports an elevated risk that it reclaims the spot instance"
	case interruption.ScheduledChange:
		return kubeclient.ReasonInstanceUnhealthy, "AWS Health announces a change that ends or stops the instance"
	case interruption.InstanceStopped:
		return kubeclient.ReasonInstanceStopping, "The instance is " + parsed.State
	case interruption.InstanceTerminated:
		return kubeclient.ReasonInstanceTerminating, "The instance is " + parsed.State
	case interruption.ReservationInterrupted:
		return kubeclient.ReasonReservationInterrupted, "The owner of the capacity reservation reclaims the instance in two minutes"
	case interruption.BlockExpiring:
		return kubeclient.ReasonReservationInterrupted,
			"The capacity block " + parsed.Reservation + " ends; EC2 begins to terminate its instances in ten minutes"
	case interruption.InstanceImpaired:
		return kubeclient.ReasonInstanceUnhealthy, "EC2's status check of the instance fails"
	case interruption.SystemImpaired:
		return kubeclient.ReasonInstanceUnhealthy, "EC2's status check of the instance's host fails"
	case interruption.EventScheduled:
		return kubeclient.ReasonInstanceUnhealthy, "EC2 has scheduled a reboot, a stop or the retirement of the instance"
	case interruption.NoOp:
	}
	return "", ""
}

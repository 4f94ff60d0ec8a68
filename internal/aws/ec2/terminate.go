package ec2

import (
	"context"
	"fmt"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// Proof is the caller's evidence that an instance belongs to this cluster.
type Proof string

// The proofs.
const (
	// ByTags: the instance's tags are the only evidence.
	ByTags Proof = ""
	// ByProviderID: a NodeClaim or a Node of our cluster has the instance's provider ID. It suffices for an instance
	// without UID tag (Legacy), but not for an instance with another cluster's UID.
	ByProviderID Proof = "ByProviderID"
)

// Terminate terminates an instance. Each call first reads the instance's tags, and refuses (awserr.Refused) an instance
// that is not ours. It returns nil for an instance that EC2 does not know or that is already terminating. Concurrent
// calls are merged.
//
// EC2 may not list an instance for some seconds after its launch. A caller that has just launched the instance must
// call Instances once more before it considers the instance terminated.
func (d *Client) Terminate(ctx context.Context, id string, proof Proof) error {
	instance, err := d.Instance(ctx, id)
	if awserr.Is(err, awserr.Gone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("terminate instance %s: %w", id, err)
	}
	if err := d.checkOwnership("TerminateInstances", instance, proof); err != nil {
		return err
	}
	if instance.State.Ended() {
		return nil
	}
	_, _, err = d.terminations.get(ctx, id)
	if awserr.Is(err, awserr.Gone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("terminate instance %s: %w", id, awserr.Classify("TerminateInstances", err))
	}
	return nil
}

// checkOwnership returns an error of kind awserr.Refused if Joiner must not terminate or tag the instance. op is the
// AWS call that the error names.
func (d *Client) checkOwnership(op string, i Instance, proof Proof) error {
	const reason = "NotOurs"
	switch {
	case i.Owner == Ours, i.Owner == Legacy && proof == ByProviderID:
		return nil
	case i.Owner == Legacy:
		return awserr.Refusedf(op, reason, "instance %s carries the name of cluster %s but no %s, and no NodeClaim or Node here has its provider id: it may belong to another cluster of that name",
			i.ID, d.cluster.Name, TagUID)
	case i.Owner == SameName:
		return awserr.Refusedf(op, reason, "instance %s belongs to another cluster named %s, with uid %s; ours is %s",
			i.ID, d.cluster.Name, i.Tags[TagUID], d.cluster.UID)
	case i.Owner == Untagged:
		return awserr.Refusedf(op, reason, "instance %s carries neither %s nor %s, so it is not known to be of a NodePool of cluster %s",
			i.ID, TagUID, TagNodePool, d.cluster.Name)
	}
	return awserr.Refusedf(op, reason, "instance %s carries the tags of another owner than the NodePools of cluster %s", i.ID, d.cluster.Name)
}

// terminateAll terminates instances whose ownership was just checked. EC2 fails the whole call if one ID is unknown. In
// that case terminateAll terminates each instance separately, and returns the errors by ID.
func (d *Client) terminateAll(ctx context.Context, ids []string) (map[string]struct{}, map[string]error, error) {
	_, err := d.writes.TerminateInstances(ctx, &awsec2.TerminateInstancesInput{InstanceIds: ids})
	if err == nil {
		return nil, nil, nil
	}
	err = awserr.Classify("TerminateInstances", err)
	if len(ids) == 1 || awserr.Is(err, awserr.Throttled) || awserr.Is(err, awserr.Transient) || awserr.Is(err, awserr.Canceled) {
		return nil, nil, err
	}
	errs := map[string]error{}
	for _, id := range ids {
		if _, _, err := d.terminateAll(ctx, []string{id}); err != nil {
			errs[id] = err
		}
	}
	return nil, errs, nil
}

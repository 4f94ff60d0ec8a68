package ec2

import (
	"context"
	"fmt"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// Proof is what the caller knows about an instance that it wants terminated.
type Proof string

// The proofs.
const (
	// ByTags leaves it to the instance's tags.
	ByTags Proof = ""
	// Carried says that a NodeClaim or a Node of our cluster carries the
	// instance's provider id. It is needed for an instance that has no UID tag
	// (Legacy); it does not help for one that has another cluster's.
	Carried Proof = "Carried"
)

// Terminate ends an instance. It looks at the instance's tags first, each time,
// and refuses (fault.Refused) what is not ours. An instance that EC2 does not
// know, or that is ending already, is success. Calls at one moment become one.
//
// EC2 may not show an instance for some seconds after its launch; so a caller
// who has just launched it must look at Instances once more before forgetting it.
func (d *Client) Terminate(ctx context.Context, id string, proof Proof) error {
	instance, err := d.Instance(ctx, id)
	if awserr.Is(err, awserr.Gone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("terminate instance %s: %w", id, err)
	}
	if err := d.mayChange("TerminateInstances", instance, proof); err != nil {
		return err
	}
	if instance.State.Ended() {
		return nil
	}
	_, _, err = d.ends.ask(ctx, id)
	if awserr.Is(err, awserr.Gone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("terminate instance %s: %w", id, awserr.Sort("TerminateInstances", err))
	}
	return nil
}

// mayChange returns the reason why the instance must not be terminated or tagged by us, or nil.
func (d *Client) mayChange(op string, i Instance, proof Proof) error {
	const reason = "NotOurs"
	switch {
	case i.Owner == Ours, i.Owner == Legacy && proof == Carried:
		return nil
	case i.Owner == Legacy:
		return awserr.Refuse(op, reason, "instance %s carries the name of cluster %s but no %s, and no NodeClaim or Node here has its provider id: it may belong to another cluster of that name",
			i.ID, d.cluster.Name, TagUID)
	case i.Owner == Namesake:
		return awserr.Refuse(op, reason, "instance %s belongs to another cluster named %s, with uid %s; ours is %s",
			i.ID, d.cluster.Name, i.Tags[TagUID], d.cluster.UID)
	case i.Owner == Unmarked:
		return awserr.Refuse(op, reason, "instance %s carries neither %s nor %s, so it is not known to be of a NodePool of cluster %s",
			i.ID, TagUID, TagNodePool, d.cluster.Name)
	}
	return awserr.Refuse(op, reason, "instance %s carries the tags of another owner than the NodePools of cluster %s", i.ID, d.cluster.Name)
}

// endAll terminates instances that were found to be ours a moment ago. EC2 fails the
// whole call for one id that it does not know, so then each is tried alone.
func (d *Client) endAll(ctx context.Context, ids []string) (map[string]struct{}, map[string]error, error) {
	_, err := d.writes.TerminateInstances(ctx, &awsec2.TerminateInstancesInput{InstanceIds: ids})
	if err == nil {
		return nil, nil, nil
	}
	err = awserr.Sort("TerminateInstances", err)
	if len(ids) == 1 || awserr.Is(err, awserr.Throttled) || awserr.Is(err, awserr.Transient) || awserr.Is(err, awserr.Canceled) {
		return nil, nil, err
	}
	errs := map[string]error{}
	for _, id := range ids {
		if _, _, err := d.endAll(ctx, []string{id}); err != nil {
			errs[id] = err
		}
	}
	return nil, errs, nil
}

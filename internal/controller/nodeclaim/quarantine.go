package nodeclaim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// quarantine keeps the claim of an instance that has lost its tags. Without tags the instance is not terminated, and
// only the claim still identifies the instance. The claim stays, also across restarts, until the tags are restored or
// the instance is gone.
func (c *Reconciler) quarantine(ctx context.Context, v View, step lifecycle.Step, now time.Time) (*karpv1.NodeClaim, error) {
	claim, message := v.Claim, UntaggedOf(c.Instances, c.Offers.Market.Region, v.Claim, *v.instance).String()
	if c.noteUntagged(claim.UID, true, now) == now { // not known before
		c.Log.Warn("an instance has lost its tags and is not terminated; its NodeClaim is kept until the instance is gone",
			"NodeClaim", claim.Name, "nodePool", claim.Labels[karpv1.LabelNodePool], "instance", v.instance.ID, "hint", message)
	}
	c.Events.Emit(claim, kubeclient.ReasonTagsMissing, message)
	return c.Objects.PatchClaim(ctx, claim, func(claim *karpv1.NodeClaim) {
		claim.StatusConditions().SetFalse(now, karpv1.ConditionInstanceTerminating, step.Reason, message)
	})
}

// noteUntagged records whether the instance of a deleted claim has lost its tags, and returns since when this process
// knows that the tags are lost.
func (c *Reconciler) noteUntagged(claim types.UID, isUntagged bool, now time.Time) time.Time {
	since := c.untagged.Note(claim, isUntagged, now)
	c.Metrics.Untagged.Set(float64(c.untagged.Count()))
	return since
}

// UntaggedInstance is an instance with a claim, but without the tags of this cluster.
type UntaggedInstance struct {
	claim      *karpv1.NodeClaim
	instance   ec2.Instance
	launchTags map[string]string // the tags that Joiner gave the instance at launch
	region     string
}

// String returns the problem, what follows, and the commands that fix it.
func (u UntaggedInstance) String() string {
	var tags []string
	for _, key := range slices.Sorted(maps.Keys(u.launchTags)) {
		if u.instance.Tags[key] != u.launchTags[key] && key != ec2.TagName {
			tags = append(tags, "Key="+key+",Value="+u.launchTags[key])
		}
	}
	id, consequence := u.instance.ID, "so it will not be terminated when the NodeClaim is deleted. "
	alternative := ""
	if u.claim.DeletionTimestamp != nil {
		consequence = "so it is not terminated, and costs money. "
		alternative = fmt.Sprintf(". Or terminate the instance: aws ec2 terminate-instances --region %s --instance-ids %s", u.region, id)
	}
	return fmt.Sprintf("Instance %s of NodeClaim %s has lost the tags that mark it as this cluster's, %sRestore them: aws ec2 create-tags --region %s --resources %s --tags %s%s",
		id, u.claim.Name, consequence, u.region, id, strings.Join(tags, " "), alternative)
}

// UntaggedOf returns the claim and its instance, with the tags of a launch.
func UntaggedOf(c loop.InstanceClient, region string, claim *karpv1.NodeClaim, i ec2.Instance) UntaggedInstance {
	return UntaggedInstance{claim, i, c.OwnershipTags(claim.Labels[karpv1.LabelNodePool], claim.Spec.NodeClassRef.Name, claim.Name), region}
}

package gc

import (
	"context"

	"golang.org/x/sync/errgroup"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// How many instances are tagged per pass, and concurrently. Launches need the API rate limit more than tags do.
const (
	maxTaggedPerPass = 100
	maxParallelTags  = 10
)

// tagInstances adds tags to the instances of claims whose Nodes have joined, because the name of the Node was not known
// at launch. It annotates the claim as tagged, as Karpenter does.
func (s *Collector) tagInstances(ctx context.Context, instances []ec2.Instance, claims []*karpv1.NodeClaim) error {
	untagged := map[string]*karpv1.NodeClaim{} // by provider ID: claims not annotated yet
	for _, c := range claims {
		if c.Status.ProviderID != "" && c.Status.NodeName != "" && c.DeletionTimestamp == nil && nodestate.IsServed(c.Spec.NodeClassRef) &&
			c.Annotations[awsv1.AnnotationTagged] != "true" {
			untagged[c.Status.ProviderID] = c
		}
	}
	var group errgroup.Group
	group.SetLimit(maxParallelTags)
	started := 0
	for _, i := range instances {
		c := untagged[i.ProviderID()]
		if c == nil || i.State.Ended() {
			continue
		}
		if started++; started > maxTaggedPerPass {
			break
		}
		group.Go(func() error { return s.tagOne(ctx, i, c) })
	}
	return group.Wait()
}

func (s *Collector) tagOne(ctx context.Context, i ec2.Instance, claim *karpv1.NodeClaim) error {
	if tags := s.Fleet.MissingTags(i, claim.Name, claim.Status.NodeName); len(tags) > 0 {
		// the claim's provider ID proves that the instance is ours
		err := s.Fleet.Tag(ctx, i, ec2.ByProviderID, tags)
		if awserr.Is(err, awserr.Gone) || awserr.Is(err, awserr.Refused) {
			return nil // the instance was terminated, or belongs to another cluster, which Collector.report reports
		}
		if err != nil {
			return err
		}
	}
	_, err := s.Objects.PatchClaim(ctx, claim, func(c *karpv1.NodeClaim) {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[awsv1.AnnotationTagged], c.Annotations[awsv1.AnnotationClusterNameTagged] = "true", "true"
	})
	if err != nil && kubeclient.Classify(err) == kubeclient.Gone {
		return nil
	}
	return err
}

package gc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/metrics"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

type fleet interface {
	Instances(ctx context.Context) ([]ec2.Instance, error)
	SweepTemplates(ctx context.Context, keep func(ec2.Template) bool) (int, error)
	MissingTags(i ec2.Instance, claim, node string) map[string]string
	Tag(ctx context.Context, i ec2.Instance, proof ec2.Proof, tags map[string]string) error
}

// Collector garbage-collects orphans: instances without claims, claims without instances, and launch templates and
// instance profiles that are not used. So resources left behind by a crash cost money for two minutes at most.
type Collector struct {
	Cache         client.Reader             // reads objects from the informers
	Live          client.Reader             // reads claims from the API server before a termination; nil: only the cache is read
	Cluster       loop.NodeReader           // reads Nodes and their pods from the informers
	Name          string                    // name of the cluster
	Fleet         fleet                     // instances and launch templates of the cluster
	Profiles      ProfileStore              // reads and deletes instance profiles; nil: IAM cannot be reached, and no profile is deleted
	Instances     loop.InstanceClient       // describes and terminates instances
	Objects       loop.ObjectWriter         // writes objects to the API server
	Batch         *loop.Batch               // collects requests for the next plan
	LaunchBackoff *poolhealth.LaunchBackoff // pools whose launches are on hold
	Breaker       loop.Breaker              // limits how many objects one pass deletes
	Drift         *driftcheck.Reconciler    // records instances that end before they join; nil disables this
	Market        *offerings.Catalogs       // zones with a zonal shift, and the region; nil: no zone is shifted
	Events        loop.EventRecorder        // emits events
	Metrics       *metrics.Metrics          // the metrics of this process
	Log           *slog.Logger              // the log of this process

	failures loop.Backoff    // the only key is "sweep"
	logged   map[string]bool // keys of the findings that were logged

	profilesSwept time.Time // when instance profiles were last swept
}

// The collector runs every sweepInterval. A launch template is deleted when no launch has used it for TemplateLife.
const (
	sweepInterval = 30 * time.Second
	TemplateLife  = time.Minute
)

// Start runs the loop until ctx ends.
func (s *Collector) Start(ctx context.Context) error {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		if err := s.Pass(ctx, time.Now()); err != nil && !errors.Is(err, context.Canceled) {
			next, hint := loop.ClassifyError(err)
			s.Metrics.Failures.WithLabelValues("sweeper", string(next)).Inc()
			if _, isNews := s.failures.Fail(time.Now(), "sweep", awserr.StableText(err)); isNews {
				s.Log.Error("cannot garbage-collect orphans", "error", err.Error(), "hint", hint)
			}
		} else {
			s.failures.Clear("sweep")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Pass compares the instances of the cluster with its NodeClaims and Nodes, and deletes the orphans.
func (s *Collector) Pass(ctx context.Context, now time.Time) error {
	defer loop.Working(ctx, loop.LoopSweeper, "").End()
	// 1. read
	in := SweepInput{Now: now, Breaker: s.Breaker, Shifted: s.Market.ShiftedZones(now)}
	var err error
	if in.Instances, err = s.Fleet.Instances(ctx); err != nil {
		return err
	}
	if in.Claims, in.Nodes, err = s.read(ctx); err != nil {
		return err
	}
	// 2. decide
	out := Sweep(in)
	// 3. act, 4. report
	s.report(ctx, out)
	var errs []error
	for _, i := range out.Instances {
		errs = append(errs, s.terminate(ctx, i))
	}
	for _, c := range out.Claims {
		errs = append(errs, s.deleteLost(ctx, c, now))
	}
	errs = append(errs, s.updateReserved(ctx, now, in.Instances, in.Claims), s.labelPartitions(ctx, in.Instances, in.Claims),
		s.tagInstances(ctx, in.Instances, in.Claims),
		s.sweepTemplates(ctx, now), s.sweepProfiles(ctx, now, in.Instances, in.Claims))
	return errors.Join(errs...)
}

// read returns all NodeClaims, and the provider IDs of the ready Nodes.
func (s *Collector) read(ctx context.Context) ([]*karpv1.NodeClaim, map[string]bool, error) {
	var claims karpv1.NodeClaimList
	if err := s.Cache.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, err
	}
	nodes, err := nodestate.ReadyNodes(ctx, s.Cache)
	if err != nil {
		return nil, nil, err
	}
	out := make([]*karpv1.NodeClaim, len(claims.Items))
	for i := range claims.Items {
		out[i] = &claims.Items[i]
	}
	return out, nodes, nil
}

// hasClaim reports whether the claim that the instance's tags name exists, and has the provider ID of the instance or
// none yet. It reads from the API server, because the cache may be far behind.
func (s *Collector) hasClaim(ctx context.Context, i ec2.Instance) (bool, error) {
	if s.Live == nil || i.Claim() == "" {
		return false, nil
	}
	claim := &karpv1.NodeClaim{}
	err := s.Live.Get(ctx, client.ObjectKey{Name: i.Claim()}, claim)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read nodeclaim %s: %w", i.Claim(), err)
	}
	return claim.Status.ProviderID == "" || claim.Status.ProviderID == i.ProviderID(), nil
}

// terminate terminates an instance without a claim, and deletes its Node if it has one.
func (s *Collector) terminate(ctx context.Context, i ec2.Instance) error {
	if isClaimed, err := s.hasClaim(ctx, i); err != nil || isClaimed {
		return err
	}
	// ByTags: only the instance's tags prove that it is ours.
	if err := s.Instances.Terminate(ctx, i.ID, ec2.ByTags); err != nil && !awserr.Is(err, awserr.Gone) {
		return err
	}
	nodes, err := s.Cluster.NodesOf(ctx, i.ProviderID())
	if err != nil {
		return err
	}
	for _, node := range nodes {
		identity := nodeclaim.InstanceIdentity(i, &awsv1.EC2NodeClass{}) // the class of the instance is not known
		if verdict, _ := identity.Judge(nodeclaim.ClaimantOf(node)); verdict == lifecycle.IdentityMismatch {
			continue // the Node belongs to another instance, although it has the provider ID of this one
		}
		if err := s.Objects.Delete(ctx, node); err != nil {
			return err
		}
	}
	s.Metrics.Swept.WithLabelValues("instance").Inc()
	s.Log.Info("terminated instance without a NodeClaim", "instance", i.ID, "instanceType", i.Type, "zone", i.Zone,
		"NodeClaim", i.Claim(), "launched", i.Launched)
	return nil
}

// deleteLost deletes a claim whose instance seems to be lost, unless EC2 still returns the instance and the instance
// has not ended.
func (s *Collector) deleteLost(ctx context.Context, claim *karpv1.NodeClaim, now time.Time) error {
	why, isEndedInEC2 := "EC2 does not return it", false // isEndedInEC2: EC2 confirms that the instance has ended
	if id, ok := ec2.ParseProviderID(claim.Status.ProviderID); ok {
		instance, err := s.Instances.Instance(ctx, id)
		if err != nil && !awserr.Is(err, awserr.Gone) {
			return err
		}
		if err == nil && !instance.State.Ended() {
			s.reportUntagged(claim, instance)
			return nil
		}
		isEndedInEC2 = err == nil
		if instance.StateReason != "" {
			why = instance.StateReason
		}
	}
	// "Client." is a cause in the account, such as a KMS key; "Server." is a cause in EC2, such as missing capacity.
	if strings.HasPrefix(why, "Client.") && !claim.StatusConditions().IsTrue(karpv1.ConditionRegistered) {
		if err := s.Drift.RecordFailure(ctx, claim, "its instance ended before it joined the cluster: "+why, now); err != nil {
			return err
		}
	}
	if err := s.Objects.Delete(ctx, claim); err != nil {
		return err
	}
	s.Metrics.Swept.WithLabelValues("nodeclaim").Inc()
	nodestate.PodLoss{
		Claim:  claim,
		Reason: lifecycle.ReasonInstanceGone,
		Pods:   nodestate.DisplacedPods(ctx, s.Cluster, claim, now),
	}.Count(s.Metrics)
	s.reportGone(claim, why, now)
	nodeclaim.ExternalTermination{Claim: claim, How: nodeclaim.HowEnded(why, isEndedInEC2), Why: why}.Report(s.Events, s.Metrics, s.Log)
	s.Log.Info("deleted NodeClaim", "NodeClaim", claim.Name, "nodePool", claim.Labels[karpv1.LabelNodePool],
		"reason", lifecycle.ReasonInstanceGone, "cause", why, "Node", claim.Status.NodeName, "providerID", claim.Status.ProviderID)
	s.Batch.Ask(string(claim.UID))
	return nil
}

// reportUntagged emits an event if the instance has lost its tags, so that Fleet.Instances does not return it.
func (s *Collector) reportUntagged(claim *karpv1.NodeClaim, i ec2.Instance) {
	if i.Owner == ec2.Untagged && s.Market != nil {
		s.Events.Emit(claim, kubeclient.ReasonTagsMissing, nodeclaim.UntaggedOf(s.Instances, s.Market.Region, claim, i).String())
	}
}

// reportGone emits an event about why a claim lost its instance. If the instance ended before it joined, launches of
// the pool wait, longer each time, because the cause may last: for example, EC2 may not be allowed to use a KMS key.
func (s *Collector) reportGone(claim *karpv1.NodeClaim, why string, now time.Time) {
	if claim.StatusConditions().IsTrue(karpv1.ConditionRegistered) {
		s.Events.Emit(claim, kubeclient.ReasonInstanceTerminating, "The instance "+claim.Status.ProviderID+" is gone: "+why)
		return
	}
	s.LaunchBackoff.EndedEarly(now, claim.CreationTimestamp.Time, claim.Labels[karpv1.LabelNodePool],
		"the last, "+claim.Status.ProviderID+", ended: "+why)
	s.Events.Emit(claim, kubeclient.ReasonNotJoining, "The instance "+claim.Status.ProviderID+" ended before it joined the cluster: "+why)
}

// sweepTemplates deletes launch templates that no launch has used for TemplateLife. They are created again when needed.
func (s *Collector) sweepTemplates(ctx context.Context, now time.Time) error {
	deleted, err := s.Fleet.SweepTemplates(ctx, func(t ec2.Template) bool {
		return now.Sub(t.Used) < TemplateLife || now.Sub(t.Created) < TemplateLife
	})
	s.Metrics.Swept.WithLabelValues("launch_template").Add(float64(deleted))
	if deleted > 0 {
		s.Log.Info("deleted unused launch templates", "count", deleted)
	}
	return err
}

package nodeclass

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
)

// DryRunner makes dry runs of launches.
type DryRunner interface {
	Try(ctx context.Context, t ec2.Trial) error
}

// How long the result of a dry run is valid.
const (
	trialHolds   = 30 * time.Minute // a success
	refusalHolds = 20 * time.Second // a refusal, which is shorter because the user may be fixing its cause
	settlePoll   = 5 * time.Second  // pause before a retry if EC2 does not know new objects in the dry run yet
)

// trials holds the results of dry runs by class. The zero value is empty. Its methods are safe for concurrent
// use.
type trials struct {
	mu      sync.Mutex
	ByClass map[string]tried // latest result by name of the class
}

// tried is the result of one dry run.
type tried struct {
	about string    // parameters of the dry run, as JSON
	err   error     // EC2's refusal; nil: the launch would succeed
	until time.Time // end of validity
}

// recall returns the result of a dry run with the same parameters, if it is still valid.
func (t *trials) recall(class, about string, now time.Time) (answer error, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.ByClass[class]
	return known.err, ok && known.about == about && now.Before(known.until)
}

// note stores the result of a dry run for the class.
func (t *trials) note(class string, answer tried) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ByClass == nil {
		t.ByClass = map[string]tried{}
	}
	t.ByClass[class] = answer
}

// try makes a dry run of a launch for the class with the resolved resources. It finds missing permissions, and errors
// that the schema cannot find, before a pod waits for a node. The error is offerings.ErrNoMarket until the instance
// types are known. It is nil without a dry run: if dry runs are disabled, or the class cannot be launched from anyway.
func (n *Reconciler) try(ctx context.Context, class *awsv1.EC2NodeClass, found resolvedClass, now time.Time) error {
	if n.Tester == nil || !found.isComplete() {
		return nil
	}
	resolved := class.DeepCopy()
	found.write(resolved, now)
	trial, ok, err := n.trial(ctx, resolved, now)
	if err != nil || !ok {
		return err
	}
	about, err := json.Marshal(trial)
	if err != nil {
		return fmt.Errorf("dry run of a launch for EC2NodeClass %s: %w", class.Name, err)
	}
	if answer, ok := n.Trials.recall(resolved.Name, string(about), now); ok {
		return answer
	}
	err = n.Tester.Try(ctx, trial)
	switch f := awserr.Of(err); {
	case f == nil:
		n.Trials.note(resolved.Name, tried{string(about), nil, now.Add(trialHolds)})
	case f.Kind == awserr.Denied, f.Kind == awserr.Misconfigured:
		n.Trials.note(resolved.Name, tried{string(about), err, now.Add(refusalHolds)})
	}
	return err
}

// trial returns the parameters of the dry run. The instance type is the cheapest one that a pool of the class allows,
// because an IAM policy may deny other types. If no pool allows a type, it is any available type. The second result is
// false if no type is available for the class.
func (n *Reconciler) trial(ctx context.Context, class *awsv1.EC2NodeClass, now time.Time) (ec2.Trial, bool, error) {
	market, ok := n.Offers.Market.Catalog(class, now)
	if !ok {
		return ec2.Trial{}, false, offerings.ErrNoMarket
	}
	var pools karpv1.NodePoolList
	if err := n.Cache.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		return ec2.Trial{}, false, err
	}
	zones, subnets := map[string]vpc.Subnet{}, []string{}
	for _, s := range class.Status.Subnets {
		zones[s.Zone] = vpc.Subnet{ID: s.ID}
		subnets = append(subnets, s.ID)
	}
	slices.Sort(subnets)
	for _, accepted := range acceptedBy(pools.Items, class.Name) {
		_, picks := offerings.Choose(market.Types, offerings.LaunchCandidate{Accepted: accepted, Subnets: zones, Bought: true})
		for _, p := range picks {
			image, ok := ami.For(offerings.ImagesOf(class), p.Kind.Labels)
			if !ok {
				continue
			}
			data, err := bootstrap.UserData(n.Offers.Node(offerings.ProbeClaim(), class, image, karpv1.CapacityTypeOnDemand, p.Kind.Capacity.Pods))
			if err != nil {
				return ec2.Trial{}, false, awserr.Misuse("write user data", offerings.ReasonOf(err), "%s", err)
			}
			b := offerings.Blueprint(class, image.ID, karpv1.CapacityTypeOnDemand, data, n.Offers.Cluster.IPv6)
			b.Placement.Group = market.PlacementGroup
			return ec2.Trial{NodeClass: class.Name, Tags: class.Spec.Tags, InstanceType: p.Kind.Name, Subnets: subnets, Blueprint: b}, true, nil
		}
	}
	return ec2.Trial{}, false, nil
}

// acceptedBy returns the requirements of each pool of the class, sorted by pool name, and at the end requirements that
// accept every type.
func acceptedBy(pools []karpv1.NodePool, class string) []requirements.Requirements {
	sorted := slices.Clone(pools)
	slices.SortFunc(sorted, func(a, b karpv1.NodePool) int { return cmp.Compare(a.Name, b.Name) })
	var out []requirements.Requirements
	for _, p := range sorted {
		ref := p.Spec.Template.Spec.NodeClassRef
		if !nodestate.IsServed(ref) || ref.Name != class {
			continue
		}
		like := &karpv1.NodeClaim{}
		like.Spec.Requirements = p.Spec.Template.Spec.Requirements
		if accepted, wrong := requirements.All(offerings.RequirementsOf(like)...); wrong == nil {
			out = append(out, accepted)
		}
	}
	return append(out, requirements.Requirements{})
}

// settles returns the pause before a retry if the problem will end by itself: a new process does not know the instance
// types yet, or EC2 does not return a new instance profile or launch template yet. It is 0 in all other cases.
func (f resolvedClass) settles() time.Duration {
	switch {
	case errors.Is(f.trialErr, offerings.ErrNoMarket):
		return offerings.MarketPoll
	case f.trialErr == nil:
		return 0
	}
	switch awserr.Of(f.trialErr).Reason {
	case "InstanceProfileNameInvalid", "LaunchTemplateNotFound":
		return settlePoll
	}
	return 0
}

// writeTrial sets the condition ValidationSucceeded from the error of the dry run. An inconclusive error keeps an
// earlier success.
func (f resolvedClass) writeTrial(c karpv1.ConditionSet, now time.Time) {
	const condition = awsv1.ConditionValidationSucceeded
	e := awserr.Of(f.trialErr)
	switch {
	case e.Kind == awserr.Denied:
		c.SetFalse(now, condition, reasonDenied(e), awserr.Lasting(f.trialErr))
	case e.Kind == awserr.Misconfigured:
		c.SetFalse(now, condition, e.Reason, awserr.Lasting(f.trialErr))
	case c.IsTrue(condition):
		c.SetTrue(now, condition)
	case errors.Is(f.trialErr, offerings.ErrNoMarket):
		c.SetUnknown(now, condition, awsv1.ReasonDependenciesNotReady, f.trialErr.Error())
	default:
		c.SetUnknown(now, condition, e.Reason, awserr.Lasting(f.trialErr))
	}
}

// reasonDenied returns the condition reason for a denied call, as in Karpenter.
func reasonDenied(e *awserr.Error) string {
	switch e.Op {
	case "CreateLaunchTemplate":
		return awsv1.ReasonCreateLaunchTemplateAuthCheckFailed
	case "CreateFleet":
		return awsv1.ReasonCreateFleetAuthCheckFailed
	case "RunInstances":
		return awsv1.ReasonRunInstancesAuthCheckFailed
	}
	return e.Reason
}

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
	DryRun(ctx context.Context, t ec2.DryRun) error
}

// Times for dry runs.
const (
	successValidity = 30 * time.Minute // how long a success is valid
	refusalValidity = 20 * time.Second // how long a refusal is valid; shorter, because the user may be fixing its cause
	settlePoll      = 5 * time.Second  // pause before a retry if EC2 does not know a new object yet
)

// dryRuns holds the results of dry runs by class. The zero value is empty. Its methods are safe for concurrent use.
type dryRuns struct {
	mu      sync.Mutex
	ByClass map[string]dryRun // latest result by name of the class
}

type dryRun struct {
	parameters string    // parameters of the launch, as JSON
	err        error     // EC2's refusal; nil: the launch would succeed
	until      time.Time // end of validity
}

// recall returns the result of a dry run with the same parameters, if it is still valid.
func (t *dryRuns) recall(class, parameters string, now time.Time) (refusal error, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, ok := t.ByClass[class]
	return last.err, ok && last.parameters == parameters && now.Before(last.until)
}

func (t *dryRuns) note(class string, result dryRun) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ByClass == nil {
		t.ByClass = map[string]dryRun{}
	}
	t.ByClass[class] = result
}

// checkLaunch makes a dry run of a launch for the class with the resolved resources. It finds missing permissions, and
// errors that the schema cannot find, before a pod waits for a node. The error is offerings.ErrNoMarket until the
// instance types are known. The error is nil also without a dry run: dry runs are disabled, the class is incomplete, or
// no instance type is available for it.
func (n *Reconciler) checkLaunch(ctx context.Context, class *awsv1.EC2NodeClass, found resolvedClass, now time.Time) error {
	if n.DryRunner == nil || !found.isComplete() {
		return nil
	}
	resolved := class.DeepCopy()
	found.write(resolved, now)
	request, ok, err := n.dryRunParameters(ctx, resolved, now)
	if err != nil || !ok {
		return err
	}
	parameters, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("dry run of a launch for EC2NodeClass %s: %w", class.Name, err)
	}
	if refusal, ok := n.DryRuns.recall(resolved.Name, string(parameters), now); ok {
		return refusal
	}
	err = n.DryRunner.DryRun(ctx, request)
	switch e := awserr.Of(err); {
	case e == nil:
		n.DryRuns.note(resolved.Name, dryRun{string(parameters), nil, now.Add(successValidity)})
	case e.Kind == awserr.Denied, e.Kind == awserr.Misconfigured:
		n.DryRuns.note(resolved.Name, dryRun{string(parameters), err, now.Add(refusalValidity)})
	}
	return err
}

// dryRunParameters returns the parameters of the dry run. The instance type is the cheapest one that a pool of the class
// allows, because an IAM policy may deny other types. If no pool allows a type, the instance type is any available
// type. The second result is false if no type is available for the class.
func (n *Reconciler) dryRunParameters(ctx context.Context, class *awsv1.EC2NodeClass, now time.Time) (ec2.DryRun, bool, error) {
	market, ok := n.Offers.Market.Catalog(class, now)
	if !ok {
		return ec2.DryRun{}, false, offerings.ErrNoMarket
	}
	var pools karpv1.NodePoolList
	if err := n.Cache.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		return ec2.DryRun{}, false, err
	}
	byZone, ids := map[string]vpc.Subnet{}, []string{}
	for _, s := range class.Status.Subnets {
		byZone[s.Zone] = vpc.Subnet{ID: s.ID}
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	for _, accepted := range acceptedBy(pools.Items, class.Name) {
		_, picks := offerings.Choose(market.Types, offerings.LaunchRequirements{Accepted: accepted, Subnets: byZone, ExcludeReserved: true})
		for _, p := range picks {
			image, ok := ami.For(offerings.ImagesOf(class), p.Type.Labels)
			if !ok {
				continue
			}
			input := n.Offers.UserDataInput(offerings.ProbeClaim(), class, image, karpv1.CapacityTypeOnDemand, p.Type.Capacity.Pods)
			data, err := bootstrap.UserData(input)
			if err != nil {
				return ec2.DryRun{}, false, awserr.Misconfiguredf("write user data", offerings.ReasonOf(err), "%s", err)
			}
			b := offerings.Blueprint(class, image.ID, karpv1.CapacityTypeOnDemand, data, n.Offers.Cluster.IPv6)
			b.Placement.Group = market.PlacementGroup
			return ec2.DryRun{NodeClass: class.Name, Tags: class.Spec.Tags, InstanceType: p.Type.Name, Subnets: ids, Blueprint: b}, true, nil
		}
	}
	return ec2.DryRun{}, false, nil
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
		claim := &karpv1.NodeClaim{}
		claim.Spec.Requirements = p.Spec.Template.Spec.Requirements
		if accepted, invalid := requirements.All(offerings.RequirementsOf(claim)...); invalid == nil {
			out = append(out, accepted)
		}
	}
	return append(out, requirements.Requirements{})
}

// settlePause returns the pause before a retry, if the problem will end without a change by the user:
//   - A new process does not know the instance types yet.
//   - EC2 does not return a new instance profile or launch template yet.
//
// The pause is 0 in all other cases.
func (f resolvedClass) settlePause() time.Duration {
	switch {
	case errors.Is(f.dryRunErr, offerings.ErrNoMarket):
		return offerings.MarketPoll
	case f.dryRunErr == nil:
		return 0
	}
	switch awserr.Of(f.dryRunErr).Reason {
	case "InstanceProfileNameInvalid", "LaunchTemplateNotFound":
		return settlePoll
	}
	return 0
}

// writeDryRun sets the condition ValidationSucceeded from the error of the dry run. An earlier success stays valid
// unless EC2 denied the launch or reported a misconfiguration.
func (f resolvedClass) writeDryRun(c karpv1.ConditionSet, now time.Time) {
	const condition = awsv1.ConditionValidationSucceeded
	e := awserr.Of(f.dryRunErr)
	switch {
	case e.Kind == awserr.Denied:
		c.SetFalse(now, condition, reasonDenied(e), awserr.StableText(f.dryRunErr))
	case e.Kind == awserr.Misconfigured:
		c.SetFalse(now, condition, e.Reason, awserr.StableText(f.dryRunErr))
	case c.IsTrue(condition):
		c.SetTrue(now, condition)
	case errors.Is(f.dryRunErr, offerings.ErrNoMarket):
		c.SetUnknown(now, condition, awsv1.ReasonDependenciesNotReady, f.dryRunErr.Error())
	default:
		c.SetUnknown(now, condition, e.Reason, awserr.StableText(f.dryRunErr))
	}
}

// reasonDenied returns Karpenter's condition reason for a denied call.
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

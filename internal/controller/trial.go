package controller

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
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
)

// tester asks EC2 what it would say to a launch.
type tester interface {
	Try(ctx context.Context, t ec2.Trial) error
}

// How long the answer to a trial holds, and how soon EC2 is asked again that does not know yet what was just made. A
// refusal is asked about again soon: somebody is mending it.
const (
	trialHolds   = 30 * time.Minute
	refusalHolds = 20 * time.Second
	settlePoll   = 5 * time.Second
)

// trials remembers what EC2 said to trials, by class. The zero value remembers nothing. Its methods may be called at the
// same time.
type trials struct {
	mu      sync.Mutex
	byClass map[string]tried
}

// tried is the answer to one trial.
type tried struct {
	about string // what was tried
	err   error
	until time.Time
}

// recall returns what EC2 said to the same trial, if that still holds.
func (t *trials) recall(class, about string, now time.Time) (answer error, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.byClass[class]
	return known.err, ok && known.about == about && now.Before(known.until)
}

func (t *trials) note(class string, answer tried) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byClass == nil {
		t.byClass = map[string]tried{}
	}
	t.byClass[class] = answer
}

// try asks EC2 whether it would launch for the class as it was found. Permissions that are missing, and what the schema
// cannot check, are found out so before anybody waits for a node. The error is errNoMarket as long as no type is known.
func (n *NodeClasses) try(ctx context.Context, class *awsv1.EC2NodeClass, found foundClass, now time.Time) error {
	if n.Tester == nil || !found.isComplete() {
		return nil
	}
	as := class.DeepCopy()
	found.write(as, now)
	trial, ok, err := n.trial(ctx, as, now)
	if err != nil || !ok {
		return err
	}
	about, err := json.Marshal(trial)
	if err != nil {
		return fmt.Errorf("try a launch for EC2NodeClass %s: %w", class.Name, err)
	}
	if answer, ok := n.trials.recall(as.Name, string(about), now); ok {
		return answer
	}
	err = n.Tester.Try(ctx, trial)
	switch f := awserr.Of(err); {
	case f == nil:
		n.trials.note(as.Name, tried{string(about), nil, now.Add(trialHolds)})
	case f.Kind == awserr.Denied, f.Kind == awserr.Misconfigured:
		n.trials.note(as.Name, tried{string(about), err, now.Add(refusalHolds)})
	}
	return err
}

// trial is a launch of the cheapest type that some pool of the class allows, for a policy may allow no other types; of any
// type if no pool has one. The second result is false if nothing can be had for the class.
func (n *NodeClasses) trial(ctx context.Context, class *awsv1.EC2NodeClass, now time.Time) (ec2.Trial, bool, error) {
	market, ok := n.Offers.Market.Catalog(class, now)
	if !ok {
		return ec2.Trial{}, false, errNoMarket
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
		_, picks := choose(market.Types, wish{accepted: accepted, subnets: zones, bought: true})
		for _, p := range picks {
			image, ok := ami.For(imagesOf(class), p.kind.Labels)
			if !ok {
				continue
			}
			data, err := bootstrap.UserData(n.Offers.node(probeClaim(), class, image, karpv1.CapacityTypeOnDemand, p.kind.Capacity.Pods))
			if err != nil {
				return ec2.Trial{}, false, awserr.Misuse("write user data", reasonOf(err), "%s", err)
			}
			b := blueprint(class, image.ID, karpv1.CapacityTypeOnDemand, data, n.Offers.Cluster.IPv6)
			b.Placement.Group = market.PlacementGroup
			return ec2.Trial{NodeClass: class.Name, Tags: class.Spec.Tags, InstanceType: p.kind.Name, Subnets: subnets, Blueprint: b}, true, nil
		}
	}
	return ec2.Trial{}, false, nil
}

// acceptedBy returns what each pool of a class accepts, by the pools' names, and then anything.
func acceptedBy(pools []karpv1.NodePool, class string) []requirements.Requirements {
	sorted := slices.Clone(pools)
	slices.SortFunc(sorted, func(a, b karpv1.NodePool) int { return cmp.Compare(a.Name, b.Name) })
	var out []requirements.Requirements
	for _, p := range sorted {
		ref := p.Spec.Template.Spec.NodeClassRef
		if !isServed(ref) || ref.Name != class {
			continue
		}
		like := &karpv1.NodeClaim{}
		like.Spec.Requirements = p.Spec.Template.Spec.Requirements
		if accepted, wrong := requirements.All(requirementsOf(like)...); wrong == nil {
			out = append(out, accepted)
		}
	}
	return append(out, requirements.Requirements{})
}

// settles returns how soon to look again where nothing is wrong that anybody must mend: a process that has just begun does
// not know the instance types, and EC2 not an instance profile or launch template that was just made. 0 if it is not so.
func (f foundClass) settles() time.Duration {
	switch {
	case errors.Is(f.trialErr, errNoMarket):
		return marketPoll
	case f.trialErr == nil:
		return 0
	}
	switch awserr.Of(f.trialErr).Reason {
	case "InstanceProfileNameInvalid", "LaunchTemplateNotFound":
		return settlePoll
	}
	return 0
}

// writeTrial says what EC2 said to a trial. While it says neither yes nor no, what it said last stays good.
func (f foundClass) writeTrial(c karpv1.ConditionSet, now time.Time) {
	const condition = awsv1.ConditionValidationSucceeded
	e := awserr.Of(f.trialErr)
	switch {
	case e.Kind == awserr.Denied:
		c.SetFalse(now, condition, reasonDenied(e), awserr.Lasting(f.trialErr))
	case e.Kind == awserr.Misconfigured:
		c.SetFalse(now, condition, e.Reason, awserr.Lasting(f.trialErr))
	case c.IsTrue(condition):
		c.SetTrue(now, condition)
	case errors.Is(f.trialErr, errNoMarket):
		c.SetUnknown(now, condition, awsv1.ReasonDependenciesNotReady, f.trialErr.Error())
	default:
		c.SetUnknown(now, condition, e.Reason, awserr.Lasting(f.trialErr))
	}
}

// reasonDenied names the call that EC2 does not allow us, as Karpenter does.
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

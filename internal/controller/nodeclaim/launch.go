package nodeclaim

import (
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/metrics"
)

// Times for the launches of one claim.
const (
	FirstLaunchDelay = 2 * time.Second // delay after the first failed launch; doubles with each further failure
	maxLaunchDelay   = time.Minute     // longest delay after a failed launch
	DoubtTimeout     = time.Minute     // how long to search for the instance of an earlier attempt
	doubtInterval    = 5 * time.Second // interval of that search
)

// Launch launches the claim's instance and records the instance on the claim.
func (c *Reconciler) Launch(ctx context.Context, v View, now time.Time) (*karpv1.NodeClaim, error) {
	a := c.attempts.of(v.Claim.UID)
	if a.Request == nil {
		// This process created the claim and has sent no request for it: there is no instance.
		a.clean = a.clean || a.requestEnded.IsZero() && c.Ledger.IsOwn(v.Claim.UID)
		request, err := c.Offers.Request(v.Claim, v.Class, a.number, now)
		if errors.Is(err, offerings.ErrNoMarket) {
			a.notBefore = now.Add(offerings.MarketPoll) // nothing is wrong: this process has just started
			c.attempts.set(v.Claim.UID, a)
			return v.Claim, nil
		}
		if err != nil {
			// No request was sent to EC2, so the next attempt has the same number: EC2 then recognizes a request that a
			// previous process may have sent.
			return c.LaunchFailed(ctx, v, a, ec2.Launch{}, err, now)
		}
		a.Request, a.clean = &request, false // from here on, EC2 may launch an instance that this process does not know
		c.attempts.set(v.Claim.UID, a)
	}
	started := time.Now()
	launch, err := c.Launcher.Launch(ctx, *a.Request)
	observeCall(c.Metrics, "Create", started, err)
	a.requestEnded = c.Now.Now()
	if a.timeoutFrom.IsZero() || awserr.Is(err, awserr.Throttled) {
		a.timeoutFrom = a.requestEnded
	}
	c.attempts.set(v.Claim.UID, a)
	c.Offers.NoteShortages(c.Now.Now(), launch.Shortages)
	for _, s := range launch.Shortages {
		c.Metrics.LaunchFailures.WithLabelValues(s.Zone, s.CapacityType, s.Reason).Inc()
	}
	switch {
	case err == nil:
		if c.Offers.NoteLaunched(c.Now.Now(), launch.Instance, a.Request) {
			c.Batch.AskNow("shortage") // pods wait for this offering, which is available again
		}
		return c.record(ctx, v, launch.Instance, c.Now.Now())
	case ctx.Err() != nil:
		a.notBefore = a.requestEnded // the reconciliation has used its time; repeat the request in the next one
		c.attempts.set(v.Claim.UID, a)
		return nil, ctx.Err()
	case awserr.Is(err, awserr.InDoubt):
		return c.resolveDoubt(ctx, v, a, err, c.Now.Now())
	}
	return c.LaunchFailed(ctx, v, a, launch, err, c.Now.Now())
}

// resolveDoubt searches for an instance that a previous process has launched with the number of attempt a. If there is
// none after DoubtTimeout, the next launch uses a new number.
func (c *Reconciler) resolveDoubt(ctx context.Context, v View, a Attempt, cause error, now time.Time) (*karpv1.NodeClaim, error) {
	found, err := c.Launcher.LaunchedFor(ctx, v.Claim.Name)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		c.Offers.EndLaunch(v.Claim)
		c.Log.Info("found the instance of an earlier launch", "NodeClaim", v.Claim.Name, "instance", found[0].ID)
		return c.record(ctx, v, found[0], now)
	}
	switch {
	case a.doubtSince.IsZero():
		a.doubtSince, a.notBefore = now, now.Add(doubtInterval)
		c.Log.Info("searching for an instance that an earlier call may have launched", "NodeClaim", v.Claim.Name, "cause", cause.Error())
	case now.Sub(a.doubtSince) < DoubtTimeout:
		a.notBefore = now.Add(doubtInterval)
	default:
		a = Attempt{number: a.number + 1, clean: true, failures: a.failures, requestEnded: a.requestEnded, timeoutFrom: a.timeoutFrom}
	}
	c.attempts.set(v.Claim.UID, a)
	return v.Claim, nil
}

// LaunchFailed records why the launch failed, and when to try again.
func (c *Reconciler) LaunchFailed(ctx context.Context, v View, a Attempt, launch ec2.Launch, err error,
	now time.Time) (*karpv1.NodeClaim, error) {
	f := awserr.Of(err)
	image := imageTried(a.Request)
	if launch.Spent { // EC2 has definitely launched no instance for this number
		a.Request, a.clean = nil, true
		a.number++
	}
	if f.Kind == awserr.Denied || f.Kind == awserr.Misconfigured {
		// The next request is built from the class as it is then, with the same number. If the response to an earlier
		// request was lost, EC2 reports that the token was used with other contents, and resolveDoubt searches for the
		// instance.
		a.Request = nil
	}
	if a.Request == nil {
		c.Offers.EndLaunch(v.Claim)
	}
	a.failures++
	a.notBefore = now.Add(min(maxLaunchDelay, FirstLaunchDelay<<min(a.failures-1, 10))) // a larger shift could overflow
	if f.Kind == awserr.Shortage {
		a.shortage = true
		c.attempts.set(v.Claim.UID, a)
		if len(launch.Shortages) == 0 && !c.Offers.HasUnavailable(v.Claim, v.Class, now) {
			// Put launches of the pool on hold. Otherwise the next plan would choose the same offering again at once.
			c.LaunchBackoff.LaunchFailed(now, v.Claim.Labels[karpv1.LabelNodePool], f.Reason+": "+f.Message)
		}
		c.Events.Emit(v.Claim, kubeclient.ReasonInsufficientCapacity, awserr.StableText(f))
		c.Log.Info("no capacity for NodeClaim", "NodeClaim", v.Claim.Name, "nodePool", v.Claim.Labels[karpv1.LabelNodePool], "cause", f.Error())
		return v.Claim, nil
	}
	c.attempts.set(v.Claim.UID, a)
	if image != "" && strings.HasPrefix(f.Reason, "InvalidAMIID") {
		if err := c.Drift.RecordFailure(ctx, asTried(v, image, c.Authority),
			"EC2 refuses to launch the image: "+awserr.StableText(f), now); err != nil {
			return nil, err
		}
	}
	pool := v.Claim.Labels[karpv1.LabelNodePool]
	if f.Kind == awserr.Denied || f.Kind == awserr.Misconfigured {
		if until, isNews := c.LaunchBackoff.LaunchFailed(now, pool, f.Reason+": "+f.Message); isNews {
			c.Log.Error("launches of NodePool fail", "nodePool", pool, "reason", f.Reason, "error", f.Error(), "nextTry", until)
		}
	}
	c.Events.Emit(v.Claim, kubeclient.ReasonLaunchFailed, awserr.StableText(f))
	return c.Objects.PatchClaim(ctx, v.Claim, func(claim *karpv1.NodeClaim) {
		conditions := claim.StatusConditions()
		conditions.Start(now)
		conditions.SetUnknown(now, karpv1.ConditionLaunched, f.Reason, awserr.StableText(f))
	})
}

// imageTried returns the image of a launch request; empty if the request has several images or none.
func imageTried(request *ec2.LaunchRequest) string {
	if request == nil || len(request.Groups) == 0 {
		return ""
	}
	image := request.Groups[0].Blueprint.ImageID
	for _, g := range request.Groups {
		if g.Blueprint.ImageID != image {
			return ""
		}
	}
	return image
}

// asTried returns the claim as it would be after a successful launch from the image. authority is Reconciler.Authority.
func asTried(v View, image, authority string) *karpv1.NodeClaim {
	out := v.Claim.DeepCopy()
	out.Status.ImageID = image
	if v.Class != nil {
		if out.Annotations == nil {
			out.Annotations = map[string]string{}
		}
		noteClass(out, v.Class, authority)
	}
	return out
}

// recordFound records the instance of an earlier attempt. A new process waits until it knows the instance types,
// because the data on the claim is written only once.
func (c *Reconciler) recordFound(ctx context.Context, v View, now time.Time) (*karpv1.NodeClaim, error) {
	if v.Class != nil {
		if _, ok := c.Offers.Market.Catalog(v.Class, now); !ok {
			return nil, offerings.ErrNoMarket
		}
	}
	return c.record(ctx, v, *v.instance, now)
}

func (c *Reconciler) record(ctx context.Context, v View, instance ec2.Instance, now time.Time) (*karpv1.NodeClaim, error) {
	pool := v.Claim.Labels[karpv1.LabelNodePool]
	facts := c.Offers.LaunchFacts(v.Claim.Spec.NodeClassRef.Name, pool, instance)
	claim, err := c.Objects.PatchClaim(ctx, v.Claim, func(claim *karpv1.NodeClaim) {
		if claim.Labels == nil {
			claim.Labels = map[string]string{}
		}
		for key, value := range facts.Labels {
			if _, ok := claim.Labels[key]; !ok { // the user's labels take precedence
				claim.Labels[key] = value
			}
		}
		if claim.Annotations == nil {
			claim.Annotations = map[string]string{}
		}
		if v.Class != nil {
			noteClass(claim, v.Class, c.Authority)
		}
		noteOverlays(claim, facts)
		claim.Status.ProviderID, claim.Status.ImageID = instance.ProviderID(), instance.ImageID
		claim.Status.Capacity, claim.Status.Allocatable = conversion.Quantities(facts.Capacity), conversion.Quantities(facts.Allocatable)
		dropUnrequestedEFA(claim)
		conditions := claim.StatusConditions()
		conditions.Start(now)
		conditions.SetTrue(now, karpv1.ConditionLaunched)
		conditions.SetUnknown(now, karpv1.ConditionRegistered, karpv1.ReasonNodeNotFound, "the instance has not joined the cluster yet")
	})
	if err != nil {
		return nil, err
	}
	c.LaunchBackoff.LaunchSucceeded(pool)
	c.Metrics.Join.WithLabelValues("launched", pool).Observe(now.Sub(claim.CreationTimestamp.Time).Seconds())
	c.Events.Emit(claim, kubeclient.ReasonLaunched,
		"Launched "+instance.ID+" ("+instance.Type+", "+instance.Zone+", "+instance.CapacityType+")")
	c.Log.Info("launched NodeClaim", "NodeClaim", claim.Name, "nodePool", pool, "instance", instance.ID,
		"instanceType", instance.Type, "zone", instance.Zone, "capacityType", instance.CapacityType, "image", instance.ImageID,
		"pricePerHour", facts.Price.String(), "seconds", now.Sub(claim.CreationTimestamp.Time).Seconds())
	return claim, nil
}

// noteClass writes to the claim the data that later shows whether the claim has drifted from its node class.
func noteClass(claim *karpv1.NodeClaim, class *awsv1.EC2NodeClass, authority string) {
	if fields, err := conversion.CurrentClassFields(class, authority); err == nil { // on error, the claim never drifts from its class
		conversion.SetRecordedFields(claim, nil, &fields)
	}
	claim.Annotations[awsv1.AnnotationInstanceProfile] = class.Status.InstanceProfile
}

func noteOverlays(claim *karpv1.NodeClaim, facts offerings.Facts) {
	if facts.Repriced {
		claim.Annotations[karpv1.AnnotationPriceOverlay] = "true"
	}
	if facts.Overlaid {
		claim.Annotations[karpv1.AnnotationCapacityOverlay] = "true"
	}
}

// dropUnrequestedEFA drops EFA interfaces from the status of a claim that did not request them: its instance is
// launched without them.
func dropUnrequestedEFA(claim *karpv1.NodeClaim) {
	if _, isRequested := claim.Spec.Resources.Requests[awsv1.ResourceEFA]; isRequested {
		return
	}
	for _, list := range []corev1.ResourceList{claim.Status.Capacity, claim.Status.Allocatable} {
		delete(list, awsv1.ResourceEFA)
	}
}

func observeCall(m *metrics.Metrics, method string, started time.Time, err error) {
	m.Method.WithLabelValues("nodeclaim.lifecycle", method, "aws").Observe(time.Since(started).Seconds())
	if err != nil {
		m.MethodErrors.WithLabelValues("nodeclaim.lifecycle", method, "aws", awserr.Of(err).Reason).Inc()
	}
}

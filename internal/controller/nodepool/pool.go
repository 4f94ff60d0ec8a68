package nodepool

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/metrics"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

type poolWriter interface {
	PatchPool(ctx context.Context, pool *karpv1.NodePool, change func(*karpv1.NodePool)) (*karpv1.NodePool, error)
}

// Reconciler writes the status of NodePools: whether they are usable, and their resources.
type Reconciler struct {
	Cache         client.Reader             // reads objects from the informers
	Cluster       loop.NodeReader           // reads cluster state from the informers
	Objects       poolWriter                // writes objects to the API server
	LaunchBackoff *poolhealth.LaunchBackoff // pools whose launches are on hold
	Market        nodestate.TypeMarket      // prices of instance types; nil: the cost is not computed
	// Registrations has the results of the pools' launches; nil: no results are known.
	Registrations *poolhealth.Registrations
	Pauses        *loop.Pauses     // pauses of voluntary disruption
	Batch         *loop.Batch      // gets a request for a plan when a pool becomes ready or stops being ready
	Metrics       *metrics.Metrics // the metrics of this process
	Log           *slog.Logger     // the log of this process

	failures loop.Backoff // back-off by name of the pool
}

const poolRefresh = 5 * time.Second // between two counts of a pool's resources

// Reconcile brings the status of one pool up to date.
func (p *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	until, err := p.visit(ctx, request.Name)
	return loop.ResultOf(loop.Outcome{
		Loop: "nodepool", Kind: "NodePool", Name: request.Name, Until: until, Err: err,
		Failures: &p.failures, Metrics: p.Metrics, Log: p.Log,
	})
}

func (p *Reconciler) visit(ctx context.Context, name string) (time.Time, error) {
	// 1. read
	pool := &karpv1.NodePool{}
	err := p.Cache.Get(ctx, client.ObjectKey{Name: name}, pool)
	if apierrors.IsNotFound(err) {
		p.forget(name)
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	if !nodestate.IsServed(pool.Spec.Template.Spec.NodeClassRef) {
		return time.Time{}, nil // another controller serves the pool
	}
	seen, err := p.readInput(ctx, pool)
	if err != nil {
		return time.Time{}, err
	}
	// 2. decide, 3. act
	wasReady := pool.StatusConditions().IsReady()
	now := time.Now()
	written, err := p.Objects.PatchPool(ctx, pool, func(pool *karpv1.NodePool) { seen.Write(pool, now) })
	if err != nil {
		return time.Time{}, err
	}
	// 4. report
	p.measure(written, seen)
	if isReady := written.StatusConditions().IsReady(); isReady != wasReady {
		p.Log.Info("NodePool changed", "NodePool", name, "ready", isReady, "cause", seen.cause())
		p.Batch.Ask(string(pool.UID))
	}
	return now.Add(poolRefresh), nil
}

// PoolInput is the input for the status of a pool.
type PoolInput struct {
	class    *awsv1.EC2NodeClass // nil if the class does not exist
	problems string              // problems of the spec; empty if there are none
	Policy   disruption.Policy   // disruption policy of the pool
	usage    corev1.ResourceList // capacity of the pool's nodes
	nodes    int64               // number of NodeClaims that are not being deleted
	byType   map[string]int      // number of NodeClaims by capacity type
	cost     catalog.Price       // price per hour of the pool's instances

	holdMessage string             // why launches are on hold and until when, or the unsolved cause of the last hold; else empty
	holdCheck   string             // ID of the check that found this cause; empty if no check found it
	isChanged   bool               // the pool or its class has changed since the recorded launches
	launches    lifecycle.Outcomes // results of the last launches
	joined      time.Time          // when a claim of the pool last registered; zero if none has
}

// readInput reads the input for the status of the pool.
func (p *Reconciler) readInput(ctx context.Context, pool *karpv1.NodePool) (PoolInput, error) {
	now := time.Now()
	seen := PoolInput{problems: PoolProblem(pool), Policy: p.Pauses.Current(ctx, now).ApplyTo(nodestate.PolicyOf(pool, now))}
	if err := p.LaunchBackoff.Recall(ctx); err != nil {
		return seen, err
	}
	class := &awsv1.EC2NodeClass{}
	err := p.Cache.Get(ctx, client.ObjectKey{Name: pool.Spec.Template.Spec.NodeClassRef.Name}, class)
	switch {
	case err == nil:
		seen.class = class
	case !apierrors.IsNotFound(err):
		return seen, fmt.Errorf("read ec2nodeclass %s: %w", pool.Spec.Template.Spec.NodeClassRef.Name, err)
	}
	if seen.isChanged = isChanged(pool, seen.class); seen.isChanged {
		p.Registrations.Forget(pool.UID)
		p.LaunchBackoff.Changed(now, pool.Name)
	}
	if until, cause := p.LaunchBackoff.Held(time.Now(), pool.Name); cause != "" {
		seen.holdMessage, seen.holdCheck = poolhealth.HoldMessage(cause, until), p.LaunchBackoff.CauseCheck(pool.Name)
	} else if cause := p.LaunchBackoff.UnsolvedCause(pool.Name); cause != "" {
		seen.holdMessage, seen.holdCheck = cause, p.LaunchBackoff.CauseCheck(pool.Name)
	}
	var claims karpv1.NodeClaimList
	if err := p.Cache.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		return seen, fmt.Errorf("list nodeclaims: %w", err)
	}
	seen.usage, seen.byType = corev1.ResourceList{}, map[string]int{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods,
		corev1.ResourceEphemeralStorage} {
		seen.usage[name] = resource.Quantity{} // the status lists these even at 0
	}
	costs := nodestate.CostSum{Market: p.Market, Pool: pool.Name}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Labels[karpv1.LabelNodePool] != pool.Name || claim.DeletionTimestamp != nil {
			continue
		}
		if err := p.count(ctx, claim, &seen); err != nil {
			return seen, err
		}
		costs.Add(claim)
	}
	seen.cost = costs.Sum
	seen.usage[karpv1.ResourceNodes] = *resource.NewQuantity(seen.nodes, resource.DecimalSI)
	if seen.isChanged {
		seen.joined = time.Time{} // earlier registrations do not apply to the changed pool
	}
	seen.launches = p.Registrations.Recall(pool, seen.joined)
	return seen, nil
}

// count adds one claim to seen. It uses the capacity of the claim's Node, or of the claim's status
// before there is a Node.
func (p *Reconciler) count(ctx context.Context, claim *karpv1.NodeClaim, seen *PoolInput) error {
	seen.nodes++
	seen.byType[claim.Labels[karpv1.LabelCapacityType]]++
	if c, ok := claim.StatusConditions().Find(karpv1.ConditionRegistered); ok && c.Status == metav1.ConditionTrue &&
		c.LastTransitionTime.After(seen.joined) {
		seen.joined = c.LastTransitionTime.Time
	}
	nodes, err := nodestate.NodesOf(ctx, p.Cluster, claim)
	if err != nil {
		return err
	}
	amounts := claim.Status.Capacity
	if len(nodes) > 0 && len(nodes[0].Status.Capacity) > 0 {
		amounts = nodes[0].Status.Capacity
	}
	for name, amount := range amounts {
		sum := seen.usage[name].DeepCopy()
		sum.Add(amount)
		seen.usage[name] = sum
	}
	return nil
}

// Write sets the conditions and the resources in the pool's status.
func (s PoolInput) Write(pool *karpv1.NodePool, now time.Time) {
	c := pool.StatusConditions()
	c.Start(now)
	if s.problems != "" {
		c.SetFalse(now, karpv1.ConditionValidationSucceeded, karpv1.ReasonNodePoolValidationFailed, s.problems)
	} else {
		c.SetTrue(now, karpv1.ConditionValidationSucceeded)
	}
	s.writeClass(pool, c, now)
	nodestate.WritePolicy(c, s.Policy, now)
	s.writeRegistration(pool, c, now)
	if !sameAmounts(pool.Status.Resources, s.usage) {
		pool.Status.Resources = s.usage
	}
	pool.Status.Nodes = s.nodes
}

// writeRegistration sets the condition that reports whether the instances of the pool's last launches registered as
// Nodes. It ignores launches for earlier generations of the pool or its class.
func (s PoolInput) writeRegistration(pool *karpv1.NodePool, c karpv1.ConditionSet, now time.Time) {
	recorded, _ := s.launches.Count()
	switch {
	case s.isChanged:
		c.SetUnknown(now, karpv1.ConditionNodeRegistrationHealthy, karpv1.ReasonAwaitingReconciliation,
			"no node was launched since the NodePool or its EC2NodeClass was last changed")
	case s.holdMessage != "":
		reason := karpv1.ReasonRegistrationFailed
		if s.holdCheck != "" {
			reason = poolhealth.ReasonOfCheck(s.holdCheck)
		}
		c.SetFalse(now, karpv1.ConditionNodeRegistrationHealthy, reason, s.holdMessage)
	case recorded == 0: // the condition stays as it is
	case s.launches.IsHealthy():
		c.SetTrue(now, karpv1.ConditionNodeRegistrationHealthy)
	default:
		c.SetFalse(now, karpv1.ConditionNodeRegistrationHealthy, karpv1.ReasonRegistrationFailed, poolhealth.OutcomesText(s.launches))
	}
	if s.class != nil {
		pool.Status.NodeClassObservedGeneration = s.class.Generation
	}
}

// isChanged reports whether the pool's registration condition is missing, or belongs to an earlier generation of the
// pool or its class.
func isChanged(pool *karpv1.NodePool, class *awsv1.EC2NodeClass) bool {
	c, ok := pool.StatusConditions().Find(karpv1.ConditionNodeRegistrationHealthy)
	return !ok || c.ObservedGeneration != pool.Generation ||
		class != nil && pool.Status.NodeClassObservedGeneration != class.Generation
}

func (s PoolInput) writeClass(pool *karpv1.NodePool, c karpv1.ConditionSet, now time.Time) {
	name := pool.Spec.Template.Spec.NodeClassRef.Name
	switch {
	case s.class == nil:
		c.SetFalse(now, karpv1.ConditionNodeClassReady, karpv1.ReasonNodeClassNotFound,
			"there is no EC2NodeClass "+name+": create it, or correct spec.template.spec.nodeClassRef")
		return
	case s.class.DeletionTimestamp != nil:
		c.SetFalse(now, karpv1.ConditionNodeClassReady, karpv1.ReasonNodeClassTerminating, "the EC2NodeClass "+name+" is being deleted")
		return
	case s.class.StatusConditions().IsReady():
		c.SetTrue(now, karpv1.ConditionNodeClassReady)
		return
	}
	ready, ok := s.class.StatusConditions().Find(karpv1.ConditionReady)
	if !ok || ready.Status != "False" || ready.ObservedGeneration != s.class.Generation {
		c.SetUnknown(now, karpv1.ConditionNodeClassReady, karpv1.ReasonNodeClassReadinessUnknown,
			"the EC2NodeClass "+name+" is not reconciled yet")
		return
	}
	message := ready.Message
	if validation, ok := s.class.StatusConditions().Find(awsv1.ConditionValidationSucceeded); ok &&
		validation.Status == metav1.ConditionFalse && poolhealth.IsOfCheck(validation) { // a preflight check found the cause
		message = "the EC2NodeClass " + name + ": " + validation.Message
	}
	c.SetFalse(now, karpv1.ConditionNodeClassReady, ready.Reason, message)
}

// cause returns why the pool is not ready; empty if it is ready.
func (s PoolInput) cause() string {
	switch {
	case s.problems != "":
		return s.problems
	case s.class == nil:
		return "its EC2NodeClass does not exist"
	}
	ready, _ := s.class.StatusConditions().Find(karpv1.ConditionReady)
	return ready.Message
}

// sameAmounts reports whether the amounts are equal regardless of their format: 1 is equal to 1000m.
func sameAmounts(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, amount := range a {
		other, ok := b[name]
		if !ok || amount.Cmp(other) != 0 {
			return false
		}
	}
	return true
}

func (p *Reconciler) measure(pool *karpv1.NodePool, seen PoolInput) {
	p.Metrics.Cost.WithLabelValues(pool.Name).Set(seen.cost.Dollars())
	for _, capacityType := range []string{catalog.OnDemand, catalog.Spot, catalog.Reserved} {
		p.Metrics.ByCapacityType.WithLabelValues(pool.Name, capacityType).Set(float64(seen.byType[capacityType]))
	}
	for name, amount := range pool.Status.Resources {
		p.Metrics.Usage.WithLabelValues(string(name), pool.Name).Set(amount.AsApproximateFloat64())
	}
	for name, amount := range pool.Spec.Limits {
		p.Metrics.Limit.WithLabelValues(string(name), pool.Name).Set(amount.AsApproximateFloat64())
	}
}

// forget drops the metrics and the back-off of a deleted pool.
func (p *Reconciler) forget(name string) {
	labels := map[string]string{"nodepool": name}
	p.Metrics.Usage.DeletePartialMatch(labels)
	p.Metrics.Limit.DeletePartialMatch(labels)
	p.Metrics.Allowed.DeletePartialMatch(labels)
	p.Metrics.Cost.DeletePartialMatch(labels)
	p.Metrics.ByCapacityType.DeletePartialMatch(labels)
	p.Metrics.Join.DeletePartialMatch(labels)
	p.Metrics.JoinFailures.DeletePartialMatch(labels)
	p.failures.Clear(name)
}

// PoolsOfClass returns the sorted names of the pools that use a class.
func PoolsOfClass(pools []karpv1.NodePool, class string) []string {
	var out []string
	for _, p := range pools {
		if ref := p.Spec.Template.Spec.NodeClassRef; ref != nil && ref.Name == class {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return out
}

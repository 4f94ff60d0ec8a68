package nodeclaim

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption/drain"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/metrics"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

type claimFinder interface {
	ClaimsOf(ctx context.Context, providerID string) ([]*karpv1.NodeClaim, error)
}

// OrphanReconciler drains and terminates deleted Nodes that have our finalizer but no NodeClaim. Without
// OrphanReconciler, their deletion would never complete. Reconciler handles Nodes with a claim.
type OrphanReconciler struct {
	Cache     client.Reader       // reads objects from the informers
	Finder    claimFinder         // finds the claims of a Node
	Cluster   loop.NodeReader     // reads Nodes and their pods from the informers
	Objects   loop.ObjectWriter   // writes objects to the API server
	Evictor   Evictor             // evicts and deletes pods
	Instances loop.InstanceClient // describes and terminates instances
	Events    loop.EventRecorder  // emits events
	Metrics   *metrics.Metrics    // the metrics of this process
	Log       *slog.Logger        // the log of this process

	failures loop.Backoff // back-off by name of the Node
}

// Reconcile does the next steps for one Node without a claim.
func (o *OrphanReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	until, err := o.visit(ctx, request.Name)
	return loop.ResultOf(loop.Outcome{
		Loop: "node", Kind: "Node", Name: request.Name, Until: until, Err: err,
		Failures: &o.failures, Metrics: o.Metrics, Log: o.Log,
	})
}

// visit carries out the next step for the Node. It returns when to continue.
func (o *OrphanReconciler) visit(ctx context.Context, name string) (time.Time, error) {
	// 1. read
	node := &corev1.Node{}
	err := o.Cache.Get(ctx, client.ObjectKey{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return time.Time{}, nil
	}
	if err != nil || !IsOrphan(node) {
		return time.Time{}, err
	}
	claims, err := o.Finder.ClaimsOf(ctx, node.Spec.ProviderID)
	if err != nil {
		return time.Time{}, err
	}
	now := time.Now()
	if len(claims) > 0 {
		// The reconciler of a claim drains the Node that the claim was registered with.
		if !slices.ContainsFunc(claims, func(c *karpv1.NodeClaim) bool { return handlesDeletion(c, node) }) {
			return time.Time{}, o.releaseWithoutDrain(ctx, node, "its NodeClaim was registered with another Node")
		}
		return time.Time{}, nil
	}
	seen, drainStep, err := o.see(ctx, node, now)
	if err != nil {
		return time.Time{}, err
	}
	if seen.Node.Mismatch != "" {
		return time.Time{}, o.releaseWithoutDrain(ctx, node, seen.Node.Mismatch)
	}
	// 2. decide
	step := lifecycle.Next(seen, now)
	// 3. act, 4. report
	return step.Until, o.act(ctx, node, step, drainStep, now)
}

// handlesDeletion reports whether the claim handles the deletion of the Node. It does in two cases: the claim was
// registered with the Node, or the claim owns the Node and was deleted before its registration.
func handlesDeletion(c *karpv1.NodeClaim, node *corev1.Node) bool {
	return isRegistered(c, node) || c.DeletionTimestamp != nil && isOwnedBy(node, c) && c.Status.NodeName == ""
}

// releaseWithoutDrain removes our finalizer from a deleted Node that does not belong to the instance in its provider
// ID. The instance is not touched.
func (o *OrphanReconciler) releaseWithoutDrain(ctx context.Context, node *corev1.Node, why string) error {
	_, err := o.Objects.PatchNode(ctx, node, removeFinalizer)
	if err != nil && kubeclient.Classify(err) != kubeclient.Gone {
		return err
	}
	o.Log.Warn("removed the finalizer of a deleted Node that has the provider ID of an instance and is not the Node of that instance", "Node", node.Name, "providerID", node.Spec.ProviderID, "cause", why)
	return nil
}

// IsOrphan reports whether this loop handles the Node if it has no claim: the Node is being deleted, and has our
// finalizer and node class label.
func IsOrphan(node *corev1.Node) bool {
	return node.DeletionTimestamp != nil && node.Labels[awsv1.LabelNodeClass] != "" &&
		slices.Contains(node.Finalizers, karpv1.FinalizerTermination)
}

// see reads the input of the decision about the Node, and the next step of its drain.
func (o *OrphanReconciler) see(ctx context.Context, node *corev1.Node, now time.Time) (lifecycle.Observation, drain.Step, error) {
	seen := lifecycle.Observation{Node: nodeSeen(&karpv1.NodeClaim{}, []*corev1.Node{node})}
	seen.Instance.State = lifecycle.InstanceAbsent
	if id, ok := ec2.ParseProviderID(node.Spec.ProviderID); ok {
		instance, err := o.Instances.Instance(ctx, id)
		if err != nil && !awserr.Is(err, awserr.Gone) {
			return seen, drain.Step{}, err
		}
		if err == nil {
			seen.Instance = instanceSeen(instance)
			seen.Node.Mismatch, err = o.mismatch(ctx, node, instance)
		}
		if err != nil && !awserr.Is(err, awserr.Gone) {
			return seen, drain.Step{}, err
		}
	}
	pods, err := o.Cluster.PodsOn(ctx, node.Name)
	if err != nil {
		return seen, drain.Step{}, err
	}
	var drainPods []drain.Pod
	for _, pod := range pods {
		drainPods = append(drainPods, nodestate.DrainPodOf(pod))
	}
	step := drain.Next(drainPods, time.Time{}, now) // zero: no deadline
	seen.Node.Pods = step.Waiting
	return seen, step, nil
}

// mismatch returns why the Node is not confirmed as the Node of the instance; empty if it is, or if the instance has
// ended.
func (o *OrphanReconciler) mismatch(ctx context.Context, node *corev1.Node, i ec2.Instance) (string, error) {
	if i.State.Ended() {
		return "", nil
	}
	var class awsv1.EC2NodeClass
	err := o.Cache.Get(ctx, client.ObjectKey{Name: node.Labels[awsv1.LabelNodeClass]}, &class)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	verdict, why := InstanceIdentity(i, &class).Judge(ClaimantOf(node))
	if verdict == lifecycle.IdentityMatches {
		return "", nil
	}
	return why, nil
}

func (o *OrphanReconciler) act(ctx context.Context, node *corev1.Node, step lifecycle.Step, drainStep drain.Step, now time.Time) error {
	switch step.Action {
	case lifecycle.Cordon:
		_, err := o.Objects.PatchNode(ctx, node, nodestate.Cordon)
		return err
	case lifecycle.Evict:
		e := eviction{evictor: o.Evictor, events: o.Events, metrics: o.Metrics, log: o.Log}
		return e.run(ctx, node, drainStep, "Orphaned")
	case lifecycle.Terminate:
		id, _ := ec2.ParseProviderID(node.Spec.ProviderID)
		return o.Instances.Terminate(ctx, id, ec2.ByProviderID)
	case lifecycle.RemoveNodeFinalizer:
		return releaseNode(ctx, o.Objects, o.Metrics, node.Labels[karpv1.LabelNodePool], node, now)
	default:
	}
	return nil
}

func removeFinalizer(n *corev1.Node) {
	n.Finalizers = slices.DeleteFunc(slices.Clone(n.Finalizers), func(f string) bool { return f == karpv1.FinalizerTermination })
}

// releaseNode removes our finalizer from the Node, and counts the termination of the node.
func releaseNode(ctx context.Context, objects loop.ObjectWriter, m *metrics.Metrics, pool string, node *corev1.Node, now time.Time) error {
	_, err := objects.PatchNode(ctx, node, removeFinalizer)
	if err != nil && kubeclient.Classify(err) != kubeclient.Gone {
		return err
	}
	m.Nodes.Terminated.WithLabelValues(pool, node.Labels[corev1.LabelTopologyZone]).Inc()
	m.Nodes.Lifetime.WithLabelValues(pool).Observe(now.Sub(node.CreationTimestamp.Time).Seconds())
	if node.DeletionTimestamp == nil {
		return errors.New("release node " + node.Name + ": it is not being deleted")
	}
	m.Nodes.Termination.WithLabelValues(pool).Observe(now.Sub(node.DeletionTimestamp.Time).Seconds())
	return nil
}

package nodeclaim

import (
	"context"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/diagnoser"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/kube/writer"
	"github.com/joiner-sh/joiner/internal/metrics"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// Evictor evicts and deletes pods.
type Evictor interface {
	Evict(ctx context.Context, pod writer.PodRef) (writer.Eviction, error)
	DeletePod(ctx context.Context, pod writer.PodRef, grace int64) error
}

// InstanceLauncher launches instances and finds the instances of earlier launches.
type InstanceLauncher interface {
	Launch(ctx context.Context, request ec2.LaunchRequest) (ec2.Launch, error)
	LaunchedFor(ctx context.Context, claim string) ([]ec2.Instance, error)
}

// Reconciler reconciles NodeClaims from their creation to their deletion.
type Reconciler struct {
	Cache         client.Reader             // reads objects from the informers
	Cluster       loop.NodeReader           // reads Nodes and their pods from the informers
	Objects       loop.ObjectWriter         // writes objects to the API server
	Evictor       Evictor                   // evicts and deletes pods
	Binder        Binder                    // binds and nominates pods to new Nodes, which are tainted until then; nil: no such taint
	Pods          *nodestate.PodWatch       // the attempts and bindings of kube-scheduler; nil: unknown
	Launcher      InstanceLauncher          // launches instances and finds earlier launches
	Instances     loop.InstanceClient       // describes and terminates instances
	Offers        *offerings.RequestBuilder // builds launch requests
	Ledger        *snapshot.Ledger          // claims created by this process that the cache may not show yet
	Batch         *loop.Batch               // collects requests for the next plan; a lost node requests a plan at once
	LaunchBackoff *poolhealth.LaunchBackoff // pools whose launches are on hold
	PodBackoff    *poolhealth.PodBackoff    // back-off of pods that stay pending although their new nodes are ready
	// Replacements launches nodes for the pods of an expired node before that node is drained. Nil: expired nodes are
	// drained without replacement.
	Replacements *Replacements
	// Repair finds the nodes that have been unhealthy for too long; nil disables node auto repair.
	Repair *Repair
	// Registrations records how launches end; nil disables it.
	Registrations *poolhealth.Registrations
	// Drift records nodes that failed to join or to initialize; nil disables it.
	Drift *driftcheck.Reconciler
	// Authority is the cluster's certificate authority in base64. Drift hashes include it.
	Authority string
	// Diagnoses explains why claims are late; nil disables it.
	Diagnoses *diagnoser.Diagnoser
	Events    loop.EventRecorder // emits events
	Metrics   *metrics.Metrics   // the metrics of this process
	Log       *slog.Logger       // the log of this process
	Now       loop.Clock         // the clock; nil uses time.Now

	attempts attempts
	assumed  assumedPods
	Newest   loop.NewestVersions // latest versions of claims that this process wrote; the zero value is empty
	absences loop.ClaimsSince    // claims whose Node is missing
	refusals refusals            // reports about Nodes with a claim's provider ID that are not the claim's Node
	// Edits limits, by pool name, how often a NodePool's claims are replaced after an edit of the pool or its class.
	// The cause of an entry is the trigger of the last replacement: the configuration after the edit, or the time at
	// which the problem that kept the instance from joining was fixed.
	Edits    loop.Backoff
	untagged loop.ClaimsSince // deleted claims whose instance has lost its tags
	leaving  loop.ClaimsSince // claims whose Node is being deleted
	openable loop.ClaimsSince // claims whose Node is ready and still closed by the taint for nominations
	openings openings         // the order in which the Nodes of openable are opened
	// bindAttempts has the pods that are bound to the Nodes of openable.
	bindAttempts bindAttempts
	turns        sequences    // moves that evict their pods in order
	failures     loop.Backoff // back-off by claim name
}

// maxSteps limits the steps of one reconciliation, in case a step does not change the state that it should change.
const maxSteps = 10

// Reconcile carries out as many steps for one claim as possible.
func (c *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim, err := c.Read(ctx, request.Name)
	if claim == nil || err != nil {
		return c.outcome(request.Name, time.Time{}, err)
	}
	if !nodestate.IsServed(claim.Spec.NodeClassRef) {
		return reconcile.Result{}, nil // another controller serves the claim
	}
	until, err := c.advance(ctx, claim)
	return c.outcome(request.Name, until, err)
}

// Read returns the newest known version of the claim, or nil if the claim is gone. The cache may lag behind this
// controller's own writes.
func (c *Reconciler) Read(ctx context.Context, name string) (*karpv1.NodeClaim, error) {
	claim := &karpv1.NodeClaim{}
	err := c.Cache.Get(ctx, client.ObjectKey{Name: name}, claim)
	if apierrors.IsNotFound(err) {
		if uid, ok := c.Newest.Forget(name); ok {
			c.attempts.forget(uid)
		}
		c.failures.Clear(name)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c.Replacements.noteLost(claim)
	return c.Newest.Of(claim), nil
}

// advance carries out steps until a step must wait. It returns when to continue; the zero time means after the next
// change of an object.
func (c *Reconciler) advance(ctx context.Context, claim *karpv1.NodeClaim) (time.Time, error) {
	for range maxSteps {
		// 1. read
		now := c.Now.Now()
		v, err := c.observe(ctx, claim, now)
		if err != nil {
			return time.Time{}, err
		}
		// 2. decide
		step := lifecycle.Next(v.seen, now)
		// 3. act, 4. report
		next, err := c.act(ctx, v, step, now)
		if next != nil {
			c.Newest.Note(next)
			claim = next
		}
		mustWait := step.Action == lifecycle.Wait || !step.Until.IsZero() || next == nil
		if err != nil || mustWait {
			if v.drain.Held && err == nil { // the other pods wait for their turns
				return now.Add(TurnPoll), nil
			}
			return step.Until, err
		}
	}
	return c.Now.Now().Add(time.Second), nil
}

// act carries out the step. It returns the claim after the step, or nil if nothing more can be done now.
func (c *Reconciler) act(ctx context.Context, v View, step lifecycle.Step, now time.Time) (*karpv1.NodeClaim, error) {
	switch step.Action {
	case lifecycle.AddFinalizer:
		return c.Objects.PatchClaim(ctx, v.Claim, addFinalizer)
	case lifecycle.AddLabels:
		return c.label(ctx, v)
	case lifecycle.Launch:
		return c.Launch(ctx, v, now)
	case lifecycle.Record:
		return c.recordFound(ctx, v, now)
	case lifecycle.Register:
		return c.register(ctx, v, now)
	case lifecycle.AddNodeFinalizer, lifecycle.BindPods, lifecycle.CordonForPods, lifecycle.RemoveNominationTaint:
		return c.actOnRegistered(ctx, v, step, now)
	case lifecycle.Initialize:
		return c.initialize(ctx, v, now)
	case lifecycle.Replace:
		return c.replace(ctx, v, now)
	case lifecycle.DropStrays:
		return nil, c.dropStrays(ctx, v)
	case lifecycle.Delete:
		return nil, c.delete(ctx, v, step)
	case lifecycle.SetDeadline:
		return c.setDeadline(ctx, v)
	case lifecycle.DeleteNode, lifecycle.Cordon, lifecycle.Evict, lifecycle.RemoveNodeFinalizer:
		return nil, c.actOnLeavingNode(ctx, v, step, now)
	case lifecycle.Terminate:
		return c.terminate(ctx, v, now)
	case lifecycle.RemoveFinalizer:
		return nil, c.release(ctx, v, now)
	case lifecycle.Wait:
	}
	return c.wait(ctx, v, step, now)
}

// outcome turns the result of a reconciliation into the time of the next one. It logs each error in one line, once for
// each cause.
func (c *Reconciler) outcome(name string, until time.Time, err error) (reconcile.Result, error) {
	return loop.ResultOf(loop.Outcome{
		Loop: "nodeclaim", Kind: "NodeClaim", Name: name, Until: until, Err: err,
		Failures: &c.failures, Metrics: c.Metrics, Log: c.Log, Now: c.Now,
	})
}

func addFinalizer(claim *karpv1.NodeClaim) {
	claim.Finalizers = append(claim.Finalizers, karpv1.FinalizerTermination)
}

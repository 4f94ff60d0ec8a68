package controller

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/kube"
	"github.com/joiner-sh/joiner/internal/metrics"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// nodeReader sees what belongs to a machine or a Node.
type nodeReader interface {
	NodesOf(ctx context.Context, providerID string) ([]*corev1.Node, error)
	PodsOn(ctx context.Context, node string) ([]*corev1.Pod, error)
	AttachmentsOn(ctx context.Context, node string) ([]*storagev1.VolumeAttachment, error)
}

// objectWriter changes claims and Nodes.
type objectWriter interface {
	PatchClaim(ctx context.Context, claim *karpv1.NodeClaim, change func(*karpv1.NodeClaim)) (*karpv1.NodeClaim, error)
	PatchNode(ctx context.Context, node *corev1.Node, change func(*corev1.Node)) (*corev1.Node, error)
	Delete(ctx context.Context, object client.Object) error
}

// evictor asks pods to leave.
type evictor interface {
	Evict(ctx context.Context, pod kube.PodRef) (kube.Eviction, error)
	DeletePod(ctx context.Context, pod kube.PodRef, grace int64) error
}

// buyer buys machines and finds what it bought.
type buyer interface {
	Launch(ctx context.Context, request ec2.LaunchRequest) (ec2.Launch, error)
	Bought(ctx context.Context, claim string) ([]ec2.Instance, error)
}

// machines looks at machines and ends them.
type machines interface {
	Instance(ctx context.Context, id string) (ec2.Instance, error)
	Terminate(ctx context.Context, id string, proof ec2.Proof) error
	OwnTags(nodePool, nodeClass, claim string) map[string]string
}

// Claims takes each NodeClaim a step further, from its creation to its end.
type Claims struct {
	Cache    client.Reader // informers
	Cluster  nodeReader
	Objects  objectWriter
	Evictor  evictor
	Buyer    buyer
	Machines machines
	Offers   *Offers
	Ledger   *kube.Ledger
	Batch    *Batch // hurried when pods must be planned anew
	Holds    *Holds
	Unhelped *Unhelped
	// Replacements are asked for before expired nodes go; nil: these go without.
	Replacements *Replacements
	// Repair finds the nodes that are unwell for too long; nil: nobody looks.
	Repair *Repair
	// Registrations are told how launches end; nil: nobody wants to know.
	Registrations *Registrations
	// Drift is told of nodes that do not become fit for pods; nil: nobody wants to know.
	Drift *Drift
	// Authority is the cluster's certificate authority, in base64, as drift hashes know it.
	Authority string
	// Late says why claims are late; nil: nobody knows.
	Late    *Diagnoses
	Tell    teller
	Metrics *metrics.Metrics
	Log     *slog.Logger
	Now     Clock

	attempts attempts
	newest   newest
	absences absences
	refusals refusals // Nodes that are not their instance's
	edits    Backoff  // by NodePool: replacements of claims that it or its class has outdated; the cause is what they give now
	untagged absences // claims that leave and whose instance has lost its tags
	leaving  absences // since when the Node of a claim is being deleted
	turns    sequences
	failures Backoff
}

// mostSteps bounds how many steps one visit takes, should a step ever not change what it is to change.
const mostSteps = 10

// Reconcile takes one claim as far as it goes now.
func (c *Claims) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim, err := c.read(ctx, request.Name)
	if claim == nil || err != nil {
		return c.outcome(request.Name, time.Time{}, err)
	}
	if !isServed(claim.Spec.NodeClassRef) {
		return reconcile.Result{}, nil // another controller's
	}
	until, err := c.advance(ctx, claim)
	return c.outcome(request.Name, until, err)
}

// read returns the claim as it is known best; nil if it is gone. The cache may be behind what this loop wrote last.
func (c *Claims) read(ctx context.Context, name string) (*karpv1.NodeClaim, error) {
	claim := &karpv1.NodeClaim{}
	err := c.Cache.Get(ctx, client.ObjectKey{Name: name}, claim)
	if apierrors.IsNotFound(err) {
		if uid, ok := c.newest.forget(name); ok {
			c.attempts.forget(uid)
		}
		c.failures.Clear(name)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c.Replacements.lose(claim)
	return c.newest.of(claim), nil
}

// advance takes step after step until one has to wait. It returns until when; zero for a change.
func (c *Claims) advance(ctx context.Context, claim *karpv1.NodeClaim) (time.Time, error) {
	for range mostSteps {
		// 1. read
		now := c.Now.now()
		v, err := c.see(ctx, claim, now)
		if err != nil {
			return time.Time{}, err
		}
		// 2. decide
		step := lifecycle.Next(v.seen, now)
		// 3. act, 4. tell
		next, err := c.act(ctx, v, step, now)
		if next != nil {
			c.newest.note(next)
			claim = next
		}
		if err != nil || step.Action == lifecycle.Wait || !step.Until.IsZero() || next == nil {
			if v.drain.Held && err == nil {
				return now.Add(turnPoll), nil
			}
			return step.Until, err
		}
	}
	return c.Now.now().Add(time.Second), nil
}

// act does what the step says. It returns the claim as it is then, nil if there is nothing more to do for now.
func (c *Claims) act(ctx context.Context, v view, step lifecycle.Step, now time.Time) (*karpv1.NodeClaim, error) {
	switch step.Action {
	case lifecycle.Hold:
		return c.Objects.PatchClaim(ctx, v.claim, hold)
	case lifecycle.Label:
		return c.label(ctx, v)
	case lifecycle.Launch:
		return c.launch(ctx, v, now)
	case lifecycle.Record:
		return c.recordFound(ctx, v, now)
	case lifecycle.Register:
		return c.register(ctx, v, now)
	case lifecycle.HoldNode:
		return c.holdNode(ctx, v)
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
	case lifecycle.DeleteNode, lifecycle.Cordon, lifecycle.Evict, lifecycle.ReleaseNode:
		return nil, c.leave(ctx, v, step, now)
	case lifecycle.Terminate:
		return c.terminate(ctx, v, now)
	case lifecycle.Release:
		return nil, c.release(ctx, v, now)
	}
	return c.wait(ctx, v, step, now)
}

// outcome turns the end of a visit into when to come back. Errors are told here, once for each cause, in one line.
func (c *Claims) outcome(name string, until time.Time, err error) (reconcile.Result, error) {
	return outcome(outcomeOf{
		loop: "nodeclaim", kind: "NodeClaim", name: name, until: until, err: err,
		failures: &c.failures, metrics: c.Metrics, log: c.Log, now: c.Now,
	})
}

// isServed reports whether a node class is one that this controller knows, and not that of another cloud's controller.
func isServed(ref *karpv1.NodeClassReference) bool {
	return ref != nil && ref.Group == awsv1.Group && ref.Kind == awsv1.Kind
}

func hold(claim *karpv1.NodeClaim) {
	claim.Finalizers = append(claim.Finalizers, karpv1.FinalizerTermination)
}

package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
	"github.com/joiner-sh/joiner/internal/controller/nodepool"
	"github.com/joiner-sh/joiner/internal/kube/writer"
)

// makeStatic sets the number of replicas and the limit of nodes of the pool, and creates the loop of static pools.
func (r *rig) makeStatic(t *testing.T, replicas, limit int64) {
	t.Helper()
	pool := &karpv1.NodePool{}
	if err := r.api.Get(t.Context(), client.ObjectKey{Name: "apps"}, pool); err != nil {
		t.Fatal(err)
	}
	pool.Spec.Replicas = &replicas
	pool.Spec.Limits = corev1.ResourceList{karpv1.ResourceNodes: *resource.NewQuantity(limit, resource.DecimalSI)}
	if err := r.api.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	r.Claims.Replacements.Statics = true
	r.Statics = &nodepool.StaticReconciler{
		Cache: r.api, Cluster: r.Claims.Cluster, Claims: r.Claims.Objects.(*writer.Writer), Objects: r.Claims.Objects, Ledger: r.Claims.Ledger,
		LaunchBackoff: r.Claims.LaunchBackoff, Events: r.events, Metrics: r.Claims.Metrics, Log: r.Claims.Log, Now: r.now,
	}
}

// reconcileStaticPool reconciles the pool once, and returns the time until its next reconcile.
func (r *rig) reconcileStaticPool(t *testing.T) time.Duration {
	t.Helper()
	result, err := r.Statics.Reconcile(t.Context(), named("apps"))
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

func (r *rig) remainingClaims(t *testing.T) (out []karpv1.NodeClaim) {
	t.Helper()
	for _, c := range r.claims(t) {
		if c.DeletionTimestamp == nil {
			out = append(out, c)
		}
	}
	return out
}

// TestStaticPoolKeepsItsSize: the pool has as many nodes as spec.replicas and limits.nodes allow, without any pod.
func TestStaticPoolKeepsItsSize(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.makeStatic(t, 3, 4)
	if wait := r.reconcileStaticPool(t); len(r.claims(t)) != 0 || wait > nodepool.NotReadyEvery {
		t.Fatalf("a pool that is not ready has %d claims, want none, and is reconciled again in %s", len(r.claims(t)), wait)
	}
	r.reconcileClassAndPool(t)
	for range 2 {
		if r.reconcileStaticPool(t); len(r.claims(t)) != 3 {
			t.Fatalf("%d claims, want 3\n%s", len(r.claims(t)), r.log)
		}
	}
	r.reconcileClaims(t)
	r.join(t)
	r.reconcileClaims(t)
	r.reconcileClassAndPool(t)
	var pool karpv1.NodePool
	if err := r.api.Get(t.Context(), client.ObjectKey{Name: "apps"}, &pool); err != nil || pool.Status.Nodes != 3 {
		t.Errorf("the status of the pool has %d nodes, want 3; %v", pool.Status.Nodes, err)
	}
	if len(r.nodes(t)) != 3 || len(r.instances()) != 3 {
		t.Fatalf("%d nodes and %d instances, want 3 each\n%s", len(r.nodes(t)), len(r.instances()), r.log)
	}
	r.removeEmptyNodes(t)
	if len(r.remainingClaims(t)) != 3 {
		t.Fatalf("empty nodes of a static pool were removed\n%s", r.log)
	}

	r.makeStatic(t, 6, 4)
	if wait := r.reconcileStaticPool(t); len(r.claims(t)) != 4 || wait > nodepool.LimitedEvery {
		t.Fatalf("%d claims with 6 replicas and a limit of 4, want 4; reconciled again in %s\n%s", len(r.claims(t)), wait, r.log)
	}

	busy := r.nodes(t)[0].Name
	pod := resident("web", "ReplicaSet", "")
	pod.Spec.NodeName, pod.Status.Phase = busy, corev1.PodRunning
	r.create(t, pod)
	r.makeStatic(t, 1, 4)
	r.reconcileStaticPool(t)
	remaining := r.remainingClaims(t)
	if len(remaining) != 1 || remaining[0].Status.NodeName != busy {
		t.Fatalf("%d claims remain, the first on Node %s; want only that of %s, which runs a pod\n%s", len(remaining),
			remaining[0].Status.NodeName, busy, r.log)
	}
	if err := r.api.Delete(t.Context(), r.claim(t, remaining[0].Name)); err != nil {
		t.Fatal(err)
	}
	if r.reconcileStaticPool(t); len(r.remainingClaims(t)) != 0 {
		t.Errorf("a claim is created although the four old nodes, which use up the limit, are not gone yet")
	}
	for range 60 {
		r.ahead += r.reconcileClaims(t)
	}
	if r.reconcileStaticPool(t); len(r.claims(t)) != 1 {
		t.Errorf("%d claims after the old nodes are gone, want a new one\n%s", len(r.claims(t)), r.log)
	}
}

// TestExpiredStaticNode: an expired node of a static pool is deleted when its replacement in the pool is ready, and is
// not tainted before the replacement is created. If the limit of nodes allows no replacement, the node is deleted at
// once.
func TestExpiredStaticNode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit int64
		waits bool
	}{
		"room for one more": {3, true},
		"no room":           {2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			r.reconcileClassAndPool(t)
			r.makeStatic(t, 2, c.limit)
			r.reconcileStaticPool(t)
			r.reconcileClaims(t)
			r.join(t)
			r.reconcileClaims(t)
			claims := r.claims(t)
			old := claims[0].Name
			pod := resident("web", "ReplicaSet", "")
			pod.Spec.NodeName, pod.Status.Phase = claims[0].Status.NodeName, corev1.PodRunning
			r.create(t, pod)
			r.age(t, old, tooOld)
			r.makeStatic(t, 2, c.limit) // age has started new loops
			r.reconcileClaim(t, old)
			if waits := r.claim(t, old).DeletionTimestamp == nil; waits != c.waits {
				t.Fatalf("the expired node waits for its replacement: %t, want %t\n%s", waits, c.waits, r.log)
			}
			if !c.waits {
				return
			}
			for _, node := range r.nodes(t) {
				if nodeclaim.HasTaint(&node, karpv1.TaintDisrupted) {
					t.Error("the node is tainted before it has a replacement")
				}
			}
			r.reconcileStaticPool(t)
			r.reconcileClaim(t, old)
			if n := len(r.remainingClaims(t)); n != 3 {
				t.Fatalf("%d claims, want the two old ones and the replacement\n%s", n, r.log)
			}
			r.reconcileClaims(t)
			r.join(t)
			r.reconcileClaims(t)
			r.reconcileClaims(t)
			if r.claim(t, old).DeletionTimestamp == nil || len(r.remainingClaims(t)) != 2 {
				t.Errorf("the replacement is ready, but not only the old node is deleted\n%s", r.log)
			}
		})
	}
}

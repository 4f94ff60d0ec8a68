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

// static makes the pool static with the given number of replicas and limit of nodes, and creates its loop.
func (r *rig) static(t *testing.T, replicas, limit int64) {
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
		Holds: r.Claims.Holds, Events: r.events, Metrics: r.Claims.Metrics, Log: r.Claims.Log, Now: r.now,
	}
}

// keep reconciles the pool once, and returns when the pool is due again.
func (r *rig) keep(t *testing.T) time.Duration {
	t.Helper()
	result, err := r.Statics.Reconcile(t.Context(), named("apps"))
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

// staying returns the claims that are not being deleted.
func (r *rig) staying(t *testing.T) (out []karpv1.NodeClaim) {
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
	r.static(t, 3, 4)
	if wait := r.keep(t); len(r.claims(t)) != 0 || wait > nodepool.NotReadyEvery {
		t.Fatalf("nodes of a pool that is not ready, reconciled again in %s", wait)
	}
	r.classes(t)
	for range 2 {
		if r.keep(t); len(r.claims(t)) != 3 {
			t.Fatalf("%d claims, want 3\n%s", len(r.claims(t)), r.log)
		}
	}
	r.work(t)
	r.join(t)
	r.work(t)
	r.classes(t)
	var pool karpv1.NodePool
	if err := r.api.Get(t.Context(), client.ObjectKey{Name: "apps"}, &pool); err != nil || pool.Status.Nodes != 3 {
		t.Errorf("condition of the pool: it has %d nodes, %v", pool.Status.Nodes, err)
	}
	if len(r.nodes(t)) != 3 || len(r.instances()) != 3 {
		t.Fatalf("%d nodes, %d instances\n%s", len(r.nodes(t)), len(r.instances()), r.log)
	}
	r.empty(t)
	if len(r.staying(t)) != 3 {
		t.Fatalf("empty nodes of a static pool were removed\n%s", r.log)
	}

	r.static(t, 6, 4)
	if wait := r.keep(t); len(r.claims(t)) != 4 || wait > nodepool.LimitedEvery {
		t.Fatalf("%d claims within a limit of 4 nodes, reconciled again in %s\n%s", len(r.claims(t)), wait, r.log)
	}

	busy := r.nodes(t)[0].Name
	pod := resident("web", "ReplicaSet", "")
	pod.Spec.NodeName, pod.Status.Phase = busy, corev1.PodRunning
	r.create(t, pod)
	r.static(t, 1, 4)
	r.keep(t)
	left := r.staying(t)
	if len(left) != 1 || left[0].Status.NodeName != busy {
		t.Fatalf("%d claims stay, the first is that of %q; %q runs pods\n%s", len(left), left[0].Status.NodeName, busy, r.log)
	}
	if err := r.api.Delete(t.Context(), r.claim(t, left[0].Name)); err != nil {
		t.Fatal(err)
	}
	if r.keep(t); len(r.staying(t)) != 0 {
		t.Errorf("the limit of 4 nodes is exceeded while the old ones leave")
	}
	for range 60 {
		r.ahead += r.work(t)
	}
	if r.keep(t); len(r.claims(t)) != 1 {
		t.Errorf("%d claims, want one new one\n%s", len(r.claims(t)), r.log)
	}
}

// TestStaticNodeIsReplacedByItsLike: an expired node of a static pool is replaced by another node of the pool, and is
// not tainted until then.
func TestStaticNodeIsReplacedByItsLike(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit int64
		waits bool
	}{"room for one more": {3, true}, "no room": {2, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			r.classes(t)
			r.static(t, 2, c.limit)
			r.keep(t)
			r.work(t)
			r.join(t)
			r.work(t)
			claims := r.claims(t)
			old := claims[0].Name
			pod := resident("web", "ReplicaSet", "")
			pod.Spec.NodeName, pod.Status.Phase = claims[0].Status.NodeName, corev1.PodRunning
			r.create(t, pod)
			r.age(t, old, tooOld)
			r.static(t, 2, c.limit)
			r.visit(t, old)
			if waits := r.claim(t, old).DeletionTimestamp == nil; waits != c.waits {
				t.Fatalf("it waits for its replacement: %t\n%s", waits, r.log)
			}
			if !c.waits {
				return
			}
			for _, node := range r.nodes(t) {
				if nodeclaim.HasTaint(&node, karpv1.TaintDisrupted) {
					t.Error("the node is closed before there is another")
				}
			}
			r.keep(t)
			r.visit(t, old)
			if n := len(r.staying(t)); n != 3 {
				t.Fatalf("%d claims, want the old two and a new one\n%s", n, r.log)
			}
			r.work(t)
			r.join(t)
			r.work(t)
			r.work(t)
			if r.claim(t, old).DeletionTimestamp == nil || len(r.staying(t)) != 2 {
				t.Errorf("the replacement is ready, but the old node stays\n%s", r.log)
			}
		})
	}
}

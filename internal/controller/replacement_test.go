package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// servingNodes creates the given number of ready nodes with one pod each, and returns their claims, sorted by name.
func (r *rig) servingNodes(t *testing.T, pods ...string) []karpv1.NodeClaim {
	t.Helper()
	r.classes(t)
	for _, name := range pods {
		r.pending(t, name, "1500m", "1Gi")
	}
	r.plan(t)
	r.work(t)
	r.join(t)
	r.work(t)
	claims := r.claims(t)
	for i := range claims {
		if !claims[i].StatusConditions().IsReady() {
			t.Fatalf("%s is not ready\n%s", claims[i].Name, r.log)
		}
		r.run(t, &claims[i])
	}
	return claims
}

// run binds the pods that the claim was created for to the claim's node.
func (r *rig) run(t *testing.T, claim *karpv1.NodeClaim) {
	t.Helper()
	var pods corev1.PodList
	if err := r.api.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, id := range conversion.PodsOf(claim) {
			if id == pod.Namespace+"/"+pod.Name {
				pod.Spec.NodeName, pod.Status = claim.Status.NodeName, corev1.PodStatus{Phase: corev1.PodRunning}
				if err := r.api.Update(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// age makes a claim older.
func (r *rig) age(t *testing.T, name string, by time.Duration) {
	t.Helper()
	claim := r.claim(t, name)
	claim.CreationTimestamp = metav1.NewTime(claim.CreationTimestamp.Add(-by))
	if err := r.api.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	r.start(t) // the process has records of the younger claim
}

// claim returns the claim with the name; nil if the claim is gone.
func (r *rig) claim(t *testing.T, name string) *karpv1.NodeClaim {
	t.Helper()
	for _, c := range r.claims(t) {
		if c.Name == name {
			return &c
		}
	}
	return nil
}

func (r *rig) visit(t *testing.T, name string) time.Duration {
	t.Helper()
	result, err := r.Claims.Reconcile(t.Context(), named(name))
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

// other returns the claim that has another name.
func (r *rig) other(t *testing.T, name string) karpv1.NodeClaim {
	t.Helper()
	for _, c := range r.claims(t) {
		if c.Name != name {
			return c
		}
	}
	t.Fatalf("there is no claim but %s\n%s", name, r.log)
	return karpv1.NodeClaim{}
}

const tooOld = 721 * time.Hour // testPool expires nodes after 720 hours

// TestExpiredNodeIsReplacedFirst: the pods of an expired node run until the node launched for them is ready. A later
// change of the pool's expireAfter does not affect existing claims.
func TestExpiredNodeIsReplacedFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	old := r.servingNodes(t, "web")[0].Name
	r.age(t, old, tooOld)
	r.visit(t, old)
	node := r.nodes(t)[0]
	if !nodeclaim.HasTaint(&node, karpv1.TaintDisrupted) {
		t.Fatalf("new pods may still come to the node that has expired\n%s", r.log)
	}
	if _, ok := node.Labels[karpv1.LabelExcludeFromLoadBalancers]; ok {
		t.Error("the node leaves its load balancers while its pods run on")
	}

	r.plan(t)
	next := r.other(t, old).Name
	for range 3 {
		r.visit(t, old)
	}
	if r.claim(t, old).DeletionTimestamp != nil {
		t.Fatalf("the node is deleted before there is another place for its pod\n%s", r.log)
	}
	if r.events.has("NodeClaim/DisruptionWaitingReadiness") == "" {
		t.Error("no event reports what the node waits for")
	}

	r.visit(t, next)
	r.join(t)
	r.visit(t, next)
	r.visit(t, old)
	if r.claim(t, old).DeletionTimestamp == nil {
		t.Fatalf("the replacement is ready, but the node stays\n%s", r.log)
	}
	for range 50 {
		if r.claim(t, old) == nil {
			break
		}
		r.ahead += min(r.visit(t, old), 30*time.Second)
	}
	m := r.Claims.Metrics
	if counted(t, m.Disrupted, "expired", "apps", "on-demand", "graceful") != 1 ||
		counted(t, m.Displaced, "expired", "apps", "on-demand", "graceful") != 1 {
		t.Error("the metrics do not count one disrupted node and one displaced pod")
	}
	if n := len(r.instances()); r.claim(t, old) != nil || n != 1 || r.claim(t, next).DeletionTimestamp != nil {
		t.Errorf("%d instances are left\n%s", n, r.log)
	}
}

// TestReplacementThatDoesNotCome: without a replacement, nodes stay only a limited time after their expiration.
func TestReplacementThatDoesNotCome(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	old := r.servingNodes(t, "web")[0].Name
	r.age(t, old, tooOld)
	r.visit(t, old)
	r.plan(t)
	r.ahead += lifecycle.ReplaceWithin - time.Minute
	if wait := r.visit(t, old); r.claim(t, old).DeletionTimestamp != nil || wait <= 0 {
		t.Fatalf("it goes before its time, or is not reconciled again: %s\n%s", wait, r.log)
	}
	r.start(t) // the next leader continues from the annotation
	r.ahead += time.Minute
	r.visit(t, old)
	if r.claim(t, old).DeletionTimestamp == nil {
		t.Errorf("it stays\n%s", r.log)
	}
}

// TestWhoseReplacementIsNotWaitedFor covers nodes that are deleted without waiting for a replacement.
func TestWhoseReplacementIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, r *rig)
		stays   bool
	}{
		"with a movable pod": {func(*testing.T, *rig) {}, true},
		"without pods": {func(t *testing.T, r *rig) {
			if err := r.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("ns")); err != nil {
				t.Fatal(err)
			}
		}, false},
		"budget 0": {func(t *testing.T, r *rig) { r.budgets(t, karpv1.Budget{Nodes: "0"}) }, false},
		"budget for empty nodes": {func(t *testing.T, r *rig) {
			r.budgets(t, karpv1.Budget{Nodes: "0", Reasons: []karpv1.DisruptionReason{karpv1.DisruptionEmpty}})
		}, true},
		"not ready": {func(t *testing.T, r *rig) {
			node := r.nodes(t)[0]
			node.Status.Conditions[0].Status = corev1.ConditionUnknown
			if err := r.api.Status().Update(t.Context(), &node); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			old := r.servingNodes(t, "web")[0].Name
			c.prepare(t, r)
			r.age(t, old, tooOld)
			r.visit(t, old)
			if stays := r.claim(t, old).DeletionTimestamp == nil; stays != c.stays {
				t.Errorf("it stays: %t\n%s", stays, r.log)
			}
		})
	}
}

// budgets sets the budgets of the pool.
func (r *rig) budgets(t *testing.T, budgets ...karpv1.Budget) {
	t.Helper()
	pool := &karpv1.NodePool{}
	if err := r.api.Get(t.Context(), client.ObjectKey{Name: "apps"}, pool); err != nil {
		t.Fatal(err)
	}
	pool.Spec.Disruption.Budgets = budgets
	if err := r.api.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
}

// TestBudgetsBoundReplacements: of two nodes that expire together one is replaced first; the other waits for it, but not forever.
func TestBudgetsBoundReplacements(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claims := r.servingNodes(t, "web", "db")
	if len(claims) != 2 {
		t.Fatalf("%d claims", len(claims))
	}
	r.budgets(t, karpv1.Budget{Nodes: "1"})
	for _, c := range claims {
		r.age(t, c.Name, tooOld)
	}
	closed := func() (n int) {
		for _, node := range r.nodes(t) {
			if nodeclaim.HasTaint(&node, karpv1.TaintDisrupted) {
				n++
			}
		}
		return n
	}
	for range 3 {
		r.work(t)
		r.ahead += 2 * nodeclaim.TurnsEvery
	}
	if n := closed(); n != 1 {
		t.Fatalf("%d nodes are being replaced, the budget is 1\n%s", n, r.log)
	}
	r.ahead += lifecycle.ReplaceWithin
	r.work(t)
	for _, c := range r.claims(t) {
		if c.DeletionTimestamp == nil {
			t.Errorf("%s stays\n%s", c.Name, r.log)
		}
	}
}

// TestWaitingIsAtTheCostOfTheGracePeriod: terminationGracePeriod limits the whole termination, including the wait for a replacement.
func TestWaitingIsAtTheCostOfTheGracePeriod(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	old := r.servingNodes(t, "web")[0].Name
	claim := r.claim(t, old)
	claim.Spec.TerminationGracePeriod = &karpv1.Duration{Duration: 8 * time.Minute}
	if err := r.api.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	r.age(t, old, tooOld)
	r.visit(t, old)
	since := nodestate.ReplacingSince(r.claim(t, old))
	if since.IsZero() {
		t.Fatalf("the claim has no time since when it is replaced\n%s", r.log)
	}
	r.ahead += 4 * time.Minute // half of the grace period is left for its pods
	for range 3 {
		r.visit(t, old)
	}
	want := since.Add(8 * time.Minute).UTC().Format(time.RFC3339)
	if got := r.claim(t, old).Annotations[karpv1.AnnotationTerminationTimestamp]; got != want {
		t.Errorf("pods are deleted by force at %q, want %q\n%s", got, want, r.log)
	}
}

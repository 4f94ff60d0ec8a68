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

// createServing creates the named pods and a ready node for each, and binds the pods. It returns the claims, sorted by
// name.
func (r *rig) createServing(t *testing.T, pods ...string) []karpv1.NodeClaim {
	t.Helper()
	r.reconcileClassAndPool(t)
	for _, name := range pods {
		r.addPendingPod(t, name, "1500m", "1Gi")
	}
	r.plan(t)
	r.reconcileClaims(t)
	r.join(t)
	r.reconcileClaims(t)
	claims := r.claims(t)
	for i := range claims {
		if !claims[i].StatusConditions().IsReady() {
			t.Fatalf("%s is not ready\n%s", claims[i].Name, r.log)
		}
		r.bindPodsOf(t, &claims[i])
	}
	return claims
}

func (r *rig) bindPodsOf(t *testing.T, claim *karpv1.NodeClaim) {
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

// age moves the creation of a claim into the past by the duration, and starts new loops.
func (r *rig) age(t *testing.T, name string, by time.Duration) {
	t.Helper()
	claim := r.claim(t, name)
	claim.CreationTimestamp = metav1.NewTime(claim.CreationTimestamp.Add(-by))
	if err := r.api.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	r.start(t) // the old loops have records of the younger claim
}

// claim returns nil if the claim is gone.
func (r *rig) claim(t *testing.T, name string) *karpv1.NodeClaim {
	t.Helper()
	for _, c := range r.claims(t) {
		if c.Name == name {
			return &c
		}
	}
	return nil
}

// reconcileClaim reconciles the claim, even if the claim is gone, and returns the time until its next reconcile.
func (r *rig) reconcileClaim(t *testing.T, name string) time.Duration {
	t.Helper()
	if c := r.claim(t, name); c != nil {
		return r.reconcileUntilOpen(t, *c).RequeueAfter
	}
	if _, err := r.Claims.Reconcile(t.Context(), named(name)); err != nil {
		t.Fatal(err)
	}
	return 0
}

func (r *rig) otherClaim(t *testing.T, name string) karpv1.NodeClaim {
	t.Helper()
	for _, c := range r.claims(t) {
		if c.Name != name {
			return c
		}
	}
	t.Fatalf("there is no claim except %s\n%s", name, r.log)
	return karpv1.NodeClaim{}
}

// tooOld is more than the expireAfter of testPool, 720 hours.
const tooOld = 721 * time.Hour

// TestExpiredNodeIsReplacedFirst: the pods of an expired node stay on it until the node that is launched for them is
// ready.
func TestExpiredNodeIsReplacedFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	old := r.createServing(t, "web")[0].Name
	r.age(t, old, tooOld)
	r.reconcileClaim(t, old)
	node := r.nodes(t)[0]
	if !nodeclaim.HasTaint(&node, karpv1.TaintDisrupted) {
		t.Fatalf("the expired node still accepts new pods\n%s", r.log)
	}
	if _, ok := node.Labels[karpv1.LabelExcludeFromLoadBalancers]; ok {
		t.Error("the node is excluded from load balancers while its pods still run")
	}

	r.plan(t)
	next := r.otherClaim(t, old).Name
	for range 3 {
		r.reconcileClaim(t, old)
	}
	if r.claim(t, old).DeletionTimestamp != nil {
		t.Fatalf("the expired node is deleted before its pod has another node\n%s", r.log)
	}
	if r.events.find("NodeClaim/DisruptionWaitingReadiness") == "" {
		t.Error("no event reports what the node waits for")
	}

	r.reconcileClaim(t, next)
	r.join(t)
	r.reconcileClaim(t, next)
	r.reconcileClaim(t, old)
	if r.claim(t, old).DeletionTimestamp == nil {
		t.Fatalf("the replacement is ready, but the node stays\n%s", r.log)
	}
	for range 50 {
		if r.claim(t, old) == nil {
			break
		}
		r.ahead += min(r.reconcileClaim(t, old), 30*time.Second)
	}
	m := r.Claims.Metrics
	if metricCount(t, m.Disrupted, "expired", "apps", "on-demand", "graceful") != 1 ||
		metricCount(t, m.Displaced, "expired", "apps", "on-demand", "graceful") != 1 {
		t.Error("the metrics do not count one disrupted node and one displaced pod")
	}
	if n := len(r.instances()); r.claim(t, old) != nil || n != 1 || r.claim(t, next).DeletionTimestamp != nil {
		t.Errorf("%d instances are left, want 1; only the claim of the replacement must be left\n%s", n, r.log)
	}
}

// TestReplacementThatDoesNotCome: an expired node is deleted after MaxReplacementWait, even if it has no replacement by
// then.
func TestReplacementThatDoesNotCome(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	old := r.createServing(t, "web")[0].Name
	r.age(t, old, tooOld)
	r.reconcileClaim(t, old)
	r.plan(t)
	r.ahead += lifecycle.MaxReplacementWait - time.Minute
	if wait := r.reconcileClaim(t, old); r.claim(t, old).DeletionTimestamp != nil || wait <= 0 {
		t.Fatalf("the claim is deleted before MaxReplacementWait has passed, or is reconciled again in %s, want later\n%s", wait, r.log)
	}
	r.start(t) // the next leader reads the start of the wait from the annotation AnnotationReplacing
	r.ahead += time.Minute
	r.reconcileClaim(t, old)
	if r.claim(t, old).DeletionTimestamp == nil {
		t.Errorf("the claim is not deleted after MaxReplacementWait\n%s", r.log)
	}
}

// TestExpiredNodesThatDoNotWait covers which expired nodes wait for a replacement, and which are deleted at once.
func TestExpiredNodesThatDoNotWait(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, r *rig)
		waits   bool
	}{
		"with a movable pod": {func(*testing.T, *rig) {}, true},
		"without pods": {func(t *testing.T, r *rig) {
			if err := r.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("ns")); err != nil {
				t.Fatal(err)
			}
		}, false},
		// A budget that allows no replacement does not prevent the expiration.
		"budget 0": {func(t *testing.T, r *rig) { r.setBudgets(t, karpv1.Budget{Nodes: "0"}) }, false},
		"budget 0 for empty nodes": {func(t *testing.T, r *rig) {
			r.setBudgets(t, karpv1.Budget{Nodes: "0", Reasons: []karpv1.DisruptionReason{karpv1.DisruptionEmpty}})
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
			old := r.createServing(t, "web")[0].Name
			c.prepare(t, r)
			r.age(t, old, tooOld)
			r.reconcileClaim(t, old)
			if waits := r.claim(t, old).DeletionTimestamp == nil; waits != c.waits {
				t.Errorf("the node waits for a replacement: %t, want %t\n%s", waits, c.waits, r.log)
			}
		})
	}
}

func (r *rig) setBudgets(t *testing.T, budgets ...karpv1.Budget) {
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

// TestBudgetLimitsReplacements: with a budget of 1, only one of two expired nodes gets a replacement. Both nodes are
// deleted after MaxReplacementWait.
func TestBudgetLimitsReplacements(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claims := r.createServing(t, "web", "db")
	if len(claims) != 2 {
		t.Fatalf("%d claims, want 2", len(claims))
	}
	r.setBudgets(t, karpv1.Budget{Nodes: "1"})
	for _, c := range claims {
		r.age(t, c.Name, tooOld)
	}
	tainted := func() (n int) {
		for _, node := range r.nodes(t) {
			if nodeclaim.HasTaint(&node, karpv1.TaintDisrupted) {
				n++
			}
		}
		return n
	}
	for range 3 {
		r.reconcileClaims(t)
		r.ahead += 2 * nodeclaim.CountInterval
	}
	if n := tainted(); n != 1 {
		t.Fatalf("%d nodes are being replaced, want 1, the budget\n%s", n, r.log)
	}
	r.ahead += lifecycle.MaxReplacementWait
	r.reconcileClaims(t)
	for _, c := range r.claims(t) {
		if c.DeletionTimestamp == nil {
			t.Errorf("%s is not deleted after MaxReplacementWait\n%s", c.Name, r.log)
		}
	}
}

// TestGracePeriodIncludesTheWait: terminationGracePeriod limits the whole termination, including the wait for a
// replacement.
func TestGracePeriodIncludesTheWait(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	old := r.createServing(t, "web")[0].Name
	claim := r.claim(t, old)
	claim.Spec.TerminationGracePeriod = &karpv1.Duration{Duration: 8 * time.Minute}
	if err := r.api.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	r.age(t, old, tooOld)
	r.reconcileClaim(t, old)
	since := nodestate.ReplacingSince(r.claim(t, old))
	if since.IsZero() {
		t.Fatalf("the claim has no annotation with the start of its replacement\n%s", r.log)
	}
	r.ahead += 4 * time.Minute // the wait takes at most half of the grace period
	for range 3 {
		r.reconcileClaim(t, old)
	}
	want := since.Add(8 * time.Minute).UTC().Format(time.RFC3339)
	if got := r.claim(t, old).Annotations[karpv1.AnnotationTerminationTimestamp]; got != want {
		t.Errorf("pods are deleted by force at %q, want %q\n%s", got, want, r.log)
	}
}

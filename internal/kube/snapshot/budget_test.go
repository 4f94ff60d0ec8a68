package snapshot

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
)

// costly returns a budget of namespace a; the pods in these tests satisfy all of its requirements except the last.
func costly(i, requirements int) *policyv1.PodDisruptionBudget {
	return guarding(fmt.Sprintf("b%04d", i), "", 1, func(b *policyv1.PodDisruptionBudget) {
		for x := range requirements {
			b.Spec.Selector.MatchExpressions = append(b.Spec.Selector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: fmt.Sprint("k", x), Operator: metav1.LabelSelectorOpNotIn, Values: []string{fmt.Sprint("v", i)}})
		}
		b.Spec.Selector.MatchExpressions = append(b.Spec.Selector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: "z", Operator: metav1.LabelSelectorOpExists})
	})
}

// TestManyBudgets: if the budgets of a namespace have too many requirements to compare them all with a pod, each may
// select the pod. A budget that selects by a label value, as those of Deployments do, is compared only with pods that
// have it, however many such budgets exist.
func TestManyBudgets(t *testing.T) {
	t.Parallel()
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Status: karpv1.NodeClaimStatus{NodeName: "n"}}
	var ordinary, tenant, unread Objects
	for _, o := range []*Objects{&ordinary, &tenant, &unread} {
		o.Claims, o.Pods = []*karpv1.NodeClaim{claim}, []*corev1.Pod{kubetest.BoundPod("web-1", "app0007")}
	}
	for i := range 5_000 {
		ordinary.Budgets = append(ordinary.Budgets, guarding(fmt.Sprintf("b%04d", i), fmt.Sprintf("app%04d", i), 0))
		tenant.Budgets = append(tenant.Budgets, costly(i%100, 50))
	}
	unread.Budgets = []*policyv1.PodDisruptionBudget{costly(1, 10_000)}
	if h := ordinary.Holds(kubetest.HoldTime)["n"]; len(h.Budgets) != 1 || h.Budgets[0] != "a/b0007" || h.Uncompared {
		t.Errorf("of 5,000 ordinary budgets: %+v", h)
	}
	if guards := indexBudgets(ordinary.Budgets); guards.forbid(ordinary.Pods[0]) || guards.forbid(kubetest.BoundPod("web-2", "other")) {
		t.Error("an ordinary budget never allows an eviction")
	}
	for name, o := range map[string]Objects{"many": tenant, "one, with 10,000 requirements": unread} {
		h := o.Holds(kubetest.HoldTime)["n"]
		if !h.Uncompared || !strings.Contains(h.String(), "more of them than Joiner compares with a pod") {
			t.Errorf("%s: %+v", name, h)
		}
		if !indexBudgets(o.Budgets).forbid(o.Pods[0]) {
			t.Errorf("%s: a pod that any of them may select can be evicted", name)
		}
		found := o.Blockers(kubetest.HoldTime)
		if len(found) != 1 || found[0].Kind != SeveralGuard ||
			!strings.Contains(found[0].Why, "namespace a has more PodDisruptionBudgets") || len(found[0].Pods) != 1 {
			t.Errorf("%s: %+v", name, found)
		}
		o.Pods = append(o.Pods, kubetest.BoundPod("x", "x", func(p *corev1.Pod) { p.Namespace = "other" }))
		if guards := activeBudgets(o.Budgets); guards.forbid(o.Pods[1]) {
			t.Errorf("%s: budgets of another namespace count", name)
		}
	}
}

// TestBudgetsThatAllSelect: if very many budgets select a pod, only some are named.
func TestBudgetsThatAllSelect(t *testing.T) {
	t.Parallel()
	o := Objects{Pods: []*corev1.Pod{kubetest.BoundPod("web-1", "web")}}
	for i := range 1_000 {
		o.Budgets = append(o.Budgets, guarding(fmt.Sprintf("b%04d", i), "web", 1))
	}
	h := o.Holds(kubetest.HoldTime)["n"]
	if len(h.Budgets) != maxSelecting || h.Uncompared || len(h.String()) > 1_000 {
		t.Errorf("%d budgets are named, in %d bytes", len(h.Budgets), len(h.String()))
	}
}

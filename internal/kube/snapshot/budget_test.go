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

// costlyBudget returns a budget of namespace a with requirements that the pods in these tests satisfy, and a last one
// that they do not satisfy, so that comparing a pod with the budget takes longest.
func costlyBudget(i, requirements int) *policyv1.PodDisruptionBudget {
	return budgetOf(fmt.Sprintf("b%04d", i), "", 1, func(b *policyv1.PodDisruptionBudget) {
		for x := range requirements {
			b.Spec.Selector.MatchExpressions = append(b.Spec.Selector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: fmt.Sprint("k", x), Operator: metav1.LabelSelectorOpNotIn, Values: []string{fmt.Sprint("v", i)}})
		}
		b.Spec.Selector.MatchExpressions = append(b.Spec.Selector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: "z", Operator: metav1.LabelSelectorOpExists})
	})
}

// TestManyBudgets: if the budgets of a namespace have too many requirements to compare all of them with a pod, each
// budget may select the pod. A budget that selects pods by the value of a label is compared only with pods that have
// this value, so any number of such budgets is allowed.
func TestManyBudgets(t *testing.T) {
	t.Parallel()
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Status: karpv1.NodeClaimStatus{NodeName: "n"}}
	var ordinary, many, huge Objects
	for _, o := range []*Objects{&ordinary, &many, &huge} {
		o.Claims, o.Pods = []*karpv1.NodeClaim{claim}, []*corev1.Pod{kubetest.BoundPod("web-1", "app0007")}
	}
	for i := range 5_000 {
		ordinary.Budgets = append(ordinary.Budgets, budgetOf(fmt.Sprintf("b%04d", i), fmt.Sprintf("app%04d", i), 0))
		many.Budgets = append(many.Budgets, costlyBudget(i%100, 50)) // 5,000 of size 102 exceed maxNamespaceSize
	}
	huge.Budgets = []*policyv1.PodDisruptionBudget{costlyBudget(1, 10_000)}
	if h := ordinary.BlockingPods(kubetest.BlockingTime)["n"]; len(h.Budgets) != 1 || h.Budgets[0] != "a/b0007" || h.TooManyBudgets {
		t.Errorf("of 5,000 ordinary budgets, the blocking pod is %+v, want only budget a/b0007", h)
	}
	budgets := indexBudgets(ordinary.Budgets)
	if budgets.forbidEviction(ordinary.Pods[0]) || budgets.forbidEviction(kubetest.BoundPod("web-2", "other")) {
		t.Error("eviction is forbidden for a pod with one ordinary budget, or with none")
	}
	for name, o := range map[string]Objects{"many": many, "one, with 10,000 requirements": huge} {
		h := o.BlockingPods(kubetest.BlockingTime)["n"]
		if !h.TooManyBudgets || !strings.Contains(h.String(), "more PodDisruptionBudgets than Joiner compares with a pod") {
			t.Errorf("%s: the blocking pod is %+v, want TooManyBudgets", name, h)
		}
		if !indexBudgets(o.Budgets).forbidEviction(o.Pods[0]) {
			t.Errorf("%s: eviction is allowed for a pod that any of the budgets may select", name)
		}
		found := o.Blockers(kubetest.BlockingTime)
		if len(found) != 1 || found[0].Kind != MultipleBudgets ||
			!strings.Contains(found[0].Why, "namespace a has more PodDisruptionBudgets") || len(found[0].Pods) != 1 {
			t.Errorf("%s: blockers %+v, want one of kind %s, which names namespace a and one pod", name, found, MultipleBudgets)
		}
		o.Pods = append(o.Pods, kubetest.BoundPod("x", "x", func(p *corev1.Pod) { p.Namespace = "other" }))
		if budgets := activeBudgets(o.Budgets); budgets.forbidEviction(o.Pods[1]) {
			t.Errorf("%s: the budgets also apply to a pod of another namespace", name)
		}
	}
}

// TestManyBudgetsOfOnePod: if more than maxSelecting budgets select a pod, only that many are named.
func TestManyBudgetsOfOnePod(t *testing.T) {
	t.Parallel()
	o := Objects{Pods: []*corev1.Pod{kubetest.BoundPod("web-1", "web")}}
	for i := range 1_000 {
		o.Budgets = append(o.Budgets, budgetOf(fmt.Sprintf("b%04d", i), "web", 1))
	}
	h := o.BlockingPods(kubetest.BlockingTime)["n"]
	if len(h.Budgets) != maxSelecting || h.TooManyBudgets || len(h.String()) > 1_000 {
		t.Errorf("%d budgets are named, in a message of %d bytes, TooManyBudgets %t; want %d, at most 1,000, false",
			len(h.Budgets), len(h.String()), h.TooManyBudgets, maxSelecting)
	}
}

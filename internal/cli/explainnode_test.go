package cli

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/cli/output"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
)

func TestNodesAreExplained(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	claim := func(name string, change func(*karpv1.NodeClaim)) *karpv1.NodeClaim {
		c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim-" + name, Labels: map[string]string{karpv1.LabelNodePool: "web"}}}
		c.Status.NodeName = name
		c.StatusConditions().SetTrue(now, karpv1.ConditionInitialized)
		if change != nil {
			change(c)
		}
		return c
	}
	withCondition := func(conditionType string, status metav1.ConditionStatus, reason, message string) func(*karpv1.NodeClaim) {
		return func(c *karpv1.NodeClaim) {
			c.StatusConditions().Set(now, metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message})
		}
	}
	blockingPod := func(node string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x", Annotations: map[string]string{karpv1.AnnotationDoNotDisrupt: "true"}},
			Spec:       corev1.PodSpec{NodeName: node},
		}
	}
	// The Nodes n5, n7 and n9 have a blocking pod. The conditions of n8 and n9 name a PodDisruptionBudget that is gone.
	o := snapshot.Objects{
		Claims: []*karpv1.NodeClaim{
			claim("n1", withCondition(karpv1.ConditionDisruptable, metav1.ConditionFalse, "Budget", "no disruption is allowed now")),
			claim("n2", withCondition(karpv1.ConditionDisruptionReason, metav1.ConditionTrue, "Drifted", "")),
			claim("n3", func(c *karpv1.NodeClaim) { c.DeletionTimestamp = &metav1.Time{Time: now} }),
			claim("n4", nil), claim("n5", nil),
			claim("n6", func(c *karpv1.NodeClaim) { c.Status.Conditions = nil }),
			claim("n7", withCondition(karpv1.ConditionDisruptable, metav1.ConditionFalse, "Never", "consolidateAfter is Never")),
			claim("n8", withCondition(karpv1.ConditionDisruptable, metav1.ConditionFalse, "Blocked",
				"pod a/y has no room in PodDisruptionBudget a/gone (0 allowed)")),
			claim("n9", withCondition(karpv1.ConditionDisruptable, metav1.ConditionFalse, "Blocked",
				"pod a/y has no room in PodDisruptionBudget a/gone (0 allowed)")),
		},
		Pods: []*corev1.Pod{blockingPod("n5"), blockingPod("n7"), blockingPod("n9")},
	}
	rows, err := explainNodes(o, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	const want = `NODE  NODEPOOL  CAUSE           WHY
n1    web       Budget          no disruption is allowed now
n2    web       Leaving         its pods are about to be moved: Drifted
n3    web       Leaving         its NodeClaim is being deleted
n4    web       Undecided       no reason is known; the controller checks it again within seconds
n5    web       Undecided       pod a/x has the annotation karpenter.sh/do-not-disrupt; the controller checks it again within seconds
n6    web       NotInitialized  it is not ready for pods yet
n7    web       Never           consolidateAfter is Never; also, pod a/x has the annotation karpenter.sh/do-not-disrupt
n8    web       Undecided       the last reason no longer applies (pod a/y has no room in PodDisruptionBudget a/gone (0 allowed)); the controller checks it again within seconds
n9    web       Blocked         pod a/x has the annotation karpenter.sh/do-not-disrupt
`
	if got := output.NodeExplanations(rows, 0); got != want {
		t.Errorf("rows\n%s\nwant\n%s", got, want)
	}
	if rows, err := explainNodes(o, []string{"claim-n1", "n4"}, now); err != nil || len(rows) != 2 || rows[0].Node != "n1" {
		t.Errorf("by name: %+v, %v; want the rows of n1 and n4", rows, err)
	}
	if _, err := explainNodes(o, []string{"claim-n11"}, now); err == nil || !strings.Contains(err.Error(), "did you mean claim-n1?") {
		t.Errorf("a misspelt name: %v, want a hint at claim-n1", err)
	}
	// NodeClaims without a Node must not match each other by the empty name.
	o.Claims = append([]*karpv1.NodeClaim{claim("", nil)}, append(o.Claims, claim("", nil))...)
	o.Claims[0].Name, o.Claims[len(o.Claims)-1].Name = "claim-first", "claim-last"
	if rows, err := explainNodes(o, []string{"claim-first"}, now); err != nil || len(rows) != 1 || rows[0].Claim != "claim-first" {
		t.Errorf("a claim that has no Node yet: %+v, %v; want its row", rows, err)
	}
	if got := output.NodeExplanations(nil, 0); got != "There is no node of a NodePool.\n" {
		t.Errorf("no nodes: %q, want a sentence", got)
	}
}

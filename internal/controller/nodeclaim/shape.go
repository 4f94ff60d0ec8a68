package nodeclaim

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// checkShape sets the condition ConsistentStateFound: whether the Node has the capacity of its instance type. No
// decision depends on this condition.
func (c *Reconciler) checkShape(ctx context.Context, v View, now time.Time) (*karpv1.NodeClaim, error) {
	node := v.node()
	if len(v.nodes) != 1 || len(node.Status.Capacity) == 0 {
		return v.Claim, nil
	}
	promised, actual := conversion.Amounts(v.Claim.Status.Capacity), conversion.Amounts(node.Status.Capacity)
	resource := lifecycle.Shortfall(conversion.Amounts(v.Claim.Spec.Resources.Requests), promised, actual)
	current, ok := v.Claim.StatusConditions().Find(karpv1.ConditionConsistentStateFound)
	if resource == "" {
		if ok && current.Status == metav1.ConditionTrue {
			return v.Claim, nil
		}
		return c.Objects.PatchClaim(ctx, v.Claim, func(claim *karpv1.NodeClaim) {
			claim.StatusConditions().SetTrue(now, karpv1.ConditionConsistentStateFound)
		})
	}
	has, expected := actual.Map()[resource], promised.Map()[resource]
	if has == "" {
		has = "none"
	}
	message := "The node has " + has + " of " + resource + ", less than nine tenths of the " + expected + " expected for its instance type"
	c.Events.Emit(v.Claim, kubeclient.ReasonConsistencyCheck, message)
	return c.Objects.PatchClaim(ctx, v.Claim, func(claim *karpv1.NodeClaim) {
		claim.StatusConditions().SetFalse(now, karpv1.ConditionConsistentStateFound, karpv1.ReasonConsistencyCheckFailed, message)
	})
}

package nodeclaim

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
)

// TestNodeMatters: every change that we make to a leaving Node triggers a reconcile of its claim; otherwise the
// deletion would not continue. A heartbeat triggers none.
func TestNodeMatters(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	closeNode := func(n *corev1.Node) { nodestate.CloseNode(n) }
	for name, c := range map[string]struct {
		before, change func(*corev1.Node) // before the update, and the update; nil: none
		want           bool
	}{
		"tainted":                  {nil, closeNode, true},
		"cordoned":                 {nil, nodestate.Cordon, true},
		"tainted, then cordoned":   {closeNode, nodestate.Cordon, true},
		"deleted":                  {nodestate.Cordon, func(n *corev1.Node) { n.DeletionTimestamp = &now }, true},
		"released":                 {nil, func(n *corev1.Node) { n.Finalizers = nil }, true},
		"unhealthy":                {nil, func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionFalse }, true},
		"heartbeat":                {nil, func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = now }, false},
		"labels of another writer": {nil, func(n *corev1.Node) { n.Labels = map[string]string{"a": "b"} }, false},
	} {
		old := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Finalizers: []string{karpv1.FinalizerTermination}}}
		old.Status.Conditions = []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: "KernelReady", Status: corev1.ConditionTrue},
		}
		if c.before != nil {
			c.before(old)
		}
		node := old.DeepCopy()
		c.change(node)
		if got := nodestate.NodeMatters().Update(event.UpdateEvent{ObjectOld: old, ObjectNew: node}); got != c.want {
			t.Errorf("%s: NodeMatters returns %t, want %t", name, got, c.want)
		}
	}
}

package nodeclaim

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMissingTaintMessage: the event about a Node without the unregistered taint names the writer that removed the
// taint, if the Node's managed fields name that writer.
func TestMissingTaintMessage(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ip-10-0-0-1"}}
	if got := missingTaintMessage(node); !strings.HasPrefix(got, "Node ip-10-0-0-1 joined without the taint") ||
		!strings.Contains(got, "add it in spec.userData") {
		t.Errorf("for a Node without managed fields: %s; want the fix in spec.userData", got)
	}
	node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "taint-cleaner", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:taints":{}}}`)}}
	if got := missingTaintMessage(node); !strings.HasSuffix(got, "it was taken away by taint-cleaner") {
		t.Errorf("for a Node whose taints taint-cleaner wrote: %s; want taint-cleaner as the writer that removed the taint", got)
	}
}

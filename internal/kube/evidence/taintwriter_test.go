package evidence

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTaintWriters: only field managers that wrote taints are returned.
func TestTaintWriters(t *testing.T) {
	t.Parallel()
	wrote := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const taints, labels = `{"f:spec":{"f:taints":{}}}`, `{"f:metadata":{"f:labels":{"f:taints-of-ours":{}}}}`
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		wrote("taint-cleaner", taints), wrote("kubelet", taints), wrote("taint-cleaner", taints), wrote("labeller", labels), {Manager: "no-fields"},
	}}}
	if got, want := TaintWriters(n), []string{"kubelet", "taint-cleaner"}; !slices.Equal(got, want) {
		t.Errorf("the taints were written by %v, want %v", got, want)
	}
	if got := TaintWriters(&corev1.Node{}); len(got) != 0 {
		t.Errorf("a node without managed fields has the taint writers %v, want none", got)
	}
}

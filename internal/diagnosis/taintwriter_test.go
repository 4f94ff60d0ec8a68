package diagnosis

import (
	"slices"
	"testing"
)

// TestStrangeTaintWriters: Kubernetes, the cloud and autoscalers may write taints, under any of their names.
func TestStrangeTaintWriters(t *testing.T) {
	t.Parallel()
	wrote := []string{"aws-cloud-controller-manager", "gpu-labeller", "joiner", "kubectl-taint", "kubelet", "taint-cleaner"}
	if got, want := StrangeTaintWriters(wrote), []string{"gpu-labeller", "taint-cleaner"}; !slices.Equal(got, want) {
		t.Errorf("strange are %v, want %v", got, want)
	}
	if got := StrangeTaintWriters([]string{"kubelet"}); got != nil {
		t.Errorf("strange are %v, want none", got)
	}
}

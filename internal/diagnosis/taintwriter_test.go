package diagnosis

import (
	"slices"
	"testing"
)

// TestUnexpectedTaintWriters: names that begin with an expected name, such as kubectl-taint, are expected too.
func TestUnexpectedTaintWriters(t *testing.T) {
	t.Parallel()
	managers := []string{"aws-cloud-controller-manager", "gpu-labeller", "joiner", "kubectl-taint", "kubelet", "taint-cleaner"}
	if got, want := UnexpectedTaintWriters(managers), []string{"gpu-labeller", "taint-cleaner"}; !slices.Equal(got, want) {
		t.Errorf("unexpected taint writers are %v, want %v", got, want)
	}
	if got := UnexpectedTaintWriters([]string{"kubelet"}); got != nil {
		t.Errorf("unexpected taint writers are %v, want none", got)
	}
}

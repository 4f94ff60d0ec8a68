package conversion

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// TestHugeQuantities: an amount beyond int64 counts as the maximum, and never as a small amount.
func TestHugeQuantities(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"16E", "10E", "16Ei", "1e19", "2e19", "18446744073709551617", "9223372036854775808", "1e40"} {
		q := resource.MustParse(text)
		for _, name := range []string{resources.CPU, resources.Memory, resources.EphemeralStorage, "nvidia.com/gpu"} {
			if got := Amounts(corev1.ResourceList{corev1.ResourceName(name): q}).Of(name); got != maxAmount {
				t.Errorf("%s of %s is %d, want %d", text, name, got, int64(maxAmount))
			}
			p := &karpv1.NodePool{}
			p.Spec.Limits = corev1.ResourceList{corev1.ResourceName(name): q}
			if got := limitsOf(p).Ceiling[name]; got != math.MaxInt64 {
				t.Errorf("a limit of %s of %s is %d, want the largest int64", text, name, got)
			}
		}
		p := &karpv1.NodePool{}
		p.Spec.Limits = corev1.ResourceList{karpv1.ResourceNodes: q}
		if got := *limitsOf(p).Nodes; got != math.MaxInt32 {
			t.Errorf("a limit of %s nodes is %d, want %d", text, got, math.MaxInt32)
		}
		negative := resource.MustParse("-" + text)
		if got := Amounts(corev1.ResourceList{corev1.ResourceMemory: negative}).Memory; got != -maxAmount {
			t.Errorf("-%s of memory is %d, want %d", text, got, -int64(maxAmount))
		}
		p.Spec.Limits = corev1.ResourceList{corev1.ResourceMemory: negative}
		if got := limitsOf(p).Ceiling[resources.Memory]; got != 0 {
			t.Errorf("a limit of -%s of memory is %d, want 0: nothing may be launched", text, got)
		}
	}
}

// TestNegativeRequests: a negative request of one container must not make room for another container.
func TestNegativeRequests(t *testing.T) {
	t.Parallel()
	container := func(memory string) corev1.Container {
		requests := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests}}
	}
	pod := &corev1.Pod{}
	pod.Spec.Containers = []corev1.Container{container("1Gi"), container("-16E")}
	pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("-1Gi")}
	if got := Requests(pod).Memory; got != 1<<30 {
		t.Errorf("the pod asks for %d bytes, want 1Gi", got)
	}
}

// TestLimitsRoundDown: a fraction of a unit in a limit allows no further unit.
func TestLimitsRoundDown(t *testing.T) {
	t.Parallel()
	p := &karpv1.NodePool{}
	p.Spec.Limits = corev1.ResourceList{
		karpv1.ResourceNodes: resource.MustParse("1500m"), corev1.ResourceCPU: resource.MustParse("2500100u"),
		"nvidia.com/gpu": resource.MustParse("900m"), corev1.ResourceMemory: resource.MustParse("1Gi"),
	}
	got := limitsOf(p)
	if *got.Nodes != 1 || got.Ceiling["cpu"] != 2500 || got.Ceiling["nvidia.com/gpu"] != 0 || got.Ceiling["memory"] != 1<<30 {
		t.Errorf("limits %d nodes, %v; want 1 node, 2500 millicores, 0 GPUs, 1Gi", *got.Nodes, got.Ceiling)
	}
}

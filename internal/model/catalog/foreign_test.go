package catalog

import "testing"

// TestForeignLabels: a label of another system is recognized by its domain or its key, and a label of the user's own
// tools by a value that names a capacity type. The result has the corresponding label on nodes of a NodePool.
func TestForeignLabels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ key, value, wantKey, wantValue string }{
		{"eks.amazonaws.com/capacityType", "SPOT", LabelCapacityType, Spot},
		{"eks.amazonaws.com/capacityType", "ON_DEMAND", LabelCapacityType, OnDemand},
		{"eks.amazonaws.com/capacityType", "CAPACITY_BLOCK", LabelCapacityType, Reserved},
		{"eks.amazonaws.com/nodegroup", "blue", LabelNodePool, ""},
		{"alpha.eksctl.io/nodegroup-name", "blue", LabelNodePool, ""},
		{"eks.amazonaws.com/instance-family", "m5", LabelFamily, "m5"},
		{"eks.amazonaws.com/compute-type", "auto", "", ""},
		{"cloud.google.com/gke-spot", "true", LabelCapacityType, Spot},
		{"cloud.google.com/gke-nodepool", "a", LabelNodePool, ""},
		{"cloud.google.com/gke-accelerator", "nvidia-tesla-t4", LabelGPUName, ""},
		{"kubernetes.azure.com/scalesetpriority", "spot", LabelCapacityType, Spot},
		{"kubernetes.azure.com/mode", "system", "", ""},
		{"agentpool", "a", LabelNodePool, ""},
		{"node.kubernetes.io/lifecycle", "spot", LabelCapacityType, Spot},
		{"lifecycle", "Ec2Spot", LabelCapacityType, Spot},
		{"spotinst.io/node-lifecycle", "od", LabelCapacityType, OnDemand},
		{"karpenter.sh/provisioner-name", "default", LabelNodePool, ""},
		{"nvidia.com/gpu.present", "true", LabelGPUManufacturer, "nvidia"},
		{"nvidia.com/gpu.product", "Tesla-T4", LabelGPUName, ""},
		{"feature.node.kubernetes.io/cpu-cpuid.AVX512F", "true", "", ""},
		{"topology.k8s.aws/network-node-layer-1", "nn-1", "", ""},
		{"node-role.kubernetes.io/worker", "", "", ""},
		{"my.karpenter.sh/x", "1", "", ""},
	} {
		got, ok := ForeignLabelOf(c.key, c.value)
		hasOwner := got.Owner != "" || c.wantKey == LabelCapacityType // a user's tool has no Owner
		if !ok || !hasOwner || got.Key != c.wantKey || got.Value != c.wantValue {
			t.Errorf("%s=%s: %+v, %v; want a label of another system for %s=%s", c.key, c.value, got, ok, c.wantKey, c.wantValue)
		}
	}
	if got, _ := ForeignLabelOf("karpenter.sh/provisioner-name", "default"); got.Owner != "Karpenter before 0.32" {
		t.Errorf("provisioner-name is set by %q, want Karpenter before 0.32", got.Owner)
	}
	for _, label := range [][2]string{
		{"team", "web"}, {"example.com/rack", "r1"}, {"node.kubernetes.io/workload", "batch"}, {"lifecycle", "stable"},
		{"node-restriction.kubernetes.io/tenant", "a"}, {"k8s.amazonaws.com/eniConfig", "pods"}, {"spot", "checkered"},
	} {
		if got, ok := ForeignLabelOf(label[0], label[1]); ok {
			t.Errorf("%s=%s is taken for a label of another system: %+v", label[0], label[1], got)
		}
	}
}

func TestSuggestedValue(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{LabelArch, "x86_64", "amd64"}, {LabelArch, "aarch64", "arm64"}, {LabelArch, "amd64", ""}, {LabelArch, "riscv64", ""},
		{LabelOS, "Linux", "linux"}, {LabelCapacityType, "SPOT", Spot}, {LabelCapacityType, "onDemand", OnDemand}, {LabelCapacityType, Spot, ""},
		{LabelZone, "1a", ""},
	} {
		if got := SuggestedValue(c[0], c[1]); got != c[2] {
			t.Errorf("SuggestedValue(%s, %s) = %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

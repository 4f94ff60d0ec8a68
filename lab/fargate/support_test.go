package fargate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
)

// TestUnsupported checks that one message lists all unsupported fields, in the wording of Fargate's scheduler.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	yes := true
	privileged := corev1.Container{SecurityContext: &corev1.SecurityContext{Privileged: &yes}}
	port := corev1.Container{Ports: []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}}
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"supported pod": {corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}}, ""},
		"host network and port": {corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{port}},
			"Pod not supported on Fargate: fields not supported: HostNetwork, port contains HostIP or HostPort"},
		"all unsupported fields": {corev1.PodSpec{
			HostNetwork: true, HostPID: true, InitContainers: []corev1.Container{privileged}, Containers: []corev1.Container{port},
			Volumes: []corev1.Volume{
				{Name: "root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}},
				{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		}, "Pod not supported on Fargate: fields not supported: HostNetwork, HostPID, invalid SecurityContext fields: Privileged, " +
			"port contains HostIP or HostPort, volumes not supported: root is of an unsupported volume Type"},
	} {
		if got := unsupportedReason(&corev1.Pod{Spec: c.spec}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestSize checks that sizeOf returns the smallest Fargate size for the requests plus reservedMiB (256 MiB). extra is
// another requested resource. An empty want means that no size fits.
func TestSize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cpu, memory, extra, want string }{
		{"", "", "", "0.25vCPU 0.5GB"},
		{"250m", "256Mi", "", "0.25vCPU 0.5GB"},
		{"250m", "512Mi", "", "0.25vCPU 1GB"},
		{"250m", "1Gi", "", "0.25vCPU 2GB"},
		{"250m", "2Gi", "", "0.5vCPU 3GB"},
		{"1", "1Gi", "", "1vCPU 2GB"},
		{"3", "29Gi", "", "4vCPU 30GB"},
		{"3", "30Gi", "", "8vCPU 32GB"},
		{"16", "119Gi", "", "16vCPU 120GB"},
		{"16", "120Gi", "", ""},
		{"16001m", "1Gi", "", ""},
		{"1", "1Gi", "nvidia.com/gpu", ""},
	} {
		requests := corev1.ResourceList{}
		for name, amount := range map[corev1.ResourceName]string{"cpu": c.cpu, "memory": c.memory} {
			if amount != "" {
				requests[name] = resource.MustParse(amount)
			}
		}
		if c.extra != "" {
			requests[corev1.ResourceName(c.extra)] = resource.MustParse("1")
		}
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}}}
		got, ok := sizeOf(pod)
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("cpu=%s memory=%s extra=%s: size %s, fits: %t; want %q", c.cpu, c.memory, c.extra, got, ok, c.want)
		}
	}
}

// TestSelectProfile checks which pods are assigned to Fargate, and by which profile.
func TestSelectProfile(t *testing.T) {
	t.Parallel()
	system := []ekscluster.FargateSelector{{Namespace: "kube-system"}}
	profiles := []ekscluster.FargateProfile{
		{Name: "later", Status: ekscluster.ProfileCreating, Selectors: system},
		{Name: "one", Status: ekscluster.ProfileActive, Selectors: system},
		{Name: "two", Status: ekscluster.ProfileActive, Selectors: system},
	}
	yes := true
	for name, c := range map[string]struct {
		namespace string
		meta      metav1.ObjectMeta
		want      string
	}{
		"first active profile":          {"kube-system", metav1.ObjectMeta{}, "one"},
		"profile in the label":          {"kube-system", metav1.ObjectMeta{Labels: map[string]string{ProfileLabel: "two"}}, "two"},
		"inactive profile in the label": {"kube-system", metav1.ObjectMeta{Labels: map[string]string{ProfileLabel: "later"}}, ""},
		"other namespace":               {"default", metav1.ObjectMeta{}, ""},
		"annotation compute-type ec2":   {"kube-system", metav1.ObjectMeta{Annotations: map[string]string{ComputeType: "ec2"}}, ""},
		"DaemonSet pod": {"kube-system", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			{Kind: "DaemonSet", Name: "aws-node", Controller: &yes}}}, ""},
	} {
		got, ok := selectProfile(profiles, c.namespace, &corev1.Pod{ObjectMeta: c.meta})
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %t, want %q", name, got, ok, c.want)
		}
	}
}

// TestTrusts checks trust policies with single values and with lists.
func TestTrusts(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]bool{
		`{"Statement":[{"Effect":"Allow","Principal":{"Service":"eks-fargate-pods.amazonaws.com"},"Action":"sts:AssumeRole"}]}`:                                                  true,
		`{"Statement":{"Effect":"Allow","Principal":{"Service":["ec2.amazonaws.com","eks-fargate-pods.amazonaws.com"]}}}`:                                                        true,
		`{"Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"}}]}`:                                                                                         false,
		`{"Statement":[{"Effect":"Allow","Principal":{"Service":"eks-fargate-pods.amazonaws.com"}},{"Effect":"Deny","Principal":{"Service":"eks-fargate-pods.amazonaws.com"}}]}`: false,
		``: false,
	} {
		if got := trusts(policy, Service); got != want {
			t.Errorf("%s: the policy allows Fargate: %t, want the opposite", policy, got)
		}
	}
}

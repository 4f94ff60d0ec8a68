package evidence

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// TestOwners: the kind of a pod's owner counts as a kind of Kubernetes only with the API group of Kubernetes. A fix
// never changes another owner, because its name includes the group.
func TestOwners(t *testing.T) {
	t.Parallel()
	isController := true
	for want, owner := range map[string]metav1.OwnerReference{
		"DaemonSet/agent":               {APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent"},
		"Job/once":                      {APIVersion: "batch/v1", Kind: "Job", Name: "once"},
		"Deployment.example.com/web":    {APIVersion: "example.com/v1", Kind: "Deployment", Name: "web"},
		"DaemonSet.apps.kruise.io/logs": {APIVersion: "apps.kruise.io/v1alpha1", Kind: "DaemonSet", Name: "logs"},
		"Deployment./web":               {APIVersion: "v1", Kind: "Deployment", Name: "web"},
		"Deployment/web":                {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5f"},
	} {
		owner.Controller = &isController
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pod-template-hash": "5f"},
			OwnerReferences: []metav1.OwnerReference{owner}}}
		if got := ownerName(pod); got != want {
			t.Errorf("the name of owner %+v is %q, want %q", owner, got, want)
		}
	}
	for _, file := range []string{"ownerref-pod.yaml", "ownerref-fix.json"} {
		text, err := os.ReadFile("../../diagnosis/testdata/security/" + file)
		if err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{}
		if err := yaml.Unmarshal(text, pod); err != nil {
			t.Fatal(err)
		}
		owner := ownerName(pod)
		if _, ok := fix.Workload("tenant", owner); ok || !strings.Contains(owner, ".example.com/") {
			t.Errorf("%s: owner %q, workload %t; want an owner of group example.com, and no workload", file, owner, ok)
		}
	}
}

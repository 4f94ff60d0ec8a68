package conversion

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/kube/kubetest"
)

// TestTrim: Trim drops what Joiner does not read from a pod and a ReplicaSet, and accepts values that are no objects.
func TestTrim(t *testing.T) {
	t.Parallel()
	pod := kubetest.WebPod("p")
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	pod.Annotations = map[string]string{lastApplied: "{}", "kept": "x"}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A"}}
	pod.Spec.Volumes[0].ConfigMap = &corev1.ConfigMapVolumeSource{}
	if _, err := Trim(pod); err != nil {
		t.Fatal(err)
	}
	if pod.ManagedFields != nil || pod.Annotations[lastApplied] != "" || pod.Annotations["kept"] != "x" ||
		pod.Spec.Containers[0].Env != nil || len(pod.Spec.Volumes) != 0 {
		t.Errorf("pod %+v; want no managed fields, last applied configuration, env and volumes, and annotation kept", pod)
	}
	set := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: corev1.PodTemplateSpec{Spec: pod.Spec},
	}}
	if _, err := Trim(set); err != nil {
		t.Fatal(err)
	}
	if set.Spec.Template.Spec.Containers != nil || set.Spec.Selector.MatchLabels["app"] != "web" {
		t.Errorf("ReplicaSet %+v; want no template, and the selector app=web", set)
	}
	if _, err := Trim("not an object"); err != nil {
		t.Error(err)
	}
}

// TestOversizedPods: a pod with thousands of entries in any field takes at most 20 KiB of the cache and is not planned
// for. It keeps its requests and its owner. A user's value of AnnotationOversized is ignored.
func TestOversizedPods(t *testing.T) {
	t.Parallel()
	const many = 10_000
	terms := func() (out []corev1.NodeSelectorTerm) {
		for i := range many {
			out = append(out, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "k",
				Operator: corev1.NodeSelectorOpNotIn, Values: []string{fmt.Sprint(i)}}}})
		}
		return out
	}
	for name, fill := range map[string]func(*corev1.Pod){
		"required node affinity": func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms()}}}
		},
		"preferred node affinity": func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
			for _, term := range terms() {
				p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
					corev1.PreferredSchedulingTerm{Weight: 1, Preference: term})
			}
		},
		"labels": func(p *corev1.Pod) {
			for i := range many {
				p.Labels[fmt.Sprintf("example.com/label-%d", i)] = "x"
			}
		},
		"tolerations": func(p *corev1.Pod) {
			for i := range many {
				p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprint("key", i), Operator: corev1.TolerationOpExists})
			}
		},
		"host ports": func(p *corev1.Pod) {
			for i := range many {
				p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports,
					corev1.ContainerPort{ContainerPort: int32(i + 1), HostPort: int32(i + 1)})
			}
		},
		"resources": func(p *corev1.Pod) {
			for i := range many {
				p.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprintf("example.com/r%d", i))] = resource.MustParse("1")
			}
		},
		"containers": func(p *corev1.Pod) {
			for i := range many {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", i)})
			}
		},
		"spread constraints": func(p *corev1.Pod) {
			for i := range many {
				p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
					MaxSkew: 1, TopologyKey: fmt.Sprint("example.com/k", i), WhenUnsatisfiable: corev1.ScheduleAnyway})
			}
		},
	} {
		pod := kubetest.SmallPod()
		fill(pod)
		if oversizeReason(pod) == "" {
			t.Errorf("%s: an untrimmed pod, which is what joiner plan reads, does not count as oversized", name)
		}
		if _, err := Trim(pod); err != nil {
			t.Fatal(err)
		}
		if size := pod.Size(); size > 20<<10 {
			t.Errorf("%s: %d bytes are left, want at most 20 KiB", name, size)
		}
		if why := PodValue(pod, References{}).Unplannable; !strings.Contains(why, "only pods of up to 64 KiB are planned for") {
			t.Errorf("%s: the pod is unplannable because %q, want its size as the reason", name, why)
		}
		if cpu := Requests(pod).CPU; cpu != 250 || ownerOf(pod) == "" {
			t.Errorf("%s: the pod requests %v millicores and is owned by %q, want 250 and the owner",
				name, cpu, ownerOf(pod))
		}
	}
	pod := kubetest.SmallPod()
	pod.Annotations = map[string]string{AnnotationOversized: "99999999", "long": strings.Repeat("x", 200_000)}
	if _, err := Trim(pod); err != nil {
		t.Fatal(err)
	}
	if why := PodValue(pod, References{}).Unplannable; why != "" || len(pod.Annotations) != 0 {
		t.Errorf("a pod with long annotations is unplannable because %q and keeps %d of them, want neither",
			why, len(pod.Annotations))
	}
}

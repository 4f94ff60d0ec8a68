package kube

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is dropped on the way into the cache must not change any snapshot.
func TestTrimChangesNothing(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/snapshot/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		m, err := ReadFiles([]string{file}, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := render(m.Snapshot(viewOf(t, file)))
		for _, pod := range m.Pods {
			if _, err := Trim(pod); err != nil {
				t.Fatal(err)
			}
		}
		for _, node := range m.Nodes {
			if _, err := Trim(node); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, render(m.Snapshot(viewOf(t, file)))); diff != "" {
			t.Errorf("%s (-whole +trimmed):\n%s", file, diff)
		}
	}
}

func TestTrim(t *testing.T) {
	t.Parallel()
	pod := crowdPod("p")
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	pod.Annotations = map[string]string{lastApplied: "{}", "kept": "x"}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A"}}
	pod.Spec.Volumes[0].ConfigMap = &corev1.ConfigMapVolumeSource{}
	if _, err := Trim(pod); err != nil {
		t.Fatal(err)
	}
	if pod.ManagedFields != nil || pod.Annotations[lastApplied] != "" || pod.Annotations["kept"] != "x" ||
		pod.Spec.Containers[0].Env != nil || pod.Spec.Volumes[0].ConfigMap != nil {
		t.Errorf("not trimmed: %+v", pod)
	}
	set := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: corev1.PodTemplateSpec{Spec: pod.Spec},
	}}
	if _, err := Trim(set); err != nil {
		t.Fatal(err)
	}
	if set.Spec.Template.Spec.Containers != nil || set.Spec.Selector.MatchLabels["app"] != "web" {
		t.Errorf("not trimmed: %+v", set)
	}
	if _, err := Trim("what no accessor knows"); err != nil {
		t.Error(err)
	}
}

package snapshot

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// FuzzPod converts any pod that JSON can express to a cluster.Pod. The conversion may set Unplannable to one sentence.
// It must not panic, must not change the pod, and must give the same result each time.
func FuzzPod(f *testing.F) {
	for _, seed := range podSeeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		pod := &corev1.Pod{}
		if json.Unmarshal(data, pod) != nil {
			return
		}
		before := pod.DeepCopy()
		for _, view := range []View{{Now: kubetest.Noon, Live: true}, {Now: kubetest.Noon}, {Now: kubetest.Noon, IgnorePreferences: true}} {
			o := fuzzObjects(pod)
			value := conversion.PodValue(pod, referencesOf(o, view))
			checkValue(t, &value)
			if again := conversion.PodValue(pod, referencesOf(o, view)); !reflect.DeepEqual(value, again) {
				t.Errorf("the pod is converted to %+v, and the second time to %+v", value, again)
			}
			s := o.Snapshot(view)
			if s.Nodes[0].Requested.CPU > 1<<57 { // 128 times the maximum of one amount
				t.Errorf("the requests on the node, %v, overflow", s.Nodes[0].Requested)
			}
			kubetest.Render(s)
		}
		if a, _ := json.Marshal(before); string(a) != string(kubetest.Marshal(t, pod)) {
			t.Error("the conversion or the snapshot has changed the pod")
		}
	})
}

func checkValue(t *testing.T, pod *cluster.Pod) {
	t.Helper()
	if strings.ContainsAny(pod.Unplannable, "\n\r") || len(pod.Unplannable) > 4096 {
		t.Errorf("Unplannable is not one line of at most 4,096 bytes: %q", pod.Unplannable)
	}
	for _, s := range pod.Spread { // minDomains 1 has no effect, so it is converted to 0
		if s.Key == "" || s.MaxSkew < 1 || s.MinDomains < 0 || s.MinDomains == 1 || s.Soft && s.MinDomains != 0 {
			t.Errorf("invalid spread constraint %+v", s)
		}
	}
	for _, term := range slices.Concat(pod.Affinity, pod.AntiAffinity) {
		if term.Key == "" || term.Weight < 0 || term.Weight > 100 || !slices.IsSorted(term.Namespaces) {
			t.Errorf("invalid affinity term %+v", term)
		}
	}
	if len(pod.Required) > conversion.MaxAlternatives || len(pod.Spread) > conversion.MaxTerms ||
		len(pod.Affinity) > conversion.MaxTerms || len(pod.AntiAffinity) > conversion.MaxTerms {
		t.Errorf("too many constraints: %d required, %d spread, %d affinity, %d anti-affinity",
			len(pod.Required), len(pod.Spread), len(pod.Affinity), len(pod.AntiAffinity))
	}
}

// fuzzObjects returns a small cluster with the pod: a node, two namespaces, and several kinds of volume claims.
func fuzzObjects(pod *corev1.Pod) Objects {
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: pod.Namespace, Name: name} }
	claim := func(name, class, volume string, modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: in(name), Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, VolumeName: volume, AccessModes: modes,
		}}
	}
	waits := storagev1.VolumeBindingWaitForFirstConsumer
	return Objects{
		Pods:  []*corev1.Pod{pod},
		Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}},
		Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "a",
			Labels: map[string]string{"team": "red"}}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}},
		VolumeClaims: []*corev1.PersistentVolumeClaim{claim("c", "w", ""), claim("one", "w", "", corev1.ReadWriteOncePod), claim("v", "", "pv")},
		Volumes: []*corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}},
		}}},
		StorageClasses: []*storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "w"},
			Provisioner: conversion.DriverEBS, VolumeBindingMode: &waits}},
	}
}

func podSeeds() []string {
	return []string{
		`{}`,
		`{"metadata":{"name":"p","annotations":{"karpenter.sh/do-not-disrupt":"-1h"},"ownerReferences":[{"kind":"DaemonSet"}]}}`,
		`{"spec":{"containers":[{"resources":{"requests":{"cpu":"9999999E","memory":"-1"}}},{"ports":[{"hostPort":-1}]}],"initContainers":[{"restartPolicy":"Always"}]}}`,
		`{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Gt","values":["9223372036854775807"]}]},{}]}}}}}`,
		`{"spec":{"volumes":[{"ephemeral":{}},{"persistentVolumeClaim":{"claimName":""}}],"resources":{"requests":{"cpu":"1"}}},"status":{"resources":{}}}`,
		`{"metadata":{"name":"p"},"spec":{"volumes":[{"name":"x","ephemeral":{}},{"persistentVolumeClaim":{"claimName":"c"}},{"persistentVolumeClaim":{"claimName":"one"}},{"persistentVolumeClaim":{"claimName":"v"}}]}}`,
		`{"spec":{"nodeName":"n"},"status":{"containerStatuses":[{"resources":{"requests":{"cpu":"1u"}}}]}}`,
		`{"metadata":{"namespace":"a","name":"p","labels":{"app":"web","h":"1"}},"spec":{"topologySpreadConstraints":[{"topologyKey":"zone","maxSkew":1,"minDomains":3,"whenUnsatisfiable":"DoNotSchedule","nodeAffinityPolicy":"Ignore","nodeTaintsPolicy":"Honor","matchLabelKeys":["h"],"labelSelector":{"matchLabels":{"app":"web"},"matchExpressions":[{"key":"a","operator":"NotIn","values":["b"]}]}}]}}`,
		`{"metadata":{"labels":{"app":"web"}},"spec":{"topologySpreadConstraints":[{"topologyKey":"","maxSkew":-1,"minDomains":-1,"whenUnsatisfiable":"?","labelSelector":{}},{"topologyKey":"a","maxSkew":2147483647,"whenUnsatisfiable":"ScheduleAnyway"}]}}`,
		`{"metadata":{"namespace":"a","labels":{"t":"1"}},"spec":{"nodeName":"n","affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"rack","namespaces":["b","a"],"namespaceSelector":{"matchLabels":{"team":"red"}},"labelSelector":{"matchExpressions":[{"key":"a","operator":"Exists"}]},"matchLabelKeys":["t"],"mismatchLabelKeys":["t"]}],"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"topologyKey":"rack","namespaceSelector":{}}}]},"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"":"x y"}}}],"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":-5}]}}}}`,
		`{"metadata":{"deletionTimestamp":"2026-09-01T11:00:00Z"},"spec":{"nodeName":"n","priority":-2147483648,"resourceClaims":[{"name":"x"}],"overhead":{"cpu":"-9E"},"tolerations":[{"operator":"Lt","value":"x"}]}}`,
	}
}

package snapshot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
)

const zonesByDefault = `podTopologySpread:
  defaultConstraints:
  - {topologyKey: topology.kubernetes.io/zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}
  - {topologyKey: kubernetes.io/hostname, maxSkew: 2, whenUnsatisfiable: ScheduleAnyway}
`

// TestDefaultSpread applies the cluster's default spread constraints. A pod with constraints of its own keeps them
// instead, and a pod that no Service or workload controller selects gets none.
func TestDefaultSpread(t *testing.T) {
	t.Parallel()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	selector := func(labels map[string]string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: labels}
	}
	service := func(namespace, name string, labels map[string]string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{Selector: labels}}
	}
	groups := conversion.Groups{
		Services: []*corev1.Service{
			service("default", "web", map[string]string{"app": "web"}),
			service("default", "front", map[string]string{"tier": "front", "app": "web"}),
			service("default", "external", nil),
			service("other", "web", map[string]string{"track": "x"}),
		},
		Controllers: []*corev1.ReplicationController{{ObjectMeta: meta("rc"),
			Spec: corev1.ReplicationControllerSpec{Selector: map[string]string{"rc": "1"}}}},
		ReplicaSets: []*appsv1.ReplicaSet{{ObjectMeta: meta("rs"), Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{
			MatchLabels:      map[string]string{"hash": "5"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}},
		}}}},
		StatefulSets: []*appsv1.StatefulSet{{ObjectMeta: meta("db"),
			Spec: appsv1.StatefulSetSpec{Selector: selector(map[string]string{"app": "db"})}}},
	}
	ofKind := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: name, Controller: ptr.To(true)}}
	}
	own := []corev1.TopologySpreadConstraint{{TopologyKey: "rack", MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule}}
	for name, c := range map[string]struct {
		labels map[string]string
		owner  []metav1.OwnerReference
		spread []corev1.TopologySpreadConstraint
		want   string // the selector of the default constraints, or the pod's own constraint; empty: no constraint
	}{
		"a service":    {map[string]string{"app": "web"}, nil, nil, "{app In [web]}"},
		"two services": {map[string]string{"app": "web", "tier": "front"}, nil, nil, "{app In [web], tier In [front]}"},
		"service and replica set": {map[string]string{"app": "web", "hash": "5"}, ofKind("ReplicaSet", "rs"), nil,
			"{app In [web], hash In [5]}"},
		"replica set alone":           {map[string]string{"app": "x", "hash": "5"}, ofKind("ReplicaSet", "rs"), nil, "{app Exists, hash In [5]}"},
		"replication controller":      {map[string]string{"rc": "1"}, ofKind("ReplicationController", "rc"), nil, "{rc In [1]}"},
		"stateful set":                {map[string]string{"app": "db"}, ofKind("StatefulSet", "db"), nil, "{app In [db]}"},
		"a replica set that is gone":  {map[string]string{"app": "x"}, ofKind("ReplicaSet", "gone"), nil, ""},
		"another namespace's service": {map[string]string{"track": "x"}, nil, nil, ""},
		"selected by nothing":         {nil, nil, nil, ""},
		"a job":                       {map[string]string{"app": "x"}, ofKind("Job", "j"), nil, ""},
		"its own constraint":          {map[string]string{"app": "web"}, nil, own, "rack maxSkew=1 {nothing}"},
	} {
		defaults, err := conversion.ReadDefaultSpread(zonesByDefault)
		if err != nil {
			t.Fatal(err)
		}
		references := referencesOf(Objects{Groups: groups}, View{DefaultSpread: defaults})
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", Labels: c.labels, OwnerReferences: c.owner}}
		pod.Spec.TopologySpreadConstraints = c.spread
		var got []string
		for _, s := range conversion.PodValue(pod, references).Spread {
			got = append(got, kubetest.SpreadText(s))
		}
		want := []string{"topology.kubernetes.io/zone maxSkew=1 " + c.want, "kubernetes.io/hostname maxSkew=2 soft " + c.want}
		switch {
		case c.want == "":
			want = nil
		case c.spread != nil:
			want = []string{c.want}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestSchedulerConfiguration reads a whole configuration of kube-scheduler. Each profile may have its own default
// constraints; a profile without pluginConfig has those of Kubernetes. A pod without such a profile gets none.
func TestSchedulerConfiguration(t *testing.T) {
	t.Parallel()
	defaults, err := conversion.ReadDefaultSpread(`
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true}
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
  - name: PodTopologySpread
    args:
      kind: PodTopologySpreadArgs
      defaultingType: List
      defaultConstraints: [{topologyKey: topology.kubernetes.io/zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]
- schedulerName: kubernetes-like
- schedulerName: none
  pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List}}]
`)
	if err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}}
	references := referencesOf(Objects{Groups: conversion.Groups{Services: []*corev1.Service{service}}}, View{DefaultSpread: defaults})
	for scheduler, want := range map[string][]string{
		"":                  {"topology.kubernetes.io/zone maxSkew=1 {app In [web]}"},
		"default-scheduler": {"topology.kubernetes.io/zone maxSkew=1 {app In [web]}"},
		"kubernetes-like": {"kubernetes.io/hostname maxSkew=3 soft {app In [web]}",
			"topology.kubernetes.io/zone maxSkew=5 soft {app In [web]}"},
		"none":    nil,
		"unknown": nil,
	} {
		pod := podWith(t, `"schedulerName":"`+scheduler+`"`)
		var got []string
		for _, s := range conversion.PodValue(pod, references).Spread {
			got = append(got, kubetest.SpreadText(s))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("scheduler %q (-want +got):\n%s", scheduler, diff)
		}
	}
}

// TestDefaultSpreadErrors: an error names the field or the fix. A text without constraints is valid.
func TestDefaultSpreadErrors(t *testing.T) {
	t.Parallel()
	list := func(constraints string) string {
		return "podTopologySpread: {defaultConstraints: [" + constraints + "]}"
	}
	const valid = "{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}"
	for text, want := range map[string]string{
		"[":                       "write it as YAML or JSON",
		"podTopologySpred: {}":    "podTopologySpred",
		"/etc/scheduler.yaml":     `"/etc/scheduler.yaml" is a word; give the text of the configuration itself, not the path`,
		"kind: Pod":               "kind is Pod, want KubeSchedulerConfiguration",
		"profiles: []":            "write kind: KubeSchedulerConfiguration",
		list(valid + "," + valid): "defaultConstraints[1] repeats",
		list("{topologyKey: zone, whenUnsatisfiable: DoNotSchedule}"):                                                                            "podTopologySpread.defaultConstraints[0].maxSkew is 0",
		list("{topologyKey: '', maxSkew: 1}"):                                                                                                    "defaultConstraints[0].topologyKey is",
		list("{topologyKey: zone, maxSkew: 1}"):                                                                                                  "defaultConstraints[0].whenUnsatisfiable is",
		list("{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}"):                                             "defaultConstraints[0] has a labelSelector",
		list("{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [a]}"):                                           "defaultConstraints[0] has a labelSelector or matchLabelKeys",
		"kind: KubeSchedulerConfiguration\nprofiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultingType: Lst}}]}]":                 `profiles[0].pluginConfig[0].args.defaultingType is "Lst"`,
		"kind: KubeSchedulerConfiguration\nprofiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: [" + valid + "]}}]}]": "need defaultingType: List",
	} {
		_, err := conversion.ReadDefaultSpread(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want …%s… in one line", text, err, want)
		}
	}
	for _, text := range []string{"", "{}", "podTopologySpread: {}", `{"podTopologySpread":{"defaultConstraints":[]}}`} {
		if defaults, err := conversion.ReadDefaultSpread(text); err != nil || !defaults.IsZero() {
			t.Errorf("%q: %+v, %v; want no constraints", text, defaults, err)
		}
	}
}

// TestIgnorePreferences keeps a pod's requirements and drops its preferences.
func TestIgnorePreferences(t *testing.T) {
	t.Parallel()
	pod := podWith(t, `"topologySpreadConstraints":[
		{"topologyKey":"hard","maxSkew":1,"whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"web"}}},
		{"topologyKey":"soft","maxSkew":1,"whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchLabels":{"app":"web"}}}],
		"affinity":{
		"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":{"matchExpressions":[{"key":"a","operator":"Exists"}]}}]},
		"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"hard"}],
			"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"topologyKey":"soft"}}]},
		"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"topologyKey":"soft"}}]}}`)
	// count returns the numbers of spread constraints, affinity terms, anti-affinity terms and preferred node
	// affinities.
	count := func(view View) [4]int {
		p := conversion.PodValue(pod, referencesOf(Objects{}, view))
		return [4]int{len(p.Spread), len(p.Affinity), len(p.AntiAffinity), len(p.Preferred)}
	}
	if got, want := count(View{}), [4]int{2, 2, 1, 1}; got != want {
		t.Errorf("the numbers of constraints with preferences are %v, want %v", got, want)
	}
	if got, want := count(View{IgnorePreferences: true}), [4]int{1, 1, 0, 0}; got != want {
		t.Errorf("the numbers of constraints without preferences are %v, want %v", got, want)
	}
}

// TestReaderReadsGroups: the reader lists Services and workload controllers if there are default constraints, and only
// then.
func TestReaderReadsGroups(t *testing.T) {
	t.Parallel()
	defaults, err := conversion.ReadDefaultSpread(zonesByDefault)
	if err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}}
	pod := kubetest.PendingPod("p")
	pod.Labels = map[string]string{"app": "web"}
	c := kubetest.FakeClient(t, interceptor.Funcs{}, service, pod)
	for want, given := range map[int]conversion.DefaultSpread{2: defaults, 0: {}} {
		s, err := (&Reader{Cache: c, DefaultSpread: given}).Snapshot(t.Context(), kubetest.Noon, nil)
		if err != nil || len(s.Pods) != 1 || len(s.Pods[0].Spread) != want {
			t.Errorf("%d pods, %+v, %v; want 1 pod with %d spread constraints", len(s.Pods), s.Pods, err, want)
		}
	}
}

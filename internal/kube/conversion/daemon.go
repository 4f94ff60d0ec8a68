package conversion

import (
	"cmp"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// daemonValue returns the DaemonSet as the solver sees it; false if its pods run on no node or cannot be predicted.
// Requests, tolerations, ports and labels come from the newest pod if there is one, because admission may have changed
// them. The allowed nodes come from the template, because the DaemonSet controller pins each pod to one node.
func daemonValue(set *appsv1.DaemonSet, newest *corev1.Pod, refs References) (cluster.Daemon, bool) {
	template := &set.Spec.Template
	if set.DeletionTimestamp != nil || len(template.Spec.ResourceClaims) > 0 {
		return cluster.Daemon{}, false
	}
	alternatives, problem := requiredAlternatives(&template.Spec)
	if problem != "" {
		return cluster.Daemon{}, false
	}
	sample := newest
	if sample == nil {
		sample = PodFromTemplate(template, metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name})
	}
	if impossibleRequest(sample) != "" || oversizeReason(sample) != "" ||
		oversizeReason(&corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}) != "" {
		return cluster.Daemon{}, false // such a pod fits no node; counting it would prevent every launch
	}
	return cluster.Daemon{
		Namespace:   set.Namespace,
		Name:        set.Name,
		Requests:    Requests(sample),
		Required:    alternatives,
		Tolerations: daemonTolerations(&sample.Spec),
		HostPorts:   HostPorts(&sample.Spec),
		Kind:        &cluster.PodKind{Namespace: set.Namespace, Labels: sample.Labels, RequiredAntiAffinity: RequiredAntiAffinity(sample, refs)},
	}, true
}

// daemonTolerations returns the pod's tolerations and those that the DaemonSet controller adds. Source: "Taints and
// tolerations of DaemonSets" in the Kubernetes documentation.
func daemonTolerations(spec *corev1.PodSpec) []requirements.Toleration {
	out := Tolerations(spec.Tolerations)
	add := func(key string, effect requirements.Effect) {
		t := requirements.Toleration{Key: key, Operator: string(corev1.TolerationOpExists), Effect: effect}
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	add(corev1.TaintNodeNotReady, requirements.NoExecute)
	add(corev1.TaintNodeUnreachable, requirements.NoExecute)
	add(corev1.TaintNodeDiskPressure, requirements.NoSchedule)
	add(corev1.TaintNodeMemoryPressure, requirements.NoSchedule)
	add(corev1.TaintNodePIDPressure, requirements.NoSchedule)
	add(corev1.TaintNodeUnschedulable, requirements.NoSchedule)
	if spec.HostNetwork {
		add(corev1.TaintNodeNetworkUnavailable, requirements.NoSchedule)
	}
	return out
}

// MaxDaemonCost is the maximum cost of the DaemonSets of one namespace. Each costs 1, and more for its node affinity,
// pod anti-affinity, tolerations and host ports. The limit is needed because every plan compares every DaemonSet with
// every node and every instance type. Real namespaces stay below it: a node runs a few hundred pods at most.
const MaxDaemonCost = 500

func daemonCost(d *cluster.Daemon) int {
	const perUnit = 8 // comparing this number of tolerations or ports takes about as long as comparing one DaemonSet
	// Rounded down, the six or seven tolerations that each DaemonSet gets cost nothing: see daemonTolerations.
	cost := 1 + len(d.Tolerations)/perUnit + (len(d.HostPorts)+perUnit-1)/perUnit
	for _, alternative := range d.Required {
		cost += 1 + len(alternative)
	}
	if d.Kind != nil {
		cost += len(d.Kind.RequiredAntiAffinity)
	}
	return cost
}

// withinDaemonCost returns all DaemonSets of kube-system, and the oldest ones of each other namespace, up to
// MaxDaemonCost.
func withinDaemonCost(sets []*appsv1.DaemonSet, values map[*appsv1.DaemonSet]cluster.Daemon) []cluster.Daemon {
	oldest := slices.SortedFunc(slices.Values(sets), func(a, b *appsv1.DaemonSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var out []cluster.Daemon
	spent := map[string]int{}
	for _, set := range oldest {
		d, ok := values[set]
		if !ok {
			continue
		}
		if spent[d.Namespace] += daemonCost(&d); spent[d.Namespace] <= MaxDaemonCost || d.Namespace == metav1.NamespaceSystem {
			out = append(out, d)
		}
	}
	return out
}

// Daemons returns the DaemonSets as the solver sees them, sorted by namespace and name. It leaves out DaemonSets whose
// pods run on no node or cannot be predicted, and those beyond MaxDaemonCost. newest has the newest pod of each
// DaemonSet, by UID of the DaemonSet.
func Daemons(sets []*appsv1.DaemonSet, newest map[types.UID]*corev1.Pod, refs References) []cluster.Daemon {
	values := make(map[*appsv1.DaemonSet]cluster.Daemon, len(sets))
	for _, set := range sets {
		var sample *corev1.Pod
		if set.UID != "" {
			sample = newest[set.UID]
		}
		if d, ok := daemonValue(set, sample, refs); ok {
			values[set] = d
		}
	}
	out := withinDaemonCost(sets, values)
	slices.SortFunc(out, func(a, b cluster.Daemon) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// NewestDaemonPods returns the newest pod of each DaemonSet, by UID of the DaemonSet.
func NewestDaemonPods(pods []*corev1.Pod) map[types.UID]*corev1.Pod {
	newest := map[types.UID]*corev1.Pod{}
	for _, pod := range pods {
		if set, ok := DaemonSetUID(pod); ok && IsNewer(pod, newest[set]) {
			newest[set] = pod
		}
	}
	return newest
}

// DaemonSetUID returns the UID of the pod's DaemonSet; false if the pod has no DaemonSet or has finished.
func DaemonSetUID(pod *corev1.Pod) (types.UID, bool) {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind != "DaemonSet" || IsFinished(pod) {
		return "", false
	}
	return ref.UID, true
}

// IsNewer reports whether a was created after b. Pods of the same second are compared by name and namespace. Every pod
// is newer than nil.
func IsNewer(a, b *corev1.Pod) bool {
	return b == nil || cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace)) > 0
}

// RunsDaemon reports whether the DaemonSet runs a pod on a node with these taints and labels.
func RunsDaemon(d *cluster.Daemon, taints []requirements.Taint, labels requirements.Labels) bool {
	if _, ok := requirements.Untolerated(taints, d.Tolerations); ok {
		return false
	}
	if len(d.Required) == 0 {
		return true
	}
	for _, alternative := range d.Required {
		if alternative.Accepts(labels) {
			return true
		}
	}
	return false
}

// PodFromTemplate returns the pod that a template makes, with the defaults of the API server that planning needs. The
// template is not changed.
func PodFromTemplate(template *corev1.PodTemplateSpec, meta metav1.ObjectMeta) *corev1.Pod {
	meta.Labels = maps.Clone(template.Labels)
	meta.Annotations = maps.Clone(template.Annotations)
	pod := &corev1.Pod{ObjectMeta: meta, Spec: *template.Spec.DeepCopy()}
	DefaultRequests(&pod.Spec)
	return pod
}

package conversion

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Groups are the objects of all namespaces whose selectors select pods. From these, kube-scheduler makes the selector
// of its default spread constraints.
type Groups struct {
	Services     []*corev1.Service
	Controllers  []*corev1.ReplicationController
	ReplicaSets  []*appsv1.ReplicaSet
	StatefulSets []*appsv1.StatefulSet
}

// PodSelectors finds the Services and the controller that select a pod.
type PodSelectors struct {
	// services are indexed by namespace, then by the first pair of their sorted selector, "key=value". Each pod that a
	// Service selects has this pair as a label.
	services map[string]map[string][]*corev1.Service
	owners   map[string]*metav1.LabelSelector // by "namespace/Kind/name"
}

// NewPodSelectors returns the index of the objects in g.
func NewPodSelectors(g Groups) *PodSelectors {
	out := &PodSelectors{services: map[string]map[string][]*corev1.Service{}, owners: map[string]*metav1.LabelSelector{}}
	for _, s := range g.Services {
		if len(s.Spec.Selector) == 0 {
			continue // the Service selects no pod
		}
		firstKey := slices.Min(slices.Collect(maps.Keys(s.Spec.Selector)))
		byPair := out.services[s.Namespace]
		if byPair == nil {
			byPair = map[string][]*corev1.Service{}
			out.services[s.Namespace] = byPair
		}
		pair := firstKey + "=" + s.Spec.Selector[firstKey]
		byPair[pair] = append(byPair[pair], s)
	}
	for _, c := range g.Controllers {
		out.owners[OwnerKey(c.Namespace, "ReplicationController", c.Name)] = &metav1.LabelSelector{MatchLabels: c.Spec.Selector}
	}
	for _, s := range g.ReplicaSets {
		out.owners[OwnerKey(s.Namespace, "ReplicaSet", s.Name)] = s.Spec.Selector
	}
	for _, s := range g.StatefulSets {
		out.owners[OwnerKey(s.Namespace, "StatefulSet", s.Name)] = s.Spec.Selector
	}
	return out
}

// selector returns the combined selector of the pod's Services and its controller; false if there is none. The order of
// the Services does not matter, because the pod has all labels in the selectors of its Services.
func (g *PodSelectors) selector(pod *corev1.Pod) (cluster.Selector, bool) {
	reqs := requirements.Requirements{}
	services := g.services[pod.Namespace]
	for key, value := range pod.Labels {
		for _, s := range services[key+"="+value] {
			if !SelectorMatches(s.Spec.Selector, pod.Labels) {
				continue
			}
			for k, v := range s.Spec.Selector {
				reqs.Narrow(k, requirements.OneOf(v))
			}
		}
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		if found, ok := g.owners[OwnerKey(pod.Namespace, owner.Kind, owner.Name)]; ok {
			own, problem := selectorOf(found)
			switch {
			case problem != "" || own.MatchesNothing: // kube-scheduler ignores this selector too
			case owner.Kind == "ReplicationController":
				maps.Copy(reqs, own.Labels) // where keys are equal, the controller's values replace those of the Services
			default:
				reqs = reqs.And(own.Labels)
			}
		}
	}
	return cluster.Selector{Labels: reqs}, len(reqs) > 0
}

// SelectorMatches reports whether labels has all pairs of selector.
func SelectorMatches(selector, labels map[string]string) bool {
	for key, value := range selector {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// OwnerKey returns the key of an owner: "namespace/Kind/name".
func OwnerKey(namespace, kind, name string) string { return namespace + "/" + kind + "/" + name }

package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/utils/ptr"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// admission holds the objects with which the admission of an API server completes pods. Joiner does the same for the
// pods in manifests.
type admission struct {
	priorities map[string]*schedulingv1.PriorityClass // PriorityClasses by name
	runtimes   map[string]*nodev1.RuntimeClass        // RuntimeClasses by name
	ranges     map[string][]*corev1.LimitRange        // LimitRanges by namespace

	missingRuntimes   map[string]bool // missing RuntimeClasses that pods use, by name
	missingPriorities map[string]int  // missing PriorityClasses, by name: the number of pods and templates that use each
}

func newAdmission() admission {
	return admission{
		priorities: map[string]*schedulingv1.PriorityClass{}, runtimes: map[string]*nodev1.RuntimeClass{},
		ranges: map[string][]*corev1.LimitRange{}, missingPriorities: map[string]int{}, missingRuntimes: map[string]bool{},
	}
}

// completeAll completes the pods, workloads and DaemonSets that were read. For pods, store has already called
// DefaultRequests.
func (d *Decoder) completeAll() {
	a := &d.admission
	for _, list := range a.ranges {
		slices.SortFunc(list, func(x, y *corev1.LimitRange) int { return cmp.Compare(x.Name, y.Name) })
	}
	for _, p := range d.objects.Pods {
		a.complete(p.Namespace, &p.Spec)
	}
	for _, s := range d.objects.DaemonSets {
		conversion.DefaultRequests(&s.Spec.Template.Spec)
		a.complete(s.Namespace, &s.Spec.Template.Spec)
	}
	for _, w := range d.workloads {
		conversion.DefaultRequests(&w.template.Spec)
		a.complete(w.object.GetNamespace(), &w.template.Spec)
	}
	for _, name := range slices.Sorted(maps.Keys(a.missingPriorities)) {
		d.notes = append(d.notes, fmt.Sprintf("PriorityClass %s is not among the manifests; its pods are planned with priority 0", name))
	}
	for _, name := range slices.Sorted(maps.Keys(a.missingRuntimes)) {
		d.notes = append(d.notes, fmt.Sprintf("RuntimeClass %s is not among the manifests; its pods are planned without its overhead, node selector and tolerations", name))
	}
}

// complete sets the fields of the pod that an API server's admission sets. Call conversion.DefaultRequests first: it
// sets missing requests to the limits.
func (a *admission) complete(namespace string, spec *corev1.PodSpec) {
	a.setPriority(spec)
	a.applyRuntimeClass(spec)
	for _, r := range a.ranges[namespace] {
		for i := range r.Spec.Limits {
			if item := &r.Spec.Limits[i]; item.Type == corev1.LimitTypeContainer {
				applyLimitRange(spec, item)
			}
		}
	}
}

// setPriority sets a missing priority to that of the pod's PriorityClass, or of the default class if the pod names
// none.
func (a *admission) setPriority(spec *corev1.PodSpec) {
	if spec.Priority != nil {
		return
	}
	if name := spec.PriorityClassName; name != "" {
		switch class, ok := a.priorities[name]; {
		case ok:
			spec.Priority = ptr.To(class.Value)
		case conversion.Priority(&corev1.Pod{Spec: *spec}) == 0: // not a built-in class, like system-node-critical
			a.missingPriorities[name]++
		}
		return
	}
	for _, class := range a.priorities {
		if class.GlobalDefault && (spec.Priority == nil || class.Value < *spec.Priority) { // of several defaults the API server uses the lowest
			spec.Priority = ptr.To(class.Value)
		}
	}
}

func (a *admission) applyRuntimeClass(spec *corev1.PodSpec) {
	if spec.RuntimeClassName == nil {
		return
	}
	class, ok := a.runtimes[*spec.RuntimeClassName]
	if !ok {
		if *spec.RuntimeClassName != "" {
			a.missingRuntimes[*spec.RuntimeClassName] = true
		}
		return
	}
	if class.Overhead != nil && spec.Overhead == nil {
		spec.Overhead = maps.Clone(class.Overhead.PodFixed)
	}
	if class.Scheduling == nil {
		return
	}
	if len(class.Scheduling.NodeSelector) > 0 {
		selector := maps.Clone(class.Scheduling.NodeSelector)
		maps.Copy(selector, spec.NodeSelector)
		spec.NodeSelector = selector
	}
	for _, t := range class.Scheduling.Tolerations {
		if !slices.Contains(spec.Tolerations, t) {
			spec.Tolerations = append(slices.Clip(spec.Tolerations), t)
		}
	}
}

// applyLimitRange sets the missing requests and limits of containers to the defaults of a LimitRange. A missing default
// limit is the maximum; a missing default request is the default limit, else the minimum.
func applyLimitRange(spec *corev1.PodSpec, item *corev1.LimitRangeItem) {
	limits := maps.Clone(item.Default)
	addMissing(&limits, item.Max)
	requests := maps.Clone(item.DefaultRequest)
	addMissing(&requests, limits)
	addMissing(&requests, item.Min)
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			list[i].Resources.Requests = maps.Clone(list[i].Resources.Requests)
			list[i].Resources.Limits = maps.Clone(list[i].Resources.Limits)
			addMissing(&list[i].Resources.Requests, requests)
			addMissing(&list[i].Resources.Limits, limits)
		}
	}
}

func addMissing(target *corev1.ResourceList, source corev1.ResourceList) {
	for name, amount := range source {
		if _, ok := (*target)[name]; ok {
			continue
		}
		if *target == nil {
			*target = corev1.ResourceList{}
		}
		(*target)[name] = amount
	}
}

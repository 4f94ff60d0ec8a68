package conversion

import (
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// trimObject drops the fields that Joiner does not read, for kinds that users may create in their namespaces. It also
// drops selectors longer than maxRulesSize: the API server accepts objects of 1.5 MiB, and users may create thousands.
func trimObject(object any) {
	switch v := object.(type) {
	case *appsv1.ReplicaSet: // by default, a Deployment keeps ten old ones
		trimMeta(&v.ObjectMeta)
		v.Spec = appsv1.ReplicaSetSpec{Replicas: v.Spec.Replicas, Selector: trimSelector(v.Spec.Selector)}
	case *appsv1.StatefulSet:
		trimMeta(&v.ObjectMeta)
		v.Spec = appsv1.StatefulSetSpec{Replicas: v.Spec.Replicas, Selector: trimSelector(v.Spec.Selector)}
	case *corev1.ReplicationController:
		trimMeta(&v.ObjectMeta)
		v.Spec = corev1.ReplicationControllerSpec{Replicas: v.Spec.Replicas, Selector: trimMapSelector(v.Spec.Selector)}
	case *corev1.Service:
		trimMeta(&v.ObjectMeta)
		v.Spec = corev1.ServiceSpec{Selector: trimMapSelector(v.Spec.Selector)}
	case *appsv1.DaemonSet:
		trimDaemonSet(v)
	case *corev1.PersistentVolumeClaim:
		trimMeta(&v.ObjectMeta, AnnotationBound, annotationSelected, corev1.BetaStorageClassAnnotation)
		v.Spec = corev1.PersistentVolumeClaimSpec{
			VolumeName:       v.Spec.VolumeName,
			StorageClassName: v.Spec.StorageClassName,
			AccessModes:      trimModes(v.Spec.AccessModes),
		}
	case *policyv1.PodDisruptionBudget:
		trimBudget(v)
	}
}

// trimMeta drops labels, finalizers, managed fields, and owners other than the controller. Of the annotations it keeps
// those with the given keys, unless their value is too long.
func trimMeta(m *metav1.ObjectMeta, keys ...string) {
	var kept map[string]string
	for _, key := range keys {
		if value, ok := m.Annotations[key]; ok && len(value) <= maxAnnotationSize {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	m.Annotations, m.Labels, m.Finalizers, m.ManagedFields = kept, nil, nil, nil
	m.OwnerReferences = controllerOnly(m)
}

func controllerOnly(m *metav1.ObjectMeta) []metav1.OwnerReference {
	if owner := metav1.GetControllerOf(m); owner != nil {
		return []metav1.OwnerReference{*owner}
	}
	return nil
}

// trimSelector returns the selector; a selector that is too long becomes nil, which selects nothing.
func trimSelector(s *metav1.LabelSelector) *metav1.LabelSelector {
	if s != nil && s.Size() > maxRulesSize {
		return nil
	}
	return s
}

// trimMapSelector returns the selector; a selector that is too long becomes nil, which selects nothing.
func trimMapSelector(selector map[string]string) map[string]string {
	if textSize(selector) > maxRulesSize {
		return nil
	}
	return selector
}

// trimModes returns the modes that Kubernetes knows, without duplicates.
func trimModes(modes []corev1.PersistentVolumeAccessMode) []corev1.PersistentVolumeAccessMode {
	var out []corev1.PersistentVolumeAccessMode
	for _, m := range []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany,
		corev1.ReadWriteOncePod} {
		if slices.Contains(modes, m) {
			out = append(out, m)
		}
	}
	return out
}

// trimDaemonSet keeps the same fields of a DaemonSet's template as trimPod keeps of a pod.
func trimDaemonSet(set *appsv1.DaemonSet) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: set.Spec.Template.Labels}, Spec: set.Spec.Template.Spec}
	trimPod(pod)
	trimMeta(&set.ObjectMeta)
	set.Spec = appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{
		Labels:      pod.Labels,
		Annotations: pod.Annotations,
	}, Spec: pod.Spec}}
}

// trimBudget drops a selector that is too long. It then marks the budget with AnnotationOversized: the budget may
// select any pod of its namespace.
func trimBudget(b *policyv1.PodDisruptionBudget) {
	trimMeta(&b.ObjectMeta)
	if size := b.Spec.Selector.Size(); size > maxRulesSize {
		b.Annotations, b.Spec.Selector = map[string]string{AnnotationOversized: strconv.Itoa(size)}, &metav1.LabelSelector{}
	}
	if len(b.Status.DisruptedPods) > 0 {
		b.Status.DisruptedPods = nil
	}
}

// trimPodLevelRequests keeps only CPU and memory of an oversized pod's pod-level requests.
func trimPodLevelRequests(spec *corev1.PodSpec) {
	if spec.Resources == nil {
		return
	}
	kept := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if quantity, ok := spec.Resources.Requests[name]; ok {
			kept[name] = quantity
		}
	}
	spec.Resources = &corev1.ResourceRequirements{Requests: kept}
}

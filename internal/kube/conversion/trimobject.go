package conversion

import (
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// trimObject drops unread fields from the kinds that users may create in their namespaces, and selectors longer than
// maxRules: the API server accepts objects of 1.5 MiB, and users may create thousands.
func trimObject(object any) {
	switch v := object.(type) {
	case *appsv1.ReplicaSet: // a Deployment keeps ten of them
		trimMeta(&v.ObjectMeta)
		v.Spec = appsv1.ReplicaSetSpec{Replicas: v.Spec.Replicas, Selector: trimSelector(v.Spec.Selector)}
	case *appsv1.StatefulSet:
		trimMeta(&v.ObjectMeta)
		v.Spec = appsv1.StatefulSetSpec{Replicas: v.Spec.Replicas, Selector: trimSelector(v.Spec.Selector)}
	case *corev1.ReplicationController:
		trimMeta(&v.ObjectMeta)
		v.Spec = corev1.ReplicationControllerSpec{Replicas: v.Spec.Replicas, Selector: trimPairs(v.Spec.Selector)}
	case *corev1.Service:
		trimMeta(&v.ObjectMeta)
		v.Spec = corev1.ServiceSpec{Selector: trimPairs(v.Spec.Selector)}
	case *appsv1.DaemonSet:
		trimDaemon(v)
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

// trimMeta keeps name, times, the controller, and the annotations with these keys.
func trimMeta(m *metav1.ObjectMeta, keys ...string) {
	var kept map[string]string
	for _, key := range keys {
		if value, ok := m.Annotations[key]; ok && len(value) <= maxAnnotation {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	m.Annotations, m.Labels, m.Finalizers, m.ManagedFields = kept, nil, nil, nil
	m.OwnerReferences = controllerOnly(m)
}

// controllerOnly returns the reference to the controller, as a list.
func controllerOnly(m *metav1.ObjectMeta) []metav1.OwnerReference {
	if owner := metav1.GetControllerOf(m); owner != nil {
		return []metav1.OwnerReference{*owner}
	}
	return nil
}

// trimSelector returns the selector; a selector that is too long becomes nil, which selects nothing.
func trimSelector(s *metav1.LabelSelector) *metav1.LabelSelector {
	if s != nil && s.Size() > maxRules {
		return nil
	}
	return s
}

// trimPairs returns the selector; a selector that is too long becomes nil, which selects nothing.
func trimPairs(selector map[string]string) map[string]string {
	if textSize(selector) > maxRules {
		return nil
	}
	return selector
}

// trimModes returns the modes without duplicates.
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

// trimDaemon keeps the same fields of a DaemonSet's template as of a pod.
func trimDaemon(set *appsv1.DaemonSet) {
	like := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: set.Spec.Template.Labels}, Spec: set.Spec.Template.Spec}
	trimPod(like)
	trimMeta(&set.ObjectMeta)
	set.Spec = appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{
		Labels:      like.Labels,
		Annotations: like.Annotations,
	}, Spec: like.Spec}}
}

// trimBudget drops a selector that is too long and marks the budget: it may then select any pod of its namespace.
func trimBudget(b *policyv1.PodDisruptionBudget) {
	trimMeta(&b.ObjectMeta)
	if size := b.Spec.Selector.Size(); size > maxRules {
		b.Annotations, b.Spec.Selector = map[string]string{AnnotationOversized: strconv.Itoa(size)}, &metav1.LabelSelector{}
	}
	if len(b.Status.DisruptedPods) > 0 {
		b.Status.DisruptedPods = nil
	}
}

// trimWhole keeps only CPU and memory of the pod-level requests.
func trimWhole(spec *corev1.PodSpec) {
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

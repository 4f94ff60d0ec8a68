package conversion

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// lastApplied is the annotation in which kubectl stores a second copy of the object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// CacheOptions returns the options of a cache that keeps only the fields that Joiner reads. Pods take most of the
// cache's memory, and most of a pod describes how its containers run, which Joiner does not read.
func CacheOptions() cache.Options {
	return cache.Options{DefaultTransform: Trim}
}

// Trim drops from an object, before it enters the cache, the fields that Joiner never reads. It changes the object.
func Trim(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
		if annotations := accessor.GetAnnotations(); annotations[lastApplied] != "" {
			delete(annotations, lastApplied)
		}
	}
	switch v := object.(type) {
	case *corev1.Pod:
		trimPod(v)
	case *corev1.Node:
		v.Status.Images = nil
	default:
		trimObject(object)
	}
	return object, nil
}

func trimPod(v *corev1.Pod) {
	trimContainers(v.Spec.Containers)
	trimContainers(v.Spec.InitContainers)
	v.Spec.EphemeralContainers = nil
	v.Spec.Volumes = trimVolumes(v.Spec.Volumes)
	trimStatuses(v.Status.ContainerStatuses)
	trimStatuses(v.Status.InitContainerStatuses)
	v.Status.EphemeralContainerStatuses = nil
	v.Spec.HostAliases, v.Spec.ImagePullSecrets, v.Spec.DNSConfig, v.Spec.SecurityContext, v.Spec.ReadinessGates = nil, nil, nil, nil, nil
	v.Finalizers = nil
	trimAnnotations(v)
	trimRules(v)
}

func trimContainers(list []corev1.Container) {
	for i := range list {
		c := &list[i]
		list[i] = corev1.Container{Name: c.Name, Resources: c.Resources, Ports: c.Ports, RestartPolicy: c.RestartPolicy}
	}
}

// trimVolumes keeps the volumes that have a PersistentVolumeClaim, ephemeral ones included.
func trimVolumes(list []corev1.Volume) []corev1.Volume {
	var out []corev1.Volume
	for i := range list {
		v := &list[i]
		if v.PersistentVolumeClaim == nil && v.Ephemeral == nil {
			continue
		}
		kept := corev1.Volume{Name: v.Name}
		kept.PersistentVolumeClaim = v.PersistentVolumeClaim
		if v.Ephemeral != nil {
			kept.Ephemeral = &corev1.EphemeralVolumeSource{}
		}
		out = append(out, kept)
	}
	return out
}

func trimStatuses(list []corev1.ContainerStatus) {
	for i := range list {
		s := &list[i]
		list[i] = corev1.ContainerStatus{
			Name: s.Name, Ready: s.Ready, State: s.State, Resources: s.Resources, AllocatedResources: s.AllocatedResources,
		}
	}
}

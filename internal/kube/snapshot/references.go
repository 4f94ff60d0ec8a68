package snapshot

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// ownersOf returns, for each ReadWriteOncePod claim, the pod that uses it: the running pod or, if none runs, the pod
// that kube-scheduler would take first. Claims and pods are "namespace/name".
func ownersOf(o Objects) map[string]string {
	owners := map[string]*corev1.Pod{}
	for _, claim := range o.VolumeClaims {
		if conversion.IsReadWriteOncePod(claim) {
			owners[claim.Namespace+"/"+claim.Name] = nil
		}
	}
	if len(owners) == 0 {
		return nil
	}
	for _, pod := range o.Pods {
		if conversion.IsFinished(pod) || pod.Spec.NodeName == "" && !conversion.NeedsNode(pod) {
			continue
		}
		for i := range pod.Spec.Volumes {
			source := pod.Spec.Volumes[i].PersistentVolumeClaim
			if source == nil {
				continue
			}
			id := pod.Namespace + "/" + source.ClaimName
			if old, ok := owners[id]; ok && (old == nil || conversion.PrecedesForVolume(pod, old)) {
				owners[id] = pod
			}
		}
	}
	out := make(map[string]string, len(owners))
	for id, pod := range owners {
		if pod != nil {
			out[id] = pod.Namespace + "/" + pod.Name
		}
	}
	return out
}

// referencesOf returns the objects that the values of pods depend on.
func referencesOf(o Objects, view View) conversion.References {
	out := conversion.References{
		Volumes:           volumesOf(o, view.Live),
		Namespaces:        conversion.NewNamespaces(o.Namespaces, o.Pods, view.Live),
		Usual:             view.Usual,
		IgnorePreferences: view.IgnorePreferences,
	}
	if !view.Usual.IsZero() {
		out.Groups = conversion.NewPodSelectors(o.Groups)
	}
	return out
}

// volumesOf indexes the volume claims, volumes and storage classes. The driver of EBS always may limit attachments.
func volumesOf(o Objects, live bool) conversion.VolumeIndex {
	out := conversion.VolumeIndex{
		Limited: map[string]bool{conversion.DriverEBS: true},
		Live:    live,
		Claims:  make(map[string]*corev1.PersistentVolumeClaim, len(o.VolumeClaims)),
		Volumes: make(map[string]*corev1.PersistentVolume, len(o.Volumes)),
		Classes: make(map[string]*storagev1.StorageClass, len(o.StorageClasses)),
	}
	for _, c := range o.VolumeClaims {
		out.Claims[c.Namespace+"/"+c.Name] = c
	}
	for _, v := range o.Volumes {
		out.Volumes[v.Name] = v
	}
	for _, c := range o.StorageClasses {
		out.Classes[c.Name] = c
		// If several are marked as default, Kubernetes takes the newest; their names decide among equals.
		if c.Annotations["storageclass.kubernetes.io/is-default-class"] != "true" {
			continue
		}
		old := out.Classes[out.Usual]
		if old == nil || c.CreationTimestamp.After(old.CreationTimestamp.Time) ||
			c.CreationTimestamp.Equal(&old.CreationTimestamp) && c.Name < old.Name {
			out.Usual = c.Name
		}
	}
	for _, n := range o.CSINodes {
		for _, e := range conversion.AttachLimits(n).Extended {
			out.Limited[strings.TrimPrefix(e.Name, conversion.AttachablePrefix)] = true
		}
	}
	out.Single = ownersOf(o)
	return out
}

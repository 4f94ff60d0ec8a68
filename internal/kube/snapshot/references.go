package snapshot

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// singleUsersOf returns, for each ReadWriteOncePod claim, the only pod that may use it now: the bound pod or, if none
// is bound, the pod that kube-scheduler would schedule first. Claims and pods are "namespace/name".
func singleUsersOf(o Objects) map[string]string {
	users := map[string]*corev1.Pod{}
	for _, claim := range o.VolumeClaims {
		if conversion.IsReadWriteOncePod(claim) {
			users[claim.Namespace+"/"+claim.Name] = nil
		}
	}
	if len(users) == 0 {
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
			if old, ok := users[id]; ok && (old == nil || conversion.PrecedesForVolume(pod, old)) {
				users[id] = pod
			}
		}
	}
	out := make(map[string]string, len(users))
	for id, pod := range users {
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
		DefaultSpread:     view.DefaultSpread,
		IgnorePreferences: view.IgnorePreferences,
	}
	if !view.DefaultSpread.IsZero() {
		out.Groups = conversion.NewPodSelectors(o.Groups)
	}
	return out
}

// volumesOf indexes the volume claims, volumes and storage classes, and the drivers that limit attachments. The EBS
// driver always counts as one that limits attachments.
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
		// If several classes are marked as default, Kubernetes takes the newest, and of equally old ones the first by
		// name.
		if c.Annotations["storageclass.kubernetes.io/is-default-class"] != "true" {
			continue
		}
		old := out.Classes[out.DefaultClass]
		if old == nil || c.CreationTimestamp.After(old.CreationTimestamp.Time) ||
			c.CreationTimestamp.Equal(&old.CreationTimestamp) && c.Name < old.Name {
			out.DefaultClass = c.Name
		}
	}
	for _, n := range o.CSINodes {
		for _, e := range conversion.AttachLimits(n).Extended {
			out.Limited[strings.TrimPrefix(e.Name, conversion.AttachablePrefix)] = true
		}
	}
	out.Single = singleUsersOf(o)
	return out
}

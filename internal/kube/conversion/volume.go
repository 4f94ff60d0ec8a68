package conversion

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// VolumeIndex finds the claims, volumes and storage classes that pods name.
type VolumeIndex struct {
	Live         bool                                     // false for manifests, which may lack objects that exist
	Claims       map[string]*corev1.PersistentVolumeClaim // by "namespace/name"
	Volumes      map[string]*corev1.PersistentVolume      // by name
	Classes      map[string]*storagev1.StorageClass       // by name
	DefaultClass string                                   // name of the default storage class; empty if there is none

	Limited map[string]bool   // the drivers that may limit the number of attached volumes of a node
	Single  map[string]string // by ReadWriteOncePod claim: the pod that uses it; both as "namespace/name"
}

// restrict narrows the alternatives, which are requirements on the pod's node, by the pod's volumes. The text says why
// the pod cannot be planned; empty if it can.
func (v *VolumeIndex) restrict(pod *corev1.Pod, alternatives []requirements.Requirements) ([]requirements.Requirements, string) {
	for i := range pod.Spec.Volumes {
		name := ClaimName(pod, &pod.Spec.Volumes[i])
		if name == "" {
			continue
		}
		where, why := v.claimPlaces(pod, name, pod.Spec.Volumes[i].Ephemeral != nil)
		if why != "" {
			return nil, why
		}
		if where == nil {
			continue
		}
		if alternatives, why = product(alternatives, where); why != "" {
			return nil, why
		}
	}
	return alternatives, ""
}

// ClaimName returns the name of the PersistentVolumeClaim behind a pod's volume; empty if there is none.
func ClaimName(pod *corev1.Pod, volume *corev1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		return pod.Name + "-" + volume.Name
	}
	return ""
}

// claimPlaces returns where the claim's volume is, or where it may be created; nil means anywhere. The text says why
// the pod cannot be planned. The pod must be the controller of the claim of an ephemeral volume.
func (v *VolumeIndex) claimPlaces(pod *corev1.Pod, name string, isEphemeral bool) ([]requirements.Requirements, string) {
	id := pod.Namespace + "/" + name
	claim, ok := v.Claims[id]
	switch {
	case !ok && v.Live:
		return nil, fmt.Sprintf("its volume claim %s does not exist", name)
	case !ok:
		return nil, "" // a controller may create it later
	case claim.DeletionTimestamp != nil:
		return nil, fmt.Sprintf("its volume claim %s is being deleted", name)
	case claim.Status.Phase == corev1.ClaimLost:
		return nil, fmt.Sprintf("the volume of its claim %s is lost", name)
	case isEphemeral && v.Live && !metav1.IsControlledBy(claim, pod):
		return nil, fmt.Sprintf("volume claim %s, which would be made for it, is there and is not its own", name)
	}
	if user := v.Single[id]; user != "" && user != pod.Namespace+"/"+pod.Name {
		return nil, fmt.Sprintf("its volume claim %s is for one pod at a time (ReadWriteOncePod), and pod %s comes first", name, user)
	}
	if claim.Spec.VolumeName != "" {
		return v.boundPlaces(claim)
	}
	class := v.classOf(claim)
	if class == "" && claim.Spec.StorageClassName == nil && !v.Live {
		return nil, "" // the default class is not among the manifests
	}
	return v.unboundPlaces(claim, class)
}

// classOf returns the name of the claim's storage class; empty if it has none.
func (v *VolumeIndex) classOf(claim *corev1.PersistentVolumeClaim) string {
	if name, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return name
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return v.DefaultClass // the API server will set it on the claim
}

// Annotations of volume claims.
const (
	AnnotationBound    = "pv.kubernetes.io/bind-completed"    // the claim and its volume are bound
	annotationSelected = "volume.kubernetes.io/selected-node" // the volume is being created for a pod on this node
)

// boundPlaces returns where the volume of a claim with spec.volumeName can be used; nil means anywhere. The text says
// why the pod cannot be planned.
func (v *VolumeIndex) boundPlaces(claim *corev1.PersistentVolumeClaim) ([]requirements.Requirements, string) {
	volume, ok := v.Volumes[claim.Spec.VolumeName]
	_, isBound := claim.Annotations[AnnotationBound]
	switch {
	case !isBound && v.Live:
		return nil, fmt.Sprintf("its volume claim %s is not bound to volume %s yet: kube-scheduler waits for it",
			claim.Name, claim.Spec.VolumeName)
	case !ok && v.Live:
		return nil, fmt.Sprintf("volume %s of its claim %s does not exist", claim.Spec.VolumeName, claim.Name)
	case !ok:
		return nil, ""
	case volume.DeletionTimestamp != nil:
		return nil, fmt.Sprintf("volume %s of its claim %s is being deleted", volume.Name, claim.Name)
	}
	where, why := volumeAffinity(volume)
	if why != "" {
		return nil, why
	}
	// Volumes created before CSI have their zone only as a label; "__" separates several zones.
	byLabel := requirements.Requirements{}
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone,
		corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaRegion} {
		if zones, ok := volume.Labels[key]; ok {
			byLabel.Narrow(StableKey(key), requirements.OneOf(strings.Split(zones, "__")...))
		}
	}
	if len(byLabel) == 0 {
		return where, ""
	}
	return product(where, []requirements.Requirements{byLabel})
}

// volumeAffinity returns the alternatives of the volume's node affinity; nil if it has none.
func volumeAffinity(volume *corev1.PersistentVolume) ([]requirements.Requirements, string) {
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return nil, ""
	}
	var out []requirements.Requirements
	for i := range volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
		reqs, _ := narrow(requirements.Requirements{}, &volume.Spec.NodeAffinity.Required.NodeSelectorTerms[i])
		if reqs != nil { // nil: no node can satisfy the term
			out = append(out, reqs)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Sprintf("the node affinity of volume %s has no term that a node can satisfy", volume.Name)
	}
	return out, ""
}

// noProvisioner is the provisioner of storage classes whose volumes users create on the disks of nodes.
const noProvisioner = "kubernetes.io/no-provisioner"

// unboundPlaces returns where the volume of an unbound claim may be created; nil means anywhere. className is the name
// of the storage class. The text says why the pod cannot be planned.
func (v *VolumeIndex) unboundPlaces(claim *corev1.PersistentVolumeClaim, className string) ([]requirements.Requirements, string) {
	class, ok := v.Classes[className]
	node := claim.Annotations[annotationSelected]
	switch {
	case className == "":
		return nil, fmt.Sprintf("its volume claim %s is not bound and has no storage class", claim.Name)
	case !ok && v.Live:
		return nil, fmt.Sprintf("storage class %s of its volume claim %s does not exist", className, claim.Name)
	case !ok:
		return nil, ""
	case !waitsForPod(class):
		return nil, fmt.Sprintf("its volume claim %s is not bound yet, and storage class %s binds at once:"+
			" kube-scheduler waits for it", claim.Name, className)
	case class.Provisioner == noProvisioner:
		return nil, fmt.Sprintf("its volume claim %s needs a volume that is on a node already"+
			" (storage class %s provisions none)", claim.Name, className)
	case node != "":
		return []requirements.Requirements{{corev1.LabelHostname: requirements.OneOf(node)}}, ""
	case len(class.AllowedTopologies) == 0:
		return nil, ""
	}
	var out []requirements.Requirements
	for _, term := range class.AllowedTopologies {
		reqs := requirements.Requirements{}
		for _, e := range term.MatchLabelExpressions {
			reqs.Narrow(StableKey(e.Key), requirements.OneOf(e.Values...))
		}
		if len(reqs) > 0 {
			out = append(out, reqs)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Sprintf("allowedTopologies of storage class %s, which its volume claim %s has, allow nothing",
			className, claim.Name)
	}
	return out, ""
}

// waitsForPod reports whether volumes of the class are created where their first pod is scheduled.
func waitsForPod(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

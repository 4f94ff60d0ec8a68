package snapshot

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// volumeState receives the objects that decide where a pod's volumes can be attached. It stores them in
// pods.references.Volumes, and marks the values of the pods that use a changed object, so that they are computed again.
type volumeState struct {
	pods *podState

	csiNodes       map[string]*storagev1.CSINode // CSINodes by Node name
	claimsByVolume map[string]map[string]bool    // by name of a volume: the "namespace/name" of the claims that name the volume
	limitingNodes  map[string]int                // by driver: on how many nodes the driver limits attachments
}

func newVolumeState(pods *podState) *volumeState {
	return &volumeState{
		pods: pods, csiNodes: map[string]*storagev1.CSINode{},
		claimsByVolume: map[string]map[string]bool{}, limitingNodes: map[string]int{},
	}
}

func (s *volumeState) putVolumeClaim(claim *corev1.PersistentVolumeClaim) {
	id := claim.Namespace + "/" + claim.Name
	before := s.pods.references.Volumes.Claims[id]
	if before == claim {
		return
	}
	s.forgetClaim(before)
	s.pods.references.Volumes.Claims[id] = claim
	if volume := claim.Spec.VolumeName; volume != "" {
		if s.claimsByVolume[volume] == nil {
			s.claimsByVolume[volume] = map[string]bool{}
		}
		s.claimsByVolume[volume][id] = true
	}
	s.invalidateClaim(id)
}

func (s *volumeState) dropVolumeClaim(claim *corev1.PersistentVolumeClaim) {
	id := claim.Namespace + "/" + claim.Name
	s.forgetClaim(s.pods.references.Volumes.Claims[id])
	delete(s.pods.references.Volumes.Claims, id)
	s.invalidateClaim(id)
}

// forgetClaim removes the claim, which may be nil, from claimsByVolume.
func (s *volumeState) forgetClaim(claim *corev1.PersistentVolumeClaim) {
	if claim == nil {
		return
	}
	volume := claim.Spec.VolumeName
	if delete(s.claimsByVolume[volume], claim.Namespace+"/"+claim.Name); len(s.claimsByVolume[volume]) == 0 {
		delete(s.claimsByVolume, volume)
	}
}

// invalidateClaim marks the pods that use the volume claim with this id, "namespace/name".
func (s *volumeState) invalidateClaim(id string) {
	d := dependency{onClaim, id}
	s.pods.invalidate(d)
	s.pods.markSingleUser(d)
}

func (s *volumeState) putVolume(volume *corev1.PersistentVolume) {
	if s.pods.references.Volumes.Volumes[volume.Name] == volume {
		return
	}
	s.pods.references.Volumes.Volumes[volume.Name] = volume
	s.invalidateVolume(volume.Name)
}

func (s *volumeState) dropVolume(volume *corev1.PersistentVolume) {
	delete(s.pods.references.Volumes.Volumes, volume.Name)
	s.invalidateVolume(volume.Name)
}

// invalidateVolume marks the pods whose claims name the volume.
func (s *volumeState) invalidateVolume(name string) {
	for id := range s.claimsByVolume[name] {
		s.pods.invalidate(dependency{onClaim, id})
	}
}

func (s *volumeState) putStorageClass(class *storagev1.StorageClass) {
	if s.pods.references.Volumes.Classes[class.Name] != class {
		s.pods.references.Volumes.Classes[class.Name] = class
		s.rebuildClasses()
	}
}

func (s *volumeState) dropStorageClass(class *storagev1.StorageClass) {
	delete(s.pods.references.Volumes.Classes, class.Name)
	s.rebuildClasses()
}

func (s *volumeState) rebuildClasses() {
	v := volumesOf(Objects{StorageClasses: slices.Collect(maps.Values(s.pods.references.Volumes.Classes))}, true)
	s.pods.references.Volumes.Classes, s.pods.references.Volumes.DefaultClass = v.Classes, v.DefaultClass
	s.invalidateAllVolumes()
}

func (s *volumeState) invalidateAllVolumes() {
	for d := range s.pods.users {
		if d.kind == onClaim {
			s.pods.invalidate(d)
		}
	}
}

func (s *volumeState) putCSINode(node *storagev1.CSINode) {
	before := s.csiNodes[node.Name]
	if before == node {
		return
	}
	s.csiNodes[node.Name] = node
	s.countLimits(before, -1)
	s.countLimits(node, 1)
	s.updateLimited()
}

func (s *volumeState) dropCSINode(node *storagev1.CSINode) {
	before := s.csiNodes[node.Name]
	delete(s.csiNodes, node.Name)
	s.countLimits(before, -1)
	s.updateLimited()
}

// countLimits adds n to limitingNodes of each driver that limits the number of volumes attached to the node.
func (s *volumeState) countLimits(node *storagev1.CSINode, n int) {
	for _, e := range conversion.AttachLimits(node).Extended {
		driver := strings.TrimPrefix(e.Name, conversion.AttachablePrefix)
		if s.limitingNodes[driver] += n; s.limitingNodes[driver] == 0 {
			delete(s.limitingNodes, driver)
		}
	}
}

// updateLimited updates the set of drivers that limit attachments on any node. The set changes only when a driver is
// installed or removed.
func (s *volumeState) updateLimited() {
	limited := volumesOf(Objects{}, true).Limited
	for driver := range s.limitingNodes {
		limited[driver] = true
	}
	if !maps.Equal(limited, s.pods.references.Volumes.Limited) {
		s.pods.references.Volumes.Limited = limited
		s.invalidateAllVolumes()
	}
}

package snapshot

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// volumeState is the objects that decide where a pod's volumes can be attached. It keeps them in pods.around.Volumes, and
// invalidates the pods that use a changed object.
type volumeState struct {
	pods *podState

	drivers   map[string]*storagev1.CSINode // by Node name
	bookings  map[string]map[string]bool    // the volume claims ("namespace/name") that name a volume, by name of the volume
	attachers map[string]int                // the number of nodes that limit how many volumes a driver attaches, by driver
}

func newVolumeState(pods *podState) *volumeState {
	return &volumeState{
		pods: pods, drivers: map[string]*storagev1.CSINode{}, bookings: map[string]map[string]bool{}, attachers: map[string]int{},
	}
}

func (s *volumeState) putRequest(claim *corev1.PersistentVolumeClaim) {
	id := claim.Namespace + "/" + claim.Name
	before := s.pods.around.Volumes.Claims[id]
	if before == claim {
		return
	}
	s.unbook(before)
	s.pods.around.Volumes.Claims[id] = claim
	if volume := claim.Spec.VolumeName; volume != "" {
		if s.bookings[volume] == nil {
			s.bookings[volume] = map[string]bool{}
		}
		s.bookings[volume][id] = true
	}
	s.touchRequest(id)
}

func (s *volumeState) dropRequest(claim *corev1.PersistentVolumeClaim) {
	id := claim.Namespace + "/" + claim.Name
	s.unbook(s.pods.around.Volumes.Claims[id])
	delete(s.pods.around.Volumes.Claims, id)
	s.touchRequest(id)
}

// unbook forgets which volume the claim names.
func (s *volumeState) unbook(claim *corev1.PersistentVolumeClaim) {
	if claim == nil {
		return
	}
	volume := claim.Spec.VolumeName
	if delete(s.bookings[volume], claim.Namespace+"/"+claim.Name); len(s.bookings[volume]) == 0 {
		delete(s.bookings, volume)
	}
}

func (s *volumeState) touchRequest(id string) {
	d := dependency{onClaim, id}
	s.pods.touch(d)
	s.pods.contest(d)
}

func (s *volumeState) putVolume(volume *corev1.PersistentVolume) {
	if s.pods.around.Volumes.Volumes[volume.Name] == volume {
		return
	}
	s.pods.around.Volumes.Volumes[volume.Name] = volume
	s.touchVolume(volume.Name)
}

func (s *volumeState) dropVolume(volume *corev1.PersistentVolume) {
	delete(s.pods.around.Volumes.Volumes, volume.Name)
	s.touchVolume(volume.Name)
}

func (s *volumeState) touchVolume(name string) {
	for id := range s.bookings[name] {
		s.pods.touch(dependency{onClaim, id})
	}
}

func (s *volumeState) putStorage(class *storagev1.StorageClass) {
	if s.pods.around.Volumes.Classes[class.Name] != class {
		s.pods.around.Volumes.Classes[class.Name] = class
		s.restore()
	}
}

func (s *volumeState) dropStorage(class *storagev1.StorageClass) {
	delete(s.pods.around.Volumes.Classes, class.Name)
	s.restore()
}

// restore makes the storage classes again, which are few and hardly ever change.
func (s *volumeState) restore() {
	v := volumesOf(Objects{StorageClasses: slices.Collect(maps.Values(s.pods.around.Volumes.Classes))}, true)
	s.pods.around.Volumes.Classes, s.pods.around.Volumes.Usual = v.Classes, v.Usual
	s.touchVolumes()
}

// touchVolumes marks all pods that have volumes.
func (s *volumeState) touchVolumes() {
	for d := range s.pods.users {
		if d.kind == onClaim {
			s.pods.touch(d)
		}
	}
}

func (s *volumeState) putDrivers(node *storagev1.CSINode) {
	before := s.drivers[node.Name]
	if before == node {
		return
	}
	s.drivers[node.Name] = node
	s.limit(before, -1)
	s.limit(node, 1)
	s.relimit()
}

func (s *volumeState) dropDrivers(node *storagev1.CSINode) {
	before := s.drivers[node.Name]
	delete(s.drivers, node.Name)
	s.limit(before, -1)
	s.relimit()
}

// limit counts the node among those whose drivers attach a limited number of volumes.
func (s *volumeState) limit(node *storagev1.CSINode, n int) {
	for _, e := range conversion.AttachLimits(node).Extended {
		driver := strings.TrimPrefix(e.Name, conversion.AttachablePrefix)
		if s.attachers[driver] += n; s.attachers[driver] == 0 {
			delete(s.attachers, driver)
		}
	}
}

// relimit finds the drivers that may limit anything. They are few, and change
// when a driver comes to the cluster.
func (s *volumeState) relimit() {
	limited := volumesOf(Objects{}, true).Limited
	for driver := range s.attachers {
		limited[driver] = true
	}
	if !maps.Equal(limited, s.pods.around.Volumes.Limited) {
		s.pods.around.Volumes.Limited = limited
		s.touchVolumes()
	}
}

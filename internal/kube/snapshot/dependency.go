package snapshot

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// dependency is an object, other than the pod, that the value of a pod is computed from.
type dependency struct {
	kind dependencyKind
	name string // "namespace/name" of a volume claim, namespace of Services, conversion.OwnerKey of an owner
}

type dependencyKind int8

const (
	onClaim      dependencyKind = iota // a volume claim, its volume and its storage class
	onNamespaces                       // the labels of all namespaces
	onServices                         // those of the pod's namespace that select it
	onOwner                            // the selector of the pod's controller
)

// dependencies returns what the pod's value is computed from; nothing for most pods.
func (s *state) dependencies(pod *corev1.Pod) []dependency {
	var out []dependency
	for i := range pod.Spec.Volumes {
		if name := conversion.ClaimName(pod, &pod.Spec.Volumes[i]); name != "" {
			out = append(out, dependency{onClaim, pod.Namespace + "/" + name})
		}
	}
	if selectsNamespaces(pod.Spec.Affinity) {
		out = append(out, dependency{kind: onNamespaces})
	}
	if s.view.Usual.IsZero() || len(pod.Spec.TopologySpreadConstraints) > 0 {
		return out
	}
	out = append(out, dependency{onServices, pod.Namespace})
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		out = append(out, dependency{onOwner, conversion.OwnerKey(pod.Namespace, ref.Kind, ref.Name)})
	}
	return out
}

func selectsNamespaces(a *corev1.Affinity) bool {
	if a == nil {
		return false
	}
	var required []corev1.PodAffinityTerm
	var preferred []corev1.WeightedPodAffinityTerm
	if a.PodAffinity != nil {
		required = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		preferred = a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	}
	if a.PodAntiAffinity != nil {
		required = slices.Concat(required, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		preferred = slices.Concat(preferred, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return slices.ContainsFunc(required, func(t corev1.PodAffinityTerm) bool { return t.NamespaceSelector != nil }) ||
		slices.ContainsFunc(preferred, func(t corev1.WeightedPodAffinityTerm) bool { return t.PodAffinityTerm.NamespaceSelector != nil })
}

func (s *state) putRequest(claim *corev1.PersistentVolumeClaim) {
	id := claim.Namespace + "/" + claim.Name
	before := s.around.Volumes.Claims[id]
	if before == claim {
		return
	}
	s.unbook(before)
	s.around.Volumes.Claims[id] = claim
	if volume := claim.Spec.VolumeName; volume != "" {
		if s.bookings[volume] == nil {
			s.bookings[volume] = map[string]bool{}
		}
		s.bookings[volume][id] = true
	}
	s.touchRequest(id)
}

func (s *state) dropRequest(claim *corev1.PersistentVolumeClaim) {
	id := claim.Namespace + "/" + claim.Name
	s.unbook(s.around.Volumes.Claims[id])
	delete(s.around.Volumes.Claims, id)
	s.touchRequest(id)
}

// unbook forgets which volume the claim names.
func (s *state) unbook(claim *corev1.PersistentVolumeClaim) {
	if claim == nil {
		return
	}
	volume := claim.Spec.VolumeName
	if delete(s.bookings[volume], claim.Namespace+"/"+claim.Name); len(s.bookings[volume]) == 0 {
		delete(s.bookings, volume)
	}
}

func (s *state) touchRequest(id string) {
	d := dependency{onClaim, id}
	s.touch(d)
	s.contest(d)
}

// contest marks a volume claim that one pod at a time may use: that pod may be another now.
func (s *state) contest(d dependency) {
	if d.kind == onClaim {
		s.changed.contested[d.name] = true
	}
}

// settleUser finds the one pod that has the claim, if it is for one pod at a time.
func (s *state) settleUser(id string) {
	d := dependency{onClaim, id}
	user := ""
	if claim := s.around.Volumes.Claims[id]; claim != nil && conversion.IsReadWriteOncePod(claim) {
		o := Objects{VolumeClaims: []*corev1.PersistentVolumeClaim{claim}}
		for p := range s.users[d] {
			o.Pods = append(o.Pods, p.object)
		}
		user = ownersOf(o)[id]
	}
	if user == s.around.Volumes.Single[id] {
		return
	}
	if s.around.Volumes.Single[id] = user; user == "" {
		delete(s.around.Volumes.Single, id)
	}
	s.touch(d)
}

func (s *state) putVolume(volume *corev1.PersistentVolume) {
	if s.around.Volumes.Volumes[volume.Name] == volume {
		return
	}
	s.around.Volumes.Volumes[volume.Name] = volume
	s.touchVolume(volume.Name)
}

func (s *state) dropVolume(volume *corev1.PersistentVolume) {
	delete(s.around.Volumes.Volumes, volume.Name)
	s.touchVolume(volume.Name)
}

func (s *state) touchVolume(name string) {
	for id := range s.bookings[name] {
		s.touch(dependency{onClaim, id})
	}
}

func (s *state) putStorage(class *storagev1.StorageClass) {
	if s.around.Volumes.Classes[class.Name] != class {
		s.around.Volumes.Classes[class.Name] = class
		s.restore()
	}
}

func (s *state) dropStorage(class *storagev1.StorageClass) {
	delete(s.around.Volumes.Classes, class.Name)
	s.restore()
}

// restore makes the storage classes again, which are few and hardly ever change.
func (s *state) restore() {
	v := volumesOf(Objects{StorageClasses: slices.Collect(maps.Values(s.around.Volumes.Classes))}, true)
	s.around.Volumes.Classes, s.around.Volumes.Usual = v.Classes, v.Usual
	s.touchVolumes()
}

// touchVolumes marks all pods that have volumes.
func (s *state) touchVolumes() {
	for d := range s.users {
		if d.kind == onClaim {
			s.touch(d)
		}
	}
}

func (s *state) putDrivers(node *storagev1.CSINode) {
	before := s.drivers[node.Name]
	if before == node {
		return
	}
	s.drivers[node.Name] = node
	s.limit(before, -1)
	s.limit(node, 1)
	s.relimit()
}

func (s *state) dropDrivers(node *storagev1.CSINode) {
	before := s.drivers[node.Name]
	delete(s.drivers, node.Name)
	s.limit(before, -1)
	s.relimit()
}

// limit counts the node among those whose drivers attach a limited number of volumes.
func (s *state) limit(node *storagev1.CSINode, n int) {
	for _, e := range conversion.AttachLimits(node).Extended {
		driver := strings.TrimPrefix(e.Name, conversion.AttachablePrefix)
		if s.attachers[driver] += n; s.attachers[driver] == 0 {
			delete(s.attachers, driver)
		}
	}
}

// relimit finds the drivers that may limit anything. They are few, and change
// when a driver comes to the cluster.
func (s *state) relimit() {
	limited := volumesOf(Objects{}, true).Limited
	for driver := range s.attachers {
		limited[driver] = true
	}
	if !maps.Equal(limited, s.around.Volumes.Limited) {
		s.around.Volumes.Limited = limited
		s.touchVolumes()
	}
}

func (s *state) putSpace(space *corev1.Namespace) {
	before, ok := s.spaces.put(space)
	if !ok || !maps.Equal(before.Labels, space.Labels) {
		s.changed.spaces = true
	}
}

func (s *state) dropSpace(space *corev1.Namespace) {
	s.spaces.drop(space)
	s.changed.spaces = true
}

func (s *state) putService(service *corev1.Service) {
	before, ok := s.services.put(service)
	switch {
	case ok && maps.Equal(before.Spec.Selector, service.Spec.Selector):
	case ok:
		s.regroupService(before)
		s.regroupService(service)
	default:
		s.regroupService(service)
	}
}

func (s *state) dropService(service *corev1.Service) {
	if before, ok := s.services.drop(service); ok {
		s.regroupService(before)
	}
}

// regroupService marks the pods that the Service selects or selected.
func (s *state) regroupService(service *corev1.Service) {
	s.changed.groups = true
	for p := range s.users[dependency{onServices, service.Namespace}] {
		if conversion.SelectorMatches(service.Spec.Selector, p.object.Labels) {
			s.touchPod(p)
		}
	}
}

// regroup marks the pods of a controller, unless it selects the same as before.
func (s *state) regroup(kind string, owner metav1.Object, isSame bool) {
	if !isSame {
		s.changed.groups = true
		s.touch(dependency{onOwner, conversion.OwnerKey(owner.GetNamespace(), kind, owner.GetName())})
	}
}

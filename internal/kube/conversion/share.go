package conversion

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// sharableClaims returns the pod's unbound claims ("namespace/name", sorted) that other pods may also use, and whose
// volume is created where its first pod is scheduled.
func (v *VolumeIndex) sharableClaims(pod *corev1.Pod) []string {
	var out []string
	for i := range pod.Spec.Volumes {
		source := pod.Spec.Volumes[i].PersistentVolumeClaim
		if source == nil {
			continue
		}
		claim, ok := v.Claims[pod.Namespace+"/"+source.ClaimName]
		if !ok || claim.Spec.VolumeName != "" || IsReadWriteOncePod(claim) {
			continue
		}
		if class, ok := v.Classes[v.classOf(claim)]; ok && waitsForPod(class) {
			out = append(out, claim.Namespace+"/"+claim.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// DropUnsharedVolumes removes from the pods the claims that no other pod uses. Such claims restrict no other pod, and
// would put each pod of a StatefulSet into a class of its own. DropUnsharedVolumes changes pods, which has the pods
// without a node. users has the number of pods, with and without a node, that use each claim.
func DropUnsharedVolumes(pods []cluster.Pod, users map[string]int) {
	unshared := func(claim string) bool { return users[claim] < 2 }
	for i := range pods {
		if pod := &pods[i]; slices.ContainsFunc(pod.Volumes, unshared) {
			pod.Volumes = slices.DeleteFunc(slices.Clone(pod.Volumes), unshared)
		}
	}
}

// VolumeUsers counts the pods that use each claim, with and without a node.
func VolumeUsers(s *cluster.Snapshot) map[string]int {
	users := map[string]int{}
	for i := range s.Pods {
		CountUsers(users, s.Pods[i].Volumes)
	}
	for i := range s.Nodes {
		for j := range s.Nodes[i].Pods {
			CountUsers(users, s.Nodes[i].Pods[j].Volumes)
		}
	}
	return users
}

// CountUsers adds one user to each of the claims.
func CountUsers(users map[string]int, claims []string) {
	for _, claim := range claims {
		users[claim]++
	}
}

// IsReadWriteOncePod reports whether only one pod at a time may use the claim.
func IsReadWriteOncePod(claim *corev1.PersistentVolumeClaim) bool {
	return slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod)
}

// PrecedesForVolume reports whether a gets a ReadWriteOncePod claim before b: bound pods come first, then pods with a
// higher priority, then older pods, then by name.
func PrecedesForVolume(a, b *corev1.Pod) bool {
	if aBound, bBound := a.Spec.NodeName != "", b.Spec.NodeName != ""; aBound != bBound {
		return aBound
	}
	return cmp.Or(
		cmp.Compare(Priority(b), Priority(a)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	) < 0
}

package kube

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// sharable returns the pod's claims whose volume is made where their first pod
// goes and that others may use too ("namespace/name"), sorted.
func (v *volumes) sharable(pod *corev1.Pod) []string {
	var out []string
	for i := range pod.Spec.Volumes {
		source := pod.Spec.Volumes[i].PersistentVolumeClaim
		if source == nil {
			continue
		}
		claim, ok := v.claims[pod.Namespace+"/"+source.ClaimName]
		if !ok || claim.Spec.VolumeName != "" || isSingle(claim) {
			continue
		}
		if class, ok := v.classes[v.classOf(claim)]; ok && waits(class) {
			out = append(out, claim.Namespace+"/"+claim.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// keepShared takes from the pods that need a place the claims which no other pod
// uses: they restrict no other pod, and would make every pod of a StatefulSet
// a class of its own. Users are counted by claim. It alters the pods.
func keepShared(pods []cluster.Pod, users map[string]int) {
	alone := func(claim string) bool { return users[claim] < 2 }
	for i := range pods {
		if pod := &pods[i]; slices.ContainsFunc(pod.Volumes, alone) {
			pod.Volumes = slices.DeleteFunc(slices.Clone(pod.Volumes), alone)
		}
	}
}

// usersOf counts the pods that use each claim: those that need a place, and those of nodes.
func usersOf(s *cluster.Snapshot) map[string]int {
	users := map[string]int{}
	for i := range s.Pods {
		count(users, s.Pods[i].Volumes)
	}
	for i := range s.Nodes {
		for j := range s.Nodes[i].Pods {
			count(users, s.Nodes[i].Pods[j].Volumes)
		}
	}
	return users
}

func count(users map[string]int, claims []string) {
	for _, claim := range claims {
		users[claim]++
	}
}

// ownersOf returns, for each claim that is for one pod at a time, the pod that has
// it: the one that runs or, if none does, the one that kube-scheduler would take
// first. Pods are "namespace/name".
func ownersOf(o Objects) map[string]string {
	owners := map[string]*corev1.Pod{}
	for _, claim := range o.VolumeClaims {
		if isSingle(claim) {
			owners[claim.Namespace+"/"+claim.Name] = nil
		}
	}
	if len(owners) == 0 {
		return nil
	}
	for _, pod := range o.Pods {
		if IsFinished(pod) || pod.Spec.NodeName == "" && !isWaiting(pod) {
			continue
		}
		for i := range pod.Spec.Volumes {
			source := pod.Spec.Volumes[i].PersistentVolumeClaim
			if source == nil {
				continue
			}
			id := pod.Namespace + "/" + source.ClaimName
			if old, ok := owners[id]; ok && (old == nil || isBefore(pod, old)) {
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

func isSingle(claim *corev1.PersistentVolumeClaim) bool {
	return slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod)
}

// isBefore reports whether a has a claim before b: it runs, is more important, older.
func isBefore(a, b *corev1.Pod) bool {
	if a, b := a.Spec.NodeName != "", b.Spec.NodeName != ""; a != b {
		return a
	}
	return cmp.Or(
		cmp.Compare(priorityOf(b), priorityOf(a)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	) < 0
}

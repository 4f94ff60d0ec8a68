package fleet

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Objects returns the cluster's objects for Joiner's controller. Callers must not change them. The objects stay valid,
// because the fleet replaces objects and never changes them.
func (f *Fleet) Objects() snapshot.Objects {
	o := snapshot.Objects{Pools: f.Pools, Pods: make([]*corev1.Pod, 0, len(f.pods))}
	for _, m := range f.instances {
		o.Claims = append(o.Claims, m.Claim())
		if n := m.Node(); n != nil {
			o.Nodes = append(o.Nodes, n)
		}
	}
	for _, p := range f.pods {
		o.Pods = append(o.Pods, p.Object)
	}
	return o
}

// View returns the time and the offerings. A snapshot is built from Objects and View.
func (f *Fleet) View() snapshot.View { return snapshot.View{Now: f.now, Market: f.Market} }

// PodsOn returns the pods of the instance, sorted by name.
func (m *Instance) PodsOn() []*corev1.Pod {
	out := make([]*corev1.Pod, 0, len(m.pods))
	for _, name := range slices.Sorted(maps.Keys(m.pods)) {
		out = append(out, m.pods[name].Object)
	}
	return out
}

// Labels returns the labels of the instance's node.
func (m *Instance) Labels() map[string]string {
	labels := map[string]string{
		corev1.LabelHostname: m.Name, karpv1.LabelNodePool: m.Pool, awsv1.LabelNodeClass: m.Class,
		karpv1.LabelRegistered: "true", karpv1.LabelInitialized: "true",
	}
	maps.Copy(labels, m.Type.Labels)
	maps.Copy(labels, m.Offering.Labels())
	return labels
}

// Node returns the instance's Node; nil until the phase is Ready. Callers must not change the Node.
func (m *Instance) Node() *corev1.Node {
	if m.Phase < Ready || m.node != nil {
		return m.node
	}
	m.node = &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.Name, UID: types.UID("uid-" + m.Name), Labels: m.Labels(), CreationTimestamp: metav1.NewTime(m.Created.Add(JoinTime)),
		},
		Spec: corev1.NodeSpec{ProviderID: m.ProviderID()},
		Status: corev1.NodeStatus{
			Capacity: conversion.Quantities(m.Type.Capacity), Allocatable: conversion.Quantities(m.Type.Allocatable),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	if m.Cordoned {
		m.node.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
	}
	return m.node
}

// Claim returns the instance's NodeClaim. Callers must not change the NodeClaim.
func (m *Instance) Claim() *karpv1.NodeClaim {
	if m.nodeClaim == nil {
		m.nodeClaim = m.newClaim()
	}
	return m.nodeClaim
}

func (m *Instance) newClaim() *karpv1.NodeClaim {
	c := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.Name, UID: types.UID("uid-claim-" + m.Name), CreationTimestamp: metav1.NewTime(m.Created), Labels: m.Labels(),
		},
	}
	if len(m.NominatedPods) > 0 {
		c.Annotations = map[string]string{conversion.AnnotationPods: strings.Join(m.NominatedPods, ",")}
	}
	c.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: m.Class}
	c.Spec.Requirements = karpv1.Requirements{
		{Key: catalog.LabelInstanceType, Operator: corev1.NodeSelectorOpIn, Values: []string{m.Type.Name}},
		{Key: catalog.LabelZone, Operator: corev1.NodeSelectorOpIn, Values: []string{m.Offering.Zone}},
		{Key: catalog.LabelCapacityType, Operator: corev1.NodeSelectorOpIn, Values: []string{m.Offering.CapacityType}},
	}
	if m.Phase >= Launched {
		c.Status.ProviderID = m.ProviderID()
		c.Status.Capacity, c.Status.Allocatable = conversion.Quantities(m.Type.Capacity), conversion.Quantities(m.Type.Allocatable)
	}
	ready := metav1.NewTime(m.Created.Add(JoinTime)) // when the node became ready
	if m.Phase >= Ready {
		c.Status.NodeName = m.Name
		for _, kind := range []string{karpv1.ConditionRegistered, karpv1.ConditionInitialized} {
			c.Status.Conditions = append(c.Status.Conditions,
				metav1.Condition{Type: kind, Status: metav1.ConditionTrue, LastTransitionTime: ready, Reason: kind})
		}
	}
	if m.Phase == Removing {
		c.DeletionTimestamp = &metav1.Time{Time: ready.Time} // any time: Joiner reads only whether it is set
	}
	return c
}

package nodeclaim

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/node/nomination"
)

// openingReader reads the input of package nomination for a claim whose Node is closed.
type openingReader struct {
	cache    client.Reader
	claim    *karpv1.NodeClaim
	node     *corev1.Node
	granted  map[string]grant // by pod ID: see grants
	indirect map[string]bool  // pods that only kube-scheduler can bind, see nomination.Input; set by pods and noteRepelled
}

// references has no namespaces and volumes: of terms with a namespaceSelector, and of volumes, only the presence matters.
func references() conversion.References {
	return conversion.References{Namespaces: conversion.NewNamespaces(nil, nil, false)}
}

// plannedPods are the pods that the claim's Node was launched for.
type plannedPods struct {
	waiting []cluster.Pod     // not bound, and not granted a place
	granted []cluster.Pod     // granted a place on this Node, but the cache does not show them as bound
	total   resources.Amounts // requests of all planned pods
}

// pods returns the pods that the claim's Node was launched for.
func (r *openingReader) pods(ctx context.Context) (plannedPods, error) {
	var out plannedPods
	refs := references()
	for _, id := range conversion.PodsOf(r.claim) {
		namespace, name, _ := strings.Cut(id, "/")
		pod := &corev1.Pod{}
		err := r.cache.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, pod)
		if err != nil && !apierrors.IsNotFound(err) {
			return out, err
		}
		if err != nil || pod.CreationTimestamp.After(r.claim.CreationTimestamp.Time) { // or another pod with the same name
			continue
		}
		value := conversion.PodValue(pod, refs)
		out.total = out.total.Add(value.Requests)
		g, isGranted := r.granted[id]
		switch {
		case !isWaiting(pod):
		case !isGranted:
			out.waiting = append(out.waiting, value)
			r.indirect[id] = isIndirect(pod, r.node.Name)
		case g.claim == r.claim.UID:
			out.granted = append(out.granted, value)
		}
	}
	return out, nil
}

// isIndirect reports whether only kube-scheduler can bind the pod to the node: it has volumes, devices or a group, is
// scheduled by another scheduler, or is nominated to another node.
func isIndirect(pod *corev1.Pod, node string) bool {
	isOther := pod.Spec.SchedulerName != "" && pod.Spec.SchedulerName != corev1.DefaultSchedulerName
	isElsewhere := pod.Status.NominatedNodeName != "" && pod.Status.NominatedNodeName != node
	return isOther || isElsewhere || len(pod.Spec.ResourceClaims) > 0 || pod.Spec.SchedulingGroup != nil ||
		slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.CSI != nil || v.AWSElasticBlockStore != nil ||
				v.GCEPersistentDisk != nil || v.ISCSI != nil || v.RBD != nil
		})
}

// isWaiting reports whether kube-scheduler can still bind the pod.
func isWaiting(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0
}

// input returns the input for the closed Node.
func (r *openingReader) input(ctx context.Context) (nomination.Input, error) {
	in := nomination.Input{Zone: r.node.Labels[corev1.LabelTopologyZone], Labels: r.node.Labels, Indirect: r.indirect}
	open := &corev1.Node{Spec: corev1.NodeSpec{Taints: r.node.Spec.Taints}}
	conversion.Open(open)
	in.Taints = conversion.Taints(open.Spec.Taints)
	pods, err := r.pods(ctx)
	if err != nil || len(pods.waiting) == 0 {
		return in, err
	}
	in.Pods = pods.waiting
	if err := r.addOnNode(ctx, &in, pods); err != nil {
		return in, err
	}
	if err := r.noteRepelled(ctx, in.Pods); err != nil {
		return in, err
	}
	if slices.ContainsFunc(in.Pods, nomination.HasZoneSpread) {
		err = r.addZones(ctx, &in)
	}
	return in, err
}

// addOnNode sets in.OnNode and in.Room. The claim requests what its pods and the DaemonSet pods need. The room of planned
// pods that are gone is not used.
func (r *openingReader) addOnNode(ctx context.Context, in *nomination.Input, pods plannedPods) error {
	var list corev1.PodList
	onNode := client.MatchingFields{kubeclient.IndexPodNode: r.node.Name}
	if err := r.cache.List(ctx, &list, onNode, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	daemons := conversion.Amounts(r.claim.Spec.Resources.Requests).Sub(pods.total).RaiseNegatives()
	room := conversion.Amounts(r.node.Status.Allocatable).Sub(daemons)
	in.OnNode = slices.Clone(pods.granted)
	for i := range pods.granted {
		room = room.Sub(pods.granted[i].Requests)
	}
	refs := references()
	for i := range list.Items {
		if p := &list.Items[i]; !conversion.IsFinished(p) {
			value := conversion.PodValue(p, refs)
			in.OnNode = append(in.OnNode, value)
			if !conversion.IsDaemonPod(p) {
				room = room.Sub(value.Requests)
			}
		}
	}
	in.Room = room.RaiseNegatives()
	return nil
}

// noteRepelled records the pods that required anti-affinity of another pod may keep off the Node's zone.
func (r *openingReader) noteRepelled(ctx context.Context, pods []cluster.Pod) error {
	var list corev1.PodList
	if err := r.cache.List(ctx, &list, client.MatchingFields{kubeclient.IndexPodRepels: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	refs := references()
	for i := range list.Items {
		repelling := conversion.PodValue(&list.Items[i], refs)
		for k := range pods {
			if nomination.Repels(&repelling, &pods[k]) {
				r.indirect[pods[k].ID()] = true
			}
		}
	}
	return nil
}

// addZones sets in.Zones and in.Bound.
func (r *openingReader) addZones(ctx context.Context, in *nomination.Input) error {
	var nodes corev1.NodeList
	if err := r.cache.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	zones, isKnown := map[string]string{}, map[string]bool{} // zones by the name of the Node
	for i := range nodes.Items {
		n := &nodes.Items[i]
		zone := n.Labels[corev1.LabelTopologyZone]
		zones[n.Name] = zone
		if zone != "" && !isKnown[zone] {
			isKnown[zone] = true
			in.Zones = append(in.Zones, zone)
		}
	}
	var err error
	in.Bound, err = r.boundPods(ctx, in.Pods, zones)
	return err
}

// boundPods returns the pods in the namespaces of pods that have a node, or that are nominated to an open one.
func (r *openingReader) boundPods(ctx context.Context, pods []cluster.Pod, zones map[string]string) ([]nomination.Bound, error) {
	var out []nomination.Bound
	isRead := map[string]bool{}
	for i := range pods {
		namespace := pods[i].Namespace
		if isRead[namespace] {
			continue
		}
		isRead[namespace] = true
		var list corev1.PodList
		if err := r.cache.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		for k := range list.Items {
			p := &list.Items[k]
			if p.DeletionTimestamp != nil || conversion.IsFinished(p) {
				continue
			}
			zone := zones[p.Spec.NodeName]
			if g, ok := r.granted[p.Namespace+"/"+p.Name]; p.Spec.NodeName == "" && ok {
				zone = g.zone
			}
			if zone != "" {
				out = append(out, nomination.Bound{Namespace: p.Namespace, Labels: p.Labels, Zone: zone})
			}
		}
	}
	return out, nil
}

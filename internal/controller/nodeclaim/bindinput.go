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
	"github.com/joiner-sh/joiner/internal/node/podbinding"
)

// bindInputReader reads the input of package podbinding for a claim whose Node is closed.
type bindInputReader struct {
	cache         client.Reader
	claim         *karpv1.NodeClaim
	node          *corev1.Node
	assumed       map[string]assumedPod // by pod ID: see assumedPods
	view          *clusterView
	schedulerOnly map[string]bool // see podbinding.Input; set by pods and noteRepelled
}

// references has no namespaces and volumes: the input needs only whether a term has a namespaceSelector, and whether a
// pod has volumes.
func references() conversion.References {
	return conversion.References{Namespaces: conversion.NewNamespaces(nil, nil, false)}
}

// podsOfClaim are the pods that the claim's Node was launched for.
type podsOfClaim struct {
	waiting []cluster.Pod     // not bound, and not assumed
	assumed []cluster.Pod     // assumed on this Node, but the cache does not show them as bound
	total   resources.Amounts // requests of all these pods
}

// pods returns the pods that the claim's Node was launched for.
func (r *bindInputReader) pods(ctx context.Context) (podsOfClaim, error) {
	var out podsOfClaim
	refs := references()
	for _, id := range conversion.PodsOf(r.claim) {
		namespace, name, _ := strings.Cut(id, "/")
		pod := &corev1.Pod{}
		err := r.cache.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, pod)
		if err != nil && !apierrors.IsNotFound(err) {
			return out, err
		}
		if err != nil || pod.CreationTimestamp.After(r.claim.CreationTimestamp.Time) {
			continue // the pod is gone, or another pod has its name
		}
		value := conversion.PodValue(pod, refs)
		out.total = out.total.Add(value.Requests)
		p, isAssumed := r.assumed[id]
		switch {
		case !isWaiting(pod):
		case !isAssumed:
			out.waiting = append(out.waiting, value)
			r.schedulerOnly[id] = isSchedulerOnly(pod, r.node.Name)
		case p.claim == r.claim.UID:
			out.assumed = append(out.assumed, value)
		}
	}
	return out, nil
}

// isSchedulerOnly reports whether only kube-scheduler can bind the pod to the node: it has volume claims, resource claims
// or a scheduling group, is scheduled by another scheduler, or is nominated to another node.
func isSchedulerOnly(pod *corev1.Pod, node string) bool {
	isOther := pod.Spec.SchedulerName != "" && pod.Spec.SchedulerName != corev1.DefaultSchedulerName
	isElsewhere := pod.Status.NominatedNodeName != "" && pod.Status.NominatedNodeName != node
	return isOther || isElsewhere || len(pod.Spec.ResourceClaims) > 0 || pod.Spec.SchedulingGroup != nil ||
		slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}

// isWaiting reports whether kube-scheduler can still bind the pod.
func isWaiting(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0
}

// input returns the input for the closed Node.
func (r *bindInputReader) input(ctx context.Context) (podbinding.Input, error) {
	in := podbinding.Input{Zone: r.node.Labels[corev1.LabelTopologyZone], Labels: r.node.Labels, Taints: conversion.OpenTaints(r.node),
		SchedulerOnly: r.schedulerOnly}
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
	if slices.ContainsFunc(in.Pods, podbinding.HasZoneSpread) {
		err = r.addCounted(ctx, &in)
	}
	return in, err
}

// addOnNode sets in.OnNode and in.Room. DaemonSet pods need what the claim requests beyond its pods, or what those on the
// Node request, if that is more. The room of planned pods that are gone stays free.
func (r *bindInputReader) addOnNode(ctx context.Context, in *podbinding.Input, pods podsOfClaim) error {
	var list corev1.PodList
	onNode := client.MatchingFields{kubeclient.IndexPodNode: r.node.Name}
	if err := r.cache.List(ctx, &list, onNode, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	in.OnNode = slices.Clone(pods.assumed)
	refs := references()
	var daemons, others resources.Amounts
	for i := range pods.assumed {
		others = others.Add(pods.assumed[i].Requests)
	}
	for i := range list.Items {
		p := &list.Items[i]
		if conversion.IsFinished(p) {
			continue
		}
		value := conversion.PodValue(p, refs)
		in.OnNode = append(in.OnNode, value)
		if conversion.IsDaemonPod(p) {
			daemons = daemons.Add(value.Requests)
		} else {
			others = others.Add(value.Requests)
		}
	}
	planned := conversion.Amounts(r.claim.Spec.Resources.Requests).Sub(pods.total).RaiseNegatives()
	in.Room = conversion.Amounts(r.node.Status.Allocatable).Sub(planned.Max(daemons)).Sub(others).RaiseNegatives()
	return nil
}

// noteRepelled marks the pods that another pod's required anti-affinity, over domains larger than a node, may keep off
// the Node.
func (r *bindInputReader) noteRepelled(ctx context.Context, pods []cluster.Pod) error {
	repelling, err := r.view.repellingPods(ctx)
	for i := range repelling {
		for k := range pods {
			if podbinding.Repels(&repelling[i], &pods[k]) {
				r.schedulerOnly[pods[k].ID()] = true
			}
		}
	}
	return err
}

// addCounted sets in.Nodes and in.Counted.
func (r *bindInputReader) addCounted(ctx context.Context, in *podbinding.Input) error {
	if err := r.view.readNodes(ctx); err != nil {
		return err
	}
	in.Nodes = r.view.nodes
	isRead := map[string]*boundPods{} // by namespace
	for i := range in.Pods {
		namespace := in.Pods[i].Namespace
		if isRead[namespace] != nil {
			continue
		}
		bound, err := r.view.boundIn(ctx, namespace)
		if err != nil {
			return err
		}
		isRead[namespace] = bound
		in.Counted = append(in.Counted, bound.counted...)
	}
	for id, p := range r.assumed {
		bound := isRead[p.namespace]
		node, isKnown := r.view.index[p.node]
		if bound != nil && isKnown && !bound.ids[id] {
			in.Counted = append(in.Counted, podbinding.CountedPod{Namespace: p.namespace, Labels: p.labels, Node: node})
		}
	}
	return nil
}

package nodeclaim

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/node/nomination"
)

// openingReader reads the input of package nomination for a claim whose Node opens.
type openingReader struct {
	cache       client.Reader
	claim       *karpv1.NodeClaim
	zone        string // of the Node
	now         time.Time
	assignments *assignments                 // locked by the caller
	claims      map[string]*karpv1.NodeClaim // claims of later nodes, by name; set by input
}

// pendingPods returns the pods that are planned for the claim and not bound.
func (r *openingReader) pendingPods(ctx context.Context, claim *karpv1.NodeClaim) ([]cluster.Pod, error) {
	var out []cluster.Pod
	refs := conversion.References{Namespaces: conversion.NewNamespaces(nil, nil, false)} // of terms and volumes, only the presence matters
	for _, id := range r.assignments.lockedPodsOf(claim) {
		namespace, name, _ := strings.Cut(id, "/")
		pod := &corev1.Pod{}
		err := r.cache.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, pod)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, err
		case isWaiting(pod):
			out = append(out, conversion.PodValue(pod, refs))
		}
	}
	return out, nil
}

// isWaiting reports whether kube-scheduler can still bind the pod.
func isWaiting(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0
}

// maxLater is the maximum number of nodes that are not open for an exchange: reading the pods of more takes too long.
const maxLater = 100

// input returns the input for the pods of the Node that opens.
func (r *openingReader) input(ctx context.Context, pods []cluster.Pod) (nomination.Input, error) {
	in := nomination.Input{Zone: r.zone, Node: nomination.Node{Claim: r.claim.Name, Pods: pods, Free: spareRoom(r.claim)}}
	var nodes corev1.NodeList
	if err := r.cache.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return in, err
	}
	zones, closed := map[string]string{}, map[string]bool{} // both by the name of the Node
	isKnown := map[string]bool{}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		zone := n.Labels[corev1.LabelTopologyZone]
		zones[n.Name], closed[n.Name] = zone, HasTaint(n, conversion.TaintNominations)
		if zone != "" && !isKnown[zone] {
			isKnown[zone] = true
			in.Zones = append(in.Zones, zone)
		}
	}
	later, err := r.laterClaims(ctx, zones, closed)
	if err != nil || len(later) > maxLater {
		return nomination.Input{Zone: r.zone}, err
	}
	if in.Later, err = r.nodesOf(ctx, later, pods); err != nil {
		return in, err
	}
	in.Bound, err = r.boundPods(ctx, pods, zones)
	return in, err
}

// spareRoom returns what the pods of the claim leave free on its node.
func spareRoom(claim *karpv1.NodeClaim) resources.Amounts {
	return conversion.Amounts(claim.Status.Allocatable).Sub(conversion.Amounts(claim.Spec.Resources.Requests)).RaiseNegatives()
}

// laterClaims returns the claims of the claim's NodePool whose nodes are not open yet.
func (r *openingReader) laterClaims(ctx context.Context, zones map[string]string, closed map[string]bool) ([]*karpv1.NodeClaim, error) {
	var list karpv1.NodeClaimList
	samePool := client.MatchingLabels{karpv1.LabelNodePool: r.claim.Labels[karpv1.LabelNodePool]}
	err := r.cache.List(ctx, &list, samePool, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	var out []*karpv1.NodeClaim
	for i := range list.Items {
		c := &list.Items[i]
		node := c.Status.NodeName
		_, isOpen := r.assignments.opened[c.UID]
		isOpen = isOpen || node != "" && zones[node] != "" && !closed[node]
		if c.UID != r.claim.UID && c.DeletionTimestamp == nil && !isOpen {
			out = append(out, c)
		}
	}
	return out, nil
}

// nodesOf returns the nodes of the claims in the zone that opens, with their pods. opening has the pods of the Node that
// opens. Only pods that are older than both claims can be exchanged: a claim's annotation is not valid for younger pods.
func (r *openingReader) nodesOf(ctx context.Context, claims []*karpv1.NodeClaim, opening []cluster.Pod) ([]nomination.Node, error) {
	r.claims = map[string]*karpv1.NodeClaim{}
	var out []nomination.Node
	for _, c := range claims {
		if c.Labels[corev1.LabelTopologyZone] != r.zone || slices.ContainsFunc(opening, isYoungerThan(c)) {
			continue
		}
		pods, err := r.pendingPods(ctx, c)
		if err != nil {
			return nil, err
		}
		if pods = slices.DeleteFunc(pods, isYoungerThan(r.claim)); len(pods) > 0 {
			r.claims[c.Name] = c
			out = append(out, nomination.Node{Claim: c.Name, Pods: pods, Free: spareRoom(c)})
		}
	}
	return out, nil
}

func isYoungerThan(c *karpv1.NodeClaim) func(cluster.Pod) bool {
	return func(p cluster.Pod) bool { return p.Created.After(c.CreationTimestamp.Time) }
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
			if g, ok := r.assignments.granted[p.Namespace+"/"+p.Name]; p.Spec.NodeName == "" && ok && r.now.Sub(g.at) <= bindTime {
				zone = g.zone
			}
			if zone != "" {
				out = append(out, nomination.Bound{Namespace: p.Namespace, Labels: p.Labels, Zone: zone})
			}
		}
	}
	return out, nil
}

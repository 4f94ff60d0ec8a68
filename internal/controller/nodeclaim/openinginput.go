package nodeclaim

import (
	"context"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
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

// openingReader reads the input of package nomination for a claim whose Node opens.
type openingReader struct {
	cache       client.Reader
	claim       *karpv1.NodeClaim
	node        *corev1.Node
	now         time.Time
	assignments *assignments                 // locked by the caller
	indirect    map[string]bool              // pods that only kube-scheduler can bind, see nomination.Input; set by pods
	claims      map[string]*karpv1.NodeClaim // claims of later nodes, by name; set by input
	daemons     []cluster.Daemon             // the DaemonSets; set by input
}

// references has no namespaces and volumes: of terms with a namespaceSelector, and of volumes, only the presence matters.
func references() conversion.References {
	return conversion.References{Namespaces: conversion.NewNamespaces(nil, nil, false)}
}

// plannedPods are the pods that are planned for a claim.
type plannedPods struct {
	waiting []cluster.Pod     // not bound, and not granted a place
	granted []cluster.Pod     // granted a place on the claim's Node, but the cache does not show them as bound
	total   resources.Amounts // requests of all planned pods
}

// pods returns the pods that are planned for the claim.
func (r *openingReader) pods(ctx context.Context, claim *karpv1.NodeClaim) (plannedPods, error) {
	var out plannedPods
	refs := references()
	for _, id := range r.assignments.lockedPodsOf(claim) {
		namespace, name, _ := strings.Cut(id, "/")
		pod := &corev1.Pod{}
		err := r.cache.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, pod)
		if err != nil && !apierrors.IsNotFound(err) {
			return out, err
		}
		if err != nil || pod.CreationTimestamp.After(claim.CreationTimestamp.Time) { // or another pod with the same name
			continue
		}
		value := conversion.PodValue(pod, refs)
		out.total = out.total.Add(value.Requests)
		g, isGranted := r.assignments.granted[id]
		switch {
		case !isWaiting(pod):
		case !isGranted:
			out.waiting = append(out.waiting, value)
			r.indirect[id] = isIndirect(pod, r.node.Name)
		case g.claim == claim.UID:
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

// maxLater is the maximum number of nodes that are not open for an exchange: reading the pods of more takes too long.
const maxLater = 100

// input returns the input for the Node that opens.
func (r *openingReader) input(ctx context.Context) (nomination.Input, error) {
	in := nomination.Input{Zone: r.node.Labels[corev1.LabelTopologyZone], Labels: r.node.Labels, Indirect: r.indirect}
	open := &corev1.Node{Spec: corev1.NodeSpec{Taints: r.node.Spec.Taints}}
	conversion.Open(open)
	in.Taints = conversion.Taints(open.Spec.Taints)
	pods, err := r.pods(ctx, r.claim)
	if err != nil || len(pods.waiting) == 0 {
		return in, err
	}
	if err := r.readDaemons(ctx); err != nil {
		return in, err
	}
	allocatable := conversion.Amounts(r.node.Status.Allocatable).Sub(r.daemonRequests(r.claim, pods))
	in.Node = nomination.Node{Claim: r.claim.Name, Pods: pods.waiting, Free: allocatable.Sub(pods.total).RaiseNegatives(), Room: allocatable}
	if err := r.addOnNode(ctx, &in, pods); err != nil {
		return in, err
	}
	if err := r.noteRepelled(ctx, pods.waiting); err != nil || !slices.ContainsFunc(pods.waiting, nomination.HasZoneSpread) {
		return in, err
	}
	return in, r.addOtherNodes(ctx, &in)
}

// readDaemons reads the DaemonSets.
func (r *openingReader) readDaemons(ctx context.Context) error {
	var list appsv1.DaemonSetList
	if err := r.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	sets := make([]*appsv1.DaemonSet, len(list.Items))
	for i := range list.Items {
		sets[i] = &list.Items[i]
	}
	r.daemons = conversion.Daemons(sets, nil, references())
	return nil
}

// daemonRequests returns the requests of the DaemonSet pods of the claim's node. The plan knew them better than the
// templates of the DaemonSets tell, because admission may change pods; but after an exchange, the requests of the claim
// are not those of its pods. So the result is the larger of both.
func (r *openingReader) daemonRequests(claim *karpv1.NodeClaim, pods plannedPods) resources.Amounts {
	planned := conversion.Amounts(claim.Spec.Resources.Requests).Sub(pods.total).RaiseNegatives()
	var now resources.Amounts
	taints := conversion.Taints(claim.Spec.Taints)
	for i := range r.daemons {
		if conversion.RunsDaemon(&r.daemons[i], taints, claim.Labels) {
			now = now.Add(r.daemons[i].Requests)
		}
	}
	return planned.Max(now)
}

// addOnNode sets in.OnNode, and takes the requests of these pods from in.Node.Room.
func (r *openingReader) addOnNode(ctx context.Context, in *nomination.Input, pods plannedPods) error {
	var list corev1.PodList
	onNode := client.MatchingFields{kubeclient.IndexPodNode: r.node.Name}
	if err := r.cache.List(ctx, &list, onNode, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	in.OnNode = slices.Clone(pods.granted)
	for i := range pods.granted {
		in.Node.Room = in.Node.Room.Sub(pods.granted[i].Requests)
	}
	refs := references()
	for i := range list.Items {
		if p := &list.Items[i]; !conversion.IsFinished(p) {
			value := conversion.PodValue(p, refs)
			in.OnNode = append(in.OnNode, value)
			if !conversion.IsDaemonPod(p) {
				in.Node.Room = in.Node.Room.Sub(value.Requests)
			}
		}
	}
	in.Node.Room = in.Node.Room.RaiseNegatives()
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

// addOtherNodes sets the fields of the input about other nodes. With very many nodes that are not open, in.Later is nil.
func (r *openingReader) addOtherNodes(ctx context.Context, in *nomination.Input) error {
	var nodes corev1.NodeList
	if err := r.cache.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return err
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
	var err error
	if in.Bound, err = r.boundPods(ctx, in.Node.Pods, zones); err != nil {
		return err
	}
	later, err := r.laterClaims(ctx, zones, closed)
	if err != nil || len(later) > maxLater {
		return err
	}
	in.Later, err = r.nodesOf(ctx, later, in.Zone, in.Node.Pods)
	return err
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

// nodesOf returns the nodes of the claims in the zone, with their pods. opening has the pods of the Node that
// opens. Only pods that are older than both claims can be exchanged: a claim's annotation is not valid for younger pods.
func (r *openingReader) nodesOf(
	ctx context.Context, claims []*karpv1.NodeClaim, zone string, opening []cluster.Pod,
) ([]nomination.Node, error) {
	r.claims = map[string]*karpv1.NodeClaim{}
	var out []nomination.Node
	for _, c := range claims {
		if c.Labels[corev1.LabelTopologyZone] != zone || slices.ContainsFunc(opening, isYoungerThan(c)) {
			continue
		}
		planned, err := r.pods(ctx, c)
		if err != nil {
			return nil, err
		}
		if pods := slices.DeleteFunc(planned.waiting, isYoungerThan(r.claim)); len(pods) > 0 {
			r.claims[c.Name] = c
			free := conversion.Amounts(c.Status.Allocatable).Sub(r.daemonRequests(c, planned)).Sub(planned.total).RaiseNegatives()
			out = append(out, nomination.Node{Claim: c.Name, Pods: pods, Free: free})
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

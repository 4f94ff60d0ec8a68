package nodeclaim

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/node/podbinding"
)

// clusterView is what decisions for several Nodes read from the cache: in a large cluster, reading it for each decision
// takes too long. It reads only what is asked for.
type clusterView struct {
	cache client.Reader
	at    time.Time
	took  time.Duration // the time of the readings so far

	nodes     []podbinding.NodeInfo // nil before the first reading
	index     map[string]int        // by name: index into nodes
	bound     map[string]*boundPods // by namespace
	repelling []cluster.Pod         // pods with required anti-affinity over domains larger than a node
	isRead    bool                  // repelling is read
}

// boundPods are the bound pods of a namespace.
type boundPods struct {
	counted []podbinding.CountedPod
	ids     map[string]bool
}

func newClusterView(cache client.Reader, now time.Time) *clusterView {
	return &clusterView{cache: cache, at: now, bound: map[string]*boundPods{}}
}

// isFresh reports whether decisions may use the view. It may be ten times as old as the readings took, but at most a
// tenth of a second.
func (v *clusterView) isFresh(now time.Time) bool {
	return now.Sub(v.at) <= min(10*v.took, 100*time.Millisecond)
}

// measured calls read, and adds its duration to v.took.
func (v *clusterView) measured(read func() error) error {
	start := time.Now()
	err := read()
	v.took += time.Since(start)
	return err
}

// readNodes reads the nodes.
func (v *clusterView) readNodes(ctx context.Context) error {
	if v.nodes != nil {
		return nil
	}
	return v.measured(func() error {
		var list corev1.NodeList
		if err := v.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		v.nodes, v.index = make([]podbinding.NodeInfo, len(list.Items)), map[string]int{}
		for i := range list.Items {
			n := &list.Items[i]
			v.index[n.Name] = i
			v.nodes[i] = podbinding.NodeInfo{Zone: n.Labels[corev1.LabelTopologyZone], Labels: n.Labels, Taints: conversion.OpenTaints(n)}
		}
		return nil
	})
}

// boundIn returns the bound pods of the namespace. readNodes must have been called.
func (v *clusterView) boundIn(ctx context.Context, namespace string) (*boundPods, error) {
	if known := v.bound[namespace]; known != nil {
		return known, nil
	}
	out := &boundPods{ids: map[string]bool{}}
	err := v.measured(func() error {
		var list corev1.PodList
		if err := v.cache.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		for i := range list.Items {
			p := &list.Items[i]
			node, isKnown := v.index[p.Spec.NodeName]
			if p.Spec.NodeName == "" {
				continue
			}
			out.ids[p.Namespace+"/"+p.Name] = true
			if isKnown && p.DeletionTimestamp == nil && !conversion.IsFinished(p) {
				out.counted = append(out.counted, podbinding.CountedPod{Namespace: p.Namespace, Labels: p.Labels, Node: node})
			}
		}
		return nil
	})
	v.bound[namespace] = out
	return out, err
}

// repellingPods returns the pods with required anti-affinity over domains larger than a node.
func (v *clusterView) repellingPods(ctx context.Context) ([]cluster.Pod, error) {
	if v.isRead {
		return v.repelling, nil
	}
	err := v.measured(func() error {
		var list corev1.PodList
		if err := v.cache.List(ctx, &list, client.MatchingFields{kubeclient.IndexPodRepels: "true"}, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		refs := references()
		for i := range list.Items {
			v.repelling = append(v.repelling, conversion.PodValue(&list.Items[i], refs))
		}
		v.isRead = true
		return nil
	})
	return v.repelling, err
}

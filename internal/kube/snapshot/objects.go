package snapshot

import (
	"cmp"
	"errors"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Objects are all objects that a snapshot is made from, as read from the API server or a folder of manifests. They are
// never changed.
type Objects struct {
	Pods           []*corev1.Pod
	Nodes          []*corev1.Node
	DaemonSets     []*appsv1.DaemonSet
	Pools          []*karpv1.NodePool
	Claims         []*karpv1.NodeClaim
	Classes        []*awsv1.EC2NodeClass
	VolumeClaims   []*corev1.PersistentVolumeClaim
	Volumes        []*corev1.PersistentVolume
	StorageClasses []*storagev1.StorageClass
	Budgets        []*policyv1.PodDisruptionBudget
	Namespaces     []*corev1.Namespace
	CSINodes       []*storagev1.CSINode // they have the attach limits of Nodes

	// Groups are the Services and workload controllers of pods. Without View.DefaultSpread they are not needed.
	Groups conversion.Groups
}

// View is the input of a snapshot besides the objects.
type View struct {
	Now time.Time // time of the snapshot

	// Live is true for the objects of a running cluster. A pod then needs a node if kube-scheduler could not schedule
	// the pod, and a pool can be used if its node class is ready. Live is false for manifests, which have no status.
	// Every pod without a node then needs one, and every pool can be used unless its class is reported as not ready.
	Live bool

	// Market has the instance types of claims without an instance. If nil, such a claim has the size of its requests.
	Market catalog.Market

	// DefaultSpread are the cluster's default spread constraints, for pods without spread constraints of their own.
	DefaultSpread conversion.DefaultSpread

	// IgnorePreferences leaves out soft spread constraints and preferred affinities (PREFERENCE_POLICY=Ignore).
	IgnorePreferences bool

	// RelaxMinValues ignores those minValues of pools that cannot be met (MIN_VALUES_POLICY=BestEffort).
	RelaxMinValues bool
}

// Snapshot returns the cluster as a value. It is a pure function of the objects and the view, and the reference for
// state, which computes the same value incrementally.
func (o Objects) Snapshot(view View) cluster.Snapshot {
	b := builder{
		view:       view,
		references: referencesOf(o, view),
		kinds:      &podKinds{},
		budgets:    indexBudgets(o.Budgets),
		nodes:      nodesOf(o, view.Market),
	}
	b.index()
	for _, pod := range o.Pods {
		b.place(pod)
	}
	b.addPlannedPods()
	out := cluster.Snapshot{
		Taken:   view.Now,
		Pools:   poolsOf(o, view, b.nodes),
		Nodes:   make([]cluster.Node, 0, len(b.nodes)),
		Daemons: conversion.Daemons(o.DaemonSets, conversion.NewestDaemonPods(o.Pods), b.references),
		Pods:    b.pods,
	}
	for _, n := range b.nodes {
		n.sort()
		out.Nodes = append(out.Nodes, n.withDaemonPods(out.Daemons))
	}
	slices.SortFunc(out.Nodes, func(a, b cluster.Node) int { return byNodeID(&a, &b) })
	sortPods(out.Pods)
	conversion.DropUnsharedVolumes(out.Pods, conversion.VolumeUsers(&out))
	return out
}

// nodesOf returns the nodes without pods, in no particular order.
func nodesOf(o Objects, market catalog.Market) []*nodeView {
	csiNodes := conversion.CSINodesByName(o.CSINodes)
	pairs := pairsOf(o.Claims, o.Nodes)
	out := make([]*nodeView, len(pairs))
	for i, p := range pairs {
		v := p.view(csiNodes, market)
		out[i] = &v
	}
	return out
}

func byNodeID(a, b *cluster.Node) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Claim, b.Claim))
}

func byPodID(a, b *cluster.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func sortPods(pods []cluster.Pod) {
	slices.SortFunc(pods, func(a, b cluster.Pod) int { return byPodID(&a, &b) })
}

// Settings returns the settings of each node class that a NodePool names, by name of the class; zero settings for a
// class that does not exist. The error joins one error for each class with an invalid field.
func (o Objects) Settings() (map[string]catalog.Settings, error) {
	out := map[string]catalog.Settings{}
	for _, p := range o.Pools {
		if name := kubeclient.ClassName(p.Spec.Template.Spec.NodeClassRef); name != "" {
			out[name] = catalog.Settings{}
		}
	}
	var errs []error
	for _, class := range o.Classes {
		if _, ok := out[class.Name]; !ok {
			continue
		}
		settings, err := conversion.Settings(class)
		out[class.Name] = settings
		errs = append(errs, err)
	}
	return out, errors.Join(errs...)
}

// poolsOf returns the pools as values, sorted by name, each with the number and the total capacity of its nodes.
func poolsOf(o Objects, view View, nodes []*nodeView) []cluster.Pool {
	classes := make(map[string]*awsv1.EC2NodeClass, len(o.Classes))
	for _, c := range o.Classes {
		classes[c.Name] = c
	}
	usage, count := map[string]resources.Amounts{}, map[string]int{}
	for _, n := range nodes {
		if n.value.Pool != "" && !n.isTerminating {
			usage[n.value.Pool] = usage[n.value.Pool].Add(n.maxCapacity.RaiseNegatives())
			count[n.value.Pool]++
		}
	}
	out := make([]cluster.Pool, 0, len(o.Pools))
	for _, p := range o.Pools {
		v := conversion.PoolValue(p)
		if v.Unusable = conversion.UnusableByIntentReason(p); v.Unusable != "" {
			v.UnusableByIntent = true
		} else {
			v.Unusable = conversion.UnreadyReason(p, classes[v.NodeClass], view.Live)
		}
		v.RelaxesMinValues = view.RelaxMinValues
		v.Usage, v.Nodes = usage[p.Name], count[p.Name]
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b cluster.Pool) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

package kube

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// Objects is what a snapshot is made from, as the API server or a folder of
// manifests has it. Nothing in it is ever altered.
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
	CSINodes       []*storagev1.CSINode

	// Groups are what pods belong to; they are read only where View.Usual asks for them.
	Groups Groups
}

// View says from where the objects are looked at.
type View struct {
	Now time.Time

	// Live is true for the objects of a running cluster: pods count when
	// kube-scheduler has given up on them, and pools when their node class is
	// ready. Manifests have no status; in them a pod without a node counts, and
	// only what is said to be not ready is not.
	Live bool

	// Market has the instance types of claims without an instance; nil: such a claim has the size of its requests.
	Market catalog.Market

	// Usual are the cluster's default spread constraints, for pods that have none of their own.
	Usual UsualSpread

	// WithoutWishes leaves out what pods merely prefer: soft spread constraints,
	// preferred affinities (PREFERENCE_POLICY=Ignore).
	WithoutWishes bool

	// RelaxMinValues lets minValues of pools give way where they cannot be met (MIN_VALUES_POLICY=BestEffort).
	RelaxMinValues bool
}

// Snapshot returns the cluster as a value. It is a pure function of the objects
// and the view, and says what is right; state comes to the same by steps.
func (o Objects) Snapshot(view View) cluster.Snapshot {
	b := builder{
		view:    view,
		around:  surroundingsOf(o, view),
		kinds:   &podKinds{},
		budgets: budgetsOf(o.Budgets),
		nodes:   nodesOf(o, view.Market),
	}
	b.index()
	for _, pod := range o.Pods {
		b.place(pod)
	}
	b.seat()
	out := cluster.Snapshot{
		Taken:   view.Now,
		Pools:   poolsOf(o, view, b.nodes),
		Nodes:   make([]cluster.Node, 0, len(b.nodes)),
		Daemons: daemonsOf(o.DaemonSets, newestOf(o.Pods), b.around),
		Pods:    b.pods,
	}
	for _, n := range b.nodes {
		n.sort()
		out.Nodes = append(out.Nodes, n.total(out.Daemons))
	}
	slices.SortFunc(out.Nodes, func(a, b cluster.Node) int { return byNodeID(&a, &b) })
	sortPods(out.Pods)
	keepShared(out.Pods, usersOf(&out))
	return out
}

func nodesOf(o Objects, market catalog.Market) []*nodeView {
	drivers := driversOf(o.CSINodes)
	pairs := pairsOf(o.Claims, o.Nodes)
	out := make([]*nodeView, len(pairs))
	for i, p := range pairs {
		view := p.view(drivers, market)
		out[i] = &view
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

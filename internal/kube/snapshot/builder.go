package snapshot

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// builder puts a snapshot together: pods onto their nodes, and apart those
// that need a place.
type builder struct {
	view    View
	around  conversion.References
	kinds   *podKinds
	budgets guards
	nodes   []*nodeView
	pods    []cluster.Pod

	traits  conversion.TraitSet
	byName  map[string]*nodeView // by the name of the Node
	planned planned
	coming  [][]mover // the pods that each of nodes was launched for and that are not bound to it yet
}

// index finds nodes for pods. It is for the whole of nodes.
func (b *builder) index() {
	b.byName = make(map[string]*nodeView, len(b.nodes))
	b.planned = plannedOn(b.nodes, b.view.Now)
	b.coming = make([][]mover, len(b.nodes))
	for _, n := range b.nodes {
		if n.node != nil {
			b.byName[n.node.Name] = n
		}
	}
}

// place puts the pod where it belongs: on its node, on the claim it was planned
// for, among those that need a place, or nowhere.
func (b *builder) place(pod *corev1.Pod) {
	switch {
	case conversion.IsFinished(pod):
	case pod.Spec.NodeName != "":
		b.bound(pod)
	case conversion.IsNominated(pod) && b.byName[pod.Status.NominatedNodeName].welcomes():
		value := b.valueOf(pod)
		b.byName[pod.Status.NominatedNodeName].await(b, pod, &value)
	case conversion.NeedsNode(pod) && (conversion.WasTried(pod) || !b.view.Live && !isGated(pod)):
		b.needs(pod, b.valueOf(pod))
	}
}

// welcomes reports whether pods that are nominated for the node may come yet: it is there, and neither leaves nor is
// cordoned. Nil is a node that is not there.
func (n *nodeView) welcomes() bool { return n != nil && !n.value.Leaving && !n.value.Cordoned() }

// valueOf returns the pod as the engine sees it; pods of one template share what it points at.
func (b *builder) valueOf(pod *corev1.Pod) cluster.Pod {
	value := conversion.PodValue(pod, b.around)
	b.traits.Share(&value, nil)
	return value
}

// isGated reports whether kube-scheduler said that it does not look at the pod yet.
func isGated(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			return true
		}
	}
	return false
}

func (b *builder) bound(pod *corev1.Pod) {
	n, ok := b.byName[pod.Spec.NodeName]
	switch {
	case !ok: // its Node is gone, and soon it will be too
	case !conversion.NeedsPlace(pod):
		n.keep(b, pod)
	default:
		value := b.valueOf(pod)
		if n.carry(b, pod, &value) {
			value.Node = n.value.Name
			b.needs(pod, value)
		}
	}
}

// needs keeps the pod for the claim that was made for it (see AnnotationPods), or
// else puts it among those that need a place.
func (b *builder) needs(pod *corev1.Pod, value cluster.Pod) {
	if i, ok := b.planned.of(&value, b.nodes); ok {
		b.coming[i] = append(b.coming[i], mover{object: pod, value: &value})
		return
	}
	b.pods = append(b.pods, value)
}

// seat adds to nodes the pods that they were launched for, after all bound pods are counted.
func (b *builder) seat() {
	for i, n := range b.nodes {
		for _, m := range n.welcome(b, b.coming[i]) {
			b.pods = append(b.pods, *m.value)
		}
	}
}

// keep counts a pod that is bound to the node and comes and goes with it.
func (n *nodeView) keep(b *builder, pod *corev1.Pod) {
	n.uses(b, pod, conversion.Requests(pod), conversion.HostPorts(&pod.Spec))
	n.settles(b.kindOfBound(pod))
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil && ref.Kind == "DaemonSet" {
		n.running = append(n.running, types.NamespacedName{Namespace: pod.Namespace, Name: ref.Name})
	}
}

// carry counts a pod that is bound to the node and would need a place without it.
// It reports whether the pod needs one now, because the node is on its way out.
func (n *nodeView) carry(b *builder, pod *corev1.Pod, value *cluster.Pod) bool {
	n.uses(b, pod, value.Requests, value.HostPorts)
	n.value.Pods = append(n.value.Pods, *value)
	n.isShared = true
	if n.going && !conversion.IsProtected(pod, b.view.Now) && !b.budgets.forbid(pod) {
		return true
	}
	n.settles(b.kindOf(value, pod.DeletionTimestamp != nil))
	return false
}

// await adds a pod to the node that was launched for it, or on which kube-scheduler has nominated it, before it is bound. Otherwise
// a node that just became ready would look empty, and be removed, before kube-scheduler has bound its pods.
func (n *nodeView) await(b *builder, pod *corev1.Pod, value *cluster.Pod) {
	n.uses(b, pod, value.Requests, value.HostPorts)
	n.settles(b.kindOf(value, false)) // where it comes from it may be ending, here it is not
	n.value.Pods = append(n.value.Pods, *value)
}

// welcome awaits the pods that the node was launched for and has room for, by name, and returns the others.
func (n *nodeView) welcome(b *builder, coming []mover) (others []mover) {
	byID := func(x, y mover) int { return byPodID(x.value, y.value) }
	if !slices.IsSortedFunc(coming, byID) {
		coming = slices.SortedFunc(slices.Values(coming), byID)
	}
	for _, m := range coming {
		if !n.hasRoomFor(m.value) {
			others = append(others, m)
			continue
		}
		n.await(b, m.object, m.value)
	}
	return others
}

// total returns the node as the engine sees it, when all of its pods are counted: with the DaemonSet pods that it has
// yet to get. A pod that asks for more than the whole node has never gets there. The view stays as it is.
func (n *nodeView) total(daemons []cluster.Daemon) cluster.Node {
	out := n.value
	labels := out.Labels
	if !out.Initialized {
		labels = asInitialized(labels)
	}
	running := make(map[types.NamespacedName]bool, len(n.running))
	for _, name := range n.running {
		running[name] = true
	}
	var ports []cluster.HostPort
	var residents []cluster.Resident
	for i := range daemons {
		d := &daemons[i]
		if running[types.NamespacedName{Namespace: d.Namespace, Name: d.Name}] ||
			!conversion.RunsDaemon(d, out.Taints, labels) || isBeyond(d.Requests, out.Allocatable) {
			continue
		}
		out.Requested = out.Requested.Add(d.Requests)
		ports = append(ports, d.HostPorts...)
		residents = append(residents, cluster.Resident{Kind: d.Kind, Count: 1})
	}
	if len(ports) > 0 {
		out.HostPorts = conversion.MergeHostPorts(out.HostPorts, ports)
	}
	out.Residents = append(slices.Clip(out.Residents), residents...)
	return out
}

// isBeyond reports whether a pod asks for more CPU or memory than a node has in all, as far as that is known.
func isBeyond(asks, has resources.Amounts) bool {
	return has.CPU > 0 && asks.CPU > has.CPU || has.Memory > 0 && asks.Memory > has.Memory
}

// sort puts what the node has in the order that it always has, when all of its pods are counted.
func (n *nodeView) sort() {
	sortPods(n.value.Pods)
	n.value.Residents = n.residents.values()
}

// asInitialized returns the labels with the two that a node gets on its way:
// DaemonSets may wait for them.
func asInitialized(labels requirements.Labels) requirements.Labels {
	out := make(requirements.Labels, len(labels)+2)
	maps.Copy(out, labels)
	out[karpv1.LabelRegistered], out[karpv1.LabelInitialized] = "true", "true"
	return out
}

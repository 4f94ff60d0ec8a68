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

// builder makes a snapshot: it counts bound and planned pods on their nodes, and collects the pods that need a node.
type builder struct {
	view       View                  // the input besides the objects
	references conversion.References // the objects that pods refer to
	kinds      *podKinds             // the kinds of pods, each once
	budgets    budgetIndex           // the PodDisruptionBudgets
	nodes      []*nodeView           // the nodes of the snapshot
	pods       []cluster.Pod         // the pods that need a node

	traits         conversion.TraitSet  // parts of pods' values that several pods share
	byName         map[string]*nodeView // nodes by Node name
	planned        plannedNodes         // the nodes that pods are planned for
	unboundPlanned [][]unplacedPod      // for each of nodes: the pods that the node was launched for and that are not bound to it yet
}

// index fills byName and planned. place uses both to find the node of a pod. Call index when nodes is complete.
func (b *builder) index() {
	b.byName = make(map[string]*nodeView, len(b.nodes))
	b.planned = plannedNodesAt(b.nodes, b.view.Now)
	b.unboundPlanned = make([][]unplacedPod, len(b.nodes))
	for _, n := range b.nodes {
		if n.node != nil {
			b.byName[n.node.Name] = n
		}
	}
}

// place counts the pod on its node, on the node that kube-scheduler nominated for it, or on the claim that it was
// planned for. Otherwise it adds the pod to the pods that need a node. It ignores finished pods and gated pods. In a
// live cluster it also ignores pods that kube-scheduler has not tried yet.
func (b *builder) place(pod *corev1.Pod) {
	switch {
	case conversion.IsFinished(pod):
	case pod.Spec.NodeName != "":
		b.placeBound(pod)
	case conversion.IsNominated(pod) && b.byName[pod.Status.NominatedNodeName].acceptsNominated():
		value := b.valueOf(pod)
		b.byName[pod.Status.NominatedNodeName].addExpected(b, pod, &value)
	case conversion.NeedsNode(pod) && (conversion.WasTried(pod) || !b.view.Live && !isGated(pod)):
		b.addUnplaced(pod, b.valueOf(pod))
	}
}

// acceptsNominated reports whether kube-scheduler may still bind pods to the node that it nominated for them: the node
// exists, is not leaving, and is not cordoned. A nil node does not exist.
func (n *nodeView) acceptsNominated() bool {
	return n != nil && !n.value.Leaving && !n.value.Cordoned()
}

// valueOf returns the pod as the solver sees it. Slices, maps and other parts that equal those of another pod are
// stored once.
func (b *builder) valueOf(pod *corev1.Pod) cluster.Pod {
	value := conversion.PodValue(pod, b.references)
	b.traits.Share(&value, nil)
	return value
}

// isGated reports whether the pod has scheduling gates, so that kube-scheduler does not consider it yet.
func isGated(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			return true
		}
	}
	return false
}

// placeBound counts a bound pod on its node. If the pod must move to another node now, placeBound also adds it to the
// pods that need a node; see addMovable.
func (b *builder) placeBound(pod *corev1.Pod) {
	n, ok := b.byName[pod.Spec.NodeName]
	switch {
	case !ok: // its Node is gone; the pod will be deleted soon
	case !conversion.NeedsPlace(pod):
		n.addUnmovable(b, pod)
	default:
		value := b.valueOf(pod)
		if n.addMovable(b, pod, &value) {
			value.Node = n.value.Name
			b.addUnplaced(pod, value)
		}
	}
}

// addUnplaced assigns the pod to the claim that was created for it (see AnnotationPods), if there is one. Otherwise it
// adds the pod to the pods that need a node.
func (b *builder) addUnplaced(pod *corev1.Pod, value cluster.Pod) {
	if i, ok := b.planned.of(&value, b.nodes); ok {
		b.unboundPlanned[i] = append(b.unboundPlanned[i], unplacedPod{object: pod, value: &value})
		return
	}
	b.pods = append(b.pods, value)
}

// addPlannedPods counts on each node the pods that the node was launched for. Pods without room on their node are added
// to the pods that need a node. Call it when all bound pods are counted.
func (b *builder) addPlannedPods() {
	for i, n := range b.nodes {
		for _, m := range n.addPlanned(b, b.unboundPlanned[i]) {
			b.pods = append(b.pods, *m.value)
		}
	}
}

// addUnmovable counts a bound pod that never moves to another node: a static pod, a DaemonSet pod, or a terminating pod
// without a successor of the same name.
func (n *nodeView) addUnmovable(b *builder, pod *corev1.Pod) {
	n.addUsage(b, pod, conversion.Requests(pod), conversion.HostPorts(&pod.Spec))
	n.countResident(b.kindOfBound(pod))
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil && ref.Kind == "DaemonSet" {
		n.daemonSets = append(n.daemonSets, types.NamespacedName{Namespace: pod.Namespace, Name: ref.Name})
	}
}

// addMovable counts a bound pod that needs another node when its node terminates. It reports whether the pod needs
// another node now: the node is terminating, and neither the pod's annotation nor a budget forbids the eviction.
func (n *nodeView) addMovable(b *builder, pod *corev1.Pod, value *cluster.Pod) bool {
	n.addUsage(b, pod, value.Requests, value.HostPorts)
	n.value.Pods = append(n.value.Pods, *value)
	n.hasMovablePods = true
	if n.isTerminating && !conversion.IsProtected(pod, b.view.Now) && !b.budgets.forbidEviction(pod) {
		return true // not a resident, because it leaves
	}
	n.countResident(b.kindOf(value, pod.DeletionTimestamp != nil))
	return false
}

// addExpected counts a pod that is not bound yet but is expected on the node: the node was launched for the pod, or
// kube-scheduler has nominated the node for it. Without these pods, a node that has just become ready would seem empty,
// and would be removed before kube-scheduler has bound its pods.
func (n *nodeView) addExpected(b *builder, pod *corev1.Pod, value *cluster.Pod) {
	n.addUsage(b, pod, value.Requests, value.HostPorts)
	n.countResident(b.kindOf(value, false)) // false: the pod may be terminating on its old node, but not on this one
	n.value.Pods = append(n.value.Pods, *value)
}

// addPlanned calls addExpected for each pod in coming for which the node has room, in order of their names, and returns
// the pods without room.
func (n *nodeView) addPlanned(b *builder, coming []unplacedPod) (withoutRoom []unplacedPod) {
	byID := func(x, y unplacedPod) int { return byPodID(x.value, y.value) }
	if !slices.IsSortedFunc(coming, byID) {
		coming = slices.SortedFunc(slices.Values(coming), byID)
	}
	for _, m := range coming {
		if !n.hasRoomFor(m.value) {
			withoutRoom = append(withoutRoom, m)
			continue
		}
		n.addExpected(b, m.object, m.value)
	}
	return withoutRoom
}

// withDaemonPods returns the node as the solver sees it: with all of its pods, and with the DaemonSet pods that it does
// not run yet. A DaemonSet pod whose requests exceed the whole node is not counted. n is not changed.
func (n *nodeView) withDaemonPods(daemons []cluster.Daemon) cluster.Node {
	out := n.value
	labels := out.Labels
	if !out.Initialized {
		labels = asInitialized(labels)
	}
	running := make(map[types.NamespacedName]bool, len(n.daemonSets))
	for _, name := range n.daemonSets {
		running[name] = true
	}
	var ports []cluster.HostPort
	var residents []cluster.Resident
	for i := range daemons {
		d := &daemons[i]
		if running[types.NamespacedName{Namespace: d.Namespace, Name: d.Name}] ||
			!conversion.RunsDaemon(d, out.Taints, labels) || exceedsTotal(d.Requests, out.Allocatable) {
			continue
		}
		out.Requested = out.Requested.Add(d.Requests)
		ports = append(ports, d.HostPorts...)
		residents = append(residents, cluster.Resident{PodKind: d.Kind, Count: 1})
	}
	if len(ports) > 0 {
		out.HostPorts = conversion.MergeHostPorts(out.HostPorts, ports)
	}
	out.Residents = append(slices.Clip(out.Residents), residents...)
	return out
}

// exceedsTotal reports whether a pod requests more CPU or memory than the node has in total. A total of 0 means that
// the total is unknown.
func exceedsTotal(requests, total resources.Amounts) bool {
	return total.CPU > 0 && requests.CPU > total.CPU || total.Memory > 0 && requests.Memory > total.Memory
}

// sort sorts the pods and residents of the node. Call it when all pods of the node are counted.
func (n *nodeView) sort() {
	sortPods(n.value.Pods)
	n.value.Residents = n.residents.values()
}

// asInitialized returns the labels plus the two labels that Joiner adds when the node is registered and initialized:
// DaemonSets may select nodes by these two.
func asInitialized(labels requirements.Labels) requirements.Labels {
	out := make(requirements.Labels, len(labels)+2)
	maps.Copy(out, labels)
	out[karpv1.LabelRegistered], out[karpv1.LabelInitialized] = "true", "true"
	return out
}

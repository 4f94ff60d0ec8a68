package kube

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
)

// builder puts a snapshot together: pods onto their nodes, and apart those
// that need a place.
type builder struct {
	view    View
	around  surroundings
	kinds   *podKinds
	budgets budgets
	daemons []cluster.Daemon
	nodes   []nodeView
	pods    []cluster.Pod

	byName  map[string]int // index into nodes, by the name of the Node
	planned planned
	running map[runningOn]bool // DaemonSets that have their pod on a node
}

// runningOn is a DaemonSet on a node.
type runningOn struct {
	node            int
	namespace, name string
}

func (b *builder) index() {
	b.byName = make(map[string]int, len(b.nodes))
	b.planned = plannedOn(b.nodes, b.view.Now)
	b.running = map[runningOn]bool{}
	for i := range b.nodes {
		if n := b.nodes[i].node; n != nil {
			b.byName[n.Name] = i
		}
	}
}

// place puts the pod where it belongs: on its node, on the claim it was planned
// for, among those that need a place, or nowhere.
func (b *builder) place(pod *corev1.Pod) {
	switch {
	case IsFinished(pod):
	case pod.Spec.NodeName != "":
		b.bound(pod)
	case isWaiting(pod) && (wasTried(pod) || !b.view.Live && !isGated(pod)):
		b.needs(pod, podValue(pod, b.around))
	}
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
	i, ok := b.byName[pod.Spec.NodeName]
	if !ok {
		return // its Node is gone, and soon it will be too
	}
	n := &b.nodes[i]
	if !needsPlace(pod) {
		n.uses(b, pod, Requests(pod), hostPorts(&pod.Spec))
		n.settles(b.kindOfBound(pod))
		if ref := metav1.GetControllerOfNoCopy(pod); ref != nil && ref.Kind == "DaemonSet" {
			b.running[runningOn{i, pod.Namespace, ref.Name}] = true
		}
		return
	}
	value := podValue(pod, b.around)
	n.uses(b, pod, value.Requests, value.HostPorts)
	n.value.Pods = append(n.value.Pods, value)
	if n.going && !IsProtected(pod, b.view.Now) && !b.budgets.forbid(pod) {
		value.Node = n.value.Name
		b.needs(pod, value)
		return
	}
	n.settles(b.kindOf(&value, pod.DeletionTimestamp != nil))
}

// needs gives the pod to the claim that was made for it (see AnnotationPods), or
// else puts it among those that need a place. It is among the pods of the claim's
// node too, or a node that just became ready would look empty, and be removed,
// before kube-scheduler has bound to it what it was bought for.
func (b *builder) needs(pod *corev1.Pod, value cluster.Pod) {
	i, ok := b.planned.of(&value, b.nodes)
	if !ok {
		b.pods = append(b.pods, value)
		return
	}
	n := &b.nodes[i]
	n.uses(b, pod, value.Requests, value.HostPorts)
	n.settles(b.kindOf(&value, false)) // where it comes from it may be ending, here it is not
	n.value.Pods = append(n.value.Pods, value)
}

// expectDaemons counts the DaemonSet pods that each node has yet to get.
func (b *builder) expectDaemons() {
	for i := range b.nodes {
		n := &b.nodes[i].value
		labels := n.Labels
		if !n.Initialized {
			labels = asInitialized(labels)
		}
		for d := range b.daemons {
			daemon := &b.daemons[d]
			if b.running[runningOn{i, daemon.Namespace, daemon.Name}] || !goesOn(daemon, n.Taints, labels) {
				continue
			}
			n.Requested = n.Requested.Add(daemon.Requests)
			n.HostPorts = mergePorts(n.HostPorts, daemon.HostPorts)
		}
	}
}

// asInitialized returns the labels with the two that a node gets on its way:
// DaemonSets may wait for them.
func asInitialized(labels constraint.Labels) constraint.Labels {
	out := make(constraint.Labels, len(labels)+2)
	maps.Copy(out, labels)
	out[karpv1.LabelRegistered], out[karpv1.LabelInitialized] = "true", "true"
	return out
}

package podbinding

import (
	"iter"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Input is what Decide needs to know about one closed Node.
type Input struct {
	Zone   string               // of the Node
	Labels requirements.Labels  // of the Node
	Taints []requirements.Taint // of the Node, without what keeps it closed
	Pods   []cluster.Pod        // pods that the Node was launched for and that are not bound yet
	Room   resources.Amounts    // room for these pods
	OnNode []cluster.Pod        // pods that are bound to the Node
	// Nodes and Counted are what spreads over zones count; both are nil if no pod has such a spread.
	Nodes   []NodeInfo   // all nodes, the Node included
	Counted []CountedPod // the pods of the nodes, in the namespaces of Pods
	// SchedulerOnly has the IDs of pods that only kube-scheduler can bind: for example those with volumes.
	SchedulerOnly map[string]bool
}

// NodeInfo is a node whose pods topology spread constraints count.
type NodeInfo struct {
	Zone   string // empty: the node is not counted
	Labels requirements.Labels
	Taints []requirements.Taint // without those that keep a new node closed
}

// CountedPod is a pod that topology spread constraints count.
type CountedPod struct {
	Namespace string
	Labels    requirements.Labels
	Node      int // index into Input.Nodes; negative: the pod is not counted
}

const labelHostname = "kubernetes.io/hostname"

// Decision says which of the pods that a closed Node was launched for are bound. When the Node opens, all pods that are
// not bound are nominated: those that do not fit, those that a rule keeps off the Node, those with rules that Decide
// cannot check, and those that are still blocked.
type Decision struct {
	Bind    []string // IDs of the pods to bind now
	Blocked []string // IDs of the pods whose spread over zones allows the Node only when pods of other zones are bound
}

// Decide returns which pods are bound to the Node now. While the Node is closed, kube-scheduler binds only pods there that
// tolerate every taint. So a pod is bound if its own rules and those of the other pods allow the Node. Where a rule
// depends on more than Input has, Decide assumes the worst case, and leaves the pod to kube-scheduler.
func Decide(in Input) Decision {
	var d Decision
	state := nodeState{in: in, zones: zoneCounts{in: in, counts: map[string]*zoneCount{}}, room: in.Room}
	var waiting []*cluster.Pod
	for i := range in.Pods {
		if p := &in.Pods[i]; state.canCheck(p) && state.acceptsPod(p) {
			waiting = append(waiting, p)
		}
	}
	for {
		before := len(waiting)
		waiting = slices.DeleteFunc(waiting, func(p *cluster.Pod) bool {
			if !state.zones.allowsZone(p) {
				return false
			}
			if state.fits(p) {
				state.add(p)
				d.Bind = append(d.Bind, p.ID())
			}
			return true
		})
		if len(waiting) == before {
			break
		}
	}
	for _, p := range waiting {
		if state.fits(p) {
			d.Blocked = append(d.Blocked, p.ID())
		}
	}
	return d
}

// nodeState is the Node with the pods that are bound to it so far.
type nodeState struct {
	in    Input
	zones zoneCounts
	room  resources.Amounts // what is left of in.Room
}

// canCheck reports whether Decide knows all that the rules of the pod depend on.
func (n *nodeState) canCheck(p *cluster.Pod) bool {
	if n.in.SchedulerOnly[p.ID()] || p.Unplannable != "" || len(p.HostPorts) > 0 || len(p.Volumes) > 0 {
		return false
	}
	otherKey := func(t cluster.Term) bool { return isRequired(t) && t.Key != labelHostname }
	otherSpread := func(s cluster.Spread) bool { return !s.Soft && s.Key != catalog.LabelZone && s.Key != labelHostname }
	return !slices.ContainsFunc(p.Affinity, isRequired) && !slices.ContainsFunc(p.AntiAffinity, otherKey) &&
		!slices.ContainsFunc(p.Spread, otherSpread)
}

// acceptsPod reports whether the Node's labels and taints allow the pod.
func (n *nodeState) acceptsPod(p *cluster.Pod) bool {
	_, isKeptOff := requirements.Untolerated(n.in.Taints, p.Tolerations)
	return !isKeptOff && accepts(p, n.in.Labels)
}

func isRequired(t cluster.Term) bool { return t.Weight == 0 }

// fits reports whether the Node has room for the pod, and whether the rules about the pods of one node allow it. It
// assumes that some other node has no pod of a spread over nodes, so the Node may have at most MaxSkew.
func (n *nodeState) fits(p *cluster.Pod) bool {
	if !p.Requests.Fits(n.room) {
		return false
	}
	for o := range n.pods() {
		if Repels(p, o) || Repels(o, p) {
			return false
		}
	}
	for i := range p.Spread {
		s := &p.Spread[i]
		if s.Soft || s.Key != labelHostname {
			continue
		}
		count := 1
		for o := range n.pods() {
			if o.Namespace == p.Namespace && s.Selector.Matches(o.Labels) {
				count++
			}
		}
		if count > s.MaxSkew {
			return false
		}
	}
	return true
}

// pods yields the pods on the Node.
func (n *nodeState) pods() iter.Seq[*cluster.Pod] {
	return func(yield func(*cluster.Pod) bool) {
		for i := range n.in.OnNode {
			if !yield(&n.in.OnNode[i]) {
				return
			}
		}
		for _, p := range n.zones.added {
			if !yield(p) {
				return
			}
		}
	}
}

// Repels reports whether a required anti-affinity term of p selects o, in any domain and namespace.
func Repels(p, o *cluster.Pod) bool {
	return slices.ContainsFunc(p.AntiAffinity, func(t cluster.Term) bool { return isRequired(t) && t.Selector.Matches(o.Labels) })
}

func (n *nodeState) add(p *cluster.Pod) {
	n.room = n.room.Sub(p.Requests)
	n.zones.add(p)
}

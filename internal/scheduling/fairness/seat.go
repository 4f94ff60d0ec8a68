package fairness

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// Nomination is the node that an earlier plan chose for a pod that kube-scheduler has not bound yet.
type Nomination struct {
	UID  string // UID of the pod
	Node string // name of the NodeClaim, or of the Node if it has no NodeClaim
}

// NewNomination returns the nomination of the node for the pod.
func NewNomination(p *cluster.Pod, n *cluster.Node) Nomination {
	if n.Claim != "" {
		return Nomination{UID: p.UID, Node: n.Claim} // cluster.Node.Name changes when the node joins
	}
	return Nomination{UID: p.UID, Node: n.Name}
}

// CountNominated returns the nodes with each waiting pod counted on its nominated node, if the pod still fits there.
// The keys of nominations are "namespace/name" of the pod. CountNominated does not change the given nodes.
func CountNominated(nodes []cluster.Node, waiting []cluster.Pod, nominations map[string]Nomination) []cluster.Node {
	if len(nominations) == 0 {
		return nodes
	}
	index := make(map[string]int, len(nodes)) // index of each node, by Nomination.Node
	for i := range nodes {
		index[NewNomination(&cluster.Pod{}, &nodes[i]).Node] = i
	}
	out, isCopy := nodes, false
	for i := range waiting {
		p := &waiting[i]
		nomination, ok := nominations[p.ID()]
		at, found := index[nomination.Node]
		if !ok || !found || nomination.UID != p.UID || !p.Requests.Fits(out[at].Allocatable.Sub(out[at].Requested)) {
			continue
		}
		if !isCopy {
			out, isCopy = slices.Clone(nodes), true
		}
		addPod(&out[at], p)
	}
	return out
}

func addPod(n *cluster.Node, p *cluster.Pod) {
	kind := &cluster.PodKind{Namespace: p.Namespace, Labels: p.Labels}
	for _, t := range p.AntiAffinity {
		if t.Weight == 0 {
			kind.RequiredAntiAffinity = append(kind.RequiredAntiAffinity, t)
		}
	}
	n.Requested = n.Requested.Add(p.Requests)
	n.HostPorts = append(slices.Clip(n.HostPorts), p.HostPorts...)
	n.Residents = append(slices.Clip(n.Residents), cluster.Resident{PodKind: kind, Count: 1})
	n.Pods = append(slices.Clip(n.Pods), *p)
}

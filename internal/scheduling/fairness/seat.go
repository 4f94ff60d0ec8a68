package fairness

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// Seat is the node that an earlier plan chose for a pod that kube-scheduler has not bound yet.
type Seat struct {
	UID  string // UID of the pod
	Node string // name of the NodeClaim, or of the Node if it has no NodeClaim
}

// NewSeat returns the seat of the pod on the node.
func NewSeat(p *cluster.Pod, n *cluster.Node) Seat {
	if n.Claim != "" {
		return Seat{UID: p.UID, Node: n.Claim} // cluster.Node.Name changes when the node joins
	}
	return Seat{UID: p.UID, Node: n.Name}
}

// Seated returns the nodes with each waiting pod counted on the node of its seat, if the pod still fits there. seats
// has the seats by "namespace/name" of the pod. Seated does not change the given nodes.
func Seated(nodes []cluster.Node, waiting []cluster.Pod, seats map[string]Seat) []cluster.Node {
	if len(seats) == 0 {
		return nodes
	}
	index := make(map[string]int, len(nodes)) // index of each node, by Seat.Node
	for i := range nodes {
		index[NewSeat(&cluster.Pod{}, &nodes[i]).Node] = i
	}
	out, isCopy := nodes, false
	for i := range waiting {
		p := &waiting[i]
		seat, ok := seats[p.ID()]
		at, found := index[seat.Node]
		if !ok || !found || seat.UID != p.UID || !p.Requests.Fits(out[at].Allocatable.Sub(out[at].Requested)) {
			continue
		}
		if !isCopy {
			out, isCopy = slices.Clone(nodes), true
		}
		addPod(&out[at], p)
	}
	return out
}

// addPod counts the pod on the node.
func addPod(n *cluster.Node, p *cluster.Pod) {
	kind := &cluster.Kind{Namespace: p.Namespace, Labels: p.Labels}
	for _, t := range p.AntiAffinity {
		if t.Weight == 0 {
			kind.Avoids = append(kind.Avoids, t)
		}
	}
	n.Requested = n.Requested.Add(p.Requests)
	n.HostPorts = append(slices.Clip(n.HostPorts), p.HostPorts...)
	n.Residents = append(slices.Clip(n.Residents), cluster.Resident{Kind: kind, Count: 1})
	n.Pods = append(slices.Clip(n.Pods), *p)
}

package fairness

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// Seat is the place that an earlier plan gave a pod which kube-scheduler has not bound yet.
type Seat struct {
	UID  string // of the pod
	Node string // its NodeClaim, or the name of the Node if it has none
}

// NewSeat returns the seat of the pod on the node.
func NewSeat(p *cluster.Pod, n *cluster.Node) Seat {
	if n.Claim != "" {
		return Seat{UID: p.UID, Node: n.Claim} // a node changes its name when it joins
	}
	return Seat{UID: p.UID, Node: n.Name}
}

// Seated returns the nodes with the waiting pods counted that have a seat, by "namespace/name", and still fit there. It alters no
// node of its argument.
func Seated(nodes []cluster.Node, waiting []cluster.Pod, seats map[string]Seat) []cluster.Node {
	if len(seats) == 0 {
		return nodes
	}
	byName := make(map[string]int, len(nodes))
	for i := range nodes {
		byName[NewSeat(&cluster.Pod{}, &nodes[i]).Node] = i
	}
	out, isCopy := nodes, false
	for i := range waiting {
		p := &waiting[i]
		seat, ok := seats[p.ID()]
		at, found := byName[seat.Node]
		if !ok || !found || seat.UID != p.UID || !p.Requests.Fits(out[at].Allocatable.Sub(out[at].Requested)) {
			continue
		}
		if !isCopy {
			out, isCopy = slices.Clone(nodes), true
		}
		sit(&out[at], p)
	}
	return out
}

// sit counts the pod on the node.
func sit(n *cluster.Node, p *cluster.Pod) {
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

package verify

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// checkPlacements checks the pods on existing nodes, node by node.
func (c *checker) checkPlacements(list []packing.Placement) {
	var used []int // places with at least one of the pods
	for _, placement := range list {
		p := c.recordPod(placement.Pod, "node "+placement.Node)
		i, ok := c.nodes[placement.Node]
		if !ok {
			c.report("pod %s goes to node %s, which does not exist", placement.Pod, placement.Node)
			continue
		}
		if p == nil {
			continue
		}
		if len(c.places[i].pods) == 0 {
			used = append(used, i)
		}
		c.places[i].pods = append(c.places[i].pods, p)
	}
	for _, i := range used {
		c.checkNode(&c.places[i])
	}
}

func (c *checker) checkNode(at *place) {
	n := at.node
	if n.Leaving {
		c.report("%s has new pods, but is leaving", at.name)
	}
	labels := nodeLabels(n)
	ports := slices.Clone(n.HostPorts)
	var sum resources.Amounts
	for _, p := range at.pods {
		if !suits(p.Required, p.Tolerations, labels, n.Taints) {
			c.report("%s: pod %s does not accept it", at.name, p.ID())
		}
		for _, port := range p.HostPorts {
			c.checkPort(at.name, port, ports)
		}
		ports = append(ports, p.HostPorts...)
		sum = sum.Add(p.Requests)
	}
	if lack := nodeLackingResources(n, sum); len(lack) > 0 {
		c.report("%s has too little %v for its pods", at.name, lack)
	}
}

// nodeLabels returns the node's labels, including the host name, which NodeClaims without a Node may lack.
func nodeLabels(n *cluster.Node) requirements.Labels {
	if _, ok := n.Labels[labelHostname]; ok {
		return n.Labels
	}
	labels := maps.Clone(n.Labels)
	if labels == nil {
		labels = requirements.Labels{}
	}
	labels[labelHostname] = n.Name
	return labels
}

// nodeLackingResources returns the resources of which the node has too little free for pods with the total requests
// sum. Without a known limit, a node can attach any number of volumes.
func nodeLackingResources(n *cluster.Node, sum resources.Amounts) []string {
	lacking := sum.Lacking(n.Allocatable.Sub(n.Requested))
	return slices.DeleteFunc(lacking, func(name string) bool {
		return isAttachLimit(name) && n.Allocatable.Of(name) == 0
	})
}

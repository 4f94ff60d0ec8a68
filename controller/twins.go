package controller

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/ec2"
	"github.com/joiner-sh/joiner/fault"
)

// genuine returns, of several Nodes that carry the machine's provider id and are all alive, the one that is the machine's:
// a kubelet whose configuration was copied from another machine says the id of that one. It is the Node that the claim was
// registered with, as long as that is ready; before that the one that has the machine's address. If that does not tell,
// all of them are returned, and the claim has to wait: to take the wrong one would end somebody else's machine.
func (c *Claims) genuine(ctx context.Context, claim *karpv1.NodeClaim, nodes []*corev1.Node) ([]*corev1.Node, error) {
	if len(nodes) < 2 {
		return nodes, nil
	}
	if claim.StatusConditions().IsTrue(karpv1.ConditionRegistered) {
		return only(nodes, func(n *corev1.Node) bool { return n.Name == claim.Status.NodeName && isReady(n) }), nil
	}
	id, ok := ec2.ParseProviderID(claim.Status.ProviderID)
	if !ok {
		return nodes, nil
	}
	instance, err := c.Machines.Instance(ctx, id)
	if fault.Is(err, fault.Gone) || err == nil && instance.PrivateIP == "" {
		return nodes, nil
	}
	if err != nil {
		return nil, err
	}
	return only(nodes, func(n *corev1.Node) bool { return hasAddress(n, instance.PrivateIP) }), nil
}

// only returns the one Node of which that is true; all if it is true of none or of several.
func only(nodes []*corev1.Node, isIt func(*corev1.Node) bool) []*corev1.Node {
	found := slices.DeleteFunc(slices.Clone(nodes), func(n *corev1.Node) bool { return !isIt(n) })
	if len(found) != 1 {
		return nodes
	}
	return found
}

func hasAddress(node *corev1.Node, address string) bool {
	return slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool {
		return a.Type == corev1.NodeInternalIP && a.Address == address
	})
}

package nodeclaim

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// isUnlabelled reports whether the claim, or one of its registered Nodes, lacks the label that names the node class.
// Older versions of Joiner did not set this label. The label marks a Node as ours after its claim is gone.
func isUnlabelled(claim *karpv1.NodeClaim, nodes []*corev1.Node) bool {
	ref := claim.Spec.NodeClassRef
	key := ref.LabelKey()
	if claim.Labels[key] != ref.Name {
		return true
	}
	for _, node := range nodes {
		if node.Labels[karpv1.LabelRegistered] == "true" && node.Labels[key] != ref.Name {
			return true
		}
	}
	return false
}

// label adds the label that names the node class to the claim and to its registered Nodes.
func (c *Reconciler) label(ctx context.Context, v View) (*karpv1.NodeClaim, error) {
	ref := v.Claim.Spec.NodeClassRef
	for _, node := range v.nodes {
		if node.Labels[karpv1.LabelRegistered] != "true" {
			continue // registration adds all labels
		}
		if _, err := c.Objects.PatchNode(ctx, node, func(n *corev1.Node) { n.Labels[ref.LabelKey()] = ref.Name }); err != nil {
			return nil, err
		}
	}
	claim, err := c.Objects.PatchClaim(ctx, v.Claim, func(claim *karpv1.NodeClaim) {
		if claim.Labels == nil {
			claim.Labels = map[string]string{}
		}
		claim.Labels[ref.LabelKey()] = ref.Name
	})
	if err != nil {
		return nil, err
	}
	c.Log.Info("labelled NodeClaim", "NodeClaim", claim.Name, "label", ref.LabelKey()+"="+ref.Name, "Node", claim.Status.NodeName)
	return claim, nil
}

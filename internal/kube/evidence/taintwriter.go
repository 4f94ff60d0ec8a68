package evidence

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// TaintWriters returns the field managers that have written a node's taints, sorted: the last writer, and the owners by
// server-side apply. It returns none for Nodes from a cache, which have no managed fields.
func TaintWriters(n *corev1.Node) []string {
	var out []string
	for _, m := range n.ManagedFields {
		if m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), `"f:taints"`) {
			out = append(out, m.Manager)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

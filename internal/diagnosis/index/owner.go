package index

import (
	"maps"
	"slices"
	"strings"
)

// OtherOwner returns the name of the other cluster that owns a resource according to the resource's tags: another
// cluster in the tag aws:eks:cluster-name, or else NAME of a tag kubernetes.io/cluster/NAME with the value owned. Tags
// kubernetes.io/cluster/NAME count only if none of them, with any value, names this cluster.
func (ix *Index) OtherOwner(tags map[string]string) string {
	if name := tags["aws:eks:cluster-name"]; name != "" && name != ix.Evidence.Name {
		return name
	}
	other := ""
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		name, ok := strings.CutPrefix(key, "kubernetes.io/cluster/")
		if ok && name == ix.Evidence.Name {
			return ""
		}
		if ok && tags[key] == "owned" {
			other = name
		}
	}
	return other
}

package index

import (
	"maps"
	"slices"
	"strings"
)

// OtherOwner returns the name of another cluster to which, according to its tags, a resource belongs; empty if the tags
// name no other cluster, or also this one.
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

package index

import (
	"maps"
	"slices"
	"strings"
)

// OtherOwner returns the name of the other cluster that alone owns a resource by its tags; empty if there is no such
// cluster.
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

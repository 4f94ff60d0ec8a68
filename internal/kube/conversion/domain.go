package conversion

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// adaptSpreads adapts spread constraints to the pod's volumes. kube-scheduler counts each node that matches the pod's
// node selector and node affinity, even if the volumes exclude the node. So if pods share a volume in one zone and are
// spread over zones, some cannot run, however many nodes the zone has.
//
// affinity has the alternatives of node selector and node affinity. withVolumes has these alternatives, narrowed by the
// volumes. A spread is not changed if the volumes allow all of its domains. Any other spread gets IgnoresNodeAffinity:
// unlike in kube-scheduler, nodes that the affinity rejects are counted too. The result is the same as long as rejected
// nodes have at least as many matching pods as the nodes that the volumes exclude.
func adaptSpreads(spreads []cluster.Spread, affinity, withVolumes []requirements.Requirements) []cluster.Spread {
	if slices.EqualFunc(affinity, withVolumes, sameRequirements) {
		return spreads
	}
	spreads = slices.Clone(spreads)
	for i := range spreads {
		if !keepsAllValues(spreads[i].Key, affinity, withVolumes) {
			spreads[i].IgnoresNodeAffinity = true
		}
	}
	return spreads
}

// keepsAllValues reports whether affinity accepts only listed values of the label, and withVolumes accepts all of them.
func keepsAllValues(key string, affinity, withVolumes []requirements.Requirements) bool {
	for _, alternative := range affinity {
		values, ok := alternative[key]
		if !ok || values.Complement {
			return false
		}
		for _, value := range values.Listed {
			accepts := func(r requirements.Requirements) bool { v, ok := r[key]; return !ok || v.Accepts(value) }
			if !slices.ContainsFunc(withVolumes, accepts) {
				return false
			}
		}
	}
	return len(affinity) > 0
}

func sameRequirements(a, b requirements.Requirements) bool {
	return maps.EqualFunc(a, b, func(x, y requirements.Values) bool { return x.Compare(y) == 0 })
}

package conversion

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// beyondVolumes adapts spread constraints to the pod's volumes. kube-scheduler decides by node selector and node
// affinity (own) which nodes count for a spread, and ignores volumes there. So pods that share a volume in one zone and
// are spread over zones cannot all run, however many nodes the zone has.
//
// narrowed is own restricted by the volumes. A spread is not changed if the volumes allow all of its domains. For any
// other spread all nodes are counted (AnyNode), including nodes that own rejects. The result is the same as that of
// kube-scheduler as long as the rejected nodes have at least as many matching pods as the nodes that the volumes
// exclude.
func beyondVolumes(spreads []cluster.Spread, own, narrowed []requirements.Requirements) []cluster.Spread {
	if slices.EqualFunc(own, narrowed, sameRequirements) {
		return spreads
	}
	spreads = slices.Clone(spreads)
	for i := range spreads {
		if !leavesAll(spreads[i].Key, own, narrowed) {
			spreads[i].AnyNode = true
		}
	}
	return spreads
}

// leavesAll reports whether own accepts only listed values of the label, and narrowed accepts all of them.
func leavesAll(key string, own, narrowed []requirements.Requirements) bool {
	for _, o := range own {
		values, ok := o[key]
		if !ok || values.Complement {
			return false
		}
		for _, value := range values.Listed {
			accepts := func(r requirements.Requirements) bool { v, ok := r[key]; return !ok || v.Accepts(value) }
			if !slices.ContainsFunc(narrowed, accepts) {
				return false
			}
		}
	}
	return len(own) > 0
}

// sameRequirements reports whether a and b have equal keys and values.
func sameRequirements(a, b requirements.Requirements) bool {
	return maps.EqualFunc(a, b, func(x, y requirements.Values) bool { return x.Compare(y) == 0 })
}

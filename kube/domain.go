package kube

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
)

// beyondVolumes returns the spreads so that nodes count which the pod's volumes keep it from: kube-scheduler
// asks node selector and affinity (own) which nodes count, and of volumes it knows nothing
// there. So pods that share a volume of one zone and are spread over zones cannot all run, however
// many nodes the zone has.
//
// Where own says something about the label itself the spread stays as it is: own and the
// volumes then mostly mean the same domains.
func beyondVolumes(spreads []cluster.Spread, own, narrowed []constraint.Requirements) []cluster.Spread {
	if slices.EqualFunc(own, narrowed, sameRequirements) {
		return spreads
	}
	spreads = slices.Clone(spreads)
	for i := range spreads {
		key := spreads[i].Key
		if !slices.ContainsFunc(own, func(r constraint.Requirements) bool { _, ok := r[key]; return ok }) {
			spreads[i].AnyNode = true
		}
	}
	return spreads
}

func sameRequirements(a, b constraint.Requirements) bool {
	return maps.EqualFunc(a, b, func(x, y constraint.Values) bool { return x.Compare(y) == 0 })
}

package conversion

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// beyondVolumes returns the spreads so that nodes count which only the pod's volumes keep it from: kube-scheduler
// asks node selector and affinity (own) which nodes count, and of volumes it knows nothing
// there. So pods that share a volume of one zone and are spread over zones cannot all run, however
// many nodes the zone has.
//
// narrowed is what the volumes leave of own. Where they leave all domains of a spread it stays as it is. Where they
// do not, all nodes count: also those that own refuses, which makes no difference as long as they have
// no fewer of the pods than those which the volumes refuse.
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

// leavesAll reports whether own accepts but a few values of the label, and narrowed no fewer.
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

func sameRequirements(a, b requirements.Requirements) bool {
	return maps.EqualFunc(a, b, func(x, y requirements.Values) bool { return x.Compare(y) == 0 })
}

package kube

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
)

// For a spread constraint only some nodes count. cluster.Pod says which by Required, for
// constraints that honor the pod's node affinity (the default), and by AnyNode for
// those that do not. What follows makes both say what kube-scheduler means.

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

// labelled returns the alternatives so that they accept no node without one of the labels that the pod is
// spread over. kube-scheduler never binds it to such a node, which is nothing new; but where there are
// several constraints, it counts such a node for none of them.
//
// Source: "Topology spread constraint definition" and "Conventions" in the Kubernetes documentation.
func labelled(alternatives []constraint.Requirements, spreads []cluster.Spread) []constraint.Requirements {
	demands := constraint.Requirements{}
	for i := range spreads {
		if !spreads[i].Soft {
			demands[spreads[i].Key] = constraint.Any()
		}
	}
	if len(demands) < 2 {
		return alternatives
	}
	delete(demands, corev1.LabelHostname) // every node has it
	if len(alternatives) == 0 {
		return []constraint.Requirements{demands}
	}
	out := make([]constraint.Requirements, len(alternatives))
	for i, a := range alternatives {
		out[i] = maps.Clone(a)
		for key, value := range demands {
			out[i].Narrow(key, value)
		}
	}
	return out
}

func sameRequirements(a, b constraint.Requirements) bool {
	return maps.EqualFunc(a, b, func(x, y constraint.Values) bool { return x.Compare(y) == 0 })
}

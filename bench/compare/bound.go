package compare

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// boundOf returns a lower bound on the price of any plan that places as many pods as possible. unplaceable is the
// number of pods that no plan can place. scope describes the plans or pods for which the bound is valid; see
// Row.BoundScope.
//
// If plan refuses only unplaceable pods, boundOf returns plan's own bound. Otherwise it returns the bound for the pods
// without their constraints on each other. This bound is valid too, but may be further below the best price.
//
// For a workload of kind Preferring, boundOf first plans with preferred anti-affinity by host as required. If this
// stricter plan places all pods, its bound is returned.
func boundOf(kind workload.Kind, s cluster.Snapshot, market catalog.Market,
	plan packing.Plan) (price catalog.Price, unplaceable int, scope string) {
	if kind == workload.Preferring {
		strict := packing.Solve(requireHostAntiAffinity(s), market, packing.DefaultEffort)
		if len(strict.Refusals) == 0 {
			return strict.LowerBound, 0, "of plans in which no pod shares a host with pods that its preferred anti-affinity avoids"
		}
	}
	if len(plan.Placements) > 0 {
		scope = "of the pods that remain after Joiner's placements on existing nodes"
	}
	if len(plan.Refusals) == 0 {
		return plan.LowerBound, 0, scope
	}
	s.Pods = slices.Clone(s.Pods)
	for i := range s.Pods {
		p := &s.Pods[i]
		if strings.Contains(p.Unplannable, "not plan for yet") {
			// The text is of package conversion, for a pod that needs a feature which Joiner lacks. The pod is valid.
			p.Unplannable = ""
		}
		p.Spread, p.Affinity, p.AntiAffinity = nil, nil, nil
	}
	relaxed := packing.Solve(s, market, packing.DefaultEffort)
	unplaceable = len(relaxed.Refusals)
	if len(plan.Refusals) == unplaceable {
		return plan.LowerBound, unplaceable, scope
	}
	return relaxed.LowerBound, unplaceable, "of the pods without their constraints on each other"
}

func requireHostAntiAffinity(s cluster.Snapshot) cluster.Snapshot {
	s.Pods = slices.Clone(s.Pods)
	for i := range s.Pods {
		p := &s.Pods[i]
		p.AntiAffinity = slices.Clone(p.AntiAffinity)
		for n := range p.AntiAffinity {
			if t := &p.AntiAffinity[n]; t.Key == hostname {
				t.Weight = 0 // required
			}
		}
	}
	return s
}

const hostname = "kubernetes.io/hostname"

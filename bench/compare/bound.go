package compare

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// boundOf returns a lower bound of the price of all plans that place as many pods as possible. unplaceable is the number
// of pods that no plan can place. scope describes the plans or pods that the bound is for; see Row.BoundScope.
//
// If the plan refuses only unplaceable pods, boundOf returns the bound that the solver computed with the plan. Otherwise
// it returns the bound for the pods without their constraints on each other, which may be too low.
//
// For a workload of kind Preferring, the bound is that of the plans in which the preferred anti-affinity by host is
// required, if such a plan places all pods.
func boundOf(kind workload.Kind, s cluster.Snapshot, market catalog.Market,
	plan packing.Plan) (price catalog.Price, unplaceable int, scope string) {
	if kind == workload.Preferring {
		strict := packing.Solve(requireHostAntiAffinity(s), market, packing.Usual)
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
		if strings.Contains(p.Unplannable, "not plan for yet") { // a feature that Joiner lacks (package conversion); the pod itself is valid
			p.Unplannable = ""
		}
		p.Spread, p.Affinity, p.AntiAffinity = nil, nil, nil
	}
	relaxed := packing.Solve(s, market, packing.Usual)
	unplaceable = len(relaxed.Refusals)
	if len(plan.Refusals) == unplaceable {
		return plan.LowerBound, unplaceable, scope
	}
	return relaxed.LowerBound, unplaceable, "of the pods without their constraints on each other"
}

// requireHostAntiAffinity returns the snapshot with preferred anti-affinity by host turned into required anti-affinity.
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

// hostname is the topology key of constraints by node.
const hostname = "kubernetes.io/hostname"

package controller

import (
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// What objects ask for in vain, whatever the settings, stands in this file and nowhere else: docs/compatibility.md is made from it, and
// what is read here counts as "not yet" there.

// poolLapses returns what a NodePool asks for in vain. Who lets no node go but empty ones, or none, misses nothing.
func poolLapses(pool *karpv1.NodePool) []lapse {
	var out []lapse
	d := pool.Spec.Disruption
	if d.ConsolidationPolicy != karpv1.ConsolidateWhenEmpty && d.ConsolidateAfter.Duration != nil && pool.Spec.Replicas == nil {
		out = append(out, lapse{
			"spec.disruption.consolidationPolicy",
			"nodes that pods are left on are kept, however few; those without pods are given back",
		})
	}
	for _, b := range d.Budgets {
		if b.Schedule != nil || b.Duration != nil {
			return append(out, lapse{
				"spec.disruption.budgets[].schedule, spec.disruption.budgets[].duration",
				"budgets with a schedule count at all times",
			})
		}
	}
	return out
}

// claimLapses returns what a NodeClaim asks for in vain. Karpenter writes the annotation on claims for pods with DRA devices.
func claimLapses(claim *karpv1.NodeClaim) []lapse {
	if claim.Annotations[karpv1.AnnotationDRADrivers] == "" {
		return nil
	}
	return []lapse{{
		"metadata.annotations[karpenter.sh/requested-dra-drivers]",
		"the node counts as initialized without waiting for the devices of these drivers",
	}}
}

package controller

import (
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// What objects ask for in vain, whatever the settings, stands in this file and nowhere else: docs/compatibility.md is made from it, and
// what is read here counts as "not yet" there.

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

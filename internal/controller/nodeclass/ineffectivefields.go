package nodeclass

import (
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// This file has the fields that never have an effect, whatever the feature gates are. The generated
// docs/compatibility.md lists them as "not yet".

// ineffectiveClaimFields returns the fields of a NodeClaim that have no effect: an annotation that Karpenter writes on
// claims for pods with DRA devices.
func ineffectiveClaimFields(claim *karpv1.NodeClaim) []ineffectiveField {
	if claim.Annotations[karpv1.AnnotationDRADrivers] == "" {
		return nil
	}
	return []ineffectiveField{{
		"metadata.annotations[karpenter.sh/requested-dra-drivers]",
		"the node counts as initialized without waiting for the devices of these drivers",
	}}
}

package nodeclass

import (
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// This file has all fields that have no effect with any settings. docs/compatibility.md is generated from this file,
// and lists its fields as "not yet".

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

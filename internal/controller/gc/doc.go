// Package gc terminates instances without a NodeClaim, deletes NodeClaims without an instance, and removes launch templates,
// instance profiles and tags that are no longer used.
//
// In: instances, NodeClaims, launch templates, instance profiles.
// Out: deletions.
// Never: deleting a resource that another cluster owns.
package gc

package kubeclient

import "slices"

// Annotations with records of drift as JSON, so they survive a restart. A writer replaces the whole record, starting from its
// current content.
const (
	// on an EC2NodeClass, which images were good last and which are bad; without it they are tried anew
	AnnotationImages = "joiner.sh/images"
	// on a NodePool, which nodes failed with what is now asked for; without it that is tried once more
	AnnotationFailed = "joiner.sh/drift-failed"
	// on an EC2NodeClass, what its selectors found: distinguishes changes by the user from other changes
	AnnotationSelected = "joiner.sh/selected"
)

// hasRecord reports whether a merge patch writes, or takes away, an annotation that holds a record.
func hasRecord(body map[string]any) bool {
	metadata, _ := body["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return slices.ContainsFunc([]string{AnnotationImages, AnnotationFailed, AnnotationSelected}, func(key string) bool {
		_, is := annotations[key]
		return is
	})
}

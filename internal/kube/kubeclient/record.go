package kubeclient

import "slices"

// Annotations that hold records of drift as JSON, so that the records survive a restart. A writer replaces the whole
// record, starting from its current content.
const (
	// on an EC2NodeClass: the last images that worked, and images that failed; without the record, failed images are
	// tried again
	AnnotationImages = "joiner.sh/images"
	// on a NodePool: nodes that failed with the current settings; without the record, the settings are tried once more
	AnnotationFailed = "joiner.sh/drift-failed"
	// on an EC2NodeClass: the resources that its selectors found; distinguishes changes by the user from other changes
	AnnotationSelected = "joiner.sh/selected"
)

// hasRecord reports whether a merge patch writes or removes an annotation that holds a record.
func hasRecord(body map[string]any) bool {
	metadata, _ := body["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return slices.ContainsFunc([]string{AnnotationImages, AnnotationFailed, AnnotationSelected}, func(key string) bool {
		_, is := annotations[key]
		return is
	})
}

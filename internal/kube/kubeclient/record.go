package kubeclient

import "slices"

// Annotations that hold records of drift as JSON, so that the records survive a restart. A writer reads the current
// record and replaces it as a whole.
const (
	// AnnotationImages on an EC2NodeClass is the record of the last images that worked and of the images that failed.
	// Without the record, failed images are tried again.
	AnnotationImages = "joiner.sh/images"
	// AnnotationFailed on a NodePool is the record of the nodes that failed with the current settings. Without the
	// record, the settings are tried once more.
	AnnotationFailed = "joiner.sh/drift-failed"
	// AnnotationSelected on an EC2NodeClass is the record of the resources that its selectors found. With this record,
	// drift caused by the user is distinguished from other drift.
	AnnotationSelected = "joiner.sh/selected"
)

// hasRecord reports whether a merge patch writes or removes an annotation that holds a record.
func hasRecord(body map[string]any) bool {
	metadata, _ := body["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return slices.ContainsFunc([]string{AnnotationImages, AnnotationFailed, AnnotationSelected}, func(key string) bool {
		_, ok := annotations[key]
		return ok
	})
}

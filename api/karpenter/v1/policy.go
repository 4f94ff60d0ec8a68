package v1

// Annotations on a NodePool that say more of its disruption than spec.disruption can. They are Joiner's own; Karpenter does not
// know them. A value that cannot be read is named in the pool's condition, and what it would have a say in is not done.
const (
	// AnnotationPaused stops all that is done by choice with the pool's nodes: with "true", or until a time in RFC 3339.
	// "false" is as if it were not there; any other value counts as "true".
	AnnotationPaused = "joiner.sh/paused"
	// AnnotationMinimumSaving is what a move must save: "$0.05" per hour, or "10%" of what its nodes cost.
	AnnotationMinimumSaving = "joiner.sh/minimum-saving"
	// AnnotationMinimumLifetime is how old a node must be, "1h30m", before it goes for money or for drift.
	AnnotationMinimumLifetime = "joiner.sh/minimum-node-lifetime"
	// AnnotationMaximumMoves is how often the pods of a workload may be moved, for each of them and hour: "2", which it is
	// without the annotation.
	AnnotationMaximumMoves = "joiner.sh/maximum-moves-per-pod-hour"
	// AnnotationDrift is "observe" where nodes that drifted are told of and stay, or "replace", which it is without it.
	AnnotationDrift = "joiner.sh/drift"
	// AnnotationDriftIgnore lists, with commas, fields of the pool's template and its EC2NodeClass whose changes are no
	// drift, by name or by path: "amiSelectorTerms,spec.tags".
	AnnotationDriftIgnore = "joiner.sh/drift-ignore"
	// AnnotationDriftCanary is how many drifted nodes are replaced first, before any other: "1", which it is without it.
	AnnotationDriftCanary = "joiner.sh/drift-canary"
	// AnnotationDriftWave is how many drifted nodes are replaced at once after that: "3", or "10%" of the pool's nodes.
	AnnotationDriftWave = "joiner.sh/drift-wave"
)

// PolicyAnnotations are the annotations that a NodePool may have, sorted.
func PolicyAnnotations() []string {
	return []string{
		AnnotationDrift, AnnotationDriftCanary, AnnotationDriftIgnore, AnnotationDriftWave, AnnotationMaximumMoves,
		AnnotationMinimumLifetime, AnnotationMinimumSaving, AnnotationPaused,
	}
}

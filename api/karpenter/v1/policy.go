package v1

// Annotations of a NodePool that extend spec.disruption. They are Joiner's own; Karpenter ignores them. An invalid value is
// reported in the NodePool's condition DisruptionPolicyValid, and blocks the disruption that it would control.
const (
	// AnnotationPaused pauses voluntary disruption of the NodePool's nodes: "true" pauses until the annotation is
	// removed, a time (RFC 3339) pauses until then. "false" has no effect. Any other value counts as "true".
	AnnotationPaused = "joiner.sh/paused"
	// AnnotationMinimumSaving is the minimum saving of a move: "$0.05" per hour, or "10%" of the price of its nodes.
	AnnotationMinimumSaving = "joiner.sh/minimum-saving"
	// AnnotationMinimumLifetime is the minimum age, such as "1h30m", of a node that is consolidated or replaced for
	// drift.
	AnnotationMinimumLifetime = "joiner.sh/minimum-node-lifetime"
	// AnnotationMaximumMoves is how often the pods of a workload may be moved, per pod and hour. Default: "2".
	AnnotationMaximumMoves = "joiner.sh/maximum-moves-per-pod-hour"
	// AnnotationDrift is "observe" to report drifted nodes and keep them, or "replace". Default: "replace".
	AnnotationDrift = "joiner.sh/drift"
	// AnnotationDriftIgnore is a list, separated by commas, of the fields whose changes are not drift. They are fields of
	// the NodePool's template and of its EC2NodeClass, by name or by path: "amiSelectorTerms,spec.tags".
	AnnotationDriftIgnore = "joiner.sh/drift-ignore"
	// AnnotationDriftCanary is how many drifted nodes are replaced before the others. Default: "1".
	AnnotationDriftCanary = "joiner.sh/drift-canary"
	// AnnotationDriftWave is how many drifted nodes are replaced at once after the canary nodes: "3", or "10%" of the NodePool's nodes.
	AnnotationDriftWave = "joiner.sh/drift-wave"
)

// PolicyAnnotations returns the annotations that extend spec.disruption, sorted.
func PolicyAnnotations() []string {
	return []string{
		AnnotationDrift, AnnotationDriftCanary, AnnotationDriftIgnore, AnnotationDriftWave, AnnotationMaximumMoves,
		AnnotationMinimumLifetime, AnnotationMinimumSaving, AnnotationPaused,
	}
}

package output

// Blocker prevents nodes from being drained: a PodDisruptionBudget, or an annotation of pods.
type Blocker struct {
	Kind      string   `json:"kind"`                           // a snapshot.BlockerKind: NeverAllows, NeedsAll, …
	Deadlock  bool     `json:"deadlock"`                       // the blocker remains until a user changes an object
	Budgets   []string `json:"podDisruptionBudgets,omitempty"` // "namespace/name"
	Why       string   `json:"why"`                            // a sentence without its full stop
	Fix       string   `json:"fix,omitempty"`                  // the change or command that removes the blocker
	Workloads []string `json:"workloads,omitempty"`            // "Deployment a/web"
	Pods      []string `json:"pods"`                           // "namespace/name"
	Nodes     []string `json:"nodes"`                          // names of the blocked Nodes
}

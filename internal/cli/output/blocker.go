package output

// Blocker prevents nodes from being drained: a PodDisruptionBudget, or an annotation of pods.
type Blocker struct {
	Kind      string   `json:"kind"`     // NeverAllows, NeedsAll, SeveralGuard, NoRoomNow, AskedFor
	Deadlock  bool     `json:"deadlock"` // the blocker remains until a user changes an object
	Budgets   []string `json:"podDisruptionBudgets,omitempty"`
	Why       string   `json:"why"`
	Fix       string   `json:"fix,omitempty"`
	Workloads []string `json:"workloads,omitempty"` // "Deployment a/web"
	Pods      []string `json:"pods"`
	Nodes     []string `json:"nodes"`
}

package output

// Blocker prevents nodes from being drained: a PodDisruptionBudget, or an annotation of pods.
type Blocker struct {
	Kind      string   `json:"kind"`     // NeverAllows, NeedsAll, SeveralGuard, NoRoomNow, AskedFor
	Deadlock  bool     `json:"deadlock"` // it ends only when somebody changes something
	Budgets   []string `json:"podDisruptionBudgets,omitempty"`
	Why       string   `json:"why"`
	Fix       string   `json:"fix,omitempty"`
	Workloads []string `json:"workloads,omitempty"` // "Deployment a/web"
	Pods      []string `json:"pods"`
	Nodes     []string `json:"nodes"`
}

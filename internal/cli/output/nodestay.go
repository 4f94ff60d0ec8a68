package output

import "time"

// NodeStay is what keeps a node from being taken away by choice.
type NodeStay struct {
	Node  string `json:"node,omitempty"` // empty as long as it has not joined
	Claim string `json:"nodeClaim"`
	Pool  string `json:"nodePool"`
	Cause string `json:"cause"` // a disruption.Cause: what joiner_nodes_staying counts
	Why   string `json:"why"`   // a sentence without its full stop
	// NoControllerSince is since when no controller acts, so that the rest may be of then; zero: one does, or it is not known.
	NoControllerSince time.Time `json:"noControllerSince,omitzero"`
}

// NodeStays writes a row for each, in lines of that width; 0: as long as they are.
func NodeStays(rows []NodeStay, width int) string {
	if len(rows) == 0 {
		return "There is no node of a NodePool.\n"
	}
	t := Table{Header: []string{"NODE", "NODEPOOL", "CAUSE", "WHY"}}
	for _, r := range rows {
		name := r.Node
		if name == "" {
			name = r.Claim
		}
		t.Rows = append(t.Rows, []string{name, r.Pool, r.Cause, r.Why})
	}
	return t.Fit(width)
}

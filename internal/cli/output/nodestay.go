package output

import "time"

// NodeExplanation is a row of joiner explain node: the reason why a node is not disrupted voluntarily.
type NodeExplanation struct {
	Node  string `json:"node,omitempty"` // name of the Node; empty until the instance has joined
	Claim string `json:"nodeClaim"`      // name of the NodeClaim
	Pool  string `json:"nodePool"`       // name of the NodePool
	Cause string `json:"cause"`          // a disruption.Cause, a label value of the metric joiner_nodes_staying
	Why   string `json:"why"`            // a sentence without its full stop
	// NoControllerSince is the time since which no controller is active, so that Cause and Why may be outdated. It is
	// zero if a controller is active, or if that is unknown.
	NoControllerSince time.Time `json:"noControllerSince,omitzero"`
}

// NodeExplanations returns a table with a row for each node. width is the maximum width in characters; 0: no limit.
func NodeExplanations(rows []NodeExplanation, width int) string {
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

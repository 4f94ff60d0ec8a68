// Package disruption selects nodes for voluntary disruption.
//
// In: a snapshot, the policies of the pools, facts about the nodes, and the time.
// Out: moves, each with its reason and nodes; and why the other candidates stay.
// Never: an API object, a deletion, or a node that a pod still needs.
package disruption

import (
	"time"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Input is the input of a proposal.
type Input struct {
	Snapshot cluster.Snapshot // the state of the cluster
	// Plan has the planned nodes of Snapshot's pending pods: a node in its placements is needed.
	Plan packing.Plan

	Policies map[string]Policy // by pool; a pool without one keeps all its nodes
	Records  map[string]Record // by node name; a node without one stays
	Drifted  map[string]string // by node name: how it differs from its desired state
	Now      time.Time         // the time of the decision
}

// Record has facts about a node that are not in the snapshot.
type Record struct {
	// Quiet is since when no pod has come or gone: the last such event, or the initialization.
	Quiet time.Time
	// Ready is the Node's condition Ready. A node that is not ready uses the budget.
	Ready bool
	// Keep is what protects the node ("the annotation karpenter.sh/do-not-disrupt of the Node"); empty for nothing.
	Keep string
	// Blocked is the pod that blocks the node, and why ("pod a/b has no room in PodDisruptionBudget a/c (0 allowed; owner Deployment b)");
	// empty for none.
	Blocked string
	// BlockedUntil is when time ends that; zero if time does not.
	BlockedUntil time.Time
	// Going: it is being removed or replaced already, though the snapshot may not show it. It uses the budget.
	Going bool
	// Held is until when the node is left alone after a failed move, and HeldCause is why.
	Held      time.Time
	HeldCause string
	// Bounded: draining has a deadline (terminationGracePeriod), so drift need not honor Blocked.
	Bounded bool
	// Cost is the cost of moving its pods, in units of an average pod, as in consolidation.Candidate. Not negative.
	Cost float64
}

// Reason is why a node is disrupted. The values are those of a NodePool's budgets.
type Reason string

// The reasons.
const (
	Empty         Reason = "Empty"         // it runs nothing but what runs on every node
	Drifted       Reason = "Drifted"       // it is no longer as its NodePool or EC2NodeClass says
	Underutilized Reason = "Underutilized" // its pods fit elsewhere, or on something cheaper
	// Expired nodes go whatever the budgets say; these bound how many are replaced first. No budget can name it.
	Expired Reason = "Expired"
)

// Move is a change to make.
type Move struct {
	Reason Reason   // why the nodes are disrupted
	Pool   string   // name of their NodePool
	Nodes  []string // names of the cluster.Nodes to remove, sorted
}

// Stay is a node that would be disrupted if not for Cause.
type Stay struct {
	Node   string    // name of the cluster.Node
	Cause  Cause     // why it stays
	Detail string    // which object, or how much
	Until  time.Time // when to check again; zero: when something changes
}

// Cause is why a node stays: a closed set.
type Cause string

// The causes.
const (
	Expected Cause = "PodsExpected"  // pending pods are planned onto it
	Kept     Cause = "DoNotDisrupt"  // a user asked to keep it
	Never    Cause = "Never"         // the pool's consolidateAfter is Never
	TooSoon  Cause = "TooSoon"       // consolidateAfter has not passed
	Budgeted Cause = "Budget"        // as many nodes as allowed are leaving already
	Blocked  Cause = "Blocked"       // one of its pods may not leave
	Paused   Cause = "Paused"        // a user paused the pool, or all pools
	Invalid  Cause = "Invalid"       // what the pool says of it makes no sense
	Unready  Cause = "NotReady"      // the Node is not ready
	OnlyIdle Cause = "WhenEmpty"     // the pool's policy lets only empty nodes go
	TooYoung Cause = "TooYoung"      // the pool's minimum lifetime has not passed
	Held     Cause = "Held"          // a move of it was aborted a short while ago
	Worth    Cause = "WorthItsPrice" // its pods would not cost less elsewhere, or not enough less

	InWaves    Cause = "DriftInWaves" // others that drifted are replaced first, or none is
	MovedOften Cause = "MovedOften"   // its pods were moved as often as the pool allows
	Looping    Cause = "Loop"         // its pods leave nodes like it again and again
)

// Values of nodes that no cause keeps, for metrics and output; no condition is written for them.
const (
	Undecided      Cause = "Undecided"      // no cause is known
	Leaving        Cause = "Leaving"        // the node is being replaced or terminated
	NotInitialized Cause = "NotInitialized" // the node is not ready for pods yet
)

// Proposal has the nodes to disrupt, and those considered that stay.
type Proposal struct {
	Moves []Move // sorted by pool
	Stays []Stay // sorted by node
	Rooms []Room // before the moves, of the pools with a policy, sorted by pool
}

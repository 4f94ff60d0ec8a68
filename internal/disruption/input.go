// Package disruption selects nodes for voluntary disruption.
//
// In: a snapshot, the policies of the pools, facts about the nodes, and the time.
// Out: moves, each with its reason and nodes; the reasons why the other candidates stay.
// Never: an API object, a deletion, or a node that a pod still needs.
package disruption

import (
	"time"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Input is the input of Propose, Candidates and Grant.
type Input struct {
	Snapshot cluster.Snapshot // the state of the cluster
	// Plan places Snapshot's pending pods. A node on which Plan places a pod is needed.
	Plan packing.Plan

	Policies map[string]Policy // by pool; a pool without a policy keeps all its nodes
	Records  map[string]Record // by node name; a node without a record stays
	Drifted  map[string]string // by node name: the difference from its desired state
	Now      time.Time         // the time of the decision
}

// Record has facts about a node that are not in the snapshot.
type Record struct {
	// LastPodEvent is when a pod last came to the node or left it; if none did, when the node was initialized.
	LastPodEvent time.Time
	// Ready is the Node's condition Ready. A node that is not ready counts against the budgets.
	Ready bool
	// Keep is what protects the node ("the annotation karpenter.sh/do-not-disrupt of the Node"); empty: not protected.
	Keep string
	// Blocked is the pod that blocks the node, with the reason ("pod a/b has no room in PodDisruptionBudget a/c (0
	// allowed; owner Deployment b)"); empty: not blocked.
	Blocked string
	// BlockedUntil is when the node is unblocked without any other change; zero if time alone does not unblock it.
	BlockedUntil time.Time
	// IsBeingRemoved is true if the node is already being removed or replaced, even if the snapshot does not show this.
	// Such a node counts against the budgets.
	IsBeingRemoved bool
	// HeldUntil is when a node whose move was aborted may be disrupted again; HeldCause is why the move was aborted.
	HeldUntil time.Time
	HeldCause string
	// HasDrainDeadline is true if draining has a deadline (terminationGracePeriod): drift need not honor Blocked.
	HasDrainDeadline bool
	// Cost is the cost of moving the node's pods, in units of an average pod, as in consolidation.Candidate; never
	// below 0.
	Cost float64
}

// Reason is why a node is disrupted. The values are those of a NodePool's budgets.
type Reason string

// The reasons.
const (
	Empty         Reason = "Empty"         // the node runs only DaemonSet and static pods
	Drifted       Reason = "Drifted"       // the node differs from its NodePool or EC2NodeClass
	Underutilized Reason = "Underutilized" // its pods fit other nodes, or a cheaper node
	// Expired nodes are removed regardless of budgets. Budgets only limit how many of them are replaced at once. A
	// budget cannot list this reason.
	Expired Reason = "Expired"
)

// Move is a change to make.
type Move struct {
	Reason Reason   // why the nodes are disrupted
	Pool   string   // name of their NodePool
	Nodes  []string // names of the cluster.Nodes to remove, sorted
}

// Stay is a node that is not disrupted, because of Cause.
type Stay struct {
	Node   string    // name of the cluster.Node
	Cause  Cause     // why it stays
	Detail string    // the object or number concerned
	Until  time.Time // when to check again; zero: when something changes
}

// Cause is the reason why a node stays. The set of causes is closed.
type Cause string

// The causes.
const (
	Expected        Cause = "PodsExpected"  // pending pods are planned on the node
	DoNotDisrupt    Cause = "DoNotDisrupt"  // a user protects the node
	Never           Cause = "Never"         // the pool's consolidateAfter is Never
	TooSoon         Cause = "TooSoon"       // consolidateAfter has not passed
	BudgetExhausted Cause = "Budget"        // the disruption budget is used up
	Blocked         Cause = "Blocked"       // one of its pods cannot be evicted
	Paused          Cause = "Paused"        // a user paused the pool, or all pools
	Invalid         Cause = "Invalid"       // the pool has an invalid disruption setting
	Unready         Cause = "NotReady"      // the Node is not ready
	OnlyEmpty       Cause = "WhenEmpty"     // the pool's policy allows only empty nodes
	TooYoung        Cause = "TooYoung"      // the pool's minimum lifetime has not passed
	Held            Cause = "Held"          // a move of the node was aborted recently
	WorthItsPrice   Cause = "WorthItsPrice" // moving its pods would save nothing, or too little

	InWaves    Cause = "DriftInWaves" // other drifted nodes are replaced first, or no drifted node is replaced now
	MovedOften Cause = "MovedOften"   // its pods were moved as often as the pool allows
	Looping    Cause = "Loop"         // its pods repeatedly leave nodes of this shape
)

// Causes that are only for metrics and output. No condition is written for them.
const (
	Undecided      Cause = "Undecided"      // no cause is known
	Leaving        Cause = "Leaving"        // the node is being replaced or terminated
	NotInitialized Cause = "NotInitialized" // the node is not initialized yet
)

// Proposal has the nodes to disrupt, and the candidates that stay.
type Proposal struct {
	Moves []Move // sorted by pool
	Stays []Stay // sorted by node
	Rooms []Room // before the moves, of the pools with a policy, sorted by pool
}

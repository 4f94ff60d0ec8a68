// Package disruption says which nodes to remove by choice.
//
// In: a snapshot, what the pools allow, what is known of the nodes, and the time.
// Out: moves, each with its reason and the nodes it takes; and why the other candidates stay.
// Never: an API object, a deletion, or a node that a pod still needs.
package disruption

import (
	"time"

	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/packing"
)

// Input is all that a proposal rests on.
type Input struct {
	Snapshot cluster.Snapshot
	// Plan says where the pending pods of Snapshot are expected: nodes in its placements are needed.
	Plan packing.Plan

	Policies map[string]Policy // by pool; a pool without one keeps all of its nodes
	Records  map[string]Record // by node name; a node without one stays
	Drifted  map[string]string // by node name: in what it differs from what it should be
	Now      time.Time
}

// Budget bounds how many nodes of a pool may be leaving at once.
type Budget struct {
	Reasons []Reason // it counts for; none: all of them
	Nodes   string   // "3", or "10%" of the pool's nodes, rounded up
	// Scheduled: it is active at certain times only. A proposal that cannot know them takes it as always active, which
	// is never more than its author allows.
	Scheduled bool
}

// Record is what a proposal must know of a node beyond the snapshot.
type Record struct {
	// Quiet is since when no pod has come or gone: the last such event, or when it was initialized.
	Quiet time.Time
	// Ready is the node's own word. A node that is not ready is broken, and uses up the budget.
	Ready bool
	// Keep says who asked to keep the node ("annotation karpenter.sh/do-not-disrupt", or a pod); empty for nobody.
	Keep string
	// Blocked says which of its pods may not leave now, and why; empty if all may.
	Blocked string
	// Eventual: its pods have a bounded time to leave, so what protects them does not keep it from being brought up to date.
	Eventual bool
	// Going: it is being removed or replaced already, though the snapshot may not show it. It uses up the budget.
	Going bool
	// Held is until when it is left alone because a move of it came to nothing, and why.
	Held      time.Time
	HeldCause string
}

// Reason is why a node is removed. The values are those of a NodePool's budgets.
type Reason string

// The reasons.
const (
	Empty         Reason = "Empty"         // it runs nothing but what runs on every node
	Drifted       Reason = "Drifted"       // it is not as its pool and class say any more
	Underutilized Reason = "Underutilized" // its pods cost less elsewhere
	// Expired nodes go whatever the budgets say; these bound how many are replaced first. No budget can name it.
	Expired Reason = "Expired"
)

// Move is a change to make.
type Move struct {
	Reason Reason
	Pool   string
	Nodes  []string // names of the cluster.Nodes to remove, sorted
}

// Stay is a node that would have been removed but for Cause.
type Stay struct {
	Node   string
	Cause  Cause
	Detail string    // who, or how much
	Until  time.Time // when to look again; zero: when something changes
}

// Cause is why a node stays: a closed set.
type Cause string

// The causes.
const (
	Expected Cause = "PodsExpected"  // pending pods are planned onto it
	Kept     Cause = "DoNotDisrupt"  // somebody asked to keep it
	Never    Cause = "Never"         // the pool's consolidateAfter is Never
	TooSoon  Cause = "TooSoon"       // consolidateAfter has not passed
	Budgeted Cause = "Budget"        // as many nodes as allowed are leaving already
	Unready  Cause = "NotReady"      // the Node is not ready
	Paused   Cause = "Paused"        // somebody has paused the pool, or all
	OnlyIdle Cause = "WhenEmpty"     // the pool's policy lets only empty nodes go
	TooYoung Cause = "TooYoung"      // the pool's minimum lifetime has not passed
	Blocked  Cause = "Blocked"       // one of its pods may not leave now
	Held     Cause = "Held"          // a move of it came to nothing a short while ago
	Worth    Cause = "WorthItsPrice" // its pods would not cost less elsewhere, or not enough less
)

// Room is how many nodes of a pool may leave now for a reason.
type Room struct {
	Pool   string
	Reason Reason
	Nodes  int
}

// Proposal is what to do, and what was considered and left.
type Proposal struct {
	Moves []Move // sorted by pool
	Stays []Stay // sorted by node
	Rooms []Room // before the moves, of the pools with a policy, sorted by pool
}

package consolidation

import (
	"time"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Input is the input of Find, Revalidate and Replace.
type Input struct {
	Snapshot cluster.Snapshot // the state of the cluster
	Market   catalog.Market   // the instance types and offerings that can be launched
	// Nodes are the nodes that may be removed, by name of the cluster.Node. All others stay.
	Nodes map[string]Candidate
	// Rules are the requirements of pools for a move, by pool name; a missing pool has the zero value. A move that
	// removes nodes of several pools must meet the rules of each.
	Rules map[string]Rule
	// MaxRemovals is the number of nodes of a pool that its disruption budgets allow to remove now, by pool name. A
	// missing pool has no limit. All moves of a result of Find together remove no more nodes.
	MaxRemovals map[string]int
	// Stale has the names of nodes that have been terminating for a long time. The search does not wait until the pods
	// of these nodes have left.
	Stale map[string]bool
	// OneAtATime: the caller can honor an EvictionOrder, so moves may have one.
	OneAtATime bool
	// LowChurn: no pod has come or gone for a while (see ChurnDetector), so the result of a deeper search will last.
	LowChurn bool
	// HighChurn: pods come and go all the time (see ChurnDetector), so a saving does not last. The search multiplies
	// MinWorth and MinWorthExchange by HighChurnFactor.
	HighChurn bool
	// SpotToSpot: spot instances may be replaced by other spot instances.
	SpotToSpot bool
}

// Candidate is a node that may be removed.
type Candidate struct {
	// Price is the price per hour; 0 if unknown. A node with an unknown price is removed only in moves that save money
	// without its price.
	Price catalog.Price
	// Cost is the cost of moving the node's pods, in units of an average pod. It is not negative, and 0 for a node
	// without pods.
	Cost float64
}

// Rule is a pool's requirements for a move.
type Rule struct {
	MinSaving      catalog.Price // minimum saving per hour
	MinSavingShare float64       // minimum saving, as a share of the price of the removed nodes: 0.1 for ten percent
	// LeastWorth is the minimum worth of a move (Move.Worth). Values below MinWorth or MinWorthExchange (times
	// HighChurnFactor with HighChurn) have no effect. Karpenter's policy Balanced uses 0.5.
	LeastWorth float64
}

// The minimum worth of a move if its pool has no rule.
const (
	MinWorth = 0.05 // moving a tenth of the pods must save at least 0.5 % of the price
	// MinWorthExchange is for the replacement of one node with one node that takes all of its pods. Such a move takes
	// no room of other nodes, and is not undone by a later move.
	MinWorthExchange = 0.04

	// HighChurnFactor multiplies the minimum worth with high churn. A saving does not last then: new pods use the free
	// room that a move has produced, and ended pods leave free room on other nodes (decision 0022).
	HighChurnFactor = 3
)

// Move is a set of nodes to remove together. The moves of one result are independent: the caller may make all or some
// of them, in any order or at once. Pods with spread or affinity rules are the exception: all moves together keep these
// rules, but a part of the moves may break them. So the caller revalidates each move before it makes the move.
type Move struct {
	Nodes []string // names of the cluster.Nodes to remove, sorted
	// PlannedNodes are launched first. The move saves money with any combination of their offerings. In a result they
	// are named "<pool>-1", "<pool>-2" and so on.
	PlannedNodes []packing.PlannedNode
	Placements   []packing.Placement // of pods of Nodes on nodes that stay, sorted by pod
	// EvictionOrder holds the pods, as "namespace/name", in an order in which kube-scheduler finds a node for every pod
	// if each pod is evicted after the previous one is scheduled. Empty: the pods may be evicted together. A move with
	// an EvictionOrder is the only move of its result.
	EvictionOrder []string

	Pods   int           // number of pods to move
	Cost   float64       // of moving the pods, as in Candidate
	Price  catalog.Price // of Nodes
	Saving catalog.Price // per hour, with each planned node at its cheapest offering
	// Worth is (Saving / price of all candidates) / (Cost / cost of moving the pods of all candidates). Rule.LeastWorth
	// is its minimum. Worth is 0 if moving costs nothing; such a move is always worth it.
	Worth float64
}

// PaybackTime returns how long the move takes to save what its new nodes cost while they run together with the old
// nodes. together is the duration of that overlap. The result is 0 if the move launches or saves nothing.
func (m *Move) PaybackTime(together time.Duration) time.Duration {
	if m.Saving <= 0 {
		return 0
	}
	return time.Duration(float64(together) * float64(priceOf(m.PlannedNodes)) / float64(m.Saving))
}

// Result has the moves, and the metrics of the search.
type Result struct {
	Moves []Move // the highest saving for its cost first

	Price  catalog.Price // of all candidates
	Target catalog.Price // of the nodes that would be launched if all candidates were removed
	Saving catalog.Price // of all moves

	Stuck []Stuck // nodes that must be removed but cannot be, sorted: see Replace

	// Declined are moves that would save money, but less than MinWorth or a rule of one of their pools requires. They
	// have no planned nodes and placements, and are sorted by worth, greatest first. A node is in at most one declined
	// move, and a node of a declined move is in none of Moves.
	Declined []Move

	// Waits: Find did not search, because capacity is scarce and existing nodes are about to take pods of terminating
	// nodes.
	Waits bool

	Plans int // number of plans that were made
}

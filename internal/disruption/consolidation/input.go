package consolidation

import (
	"time"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Input is all that the moves rest on.
type Input struct {
	Snapshot cluster.Snapshot
	Market   catalog.Market
	// Nodes are those that may go, by the name of the cluster.Node. All others stay.
	Nodes map[string]Candidate
	// Rules are what pools ask of a move, by the pool's name; the zero value where there is none. A move of nodes of several
	// pools must meet the rules of each.
	Rules map[string]Rule
	// Rooms are how many nodes of a pool may go now, by the pool's name: as many as its budgets leave. Of a pool that is not
	// there all may. A move never takes more, so that there is always one that can be begun.
	Rooms map[string]int
	// Stale are nodes that are leaving and have been for long, by name: nobody waits until their pods have left.
	Stale map[string]bool
	// InTurn: pods of a move that says in which order (Move.Turns) leave one after the other, each when the one before has its place.
	InTurn bool
	// Steady: nobody has come or gone for a while (see Steady), so that what is found by a closer look will last.
	Steady bool
	// Restless: pods come and go all the time (see Steady), so that what is saved does not last: moves must be worth Unrest times as much.
	Restless bool
	// SpotToSpot: spot instances may be replaced by other spot instances.
	SpotToSpot bool
}

// Candidate is a node that may go.
type Candidate struct {
	Price catalog.Price // per hour; 0 where it is not known, and then the node goes only as a part of moves that save without it
	// Cost is what it takes to move its pods, in moves of a usual pod: not negative. A node without pods has 0.
	Cost float64
}

// Rule is what a pool asks of a move.
type Rule struct {
	LeastSaving catalog.Price // per hour
	LeastShare  float64       // of the price of the nodes that go: 0.1 for ten percent
	// LeastWorth is how large the move's share of the price of all candidates must be, beside its share of what moving all
	// their pods would take. Less than Usual or Exchange (or, where it is Restless, Unrest times that) is that; Karpenter's policy Balanced asks for 0.5.
	LeastWorth float64
}

// What a move must be worth where its pool does not say.
const (
	Usual    = 0.05 // moving a tenth of the pods must save more than 0.5 % of the price
	Exchange = 0.04 // of one node for one machine that takes all of its pods: it takes nobody's room, and is not taken back

	Unrest = 3 // times as much, where pods come and go all the time: who comes next takes the room, and who goes leaves some (decision 0022)
)

// Move is nodes to remove together. Moves of one result need nothing of each other: they may be made in any order, at once, or
// only some of them. Pods that are to lie evenly over zones, or near others, are the exception: all moves together keep those
// rules, some of them may not, so each is looked at again when it is made.
type Move struct {
	Nodes []string // names of the cluster.Nodes that go, sorted
	// Machines are bought first, each for less than it saves. They are as in packing.Plan, with other names: "<pool>-1".
	Machines   []packing.Machine
	Placements []packing.Placement // of pods of Nodes onto nodes that stay, sorted by pod
	// Turns are the pods, as "namespace/name", in the order in which kube-scheduler finds places for all of them, if each has its place before
	// the next one leaves. None: they may leave together. Such a move is by itself in a result.
	Turns []string

	Pods   int           // that move
	Cost   float64       // of moving them, as in Candidate
	Price  catalog.Price // of Nodes
	Saving catalog.Price // per hour, with each machine at its cheapest offering
	// Worth is what Rule.LeastWorth is held against: the move's share of the price of all candidates, beside its share of what moving all
	// their pods would take. It is 0 where moving takes nothing, and such a move is always worth it.
	Worth float64
}

// PaysBack is how long it takes until the move has saved what its machines cost while they are paid for beside the nodes that go, for
// so long. It is 0 if nothing is bought, or nothing is saved.
func (m *Move) PaysBack(together time.Duration) time.Duration {
	if m.Saving <= 0 {
		return 0
	}
	return time.Duration(float64(together) * float64(priceOf(m.Machines)) / float64(m.Saving))
}

// Result is what is worth doing, and what it was weighed against.
type Result struct {
	Moves []Move // the best saving for its cost first

	Price  catalog.Price // of all candidates
	Target catalog.Price // of the machines that would be bought if all candidates went
	Saving catalog.Price // of all moves

	Stuck []Stuck // nodes that must go and cannot, sorted: see Replace

	// Declined are moves that would save money, and less than a rule of a pool of theirs asks for, without machines and placements; the
	// greatest worth first. A node is in one of them at most, and then in none of Moves.
	Declined []Move

	// Waits: nothing was looked for, as pods are on the way to nodes that are there, and room is scarce.
	Waits bool

	Trials int // plans that were made
}

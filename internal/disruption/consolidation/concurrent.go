package consolidation

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

const maxConcurrencyRounds = 24 // of bestTogether

type concurrentMoves struct {
	moves    []Move
	incoming []incoming      // by move
	orders   [][]incomingPod // the pods of all moves, in each order in which they may arrive; pods of move i have group i
}

// bestTogether returns the moves that save most when all of them are made at once. In the given order, each move is
// schedulable after the ones before it. But nodes that are launched together become ready together: pods of all moves
// then arrive at the same time, and each pod goes to the emptiest node, whichever move launched that node.
//
// A move with an unschedulable pod fails: it cannot be completed, and its launches are wasted. But its launched nodes
// may hold pods of other moves. So the result of a round, and thus of bestTogether, may contain failing moves, kept
// only for the nodes that they launch. A round saves the sum of its schedulable moves, minus the price of the nodes
// that its failing moves launch. The next round leaves the failing moves out.
func (p *problem) bestTogether(moves []Move) []Move {
	if len(moves) == 1 && len(moves[0].EvictionOrder) > 0 {
		return moves // no pods of other moves arrive, and the order of this move's pods is known
	}
	all := p.newConcurrentMoves(moves)
	left := make([]int, len(moves)) // indices into moves
	for i := range left {
		left[i] = i
	}
	var best []int
	bestSaved := catalog.Price(0)
	for round := 0; round < maxConcurrencyRounds && len(left) > 0; round++ {
		fails := p.failingTogether(all, left)
		saved := catalog.Price(0)
		var result, schedulable []int // result: schedulable, and those failing moves whose launched nodes others may use
		for _, i := range left {
			switch m := &moves[i]; {
			case !fails[i]:
				saved, result, schedulable = saved+m.Saving, append(result, i), append(schedulable, i)
			case len(m.PlannedNodes) > 0: // a failing move without planned nodes adds no room for other moves
				saved, result = saved-priceOf(m.PlannedNodes), append(result, i)
			}
		}
		if len(result) < len(left) {
			left = result // without the other moves, pods may go to other nodes: simulate again
			continue
		}
		if saved > bestSaved {
			bestSaved, best = saved, result
		}
		if len(fails) == 0 {
			break
		}
		left = schedulable
	}
	var out []Move
	for _, i := range best {
		out = append(out, moves[i])
	}
	return out
}

// newConcurrentMoves returns the moves, with everything that stays the same in all rounds of bestTogether.
func (p *problem) newConcurrentMoves(moves []Move) concurrentMoves {
	out := concurrentMoves{moves: moves}
	var all []incomingPod
	for i := range moves {
		// names unique among all moves: the names in the plans collide, because each plan numbers its nodes from one
		added := p.incomingOf(&moves[i], func(k int) string { return fmt.Sprint("~", i, "/", k) })
		for k := range added.pods {
			added.pods[k].group = strconv.Itoa(i)
		}
		all = append(all, added.pods...)
		out.incoming = append(out.incoming, added)
	}
	out.orders = (&simulation{order: drainOrders}).allOrders(all)
	return out
}

// failingTogether returns the moves in left that have an unschedulable pod if all moves in left are made at once. left
// and the result have indices into all.moves.
func (p *problem) failingTogether(all concurrentMoves, left []int) map[int]bool {
	removed, isLeft := map[string]bool{}, map[string]bool{}
	var pods []incomingPod
	smallest := resources.Amounts{CPU: math.MaxInt64, Memory: math.MaxInt64}
	for _, i := range left {
		isLeft[strconv.Itoa(i)] = true
		for _, name := range all.moves[i].Nodes {
			removed[name] = true
		}
		pods = append(pods, all.incoming[i].pods...)
		for _, a := range all.incoming[i].pods {
			smallest.CPU, smallest.Memory = min(smallest.CPU, a.pod.Requests.CPU), min(smallest.Memory, a.pod.Requests.Memory)
		}
	}
	sim := newSimulation(p.kinds, drainOrders, func(i int) nodeRole {
		switch n := &p.in.Snapshot.Nodes[i]; {
		case removed[n.Name]:
			return drained
		case !smallest.Fits(n.Allocatable.Sub(n.Requested)):
			return full
		}
		return receives
	})
	p.reservePending(sim)
	for _, i := range left {
		for _, plannedNode := range all.incoming[i].nodes {
			sim.add(plannedNode.name, plannedNode)
		}
	}
	orders := all.orders
	if sim.orderCount(pods) != len(orders) { // few pods may arrive in any order: see drainOrders
		few := slices.DeleteFunc(slices.Clone(orders[0]), func(a incomingPod) bool { return !isLeft[a.group] })
		orders = sim.allOrders(few)
	}
	lost := sim.unschedulable(orders, func(group string) bool { return isLeft[group] })
	out := map[int]bool{}
	for _, i := range left {
		if _, fails := lost[strconv.Itoa(i)]; fails {
			out[i] = true
		}
	}
	return out
}

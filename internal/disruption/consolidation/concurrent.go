package consolidation

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// maxConcurrencyRounds is the maximum number of rounds of bestTogether.
const maxConcurrencyRounds = 24

// concurrentMoves are moves that are made at the same time.
type concurrentMoves struct {
	moves    []Move
	incoming []incoming      // by move
	orders   [][]incomingPod // the pods of all moves, in each order in which they may arrive; a pod's group is the index of its move
}

// bestTogether returns the moves that save most when all of them are made at once. Each move is schedulable after the
// ones before it. But nodes that are launched together become ready together: pods of all moves then arrive at the same
// time, and each goes to the emptiest node, whichever move launched it. A move with an unschedulable pod cannot be
// completed, and its launches are wasted. But its launched nodes may hold pods of other moves. So each round also
// considers the result with such moves, of which only the price of the launched nodes is counted. The next round leaves
// them out.
func (p *problem) bestTogether(moves []Move) []Move {
	if len(moves) == 1 && len(moves[0].EvictionOrder) > 0 {
		return moves // no other pods arrive, and the order of these is known
	}
	all := p.newConcurrentMoves(moves)
	left := make([]int, len(moves)) // indices into moves
	for i := range left {
		left[i] = i
	}
	var best []int
	most := catalog.Price(0)
	for round := 0; round < maxConcurrencyRounds && len(left) > 0; round++ {
		fails := p.failingTogether(all, left)
		saved := catalog.Price(0)
		var with, without []int
		for _, i := range left {
			switch m := &moves[i]; {
			case !fails[i]:
				saved, with, without = saved+m.Saving, append(with, i), append(without, i)
			case len(m.PlannedNodes) > 0: // without planned nodes it gives no room to other moves
				saved, with = saved-priceOf(m.PlannedNodes), append(with, i)
			}
		}
		if saved > most {
			most, best = saved, with
		}
		if len(fails) == 0 {
			break
		}
		left = without
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
		added := p.incomingOf(&moves[i], func(k int) string { return fmt.Sprint("~", i, "/", k) }) // each plan numbers its nodes from one
		for k := range added.pods {
			added.pods[k].group = strconv.Itoa(i)
		}
		all = append(all, added.pods...)
		out.incoming = append(out.incoming, added)
	}
	out.orders = (&simulation{order: drainOrders}).allOrders(all)
	return out
}

// failingTogether returns the moves, of those in left, with an unschedulable pod when all in left are made at once.
func (p *problem) failingTogether(all concurrentMoves, left []int) map[int]bool {
	removed, isLeft, pods := map[string]bool{}, map[string]bool{}, 0
	least := resources.Amounts{CPU: math.MaxInt64, Memory: math.MaxInt64}
	for _, i := range left {
		isLeft[strconv.Itoa(i)] = true
		for _, name := range all.moves[i].Nodes {
			removed[name] = true
		}
		pods += len(all.incoming[i].pods)
		for _, a := range all.incoming[i].pods {
			least.CPU, least.Memory = min(least.CPU, a.pod.Requests.CPU), min(least.Memory, a.pod.Requests.Memory)
		}
	}
	sim := newSimulation(p.in.Snapshot.Nodes, drainOrders, func(i int) bool {
		n := &p.in.Snapshot.Nodes[i]
		return removed[n.Name] || !least.Fits(n.Allocatable.Sub(n.Requested)) // a node without room for the smallest pod has no effect
	})
	p.reservePending(sim)
	for _, i := range left {
		for _, plannedNode := range all.incoming[i].nodes {
			sim.add(plannedNode.name, plannedNode)
		}
	}
	orders := all.orders
	if sim.orders(pods) < len(orders) { // few pods may come in any order
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

package consolidation

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// mostRounds is how often the moves that are left are dealt out anew.
const maxConcurrencyRounds = 24

// joint is moves that are made at the same time.
type concurrentMoves struct {
	moves    []Move
	incoming []incoming      // by move
	orders   [][]incomingPod // the pods of all, each by the number of its move, in each of the orders in which they may come
}

// jointly returns those of the moves that save most when all of them are made at once. Each has its place beside those that were found
// before it. But machines that are bought together are ready together, and then pods of all nodes come at the same time, each to the
// emptiest machine, whoever that was bought for. A move of which a pod finds no room then does not come to its end, and its machines
// were bought for nothing: what the others save must be worth that. They are the room that makes the others fit, too, so that it is
// tried with and without them.
func (p *problem) bestTogether(moves []Move) []Move {
	if len(moves) == 1 && len(moves[0].EvictionOrder) > 0 {
		return moves // nobody else comes, and these in an order that is known
	}
	j := p.newConcurrentMoves(moves)
	left := make([]int, len(moves)) // by number
	for i := range left {
		left[i] = i
	}
	var best []int
	most := catalog.Price(0)
	for round := 0; round < maxConcurrencyRounds && len(left) > 0; round++ {
		fails := p.failingTogether(j, left)
		saved := catalog.Price(0)
		var with, without []int
		for _, i := range left {
			switch m := &moves[i]; {
			case !fails[i]:
				saved, with, without = saved+m.Saving, append(with, i), append(without, i)
			case len(m.Machines) > 0: // what buys nothing is nobody's room
				saved, with = saved-priceOf(m.Machines), append(with, i)
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

// joint has all that does not change from round to round.
func (p *problem) newConcurrentMoves(moves []Move) concurrentMoves {
	out := concurrentMoves{moves: moves}
	var all []incomingPod
	for i := range moves {
		theirs := p.incomingOf(&moves[i], func(k int) string { return fmt.Sprint("~", i, "/", k) }) // each move's plan has counted from one
		for k := range theirs.pods {
			theirs.pods[k].group = strconv.Itoa(i)
		}
		all = append(all, theirs.pods...)
		out.incoming = append(out.incoming, theirs)
	}
	out.orders = (&simulation{order: drainOrder}).allOrders(all)
	return out
}

// failing are those of the moves that are left of which a pod finds no place when all of them are made at once.
func (p *problem) failingTogether(j concurrentMoves, left []int) map[int]bool {
	goes, takesPart, pods := map[string]bool{}, map[string]bool{}, 0
	least := resources.Amounts{CPU: math.MaxInt64, Memory: math.MaxInt64}
	for _, i := range left {
		takesPart[strconv.Itoa(i)] = true
		for _, name := range j.moves[i].Nodes {
			goes[name] = true
		}
		pods += len(j.incoming[i].pods)
		for _, a := range j.incoming[i].pods {
			least.CPU, least.Memory = min(least.CPU, a.pod.Requests.CPU), min(least.Memory, a.pod.Requests.Memory)
		}
	}
	b := newSimulation(p.in.Snapshot.Nodes, drainOrder, func(i int) bool {
		n := &p.in.Snapshot.Nodes[i]
		return goes[n.Name] || !least.Fits(n.Allocatable.Sub(n.Requested)) // where nobody has room nobody needs to look
	})
	p.reservePending(b)
	for _, i := range left {
		for _, machine := range j.incoming[i].nodes {
			b.add(machine.name, machine)
		}
	}
	lines := j.orders
	if b.orders(pods) < len(lines) { // so few are left that they may come in any order
		few := slices.DeleteFunc(slices.Clone(lines[0]), func(a incomingPod) bool { return !takesPart[a.group] })
		lines = b.allOrders(few)
	}
	lost := b.unschedulable(lines, func(group string) bool { return takesPart[group] })
	out := map[int]bool{}
	for _, i := range left {
		if _, fails := lost[strconv.Itoa(i)]; fails {
			out[i] = true
		}
	}
	return out
}

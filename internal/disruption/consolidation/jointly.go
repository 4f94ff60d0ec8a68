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
const mostRounds = 24

// joint is moves that are made at the same time.
type joint struct {
	moves []Move
	comes []arrivals  // by move
	lines [][]arrival // the pods of all, each by the number of its move, in each of the orders in which they may come
}

// jointly returns those of the moves that save most when all of them are made at once. Each has its place beside those that were found
// before it. But machines that are bought together are ready together, and then pods of all nodes come at the same time, each to the
// emptiest machine, whoever that was bought for. A move of which a pod finds no room then does not come to its end, and its machines
// were bought for nothing: what the others save must be worth that. They are the room that makes the others fit, too, so that it is
// tried with and without them.
func (p *problem) jointly(moves []Move) []Move {
	if len(moves) == 1 && len(moves[0].Turns) > 0 {
		return moves // nobody else comes, and these in an order that is known
	}
	j := p.joint(moves)
	left := make([]int, len(moves)) // by number
	for i := range left {
		left[i] = i
	}
	var best []int
	most := catalog.Price(0)
	for round := 0; round < mostRounds && len(left) > 0; round++ {
		fails := p.failing(j, left)
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
func (p *problem) joint(moves []Move) joint {
	out := joint{moves: moves}
	var all []arrival
	for i := range moves {
		theirs := p.arrivals(&moves[i], func(k int) string { return fmt.Sprint("~", i, "/", k) }) // each move's plan has counted from one
		for k := range theirs.pods {
			theirs.pods[k].group = strconv.Itoa(i)
		}
		all = append(all, theirs.pods...)
		out.comes = append(out.comes, theirs)
	}
	out.lines = (&board{arriving: usual}).lines(all)
	return out
}

// failing are those of the moves that are left of which a pod finds no place when all of them are made at once.
func (p *problem) failing(j joint, left []int) map[int]bool {
	goes, takesPart, pods := map[string]bool{}, map[string]bool{}, 0
	least := resources.Amounts{CPU: math.MaxInt64, Memory: math.MaxInt64}
	for _, i := range left {
		takesPart[strconv.Itoa(i)] = true
		for _, name := range j.moves[i].Nodes {
			goes[name] = true
		}
		pods += len(j.comes[i].pods)
		for _, a := range j.comes[i].pods {
			least.CPU, least.Memory = min(least.CPU, a.pod.Requests.CPU), min(least.Memory, a.pod.Requests.Memory)
		}
	}
	b := newBoard(p.in.Snapshot.Nodes, usual, func(i int) bool {
		n := &p.in.Snapshot.Nodes[i]
		return goes[n.Name] || !least.Fits(n.Allocatable.Sub(n.Requested)) // where nobody has room nobody needs to look
	})
	p.seatWaiting(b)
	for _, i := range left {
		for _, machine := range j.comes[i].machines {
			b.add(machine.name, machine)
		}
	}
	lines := j.lines
	if b.orders(pods) < len(lines) { // so few are left that they may come in any order
		few := slices.DeleteFunc(slices.Clone(lines[0]), func(a arrival) bool { return !takesPart[a.group] })
		lines = b.lines(few)
	}
	lost := b.lost(lines, func(group string) bool { return takesPart[group] })
	out := map[int]bool{}
	for _, i := range left {
		if _, fails := lost[strconv.Itoa(i)]; fails {
			out[i] = true
		}
	}
	return out
}

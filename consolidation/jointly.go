package consolidation

import (
	"fmt"
	"math"
	"strconv"

	"github.com/joiner-sh/joiner/capacity"
	"github.com/joiner-sh/joiner/catalog"
)

// mostRounds is how often the moves that are left are dealt out anew.
const mostRounds = 24

// jointly returns those of the moves that save most when all of them are made at once. Each has its place beside those that were found
// before it. But machines that are bought together are ready together, and then pods of all nodes come at the same time, each to the
// emptiest machine, whoever that was bought for. A move of which a pod finds no room then does not come to its end, and its machines
// were bought for nothing: what the others save must be worth that. They are the room that makes the others fit, too, so that it is
// tried with and without them.
func (s *scene) jointly(moves []Move) []Move {
	var best []Move
	most := catalog.Price(0)
	for round := 0; round < mostRounds && len(moves) > 0; round++ {
		fails := s.failing(moves)
		saved := catalog.Price(0)
		var with, without []Move
		for i, m := range moves {
			switch {
			case !fails[i]:
				saved, with, without = saved+m.Saving, append(with, m), append(without, m)
			case len(m.Machines) > 0: // what buys nothing is nobody's room
				saved, with = saved-priceOf(m.Machines), append(with, m)
			}
		}
		if saved > most {
			most, best = saved, with
		}
		if len(fails) == 0 {
			break
		}
		moves = without
	}
	return best
}

// failing are the moves of which a pod finds no place when all of them are made at once, by their numbers.
func (s *scene) failing(moves []Move) map[int]bool {
	goes, least := map[string]bool{}, capacity.Amounts{CPU: math.MaxInt64, Memory: math.MaxInt64}
	for i := range moves {
		for _, name := range moves[i].Nodes {
			goes[name] = true
			for _, p := range s.candidates[s.byNode[name]].node.Pods {
				least.CPU, least.Memory = min(least.CPU, p.Requests.CPU), min(least.Memory, p.Requests.Memory)
			}
		}
	}
	b := newBoard(s.in.Snapshot.Nodes, usual, func(i int) bool {
		n := &s.in.Snapshot.Nodes[i]
		return goes[n.Name] || !least.Fits(n.Allocatable.Sub(n.Requested)) // where nobody has room nobody needs to look
	})
	s.seatWaiting(b)
	var all []arrival
	for i := range moves {
		theirs := s.arrivals(b, &moves[i], func(k int) string { return fmt.Sprint("~", i, "/", k) })
		for k := range theirs {
			theirs[k].group = strconv.Itoa(i)
		}
		all = append(all, theirs...)
	}
	left := b.lost(all)
	out := map[int]bool{}
	for i := range moves {
		if _, fails := left[strconv.Itoa(i)]; fails {
			out[i] = true
		}
	}
	return out
}

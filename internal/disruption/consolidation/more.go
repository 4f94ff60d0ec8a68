package consolidation

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

// How far more looks.
const (
	firstGroup = 8      // nodes that are tried together at first
	largeGroup = 64     // and at most
	mostTrials = 96     // plans that are made for a bar until sift ends
	fewTrials  = 32     // and where there are many nodes, as each plan takes longer then
	trialNodes = 64_000 // nodes, counted once for each plan, between the two
)

// further is what goes beyond the best trial: nodes that are tried on top of it, in small groups.
type further struct {
	s     *scene
	p     *problem
	relay *relay
	base  trial // what it goes beyond
	board *board
	gone  []bool          // by candidate
	taken map[string]int  // by pool: nodes that go
	used  map[string]bool // nodes that stay because pods come to them
	moves []Move
}

// more returns moves that are worth making beside those of the best trial, of nodes that were not in it.
func (s *scene) more(best trial, order []int) []Move {
	f := s.furtherTo(best, s.p.within(order))
	if f == nil {
		return nil
	}
	if !s.thrifty {
		f.spill(order)
	}
	if s.isLow() {
		f.sift(order)
	}
	f.fill(order)
	f.confirm(best.moves)
	return f.together()
}

// mostAlone is how many nodes filled looks at one by one, where no more may go.
const mostAlone = 8

// filled returns moves where there are no others, of nodes whose pods all fit onto one cheaper machine. What was found before, and then was not
// made, had kept those nodes from going to which its pods were to come. Where few may go, and would share machines with more, they are planned for
// one by one.
func (s *scene) filled(order []int) []Move {
	s.arriving = worst
	may := s.p.within(order)
	f := s.furtherTo(trial{}, may)
	f.fill(order)
	for i := 0; i < len(order) && i < mostAlone && len(may) <= mostAlone && len(f.moves) == 0; i++ {
		if t := f.tie(order[i : i+1]); t != nil {
			f.pick(*t)
		}
	}
	f.confirm(nil)
	return f.together()
}

// confirm keeps the moves of which kube-scheduler finds all places when those who may go and do not are there to take pods, too: until
// now they were out of the way. A move that only seems to come to its end would be begun and undone for ever.
func (f *further) confirm(before []Move) {
	b := newBoard(f.p.in.Snapshot.Nodes, f.s.arriving, func(i int) bool {
		c, ok := f.p.byNode[f.p.in.Snapshot.Nodes[i].Name]
		return ok && f.gone[c]
	})
	f.p.seatWaiting(b)
	for i := range before {
		f.p.seat(b, &before[i])
	}
	f.moves = slices.DeleteFunc(f.moves, func(m Move) bool { return !f.p.seat(b, &m) })
}

// sift tries small groups of nodes, in their order. Groups that come to nothing are made smaller, down to one node: what many nodes
// together buy is packed so tightly that kube-scheduler may not manage.
func (f *further) sift(order []int) {
	size := firstGroup
	for len(order) > 0 && f.s.made-f.s.begun < f.s.trials() {
		var group []int
		group, order = f.next(order, size)
		if len(group) == 0 {
			break
		}
		switch went := f.try(group, ease{}); {
		case went == len(group):
			size = min(2*size, largeGroup)
		case went == 0 && len(group) > 1:
			size = max(len(group)/4, 1)
			order = append(group, order...)
		}
	}
}

// trials is how many plans are made for a bar until sift ends.
func (s *scene) trials() int { return s.p.perNode(trialNodes, fewTrials, mostTrials) }

// perNode is how many plans are made where that many nodes may be looked at in all, between few and most.
func (p *problem) perNode(nodes, few, most int) int {
	return min(max(nodes/len(p.candidates), few), most)
}

// together returns the moves, or as many of the first as are right beside those of the best trial, and each other. Each group was, for
// what came before it; but machines that may come up in any zone can be where others count on nobody.
func (f *further) together() []Move { return f.s.proven(f.base, f.moves) }

// proven returns the moves, or as many of the first as the checker accepts when all of them are made beside the trial.
func (s *scene) proven(base trial, moves []Move) []Move {
	for ; len(moves) > 0; moves = moves[:len(moves)/2] {
		gone, plan := slices.Clone(base.gone), base.plan
		plan.Machines, plan.Placements = slices.Clone(plan.Machines), slices.Clone(plan.Placements)
		for i := range moves {
			for _, name := range moves[i].Nodes {
				gone[s.p.byNode[name]] = true
			}
			plan.Placements = append(plan.Placements, moves[i].Placements...)
			plan.Machines = append(plan.Machines, moves[i].Machines...)
			plan.Price += priceOf(moves[i].Machines)
		}
		for i := range plan.Machines { // each group's plan has counted from one
			plan.Machines[i].Name = fmt.Sprint("~", i)
		}
		if len(verify.Check(s.without(gone), s.p.in.Market, plan)) == 0 {
			return moves
		}
	}
	return nil
}

// furtherTo starts where the best trial ends. It is nil if kube-scheduler would need the nodes that may go for that.
func (s *scene) furtherTo(best trial, may []int) *further {
	f := &further{s: s, p: s.p, relay: newRelay(s, may), taken: map[string]int{}, used: map[string]bool{}}
	base := trial{gone: make([]bool, len(s.p.candidates)), plan: s.p.alone}
	for i := range best.moves {
		for _, name := range best.moves[i].Nodes {
			c := s.p.byNode[name]
			base.gone[c] = true
			f.taken[s.p.candidates[c].node.Pool]++
		}
	}
	closed := make([]bool, len(s.p.candidates))
	for _, c := range may {
		closed[c] = true
	}
	f.board = newBoard(s.p.in.Snapshot.Nodes, s.arriving, func(i int) bool {
		c, ok := s.p.byNode[s.p.in.Snapshot.Nodes[i].Name]
		return ok && (closed[c] || base.gone[c])
	})
	s.p.seatWaiting(f.board)
	for i := range best.moves {
		if !s.p.seat(f.board, &best.moves[i]) {
			return nil
		}
	}
	if len(best.moves) > 0 {
		base.plan = s.p.rest(best, base.gone)
	}
	for _, p := range append(base.plan.Placements, s.p.alone.Placements...) {
		f.used[p.Node] = true
	}
	f.base, f.gone = base, slices.Clone(base.gone)
	f.relay.begin(base)
	return f
}

// next takes so many nodes from the order as may still go, and returns what is left of it.
func (f *further) next(order []int, size int) (group, rest []int) {
	room := map[string]int{}
	for len(order) > 0 && len(group) < size {
		c := order[0]
		pool := f.p.candidates[c].node.Pool
		order = order[1:]
		if f.stays(c) || room[pool] >= f.room(pool) {
			continue
		}
		room[pool]++
		group = append(group, c)
	}
	return group, order
}

// try lets the group go as far as it is worth it and its pods find their places, and returns how many nodes went. What is left of
// a plan when some of its nodes stay must still be right by itself, as pods stay with them: if it is not, nobody goes.
func (f *further) try(group []int, e ease) int {
	t := trial{gone: f.p.first(group, len(group))}
	snapshot := f.relay.with(t.gone)
	e.loosen(&snapshot)
	t.plan = f.s.solve(snapshot)
	e.tighten(&t.plan, f.relay.known)
	stuck := f.p.stuck(t.plan)
	was := f.board.save()
	for _, c := range group {
		f.board.shut(f.p.candidates[c].node.Name, true)
	}
	kept, stay := make([]bool, len(f.p.candidates)), slices.Clone(group)
	for _, m := range f.p.fallApart(t) {
		if _, ok := f.s.weigh(&m, stuck); !ok || !f.p.seat(f.board, &m) {
			continue
		}
		t.moves = append(t.moves, m)
		for _, name := range m.Nodes {
			kept[f.p.byNode[name]] = true
		}
	}
	stay = slices.DeleteFunc(stay, func(c int) bool { return kept[c] })
	rest := f.p.rest(t, kept)
	if len(t.moves) == 0 || len(stay) > 0 && len(verify.Check(f.relay.with(kept), f.p.in.Market, rest)) > 0 {
		f.board = was
		return 0
	}
	for _, c := range stay {
		f.board.shut(f.p.candidates[c].node.Name, false)
	}
	f.relay.apply(trial{gone: kept, plan: rest})
	for i := range t.moves {
		f.keep(&t.moves[i])
	}
	return len(group) - len(stay)
}

// clone is as f is now, to go on with if what is tried next comes to nothing.
func (f *further) clone() further {
	out, r := *f, *f.relay
	r.now.Nodes, r.now.Pools, r.nodes = slices.Clone(r.now.Nodes), slices.Clone(r.now.Pools), maps.Clone(r.nodes)
	out.relay, out.board, out.moves = &r, f.board.save(), slices.Clone(f.moves)
	out.gone, out.taken, out.used = slices.Clone(f.gone), maps.Clone(f.taken), maps.Clone(f.used)
	return out
}

// keep adds the move to those that are made.
func (f *further) keep(m *Move) {
	f.moves = append(f.moves, *m)
	for _, name := range m.Nodes {
		c := f.p.byNode[name]
		f.gone[c] = true
		f.taken[f.p.candidates[c].node.Pool]++
	}
	for _, p := range m.Placements {
		f.used[p.Node] = true
	}
}

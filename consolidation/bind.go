package consolidation

import (
	"slices"

	"github.com/joiner-sh/joiner/capacity"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/packing"
)

// Unbound returns the pods of the nodes that would be left without a place if they were evicted now and kube-scheduler put them where
// it does by default, in the order in which they leave together, as "namespace/name": one for each node at most, in the order of the
// nodes. Pods that have rules about others go where the plan says, which is one for the snapshot. Nodes that are leaving, or not fit for pods yet, take none.
func Unbound(s cluster.Snapshot, plan packing.Plan, nodes []string) []string {
	planned := make(map[string]string, len(plan.Placements))
	for _, p := range plan.Placements {
		planned[p.Pod] = p.Node
	}
	goes := func(i int) bool { return slices.Contains(nodes, s.Nodes[i].Name) }
	b := newBoard(s.Nodes, usual, goes)
	byName := map[string]*cluster.Node{}
	for i := range s.Nodes {
		byName[s.Nodes[i].Name] = &s.Nodes[i]
	}
	b.forget(s.Nodes, nodes, byName)
	var all []arrival
	of := map[*cluster.Pod]string{}
	for _, name := range nodes {
		n := byName[name]
		if n == nil {
			continue
		}
		for i := range n.Pods {
			of[&n.Pods[i]] = name
			all = append(all, arrival{pod: &n.Pods[i], from: name, plan: planned[n.Pods[i].ID()]})
		}
	}
	left := map[string]string{} // by node: a pod without a place
	for n := range b.orders(len(all)) {
		b.line(all, n)
		all = b.without(all, of, left)
	}
	var out []string
	for _, name := range nodes {
		if id, ok := left[name]; ok {
			out = append(out, id)
			delete(left, name)
		}
	}
	return out
}

// without puts the pods on the board in their order, and takes them off again. It notes the nodes of which one finds no place, and returns
// the pods of the others, for whom there is the more room.
func (b *board) without(all []arrival, of map[*cluster.Pod]string, left map[string]string) []arrival {
	var there []arrival
	for _, a := range all {
		name := of[a.pod]
		if _, is := left[name]; is {
			continue
		}
		one := []arrival{a}
		if b.seatAll(one, func(*seat) bool { return true }) == nil {
			there = append(there, one[0])
			continue
		}
		left[name] = a.pod.ID()
		there = slices.DeleteFunc(there, func(t arrival) bool {
			if of[t.pod] != name {
				return false
			}
			b.leave([]arrival{t})
			return true
		})
	}
	b.leave(there)
	return there
}

// forget gives room back that is kept on other nodes for pods of the nodes that go: it is theirs when they come.
func (b *board) forget(all []cluster.Node, nodes []string, byName map[string]*cluster.Node) {
	goes := map[string]bool{}
	for _, name := range nodes {
		if n := byName[name]; n != nil {
			for i := range n.Pods {
				goes[n.Pods[i].ID()] = true
			}
		}
	}
	for i := range all {
		at, ok := b.byName[all[i].Name]
		if !ok {
			continue
		}
		for k := range all[i].Pods {
			if p := &all[i].Pods[k]; goes[p.ID()] {
				b.seats[at].free = b.seats[at].free.Add(p.Requests)
			}
		}
	}
}

// bind keeps those moves of the trial, the best first, after which kube-scheduler finds a place for every pod that moves.
func (s *scene) bind(t *trial) {
	b := newBoard(s.in.Snapshot.Nodes, s.arriving, func(i int) bool {
		c, ok := s.byNode[s.in.Snapshot.Nodes[i].Name]
		return ok && t.gone[c]
	})
	s.seatWaiting(b)
	slices.SortFunc(t.moves, byWorth)
	t.score = 0
	t.moves = slices.DeleteFunc(t.moves, func(m Move) bool {
		if !s.seat(b, &m) {
			t.whole = false
			return true
		}
		t.score += s.share(m.Saving) - s.bar*s.effort(m.Cost)
		return false
	})
}

// seatWaiting takes the room that pods will take which need a place already.
func (s *scene) seatWaiting(b *board) {
	waiting := make(map[string]*cluster.Pod, len(s.in.Snapshot.Pods))
	for i := range s.in.Snapshot.Pods {
		waiting[s.in.Snapshot.Pods[i].ID()] = &s.in.Snapshot.Pods[i]
	}
	for _, p := range s.alone.Placements {
		if at, ok := b.byName[p.Node]; ok && waiting[p.Pod] != nil {
			b.seats[at].free = b.seats[at].free.Sub(waiting[p.Pod].Requests)
		}
	}
}

// seat puts the pods of the move on the board, with the machines that it buys. If one finds no place the board is as it was.
func (s *scene) seat(b *board, m *Move) bool {
	planned := make(map[string]string, m.Pods)
	for _, p := range m.Placements {
		planned[p.Pod] = p.Node
	}
	before := len(b.seats)
	var arrivals []arrival
	pods := map[string]*cluster.Pod{}
	for _, name := range m.Nodes {
		n := s.candidates[s.byNode[name]].node
		for i := range n.Pods {
			pods[n.Pods[i].ID()] = &n.Pods[i]
		}
	}
	for i := range m.Machines {
		machine := &m.Machines[i]
		var theirs capacity.Amounts
		for _, id := range machine.Pods {
			planned[id] = machine.Name
			if p := pods[id]; p != nil {
				theirs = theirs.Add(p.Requests)
			}
		}
		b.machine(machine, s.in.Market, theirs)
	}
	for _, name := range m.Nodes {
		n := s.candidates[s.byNode[name]].node
		for i := range n.Pods {
			arrivals = append(arrivals, arrival{pod: &n.Pods[i], from: name, plan: planned[n.Pods[i].ID()]})
		}
	}
	if b.take(arrivals) == nil {
		return true
	}
	for i := range m.Machines {
		delete(b.byName, m.Machines[i].Name)
	}
	b.seats = b.seats[:before]
	clear(b.open)
	return false
}

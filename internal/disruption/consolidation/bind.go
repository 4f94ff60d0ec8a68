package consolidation

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Unbound returns the pods of the nodes that would be left without a place if they were evicted now and kube-scheduler put them where
// it does by default, in the order in which they leave together, as "namespace/name": one for each node at most, in the order of the
// nodes. Pods that are in turns leave in that order, after all others. Pods that have rules about others go where the plan says, which is one for the
// snapshot. Nodes that are leaving, or not fit for pods yet, take none.
func Unschedulable(s cluster.Snapshot, plan packing.Plan, nodes, turns []string) []string {
	planned := make(map[string]string, len(plan.Placements))
	for _, p := range plan.Placements {
		planned[p.Pod] = p.Node
	}
	goes := func(i int) bool { return slices.Contains(nodes, s.Nodes[i].Name) }
	b := newSimulation(s.Nodes, drainOrder, goes)
	byName := map[string]*cluster.Node{}
	for i := range s.Nodes {
		byName[s.Nodes[i].Name] = &s.Nodes[i]
	}
	b.releaseReserved(s.Nodes, nodes, byName)
	var all []incomingPod
	for _, name := range nodes {
		n := byName[name]
		if n == nil {
			continue
		}
		for i := range n.Pods {
			all = append(all, incomingPod{pod: &n.Pods[i], from: name, group: name, planned: planned[n.Pods[i].ID()]})
		}
	}
	lines, at := b.allOrders(all), positions(turns)
	for _, line := range lines {
		slices.SortStableFunc(line, func(x, y incomingPod) int { return at[x.pod.ID()] - at[y.pod.ID()] })
	}
	left := b.unschedulable(lines, func(string) bool { return true })
	var out []string
	for _, name := range nodes {
		if id, ok := left[name]; ok {
			out = append(out, id)
			delete(left, name)
		}
	}
	return out
}

// lost says of which groups one pod finds no place, in whichever of the orders in which they may come, and which one; lines are the pods in
// these orders. The others of its group do not come then, so that there is the more room for all other groups; nor do those of groups that do
// not take part. The board is as it was afterwards.
func (b *simulation) unschedulable(lines [][]incomingPod, takesPart func(group string) bool) map[string]string {
	out := map[string]string{}
	for _, all := range lines {
		var there []incomingPod
		for i := range all {
			a := &all[i]
			if _, is := out[a.group]; is || !takesPart(a.group) {
				continue
			}
			if b.bind(a, nil) {
				there = append(there, *a)
				continue
			}
			out[a.group] = a.pod.ID()
			there = slices.DeleteFunc(there, func(t incomingPod) bool {
				if t.group != a.group {
					return false
				}
				b.unbind([]incomingPod{t})
				return true
			})
		}
		b.unbind(there)
	}
	return out
}

// forget gives room back that is kept on other nodes for pods of the nodes that go: it is theirs when they come.
func (b *simulation) releaseReserved(all []cluster.Node, nodes []string, byName map[string]*cluster.Node) {
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
				b.setFree(at, b.nodes[at].free.Add(p.Requests))
			}
		}
	}
}

// bind keeps those moves of the trial, the best first, after which kube-scheduler finds a place for every pod that moves.
func (s *search) keepSchedulable(t *attempt) {
	b := newSimulation(s.p.in.Snapshot.Nodes, s.order, func(i int) bool {
		c, ok := s.p.byNode[s.p.in.Snapshot.Nodes[i].Name]
		return ok && t.removed[c]
	})
	s.p.reservePending(b)
	slices.SortFunc(t.moves, byWorth)
	t.score = 0
	t.moves = slices.DeleteFunc(t.moves, func(m Move) bool {
		if !s.p.schedule(b, &m) {
			t.complete = false
			return true
		}
		t.score += s.p.priceShare(m.Saving) - s.threshold*s.p.costShare(m.Cost)
		return false
	})
}

// seatWaiting takes the room that pods will take which need a place already.
func (p *problem) reservePending(b *simulation) {
	waiting := make(map[string]*cluster.Pod, len(p.in.Snapshot.Pods))
	for i := range p.in.Snapshot.Pods {
		waiting[p.in.Snapshot.Pods[i].ID()] = &p.in.Snapshot.Pods[i]
	}
	for _, placed := range p.pendingPlan.Placements {
		if at, ok := b.byName[placed.Node]; ok && waiting[placed.Pod] != nil {
			b.setFree(at, b.nodes[at].free.Sub(waiting[placed.Pod].Requests))
		}
	}
}

// seat puts the pods of the move on the board, with the machines that it buys. If one finds no place the board is as it was. On a board to which pods
// come in turn it says in which, unless the move does.
func (p *problem) schedule(b *simulation, m *Move) bool {
	before, all := len(b.nodes), p.incomingOf(m, func(k int) string { return m.Machines[k].Name })
	for _, machine := range all.nodes {
		b.add(machine.name, machine)
	}
	if len(m.EvictionOrder) > 0 {
		all.sort(m.EvictionOrder)
		if b.bindAll(all.pods, nil) == nil {
			return true
		}
	} else if b.schedule(all.pods) == nil {
		if b.order == oneAtATime {
			m.EvictionOrder = all.ids()
		}
		return true
	}
	b.truncate(before)
	return false
}

// arrivals are what a move brings to a board.
type incoming struct {
	pods  []incomingPod
	nodes []simNode
}

// arrivals returns the pods of the move, and the machines that it buys, by the names that they are given.
func (p *problem) incomingOf(m *Move, name func(machine int) string) incoming {
	planned := make(map[string]string, m.Pods)
	for _, placed := range m.Placements {
		planned[placed.Pod] = placed.Node
	}
	out := incoming{pods: make([]incomingPod, 0, m.Pods)}
	at := make(map[string]int, m.Pods)
	for _, node := range m.Nodes {
		n := p.candidates[p.byNode[node]].node
		for i := range n.Pods {
			at[n.Pods[i].ID()] = len(out.pods)
			out.pods = append(out.pods, incomingPod{pod: &n.Pods[i], from: node, planned: planned[n.Pods[i].ID()]})
		}
	}
	for k := range m.Machines {
		machine := m.Machines[k]
		machine.Name = name(k)
		var theirs resources.Amounts
		for _, id := range machine.Pods {
			if i, ok := at[id]; ok {
				out.pods[i].planned = machine.Name
				theirs = theirs.Add(out.pods[i].pod.Requests)
			}
		}
		if one, ok := simNodeOf(&machine, p.in.Market, theirs); ok {
			out.nodes = append(out.nodes, one)
		}
	}
	return out
}

// sort puts the pods into that order.
func (a *incoming) sort(turns []string) {
	at := positions(turns)
	slices.SortFunc(a.pods, func(x, y incomingPod) int { return at[x.pod.ID()] - at[y.pod.ID()] })
}

// ids are the pods in the order in which they are.
func (a *incoming) ids() []string {
	out := make([]string, len(a.pods))
	for i := range a.pods {
		out[i] = a.pods[i].pod.ID()
	}
	return out
}

// numbered are the turns' numbers, from one.
func positions(turns []string) map[string]int {
	out := make(map[string]int, len(turns))
	for i, id := range turns {
		out[id] = i + 1
	}
	return out
}

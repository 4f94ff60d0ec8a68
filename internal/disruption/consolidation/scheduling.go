package consolidation

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// schedule schedules all pods, in each order in which they may arrive. If a pod has no node in some order, schedule
// returns the first such pod and leaves the simulation unchanged. Otherwise it returns nil, and the pods stay scheduled
// as in the last order.
func (sim *simulation) schedule(arrivals []incomingPod) *cluster.Pod {
	return sim.scheduleIf(arrivals, func(*simNode) bool { return true })
}

// scheduleIf does the same as schedule, but fails if allowed returns false for a chosen node.
func (sim *simulation) scheduleIf(arrivals []incomingPod, allowed func(*simNode) bool) *cluster.Pod {
	if sim.order == oneAtATime {
		return sim.scheduleOneAtATime(arrivals, allowed)
	}
	count := sim.orderCount(arrivals)
	for n := range count {
		if n > 0 {
			sim.unbind(arrivals)
		}
		sort(arrivals, n, count)
		if p := sim.bindAll(arrivals, allowed); p != nil {
			return p
		}
	}
	return nil
}

// scheduleOneAtATime tries up to maxSequences sequences of the pods, until each pod has a node. It leaves arrivals in
// the successful sequence and returns nil. If no sequence succeeds, it returns a pod without a node and leaves the
// simulation unchanged.
func (sim *simulation) scheduleOneAtATime(arrivals []incomingPod, allowed func(*simNode) bool) (lost *cluster.Pod) {
	for n := range maxSequences {
		for i := range arrivals {
			a := &arrivals[i]
			a.urgency = a.pod.Requests.Bulk() * (1 + sequenceJitter*pseudoRandom(a.pod.ID(), n))
		}
		slices.SortFunc(arrivals, compareIncoming)
		if lost = sim.bindAll(arrivals, allowed); lost == nil {
			break
		}
	}
	return lost
}

// bindAll schedules the pods one after the other. If a pod has no node, it returns that pod and leaves the simulation
// unchanged; otherwise it returns nil.
func (sim *simulation) bindAll(arrivals []incomingPod, allowed func(*simNode) bool) *cluster.Pod {
	for i := range arrivals {
		if !sim.bind(&arrivals[i], allowed) {
			sim.unbind(arrivals[:i])
			return arrivals[i].pod
		}
	}
	return nil
}

// bind schedules the pod if nodeFor finds a node and the function allowed accepts that node. It reports whether the pod
// was scheduled. A nil allowed accepts all nodes.
func (sim *simulation) bind(a *incomingPod, allowed func(*simNode) bool) bool {
	at := sim.nodeFor(a)
	if at < 0 || allowed != nil && !allowed(&sim.nodes[at]) {
		return false
	}
	sim.setFree(at, sim.nodes[at].free.Sub(a.pod.Requests))
	sim.nodes[at].newPods = append(slices.Clip(sim.nodes[at].newPods), a.pod)
	sim.countPod(a.pod, at, 1)
	a.node = at
	return true
}

func (sim *simulation) unbind(arrivals []incomingPod) {
	for i := range arrivals {
		at := arrivals[i].node
		sim.setFree(at, sim.nodes[at].free.Add(arrivals[i].pod.Requests))
		sim.removePod(at, arrivals[i].pod)
	}
}

// removePod removes a new pod from its node, without freeing its room.
func (sim *simulation) removePod(at int, p *cluster.Pod) {
	s := &sim.nodes[at]
	s.newPods = slices.DeleteFunc(slices.Clone(s.newPods), func(other *cluster.Pod) bool { return other == p })
	sim.countPod(p, at, -1)
}

// unschedulable returns, by group, the ID of a pod that cannot be scheduled in one of the orders. It unbinds the other
// pods of such a group, which leaves more room for the remaining groups. Groups for which takesPart returns false are
// ignored. The simulation is unchanged afterwards.
func (sim *simulation) unschedulable(orders [][]incomingPod, takesPart func(group string) bool) map[string]string {
	out := map[string]string{}
	for _, all := range orders {
		var bound []incomingPod
		for i := range all {
			a := &all[i]
			if _, failed := out[a.group]; failed || !takesPart(a.group) {
				continue
			}
			if sim.bind(a, nil) {
				bound = append(bound, *a)
				continue
			}
			out[a.group] = a.pod.ID()
			bound = slices.DeleteFunc(bound, func(other incomingPod) bool {
				if other.group != a.group {
					return false
				}
				sim.unbind([]incomingPod{other})
				return true
			})
		}
		sim.unbind(bound)
	}
	return out
}

// unplacedShare returns the requests of the pods that find no node, as a share of the requests of all pods. The pods
// arrive in drain order, large pods first. The simulation is unchanged afterwards.
func (sim *simulation) unplacedShare(pods []cluster.Pod) float64 {
	arrivals := make([]incomingPod, len(pods))
	for i := range pods {
		arrivals[i].pod = &pods[i]
	}
	sortAsDrained(arrivals, 0)
	var bound []incomingPod
	all, unplaced := 0.0, 0.0
	for i := range arrivals {
		bulk := arrivals[i].pod.Requests.Bulk()
		all += bulk
		if sim.bind(&arrivals[i], nil) {
			bound = append(bound, arrivals[i])
		} else {
			unplaced += bulk
		}
	}
	sim.unbind(bound)
	if all == 0 {
		return 0
	}
	return unplaced / all
}

// placeOnExisting schedules the pods on existing nodes. If a pod would go to a planned node, or to none, it returns nil
// and leaves the simulation unchanged.
func (sim *simulation) placeOnExisting(pods []cluster.Pod) []incomingPod {
	arrivals := make([]incomingPod, len(pods))
	for i := range pods {
		arrivals[i].pod = &pods[i]
	}
	if sim.scheduleIf(arrivals, func(s *simNode) bool { return !s.isPlanned }) != nil {
		return nil
	}
	return arrivals
}

// releaseReserved makes the room that other nodes reserve for pods of the removed nodes free for all pods, because the
// simulation schedules these pods itself. It returns the names of the nodes with reserved room, by pod ID. all are the
// nodes of the snapshot; nodes are the names of the removed nodes.
func (sim *simulation) releaseReserved(all []cluster.Node, nodes []string, byName map[string]*cluster.Node) map[string]string {
	reserved := map[string]string{}
	moved := map[string]bool{} // by pod ID
	for _, name := range nodes {
		if n := byName[name]; n != nil {
			for i := range n.Pods {
				moved[n.Pods[i].ID()] = true
			}
		}
	}
	for i := range all {
		at, ok := sim.byName[all[i].Name]
		if !ok {
			continue
		}
		for k := range all[i].Pods {
			p := &all[i].Pods[k]
			if !moved[p.ID()] {
				continue
			}
			reserved[p.ID()] = all[i].Name
			if isExpectedFromOther(p, &all[i]) {
				sim.nodes[at].reserved = sim.nodes[at].reserved.Sub(p.Requests)
			} else {
				sim.setFree(at, sim.nodes[at].free.Add(p.Requests))
			}
		}
	}
	return reserved
}

// Unschedulable returns the pods that would have no node if all pods of the nodes were evicted now and kube-scheduler
// placed them with its default scoring. It returns at most one pod for each node, as "namespace/name", in the order of
// the nodes. Pods in evictionOrder (see Move) arrive after all others, in that order. Constrained pods go to the node
// that was launched for them, or to their node in plan, which is a plan for the snapshot. Terminating nodes and nodes
// that are not ready take no pods.
func Unschedulable(s cluster.Snapshot, plan packing.Plan, nodes, evictionOrder []string) []string {
	sim := newSimulation(newPodKinds(s.Nodes), drainOrders, func(i int) nodeRole { return roleOf(slices.Contains(nodes, s.Nodes[i].Name)) })
	byName := map[string]*cluster.Node{}
	for i := range s.Nodes {
		byName[s.Nodes[i].Name] = &s.Nodes[i]
	}
	planned := sim.releaseReserved(s.Nodes, nodes, byName) // plan leaves out these pods, because they have a node
	for _, p := range plan.Placements {
		planned[p.Pod] = p.Node
	}
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
	orders, at := sim.allOrders(all), positions(evictionOrder)
	for _, order := range orders {
		slices.SortStableFunc(order, func(x, y incomingPod) int { return at[x.pod.ID()] - at[y.pod.ID()] })
	}
	lost := sim.unschedulable(orders, func(string) bool { return true })
	var out []string
	for _, name := range nodes {
		if id, ok := lost[name]; ok {
			out = append(out, id)
			delete(lost, name)
		}
	}
	return out
}

// keepSchedulable drops the moves of the attempt with a pod for which kube-scheduler finds no node. It schedules the
// moves one after the other, the best first. Candidates that stay may take pods. keepSchedulable recomputes the score
// with the threshold of the search, also for moves to which evaluate applies MinWorthExchange.
func (s *search) keepSchedulable(t *attempt) {
	sim := newSimulation(s.p.kinds, s.arrivalOrder, func(i int) nodeRole {
		c, ok := s.p.byNode[s.p.in.Snapshot.Nodes[i].Name]
		return roleOf(ok && t.removed[c])
	})
	s.p.reservePending(sim)
	slices.SortFunc(t.moves, bySavingPerCost)
	t.score = 0
	t.moves = slices.DeleteFunc(t.moves, func(m Move) bool {
		if !s.p.schedule(sim, &m) {
			t.complete = false
			return true
		}
		t.score += s.p.priceShare(m.Saving) - s.threshold*s.p.costShare(m.Cost)
		return false
	})
}

// incoming is what a move adds to a simulation.
type incoming struct {
	pods  []incomingPod
	nodes []simNode
}

func (a *incoming) sort(evictionOrder []string) {
	at := positions(evictionOrder)
	slices.SortFunc(a.pods, func(x, y incomingPod) int { return at[x.pod.ID()] - at[y.pod.ID()] })
}

func (a *incoming) ids() []string {
	out := make([]string, len(a.pods))
	for i := range a.pods {
		out[i] = a.pods[i].pod.ID()
	}
	return out
}

// positions returns the position of each pod ID, from 1. Pods that are not in the order have 0, so they come first.
func positions(evictionOrder []string) map[string]int {
	out := make(map[string]int, len(evictionOrder))
	for i, id := range evictionOrder {
		out[id] = i + 1
	}
	return out
}

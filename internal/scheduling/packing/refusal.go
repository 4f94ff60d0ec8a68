package packing

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/refusal"
)

// refusals returns one Refusal for every unplaced pod, sorted by pod. Its reasons say why no existing, planned or
// further new node can take the pod, after the planned nodes have added their topology domains. topo is the topology
// state before any pod was placed.
func refusals(sol *solution, topo *existing.TopologyState) []Refusal {
	if sol.queue.Unplaced() > 0 {
		sol = sol.copyForRetry(newDomainProjection(sol).topologyAfterPlan(topo))
	}
	explainer := refusal.New(refusalInput(sol))
	var out []Refusal
	for _, u := range sol.queue.Pods.Unplannable {
		out = append(out, Refusal{Pod: u.Pod.ID(), Reasons: []Reason{{Code: Unplannable, Count: 1, Detail: refusal.Printable(u.Why)}}})
	}
	for _, p := range sol.queue.Pods.Deferred {
		reason := Reason{Code: EffortSpent, Count: 1, Detail: "its rules about other pods, with those of all pods, exceed the limit of one plan"}
		out = append(out, Refusal{Pod: p.ID(), Reasons: []Reason{reason}, Hint: refusal.RetryHint})
	}
	left := make([][]*cluster.Pod, sol.queue.WholeCount) // by whole class: its unplaced pods, with those of its parts
	for c := range sol.queue.Classes {
		class := &sol.queue.Classes[c]
		if sol.queue.Left[c] == 0 {
			continue
		}
		left[class.WholeClass] = append(left[class.WholeClass], class.Pods[len(class.Pods)-sol.queue.Left[c]*class.PodsPerUnit:]...)
	}
	for c, pods := range left {
		if len(pods) == 0 {
			continue
		}
		reasons, hint := explainer.Explain(c, &sol.queue.Classes[c].Class)
		for _, p := range pods {
			out = append(out, Refusal{Pod: p.ID(), Reasons: reasons, Hint: hint})
		}
	}
	slices.SortStableFunc(out, func(a, b Refusal) int { return cmp.Compare(a.Pod, b.Pod) })
	return out
}

func refusalInput(sol *solution) refusal.Input {
	hasPlannedPod := func(group int) bool {
		return slices.ContainsFunc(sol.planned, func(pn plannedNode) bool { return pn.matchedPods(sol.queue, group) > 0 })
	}
	return refusal.Input{
		Stock:           sol.problem.Stock,
		Accepts:         sol.problem.Accepts,
		Pods:            sol.queue.Pods,
		DaemonPods:      sol.queue.DaemonPods,
		Topology:        sol.topo,
		Remaining:       sol.remaining,
		UnusedInstances: sol.unusedInstances,
		HasHost:         func(group int) bool { return sol.isHostFixed(group) || hasPlannedPod(group) },
		MissingMinValue: func(class, offer, set int) (Relaxation, bool) {
			return sol.nodeOffers.missingMinValue(&plannedNode{offer: offer, allocations: []allocation{{class: class, n: 1, acceptSet: set}}})
		},
	}
}

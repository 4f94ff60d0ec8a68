package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/binding"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// bindingFilter removes from a solution the pods that kube-scheduler would not bind.
type bindingFilter struct {
	problem *pending.Problem
	queue   *pending.Queue
	sol     *solution
}

func newBindingFilter(sol *solution) bindingFilter {
	return bindingFilter{problem: sol.problem, queue: sol.queue, sol: sol}
}

// removeBlockedPods simulates binding, and removes from the plan the pods that kube-scheduler would not bind because of
// topology rules. Such pods exist if the pods that a rule relies on are unplaced, or are on nodes where the rule does
// not count them.
//
// kube-scheduler binds one pod at a time, so the plan is valid if the pods can be bound in some order. Usually every
// order works. topo is the topology state before any pod was placed.
func (bf bindingFilter) removeBlockedPods(topo *existing.TopologyState) {
	simulator := bf.newSimulator()
	if simulator.AnyOrderBinds(topo.DomainCounts) && !simulator.UsesMinDomains {
		return // the usual case; it saves the projection
	}
	after := newDomainProjection(bf.sol).topologyAfterPlan(topo).DomainCounts
	if simulator.AnyOrderBinds(after) {
		return
	}
	for _, step := range simulator.BindInOrder(after) { // step.Left pods stay unbound
		bf.sol.removeAt(step.Class, step.Host, step.Left)
	}
	bf.sol.planned = slices.DeleteFunc(bf.sol.planned, func(pn plannedNode) bool { return pn.copies == 0 || len(pn.allocations) == 0 })
	bf.sol.placements = slices.DeleteFunc(bf.sol.placements, func(p existingPlacement) bool { return p.n == 0 })
}

// newSimulator returns a simulator with the placed pods as steps. It leaves out the classes that are in no domain
// and have no host affinity, because their rules allow every order of binding.
func (bf bindingFilter) newSimulator() *binding.Simulator {
	sol, initial := bf.sol, bf.problem.Rooms
	simulator := binding.New(sol.queue.Pods.Topology, initial, func(group int) bool { return sol.topo.HasPod(initial, group) })
	sv := newSpreadVisibility(sol)
	hostMatters := make([]bool, len(sol.queue.Classes)) // by class: whether the nodes of its pods matter, not only the domains
	anyHostMatters := false
	for c := range sol.queue.Classes {
		class := &sol.queue.Classes[c]
		if hostMatters[c] = bf.hasHostAffinity(class) || class.Domains != nil && sv.mayBeUncounted(class); hostMatters[c] {
			anyHostMatters = true
		} else if n := sol.queue.UnitCount(c) - sol.queue.Left[c]; class.Domains != nil && n > 0 {
			simulator.Add(binding.Step{Class: c, Profile: sol.queue.Profile(class), Domains: class.Domains, Left: n, Host: binding.AnyHost})
		}
	}
	if !anyHostMatters {
		return simulator
	}
	for _, loc := range sol.podLocations() {
		if hostMatters[loc.class] {
			class := &sol.queue.Classes[loc.class]
			simulator.Add(binding.Step{
				Class: loc.class, Profile: sol.queue.Profile(class), Domains: class.Domains,
				Left: loc.n, Host: loc.host, Uncounted: sv.uncountedBy(loc),
			})
		}
	}
	return simulator
}

// hasHostAffinity reports whether pods of the class have required host affinity, or are the target
// of a required host affinity.
func (bf bindingFilter) hasHostAffinity(c *pending.Class) bool {
	p := bf.queue.Profile(c)
	return p.HasRequiredHostAffinity() || slices.ContainsFunc(p.HostIn, func(g int) bool {
		return bf.queue.Pods.Topology.Groups[g].Kind == topology.Affinity && bf.queue.Pods.Topology.Groups[g].Hard
	})
}

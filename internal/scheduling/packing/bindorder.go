package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/binding"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// bindingCheck removes the pods from a solution that kube-scheduler would not bind.
type bindingCheck struct {
	problem *pending.Problem
	queue   *pending.Queue
	sol     *solution
}

func newBindingCheck(sol *solution) bindingCheck {
	return bindingCheck{problem: sol.problem, queue: sol.queue, sol: sol}
}

// simulateBinding removes the pods from the plan that kube-scheduler would not bind because of topology
// rules. This happens if pods that a rule relied on are unplaced, or on nodes where the rule does not
// count them.
//
// kube-scheduler binds one pod at a time, so the plan is valid if the pods can be bound in some
// order. Usually every order works. topo is the topology state before any pod was placed.
func (bk bindingCheck) simulateBinding(topo *existing.TopologyState) {
	simulator := bk.newSimulator()
	if simulator.AnyOrderBinds(topo.DomainCounts) && !simulator.UsesMinDomains {
		return
	}
	after := newDomainProjection(bk.sol).topologyAfterPlan(topo).DomainCounts
	if simulator.AnyOrderBinds(after) {
		return
	}
	for _, step := range simulator.BindInOrder(after) {
		bk.sol.removeAt(step.Class, step.Host, step.Left)
	}
	bk.sol.planned = slices.DeleteFunc(bk.sol.planned, func(pn plannedNode) bool { return pn.copies == 0 || len(pn.allocations) == 0 })
	bk.sol.placements = slices.DeleteFunc(bk.sol.placements, func(p existingPlacement) bool { return p.n == 0 })
}

// newSimulator returns a simulator with the placed pods as steps. It leaves out the classes that are in no domain
// and have no host affinity, because every order of binding keeps their rules.
func (bk bindingCheck) newSimulator() *binding.Simulator {
	sol, initial := bk.sol, bk.problem.Rooms
	simulator := binding.New(sol.queue.Pods.Topology, initial, func(group int) bool { return sol.topo.HasPod(initial, group) })
	sv := newSpreadVisibility(sol)
	hostMatters := make([]bool, len(sol.queue.Classes)) // by class: whether the node of its pods matters, not only the domain
	anyHostMatters := false
	for c := range sol.queue.Classes {
		p := &sol.queue.Classes[c]
		if hostMatters[c] = bk.hasHostAffinity(p) || p.Domains != nil && sv.mayBeUncounted(p); hostMatters[c] {
			anyHostMatters = true
		} else if n := sol.queue.UnitCount(c) - sol.queue.Left[c]; p.Domains != nil && n > 0 {
			simulator.Add(binding.Step{Class: c, Profile: sol.queue.Profile(p), Domains: p.Domains, Left: n, Host: binding.AnyHost})
		}
	}
	if !anyHostMatters {
		return simulator
	}
	for _, loc := range sol.podLocations() {
		if hostMatters[loc.class] {
			p := &sol.queue.Classes[loc.class]
			simulator.Add(binding.Step{
				Class: loc.class, Profile: sol.queue.Profile(p), Domains: p.Domains, Left: loc.n, Host: loc.host, Uncounted: sv.uncountedBy(loc),
			})
		}
	}
	return simulator
}

// hasHostAffinity reports whether pods of the class have required host affinity, or are the target
// of a required host affinity.
func (bk bindingCheck) hasHostAffinity(c *pending.Class) bool {
	p := bk.queue.Profile(c)
	return p.HasRequiredHostAffinity() || slices.ContainsFunc(p.HostIn, func(g int) bool {
		return bk.queue.Pods.Topology.Groups[g].Kind == topology.Affinity && bk.queue.Pods.Topology.Groups[g].Hard
	})
}

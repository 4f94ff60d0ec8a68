package verify_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

const ebs = "attachable-volumes-csi-ebs.csi.aws.com"

// TestPlannedNodes makes one change to a valid plan, and checks which rules the plan then violates. The plan has two
// planned nodes for three pods, and one pod on an existing node. Pods 0 to 3 are web-1, web-2, db-1 and db-2.
func TestPlannedNodes(t *testing.T) {
	t.Parallel()
	plan := func(change func(w *world)) func(w *world) {
		return func(w *world) {
			w.node("n1", "a")
			for _, name := range []string{"web-1", "web-2", "db-1", "db-2"} {
				w.pod(name)
			}
			w.launch("a b c", "web-1", "web-2")
			w.launch("b", "db-1")
			w.place("n1", "db-2")
			change(w)
		}
	}
	pool := func(w *world) *cluster.Pool { return &w.Pools[0] }
	run(t, map[string]testCase{
		"no change": valid(plan(func(*world) {})),

		"pod without place or refusal": invalid("pod default/db-1 has 0 places and refusals",
			plan(func(w *world) { w.plan.PlannedNodes[1].Pods = nil })),
		"pod placed twice": invalid("pod default/db-1 has 2", plan(func(w *world) { w.place("n1", "db-1") })),
		"pod placed and refused": invalid("pod default/db-1 has 2; default/db-1 is refused",
			plan(func(w *world) { w.refuse(packing.TooSmall, "db-1") })),
		"placed pod that does not exist": invalid("is not in the snapshot", plan(func(w *world) { w.place("n1", "absent-1") })),
		"refused pod that does not exist": invalid("is not in the snapshot",
			plan(func(w *world) { w.refuse(packing.TooSmall, "absent-1") })),
		"node that does not exist": invalid("node n9, which does not exist",
			plan(func(w *world) { w.plan.Placements[0].Node = "n9" })),
		"unplannable pod": invalid("cannot be planned for: odd", plan(func(w *world) { w.Pods[0].Unplannable = "odd" })),
		"planned node of a pool that does not exist": invalid("which does not exist", plan(func(w *world) { w.plan.PlannedNodes[1].Pool = "x" })),
		"unusable pool": invalid("is of pool general, which must not be used: no",
			plan(func(w *world) { pool(w).Unusable = "no" })),
		"two planned nodes of one name": invalid("general-1 is a duplicate",
			plan(func(w *world) { w.plan.PlannedNodes[1].Name = "general-1" })),
		"no offerings": invalid("keeps 0 instance types",
			plan(func(w *world) { w.plan.PlannedNodes[1].Offerings = nil })),
		"offering that does not exist": invalid("there is no offering small d",
			plan(func(w *world) { w.plan.PlannedNodes[1].Offerings[0].Zone = "d" })),
		"type that does not exist": invalid("there is no offering huge b",
			plan(func(w *world) { w.plan.PlannedNodes[1].Offerings[0].InstanceType = "huge" })),
		"duplicate offering": invalid("offering 4 is a duplicate",
			plan(func(w *world) { w.addOffering(0, choice("small", "a", catalog.OnDemand)) })),
		"expensive offering first": invalid("offering 4 is cheaper",
			plan(func(w *world) { w.addOffering(0, choice("small", "c", catalog.Spot)) })),
		"wrong price": invalid("it costs 0.0800, not 0.0700",
			plan(func(w *world) { w.plan.PlannedNodes[1].Offerings[0].Price = 7 * catalog.Dollar / 100 })),
		"unavailable offering": invalid("b on-demand: it is not available", plan(func(w *world) {
			w.makeUnavailable("small", "b")
			w.plan.PlannedNodes[0].Offerings = w.plan.PlannedNodes[0].Offerings[:1]
		})),
		"wrong node class":     invalid("general-2 is of node class", plan(func(w *world) { w.plan.PlannedNodes[1].NodeClass = "x" })),
		"pool's taint missing": invalid("general-2 has other taints", plan(func(w *world) { w.plan.PlannedNodes[1].Taints = taint("x") })),
		"startup taint missing": invalid("general-1 has other; general-2 has other",
			plan(func(w *world) { pool(w).StartupTaints = taint("x") })),
		"pool's label missing": invalid("general-2 lacks the label team=red",
			plan(func(w *world) { w.addTeamLabel(); w.plan.PlannedNodes[1].Labels = nil })),
		"pool's label present": valid(plan(func(w *world) { w.addTeamLabel() })),
		"wrong label": invalid("label topology.kubernetes.io/zone is a, the offering has b",
			plan(func(w *world) { w.plan.PlannedNodes[1].Labels = requirements.Labels{zone: "a"} })),
		"requirements that exclude an offering": invalid("which rules out its own offering small b",
			plan(func(w *world) { w.setRequirement(1, zone, "a") })),
		"requirements that allow all offerings": valid(plan(func(w *world) { w.setRequirement(1, zone, "a", "b") })),
		"offering that the pool does not allow": invalid("requirement topology.kubernetes.io/zone In [a c] is not met",
			plan(func(w *world) { pool(w).Requirements = requireIn(zone, 0, "a", "c") })),
		"invalid operator": invalid("requirement topology.kubernetes.io/zone Huh",
			plan(func(w *world) { pool(w).Requirements = []requirements.Requirement{{Key: zone, Operator: "Huh"}} })),
		"fewer values than minValues": invalid("general-2 keeps 1 values of topology.kubernetes.io/zone, the pool requires 3",
			plan(func(w *world) { pool(w).Requirements = requireIn(zone, 3, "a", "b", "c") })),
		"zone that the pod does not accept": invalid("as small b on-demand: pod default/web-1 does not; as small c on-demand: pod default/web-1",
			plan(func(w *world) { requiring(zone, "a")(&w.Pods[0]) })),
		"node affinity that allows all zones": valid(plan(func(w *world) { requiring(zone, "a", "b", "c")(&w.Pods[0]) })),
		"an untolerated taint": invalid("default/db-1 does not accept",
			plan(func(w *world) { w.taintAll("x"); w.tolerate("x", 0, 1, 3) })),
		"a tolerated taint": valid(plan(func(w *world) { w.taintAll("x"); w.tolerate("x", 0, 1, 2, 3) })),
		"pod requires a custom label": invalid(
			"small a on-demand: pod default/web-1; small b on-demand: pod default/web-1; small c on-demand: pod default/web-1",
			plan(func(w *world) { requiring("team", "red")(&w.Pods[0]) })),
		"plan chose the custom label": valid(plan(func(w *world) {
			requiring("team", "red")(&w.Pods[2])
			w.plan.PlannedNodes[1].Labels = requirements.Labels{"team": "red"}
		})),
		"request too large for some offerings": invalid("as small a on-demand has too little [cpu]; as small b; as small c",
			plan(func(w *world) { w.Pods[0].Requests.CPU = 3500 })),
		"request of a missing device": invalid("general-2 as small b on-demand has too little [gpu]",
			plan(func(w *world) { w.Pods[2].Requests = w.Pods[2].Requests.With("gpu", 1) })),
		"DaemonSet uses the room": invalid("a on-demand has too little [cpu]", plan(func(w *world) { w.daemon(2500, "a") })),
		"a DaemonSet elsewhere":   valid(plan(func(w *world) { w.daemon(2500, "d") })),
		"DaemonSet for devices that no type has": valid(plan(func(w *world) {
			w.daemon(2500)
			w.Daemons[0].Requests = w.Daemons[0].Requests.With("gpu", 1)
		})),
		"two pods with the same port": invalid("general-1: port 80/TCP is taken twice",
			plan(func(w *world) { w.setPort(0, 80); w.setPort(1, 80) })),
		"two pods with different ports": valid(plan(func(w *world) { w.setPort(0, 80); w.setPort(1, 81) })),
		"a DaemonSet's port": invalid("general-2: port 80/TCP is taken twice",
			plan(func(w *world) { w.daemon(0); w.setPort(2, 80); w.Daemons[0].HostPorts = w.Pods[2].HostPorts })),

		"limit on nodes": invalid("general would have 2 nodes, its limit is 1",
			plan(func(w *world) { one := 1; pool(w).Limits.Nodes = &one })),
		"limit on nodes, with existing nodes": invalid("general would have 3 nodes, its limit is 2",
			plan(func(w *world) { two := 2; pool(w).Limits.Nodes = &two; pool(w).Nodes = 1 })),
		"limit on CPU exceeded": invalid("general could have 8 of cpu, its limit is 7",
			plan(func(w *world) { pool(w).Limits.Ceiling = map[string]int64{resources.CPU: 7000} })),
		"limit on CPU reached exactly": valid(plan(func(w *world) { pool(w).Limits.Ceiling = map[string]int64{resources.CPU: 8000} })),
		"limit on CPU, with the largest offerings": invalid("general could have 12 of cpu", plan(func(w *world) {
			w.addOffering(1, choice("large", "b", catalog.OnDemand))
			pool(w).Limits.Ceiling = map[string]int64{resources.CPU: 8000}
		})),

		"volumes beyond the type's": invalid("general-2 as small b on-demand has too little ["+ebs,
			plan(func(w *world) { w.setTypeVolumes(3); w.addVolumes(2, 4) })),
		"volumes within the type's": valid(plan(func(w *world) { w.setTypeVolumes(3); w.addVolumes(2, 3) })),
		"volumes without a limit":   valid(plan(func(w *world) { w.addVolumes(2, 99) })),
		"volumes beyond the node's": invalid("node n1 has too little ["+ebs,
			plan(func(w *world) { w.setNodeVolumes(5, 3); w.addVolumes(3, 3) })),
		"volumes on a full node": invalid("node n1 has too little ["+ebs,
			plan(func(w *world) { w.setNodeVolumes(5, 5); w.addVolumes(3, 1) })),
		"volumes within the node's":     valid(plan(func(w *world) { w.setNodeVolumes(5, 3); w.addVolumes(3, 2) })),
		"volumes, node without a limit": valid(plan(func(w *world) { w.addVolumes(3, 99) })),
		"a cordoned node": invalid("node n1: pod default/db-2 does not accept it",
			plan(func(w *world) { w.Nodes[0].Taints = []requirements.Taint{cluster.CordonTaint()} })),
		"a leaving node": invalid("n1 has new pods, but is leaving", plan(func(w *world) { w.Nodes[0].Leaving = true })),
		"node that the pod does not accept": invalid("node n1: pod default/db-2 does not",
			plan(func(w *world) { requiring(zone, "b")(&w.Pods[3]) })),
		"node required by name": valid(plan(func(w *world) { delete(w.Nodes[0].Labels, hostname); requiring(hostname, "n1")(&w.Pods[3]) })),
		"a node with a taint":   invalid("node n1: pod default/db-2 does not", plan(func(w *world) { w.Nodes[0].Taints = taint("x") })),
		"full node":             invalid("node n1 has too little [cpu]", plan(func(w *world) { w.Nodes[0].Requested.CPU = 7500 })),
		"port in use on the node": invalid("node n1: port 80/TCP",
			plan(func(w *world) { w.setPort(3, 80); w.Nodes[0].HostPorts = w.Pods[3].HostPorts })),
	})
}

// TestMaxInstanceTypes checks that a planned node may keep at most 60 instance types.
func TestMaxInstanceTypes(t *testing.T) {
	t.Parallel()
	withTypes := func(n int) func(w *world) {
		return func(w *world) {
			w.pod("web-1")
			pn := w.launch("", "web-1")
			c := w.Market["default"]
			for i := range n {
				name := "t" + strconv.Itoa(i)
				c.Types = append(c.Types, typeOf(name, 4))
				pn.Offerings = append(pn.Offerings, choice(name, "a", catalog.OnDemand))
			}
			w.Market["default"] = c
		}
	}
	run(t, map[string]testCase{
		"60": valid(withTypes(60)),
		"61": invalid("keeps 61 instance types", withTypes(61)),
	})
}

// TestPrice checks that the price of the plan is the sum of its planned nodes, and is at least its lower bound.
func TestPrice(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.pod("web-1")
	w.launch("a", "web-1")
	w.plan.LowerBound = 8 * catalog.Dollar / 100
	if got := w.check(); len(got) > 0 {
		t.Errorf("price equal to the bound: %q, want no violations", got)
	}
	w.plan.LowerBound++
	if got := w.check(); len(got) != 1 {
		t.Errorf("price below the bound: %q, want one violation", got)
	}
	w.plan.LowerBound = 0
	w.plan.PlannedNodes[0].Offerings = append(w.plan.PlannedNodes[0].Offerings, choice("large", "a", catalog.OnDemand))
	w.plan.Price = 24 * catalog.Dollar / 100 // both offerings, not only the cheapest
	if got := w.checkStatedPrice(); len(got) != 1 {
		t.Errorf("price differs from the sum: %q, want one violation", got)
	}
}

// TestNodeWithoutPods checks that a plan must not launch a node without pods.
func TestNodeWithoutPods(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.launch("a")
	if got := w.checkStatedPrice(); !slices.ContainsFunc(got, func(s string) bool { return strings.HasSuffix(s, "has no pods") }) {
		t.Errorf("the violations are %q, want one that ends with: has no pods", got)
	}
}

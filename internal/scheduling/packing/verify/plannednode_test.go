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

// TestMachines breaks one rule at a time of a valid plan: two planned nodes for three pods, and one
// pod on an existing node.
func TestMachines(t *testing.T) {
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
	run(t, map[string]verdict{
		"nothing": right(plan(func(*world) {})),

		"a pod is left out": wrong("pod default/db-1 has 0 places and refusals",
			plan(func(w *world) { w.plan.PlannedNodes[1].Pods = nil })),
		"a pod is placed twice": wrong("pod default/db-1 has 2", plan(func(w *world) { w.place("n1", "db-1") })),
		"placed, and refused too": wrong("pod default/db-1 has 2; default/db-1 is refused",
			plan(func(w *world) { w.refuse(packing.TooSmall, "db-1") })),
		"a pod that nobody wants":  wrong("is not in the snapshot", plan(func(w *world) { w.place("n1", "who-1") })),
		"a refusal nobody wants":   wrong("is not in the snapshot", plan(func(w *world) { w.refuse(packing.TooSmall, "who-1") })),
		"a node that is not there": wrong("node n9, which there is not", plan(func(w *world) { w.plan.Placements[0].Node = "n9" })),
		"a pod that cannot be":     wrong("cannot be planned for: odd", plan(func(w *world) { w.Pods[0].Unplannable = "odd" })),
		"a machine of no pool":     wrong("which there is not", plan(func(w *world) { w.plan.PlannedNodes[1].Pool = "x" })),
		"a pool that is unusable":  wrong("is of pool general, which may not be used: no", plan(func(w *world) { pool(w).Unusable = "no" })),
		"two machines of one name": wrong("general-1 is there twice", plan(func(w *world) { w.plan.PlannedNodes[1].Name = "general-1" })),
		"no offering at all":       wrong("keeps 0 instance types", plan(func(w *world) { w.plan.PlannedNodes[1].Offerings = nil })),
		"an offering that is not": wrong("there is no offering small d",
			plan(func(w *world) { w.plan.PlannedNodes[1].Offerings[0].Zone = "d" })),
		"a type that is not": wrong("there is no offering huge b",
			plan(func(w *world) { w.plan.PlannedNodes[1].Offerings[0].InstanceType = "huge" })),
		"an offering twice": wrong("offering 4 is there twice",
			plan(func(w *world) { w.keep(0, choice("small", "a", catalog.OnDemand)) })),
		"the dear one first": wrong("offering 4 is cheaper", plan(func(w *world) { w.keep(0, choice("small", "c", catalog.Spot)) })),
		"another price": wrong("it costs 0.0800, not 0.0700",
			plan(func(w *world) { w.plan.PlannedNodes[1].Offerings[0].Price = 7 * catalog.Dollar / 100 })),
		"sold out": wrong("b on-demand: it is not available", plan(func(w *world) {
			w.sellOut("small", "b")
			w.plan.PlannedNodes[0].Offerings = w.plan.PlannedNodes[0].Offerings[:1]
		})),
		"another node class":       wrong("general-2 is of node class", plan(func(w *world) { w.plan.PlannedNodes[1].NodeClass = "x" })),
		"without the pool's taint": wrong("general-2 has other taints", plan(func(w *world) { w.plan.PlannedNodes[1].Taints = taint("x") })),
		"without the startup taint": wrong("general-1 has other; general-2 has other",
			plan(func(w *world) { pool(w).StartupTaints = taint("x") })),
		"without the pool's label": wrong("general-2 lacks the label team=red",
			plan(func(w *world) { w.team(); w.plan.PlannedNodes[1].Labels = nil })),
		"with the pool's label": right(plan(func(w *world) { w.team() })),
		"a label that cannot be": wrong("label topology.kubernetes.io/zone is a, the offering has b",
			plan(func(w *world) { w.plan.PlannedNodes[1].Labels = requirements.Labels{zone: "a"} })),
		"requirements that bite": wrong("which rules out its own offering small b", plan(func(w *world) { w.require(1, zone, "a") })),
		"requirements that hold": right(plan(func(w *world) { w.require(1, zone, "a", "b") })),
		"outside the pool": wrong("requirement topology.kubernetes.io/zone In [a c] is not met",
			plan(func(w *world) { pool(w).Requirements = in(zone, 0, "a", "c") })),
		"an operator that is none": wrong("requirement topology.kubernetes.io/zone Huh",
			plan(func(w *world) { pool(w).Requirements = []requirements.Requirement{{Key: zone, Operator: "Huh"}} })),
		"too few values": wrong("general-2 keeps 1 values of topology.kubernetes.io/zone, the pool asks for 3",
			plan(func(w *world) { pool(w).Requirements = in(zone, 3, "a", "b", "c") })),
		"not where the pod wants": wrong("as small b on-demand: pod default/web-1 does not; as small c on-demand: pod default/web-1",
			plan(func(w *world) { selecting(zone, "a")(&w.Pods[0]) })),
		"a second way that suits":   right(plan(func(w *world) { selecting(zone, "a", "b", "c")(&w.Pods[0]) })),
		"an untolerated taint":      wrong("default/db-1 does not accept", plan(func(w *world) { w.taintAll("x"); w.tolerate("x", 0, 1, 3) })),
		"a tolerated taint":         right(plan(func(w *world) { w.taintAll("x"); w.tolerate("x", 0, 1, 2, 3) })),
		"asking for a custom label": wrong("small a on-demand: pod default/web-1; small b on-demand: pod default/web-1; small c on-demand: pod default/web-1", plan(func(w *world) { selecting("team", "red")(&w.Pods[0]) })),
		"the plan chose the label": right(plan(func(w *world) {
			selecting("team", "red")(&w.Pods[2])
			w.plan.PlannedNodes[1].Labels = requirements.Labels{"team": "red"}
		})),
		"too much for some offering": wrong("as small a on-demand has too little [cpu]; as small b; as small c",
			plan(func(w *world) { w.Pods[0].Requests.CPU = 3500 })),
		"too much of a device": wrong("general-2 as small b on-demand has too little [gpu]",
			plan(func(w *world) { w.Pods[2].Requests = w.Pods[2].Requests.With("gpu", 1) })),
		"a DaemonSet takes the room": wrong("a on-demand has too little [cpu]", plan(func(w *world) { w.daemon(2500, "a") })),
		"a DaemonSet elsewhere":      right(plan(func(w *world) { w.daemon(2500, "d") })),
		"a DaemonSet for devices":    right(plan(func(w *world) { w.daemon(2500); w.Daemons[0].Requests = w.Daemons[0].Requests.With("gpu", 1) })),
		"one port for two":           wrong("general-1: port 80/TCP is taken twice", plan(func(w *world) { w.port(0, 80); w.port(1, 80) })),
		"two ports for two":          right(plan(func(w *world) { w.port(0, 80); w.port(1, 81) })),
		"a DaemonSet's port": wrong("general-2: port 80/TCP is taken twice",
			plan(func(w *world) { w.daemon(0); w.port(2, 80); w.Daemons[0].HostPorts = w.Pods[2].HostPorts })),

		"the limit on nodes": wrong("general would have 2 nodes, its limit is 1",
			plan(func(w *world) { one := 1; pool(w).Limits.Nodes = &one })),
		"the limit with others": wrong("general would have 3 nodes, its limit is 2",
			plan(func(w *world) { two := 2; pool(w).Limits.Nodes = &two; pool(w).Nodes = 1 })),
		"the limit on cpu": wrong("general could have 8 of cpu, its limit is 7",
			plan(func(w *world) { pool(w).Limits.Ceiling = map[string]int64{resources.CPU: 7000} })),
		"the limit is just kept": right(plan(func(w *world) { pool(w).Limits.Ceiling = map[string]int64{resources.CPU: 8000} })),
		"the limit at the worst": wrong("general could have 12 of cpu", plan(func(w *world) {
			w.keep(1, choice("large", "b", catalog.OnDemand))
			pool(w).Limits.Ceiling = map[string]int64{resources.CPU: 8000}
		})),

		"volumes beyond the type's": wrong("general-2 as small b on-demand has too little ["+ebs,
			plan(func(w *world) { w.attach(3); w.disks(2, 4) })),
		"volumes within the type's": right(plan(func(w *world) { w.attach(3); w.disks(2, 3) })),
		"volumes without a limit":   right(plan(func(w *world) { w.disks(2, 99) })),
		"volumes beyond the node's": wrong("node n1 has too little ["+ebs, plan(func(w *world) { w.slots(5, 3); w.disks(3, 3) })),
		"volumes on a full node":    wrong("node n1 has too little ["+ebs, plan(func(w *world) { w.slots(5, 5); w.disks(3, 1) })),
		"volumes within the node's": right(plan(func(w *world) { w.slots(5, 3); w.disks(3, 2) })),
		"volumes: a node unlimited": right(plan(func(w *world) { w.disks(3, 99) })),
		"a cordoned node": wrong("node n1: pod default/db-2 does not accept it",
			plan(func(w *world) { w.Nodes[0].Taints = []requirements.Taint{cluster.Cordon()} })),
		"a leaving node":            wrong("n1 gets pods, and it is leaving", plan(func(w *world) { w.Nodes[0].Leaving = true })),
		"a node that does not suit": wrong("node n1: pod default/db-2 does not", plan(func(w *world) { selecting(zone, "b")(&w.Pods[3]) })),
		"a node by its name":        right(plan(func(w *world) { delete(w.Nodes[0].Labels, hostname); selecting(hostname, "n1")(&w.Pods[3]) })),
		"a node with a taint":       wrong("node n1: pod default/db-2 does not", plan(func(w *world) { w.Nodes[0].Taints = taint("x") })),
		"a node that is full":       wrong("node n1 has too little [cpu]", plan(func(w *world) { w.Nodes[0].Requested.CPU = 7500 })),
		"a node whose port is taken": wrong("node n1: port 80/TCP",
			plan(func(w *world) { w.port(3, 80); w.Nodes[0].HostPorts = w.Pods[3].HostPorts })),
	})
}

// TestTypes: 60 types are as many as one planned node may keep.
func TestTypes(t *testing.T) {
	t.Parallel()
	many := func(n int) func(w *world) {
		return func(w *world) {
			w.pod("web-1")
			m := w.launch("", "web-1")
			c := w.Market["default"]
			for i := range n {
				name := "t" + strconv.Itoa(i)
				c.Types = append(c.Types, typeOf(name, 4))
				m.Offerings = append(m.Offerings, choice(name, "a", catalog.OnDemand))
			}
			w.Market["default"] = c
		}
	}
	run(t, map[string]verdict{
		"60": right(many(60)),
		"61": wrong("keeps 61 instance types", many(61)),
	})
}

// TestSums: the plan's price is that of its planned nodes, and not below its bound.
func TestSums(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.pod("web-1")
	w.launch("a", "web-1")
	w.plan.LowerBound = 8 * catalog.Dollar / 100
	if got := w.check(); len(got) > 0 {
		t.Errorf("%q", got)
	}
	w.plan.LowerBound++
	if got := w.check(); len(got) != 1 {
		t.Errorf("below the bound: %q", got)
	}
	w.plan.LowerBound = 0
	w.plan.PlannedNodes[0].Offerings = append(w.plan.PlannedNodes[0].Offerings, choice("large", "a", catalog.OnDemand))
	w.plan.Price = 24 * catalog.Dollar / 100
	if got := w.sums(); len(got) != 1 {
		t.Errorf("another sum: %q", got)
	}
}

// TestNobody: a plan must not launch a node without pods.
func TestNobody(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.launch("a")
	if got := w.sums(); !slices.ContainsFunc(got, func(s string) bool { return strings.HasSuffix(s, "has no pods") }) {
		t.Errorf("got %q", got)
	}
}

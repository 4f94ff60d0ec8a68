package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

const (
	zone     = catalog.LabelZone
	hostname = "kubernetes.io/hostname"
)

// world is a cluster, a market and a plan that a test builds.
type world struct {
	cluster.Snapshot
	catalog.Market
	plan packing.Plan
}

// newWorld returns a world with one pool, and two instance types in zones a, b and c. Type small has room for 4 pods
// of method pod, large for 8.
func newWorld() *world {
	return &world{
		Snapshot: cluster.Snapshot{Pools: []cluster.Pool{{Name: "general", NodeClass: "default"}}},
		Market:   catalog.Market{"default": {Region: "r", Types: []catalog.Type{typeOf("large", 8), typeOf("small", 4)}}},
	}
}

func typeOf(name string, cpus int64) catalog.Type {
	room := resources.Amounts{CPU: cpus * 1000, Memory: cpus << 32, Pods: 2 * cpus}
	t := catalog.Type{
		Name: name, Capacity: room, Allocatable: room,
		Labels: requirements.Labels{catalog.LabelInstanceType: name, catalog.LabelArch: "amd64", catalog.LabelOS: "linux"},
	}
	for _, z := range []string{"a", "b", "c"} {
		for i, capacityType := range []string{catalog.Spot, catalog.OnDemand} {
			t.Offerings = append(t.Offerings, catalog.Offering{
				Zone: z, CapacityType: capacityType, Available: true, Price: catalog.Price(cpus*int64(i+1)) * catalog.Dollar / 100,
			})
		}
	}
	return t.WithOfferings(t.Offerings)
}

// pod adds a pod. Its label app is its name up to the first hyphen.
func (w *world) pod(name string, change ...func(*cluster.Pod)) *cluster.Pod {
	app, _, _ := strings.Cut(name, "-")
	p := cluster.Pod{
		Namespace: "default", Name: name, Labels: requirements.Labels{"app": app},
		Requests: resources.Amounts{CPU: 1000, Memory: 1 << 30, Pods: 1},
	}
	for _, f := range change {
		f(&p)
	}
	w.Pods = append(w.Pods, p)
	return &w.Pods[len(w.Pods)-1]
}

// node adds a node in a zone, with room for 8 pods.
func (w *world) node(name, inZone string, residents ...cluster.Resident) *cluster.Node {
	w.Nodes = append(w.Nodes, cluster.Node{
		Name: name, Joined: true, Initialized: true, Residents: residents,
		Labels:      requirements.Labels{zone: inZone, hostname: name, catalog.LabelArch: "amd64"},
		Allocatable: resources.Amounts{CPU: 8000, Memory: 1 << 40, Pods: 20},
	})
	return &w.Nodes[len(w.Nodes)-1]
}

func (w *world) place(node string, pods ...string) {
	for _, p := range pods {
		w.plan.Placements = append(w.plan.Placements, packing.Placement{Pod: "default/" + p, Node: node})
	}
}

// launch puts pods on a planned node with the small on-demand offerings of some zones, for example "a b".
func (w *world) launch(zones string, pods ...string) *packing.PlannedNode {
	pn := packing.PlannedNode{Name: fmt.Sprintf("general-%d", len(w.plan.PlannedNodes)+1), Pool: "general", NodeClass: "default"}
	for z := range strings.FieldsSeq(zones) {
		pn.Offerings = append(pn.Offerings, choice("small", z, catalog.OnDemand))
	}
	for _, p := range pods {
		pn.Pods = append(pn.Pods, "default/"+p)
	}
	w.plan.PlannedNodes = append(w.plan.PlannedNodes, pn)
	return &w.plan.PlannedNodes[len(w.plan.PlannedNodes)-1]
}

func choice(typ, zone, capacityType string) packing.Choice {
	c := packing.Choice{InstanceType: typ, Zone: zone, CapacityType: capacityType, Price: 4 * catalog.Dollar / 100}
	if typ == "large" {
		c.Price *= 2
	}
	if capacityType == catalog.OnDemand {
		c.Price *= 2
	}
	return c
}

func (w *world) refuse(code packing.Code, pods ...string) {
	for _, p := range pods {
		w.plan.Refusals = append(w.plan.Refusals, packing.Refusal{Pod: "default/" + p, Reasons: []packing.Reason{{Code: code, Count: 1}}})
	}
}

// check returns the violations of the plan, after setting its price to the sum of its nodes.
func (w *world) check() []string {
	w.plan.Price = 0
	for _, pn := range w.plan.PlannedNodes {
		if len(pn.Offerings) > 0 {
			w.plan.Price += pn.Offerings[0].Price
		}
	}
	broken := verify.Check(w.Snapshot, w.Market, w.plan)
	// Some worlds have planned nodes without pods, to add a domain without pods. Check reports these nodes too.
	return slices.DeleteFunc(broken, func(s string) bool { return strings.HasSuffix(s, "has no pods") })
}

// testCase is a world, and parts of the sentences about its violations; none if the plan is valid.
type testCase struct {
	build func(w *world)
	want  []string
}

func valid(build func(w *world)) testCase { return testCase{build: build} }

// invalid returns the case of a plan with violations. want are parts of sentences, with "; " between them: each must be
// in a sentence, and each sentence must have one.
func invalid(want string, build func(w *world)) testCase {
	return testCase{build: build, want: strings.Split(want, "; ")}
}

func (c testCase) matches(got []string) bool {
	for _, part := range c.want {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, part) }) {
			return false
		}
	}
	for _, s := range got {
		if !slices.ContainsFunc(c.want, func(part string) bool { return strings.Contains(s, part) }) {
			return false
		}
	}
	return true
}

func run(t *testing.T, cases map[string]testCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			c.build(w)
			if got := w.check(); !c.matches(got) {
				t.Errorf("violations:      %q\nwant parts of all: %q", got, c.want)
			}
		})
	}
}

// Selectors, and rules of pods.

func app(name string) cluster.Selector {
	return cluster.Selector{Labels: requirements.Requirements{"app": requirements.OneOf(name)}}
}

func spread(key string, maxSkew int, appName string, change ...func(*cluster.Spread)) func(*cluster.Pod) {
	return func(p *cluster.Pod) {
		s := cluster.Spread{Key: key, MaxSkew: maxSkew, Selector: app(appName)}
		for _, f := range change {
			f(&s)
		}
		p.Spread = append(p.Spread, s)
	}
}

func term(key, appName string) cluster.Term {
	return cluster.Term{Key: key, Namespaces: []string{"default"}, Selector: app(appName)}
}

func affinityTo(key, appName string) func(*cluster.Pod) {
	return func(p *cluster.Pod) { p.Affinity = append(p.Affinity, term(key, appName)) }
}

func antiAffinityTo(key, appName string) func(*cluster.Pod) {
	return func(p *cluster.Pod) { p.AntiAffinity = append(p.AntiAffinity, term(key, appName)) }
}

func requiring(key string, values ...string) func(*cluster.Pod) {
	return func(p *cluster.Pod) {
		p.Required = []requirements.Requirements{{key: requirements.OneOf(values...)}}
	}
}

// existing returns n pods of an app that already run on a node.
func existing(appName string, n int, avoids ...cluster.Term) cluster.Resident {
	return cluster.Resident{Count: n, PodKind: &cluster.PodKind{Namespace: "default", Labels: requirements.Labels{"app": appName}, RequiredAntiAffinity: avoids}}
}

// Changes of a world, most of them for one test case.

// checkStatedPrice returns the violations of the plan with the price that it states.
func (w *world) checkStatedPrice() []string { return verify.Check(w.Snapshot, w.Market, w.plan) }

func (w *world) addOffering(node int, c packing.Choice) {
	w.plan.PlannedNodes[node].Offerings = append(w.plan.PlannedNodes[node].Offerings, c)
}

func (w *world) makeUnavailable(typ, inZone string) {
	for _, t := range w.Market["default"].Types {
		for i := range t.Offerings {
			if t.Name == typ && t.Offerings[i].Zone == inZone {
				t.Offerings[i].Available = false
			}
		}
	}
}

func taint(key string) []requirements.Taint {
	return []requirements.Taint{{Key: key, Effect: requirements.NoSchedule}}
}

func (w *world) taintAll(key string) {
	w.Pools[0].Taints = taint(key)
	for i := range w.plan.PlannedNodes {
		w.plan.PlannedNodes[i].Taints = taint(key)
	}
}

func (w *world) tolerate(key string, pods ...int) {
	for _, i := range pods {
		w.Pods[i].Tolerations = []requirements.Toleration{{Key: key, Operator: "Exists"}}
	}
}

func (w *world) addTeamLabel() {
	w.Pools[0].Labels = requirements.Labels{"team": "red"}
	for i := range w.plan.PlannedNodes {
		w.plan.PlannedNodes[i].Labels = requirements.Labels{"team": "red"}
	}
}

// requireIn returns a requirement that the label has one of the values, with minValues.
func requireIn(key string, minValues int, values ...string) []requirements.Requirement {
	return []requirements.Requirement{{Key: key, Operator: requirements.In, Values: values, MinValues: minValues}}
}

func (w *world) setRequirement(node int, key string, values ...string) {
	w.plan.PlannedNodes[node].Requirements = requireIn(key, 0, values...)
}

// daemon adds the only DaemonSet. It runs in the given zones; without zones, in all.
func (w *world) daemon(cpu int64, zones ...string) *cluster.Daemon {
	d := cluster.Daemon{Name: "agent", Requests: resources.Amounts{CPU: cpu, Pods: 1}}
	if len(zones) > 0 {
		d.Required = []requirements.Requirements{{zone: requirements.OneOf(zones...)}}
	}
	w.Daemons = append(w.Daemons, d)
	return &w.Daemons[0]
}

func (w *world) setPort(pod int, n int32) {
	w.Pods[pod].HostPorts = []cluster.HostPort{{IP: "0.0.0.0", Port: n, Protocol: "TCP"}}
}

// setTypeVolumes sets how many volumes a node of every type can attach.
func (w *world) setTypeVolumes(n int64) {
	for i := range w.Market["default"].Types {
		w.Market["default"].Types[i].Volumes = n
	}
}

func (w *world) addVolumes(pod int, n int64) {
	w.Pods[pod].Requests = w.Pods[pod].Requests.With(ebs, n)
}

// setNodeVolumes sets how many volumes the first node can attach, and how many are attached.
func (w *world) setNodeVolumes(most, used int64) {
	w.Nodes[0].Allocatable = w.Nodes[0].Allocatable.With(ebs, most)
	w.Nodes[0].Requested = w.Nodes[0].Requested.With(ebs, used)
}

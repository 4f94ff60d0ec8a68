package packing_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

const hostname = "kubernetes.io/hostname"

func selectApp(app string) cluster.Selector {
	return cluster.Selector{Labels: requirements.Requirements{"app": requirements.OneOf(app)}}
}

func affinityTo(key, app string) cluster.Term {
	return cluster.Term{Key: key, Namespaces: []string{"default"}, Selector: selectApp(app)}
}

// smallPod returns a pod with the label app: name, altered by change.
func smallPod(name string, change func(*cluster.Pod)) cluster.Pod {
	p := cluster.Pod{
		Namespace: "default", Name: name, Labels: requirements.Labels{"app": name},
		Requests: resources.Amounts{CPU: 500, Memory: 1 << 30, Pods: 1},
	}
	change(&p)
	return p
}

// TestImpossiblePods checks that pods with impossible requirements are refused with a reason, and ordinary pods
// beside them are placed.
func TestImpossiblePods(t *testing.T) {
	t.Parallel()
	requests := func(amounts resources.Amounts) []cluster.Pod {
		return []cluster.Pod{smallPod("odd", func(p *cluster.Pod) { p.Requests = amounts })}
	}
	requires := func(key string, v requirements.Values) []cluster.Pod {
		return []cluster.Pod{smallPod("odd", func(p *cluster.Pod) { p.Required = []requirements.Requirements{{key: v}} })}
	}
	chain := func(key string, apps ...string) []cluster.Pod { // each app has affinity to the next
		var out []cluster.Pod
		for i := 0; i+1 < len(apps); i++ {
			out = append(out, smallPod("odd-"+apps[i], func(p *cluster.Pod) {
				p.Labels, p.Affinity = requirements.Labels{"app": apps[i]}, []cluster.Term{affinityTo(key, apps[i+1])}
			}))
		}
		return out
	}
	unknown, _ := requirements.ValuesOf("Nearly", "b")
	gtWord, _ := requirements.ValuesOf(requirements.Gt, "many")
	for name, odd := range map[string][]cluster.Pod{
		"an unknown operator":              requires("a", unknown),
		"an unknown operator on zones":     requires(catalog.LabelZone, unknown),
		"greater than a word":              requires(catalog.LabelCPU, gtWord),
		"greater than the largest integer": requires(catalog.LabelCPU, requirements.OneOf()), // no value is left
		"a label that no node has":         requires("missing", requirements.Any()),
		"negative CPU":                     requests(resources.Amounts{CPU: -1, Memory: 1 << 30, Pods: 1}),
		"negative memory":                  requests(resources.Amounts{CPU: 1, Memory: math.MinInt64, Pods: 1}),
		"the largest number as memory":     requests(resources.Amounts{CPU: 1, Memory: math.MaxInt64, Pods: 1}),
		"a hundred TiB":                    requests(resources.Amounts{CPU: 1, Memory: 100 << 40, Pods: 1}),
		"more than any type has":           requests(resources.Amounts{CPU: 1, Memory: 30 << 40, Pods: 1}),
		"a negative number of devices":     requests(resources.Amounts{CPU: 1, Pods: 1}.With("example.com/thing", -5)),
		"the largest number of devices":    requests(resources.Amounts{CPU: 1, Pods: 1}.With("example.com/thing", math.MaxInt64)),
		"a device that no node has":        requests(resources.Amounts{CPU: 1, Pods: 1}.With("example.com/thing", 1)),
		"a cycle of two by zone":           chain(catalog.LabelZone, "a", "b", "a"),
		"a cycle of three by zone":         chain(catalog.LabelZone, "a", "b", "c", "a"),
		"a cycle of three by host":         chain(hostname, "a", "b", "c", "a"),
		"a chain to an app without pods":   chain(hostname, "a", "b", "c", "missing"),
		"a cycle by an unknown label":      chain("example.com/rack", "a", "b", "a"),
		"an empty topology key":            chain("", "a", "b", "a"),
		"a cycle with anti-affinity":       cycleWithAntiAffinity(),
		"a selector that matches nothing": {smallPod("odd", func(p *cluster.Pod) {
			p.Affinity = []cluster.Term{{Key: catalog.LabelZone, Selector: cluster.Selector{MatchesNothing: true}}}
		})},
		"a selector that contradicts itself": {smallPod("odd", func(p *cluster.Pod) {
			p.Affinity = []cluster.Term{{Key: catalog.LabelZone, Namespaces: []string{"default"}, Selector: cluster.Selector{
				Labels: requirements.Requirements{"app": requirements.OneOf()},
			}}}
		})},
		"no namespaces": {smallPod("odd", func(p *cluster.Pod) {
			p.Affinity = []cluster.Term{{Key: catalog.LabelZone, Selector: selectApp("odd")}}
		})},
		"affinity and anti-affinity to the same": {smallPod("odd", func(p *cluster.Pod) {
			p.Affinity, p.AntiAffinity = []cluster.Term{affinityTo(catalog.LabelZone, "web")}, []cluster.Term{affinityTo(catalog.LabelZone, "web")}
		})},
		"anti-affinity to all pods and affinity to some": {smallPod("odd", func(p *cluster.Pod) {
			p.Affinity = []cluster.Term{affinityTo(hostname, "web")}
			p.AntiAffinity = []cluster.Term{{Key: hostname, AllNamespaces: true}}
		})},
		"minDomains above the number of domains": {smallPod("odd", func(p *cluster.Pod) {
			p.Spread = []cluster.Spread{{Key: "example.com/rack", MaxSkew: 1, MinDomains: math.MaxInt32, Selector: selectApp("odd")}}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkImpossible(t, odd)
		})
	}
}

// cycleWithAntiAffinity returns three apps with zone affinity in a cycle. The first app also has
// anti-affinity to the last.
func cycleWithAntiAffinity() []cluster.Pod {
	var out []cluster.Pod
	for i, app := range []string{"a", "b", "c"} {
		out = append(out, smallPod("odd-"+app, func(p *cluster.Pod) {
			p.Labels = requirements.Labels{"app": app}
			p.Affinity = []cluster.Term{affinityTo(catalog.LabelZone, string("bca"[i]))} // to the next app of the cycle
			if app == "a" {
				p.AntiAffinity = []cluster.Term{affinityTo(catalog.LabelZone, "c")}
			}
		}))
	}
	return out
}

// checkImpossible plans for the odd pods and three pods of a web server. It checks that the pods of the web server are
// placed, and that each odd pod is refused with a reason.
func checkImpossible(t *testing.T, odd []cluster.Pod) {
	t.Helper()
	s := cluster.Snapshot{Pools: anyPool, Pods: slices.Clone(odd)}
	for i := range 3 {
		s.Pods = append(s.Pods, smallPod(fmt.Sprintf("web-%d", i), func(p *cluster.Pod) { p.Labels = requirements.Labels{"app": "web"} }))
	}
	market := bigMarket(catalog.OnDemand)
	plan := packing.Solve(s, market, packing.DefaultEffort)
	if broken := verify.Check(s, market, plan); len(broken) > 0 {
		t.Errorf("the plan violates rules: %s", strings.Join(broken, "; "))
	}
	if len(plan.Refusals) != len(odd) {
		t.Errorf("%d pods are refused, want the %d odd ones: %+v", len(plan.Refusals), len(odd), plan.Refusals)
	}
	for _, r := range plan.Refusals {
		if !strings.HasPrefix(r.Pod, "default/odd") {
			t.Errorf("%s is refused, want only the odd pods refused: %+v", r.Pod, r.Reasons)
		}
		if len(r.Reasons) == 0 || r.Reasons[0].Code == packing.EffortSpent || r.Reasons[0].Code == "" {
			t.Errorf("%s is refused because of %+v, want a cause that a user can fix", r.Pod, r.Reasons)
		}
	}
	again := packing.Solve(shuffle(s), shuffleMarket(market), packing.DefaultEffort)
	if diff := cmp.Diff(plan, again, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the order of the input changes the plan:\n%s", diff)
	}
}

// TestThousandsOfDomains checks that two labels with a different value on each of 10,000 nodes are ordinary topology
// keys. Affinity, anti-affinity and spread work over them.
func TestThousandsOfDomains(t *testing.T) {
	t.Parallel()
	const nodes = 10_000
	s := cluster.Snapshot{Pools: anyPool}
	kind := &cluster.PodKind{Namespace: "default", Labels: requirements.Labels{"app": "cache"}}
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		room := resources.Amounts{CPU: 4000, Memory: 16 << 30, Pods: 20}
		n := cluster.Node{
			Name: name, Joined: true, Initialized: true, Capacity: room, Allocatable: room,
			Labels: requirements.Labels{
				hostname: name, catalog.LabelZone: "us-east-1a", "example.com/rack": fmt.Sprint("rack-", i), "example.com/serial": fmt.Sprint(i),
			},
		}
		if i == 17 { // the rack of the cache
			n.Residents = []cluster.Resident{{PodKind: kind, Count: 1}}
		}
		s.Nodes = append(s.Nodes, n)
	}
	add := func(count int, app string, change func(*cluster.Pod)) {
		for i := range count {
			p := smallPod(fmt.Sprintf("%s-%04d", app, i), change)
			p.Labels = requirements.Labels{"app": app}
			s.Pods = append(s.Pods, p)
		}
	}
	add(1000, "apart", func(p *cluster.Pod) { p.AntiAffinity = []cluster.Term{affinityTo("example.com/rack", "apart")} })
	add(500, "twice", func(p *cluster.Pod) {
		p.AntiAffinity = []cluster.Term{affinityTo("example.com/rack", "twice"), affinityTo("example.com/serial", "twice")}
	})
	add(500, "spread", func(p *cluster.Pod) {
		p.Spread = []cluster.Spread{{Key: "example.com/rack", MaxSkew: 1, Selector: selectApp("spread")}}
	})
	add(5, "near", func(p *cluster.Pod) { p.Affinity = []cluster.Term{affinityTo("example.com/rack", "cache")} })
	add(20, "odd", func(p *cluster.Pod) {
		p.Affinity, p.AntiAffinity = []cluster.Term{affinityTo("example.com/rack", "cache")},
			[]cluster.Term{affinityTo("example.com/rack", "odd")}
	})

	market := bigMarket(catalog.OnDemand)
	plan := packing.Solve(s, market, packing.DefaultEffort)
	if broken := verify.Check(s, market, plan); len(broken) > 0 {
		t.Errorf("%d rules broken, the first: %s", len(broken), broken[0])
	}
	if len(plan.PlannedNodes) > 0 || len(plan.Refusals) != 19 {
		t.Errorf("%d new nodes and %d refusals, want 0 and 19: only one of the odd pods fits on the rack of the cache",
			len(plan.PlannedNodes), len(plan.Refusals))
	}
	for _, r := range plan.Refusals {
		if !strings.HasPrefix(r.Pod, "default/odd") || len(r.Reasons) == 0 {
			t.Errorf("%s is refused: %+v; want only odd pods, with reasons", r.Pod, r.Reasons)
		}
	}
}

// TestHugePods checks that pods are placed even if only the largest instance type has room for them.
func TestHugePods(t *testing.T) {
	t.Parallel()
	huge := bigType("u", "amd64", "24tb1", 448, 24<<10, 100, 218*catalog.Dollar, []string{catalog.OnDemand})
	market := bigMarket(catalog.OnDemand)
	c := market["default"]
	c.Types = append(c.Types, huge)
	market["default"] = c
	s := cluster.Snapshot{Pools: anyPool}
	for i := range 40 {
		s.Pods = append(s.Pods, smallPod(fmt.Sprint("huge-", i), func(p *cluster.Pod) { p.Requests.Memory = int64(1+i/2) << 40 }))
	}
	plan := packing.Solve(s, market, packing.DefaultEffort)
	if broken := verify.Check(s, market, plan); len(broken) > 0 || len(plan.Refusals) > 0 {
		t.Errorf("%d refusals %+v, violated rules %q; want neither", len(plan.Refusals), plan.Refusals, broken)
	}
}

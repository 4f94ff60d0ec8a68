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

// called returns a selector for one app.
func called(app string) cluster.Selector {
	return cluster.Selector{Labels: requirements.Requirements{"app": requirements.OneOf(app)}}
}

func by(key, app string) cluster.Term {
	return cluster.Term{Key: key, Namespaces: []string{"default"}, Selector: called(app)}
}

// modest returns a small pod of an app, changed.
func modest(name string, change func(*cluster.Pod)) cluster.Pod {
	p := cluster.Pod{
		Namespace: "default", Name: name, Labels: requirements.Labels{"app": name},
		Requests: resources.Amounts{CPU: 500, Memory: 1 << 30, Pods: 1},
	}
	change(&p)
	return p
}

// TestNonsensePods: whatever some pods ask for, they are refused with a reason, and the others are planned.
func TestNonsensePods(t *testing.T) {
	t.Parallel()
	asks := func(of resources.Amounts) []cluster.Pod {
		return []cluster.Pod{modest("odd", func(p *cluster.Pod) { p.Requests = of })}
	}
	requires := func(key string, v requirements.Values) []cluster.Pod {
		return []cluster.Pod{modest("odd", func(p *cluster.Pod) { p.Required = []requirements.Requirements{{key: v}} })}
	}
	near := func(key string, of ...string) []cluster.Pod { // each near the next of them
		var out []cluster.Pod
		for i := 0; i+1 < len(of); i++ {
			out = append(out, modest("odd-"+of[i], func(p *cluster.Pod) {
				p.Labels, p.Affinity = requirements.Labels{"app": of[i]}, []cluster.Term{by(key, of[i+1])}
			}))
		}
		return out
	}
	unknown, _ := requirements.ValuesOf("Nearly", "b")
	compared, _ := requirements.ValuesOf(requirements.Gt, "many")
	for name, odd := range map[string][]cluster.Pod{
		"an unknown operator":             requires("a", unknown),
		"an unknown operator on zones":    requires(catalog.LabelZone, unknown),
		"more than a word":                requires(catalog.LabelCPU, compared),
		"more than the largest integer":   requires(catalog.LabelCPU, requirements.OneOf()),
		"a label that nobody has":         requires("nobody", requirements.Any()),
		"less than no processor":          asks(resources.Amounts{CPU: -1, Memory: 1 << 30, Pods: 1}),
		"less than no memory":             asks(resources.Amounts{CPU: 1, Memory: math.MinInt64, Pods: 1}),
		"all memory that has a number":    asks(resources.Amounts{CPU: 1, Memory: math.MaxInt64, Pods: 1}),
		"a hundred TiB":                   asks(resources.Amounts{CPU: 1, Memory: 100 << 40, Pods: 1}),
		"more than any type has":          asks(resources.Amounts{CPU: 1, Memory: 30 << 40, Pods: 1}),
		"less than no device":             asks(resources.Amounts{CPU: 1, Pods: 1}.With("example.com/thing", -5)),
		"all devices that have a number":  asks(resources.Amounts{CPU: 1, Pods: 1}.With("example.com/thing", math.MaxInt64)),
		"a device that nobody has":        asks(resources.Amounts{CPU: 1, Pods: 1}.With("example.com/thing", 1)),
		"a circle of two by zone":         near(catalog.LabelZone, "a", "b", "a"),
		"a circle of three by zone":       near(catalog.LabelZone, "a", "b", "c", "a"),
		"a circle of three by host":       near(hostname, "a", "b", "c", "a"),
		"a chain that ends nowhere":       near(hostname, "a", "b", "c", "nobody"),
		"a circle by a label of nobody":   near("example.com/rack", "a", "b", "a"),
		"an empty topology key":           near("", "a", "b", "a"),
		"a circle that is kept apart too": circleApart(),
		"a selector of nothing": {modest("odd", func(p *cluster.Pod) {
			p.Affinity = []cluster.Term{{Key: catalog.LabelZone, Selector: cluster.Selector{Nothing: true}}}
		})},
		"a selector that contradicts itself": {modest("odd", func(p *cluster.Pod) {
			p.Affinity = []cluster.Term{{Key: catalog.LabelZone, Namespaces: []string{"default"}, Selector: cluster.Selector{
				Labels: requirements.Requirements{"app": requirements.OneOf()},
			}}}
		})},
		"no namespaces": {modest("odd", func(p *cluster.Pod) {
			p.Affinity = []cluster.Term{{Key: catalog.LabelZone, Selector: called("odd")}}
		})},
		"near and apart of the same": {modest("odd", func(p *cluster.Pod) {
			p.Affinity, p.AntiAffinity = []cluster.Term{by(catalog.LabelZone, "web")}, []cluster.Term{by(catalog.LabelZone, "web")}
		})},
		"apart of everybody, and near somebody": {modest("odd", func(p *cluster.Pod) {
			p.Affinity = []cluster.Term{by(hostname, "web")}
			p.AntiAffinity = []cluster.Term{{Key: hostname, AllNamespaces: true}}
		})},
		"more domains than there are, of others": {modest("odd", func(p *cluster.Pod) {
			p.Spread = []cluster.Spread{{Key: "example.com/rack", MaxSkew: 1, MinDomains: math.MaxInt32, Selector: called("odd")}}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkNonsense(t, odd)
		})
	}
}

// circleApart is three apps that must be near one another in a circle by zone, the first and the last of which must not be.
func circleApart() []cluster.Pod {
	var out []cluster.Pod
	for i, app := range []string{"a", "b", "c"} {
		out = append(out, modest("odd-"+app, func(p *cluster.Pod) {
			p.Labels = requirements.Labels{"app": app}
			p.Affinity = []cluster.Term{by(catalog.LabelZone, string("bca"[i]))}
			if app == "a" {
				p.AntiAffinity = []cluster.Term{by(catalog.LabelZone, "c")}
			}
		}))
	}
	return out
}

// checkNonsense plans for the odd pods among three of a web server: those have places, the odd ones a reason each.
func checkNonsense(t *testing.T, odd []cluster.Pod) {
	t.Helper()
	s := cluster.Snapshot{Pools: anyPool, Pods: slices.Clone(odd)}
	for i := range 3 {
		s.Pods = append(s.Pods, modest(fmt.Sprintf("web-%d", i), func(p *cluster.Pod) { p.Labels = requirements.Labels{"app": "web"} }))
	}
	market := bigMarket(catalog.OnDemand)
	plan := packing.Solve(s, market, packing.Usual)
	if broken := verify.Check(s, market, plan); len(broken) > 0 {
		t.Errorf("the plan is wrong: %s", strings.Join(broken, "; "))
	}
	if len(plan.Refusals) != len(odd) {
		t.Errorf("%d pods are refused, want the %d odd ones: %+v", len(plan.Refusals), len(odd), plan.Refusals)
	}
	for _, r := range plan.Refusals {
		if !strings.HasPrefix(r.Pod, "default/odd") {
			t.Errorf("%s is refused: %+v", r.Pod, r.Reasons)
		}
		if len(r.Reasons) == 0 || r.Reasons[0].Code == packing.EffortSpent || r.Reasons[0].Code == "" {
			t.Errorf("%s is refused for %+v, which tells nobody what to do", r.Pod, r.Reasons)
		}
	}
	again := packing.Solve(shuffle(s), shuffleMarket(market), packing.Usual)
	if diff := cmp.Diff(plan, again, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the order of the input changes the plan:\n%s", diff)
	}
}

// TestThousandsOfDomains: a label of which each of 10,000 nodes has a value of its own, and a second such label,
// are domains like any: pods keep apart over them, are spread over them and follow others there.
func TestThousandsOfDomains(t *testing.T) {
	t.Parallel()
	const nodes = 10_000
	s := cluster.Snapshot{Pools: anyPool}
	kind := &cluster.Kind{Namespace: "default", Labels: requirements.Labels{"app": "cache"}}
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		room := resources.Amounts{CPU: 4000, Memory: 16 << 30, Pods: 20}
		n := cluster.Node{
			Name: name, Joined: true, Initialized: true, Capacity: room, Allocatable: room,
			Labels: requirements.Labels{
				hostname: name, catalog.LabelZone: "us-east-1a", "example.com/rack": fmt.Sprint("rack-", i), "example.com/serial": fmt.Sprint(i),
			},
		}
		if i == 17 {
			n.Residents = []cluster.Resident{{Kind: kind, Count: 1}}
		}
		s.Nodes = append(s.Nodes, n)
	}
	add := func(count int, app string, change func(*cluster.Pod)) {
		for i := range count {
			p := modest(fmt.Sprintf("%s-%04d", app, i), change)
			p.Labels = requirements.Labels{"app": app}
			s.Pods = append(s.Pods, p)
		}
	}
	add(1000, "apart", func(p *cluster.Pod) { p.AntiAffinity = []cluster.Term{by("example.com/rack", "apart")} })
	add(500, "twice", func(p *cluster.Pod) {
		p.AntiAffinity = []cluster.Term{by("example.com/rack", "twice"), by("example.com/serial", "twice")}
	})
	add(500, "spread", func(p *cluster.Pod) {
		p.Spread = []cluster.Spread{{Key: "example.com/rack", MaxSkew: 1, Selector: called("spread")}}
	})
	add(5, "near", func(p *cluster.Pod) { p.Affinity = []cluster.Term{by("example.com/rack", "cache")} })
	add(20, "odd", func(p *cluster.Pod) {
		p.Affinity, p.AntiAffinity = []cluster.Term{by("example.com/rack", "cache")}, []cluster.Term{by("example.com/rack", "odd")}
	})

	market := bigMarket(catalog.OnDemand)
	plan := packing.Solve(s, market, packing.Usual)
	if broken := verify.Check(s, market, plan); len(broken) > 0 {
		t.Errorf("%d rules broken, the first: %s", len(broken), broken[0])
	}
	if len(plan.Machines) > 0 || len(plan.Refusals) != 19 {
		t.Errorf("%d machines, %d refusals, want none and 19: one of the odd ones fits on the rack", len(plan.Machines), len(plan.Refusals))
	}
	for _, r := range plan.Refusals {
		if !strings.HasPrefix(r.Pod, "default/odd") || len(r.Reasons) == 0 {
			t.Errorf("%s is refused: %+v", r.Pod, r.Reasons)
		}
	}
}

// TestHugePods: what the largest machines have is not absurd.
func TestHugePods(t *testing.T) {
	t.Parallel()
	huge := bigType("u", "amd64", "24tb1", 448, 24<<10, 100, 218*catalog.Dollar, []string{catalog.OnDemand})
	market := bigMarket(catalog.OnDemand)
	c := market["default"]
	c.Types = append(c.Types, huge)
	market["default"] = c
	s := cluster.Snapshot{Pools: anyPool}
	for i := range 40 {
		s.Pods = append(s.Pods, modest(fmt.Sprint("huge-", i), func(p *cluster.Pod) { p.Requests.Memory = int64(1+i/2) << 40 }))
	}
	plan := packing.Solve(s, market, packing.Usual)
	if broken := verify.Check(s, market, plan); len(broken) > 0 || len(plan.Refusals) > 0 {
		t.Errorf("%d refusals %+v, broken: %q", len(plan.Refusals), plan.Refusals, broken)
	}
}

package packing_test

import (
	"fmt"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// hostileKind describes small pods of a tenant, each with many distinct rules.
type hostileKind struct {
	name string
	n    int                            // number of pods, as observed for one tenant
	pod  func(p *cluster.Pod, i, n int) // gives the i-th of n pods its rules
}

const (
	hostLabel = "kubernetes.io/hostname"
	zoneLabel = "topology.kubernetes.io/zone"
)

// hostileKinds are the kinds that the solver must handle. Names with -by-pod: every pod has rules about single pods.
var hostileKinds = []hostileKind{
	{"preferred-anti-affinity", 400, func(p *cluster.Pod, i, _ int) { p.AntiAffinity = ownTerms(50, i, requirements.NoneOf, 1) }},
	{"preferred-anti-affinity-by-pod", 400, func(p *cluster.Pod, i, n int) {
		p.Labels, p.AntiAffinity = requirements.Labels{"id": fmt.Sprint(i)}, pairTerms(50, i, n, requirements.NoneOf, 1)
	}},
	{"required-anti-affinity", 500, func(p *cluster.Pod, i, _ int) { p.AntiAffinity = ownTerms(50, i, requirements.OneOf, 0) }},
	{"required-anti-affinity-by-pod", 500, func(p *cluster.Pod, i, n int) {
		p.Labels, p.AntiAffinity = requirements.Labels{"id": fmt.Sprint(i)}, pairTerms(50, i, n, requirements.OneOf, 0)
	}},
	{"required-anti-affinity-to-all", 500, func(p *cluster.Pod, i, n int) {
		p.Labels, p.AntiAffinity = requirements.Labels{"id": fmt.Sprint(i)}, pairTerms(50, i, n, requirements.NoneOf, 0)
	}},
	{"preferred-affinity", 400, func(p *cluster.Pod, i, _ int) { p.Affinity = ownTerms(50, i, requirements.NoneOf, 1) }},
	{"required-affinity", 400, func(p *cluster.Pod, i, _ int) { p.Affinity = ownTerms(50, i, requirements.NoneOf, 0) }},
	{"host-ports", 100, func(p *cluster.Pod, i, _ int) {
		for t := range 200 {
			p.HostPorts = append(p.HostPorts, cluster.HostPort{IP: "0.0.0.0", Port: int32(1 + (i*37+t*13)%60000), Protocol: "TCP"})
		}
	}},
	{"extended-resources", 4000, func(p *cluster.Pod, i, _ int) {
		p.Requests.Extended = []resources.Extended{{Name: fmt.Sprint("h.example/r", i), Value: 1}}
	}},
	{"preferred-spread", 125, func(p *cluster.Pod, i, _ int) { p.Spread = ownSpreads(8, i, true) }},
	{"preferred-spread-1000", 1, func(p *cluster.Pod, i, _ int) { p.Spread = ownSpreads(1000, i, true) }},
	{"required-spread-1000", 1, func(p *cluster.Pod, i, _ int) { p.Spread = ownSpreads(1000, i, false) }},
	{"required-spread", 1000, func(p *cluster.Pod, i, _ int) {
		p.Labels = requirements.Labels{"a": fmt.Sprint("b", i)}
		all := cluster.Selector{Labels: requirements.Requirements{"a": requirements.NoneOf(fmt.Sprint("x", i))}}
		p.Spread = []cluster.Spread{{Key: zoneLabel, MaxSkew: 1, Selector: all}, {Key: hostLabel, MaxSkew: 1, Selector: all}}
	}},
	{"required-spread-by-pod", 1000, func(p *cluster.Pod, i, _ int) {
		p.Labels = requirements.Labels{"id": fmt.Sprint(i)}
		allButNext := cluster.Selector{Labels: requirements.Requirements{"id": requirements.NoneOf(fmt.Sprint(i + 1))}}
		p.Spread = []cluster.Spread{
			{Key: zoneLabel, MaxSkew: 1, Selector: allButNext}, {Key: hostLabel, MaxSkew: 1, Selector: allButNext},
		}
	}},
	{"preferred-affinity-by-pod", 400, func(p *cluster.Pod, i, n int) {
		p.Labels, p.Affinity = requirements.Labels{"id": fmt.Sprint(i)}, pairTerms(50, i, n, requirements.NoneOf, 1)
	}},
	{"required-affinity-by-pod", 400, func(p *cluster.Pod, i, n int) {
		p.Labels, p.Affinity = requirements.Labels{"id": fmt.Sprint(i)}, pairTerms(50, i, n, requirements.NoneOf, 0)
	}},
	{"one-anti-affinity-by-pod", 2000, func(p *cluster.Pod, i, n int) {
		p.Labels, p.AntiAffinity = requirements.Labels{"id": fmt.Sprint(i)}, pairTerms(1, i, n, requirements.NoneOf, 0)
	}},
	{"one-preferred-anti-affinity-by-pod", 2000, func(p *cluster.Pod, i, n int) {
		p.Labels, p.AntiAffinity = requirements.Labels{"id": fmt.Sprint(i)}, pairTerms(1, i, n, requirements.NoneOf, 1)
	}},
	{"node-affinity-terms", 50, func(p *cluster.Pod, i, _ int) {
		for t := range 10_000 {
			p.Required = append(p.Required, requirements.Requirements{fmt.Sprint("h.example/k", t): requirements.OneOf(fmt.Sprint("v", t))})
		}
		p.Required = append(p.Required, requirements.Requirements{fmt.Sprint("z", i): requirements.Any()})
	}},
	{"node-affinity", 10_000, func(p *cluster.Pod, i, _ int) {
		for t := range 50 {
			p.Required = append(p.Required, requirements.Requirements{
				catalog.LabelArch:            requirements.OneOf("amd64"),
				fmt.Sprint("h.example/k", t): requirements.NoneOf(fmt.Sprint("v", i, "-", t)),
			})
		}
	}},
	{"values", 10, func(p *cluster.Pod, i, _ int) {
		values := make([]string, 60_000)
		for t := range values {
			values[t] = fmt.Sprint("v", i, "-", t)
		}
		p.Required = []requirements.Requirements{{catalog.LabelArch: requirements.NoneOf(values...)}}
	}},
	{"preferences", 20, func(p *cluster.Pod, i, _ int) {
		for t := range 5000 {
			p.Preferred = append(p.Preferred,
				cluster.Preference{Weight: 1 + t%100, Requirements: requirements.Requirements{fmt.Sprint("h.example/k", t): requirements.OneOf("v")}})
		}
		p.Preferred = append(p.Preferred,
			cluster.Preference{Weight: 3, Requirements: requirements.Requirements{fmt.Sprint("u", i): requirements.OneOf("x")}})
	}},
	{"narrowing-preferences", 100, func(p *cluster.Pod, i, _ int) {
		for t := range 50 {
			values := []string{}
			for k := range 60 - t {
				values = append(values, families[(i+k)%len(families)].name)
			}
			p.Preferred = append(p.Preferred,
				cluster.Preference{Weight: 100 - t, Requirements: requirements.Requirements{catalog.LabelFamily: requirements.OneOf(values...)}})
		}
	}},
	{"tolerations", 1000, func(p *cluster.Pod, i, _ int) {
		p.Priority = int32(i)
		for t := range 100 {
			p.Tolerations = append(p.Tolerations, requirements.Toleration{Key: fmt.Sprint("k", t), Operator: "Equal", Value: fmt.Sprint("v", i)})
		}
	}},
}

// ownTerms returns terms over hosts and zones, with label values that only the i-th pod uses. A weight above 0 makes
// them preferred.
func ownTerms(terms, i int, operator func(...string) requirements.Values, weight int) []cluster.Term {
	out := make([]cluster.Term, terms)
	for t := range out {
		out[t] = cluster.Term{Key: hostLabel, Namespaces: []string{"tenant"}, Selector: cluster.Selector{
			Labels: requirements.Requirements{fmt.Sprint("k", t): operator(fmt.Sprint("v", i, "-", t))},
		}}
		if t%2 == 1 {
			out[t].Key = zoneLabel
		}
		if weight > 0 {
			out[t].Weight = 1 + t%100
		}
	}
	return out
}

// pairTerms returns terms over hosts, each about a different pair of the n pods. With requirements.OneOf as operator, a
// term selects the pair; with NoneOf, all pods except the pair.
func pairTerms(terms, i, n int, operator func(...string) requirements.Values, weight int) []cluster.Term {
	out := ownTerms(terms, i, operator, weight)
	for t := range out {
		out[t].Key = hostLabel
		one, other := (i*7+t*13+1)%n, (i+t*t*3+5)%n
		out[t].Selector = cluster.Selector{Labels: requirements.Requirements{"id": operator(fmt.Sprint(one), fmt.Sprint(other))}}
	}
	return out
}

// ownSpreads returns spreads over labels that no node has.
func ownSpreads(n, i int, soft bool) []cluster.Spread {
	out := make([]cluster.Spread, n)
	for t := range out {
		out[t] = cluster.Spread{Key: fmt.Sprint("h.example/t", i*n+t), MaxSkew: 1, Soft: soft, Selector: cluster.Selector{
			Labels: requirements.Exactly(requirements.Labels{"k0": fmt.Sprint("w", i%7)}),
		}}
	}
	return out
}

func hostilePods(k hostileKind, n int) []cluster.Pod {
	out := make([]cluster.Pod, n)
	for i := range out {
		out[i] = cluster.Pod{
			Namespace: "tenant", Name: fmt.Sprintf("h-%05d", i), Labels: requirements.Labels{},
			Requests: resources.Amounts{CPU: 10, Memory: 16 << 20, Pods: 1},
		}
		for x := range 10 {
			out[i].Labels[fmt.Sprint("k", x)] = fmt.Sprint("w", i%7)
		}
		k.pod(&out[i], i, n)
	}
	return out
}

// BenchmarkHostile measures how the cost grows with the number of hostile pods: half, once and
// twice the observed number.
func BenchmarkHostile(b *testing.B) {
	market := realMarket(b)
	for _, k := range hostileKinds {
		for _, n := range []int{(k.n + 1) / 2, k.n, 2 * k.n} {
			b.Run(fmt.Sprintf("%s/%d", k.name, n), func(b *testing.B) {
				s := cluster.Snapshot{Pools: anyPool, Pods: hostilePods(k, n)}
				var plan packing.Plan
				b.ReportAllocs()
				for b.Loop() {
					plan = packing.Solve(s, market, packing.DefaultEffort)
				}
				b.ReportMetric(float64(len(plan.PlannedNodes)), "nodes")
				b.ReportMetric(float64(len(plan.Refusals)), "refusals")
				b.ReportMetric(float64(len(plan.Omissions)), "omissions")
				b.ReportMetric(float64(plan.Steps), "steps")
			})
		}
	}
}

package consolidation_test

import (
	"fmt"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// hostileKinds are kinds of running pods with many scheduling rules, as a hostile tenant could create them.
var hostileKinds = []struct {
	name string
	n    int                            // number of pods; the benchmark also uses half and twice this number
	with func(p *cluster.Pod, i, n int) // adds the rules to pod i of n
}{
	{"preferred-anti-affinity", 400, func(p *cluster.Pod, i, _ int) { p.AntiAffinity = manyTerms(i, 1, requirements.NoneOf) }},
	{"required-anti-affinity", 400, func(p *cluster.Pod, i, _ int) { p.AntiAffinity = manyTerms(i, 0, requirements.OneOf) }},
	{"required-anti-affinity-by-pod", 400, func(p *cluster.Pod, i, n int) {
		p.Labels = requirements.Labels{"id": fmt.Sprint(i)}
		p.AntiAffinity = manyTerms(i, 0, requirements.OneOf)
		for t := range p.AntiAffinity {
			p.AntiAffinity[t].Selector.Labels = requirements.Requirements{"id": requirements.OneOf(fmt.Sprint((i + 1 + t*t) % n))}
		}
	}},
	{"host-ports", 100, func(p *cluster.Pod, i, _ int) {
		for t := range 200 { // pods i and i+13 share ports
			p.HostPorts = append(p.HostPorts, cluster.HostPort{IP: "0.0.0.0", Port: int32(1 + (i*37+t*13)%60000), Protocol: "TCP"})
		}
	}},
	{"node-affinity", 400, func(p *cluster.Pod, i, _ int) {
		for t := range 200 {
			p.Required = append(p.Required, requirements.Requirements{fmt.Sprint("h.example/k", t): requirements.NoneOf(fmt.Sprint("v", i, "-", t))})
		}
	}},
}

// manyTerms returns 50 affinity terms for pod i. Terms with weight 0 are required. Each term selects pods by one label.
// values is requirements.OneOf or requirements.NoneOf: the term requires or excludes one value of the label.
func manyTerms(i, weight int, values func(...string) requirements.Values) []cluster.Term {
	out := make([]cluster.Term, 50)
	for t := range out {
		out[t] = cluster.Term{
			Key: []string{"kubernetes.io/hostname", "topology.kubernetes.io/zone"}[t%2], Namespaces: []string{"tenant"}, Weight: weight * (1 + t),
			Selector: cluster.Selector{Labels: requirements.Requirements{fmt.Sprint("k", t): values(fmt.Sprint("v", i, "-", t))}},
		}
	}
	return out
}

// BenchmarkHostile measures one pass over fleets with pods of hostileKinds, after half of all pods have been removed.
func BenchmarkHostile(b *testing.B) {
	for _, k := range hostileKinds {
		for _, n := range []int{k.n / 2, k.n, 2 * k.n} {
			b.Run(fmt.Sprintf("%s/%d", k.name, n), func(b *testing.B) {
				d := dice(1)
				pods := mixedPods(2000, 40, &d)
				for i := range n {
					p := cluster.Pod{
						Namespace: "tenant", Name: fmt.Sprintf("h-%04d", i), Owner: fmt.Sprint("ReplicaSet/h-", i),
						Requests: resources.Amounts{CPU: 250, Memory: 256 << 20, Pods: 1}, Labels: requirements.Labels{"k0": fmt.Sprint("w", i%7)},
					}
					k.with(&p, i, n)
					pods = append(pods, p)
				}
				in := fleet(b, []cluster.Pool{{Name: "general", NodeClass: "default"}}, pods, realMarket(b, 4, 32))
				scaleDown(&in, 50, &d)
				measure(b, in)
			})
		}
	}
}

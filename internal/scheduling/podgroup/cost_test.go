package podgroup_test

import (
	"fmt"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// TestCost checks that an ordinary pod costs 1, and that the cost grows with each list that a pod can have.
func TestCost(t *testing.T) {
	t.Parallel()
	app := cluster.Selector{Labels: requirements.Exactly(requirements.Labels{"app": "web"})}
	node := requirements.Exactly(requirements.Labels{"kubernetes.io/arch": "amd64", "karpenter.sh/nodepool": "general"})
	ordinary := cluster.Pod{
		Required: []requirements.Requirements{node}, Preferred: []cluster.Preference{{Weight: 1, Requirements: node}},
		Tolerations:  make([]requirements.Toleration, 3),
		HostPorts:    make([]cluster.HostPort, 2),
		Spread:       []cluster.Spread{{Key: "topology.kubernetes.io/zone", Selector: app}, {Key: "kubernetes.io/hostname", Selector: app}},
		AntiAffinity: []cluster.Term{{Key: "kubernetes.io/hostname", Weight: 100, Selector: app}},
		Requests:     resources.Amounts{Extended: []resources.Extended{{Name: "nvidia.com/gpu", Value: 1}}},
	}
	if got := podgroup.Cost(&ordinary); got != 1 {
		t.Errorf("an ordinary pod costs %d, want 1", got)
	}
	const valuesPerPoint = 8 // as in the package
	values := make([]string, 60_000)
	for i := range values {
		values[i] = fmt.Sprint("v", i)
	}
	for name, more := range map[string]func(p *cluster.Pod, n int){
		"spread constraints":  func(p *cluster.Pod, n int) { p.Spread = make([]cluster.Spread, n) },
		"affinity terms":      func(p *cluster.Pod, n int) { p.Affinity = make([]cluster.Term, n) },
		"anti-affinity terms": func(p *cluster.Pod, n int) { p.AntiAffinity = make([]cluster.Term, n) },
		"node affinity terms": func(p *cluster.Pod, n int) { p.Required = make([]requirements.Requirements, n) },
		"preferences":         func(p *cluster.Pod, n int) { p.Preferred = make([]cluster.Preference, n) },
		"tolerations":         func(p *cluster.Pod, n int) { p.Tolerations = make([]requirements.Toleration, n) },
		"host ports":          func(p *cluster.Pod, n int) { p.HostPorts = make([]cluster.HostPort, n) },
		"extended resources":  func(p *cluster.Pod, n int) { p.Requests.Extended = make([]resources.Extended, n) },
		"volumes":             func(p *cluster.Pod, n int) { p.Volumes = make([]string, n) },
		"values of a node label": func(p *cluster.Pod, n int) {
			p.Required = []requirements.Requirements{{"a": requirements.NoneOf(values[:n*valuesPerPoint]...)}}
		},
		"values of a preference": func(p *cluster.Pod, n int) {
			preferred := requirements.Requirements{"a": requirements.OneOf(values[:n*valuesPerPoint]...)}
			p.Preferred = []cluster.Preference{{Requirements: preferred}}
		},
		"values of a selector": func(p *cluster.Pod, n int) {
			selected := requirements.Requirements{"a": requirements.OneOf(values[:n*valuesPerPoint]...)}
			p.Spread = []cluster.Spread{{Selector: cluster.Selector{Labels: selected}}}
		},
		"namespaces of a term": func(p *cluster.Pod, n int) { p.AntiAffinity = []cluster.Term{{Namespaces: values[:n*valuesPerPoint]}} },
	} {
		cost := func(n int) int {
			p := ordinary
			more(&p, n)
			return podgroup.Cost(&p)
		}
		// 1,000 items have at least 1,000 points: 59 units. The ordinary points do not double, hence less 10.
		few, many, twice := cost(1), cost(1000), cost(2000)
		if few != 1 || many < 50 || twice < 2*many-10 {
			t.Errorf("%s: 1 cost %d, 1,000 cost %d, 2,000 cost %d; want 1, at least 50, at least twice the second less 10",
				name, few, many, twice)
		}
	}
}

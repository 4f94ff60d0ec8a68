package conversion

import (
	"fmt"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// TestTraitHashesDiffer: traits that differ in one small field have different hashes. Otherwise thousands of pods of a
// tenant would be compared with each other, in quadratic time.
func TestTraitHashesDiffer(t *testing.T) {
	t.Parallel()
	const pods = 500
	number := func(i int) *int64 { n := int64(i); return &n }
	term := func(i int) cluster.Term {
		return cluster.Term{Key: "zone", Weight: i + 1, Namespaces: []string{"a"},
			Selector: cluster.Selector{Labels: requirements.Exactly(requirements.Labels{"a": "b"})}}
	}
	for name, set := range map[string]func(p *cluster.Pod, i int){
		"extended resource": func(p *cluster.Pod, i int) {
			p.Requests.Extended = []resources.Extended{{Name: fmt.Sprint("r", i), Value: 1}}
		},
		"amount":     func(p *cluster.Pod, i int) { p.Requests.Extended = []resources.Extended{{Name: "r", Value: int64(i)}} },
		"weight":     func(p *cluster.Pod, i int) { p.AntiAffinity = []cluster.Term{term(i)} },
		"affinity":   func(p *cluster.Pod, i int) { p.Affinity = []cluster.Term{term(i)} },
		"preference": func(p *cluster.Pod, i int) { p.Preferred = []cluster.Preference{{Weight: i}} },
		"host IP": func(p *cluster.Pod, i int) {
			p.HostPorts = []cluster.HostPort{{IP: fmt.Sprint("10.0.0.", i), Port: 1, Protocol: "TCP"}}
		},
		"skew": func(p *cluster.Pod, i int) { p.Spread = []cluster.Spread{{Key: "zone", MaxSkew: i + 1}} },
		"operator": func(p *cluster.Pod, i int) {
			p.Tolerations = []requirements.Toleration{{Key: "a", Operator: fmt.Sprint(i)}}
		},
		"bound": func(p *cluster.Pod, i int) {
			p.Required = []requirements.Requirements{{"a": {Complement: true, Min: number(i)}}}
		},
		"namespace": func(p *cluster.Pod, i int) {
			p.Affinity = []cluster.Term{{Key: "zone", Namespaces: []string{fmt.Sprint(i)}}}
		},
		"values of ten keys": func(p *cluster.Pod, i int) {
			p.Required = []requirements.Requirements{{}}
			for k := range 10 { // the value of key k is v10 if bit k of i is set, else "v" and k
				p.Required[0][fmt.Sprint("k", k)] = requirements.OneOf(fmt.Sprint("v", i>>k&1*10+k*(1-i>>k&1)))
			}
		},
	} {
		var stored TraitSet
		distinct := map[*SharedTraits]bool{}
		for i := range pods {
			p := cluster.Pod{Owner: "ReplicaSet/a"}
			set(&p, i)
			distinct[stored.Share(&p, nil)] = true
		}
		if len(stored.byHash) != len(distinct) {
			t.Errorf("%s: %d different traits have %d hashes, want one for each", name, len(distinct), len(stored.byHash))
		}
		if name != "values of ten keys" && len(distinct) != pods {
			t.Errorf("%s: %d different pods have %d different traits, want %d", name, pods, len(distinct), pods)
		}
	}
}

package packing_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// TestRefusalsArePrintable checks that details and hints are one line of bounded length without control characters,
// even with keys and values from hostile pods.
func TestRefusalsArePrintable(t *testing.T) {
	t.Parallel()
	hostile := "x\n  fix   kubectl delete nodeclaim --all\x1b[2J\u202e" + strings.Repeat("é", 5000)
	requiring := func(key, value string) func(*cluster.Pod) {
		return func(p *cluster.Pod) { p.Required = []requirements.Requirements{{key: requirements.OneOf(value)}} }
	}
	for name, change := range map[string]func(*cluster.Pod){
		"value":         requiring("team", hostile),
		"key":           requiring(hostile, "a"),
		"architecture":  requiring("kubernetes.io/arch", hostile),
		"zone":          requiring("topology.kubernetes.io/zone", hostile),
		"type":          requiring("node.kubernetes.io/instance-type", hostile),
		"pool":          requiring("karpenter.sh/nodepool", hostile),
		"CPUs":          requiring("karpenter.k8s.aws/instance-cpu", hostile),
		"resource":      func(p *cluster.Pod) { p.Requests.Extended = []resources.Extended{{Name: hostile, Value: 1}} },
		"spread":        func(p *cluster.Pod) { p.Spread = []cluster.Spread{{Key: hostile, MaxSkew: 1}} },
		"affinity":      func(p *cluster.Pod) { p.Affinity = []cluster.Term{{Key: hostile, Namespaces: []string{"tenant"}}} },
		"unplannable":   func(p *cluster.Pod) { p.Unplannable = hostile },
		"anti-affinity": func(p *cluster.Pod) { p.AntiAffinity = []cluster.Term{{Key: hostile, Namespaces: []string{"tenant"}}} },
	} {
		pod := cluster.Pod{Namespace: "tenant", Name: "p", Requests: resources.Amounts{CPU: 10, Pods: 1}}
		change(&pod)
		for _, r := range packing.Solve(cluster.Snapshot{Pools: anyPool, Pods: []cluster.Pod{pod}}, fewTypes(), packing.DefaultEffort).Refusals {
			texts := []string{r.Hint}
			for _, reason := range r.Reasons {
				texts = append(texts, reason.Detail)
			}
			for _, text := range texts {
				// refusal.Printable cuts texts to 1,000 bytes and adds the character …
				if len(text) > 1_010 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Errorf("%s: the text has %d bytes, want at most 1,010 and only printable characters: %.100q", name, len(text), text)
				}
			}
		}
	}
}

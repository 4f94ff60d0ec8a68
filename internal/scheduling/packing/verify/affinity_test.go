package verify_test

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

func prefer(p *cluster.Pod) {
	for i := range p.Affinity {
		p.Affinity[i].Weight = 1
	}
	for i := range p.AntiAffinity {
		p.AntiAffinity[i].Weight = 1
	}
}

func inAllNamespaces(p *cluster.Pod) {
	for _, terms := range [][]cluster.Term{p.Affinity, p.AntiAffinity} {
		for i := range terms {
			terms[i].AllNamespaces, terms[i].Namespaces = true, nil
		}
	}
}

func withLabel(key, value string) func(*cluster.Pod) {
	return func(p *cluster.Pod) {
		l := requirements.Labels{key: value}
		for k, v := range p.Labels {
			l[k] = v
		}
		p.Labels = l
	}
}

// TestAffinity checks whether an order exists in which each pod can be bound with its required affinity.
func TestAffinity(t *testing.T) {
	t.Parallel()
	const noMatch = "no pod that its affinity selects"
	dbOfTierX := func(p *cluster.Pod) { // one pod must match both terms
		p.Affinity = []cluster.Term{
			{Key: zone, Namespaces: []string{"default"}, Selector: app("db")},
			{Key: zone, Namespaces: []string{"default"},
				Selector: cluster.Selector{Labels: requirements.Requirements{"tier": requirements.OneOf("x")}}},
		}
	}
	run(t, map[string]testCase{
		"resident in the zone": valid(func(w *world) {
			w.node("n1", "a", existing("db", 1))
			w.web(1, affinityTo(zone, "db"))
			w.launch("a", "web-1")
		}),
		"resident in another zone": invalid(noMatch, func(w *world) {
			w.node("n1", "a", existing("db", 1))
			w.web(1, affinityTo(zone, "db"))
			w.launch("b", "web-1")
		}),
		"resident possibly in another zone": invalid(noMatch, func(w *world) {
			w.node("n1", "a", existing("db", 1))
			w.web(1, affinityTo(zone, "db"))
			w.launch("a b", "web-1")
		}),
		"preferred term": valid(func(w *world) {
			w.web(1, affinityTo(zone, "db"), prefer)
			w.launch("b", "web-1")
		}),
		"no matching pod": invalid(noMatch, func(w *world) {
			w.web(1, affinityTo(zone, "db"))
			w.launch("a", "web-1")
		}),
		"resident that is being deleted matches": valid(func(w *world) {
			w.node("n1", "a", ending(existing("db", 1)))
			w.web(1, affinityTo(zone, "db"))
			w.launch("a", "web-1")
		}),
		"resident of another namespace does not match": invalid(noMatch, func(w *world) {
			w.node("n1", "a", existing("db", 1)).Residents[0].PodKind.Namespace = "other"
			w.web(1, affinityTo(zone, "db"))
			w.launch("a", "web-1")
		}),
		"resident of another namespace, all namespaces selected": valid(func(w *world) {
			w.node("n1", "a", existing("db", 1)).Residents[0].PodKind.Namespace = "other"
			w.web(1, affinityTo(zone, "db"), inAllNamespaces)
			w.launch("a", "web-1")
		}),
		"planned pod matches": valid(func(w *world) {
			w.web(1, affinityTo(zone, "db"))
			w.pod("db-1")
			w.launch("a", "web-1")
			w.launch("a", "db-1")
		}),
		"planned pod possibly in another zone": invalid(noMatch, func(w *world) {
			w.web(1, affinityTo(zone, "db"))
			w.pod("db-1")
			w.launch("a", "web-1")
			w.launch("a b", "db-1")
		}),
		"two pods on one node in any zone": valid(func(w *world) {
			w.web(1, affinityTo(zone, "db"))
			w.pod("db-1")
			w.launch("a b c", "web-1", "db-1")
		}),
		"same host": valid(func(w *world) {
			w.web(1, affinityTo(hostname, "db"))
			w.pod("db-1")
			w.launch("a b c", "web-1", "db-1")
		}),
		"different hosts": invalid(noMatch, func(w *world) {
			w.web(1, affinityTo(hostname, "db"))
			w.pod("db-1")
			w.launch("a", "web-1")
			w.launch("a", "db-1")
		}),
		"node without the label": invalid("affinity needs the label rack", func(w *world) {
			w.web(1, affinityTo("rack", "web"))
			w.launch("a", "web-1")
		}),

		"first pod with affinity to itself": valid(func(w *world) {
			w.web(3, affinityTo(zone, "web"))
			w.launch("a", "web-1", "web-2")
			w.launch("a", "web-3")
		}),
		"affinity to itself, two zones": invalid(noMatch, func(w *world) {
			w.web(2, affinityTo(zone, "web"))
			w.launch("a", "web-1")
			w.launch("b", "web-2")
		}),
		"affinity to itself, resident in another zone": invalid(noMatch, func(w *world) {
			w.web(2, affinityTo(zone, "web"))
			w.node("n1", "b", existing("web", 1))
			w.launch("a", "web-1", "web-2")
		}),
		"affinity to itself, one node in any zone": valid(func(w *world) {
			w.web(2, affinityTo(zone, "web"))
			w.launch("a b", "web-1", "web-2")
		}),
		"affinity to itself, two nodes in any zone": invalid(noMatch, func(w *world) {
			w.web(2, affinityTo(zone, "web"))
			w.launch("a b", "web-1")
			w.launch("a b", "web-2")
		}),
		"first pod must be bound before other matching pods": valid(func(w *world) {
			w.web(2, affinityTo(zone, "web"))
			w.pod("web-9") // has no rules, but web-1 and web-2 have affinity to it
			w.launch("b", "web-9")
			w.launch("a", "web-1", "web-2")
		}),
		"first pod in one zone, other matching pods in another": valid(func(w *world) {
			w.web(2, affinityTo(zone, "web"))
			w.pod("web-9")
			w.launch("b", "web-9", "web-1")
			w.launch("a", "web-2")
		}),
		"two zones need the first pod": invalid(noMatch, func(w *world) {
			w.web(3, affinityTo(zone, "web"))
			w.pod("web-9")
			w.launch("b", "web-9", "web-1")
			w.launch("a", "web-2")
			w.launch("c", "web-3")
		}),
		"cycle of two": invalid(noMatch, func(w *world) {
			w.web(1, affinityTo(zone, "db"))
			w.pod("db-1", affinityTo(zone, "web"))
			w.launch("a", "web-1", "db-1")
		}),
		"a chain": valid(func(w *world) {
			w.web(1, affinityTo(zone, "db"))
			w.pod("db-1", affinityTo(zone, "disk"))
			w.pod("disk-1")
			w.launch("a", "web-1")
			w.launch("a", "db-1")
			w.launch("a", "disk-1")
		}),

		"one pod matches both terms": valid(func(w *world) {
			w.web(1, dbOfTierX)
			w.pod("db-1", withLabel("tier", "x"))
			w.launch("a", "web-1", "db-1")
		}),
		"two pods match one term each": invalid(noMatch, func(w *world) {
			w.web(1, dbOfTierX)
			w.pod("db-1")
			w.pod("cache-1", withLabel("tier", "x"))
			w.launch("a", "web-1", "db-1", "cache-1")
		}),
		"terms over zone and host": valid(func(w *world) {
			w.web(1, affinityTo(zone, "db"), affinityTo(hostname, "db"))
			w.pod("db-1")
			w.launch("a", "web-1", "db-1")
		}),
		"affinity satisfied by zone, violated by host": invalid(noMatch, func(w *world) {
			w.web(1, affinityTo(zone, "db"), affinityTo(hostname, "db"))
			w.pod("db-1")
			w.launch("a", "web-1")
			w.launch("a", "db-1")
		}),
	})
}

// TestAntiAffinity checks that no pod is in a domain from which its own anti-affinity, or that of another pod, excludes
// it.
func TestAntiAffinity(t *testing.T) {
	t.Parallel()
	const ruledOut = "which anti-affinity rules out"
	run(t, map[string]testCase{
		"one per host": valid(func(w *world) {
			w.web(2, antiAffinityTo(hostname, "web"))
			w.launch("a", "web-1")
			w.launch("a", "web-2")
		}),
		"two per host": invalid("pod default/web-1 on planned node general-1 and pod default/web-1 on planned node general-1 may both be in kubernetes.io/hostname of planned node general-1",
			func(w *world) {
				w.web(2, antiAffinityTo(hostname, "web"))
				w.launch("a", "web-1", "web-2")
			}),
		"preferred term": valid(func(w *world) {
			w.web(2, antiAffinityTo(hostname, "web"), prefer)
			w.launch("a", "web-1", "web-2")
		}),
		"one per zone": valid(func(w *world) {
			w.web(2, antiAffinityTo(zone, "web"))
			w.launch("a", "web-1")
			w.launch("b", "web-2")
		}),
		"two possibly in one zone": invalid(ruledOut+"; zone b, which", func(w *world) {
			w.web(2, antiAffinityTo(zone, "web"))
			w.launch("a b", "web-1")
			w.launch("b", "web-2")
		}),
		"resident has anti-affinity to the pod": invalid("an existing pod of namespace default on node n1", func(w *world) {
			w.node("n1", "a", existing("db", 1, term(zone, "web")))
			w.web(1)
			w.launch("a", "web-1")
		}),
		"resident has anti-affinity to the pod, another zone": valid(func(w *world) {
			w.node("n1", "a", existing("db", 1, term(zone, "web")))
			w.web(1)
			w.launch("b", "web-1")
		}),
		"anti-affinity to a resident": invalid(ruledOut, func(w *world) {
			w.node("n1", "a", existing("db", 1))
			w.web(1, antiAffinityTo(zone, "db"))
			w.launch("a", "web-1")
		}),
		"anti-affinity to a resident that is being deleted": invalid(ruledOut, func(w *world) {
			w.node("n1", "a", ending(existing("db", 1)))
			w.web(1, antiAffinityTo(zone, "db"))
			w.launch("a", "web-1")
		}),
		"anti-affinity to a resident of a leaving node": invalid(ruledOut, func(w *world) {
			w.node("n1", "a", existing("db", 1)).Leaving = true
			w.web(1, antiAffinityTo(zone, "db"))
			w.launch("a", "web-1")
		}),
		"anti-affinity to a planned pod": invalid(ruledOut, func(w *world) {
			w.web(1, antiAffinityTo(zone, "db"))
			w.pod("db-1")
			w.launch("a", "web-1")
			w.launch("a", "db-1")
		}),
		"resident of another namespace": valid(func(w *world) {
			w.node("n1", "a", existing("db", 1)).Residents[0].PodKind.Namespace = "other"
			w.web(1, antiAffinityTo(zone, "db"))
			w.launch("a", "web-1")
		}),
		"resident of another namespace, all namespaces selected": invalid(ruledOut, func(w *world) {
			w.node("n1", "a", existing("db", 1)).Residents[0].PodKind.Namespace = "other"
			w.web(1, antiAffinityTo(zone, "db"), inAllNamespaces)
			w.launch("a", "web-1")
		}),
		"anti-affinity between residents of one node": valid(func(w *world) {
			w.node("n1", "a", existing("db", 2, term(zone, "db")))
			w.web(1)
			w.launch("a", "web-1")
		}),
		"a single pod with anti-affinity to itself": valid(func(w *world) {
			w.web(1, antiAffinityTo(zone, "web"), antiAffinityTo(zone, "web"), antiAffinityTo(hostname, "web"))
			w.launch("a b", "web-1")
		}),
		"nodes without the label are in no domain": valid(func(w *world) {
			w.web(2, antiAffinityTo("rack", "web"))
			w.launch("a", "web-1", "web-2")
		}),
		"planned node that may have the label": invalid(ruledOut, func(w *world) {
			w.web(2, antiAffinityTo("rack", "web"))
			w.Market["default"].Types[0].Labels["rack"] = "r1" // type large
			w.launch("a", "web-1", "web-2")
			w.addOffering(0, choice("large", "a", "on-demand"))
		}),
	})
}

// TestClaims checks that pods that share an unbound volume claim are in one zone.
func TestClaims(t *testing.T) {
	t.Parallel()
	uses := func(names ...string) func(*cluster.Pod) {
		return func(p *cluster.Pod) { p.Volumes = names }
	}
	const claimSplit = "volume claim default/data"
	run(t, map[string]testCase{
		"one zone": valid(func(w *world) {
			w.web(2, uses("default/data"))
			w.launch("a", "web-1")
			w.launch("a", "web-2")
		}),
		"two zones": invalid(claimSplit+": its pods are on planned node general-1 and planned node general-2, which may be in zones a b",
			func(w *world) {
				w.web(2, uses("default/data"))
				w.launch("a", "web-1")
				w.launch("b", "web-2")
			}),
		"one node in any zone": valid(func(w *world) {
			w.web(2, uses("default/data"))
			w.launch("a b", "web-1", "web-2")
		}),
		"two nodes in any zone": invalid(claimSplit, func(w *world) {
			w.web(2, uses("default/data"))
			w.launch("a b", "web-1")
			w.launch("a b", "web-2")
		}),
		"a node in the zone": valid(func(w *world) {
			w.node("n1", "a")
			w.web(2, uses("default/data"))
			w.place("n1", "web-1")
			w.launch("a", "web-2")
		}),
		"a node in another zone": invalid(claimSplit, func(w *world) {
			w.node("n1", "b")
			w.web(2, uses("default/data"))
			w.place("n1", "web-1")
			w.launch("a", "web-2")
		}),
		"other claims": valid(func(w *world) {
			w.pod("web-1", uses("default/data"))
			w.pod("web-2", uses("default/logs"))
			w.launch("a", "web-1")
			w.launch("b", "web-2")
		}),
	})
}

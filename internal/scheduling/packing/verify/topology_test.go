package verify_test

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

func minDomains(n int) func(*cluster.Spread) { return func(s *cluster.Spread) { s.MinDomains = n } }
func anyNode(s *cluster.Spread)              { s.IgnoresNodeAffinity = true }
func honorTaints(s *cluster.Spread)          { s.HonorTaints = true }
func soft(s *cluster.Spread)                 { s.Soft = true }
func selectAll(s *cluster.Spread)            { s.Selector = cluster.Selector{} }
func selectNone(s *cluster.Spread)           { s.Selector = cluster.Selector{MatchesNothing: true} }

// ending returns the resident with pods that are being deleted.
func ending(r cluster.Resident) cluster.Resident {
	k := *r.PodKind
	k.Terminating = true
	r.PodKind = &k
	return r
}

func (w *world) web(n int, rules ...func(*cluster.Pod)) {
	names := []string{"web-1", "web-2", "web-3", "web-4", "web-5", "web-6"}
	for _, name := range names[:n] {
		w.pod(name, rules...)
	}
}

// TestSpread checks whether an order exists in which spread constraints allow all pods.
func TestSpread(t *testing.T) {
	t.Parallel()
	const skewed = "cannot be bound"
	run(t, map[string]testCase{
		"two by two": valid(func(w *world) {
			w.web(4, spread(zone, 1, "web"))
			w.launch("a", "web-1", "web-2")
			w.launch("b", "web-3", "web-4")
		}),
		"three and one": invalid("pod default/web-1 (one of 3 alike) cannot be bound to planned node general-1 in any order: its spread constraint allows 1 more pods in topology.kubernetes.io/zone a than in the domain with the fewest, but the difference could be 2",
			func(w *world) {
				w.web(4, spread(zone, 1, "web"))
				w.launch("a", "web-1", "web-2", "web-3")
				w.launch("b", "web-4")
			}),
		"three and one with a skew of 2": valid(func(w *world) {
			w.web(4, spread(zone, 2, "web"))
			w.launch("a", "web-1", "web-2", "web-3")
			w.launch("b", "web-4")
		}),
		"soft constraint": valid(func(w *world) {
			w.web(4, spread(zone, 1, "web", soft))
			w.launch("a", "web-1", "web-2", "web-3", "web-4")
			w.node("n1", "b")
		}),
		"the zone of a cordoned node counts": invalid(
			"topology.kubernetes.io/zone b than in the domain with the fewest, but the difference could be 2",
			func(w *world) {
				w.web(2, spread(zone, 1, "web"))
				w.launch("b", "web-1", "web-2")
				w.node("n1", "a").Taints = []requirements.Taint{cluster.CordonTaint()}
			}),
		"the zone of a leaving node does not count after it is gone": valid(func(w *world) {
			w.web(2, spread(zone, 1, "web"))
			w.launch("b", "web-1", "web-2")
			w.node("n1", "a").Leaving = true
		}),
		"the zone of a cordoned node does not count if taints are honored": valid(func(w *world) {
			w.web(2, spread(zone, 1, "web", honorTaints))
			w.launch("b", "web-1", "web-2")
			w.node("n1", "a").Taints = []requirements.Taint{cluster.CordonTaint()}
		}),
		"an empty zone counts": invalid(skewed, func(w *world) {
			w.web(4, spread(zone, 1, "web"))
			w.launch("a", "web-1", "web-2")
			w.launch("b", "web-3", "web-4")
			w.node("n1", "c")
		}),
		"planned node of other pods may add a zone": invalid(skewed, func(w *world) {
			w.web(4, spread(zone, 1, "web"))
			w.pod("db-1")
			w.launch("a", "web-1", "web-2")
			w.launch("b", "web-3", "web-4")
			w.launch("a b c", "db-1")
		}),
		"planned node of other pods in the same zones": valid(func(w *world) {
			w.web(4, spread(zone, 1, "web"))
			w.pod("db-1")
			w.launch("a", "web-1", "web-2")
			w.launch("b", "web-3", "web-4")
			w.launch("a b", "db-1")
		}),
		"node in one of two zones, one of them violates": invalid(skewed, func(w *world) {
			w.web(2, spread(zone, 1, "web"))
			w.node("n1", "a", existing("web", 1))
			w.node("n2", "b")
			w.launch("a b", "web-1", "web-2")
		}),
		"node in one of two zones, both valid": valid(func(w *world) {
			w.web(1, spread(zone, 1, "web"))
			w.node("n1", "a", existing("web", 1))
			w.node("n2", "b", existing("web", 1))
			w.launch("a b", "web-1")
		}),
		"two nodes possibly in one zone": invalid(skewed, func(w *world) {
			w.web(2, spread(zone, 1, "web"))
			w.node("n1", "a")
			w.node("n2", "b")
			w.launch("a b", "web-1")
			w.launch("a b", "web-2")
		}),
		"residents count": invalid(skewed, func(w *world) {
			w.web(1, spread(zone, 1, "web"))
			w.node("n1", "a", existing("web", 1))
			w.node("n2", "b")
			w.place("n1", "web-1")
		}),
		"residents that are being deleted do not count": valid(func(w *world) {
			w.web(1, spread(zone, 1, "web"))
			w.node("n1", "a", ending(existing("web", 1)))
			w.node("n2", "b")
			w.place("n1", "web-1")
		}),
		"other apps do not count": valid(func(w *world) {
			w.web(1, spread(zone, 1, "web"))
			w.node("n1", "a", existing("db", 5))
			w.node("n2", "b")
			w.place("n1", "web-1")
		}),
		"other namespaces do not count": valid(func(w *world) {
			w.web(1, spread(zone, 1, "web"))
			w.node("n1", "a", existing("web", 5)).Residents[0].PodKind.Namespace = "other"
			w.node("n2", "b")
			w.place("n1", "web-1")
		}),
		"selector that matches nothing": valid(func(w *world) {
			w.web(3, spread(zone, 1, "web", selectNone))
			w.node("n1", "a", existing("web", 5))
			w.node("n2", "b")
			w.place("n1", "web-1", "web-2", "web-3")
		}),
		"an empty selector counts no pod": valid(func(w *world) {
			w.web(3, spread(zone, 1, "web", selectAll))
			w.node("n1", "a", existing("web", 5))
			w.node("n2", "b")
			w.place("n1", "web-1", "web-2", "web-3")
		}),
		"node without the label": invalid("spread constraint needs the label rack", func(w *world) {
			w.web(1, spread("rack", 1, "web"))
			w.launch("a", "web-1")
		}),
		"only some offerings have the label": invalid("spread constraint needs the label rack", func(w *world) {
			w.web(1, spread("rack", 1, "web"))
			w.Market["default"].Types[0].Labels["rack"] = "r1"
			w.launch("a", "web-1").Offerings = append(w.plan.PlannedNodes[0].Offerings, choice("large", "a", catalog.OnDemand))
		}),
		"by capacity type": invalid(skewed, func(w *world) {
			w.web(4, spread(catalog.LabelCapacityType, 1, "web"))
			w.launch("a", "web-1", "web-2", "web-3")
			w.launch("", "web-4").Offerings = append(w.plan.PlannedNodes[1].Offerings, choice("small", "a", catalog.Spot))
		}),

		"hosts: one each": valid(func(w *world) {
			w.web(3, spread(hostname, 1, "web"))
			w.launch("a b", "web-1")
			w.launch("a b", "web-2")
			w.launch("a b", "web-3")
		}),
		"hosts: two on one, none on another": invalid(skewed, func(w *world) {
			w.web(2, spread(hostname, 1, "web"))
			w.pod("db-1")
			w.launch("a", "web-1", "web-2")
			w.launch("a", "db-1")
		}),
		"hosts: all on one": valid(func(w *world) {
			w.web(4, spread(hostname, 1, "web"))
			w.launch("a", "web-1", "web-2", "web-3", "web-4")
		}),
		"hosts: existing empty host": invalid(skewed, func(w *world) {
			w.web(2, spread(hostname, 1, "web"))
			w.launch("a", "web-1", "web-2")
			w.node("n1", "a")
		}),
		"hosts: existing host that the pods do not accept": valid(func(w *world) {
			w.web(2, spread(hostname, 1, "web"), requiring(zone, "b"))
			w.launch("b", "web-1", "web-2")
			w.node("n1", "a")
		}),
		"hosts: host not accepted, but nodeAffinityPolicy Ignore": invalid(skewed, func(w *world) {
			w.web(2, spread(hostname, 1, "web", anyNode), requiring(zone, "b"))
			w.launch("b", "web-1", "web-2")
			w.node("n1", "a")
		}),
		"hosts: only another host excluded by name": invalid(skewed, func(w *world) {
			w.web(2, spread(hostname, 1, "web"))
			for i := range w.Pods {
				w.Pods[i].Required = []requirements.Requirements{{hostname: requirements.NoneOf("n2")}}
			}
			w.launch("b", "web-1", "web-2")
			w.node("n1", "a")
		}),
		"hosts: host excluded by name": valid(func(w *world) {
			w.web(2, spread(hostname, 1, "web"))
			for i := range w.Pods {
				w.Pods[i].Required = []requirements.Requirements{{hostname: requirements.NoneOf("n1")}}
			}
			w.launch("b", "web-1", "web-2")
			w.node("n1", "a")
		}),
		"hosts: tainted host counts": invalid(skewed, func(w *world) {
			w.web(2, spread(hostname, 1, "web"))
			w.launch("b", "web-1", "web-2")
			w.node("n1", "a").Taints = taint("x")
		}),
		"hosts: tainted host does not count if taints are honored": valid(func(w *world) {
			w.web(2, spread(hostname, 1, "web", honorTaints))
			w.launch("b", "web-1", "web-2")
			w.node("n1", "a").Taints = taint("x")
		}),
		"hosts: tolerated taint": invalid(skewed, func(w *world) {
			w.web(2, spread(hostname, 1, "web", honorTaints))
			w.tolerate("x", 0, 1)
			w.launch("b", "web-1", "web-2")
			w.node("n1", "a").Taints = taint("x")
		}),
		"hosts: planned node that may be accepted": invalid(skewed, func(w *world) {
			w.web(2, spread(hostname, 1, "web"), requiring(zone, "a"))
			w.pod("db-1")
			w.launch("a", "web-1", "web-2")
			w.launch("a b", "db-1")
		}),
		"hosts: planned node that is never accepted": valid(func(w *world) {
			w.web(2, spread(hostname, 1, "web"), requiring(zone, "a"))
			w.pod("db-1")
			w.launch("a", "web-1", "web-2")
			w.launch("b c", "db-1")
		}),

		"fewer domains than minDomains": invalid("because there may be only 2 of the 3 domains that minDomains requires", func(w *world) {
			w.web(4, spread(zone, 1, "web", minDomains(3)))
			w.launch("a", "web-1", "web-2")
			w.launch("b", "web-3", "web-4")
		}),
		"as many domains as minDomains": valid(func(w *world) {
			w.web(6, spread(zone, 1, "web", minDomains(3)))
			w.launch("a", "web-1", "web-2")
			w.launch("b", "web-3", "web-4")
			w.launch("c", "web-5", "web-6")
		}),
		"domains that may be the same": invalid(skewed, func(w *world) {
			w.web(4, spread(zone, 2, "web", minDomains(2)))
			w.launch("a b", "web-1", "web-2")
			w.launch("a b", "web-3", "web-4")
		}),
		"as many hosts as minDomains": valid(func(w *world) {
			w.web(4, spread(hostname, 1, "web", minDomains(2)))
			w.launch("a b", "web-1", "web-2")
			w.launch("a b", "web-3", "web-4")
		}),

		"a leaving node is not a domain after it is gone": valid(func(w *world) {
			w.web(4, spread(hostname, 1, "web"))
			w.node("n1", "a").Leaving = true
			w.node("n2", "a", existing("web", 2))
			w.launch("a", "web-1", "web-2", "web-3")
			w.place("n2", "web-4")
		}),
		"pods that stay on a leaving node count": invalid(skewed, func(w *world) {
			w.web(1, spread(zone, 1, "web"))
			w.node("n1", "a", existing("web", 3)).Leaving = true
			w.node("n2", "b", existing("web", 1))
			w.launch("a", "web-1")
		}),
		"pods that stay keep their leaving host a domain": invalid(skewed, func(w *world) {
			w.web(3, spread(hostname, 1, "web"))
			w.node("n1", "a", existing("web", 1)).Leaving = true
			w.launch("a", "web-1", "web-2", "web-3")
		}),
		"a moved pod counts at its destination": valid(func(w *world) {
			w.web(2, spread(zone, 1, "web"))
			w.node("n1", "a").Leaving = true
			for i := range w.Pods {
				w.Pods[i].Node = "n1"
			}
			w.launch("a", "web-1")
			w.launch("b", "web-2")
		}),
		"a leaving node counts for minDomains until it is gone": valid(func(w *world) {
			w.web(2, spread(zone, 1, "web", minDomains(2)))
			w.node("n1", "a").Leaving = true
			w.launch("b", "web-1")
			w.launch("c", "web-2")
		}),
		"a leaving node does not count for minDomains with taints honored": invalid("of the 2 domains that minDomains requires", func(w *world) {
			w.web(2, spread(zone, 1, "web", minDomains(2), honorTaints))
			w.node("n1", "a").Leaving = true
			w.launch("b", "web-1", "web-2")
		}),
		"a leaving host with pods, besides an empty host": invalid(skewed, func(w *world) {
			w.web(2, spread(hostname, 1, "web"))
			w.node("n1", "a", existing("web", 1)).Leaving = true
			w.node("n2", "a")
			w.launch("a", "web-1", "web-2")
		}),
		"planned node possibly a separate zone": valid(func(w *world) {
			w.web(3, spread(zone, 1, "web"))
			w.launch("a b", "web-1")
			w.launch("a", "web-2", "web-3")
		}),
		"planned node is one more domain in any zone": valid(func(w *world) {
			w.web(4, spread(zone, 1, "web", minDomains(2)))
			w.launch("a b", "web-1", "web-2")
			w.launch("c", "web-3", "web-4")
		}),
	})
}

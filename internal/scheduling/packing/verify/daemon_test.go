package verify_test

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// agents adds a DaemonSet whose pods have the label app=agent. It runs in these zones; without zones, in all.
func (w *world) agents(avoids []cluster.Term, zones ...string) {
	w.daemon(0, zones...).Kind = &cluster.PodKind{Namespace: "default", Labels: requirements.Labels{"app": "agent"}, RequiredAntiAffinity: avoids}
}

// TestDaemons checks that DaemonSet pods count on a planned node before all other pods.
func TestDaemons(t *testing.T) {
	t.Parallel()
	const ruledOut, noMatch = "may both be in", "no pod that its affinity selects"
	run(t, map[string]testCase{
		"anti-affinity by host, same host": invalid(ruledOut, func(w *world) {
			w.agents(nil)
			w.web(1, antiAffinityTo(hostname, "agent"))
			w.launch("a", "web-1")
		}),
		"anti-affinity by zone, DaemonSet pods in another zone": valid(func(w *world) {
			w.agents(nil, "b")
			w.web(1, antiAffinityTo(zone, "agent"))
			w.launch("a", "web-1")
			w.launch("b")
		}),
		"anti-affinity by zone, zone possibly with DaemonSet pods": invalid(ruledOut, func(w *world) {
			w.agents(nil, "b")
			w.web(1, antiAffinityTo(zone, "agent"))
			w.launch("a b", "web-1")
		}),
		"anti-affinity of the DaemonSet pods": invalid(ruledOut, func(w *world) {
			w.agents([]cluster.Term{term(hostname, "web")})
			w.web(1)
			w.launch("a", "web-1")
		}),
		"affinity to DaemonSet pods": valid(func(w *world) {
			w.agents(nil)
			w.web(1, affinityTo(hostname, "agent"))
			w.launch("a b", "web-1")
		}),
		"affinity, zone without DaemonSet pods": invalid(noMatch, func(w *world) {
			w.agents(nil, "b")
			w.web(1, affinityTo(hostname, "agent"))
			w.launch("a", "web-1")
		}),
		"affinity, zone possibly without DaemonSet pods": invalid(noMatch, func(w *world) {
			w.agents(nil, "b")
			w.web(1, affinityTo(zone, "agent"))
			w.launch("a b", "web-1")
		}),
		"spread counts DaemonSet pods, one pod per host": valid(func(w *world) {
			w.agents(nil)
			w.web(2, spread(hostname, 1, "agent", func(s *cluster.Spread) { s.Selector = eitherApp("web", "agent") }))
			w.launch("a", "web-1")
			w.launch("a", "web-2")
		}),
		"spread counts DaemonSet pods, host without any": invalid("cannot be bound", func(w *world) {
			w.agents(nil)
			w.web(1, spread(hostname, 1, "agent", func(s *cluster.Spread) { s.Selector = eitherApp("web", "agent") }))
			w.node("n1", "a")
			w.launch("a", "web-1")
		}),
		"refused, but its affinity could be satisfied": invalid("(offering large a spot) would take it", func(w *world) {
			w.agents(nil)
			w.web(1, affinityTo(hostname, "agent"))
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"refused, anti-affinity to DaemonSet pods on all nodes": valid(func(w *world) {
			w.agents(nil)
			w.web(1, antiAffinityTo(zone, "agent"))
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"refused, anti-affinity of DaemonSet pods": valid(func(w *world) {
			w.agents([]cluster.Term{term(hostname, "web")})
			w.web(1)
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"refused, but a zone has no DaemonSet pods": invalid("(offering large a spot) would take it", func(w *world) {
			w.agents(nil, "b", "c")
			w.web(1, antiAffinityTo(zone, "agent"))
			w.refuse(packing.TypeMismatch, "web-1")
		}),
	})
}

// eitherApp returns a selector for the pods of both apps.
func eitherApp(a, b string) cluster.Selector {
	return cluster.Selector{Labels: requirements.Requirements{"app": requirements.OneOf(a, b)}}
}

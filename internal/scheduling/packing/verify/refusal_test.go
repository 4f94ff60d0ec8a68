package verify_test

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

// TestRefusals checks that a refusal is valid only if the pod has no place after all other pods are bound.
func TestRefusals(t *testing.T) {
	t.Parallel()
	huge := func(p *cluster.Pod) { p.Requests.CPU = 99_000 }
	const wouldTake = "would take it"
	allowOnly := func(w *world, zones ...string) { w.Pools[0].Requirements = requireIn(zone, 0, zones...) }
	// Check prints an offering as "large a spot": type, zone, capacity type. The detail of a reason is empty here.
	run(t, map[string]testCase{
		"too large": valid(func(w *world) {
			w.pod("web-1", huge)
			w.refuse(packing.TooSmall, "web-1")
		}),
		"not too large": invalid("pod default/web-1 is refused (TooSmall), but a planned node of pool general (offering large a spot) would take it",
			func(w *world) {
				w.pod("web-1")
				w.refuse(packing.TooSmall, "web-1")
			}),
		"refused without a reason": invalid("without a reason", func(w *world) {
			w.pod("web-1", huge)
			w.plan.Refusals = []packing.Refusal{{Pod: "default/web-1"}}
		}),
		"LimitReached is not checked on new nodes": valid(func(w *world) { w.pod("web-1"); w.refuse(packing.LimitReached, "web-1") }),
		"EffortSpent with most steps used": valid(func(w *world) {
			w.pod("web-1")
			w.node("n1", "a")
			w.refuse(packing.EffortSpent, "web-1")
			w.plan.Steps, w.plan.Effort = 51, 100
		}),
		"EffortSpent with many steps left": invalid("because of the work limit, but only 50 of 100 steps were used", func(w *world) {
			w.pod("web-1")
			w.refuse(packing.EffortSpent, "web-1")
			w.plan.Steps, w.plan.Effort = 50, 100
		}),
		"EffortSpent without steps": invalid("because of the work limit",
			func(w *world) { w.pod("web-1"); w.refuse(packing.EffortSpent, "web-1") }),
		"LimitReached, but an existing node has room": invalid("node n1 "+wouldTake, func(w *world) {
			w.pod("web-1")
			w.node("n1", "a")
			w.refuse(packing.LimitReached, "web-1")
		}),
		"node is full with planned pods": valid(func(w *world) {
			w.pod("web-1")
			w.pod("db-1", func(p *cluster.Pod) { p.Requests.CPU = 7500 })
			w.node("n1", "a")
			w.place("n1", "db-1")
			w.refuse(packing.LimitReached, "web-1")
		}),
		"port in use on the node": valid(func(w *world) {
			w.pod("web-1")
			w.pod("db-1")
			w.setPort(0, 80)
			w.setPort(1, 80)
			w.node("n1", "a")
			w.place("n1", "db-1")
			w.refuse(packing.LimitReached, "web-1")
		}),
		"unavailable offering": valid(func(w *world) {
			w.pod("web-1")
			for _, z := range []string{"a", "b", "c"} {
				w.makeUnavailable("small", z)
				w.makeUnavailable("large", z)
			}
			w.refuse(packing.NoCapacity, "web-1")
		}),
		"a taint": valid(func(w *world) {
			w.pod("web-1")
			w.taintAll("x")
			w.refuse(packing.TaintUntolerated, "web-1")
		}),
		"a taint that is tolerated": invalid(wouldTake, func(w *world) {
			w.pod("web-1")
			w.taintAll("x")
			w.tolerate("x", 0)
			w.refuse(packing.TaintUntolerated, "web-1")
		}),
		"a pool that may not be used": valid(func(w *world) {
			w.pod("web-1")
			w.Pools[0].Unusable = "no"
			w.refuse(packing.PoolUnusable, "web-1")
		}),
		"a pod that cannot be planned": valid(func(w *world) {
			w.pod("web-1").Unplannable = "odd"
			w.refuse(packing.Unplannable, "web-1")
		}),
		"too many volumes": valid(func(w *world) {
			w.pod("web-1")
			w.setTypeVolumes(3)
			w.addVolumes(0, 4)
			w.refuse(packing.TooSmall, "web-1")
		}),

		"anti-affinity leaves no zone": valid(func(w *world) {
			w.web(2, antiAffinityTo(zone, "web"))
			allowOnly(w, "a")
			w.launch("a", "web-1")
			w.refuse(packing.TypeMismatch, "web-2")
		}),
		"anti-affinity leaves a zone": invalid("b spot) "+wouldTake, func(w *world) {
			w.web(2, antiAffinityTo(zone, "web"))
			allowOnly(w, "a", "b")
			w.launch("a", "web-1")
			w.refuse(packing.TypeMismatch, "web-2")
		}),
		"anti-affinity of a resident": valid(func(w *world) {
			w.node("n1", "a", existing("db", 1, term(zone, "web")))
			w.web(1)
			allowOnly(w, "a")
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"spread leaves no zone": valid(func(w *world) {
			w.node("n1", "a", existing("web", 1))
			w.node("n2", "b").Taints = taint("x")
			w.web(1, spread(zone, 1, "web"))
			allowOnly(w, "a")
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"spread leaves a zone": invalid("b spot) "+wouldTake, func(w *world) {
			w.node("n1", "a", existing("web", 1))
			w.node("n2", "b").Taints = taint("x")
			w.web(1, spread(zone, 1, "web"))
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"a new zone is a domain": invalid("b spot) "+wouldTake, func(w *world) {
			w.node("n1", "a", existing("web", 5)).Requested.CPU = 8000
			w.web(1, spread(zone, 1, "web"))
			allowOnly(w, "b")
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"a new zone makes enough domains": invalid("b spot) "+wouldTake, func(w *world) {
			w.node("n1", "a", existing("web", 5)).Requested.CPU = 8000
			w.web(1, spread(zone, 1, "web", minDomains(2)))
			allowOnly(w, "b")
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"affinity without matching pod": valid(func(w *world) {
			w.web(1, affinityTo(zone, "db"))
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"affinity with matching pod": invalid("(offering large b spot) "+wouldTake, func(w *world) {
			w.node("n1", "b", existing("db", 1)).Taints = taint("x")
			w.web(1, affinityTo(zone, "db"))
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"affinity to itself": invalid(wouldTake, func(w *world) {
			w.web(1, affinityTo(hostname, "web"))
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"affinity to a host that is full": valid(func(w *world) {
			w.node("n1", "b", existing("db", 1)).Requested.CPU = 8000
			w.web(1, affinityTo(hostname, "db"))
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"shared volume in another zone": valid(func(w *world) {
			w.web(2, func(p *cluster.Pod) { p.Volumes = []string{"default/data"} })
			w.node("n1", "b").Requested.CPU = 7000
			w.place("n1", "web-1")
			allowOnly(w, "a")
			w.refuse(packing.TypeMismatch, "web-2")
		}),
		"shared volume in the same zone": invalid(wouldTake, func(w *world) {
			w.web(2, func(p *cluster.Pod) { p.Volumes = []string{"default/data"} })
			w.node("n1", "b").Requested.CPU = 7000
			w.place("n1", "web-1")
			allowOnly(w, "b")
			w.refuse(packing.TypeMismatch, "web-2")
		}),
	})
}

// TestFits checks Fits with some of the cases of TestPlannedNodes.
func TestFits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(w *world)
		want   bool
	}{
		"room for both":                         {func(*world) {}, true},
		"room for one":                          {func(w *world) { w.Pods[0].Requests.CPU = 3500 }, false},
		"another zone":                          {func(w *world) { requiring(zone, "b")(&w.Pods[1]) }, false},
		"same zone":                             {func(w *world) { requiring(zone, "a")(&w.Pods[1]) }, true},
		"a taint":                               {func(w *world) { w.taintAll("x") }, false},
		"same port twice":                       {func(w *world) { w.setPort(0, 80); w.setPort(1, 80) }, false},
		"a DaemonSet":                           {func(w *world) { w.daemon(2500) }, false},
		"unavailable offering":                  {func(w *world) { w.makeUnavailable("small", "a") }, false},
		"volumes":                               {func(w *world) { w.setTypeVolumes(3); w.addVolumes(0, 4) }, false},
		"offering that the pool does not allow": {func(w *world) { w.Pools[0].Requirements = requireIn(zone, 0, "b") }, false},
		"by custom label": {func(w *world) {
			w.Pools[0].Labels = requirements.Labels{"team": "red"}
			requiring("team", "red")(&w.Pods[0])
		}, true},
	} {
		w := newWorld()
		w.web(2)
		c.change(w)
		if got := verify.Fits(w.Snapshot, w.Market, "general", choice("small", "a", catalog.OnDemand), w.Pods); got != c.want {
			t.Errorf("%s: Fits = %t, want %t", name, got, c.want)
		}
	}
}

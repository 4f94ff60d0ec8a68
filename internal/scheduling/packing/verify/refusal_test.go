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
	const taken = "would take it"
	only := func(w *world, zones ...string) { w.Pools[0].Requirements = in(zone, 0, zones...) }
	run(t, map[string]verdict{
		"too large": right(func(w *world) {
			w.pod("web-1", huge)
			w.refuse(packing.TooSmall, "web-1")
		}),
		"not too large": wrong("pod default/web-1 is refused (TooSmall ), but a planned node of pool general as large a spot would take it",
			func(w *world) {
				w.pod("web-1")
				w.refuse(packing.TooSmall, "web-1")
			}),
		"refused without a reason": wrong("without a reason", func(w *world) {
			w.pod("web-1", huge)
			w.plan.Refusals = []packing.Refusal{{Pod: "default/web-1"}}
		}),
		"LimitReached is not checked on new nodes": right(func(w *world) { w.pod("web-1"); w.refuse(packing.LimitReached, "web-1") }),
		"EffortSpent with most steps used": right(func(w *world) {
			w.pod("web-1")
			w.node("n1", "a")
			w.refuse(packing.EffortSpent, "web-1")
			w.plan.Steps, w.plan.Effort = 51, 100
		}),
		"EffortSpent with many steps left": wrong("because of the work limit, but only 50 of 100 steps were used", func(w *world) {
			w.pod("web-1")
			w.refuse(packing.EffortSpent, "web-1")
			w.plan.Steps, w.plan.Effort = 50, 100
		}),
		"EffortSpent without steps": wrong("because of the work limit",
			func(w *world) { w.pod("web-1"); w.refuse(packing.EffortSpent, "web-1") }),
		"LimitReached, but an existing node has room": wrong("node n1 "+taken, func(w *world) {
			w.pod("web-1")
			w.node("n1", "a")
			w.refuse(packing.LimitReached, "web-1")
		}),
		"node is full with planned pods": right(func(w *world) {
			w.pod("web-1")
			w.pod("db-1", func(p *cluster.Pod) { p.Requests.CPU = 7500 })
			w.node("n1", "a")
			w.place("n1", "db-1")
			w.refuse(packing.LimitReached, "web-1")
		}),
		"port in use on the node": right(func(w *world) {
			w.pod("web-1")
			w.pod("db-1")
			w.port(0, 80)
			w.port(1, 80)
			w.node("n1", "a")
			w.place("n1", "db-1")
			w.refuse(packing.LimitReached, "web-1")
		}),
		"unavailable offering": right(func(w *world) {
			w.pod("web-1")
			for _, z := range []string{"a", "b", "c"} {
				w.sellOut("small", z)
				w.sellOut("large", z)
			}
			w.refuse(packing.NoCapacity, "web-1")
		}),
		"a taint": right(func(w *world) {
			w.pod("web-1")
			w.taintAll("x")
			w.refuse(packing.TaintUntolerated, "web-1")
		}),
		"a taint that is tolerated": wrong(taken, func(w *world) {
			w.pod("web-1")
			w.taintAll("x")
			w.tolerate("x", 0)
			w.refuse(packing.TaintUntolerated, "web-1")
		}),
		"a pool that may not be used": right(func(w *world) {
			w.pod("web-1")
			w.Pools[0].Unusable = "no"
			w.refuse(packing.PoolUnusable, "web-1")
		}),
		"a pod that cannot be planned": right(func(w *world) {
			w.pod("web-1").Unplannable = "odd"
			w.refuse(packing.Unplannable, "web-1")
		}),
		"too many volumes": right(func(w *world) {
			w.pod("web-1")
			w.attach(3)
			w.disks(0, 4)
			w.refuse(packing.TooSmall, "web-1")
		}),

		"anti-affinity leaves no zone": right(func(w *world) {
			w.web(2, apart(zone, "web"))
			only(w, "a")
			w.launch("a", "web-1")
			w.refuse(packing.TypeMismatch, "web-2")
		}),
		"anti-affinity leaves a zone": wrong("b spot "+taken, func(w *world) {
			w.web(2, apart(zone, "web"))
			only(w, "a", "b")
			w.launch("a", "web-1")
			w.refuse(packing.TypeMismatch, "web-2")
		}),
		"anti-affinity of a resident": right(func(w *world) {
			w.node("n1", "a", stays("db", 1, term(zone, "web")))
			w.web(1)
			only(w, "a")
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"spread leaves no zone": right(func(w *world) {
			w.node("n1", "a", stays("web", 1))
			w.node("n2", "b").Taints = taint("x")
			w.web(1, spread(zone, 1, "web"))
			only(w, "a")
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"spread leaves a zone": wrong("b spot "+taken, func(w *world) {
			w.node("n1", "a", stays("web", 1))
			w.node("n2", "b").Taints = taint("x")
			w.web(1, spread(zone, 1, "web"))
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"a new zone is a domain": wrong("b spot "+taken, func(w *world) {
			w.node("n1", "a", stays("web", 5)).Requested.CPU = 8000
			w.web(1, spread(zone, 1, "web"))
			only(w, "b")
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"a new zone makes enough domains": wrong("b spot "+taken, func(w *world) {
			w.node("n1", "a", stays("web", 5)).Requested.CPU = 8000
			w.web(1, spread(zone, 1, "web", minDomains(2)))
			only(w, "b")
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"affinity without matching pod": right(func(w *world) {
			w.web(1, near(zone, "db"))
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"affinity with matching pod": wrong("as large b spot "+taken, func(w *world) {
			w.node("n1", "b", stays("db", 1)).Taints = taint("x")
			w.web(1, near(zone, "db"))
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"affinity to itself": wrong(taken, func(w *world) {
			w.web(1, near(hostname, "web"))
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"affinity to a host that is full": right(func(w *world) {
			w.node("n1", "b", stays("db", 1)).Requested.CPU = 8000
			w.web(1, near(hostname, "db"))
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"shared volume in another zone": right(func(w *world) {
			w.web(2, func(p *cluster.Pod) { p.Volumes = []string{"default/data"} })
			w.node("n1", "b").Requested.CPU = 7000
			w.place("n1", "web-1")
			only(w, "a")
			w.refuse(packing.TypeMismatch, "web-2")
		}),
		"shared volume in the same zone": wrong(taken, func(w *world) {
			w.web(2, func(p *cluster.Pod) { p.Volumes = []string{"default/data"} })
			w.node("n1", "b").Requested.CPU = 7000
			w.place("n1", "web-1")
			only(w, "b")
			w.refuse(packing.TypeMismatch, "web-2")
		}),
	})
}

// TestFits checks the rules of TestMachines for one planned node.
func TestFits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(w *world)
		want   bool
	}{
		"room for both":                         {func(*world) {}, true},
		"room for one":                          {func(w *world) { w.Pods[0].Requests.CPU = 3500 }, false},
		"another zone":                          {func(w *world) { selecting(zone, "b")(&w.Pods[1]) }, false},
		"same zone":                             {func(w *world) { selecting(zone, "a")(&w.Pods[1]) }, true},
		"a taint":                               {func(w *world) { w.taintAll("x") }, false},
		"same port twice":                       {func(w *world) { w.port(0, 80); w.port(1, 80) }, false},
		"a DaemonSet":                           {func(w *world) { w.daemon(2500) }, false},
		"unavailable offering":                  {func(w *world) { w.sellOut("small", "a") }, false},
		"volumes":                               {func(w *world) { w.attach(3); w.disks(0, 4) }, false},
		"offering that the pool does not allow": {func(w *world) { w.Pools[0].Requirements = in(zone, 0, "b") }, false},
		"by custom label": {func(w *world) {
			w.Pools[0].Labels = requirements.Labels{"team": "red"}
			selecting("team", "red")(&w.Pods[0])
		}, true},
	} {
		w := newWorld()
		w.web(2)
		c.change(w)
		if got := verify.Fits(w.Snapshot, w.Market, "general", choice("small", "a", catalog.OnDemand), w.Pods); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

package verify_test

import (
	"fmt"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// launchEach adds n pods of an app, each on its own planned node.
func (w *world) launchEach(n int, app, zones string, rules ...func(*cluster.Pod)) {
	for range n {
		name := fmt.Sprintf("%s-%d", app, len(w.Pods))
		w.pod(name, rules...)
		w.launch(zones, name)
	}
}

// TestLargeOrders checks plans in which rules connect too many pods to try all orders, so the greedy order must be
// sufficient.
func TestLargeOrders(t *testing.T) {
	t.Parallel()
	const n = 40
	run(t, map[string]testCase{
		"free pods are bound when needed": valid(func(w *world) {
			w.launchEach(n, "web", "a", spread(zone, 1, "web"))
			w.launchEach(n, "web", "a")
			w.launchEach(n, "web", "b")
		}),
		"one free pod too few": invalid("cannot be bound", func(w *world) {
			w.launchEach(n, "web", "a", spread(zone, 1, "web"))
			w.launchEach(n-2, "web", "b") // n-1 are enough
		}),
		"first pod of an affinity before pods that fill hosts": valid(func(w *world) {
			w.launchEach(n, "web", "b", spread(hostname, 1, "web"))
			w.launchEach(n, "web", "a", affinityTo(zone, "web"))
		}),
		"affinity to a pod on the same node in any zone": valid(func(w *world) {
			for i := range n {
				web, db := fmt.Sprint("web-", i), fmt.Sprint("db-", i)
				w.pod(web, affinityTo(zone, "db"), spread(hostname, 1, "absent"))
				w.pod(db, spread(hostname, 5, "db"))
				w.launch("a b", web, db)
			}
		}),
		"affinity to a pod in the zone": valid(func(w *world) {
			w.launchEach(n, "web", "a", affinityTo(zone, "db"), spread(hostname, 1, "absent"))
			w.launchEach(1, "db", "a", spread(hostname, 5, "db"))
		}),
		"affinity unmet in one zone": invalid("no pod that its affinity selects", func(w *world) {
			w.launchEach(n, "web", "a", affinityTo(zone, "db"))
			w.launchEach(n, "web", "b", affinityTo(zone, "db"))
			w.launchEach(1, "db", "a")
		}),
		"zones filled alternately": valid(func(w *world) {
			for _, z := range []string{"a", "b", "c"} {
				w.launchEach(n, "web", z, spread(zone, 1, "web"))
			}
		}),
		"zones filled alternately, one too many": invalid("cannot be bound", func(w *world) {
			for _, z := range []string{"a", "b", "c"} {
				w.launchEach(n, "web", z, spread(zone, 1, "web"))
			}
			w.launchEach(2, "web", "a", spread(zone, 1, "web")) // one more is valid
		}),
		"strict before lenient": valid(func(w *world) { // zone b has no web pod, so only the first in a can have maxSkew 1
			w.launchEach(n, "web", "a", spread(zone, n+1, "web"))
			w.launchEach(1, "web", "a", spread(zone, 1, "web"))
			w.launchEach(1, "db", "b")
		}),
	})
}

// TestOrderThatGreedyMisses checks small plans in which the greedy order fails and another order works. A spread of
// "absent" pods allows everything, but keeps greedy from holding its pod back (class.isFree).
func TestOrderThatGreedyMisses(t *testing.T) {
	t.Parallel()
	run(t, map[string]testCase{
		"counted by one rule, limited by another": valid(func(w *world) { // web-1 must be bound before web-2 and web-3
			w.node("n1", "b")
			w.web(1, spread(zone, 1, "web"))
			w.pod("web-2", spread(hostname, 1, "absent"))
			w.pod("web-3", spread(hostname, 1, "absent"))
			w.launch("a", "web-1")
			w.launch("a", "web-2", "web-3")
		}),
		"order of two affinities": valid(func(w *world) {
			// web-1 has affinity to pods like itself, and web-2 has affinity to db-1. web-1 must be bound before web-2:
			// otherwise web-1 would need another web pod in its zone.
			w.web(1, affinityTo(zone, "web"))
			w.pod("web-2", affinityTo(zone, "db"))
			w.pod("db-1")
			w.launch("a", "web-1")
			w.launch("b", "web-2", "db-1")
		}),
	})
}

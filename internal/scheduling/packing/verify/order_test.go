package verify_test

import (
	"fmt"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// many adds n pods of an app, each on its own planned node.
func (w *world) many(n int, app, zones string, rules ...func(*cluster.Pod)) {
	for range n {
		name := fmt.Sprintf("%s-%d", app, len(w.Pods))
		w.pod(name, rules...)
		w.launch(zones, name)
	}
}

// TestLargeOrders has parts that are too large to try all orders, so the greedy order must be
// sufficient.
func TestLargeOrders(t *testing.T) {
	t.Parallel()
	const n = 40
	run(t, map[string]verdict{
		"free pods are bound when needed": right(func(w *world) {
			w.many(n, "web", "a", spread(zone, 1, "web"))
			w.many(n, "web", "a")
			w.many(n, "web", "b")
		}),
		"one free pod too few": wrong("cannot be bound", func(w *world) {
			w.many(n, "web", "a", spread(zone, 1, "web"))
			w.many(n-2, "web", "b")
		}),
		"first pod of an affinity before pods that fill hosts": right(func(w *world) {
			w.many(n, "web", "b", spread(hostname, 1, "web"))
			w.many(n, "web", "a", near(zone, "web"))
		}),
		"affinity to a pod on the same node in any zone": right(func(w *world) {
			for i := range n {
				web, db := fmt.Sprint("web-", i), fmt.Sprint("db-", i)
				w.pod(web, near(zone, "db"), spread(hostname, 1, "nobody"))
				w.pod(db, spread(hostname, 5, "db"))
				w.launch("a b", web, db)
			}
		}),
		"affinity to a pod in the zone": right(func(w *world) {
			w.many(n, "web", "a", near(zone, "db"), spread(hostname, 1, "nobody"))
			w.many(1, "db", "a", spread(hostname, 5, "db"))
		}),
		"affinity unmet in one zone": wrong("no pod that its affinity selects", func(w *world) {
			w.many(n, "web", "a", near(zone, "db"))
			w.many(n, "web", "b", near(zone, "db"))
			w.many(1, "db", "a")
		}),
		"zones filled alternately": right(func(w *world) {
			for _, z := range []string{"a", "b", "c"} {
				w.many(n, "web", z, spread(zone, 1, "web"))
			}
		}),
		"zones filled alternately, one too many": wrong("cannot be bound", func(w *world) {
			for _, z := range []string{"a", "b", "c"} {
				w.many(n, "web", z, spread(zone, 1, "web"))
			}
			w.many(2, "web", "a", spread(zone, 1, "web"))
		}),
		"strict before lenient": right(func(w *world) {
			w.many(n, "web", "a", spread(zone, n+1, "web"))
			w.many(1, "web", "a", spread(zone, 1, "web"))
			w.many(1, "db", "b")
		}),
	})
}

// TestOutOfOrder has small parts in which the greedy order fails, and another order works.
func TestOutOfOrder(t *testing.T) {
	t.Parallel()
	run(t, map[string]verdict{
		"counted by one rule, limited by another": right(func(w *world) {
			w.node("n1", "b")
			w.web(1, spread(zone, 1, "web"))
			w.pod("web-2", spread(hostname, 1, "nobody"))
			w.pod("web-3", spread(hostname, 1, "nobody"))
			w.launch("a", "web-1")
			w.launch("a", "web-2", "web-3")
		}),
		"order of two affinities": right(func(w *world) {
			// web-1 has affinity to itself, and db-1 has affinity to web. web-1 must be bound before db-1; otherwise web-1 would
			// need another web pod in its zone.
			w.web(1, near(zone, "web"))
			w.pod("web-2", near(zone, "db"))
			w.pod("db-1")
			w.launch("a", "web-1")
			w.launch("b", "web-2", "db-1")
		}),
	})
}

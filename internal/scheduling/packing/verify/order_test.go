package verify_test

import (
	"fmt"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// many adds n pods of an app, each on a planned node of its own.
func (w *world) many(n int, app, zones string, rules ...func(*cluster.Pod)) {
	for range n {
		name := fmt.Sprintf("%s-%d", app, len(w.Pods))
		w.pod(name, rules...)
		w.launch(zones, name)
	}
}

// TestLargeOrders has parts that are too large to try all orders: binding
// whatever passes must do.
func TestLargeOrders(t *testing.T) {
	t.Parallel()
	const n = 40
	run(t, map[string]verdict{
		"free pods go when they are needed, and no sooner": right(func(w *world) {
			w.many(n, "web", "a", spread(zone, 1, "web"))
			w.many(n, "web", "a")
			w.many(n, "web", "b")
		}),
		"free pods that are one too few": wrong("cannot be bound", func(w *world) {
			w.many(n, "web", "a", spread(zone, 1, "web"))
			w.many(n-2, "web", "b")
		}),
		"the first of a series before pods that fill up hosts": right(func(w *world) {
			w.many(n, "web", "b", spread(hostname, 1, "web"))
			w.many(n, "web", "a", near(zone, "web"))
		}),
		"company on the same machine, wherever that is": right(func(w *world) {
			for i := range n {
				web, db := fmt.Sprint("web-", i), fmt.Sprint("db-", i)
				w.pod(web, near(zone, "db"), spread(hostname, 1, "nobody"))
				w.pod(db, spread(hostname, 5, "db"))
				w.launch("a b", web, db)
			}
		}),
		"company in the zone": right(func(w *world) {
			w.many(n, "web", "a", near(zone, "db"), spread(hostname, 1, "nobody"))
			w.many(1, "db", "a", spread(hostname, 5, "db"))
		}),
		"no company in one of the zones": wrong("no pod that its affinity asks for", func(w *world) {
			w.many(n, "web", "a", near(zone, "db"))
			w.many(n, "web", "b", near(zone, "db"))
			w.many(1, "db", "a")
		}),
		"zones filled in turn": right(func(w *world) {
			for _, z := range []string{"a", "b", "c"} {
				w.many(n, "web", z, spread(zone, 1, "web"))
			}
		}),
		"zones filled in turn, one of them too far": wrong("cannot be bound", func(w *world) {
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

// TestOutOfOrder has small parts in which binding whatever passes fails, and another order works.
func TestOutOfOrder(t *testing.T) {
	t.Parallel()
	run(t, map[string]verdict{
		"counted by one rule, kept by another": right(func(w *world) {
			w.node("n1", "b")
			w.web(1, spread(zone, 1, "web"))
			w.pod("web-2", spread(hostname, 1, "nobody"))
			w.pod("web-3", spread(hostname, 1, "nobody"))
			w.launch("a", "web-1")
			w.launch("a", "web-2", "web-3")
		}),
		"which of two series begins": right(func(w *world) {
			// web-1 finds itself; db-1 wants a web, but not before web-1 is there, or web-1 would have none in its zone.
			w.web(1, near(zone, "web"))
			w.pod("web-2", near(zone, "db"))
			w.pod("db-1")
			w.launch("a", "web-1")
			w.launch("b", "web-2", "db-1")
		}),
	})
}

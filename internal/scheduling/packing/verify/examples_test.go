package verify_test

import (
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// example is a cluster from a figure of the Kubernetes documentation, and the nodes
// that accept the new pod.
type example struct {
	nodes  func(w *world)
	rules  []func(*cluster.Pod)
	accept []string
}

// TestDocumentedExamples tests the examples of the pages "Pod Topology Spread
// Constraints" and "Assigning Pods to Nodes", with the new pod on each
// node.
func TestDocumentedExamples(t *testing.T) {
	t.Parallel()
	three := func(w *world) { // zone a: a pod on each of two nodes; zone b: one on the first of two
		w.node("node1", "a", stays("web", 1))
		w.node("node2", "a", stays("web", 1))
		w.node("node3", "b", stays("web", 1))
		w.node("node4", "b")
	}
	five := func(w *world) { // two zones that no node satisfies together
		w.node("node1", "a", stays("web", 2))
		w.node("node2", "a", stays("web", 1))
		w.node("node3", "b", stays("web", 2))
	}
	for name, e := range map[string]example{
		"one constraint": {three, rules(spread(zone, 1, "web")), []string{"node3", "node4"}},
		"one constraint with a larger skew": {
			three, rules(spread(zone, 2, "web")), []string{"node1", "node2", "node3", "node4"},
		},
		"several constraints":     {three, rules(spread(zone, 1, "web"), spread(hostname, 1, "web")), []string{"node4"}},
		"conflicting constraints": {five, rules(spread(zone, 1, "web"), spread(hostname, 1, "web")), nil},
		"conflicting constraints, one soft": {
			five, rules(spread(zone, 1, "web"), spread(hostname, 1, "web", soft)), []string{"node3"},
		},
		"with node affinity": {
			func(w *world) { three(w); w.node("node5", "c") },
			rules(spread(zone, 1, "web"), selecting(zone, "a", "b")), []string{"node3", "node4"},
		},
		"without that node affinity": {
			func(w *world) { three(w); w.node("node5", "c") },
			rules(spread(zone, 1, "web")), []string{"node5"},
		},
		"pods that the selector does not match pass": {
			// The selector does not match the pod itself, so both nodes accept it.
			func(w *world) { w.node("node1", "a", stays("db", 1)); w.node("node2", "b") },
			rules(spread(zone, 1, "db")), []string{"node1", "node2"},
		},
		"affinity to a zone": {
			func(w *world) { w.node("node1", "v", stays("s1", 1)); w.node("node2", "w", stays("s2", 1)) },
			rules(near(zone, "s1")), []string{"node1"},
		},
		"anti-affinity to a zone": {
			func(w *world) { w.node("node1", "r", stays("s2", 1)); w.node("node2", "r"); w.node("node3", "q") },
			rules(apart(zone, "s2")), []string{"node3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			e.nodes(w)
			for _, n := range w.Nodes {
				w := newWorld()
				e.nodes(w)
				w.pod("web-new", e.rules...)
				w.place(n.Name, "web-new")
				got := w.check()
				if accepted := slices.Contains(e.accept, n.Name); accepted != (len(got) == 0) {
					t.Errorf("%s: %q, want accepted %t", n.Name, got, accepted)
				}
			}
		})
	}
}

func rules(r ...func(*cluster.Pod)) []func(*cluster.Pod) { return r }

// TestCacheAndServer tests the cache and web server of the Kubernetes documentation: each node has one cache
// and one server.
func TestCacheAndServer(t *testing.T) {
	t.Parallel()
	build := func(last string) func(w *world) {
		return func(w *world) {
			for _, name := range []string{"store-1", "store-2", "store-3"} {
				w.pod(name, apart(hostname, "store"))
			}
			w.web(3, apart(hostname, "web"), near(hostname, "store"))
			for _, n := range []string{"node-1", "node-2", "node-3", "node-4"} {
				w.node(n, "a")
			}
			w.place("node-1", "web-1", "store-1")
			w.place("node-2", "web-2", "store-2")
			w.place("node-3", "store-3")
			w.place(last, "web-3")
		}
	}
	run(t, map[string]verdict{
		"as documented":           right(build("node-3")),
		"a server without cache":  wrong("web-3 cannot be bound to node node-4", build("node-4")),
		"two servers on one node": wrong("web-1 on node node-1", build("node-1")),
	})
}

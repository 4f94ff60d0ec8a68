package verify_test

import (
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// example is a cluster from a figure of the Kubernetes documentation, with the rules of a new pod and the nodes that
// accept it.
type example struct {
	nodes  func(w *world)
	rules  []func(*cluster.Pod)
	accept []string
}

// TestDocumentedExamples checks the examples of the pages "Pod Topology Spread Constraints" and "Assigning Pods to
// Nodes": it places the new pod on each node in turn.
func TestDocumentedExamples(t *testing.T) {
	t.Parallel()
	threePods := func(w *world) { // zone a: one pod on each of two nodes; zone b: one pod on the first of two nodes
		w.node("node1", "a", existing("web", 1))
		w.node("node2", "a", existing("web", 1))
		w.node("node3", "b", existing("web", 1))
		w.node("node4", "b")
	}
	fivePods := func(w *world) { // no node satisfies both a spread over zones and a spread over hosts
		w.node("node1", "a", existing("web", 2))
		w.node("node2", "a", existing("web", 1))
		w.node("node3", "b", existing("web", 2))
	}
	for name, e := range map[string]example{
		"one constraint": {threePods, rules(spread(zone, 1, "web")), []string{"node3", "node4"}},
		"one constraint with a larger skew": {
			threePods, rules(spread(zone, 2, "web")), []string{"node1", "node2", "node3", "node4"},
		},
		"several constraints":     {threePods, rules(spread(zone, 1, "web"), spread(hostname, 1, "web")), []string{"node4"}},
		"conflicting constraints": {fivePods, rules(spread(zone, 1, "web"), spread(hostname, 1, "web")), nil},
		"conflicting constraints, one soft": {
			fivePods, rules(spread(zone, 1, "web"), spread(hostname, 1, "web", soft)), []string{"node3"},
		},
		"with node affinity": {
			func(w *world) { threePods(w); w.node("node5", "c") },
			rules(spread(zone, 1, "web"), requiring(zone, "a", "b")), []string{"node3", "node4"},
		},
		"without that node affinity": {
			func(w *world) { threePods(w); w.node("node5", "c") },
			rules(spread(zone, 1, "web")), []string{"node5"},
		},
		"pods that the selector does not match pass": {
			// The selector does not match the pod itself, so both nodes accept it.
			func(w *world) { w.node("node1", "a", existing("db", 1)); w.node("node2", "b") },
			rules(spread(zone, 1, "db")), []string{"node1", "node2"},
		},
		"affinity to a zone": {
			func(w *world) { w.node("node1", "v", existing("s1", 1)); w.node("node2", "w", existing("s2", 1)) },
			rules(affinityTo(zone, "s1")), []string{"node1"},
		},
		"anti-affinity to a zone": {
			func(w *world) { w.node("node1", "r", existing("s2", 1)); w.node("node2", "r"); w.node("node3", "q") },
			rules(antiAffinityTo(zone, "s2")), []string{"node3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withNodes := newWorld()
			e.nodes(withNodes)
			for _, n := range withNodes.Nodes {
				w := newWorld()
				e.nodes(w)
				w.pod("web-new", e.rules...)
				w.place(n.Name, "web-new")
				got := w.check()
				if want := slices.Contains(e.accept, n.Name); want != (len(got) == 0) {
					t.Errorf("%s: the violations are %q, want the pod accepted: %t", n.Name, got, want)
				}
			}
		})
	}
}

func rules(r ...func(*cluster.Pod)) []func(*cluster.Pod) { return r }

// TestCacheAndServer checks the example of a cache and a web server in the Kubernetes documentation: each node has one
// cache and one server.
func TestCacheAndServer(t *testing.T) {
	t.Parallel()
	build := func(lastNode string) func(w *world) {
		return func(w *world) {
			for _, name := range []string{"store-1", "store-2", "store-3"} {
				w.pod(name, antiAffinityTo(hostname, "store"))
			}
			w.web(3, antiAffinityTo(hostname, "web"), affinityTo(hostname, "store"))
			for _, n := range []string{"node-1", "node-2", "node-3", "node-4"} {
				w.node(n, "a")
			}
			w.place("node-1", "web-1", "store-1")
			w.place("node-2", "web-2", "store-2")
			w.place("node-3", "store-3")
			w.place(lastNode, "web-3")
		}
	}
	run(t, map[string]testCase{
		"as documented":           valid(build("node-3")),
		"a server without cache":  invalid("web-3 cannot be bound to node node-4", build("node-4")),
		"two servers on one node": invalid("web-1 on node node-1", build("node-1")),
	})
}

package verify_test

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// agents adds a DaemonSet of pods that are named by the label app, as others are, in these zones or in all.
func (w *world) agents(avoids []cluster.Term, zones ...string) {
	w.daemon(0, zones...).Kind = &cluster.Kind{Namespace: "default", Labels: requirements.Labels{"app": "agent"}, Avoids: avoids}
}

// TestDaemons: the pods of DaemonSets are on a planned node before all others, and count there.
func TestDaemons(t *testing.T) {
	t.Parallel()
	const both, alone = "may both be in", "no pod that its affinity asks for"
	run(t, map[string]verdict{
		"who avoids them, on their host": wrong(both, func(w *world) {
			w.agents(nil)
			w.web(1, apart(hostname, "agent"))
			w.launch("a", "web-1")
		}),
		"who avoids them, beside them": right(func(w *world) {
			w.agents(nil, "b")
			w.web(1, apart(zone, "agent"))
			w.launch("a", "web-1")
			w.launch("b")
		}),
		"who avoids them, in a zone where another machine has one": wrong(both, func(w *world) {
			w.agents(nil, "b")
			w.web(1, apart(zone, "agent"))
			w.launch("a b", "web-1")
		}),
		"whom they avoid": wrong(both, func(w *world) {
			w.agents([]cluster.Term{term(hostname, "web")})
			w.web(1)
			w.launch("a", "web-1")
		}),
		"who wants them near": right(func(w *world) {
			w.agents(nil)
			w.web(1, near(hostname, "agent"))
			w.launch("a b", "web-1")
		}),
		"who wants them near, where they are not": wrong(alone, func(w *world) {
			w.agents(nil, "b")
			w.web(1, near(hostname, "agent"))
			w.launch("a", "web-1")
		}),
		"who wants them near, where they may not be": wrong(alone, func(w *world) {
			w.agents(nil, "b")
			w.web(1, near(zone, "agent"))
			w.launch("a b", "web-1")
		}),
		"who is spread with them, one on each host": right(func(w *world) {
			w.agents(nil)
			w.web(2, spread(hostname, 1, "agent", func(s *cluster.Spread) { s.Selector = either("web", "agent") }))
			w.launch("a", "web-1")
			w.launch("a", "web-2")
		}),
		"who is spread with them, beside a host without any": wrong("cannot be bound", func(w *world) {
			w.agents(nil)
			w.web(1, spread(hostname, 1, "agent", func(s *cluster.Spread) { s.Selector = either("web", "agent") }))
			w.node("n1", "a")
			w.launch("a", "web-1")
		}),
		"refused, and it could be near them": wrong("as large a spot would take it", func(w *world) {
			w.agents(nil)
			w.web(1, near(hostname, "agent"))
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"refused, as they are everywhere": right(func(w *world) {
			w.agents(nil)
			w.web(1, apart(zone, "agent"))
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"refused, as they avoid it": right(func(w *world) {
			w.agents([]cluster.Term{term(hostname, "web")})
			w.web(1)
			w.refuse(packing.TypeMismatch, "web-1")
		}),
		"refused, and there is a zone without them": wrong("as large a spot would take it", func(w *world) {
			w.agents(nil, "b", "c")
			w.web(1, apart(zone, "agent"))
			w.refuse(packing.TypeMismatch, "web-1")
		}),
	})
}

// either selects pods of both apps.
func either(a, b string) cluster.Selector {
	return cluster.Selector{Labels: requirements.Requirements{"app": requirements.OneOf(a, b)}}
}

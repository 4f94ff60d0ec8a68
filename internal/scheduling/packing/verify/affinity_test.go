package verify_test

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

func wish(p *cluster.Pod) {
	for i := range p.Affinity {
		p.Affinity[i].Weight = 1
	}
	for i := range p.AntiAffinity {
		p.AntiAffinity[i].Weight = 1
	}
}

func anywhere(p *cluster.Pod) {
	for _, terms := range [][]cluster.Term{p.Affinity, p.AntiAffinity} {
		for i := range terms {
			terms[i].AllNamespaces, terms[i].Namespaces = true, nil
		}
	}
}

// labelled adds a label to the pod.
func labelled(key, value string) func(*cluster.Pod) {
	return func(p *cluster.Pod) {
		l := requirements.Labels{key: value}
		for k, v := range p.Labels {
			l[k] = v
		}
		p.Labels = l
	}
}

// TestAffinity checks whether an order exists in which each pod can be bound with its required affinity.
func TestAffinity(t *testing.T) {
	t.Parallel()
	const lonely = "no pod that its affinity selects"
	tiers := func(p *cluster.Pod) { // one pod must be both
		p.Affinity = []cluster.Term{
			{Key: zone, Namespaces: []string{"default"}, Selector: app("db")},
			{Key: zone, Namespaces: []string{"default"},
				Selector: cluster.Selector{Labels: requirements.Requirements{"tier": requirements.OneOf("x")}}},
		}
	}
	run(t, map[string]verdict{
		"resident in the zone": right(func(w *world) {
			w.node("n1", "a", stays("db", 1))
			w.web(1, near(zone, "db"))
			w.launch("a", "web-1")
		}),
		"resident in another zone": wrong(lonely, func(w *world) {
			w.node("n1", "a", stays("db", 1))
			w.web(1, near(zone, "db"))
			w.launch("b", "web-1")
		}),
		"resident possibly in another zone": wrong(lonely, func(w *world) {
			w.node("n1", "a", stays("db", 1))
			w.web(1, near(zone, "db"))
			w.launch("a b", "web-1")
		}),
		"preferred term": right(func(w *world) {
			w.web(1, near(zone, "db"), wish)
			w.launch("b", "web-1")
		}),
		"no matching pod": wrong(lonely, func(w *world) {
			w.web(1, near(zone, "db"))
			w.launch("a", "web-1")
		}),
		"resident that is being deleted matches": right(func(w *world) {
			w.node("n1", "a", ending(stays("db", 1)))
			w.web(1, near(zone, "db"))
			w.launch("a", "web-1")
		}),
		"resident of another namespace does not match": wrong(lonely, func(w *world) {
			w.node("n1", "a", stays("db", 1)).Residents[0].Kind.Namespace = "other"
			w.web(1, near(zone, "db"))
			w.launch("a", "web-1")
		}),
		"resident of another namespace, all namespaces selected": right(func(w *world) {
			w.node("n1", "a", stays("db", 1)).Residents[0].Kind.Namespace = "other"
			w.web(1, near(zone, "db"), anywhere)
			w.launch("a", "web-1")
		}),
		"planned pod matches": right(func(w *world) {
			w.web(1, near(zone, "db"))
			w.pod("db-1")
			w.launch("a", "web-1")
			w.launch("a", "db-1")
		}),
		"planned pod possibly in another zone": wrong(lonely, func(w *world) {
			w.web(1, near(zone, "db"))
			w.pod("db-1")
			w.launch("a", "web-1")
			w.launch("a b", "db-1")
		}),
		"two pods on one node in any zone": right(func(w *world) {
			w.web(1, near(zone, "db"))
			w.pod("db-1")
			w.launch("a b c", "web-1", "db-1")
		}),
		"same host": right(func(w *world) {
			w.web(1, near(hostname, "db"))
			w.pod("db-1")
			w.launch("a b c", "web-1", "db-1")
		}),
		"different hosts": wrong(lonely, func(w *world) {
			w.web(1, near(hostname, "db"))
			w.pod("db-1")
			w.launch("a", "web-1")
			w.launch("a", "db-1")
		}),
		"node without the label": wrong("affinity needs the label rack", func(w *world) {
			w.web(1, near("rack", "web"))
			w.launch("a", "web-1")
		}),

		"first pod with affinity to itself": right(func(w *world) {
			w.web(3, near(zone, "web"))
			w.launch("a", "web-1", "web-2")
			w.launch("a", "web-3")
		}),
		"affinity to itself, two zones": wrong(lonely, func(w *world) {
			w.web(2, near(zone, "web"))
			w.launch("a", "web-1")
			w.launch("b", "web-2")
		}),
		"affinity to itself, resident in another zone": wrong(lonely, func(w *world) {
			w.web(2, near(zone, "web"))
			w.node("n1", "b", stays("web", 1))
			w.launch("a", "web-1", "web-2")
		}),
		"affinity to itself, one node in any zone": right(func(w *world) {
			w.web(2, near(zone, "web"))
			w.launch("a b", "web-1", "web-2")
		}),
		"affinity to itself, two nodes in any zone": wrong(lonely, func(w *world) {
			w.web(2, near(zone, "web"))
			w.launch("a b", "web-1")
			w.launch("a b", "web-2")
		}),
		"first pod must be bound before other matching pods": right(func(w *world) {
			w.web(2, near(zone, "web"))
			w.pod("web-9") // has no rules
			w.launch("b", "web-9")
			w.launch("a", "web-1", "web-2")
		}),
		"first pod in a zone without other matching pods": right(func(w *world) {
			w.web(2, near(zone, "web"))
			w.pod("web-9")
			w.launch("b", "web-9", "web-1")
			w.launch("a", "web-2")
		}),
		"two first pods": wrong(lonely, func(w *world) {
			w.web(3, near(zone, "web"))
			w.pod("web-9")
			w.launch("b", "web-9", "web-1")
			w.launch("a", "web-2")
			w.launch("c", "web-3")
		}),
		"cycle of two": wrong(lonely, func(w *world) {
			w.web(1, near(zone, "db"))
			w.pod("db-1", near(zone, "web"))
			w.launch("a", "web-1", "db-1")
		}),
		"a chain": right(func(w *world) {
			w.web(1, near(zone, "db"))
			w.pod("db-1", near(zone, "disk"))
			w.pod("disk-1")
			w.launch("a", "web-1")
			w.launch("a", "db-1")
			w.launch("a", "disk-1")
		}),

		"one pod matches both terms": right(func(w *world) {
			w.web(1, tiers)
			w.pod("db-1", labelled("tier", "x"))
			w.launch("a", "web-1", "db-1")
		}),
		"two pods match one term each": wrong(lonely, func(w *world) {
			w.web(1, tiers)
			w.pod("db-1")
			w.pod("cache-1", labelled("tier", "x"))
			w.launch("a", "web-1", "db-1", "cache-1")
		}),
		"terms over zone and host": right(func(w *world) {
			w.web(1, near(zone, "db"), near(hostname, "db"))
			w.pod("db-1")
			w.launch("a", "web-1", "db-1")
		}),
		"affinity satisfied by zone, violated by host": wrong(lonely, func(w *world) {
			w.web(1, near(zone, "db"), near(hostname, "db"))
			w.pod("db-1")
			w.launch("a", "web-1")
			w.launch("a", "db-1")
		}),
	})
}

// TestAntiAffinity checks that pods are not in a domain from which their own anti-affinity or that of another pod excludes them.
func TestAntiAffinity(t *testing.T) {
	t.Parallel()
	const both = "which anti-affinity rules out"
	run(t, map[string]verdict{
		"one per host": right(func(w *world) {
			w.web(2, apart(hostname, "web"))
			w.launch("a", "web-1")
			w.launch("a", "web-2")
		}),
		"two per host": wrong("pod default/web-1 on planned node general-1 and pod default/web-1 on planned node general-1 may both be in kubernetes.io/hostname of planned node general-1",
			func(w *world) {
				w.web(2, apart(hostname, "web"))
				w.launch("a", "web-1", "web-2")
			}),
		"preferred term": right(func(w *world) {
			w.web(2, apart(hostname, "web"), wish)
			w.launch("a", "web-1", "web-2")
		}),
		"one per zone": right(func(w *world) {
			w.web(2, apart(zone, "web"))
			w.launch("a", "web-1")
			w.launch("b", "web-2")
		}),
		"two possibly in one zone": wrong(both+"; zone b, which", func(w *world) {
			w.web(2, apart(zone, "web"))
			w.launch("a b", "web-1")
			w.launch("b", "web-2")
		}),
		"resident has anti-affinity to the pod": wrong("a pod of namespace default that is there on node n1", func(w *world) {
			w.node("n1", "a", stays("db", 1, term(zone, "web")))
			w.web(1)
			w.launch("a", "web-1")
		}),
		"resident has anti-affinity to the pod, another zone": right(func(w *world) {
			w.node("n1", "a", stays("db", 1, term(zone, "web")))
			w.web(1)
			w.launch("b", "web-1")
		}),
		"anti-affinity to a resident": wrong(both, func(w *world) {
			w.node("n1", "a", stays("db", 1))
			w.web(1, apart(zone, "db"))
			w.launch("a", "web-1")
		}),
		"anti-affinity to a resident that is being deleted": wrong(both, func(w *world) {
			w.node("n1", "a", ending(stays("db", 1)))
			w.web(1, apart(zone, "db"))
			w.launch("a", "web-1")
		}),
		"anti-affinity to a resident of a leaving node": wrong(both, func(w *world) {
			w.node("n1", "a", stays("db", 1)).Leaving = true
			w.web(1, apart(zone, "db"))
			w.launch("a", "web-1")
		}),
		"anti-affinity to a planned pod": wrong(both, func(w *world) {
			w.web(1, apart(zone, "db"))
			w.pod("db-1")
			w.launch("a", "web-1")
			w.launch("a", "db-1")
		}),
		"resident of another namespace": right(func(w *world) {
			w.node("n1", "a", stays("db", 1)).Residents[0].Kind.Namespace = "other"
			w.web(1, apart(zone, "db"))
			w.launch("a", "web-1")
		}),
		"resident of another namespace, all namespaces selected": wrong(both, func(w *world) {
			w.node("n1", "a", stays("db", 1)).Residents[0].Kind.Namespace = "other"
			w.web(1, apart(zone, "db"), anywhere)
			w.launch("a", "web-1")
		}),
		"anti-affinity between residents of one node": right(func(w *world) {
			w.node("n1", "a", stays("db", 2, term(zone, "db")))
			w.web(1)
			w.launch("a", "web-1")
		}),
		"a single pod with anti-affinity to itself": right(func(w *world) {
			w.web(1, apart(zone, "web"), apart(zone, "web"), apart(hostname, "web"))
			w.launch("a b", "web-1")
		}),
		"nodes without the label are in no domain": right(func(w *world) {
			w.web(2, apart("rack", "web"))
			w.launch("a", "web-1", "web-2")
		}),
		"planned node that may have the label": wrong(both, func(w *world) {
			w.web(2, apart("rack", "web"))
			w.Market["default"].Types[0].Labels["rack"] = "r1"
			w.launch("a", "web-1", "web-2")
			w.keep(0, choice("large", "a", "on-demand"))
		}),
	})
}

// TestClaims checks that pods that share an unbound volume claim are in one zone.
func TestClaims(t *testing.T) {
	t.Parallel()
	uses := func(names ...string) func(*cluster.Pod) {
		return func(p *cluster.Pod) { p.Volumes = names }
	}
	const torn = "volume claim default/data"
	run(t, map[string]verdict{
		"one zone": right(func(w *world) {
			w.web(2, uses("default/data"))
			w.launch("a", "web-1")
			w.launch("a", "web-2")
		}),
		"two zones": wrong(torn+": its pods are on planned node general-1 and planned node general-2, which may be in zones a b", func(w *world) {
			w.web(2, uses("default/data"))
			w.launch("a", "web-1")
			w.launch("b", "web-2")
		}),
		"one node in any zone": right(func(w *world) {
			w.web(2, uses("default/data"))
			w.launch("a b", "web-1", "web-2")
		}),
		"two nodes in any zone": wrong(torn, func(w *world) {
			w.web(2, uses("default/data"))
			w.launch("a b", "web-1")
			w.launch("a b", "web-2")
		}),
		"a node in the zone": right(func(w *world) {
			w.node("n1", "a")
			w.web(2, uses("default/data"))
			w.place("n1", "web-1")
			w.launch("a", "web-2")
		}),
		"a node in another zone": wrong(torn, func(w *world) {
			w.node("n1", "b")
			w.web(2, uses("default/data"))
			w.place("n1", "web-1")
			w.launch("a", "web-2")
		}),
		"other claims": right(func(w *world) {
			w.pod("web-1", uses("default/data"))
			w.pod("web-2", uses("default/logs"))
			w.launch("a", "web-1")
			w.launch("b", "web-2")
		}),
	})
}

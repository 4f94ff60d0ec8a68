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

// labelled gives the pod another label.
func labelled(key, value string) func(*cluster.Pod) {
	return func(p *cluster.Pod) {
		l := requirements.Labels{key: value}
		for k, v := range p.Labels {
			l[k] = v
		}
		p.Labels = l
	}
}

// TestAffinity: whether there is an order in which the pods find the company they ask for.
func TestAffinity(t *testing.T) {
	t.Parallel()
	const lonely = "no pod that its affinity asks for"
	tiers := func(p *cluster.Pod) { // one pod must be both
		p.Affinity = []cluster.Term{
			{Key: zone, Namespaces: []string{"default"}, Selector: app("db")},
			{Key: zone, Namespaces: []string{"default"},
				Selector: cluster.Selector{Labels: requirements.Requirements{"tier": requirements.OneOf("x")}}},
		}
	}
	run(t, map[string]verdict{
		"next to a resident": right(func(w *world) {
			w.node("n1", "a", stays("db", 1))
			w.web(1, near(zone, "db"))
			w.launch("a", "web-1")
		}),
		"a zone away": wrong(lonely, func(w *world) {
			w.node("n1", "a", stays("db", 1))
			w.web(1, near(zone, "db"))
			w.launch("b", "web-1")
		}),
		"perhaps a zone away": wrong(lonely, func(w *world) {
			w.node("n1", "a", stays("db", 1))
			w.web(1, near(zone, "db"))
			w.launch("a b", "web-1")
		}),
		"a wish is no demand": right(func(w *world) {
			w.web(1, near(zone, "db"), wish)
			w.launch("b", "web-1")
		}),
		"nobody there": wrong(lonely, func(w *world) {
			w.web(1, near(zone, "db"))
			w.launch("a", "web-1")
		}),
		"a resident that ends is company": right(func(w *world) {
			w.node("n1", "a", ending(stays("db", 1)))
			w.web(1, near(zone, "db"))
			w.launch("a", "web-1")
		}),
		"a resident of another namespace is not": wrong(lonely, func(w *world) {
			w.node("n1", "a", stays("db", 1)).Residents[0].Kind.Namespace = "other"
			w.web(1, near(zone, "db"))
			w.launch("a", "web-1")
		}),
		"unless all namespaces count": right(func(w *world) {
			w.node("n1", "a", stays("db", 1)).Residents[0].Kind.Namespace = "other"
			w.web(1, near(zone, "db"), anywhere)
			w.launch("a", "web-1")
		}),
		"a planned pod is company": right(func(w *world) {
			w.web(1, near(zone, "db"))
			w.pod("db-1")
			w.launch("a", "web-1")
			w.launch("a", "db-1")
		}),
		"one that is perhaps elsewhere is none": wrong(lonely, func(w *world) {
			w.web(1, near(zone, "db"))
			w.pod("db-1")
			w.launch("a", "web-1")
			w.launch("a b", "db-1")
		}),
		"two on one machine, wherever it is": right(func(w *world) {
			w.web(1, near(zone, "db"))
			w.pod("db-1")
			w.launch("a b c", "web-1", "db-1")
		}),
		"on one host": right(func(w *world) {
			w.web(1, near(hostname, "db"))
			w.pod("db-1")
			w.launch("a b c", "web-1", "db-1")
		}),
		"on another host": wrong(lonely, func(w *world) {
			w.web(1, near(hostname, "db"))
			w.pod("db-1")
			w.launch("a", "web-1")
			w.launch("a", "db-1")
		}),
		"without the label": wrong("affinity needs the label rack", func(w *world) {
			w.web(1, near("rack", "web"))
			w.launch("a", "web-1")
		}),

		"the first of a series": right(func(w *world) {
			w.web(3, near(zone, "web"))
			w.launch("a", "web-1", "web-2")
			w.launch("a", "web-3")
		}),
		"a series in two zones": wrong(lonely, func(w *world) {
			w.web(2, near(zone, "web"))
			w.launch("a", "web-1")
			w.launch("b", "web-2")
		}),
		"a series where there is one already": wrong(lonely, func(w *world) {
			w.web(2, near(zone, "web"))
			w.node("n1", "b", stays("web", 1))
			w.launch("a", "web-1", "web-2")
		}),
		"a series on one machine that is anywhere": right(func(w *world) {
			w.web(2, near(zone, "web"))
			w.launch("a b", "web-1", "web-2")
		}),
		"a series on two machines that are anywhere": wrong(lonely, func(w *world) {
			w.web(2, near(zone, "web"))
			w.launch("a b", "web-1")
			w.launch("a b", "web-2")
		}),
		"the first must go before others that count": right(func(w *world) {
			w.web(2, near(zone, "web"))
			w.pod("web-9") // asks for nothing
			w.launch("b", "web-9")
			w.launch("a", "web-1", "web-2")
		}),
		"the first goes where it would be alone": right(func(w *world) {
			w.web(2, near(zone, "web"))
			w.pod("web-9")
			w.launch("b", "web-9", "web-1")
			w.launch("a", "web-2")
		}),
		"there can be one first only": wrong(lonely, func(w *world) {
			w.web(3, near(zone, "web"))
			w.pod("web-9")
			w.launch("b", "web-9", "web-1")
			w.launch("a", "web-2")
			w.launch("c", "web-3")
		}),
		"two that wait for each other": wrong(lonely, func(w *world) {
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

		"one pod that is all that is asked for": right(func(w *world) {
			w.web(1, tiers)
			w.pod("db-1", labelled("tier", "x"))
			w.launch("a", "web-1", "db-1")
		}),
		"two pods, of which each is half": wrong(lonely, func(w *world) {
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
		"right in the zone, wrong on the host": wrong(lonely, func(w *world) {
			w.web(1, near(zone, "db"), near(hostname, "db"))
			w.pod("db-1")
			w.launch("a", "web-1")
			w.launch("a", "db-1")
		}),
	})
}

// TestAntiAffinity: pods may not be in a domain from which the anti-affinity of another pod excludes them.
func TestAntiAffinity(t *testing.T) {
	t.Parallel()
	const both = "which anti-affinity rules out"
	run(t, map[string]verdict{
		"one to a host": right(func(w *world) {
			w.web(2, apart(hostname, "web"))
			w.launch("a", "web-1")
			w.launch("a", "web-2")
		}),
		"two on a host": wrong("pod default/web-1 on planned node general-1 and pod default/web-1 on planned node general-1 may both be in kubernetes.io/hostname of planned node general-1", func(w *world) {
			w.web(2, apart(hostname, "web"))
			w.launch("a", "web-1", "web-2")
		}),
		"a wish is no demand": right(func(w *world) {
			w.web(2, apart(hostname, "web"), wish)
			w.launch("a", "web-1", "web-2")
		}),
		"one to a zone": right(func(w *world) {
			w.web(2, apart(zone, "web"))
			w.launch("a", "web-1")
			w.launch("b", "web-2")
		}),
		"two that may be in one zone": wrong(both+"; zone b, which", func(w *world) {
			w.web(2, apart(zone, "web"))
			w.launch("a b", "web-1")
			w.launch("b", "web-2")
		}),
		"whom a resident avoids": wrong("a pod of namespace default that is there on node n1", func(w *world) {
			w.node("n1", "a", stays("db", 1, term(zone, "web")))
			w.web(1)
			w.launch("a", "web-1")
		}),
		"whom a resident avoids, elsewhere": right(func(w *world) {
			w.node("n1", "a", stays("db", 1, term(zone, "web")))
			w.web(1)
			w.launch("b", "web-1")
		}),
		"who avoids a resident": wrong(both, func(w *world) {
			w.node("n1", "a", stays("db", 1))
			w.web(1, apart(zone, "db"))
			w.launch("a", "web-1")
		}),
		"who avoids a resident that ends": wrong(both, func(w *world) {
			w.node("n1", "a", ending(stays("db", 1)))
			w.web(1, apart(zone, "db"))
			w.launch("a", "web-1")
		}),
		"who avoids a resident of a leaving node": wrong(both, func(w *world) {
			w.node("n1", "a", stays("db", 1)).Leaving = true
			w.web(1, apart(zone, "db"))
			w.launch("a", "web-1")
		}),
		"who avoids a planned pod": wrong(both, func(w *world) {
			w.web(1, apart(zone, "db"))
			w.pod("db-1")
			w.launch("a", "web-1")
			w.launch("a", "db-1")
		}),
		"who avoids another namespace's": right(func(w *world) {
			w.node("n1", "a", stays("db", 1)).Residents[0].Kind.Namespace = "other"
			w.web(1, apart(zone, "db"))
			w.launch("a", "web-1")
		}),
		"who avoids all namespaces'": wrong(both, func(w *world) {
			w.node("n1", "a", stays("db", 1)).Residents[0].Kind.Namespace = "other"
			w.web(1, apart(zone, "db"), anywhere)
			w.launch("a", "web-1")
		}),
		"residents that are together already": right(func(w *world) {
			w.node("n1", "a", stays("db", 2, term(zone, "db")))
			w.web(1)
			w.launch("a", "web-1")
		}),
		"one that avoids itself": right(func(w *world) {
			w.web(1, apart(zone, "web"), apart(zone, "web"), apart(hostname, "web"))
			w.launch("a b", "web-1")
		}),
		"nodes without the label are no domain": right(func(w *world) {
			w.web(2, apart("rack", "web"))
			w.launch("a", "web-1", "web-2")
		}),
		"a machine that may have the label": wrong(both, func(w *world) {
			w.web(2, apart("rack", "web"))
			w.Market["default"].Types[0].Labels["rack"] = "r1"
			w.launch("a", "web-1", "web-2")
			w.keep(0, choice("large", "a", "on-demand"))
		}),
	})
}

// TestClaims: pods that share a volume claim which has no volume yet end up in one zone.
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
		"one machine anywhere": right(func(w *world) {
			w.web(2, uses("default/data"))
			w.launch("a b", "web-1", "web-2")
		}),
		"two machines anywhere": wrong(torn, func(w *world) {
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

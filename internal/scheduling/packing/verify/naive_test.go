package verify_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("rapid.nofailfile", "true") // failures are printed, so rapid needs no file
	os.Exit(m.Run())
}

// TestNaiveScheduler compares Check with a simple implementation of kube-scheduler's filters, which counts all pods
// again at each step. It tries every order of the pods in every naiveWorld, which has one offering for each planned
// node. If Check accepts a plan, each naiveWorld must have an order that works. If one order works in all of them,
// Check must accept the plan.
func TestNaiveScheduler(t *testing.T) {
	t.Parallel()
	validPlans, invalidPlans := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		got := w.check()
		worlds := naiveWorlds(w)
		allHaveOrder := true
		for _, n := range worlds {
			allHaveOrder = allHaveOrder && n.hasOrder()
		}
		switch common := haveCommonOrder(worlds); {
		case len(got) == 0 && !allHaveOrder:
			t.Errorf("Check accepts the plan, but in some naiveWorld no order works: %s", w)
		case len(got) > 0 && common && len(w.Daemons) > 0 && w.Daemons[0].Required != nil:
			// Check may reject a valid plan if a DaemonSet pod runs with only some of a planned node's offerings.
		case len(got) > 0 && common:
			t.Errorf("Check rejects the plan, but one order works in each naiveWorld: %q\n%s", got, w)
		case len(got) == 0:
			validPlans++
		default:
			invalidPlans++
		}
	})
	t.Logf("%d valid plans, %d invalid plans", validPlans, invalidPlans)
}

func (w *world) String() string {
	s := ""
	for _, n := range w.Nodes {
		s += fmt.Sprintf("node %s %s %v", n.Name, n.Labels[zone], n.Taints)
		for _, r := range n.Residents {
			s += fmt.Sprintf(" %d %s ending=%t avoids=%v", r.Count, r.Labels["app"], r.Terminating, r.RequiredAntiAffinity)
		}
		s += "\n"
	}
	for _, d := range w.Daemons {
		s += fmt.Sprintf("daemon required=%v %s avoids=%v\n", d.Required, d.Kind.Labels["app"], d.Kind.RequiredAntiAffinity)
	}
	for _, pn := range w.plan.PlannedNodes {
		s += fmt.Sprint(pn.Name, pn.Offerings, pn.Pods, "\n")
	}
	s += fmt.Sprint(w.plan.Placements, "\n")
	for _, p := range w.Pods {
		s += fmt.Sprintf("%s required=%v spread=%+v near=%+v apart=%+v tolerates=%v\n", p.Name, p.Required, p.Spread,
			p.Affinity, p.AntiAffinity, p.Tolerations)
	}
	return s
}

var apps = []string{"x", "y"}

func drawWorld(t *rapid.T) *world {
	w := newWorld()
	oneIn := func(n int, label string) bool { return rapid.IntRange(0, n-1).Draw(t, label) == 0 }
	key := func() string { return rapid.SampledFrom([]string{zone, zone, hostname}).Draw(t, "key") }
	someApp := func() string { return rapid.SampledFrom(apps).Draw(t, "app") }
	for i := range rapid.IntRange(0, 3).Draw(t, "nodes") {
		n := w.node(fmt.Sprint("n", i), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone"))
		if oneIn(3, "taint") {
			n.Taints = taint("x")
		}
		if oneIn(3, "residents") {
			r := existing(someApp(), rapid.IntRange(1, 2).Draw(t, "count"))
			if oneIn(4, "avoids") {
				r.RequiredAntiAffinity = []cluster.Term{term(key(), someApp())}
			}
			r.Terminating = oneIn(4, "ending")
			n.Residents = append(n.Residents, r)
		}
	}
	if oneIn(3, "daemon") {
		w.daemon(0, rapid.SampledFrom([][]string{nil, nil, {"a"}, {"a", "b"}}).Draw(t, "daemon's zones")...)
		k := &cluster.PodKind{Namespace: "default", Labels: requirements.Labels{"app": someApp()}}
		if oneIn(3, "daemon avoids") {
			k.RequiredAntiAffinity = []cluster.Term{term(key(), someApp())}
		}
		w.Daemons[0].Kind = k
	}
	plannedNodes := rapid.IntRange(1, 3).Draw(t, "plannedNodes")
	for range plannedNodes {
		w.launch(rapid.SampledFrom([]string{"a", "b", "a b", "b c", "a b c"}).Draw(t, "zones"))
	}
	var classes []cluster.Pod
	for range rapid.IntRange(1, 3).Draw(t, "classes") {
		classes = append(classes, drawRules(t, oneIn, key, someApp))
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "pods") {
		p := rapid.SampledFrom(classes).Draw(t, "class")
		p.Namespace, p.Name = "default", fmt.Sprint("p", i)
		host := rapid.IntRange(0, len(w.Nodes)+plannedNodes-1).Draw(t, "host")
		var zones []string
		if host < len(w.Nodes) {
			n := w.Nodes[host]
			zones = []string{n.Labels[zone]}
			if len(n.Taints) > 0 {
				p.Tolerations = []requirements.Toleration{{Key: "x", Operator: "Exists"}}
			}
			w.place(n.Name, p.Name)
		} else {
			pn := &w.plan.PlannedNodes[host-len(w.Nodes)]
			for _, o := range pn.Offerings {
				zones = append(zones, o.Zone)
			}
			pn.Pods = append(pn.Pods, p.ID())
		}
		// The pod keeps its required zones only if they include all zones of its place.
		if p.Required != nil && !slices.ContainsFunc(zones, func(z string) bool { return !p.Required[0][zone].Accepts(z) }) {
			w.Pods = append(w.Pods, p)
			continue
		}
		p.Required = nil
		w.Pods = append(w.Pods, p)
	}
	w.plan.PlannedNodes = slices.Clip(w.plan.PlannedNodes)
	return w
}

func drawRules(t *rapid.T, oneIn func(int, string) bool, key, someApp func() string) cluster.Pod {
	p := cluster.Pod{Labels: requirements.Labels{"app": someApp()}}
	p.Requests.Pods = 1
	for range rapid.IntRange(0, 2).Draw(t, "spreads") {
		p.Spread = append(p.Spread, cluster.Spread{
			Key: key(), MaxSkew: rapid.IntRange(1, 2).Draw(t, "skew"), Selector: app(someApp()),
			IgnoresNodeAffinity: oneIn(4, "anyNode"), HonorTaints: oneIn(4, "honorTaints"), Soft: oneIn(6, "soft"),
		})
		if oneIn(6, "minDomains") {
			p.Spread[len(p.Spread)-1].MinDomains = 2
		}
	}
	for range rapid.SampledFrom([]int{0, 0, 1, 1, 2}).Draw(t, "affinity") {
		p.Affinity = append(p.Affinity, term(key(), someApp()))
	}
	if oneIn(6, "antiAffinity") {
		p.AntiAffinity = append(p.AntiAffinity, term(key(), someApp()))
	}
	if oneIn(4, "required") {
		p.Required = []requirements.Requirements{{zone: requirements.OneOf(rapid.SliceOfNDistinct(
			rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3, rapid.ID).Draw(t, "required zones")...)}}
	}
	return p
}

// naiveWorld is a cluster with a plan in which each planned node has one offering.
type naiveWorld struct {
	nodes []naiveNode
	pods  []cluster.Pod
	hosts []int // by pod: index of its node in the plan
}

type naiveNode struct {
	labels requirements.Labels
	taints []requirements.Taint
	pods   []naivePod
}

type naivePod struct {
	namespace string
	labels    requirements.Labels
	avoids    []cluster.Term
	ending    bool
}

// naiveWorlds returns a naiveWorld for each choice of one offering per planned node.
func naiveWorlds(w *world) []*naiveWorld {
	out := []*naiveWorld{{}}
	hostOf := map[string]int{}
	for i, n := range w.Nodes {
		node := naiveNode{labels: n.Labels, taints: n.Taints}
		for _, r := range n.Residents {
			for range r.Count {
				node.pods = append(node.pods, naivePod{r.Namespace, r.Labels, r.RequiredAntiAffinity, r.Terminating})
			}
		}
		out[0].nodes = append(out[0].nodes, node)
		for _, p := range w.plan.Placements {
			if p.Node == n.Name {
				hostOf[p.Pod] = i
			}
		}
	}
	for i, pn := range w.plan.PlannedNodes {
		for _, p := range pn.Pods {
			hostOf[p] = len(w.Nodes) + i
		}
		var more []*naiveWorld
		for _, o := range pn.Offerings {
			for _, n := range out {
				node := naiveNode{labels: requirements.Labels{zone: o.Zone, hostname: pn.Name}}
				for _, d := range w.Daemons { // DaemonSet pods start first
					if len(d.Required) == 0 || d.Required[0].Accepts(node.labels) {
						node.pods = append(node.pods, naivePod{d.Kind.Namespace, d.Kind.Labels, d.Kind.RequiredAntiAffinity, false})
					}
				}
				more = append(more, &naiveWorld{nodes: append(slices.Clone(n.nodes), node)})
			}
		}
		out = more
	}
	for _, n := range out {
		for _, p := range w.Pods {
			n.pods = append(n.pods, p)
			n.hosts = append(n.hosts, hostOf[p.ID()])
		}
	}
	return out
}

func (n *naiveWorld) bind(i int) {
	p := n.pods[i]
	node := &n.nodes[n.hosts[i]]
	node.pods = append(slices.Clip(node.pods), naivePod{p.Namespace, p.Labels, p.AntiAffinity, false})
}

func (n *naiveWorld) unbind(i int) {
	node := &n.nodes[n.hosts[i]]
	node.pods = node.pods[:len(node.pods)-1]
}

// hasOrder reports whether all pods can be bound in some order.
func (n *naiveWorld) hasOrder() bool { return haveCommonOrder([]*naiveWorld{n}) }

// haveCommonOrder reports whether one order works in all worlds. It tries all orders; dead has the sets of bound pods
// from which no order works.
func haveCommonOrder(worlds []*naiveWorld) bool {
	dead := map[int]bool{}
	var from func(bound int) bool
	from = func(bound int) bool {
		if bound == 1<<len(worlds[0].pods)-1 {
			return true
		}
		if dead[bound] {
			return false
		}
		for i := range worlds[0].pods {
			if bound>>i&1 == 1 || slices.ContainsFunc(worlds, func(n *naiveWorld) bool { return !n.passes(i) }) {
				continue
			}
			for _, n := range worlds {
				n.bind(i)
			}
			ok := from(bound | 1<<i)
			for _, n := range worlds {
				n.unbind(i)
			}
			if ok {
				return true
			}
		}
		dead[bound] = true
		return false
	}
	return from(0)
}

// passes reports whether the filters accept the pod on its node now.
func (n *naiveWorld) passes(i int) bool {
	p := &n.pods[i]
	return n.spreadsAllow(p, n.hosts[i]) && n.affinityAllows(p, n.hosts[i]) && n.antiAffinityAllows(p, n.hosts[i])
}

// spreadsAllow implements the filter of the scheduler plugin PodTopologySpread.
func (n *naiveWorld) spreadsAllow(p *cluster.Pod, host int) bool {
	for _, s := range p.Spread {
		if s.Soft {
			continue
		}
		if _, ok := n.nodes[host].labels[s.Key]; !ok {
			return false
		}
		domains := map[string]int{}
		for _, node := range n.nodes {
			if !n.counts(p, &s, &node) {
				continue
			}
			domains[node.labels[s.Key]] += 0 // a domain without pods counts too
			for _, other := range node.pods {
				if !other.ending && other.namespace == p.Namespace && s.Selector.Matches(other.labels) {
					domains[node.labels[s.Key]]++
				}
			}
		}
		fewest := 1 << 30
		for _, count := range domains {
			fewest = min(fewest, count)
		}
		if len(domains) < max(s.MinDomains, 1) {
			fewest = 0
		}
		count := domains[n.nodes[host].labels[s.Key]]
		if s.Selector.Matches(p.Labels) {
			count++
		}
		if count-fewest > s.MaxSkew {
			return false
		}
	}
	return true
}

// counts reports whether the spread constraint of the pod counts the node.
func (n *naiveWorld) counts(p *cluster.Pod, s *cluster.Spread, node *naiveNode) bool {
	for _, other := range p.Spread {
		if _, ok := node.labels[other.Key]; !ok && !other.Soft {
			return false
		}
	}
	if !s.IgnoresNodeAffinity && len(p.Required) > 0 &&
		!slices.ContainsFunc(p.Required, func(r requirements.Requirements) bool { return r.Accepts(node.labels) }) {
		return false
	}
	if s.HonorTaints {
		if _, repels := requirements.Untolerated(node.taints, p.Tolerations); repels {
			return false
		}
	}
	return true
}

// affinityAllows implements the affinity part of the scheduler plugin InterPodAffinity.
func (n *naiveWorld) affinityAllows(p *cluster.Pod, host int) bool {
	matchesAll := func(namespace string, labels requirements.Labels) bool {
		return !slices.ContainsFunc(p.Affinity, func(t cluster.Term) bool { return !t.Matches(namespace, labels) })
	}
	anyMatch, allInDomain := false, true
	for _, t := range p.Affinity {
		found := false
		value, ok := n.nodes[host].labels[t.Key]
		if !ok {
			return false
		}
		for _, node := range n.nodes {
			for _, other := range node.pods {
				if matchesAll(other.namespace, other.labels) {
					anyMatch = true
					found = found || node.labels[t.Key] == value
				}
			}
		}
		allInDomain = allInDomain && found
	}
	return allInDomain || !anyMatch && matchesAll(p.Namespace, p.Labels)
}

// antiAffinityAllows implements the anti-affinity part of InterPodAffinity, in both directions.
func (n *naiveWorld) antiAffinityAllows(p *cluster.Pod, host int) bool {
	for _, node := range n.nodes {
		sameDomain := func(t cluster.Term) bool {
			value, ok := n.nodes[host].labels[t.Key]
			other, both := node.labels[t.Key]
			return ok && both && value == other
		}
		for _, other := range node.pods {
			for _, t := range p.AntiAffinity {
				if sameDomain(t) && t.Matches(other.namespace, other.labels) {
					return false
				}
			}
			for _, t := range other.avoids {
				if sameDomain(t) && t.Matches(p.Namespace, p.Labels) {
					return false
				}
			}
		}
	}
	return true
}

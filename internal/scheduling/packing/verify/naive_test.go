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

// TestNaive compares Check with a simple implementation of kube-scheduler's filters. It tries
// every offering of every planned node and every order of the pods, and counts all pods
// again at each step. Each choice of offerings is a world. If Check accepts a plan, some order must work in
// each world. If one order works in all worlds, Check must accept the plan.
func TestNaive(t *testing.T) {
	t.Parallel()
	rights, wrongs := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		got := w.check()
		worlds := naiveWorlds(w)
		every := true
		for _, n := range worlds {
			every = every && n.ordered()
		}
		switch one := oneOrder(worlds); {
		case len(got) == 0 && !every:
			t.Errorf("Check accepts the plan, but no order works: %s", w)
		case len(got) > 0 && one && len(w.Daemons) > 0 && w.Daemons[0].Required != nil:
			// Check may reject a valid plan if a DaemonSet pod runs with only some of a planned node's offerings.
		case len(got) > 0 && one:
			t.Errorf("Check rejects the plan, but one order works: %q\n%s", got, w)
		case len(got) == 0:
			rights++
		default:
			wrongs++
		}
	})
	t.Logf("%d valid plans, %d invalid plans", rights, wrongs)
}

func (w *world) String() string {
	s := ""
	for _, n := range w.Nodes {
		s += fmt.Sprintf("node %s %s %v", n.Name, n.Labels[zone], n.Taints)
		for _, r := range n.Residents {
			s += fmt.Sprintf(" %d %s ending=%t avoids=%v", r.Count, r.Labels["app"], r.Ending, r.Avoids)
		}
		s += "\n"
	}
	for _, d := range w.Daemons {
		s += fmt.Sprintf("daemon required=%v %s avoids=%v\n", d.Required, d.Kind.Labels["app"], d.Kind.Avoids)
	}
	for _, m := range w.plan.PlannedNodes {
		s += fmt.Sprint(m.Name, m.Offerings, m.Pods, "\n")
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
	sometimes := func(of int, what string) bool { return rapid.IntRange(0, of-1).Draw(t, what) == 0 }
	key := func() string { return rapid.SampledFrom([]string{zone, zone, hostname}).Draw(t, "key") }
	someApp := func() string { return rapid.SampledFrom(apps).Draw(t, "app") }
	for i := range rapid.IntRange(0, 3).Draw(t, "nodes") {
		n := w.node(fmt.Sprint("n", i), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone"))
		if sometimes(3, "taint") {
			n.Taints = taint("x")
		}
		if sometimes(3, "residents") {
			r := stays(someApp(), rapid.IntRange(1, 2).Draw(t, "count"))
			if sometimes(4, "avoids") {
				r.Avoids = []cluster.Term{term(key(), someApp())}
			}
			r.Ending = sometimes(4, "ending")
			n.Residents = append(n.Residents, r)
		}
	}
	if sometimes(3, "daemon") {
		w.daemon(0, rapid.SampledFrom([][]string{nil, nil, {"a"}, {"a", "b"}}).Draw(t, "daemon's zones")...)
		k := &cluster.Kind{Namespace: "default", Labels: requirements.Labels{"app": someApp()}}
		if sometimes(3, "daemon avoids") {
			k.Avoids = []cluster.Term{term(key(), someApp())}
		}
		w.Daemons[0].Kind = k
	}
	machines := rapid.IntRange(1, 3).Draw(t, "machines")
	for range machines {
		w.launch(rapid.SampledFrom([]string{"a", "b", "a b", "b c", "a b c"}).Draw(t, "zones"))
	}
	var classes []cluster.Pod
	for range rapid.IntRange(1, 3).Draw(t, "classes") {
		classes = append(classes, drawRules(t, sometimes, key, someApp))
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "pods") {
		p := rapid.SampledFrom(classes).Draw(t, "class")
		p.Namespace, p.Name = "default", fmt.Sprint("p", i)
		at := rapid.IntRange(0, len(w.Nodes)+machines-1).Draw(t, "at")
		var zones []string
		if at < len(w.Nodes) {
			n := w.Nodes[at]
			zones = []string{n.Labels[zone]}
			if len(n.Taints) > 0 {
				p.Tolerations = []requirements.Toleration{{Key: "x", Operator: "Exists"}}
			}
			w.place(n.Name, p.Name)
		} else {
			m := &w.plan.PlannedNodes[at-len(w.Nodes)]
			for _, o := range m.Offerings {
				zones = append(zones, o.Zone)
			}
			m.Pods = append(m.Pods, p.ID())
		}
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

// drawRules draws a pod with an app and rules.
func drawRules(t *rapid.T, sometimes func(int, string) bool, key, someApp func() string) cluster.Pod {
	p := cluster.Pod{Labels: requirements.Labels{"app": someApp()}}
	p.Requests.Pods = 1
	for range rapid.IntRange(0, 2).Draw(t, "spreads") {
		p.Spread = append(p.Spread, cluster.Spread{
			Key: key(), MaxSkew: rapid.IntRange(1, 2).Draw(t, "skew"), Selector: app(someApp()),
			AnyNode: sometimes(4, "anyNode"), HonorTaints: sometimes(4, "honorTaints"), Soft: sometimes(6, "soft"),
		})
		if sometimes(6, "minDomains") {
			p.Spread[len(p.Spread)-1].MinDomains = 2
		}
	}
	for range rapid.SampledFrom([]int{0, 0, 1, 1, 2}).Draw(t, "affinity") {
		p.Affinity = append(p.Affinity, term(key(), someApp()))
	}
	if sometimes(6, "antiAffinity") {
		p.AntiAffinity = append(p.AntiAffinity, term(key(), someApp()))
	}
	if sometimes(4, "required") {
		p.Required = []requirements.Requirements{{zone: requirements.OneOf(rapid.SliceOfNDistinct(
			rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3, rapid.ID).Draw(t, "required zones")...)}}
	}
	return p
}

// naive is one world: one offering for each planned node.
type naive struct {
	nodes []naiveNode
	pods  []cluster.Pod
	to    []int // by pod: its node
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

func naiveWorlds(w *world) []*naive {
	out := []*naive{{}}
	to := map[string]int{}
	for i, n := range w.Nodes {
		node := naiveNode{labels: n.Labels, taints: n.Taints}
		for _, r := range n.Residents {
			for range r.Count {
				node.pods = append(node.pods, naivePod{r.Namespace, r.Labels, r.Avoids, r.Ending})
			}
		}
		out[0].nodes = append(out[0].nodes, node)
		for _, p := range w.plan.Placements {
			if p.Node == n.Name {
				to[p.Pod] = i
			}
		}
	}
	for i, m := range w.plan.PlannedNodes {
		for _, p := range m.Pods {
			to[p] = len(w.Nodes) + i
		}
		var more []*naive
		for _, o := range m.Offerings {
			for _, n := range out {
				node := naiveNode{labels: requirements.Labels{zone: o.Zone, hostname: m.Name}}
				for _, d := range w.Daemons { // DaemonSet pods start first
					if len(d.Required) == 0 || d.Required[0].Accepts(node.labels) {
						node.pods = append(node.pods, naivePod{d.Kind.Namespace, d.Kind.Labels, d.Kind.Avoids, false})
					}
				}
				more = append(more, &naive{nodes: append(slices.Clone(n.nodes), node)})
			}
		}
		out = more
	}
	for _, n := range out {
		for _, p := range w.Pods {
			n.pods = append(n.pods, p)
			n.to = append(n.to, to[p.ID()])
		}
	}
	return out
}

func (n *naive) bind(i int) {
	p := n.pods[i]
	node := &n.nodes[n.to[i]]
	node.pods = append(slices.Clip(node.pods), naivePod{p.Namespace, p.Labels, p.AntiAffinity, false})
}

func (n *naive) unbind(i int) {
	node := &n.nodes[n.to[i]]
	node.pods = node.pods[:len(node.pods)-1]
}

// ordered reports whether all pods can be bound in some order.
func (n *naive) ordered() bool { return oneOrder([]*naive{n}) }

// oneOrder reports whether one order works in all worlds.
func oneOrder(worlds []*naive) bool {
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
			if bound>>i&1 == 1 || slices.ContainsFunc(worlds, func(n *naive) bool { return !n.passes(i) }) {
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

func (n *naive) passes(i int) bool {
	p := &n.pods[i]
	return n.evenEnough(p, n.to[i]) && n.companyFor(p, n.to[i]) && n.nobodyMinds(p, n.to[i])
}

// evenEnough implements the filter of the scheduler plugin PodTopologySpread.
func (n *naive) evenEnough(p *cluster.Pod, at int) bool {
	for _, s := range p.Spread {
		if s.Soft {
			continue
		}
		if _, ok := n.nodes[at].labels[s.Key]; !ok {
			return false
		}
		domains := map[string]int{}
		for _, node := range n.nodes {
			if !n.counts(p, &s, &node) {
				continue
			}
			domains[node.labels[s.Key]] += 0
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
		count := domains[n.nodes[at].labels[s.Key]]
		if s.Selector.Matches(p.Labels) {
			count++
		}
		if count-fewest > s.MaxSkew {
			return false
		}
	}
	return true
}

func (n *naive) counts(p *cluster.Pod, s *cluster.Spread, node *naiveNode) bool {
	for _, other := range p.Spread {
		if _, ok := node.labels[other.Key]; !ok && !other.Soft {
			return false
		}
	}
	if !s.AnyNode && len(p.Required) > 0 &&
		!slices.ContainsFunc(p.Required, func(r requirements.Requirements) bool { return r.Accepts(node.labels) }) {
		return false
	}
	if s.HonorTaints {
		if _, bad := requirements.Untolerated(node.taints, p.Tolerations); bad {
			return false
		}
	}
	return true
}

// companyFor implements the affinity part of the scheduler plugin InterPodAffinity.
func (n *naive) companyFor(p *cluster.Pod, at int) bool {
	all := func(namespace string, labels requirements.Labels) bool {
		return !slices.ContainsFunc(p.Affinity, func(t cluster.Term) bool { return !t.Matches(namespace, labels) })
	}
	anybody, everywhere := false, true
	for _, t := range p.Affinity {
		found := false
		value, ok := n.nodes[at].labels[t.Key]
		if !ok {
			return false
		}
		for _, node := range n.nodes {
			for _, other := range node.pods {
				if all(other.namespace, other.labels) {
					anybody = true
					found = found || node.labels[t.Key] == value
				}
			}
		}
		everywhere = everywhere && found
	}
	return everywhere || !anybody && all(p.Namespace, p.Labels)
}

// nobodyMinds implements the anti-affinity part of InterPodAffinity, in both directions.
func (n *naive) nobodyMinds(p *cluster.Pod, at int) bool {
	for _, node := range n.nodes {
		same := func(t cluster.Term) bool {
			value, ok := n.nodes[at].labels[t.Key]
			other, both := node.labels[t.Key]
			return ok && both && value == other
		}
		for _, other := range node.pods {
			for _, t := range p.AntiAffinity {
				if same(t) && t.Matches(other.namespace, other.labels) {
					return false
				}
			}
			for _, t := range other.avoids {
				if same(t) && t.Matches(p.Namespace, p.Labels) {
					return false
				}
			}
		}
	}
	return true
}

package podbinding_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/node/podbinding"
)

const hostname = "kubernetes.io/hostname"

// pod returns a pod of an app. Its size is in millicores, with 4 MiB of memory per millicore.
func pod(app string, n int, size int64) cluster.Pod {
	return cluster.Pod{Namespace: "x", Name: fmt.Sprintf("%s-%d", app, n), Owner: "ReplicaSet/" + app,
		Labels: requirements.Labels{"app": app}, Requests: resources.Amounts{CPU: size, Memory: 4 * size << 20, Pods: 1}}
}

// spread returns the pod with a spread of its app over zones.
func spread(p cluster.Pod, maxSkew int) cluster.Pod {
	p.Spread = []cluster.Spread{{Key: catalog.LabelZone, MaxSkew: maxSkew, Selector: cluster.Selector{Labels: requirements.Exactly(p.Labels)}}}
	return p
}

// zones has a node in each zone; count uses their order.
var zones = []string{"a", "b", "c"}

// count adds n pods of an app in a zone to the input.
func count(in *podbinding.Input, app, zone string, n int) {
	pod := podbinding.CountedPod{Namespace: "x", Labels: requirements.Labels{"app": app}, Node: slices.Index(zones, zone)}
	in.Counted = append(in.Counted, slices.Repeat([]podbinding.CountedPod{pod}, n)...)
}

func room(size int64) resources.Amounts {
	return resources.Amounts{CPU: size, Memory: 4 * size << 20, Pods: 10}
}

// over returns a term over the domains of a label that selects the app's pods.
func over(key, app string) cluster.Term {
	return cluster.Term{Key: key, Selector: cluster.Selector{Labels: requirements.Exactly(requirements.Labels{"app": app})}}
}

// selecting returns the pod with a node selector for an architecture.
func selecting(p cluster.Pod, arch string) cluster.Pod {
	p.Required = []requirements.Requirements{requirements.Exactly(requirements.Labels{"arch": arch})}
	return p
}

// allNodes returns the pod with a spread that counts nodes that the pod's node selector rejects.
func allNodes(p cluster.Pod) cluster.Pod {
	p.Spread[0].IgnoresNodeAffinity = true
	return p
}

// honoringTaints returns the pod with a spread that does not count nodes with taints.
func honoringTaints(p cluster.Pod) cluster.Pod {
	p.Spread[0].HonorTaints = true
	return p
}

func otherArchInOtherZones(in *podbinding.Input) {
	for i := range in.Nodes[1:] {
		in.Nodes[1+i].Labels = requirements.Labels{"arch": "amd64"}
	}
}

func taintOtherZones(in *podbinding.Input) {
	for i := range in.Nodes[1:] {
		in.Nodes[1+i].Taints = []requirements.Taint{{Key: "gpu", Effect: requirements.NoSchedule}}
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	with := func(p cluster.Pod, change func(*cluster.Pod)) cluster.Pod {
		change(&p)
		return p
	}
	plain, web := pod("a", 1, 500), func(n int) cluster.Pod { return spread(pod("web", n, 500), 1) }
	alone := func(n int, key string) cluster.Pod {
		return with(pod("db", n, 500), func(p *cluster.Pod) { p.AntiAffinity = []cluster.Term{over(key, "db")} })
	}
	perNode := func(n, maxSkew int) cluster.Pod {
		return with(spread(pod("log", n, 500), maxSkew), func(p *cluster.Pod) { p.Spread[0].Key = hostname })
	}
	for name, c := range map[string]struct {
		pods          []cluster.Pod
		change        func(*podbinding.Input)
		bind, blocked string
	}{
		"a pod without rules":                          {pods: []cluster.Pod{plain}, bind: "[x/a-1]"},
		"the second pod of a spread":                   {pods: []cluster.Pod{web(1), web(2)}, bind: "[x/web-1]", blocked: "[x/web-2]"},
		"a spread with pods in the other zones":        {pods: []cluster.Pod{web(1), web(2)}, bind: "[x/web-1 x/web-2]", change: func(in *podbinding.Input) { count(in, "web", "b", 1); count(in, "web", "c", 1) }},
		"a spread whose pods may run in one zone only": {pods: []cluster.Pod{selecting(web(1), "arm64"), selecting(web(2), "arm64")}, bind: "[x/web-1 x/web-2]", change: otherArchInOtherZones},
		"a spread that counts all nodes":               {pods: []cluster.Pod{allNodes(selecting(web(1), "arm64")), allNodes(selecting(web(2), "arm64"))}, bind: "[x/web-1]", blocked: "[x/web-2]", change: otherArchInOtherZones},
		"a spread that counts nodes without taints":    {pods: []cluster.Pod{honoringTaints(web(1)), honoringTaints(web(2))}, bind: "[x/web-1 x/web-2]", change: taintOtherZones},
		"pods on nodes that the pod cannot use": {pods: []cluster.Pod{selecting(web(1), "arm64"), selecting(web(2), "arm64")}, bind: "[x/web-1]", blocked: "[x/web-2]", change: func(in *podbinding.Input) {
			in.Nodes = append(in.Nodes, podbinding.NodeInfo{Zone: "b", Labels: requirements.Labels{"arch": "amd64"}})
			in.Counted = []podbinding.CountedPod{{Namespace: "x", Labels: requirements.Labels{"app": "web"}, Node: 3}}
			count(in, "web", "c", 1)
		}},
		"a blocked pod that would not fit":        {pods: []cluster.Pod{web(1), spread(pod("web", 2, 3000), 1)}, bind: "[x/web-1]"},
		"a preferred spread":                      {pods: []cluster.Pod{with(web(1), func(p *cluster.Pod) { p.Spread[0].Soft = true })}, bind: "[x/web-1]", change: func(in *podbinding.Input) { count(in, "web", "a", 9) }},
		"a spread over another label":             {pods: []cluster.Pod{with(web(1), func(p *cluster.Pod) { p.Spread[0].Key = "rack" })}},
		"a spread over nodes":                     {pods: []cluster.Pod{perNode(1, 2), perNode(2, 2), perNode(3, 2)}, bind: "[x/log-1 x/log-2]"},
		"a spread over nodes, with a pod there":   {pods: []cluster.Pod{perNode(1, 1)}, change: func(in *podbinding.Input) { in.OnNode = []cluster.Pod{perNode(2, 1)} }},
		"anti-affinity to each other":             {pods: []cluster.Pod{alone(1, hostname), alone(2, hostname)}, bind: "[x/db-1]"},
		"anti-affinity to a pod of the Node":      {pods: []cluster.Pod{alone(1, hostname)}, change: func(in *podbinding.Input) { in.OnNode = []cluster.Pod{pod("db", 2, 1)} }},
		"a pod of the Node has anti-affinity":     {pods: []cluster.Pod{pod("db", 1, 500)}, change: func(in *podbinding.Input) { in.OnNode = []cluster.Pod{alone(2, hostname)} }},
		"anti-affinity over zones":                {pods: []cluster.Pod{alone(1, catalog.LabelZone)}},
		"preferred anti-affinity over zones":      {pods: []cluster.Pod{with(alone(1, catalog.LabelZone), func(p *cluster.Pod) { p.AntiAffinity[0].Weight = 1 })}, bind: "[x/db-1]"},
		"affinity":                                {pods: []cluster.Pod{with(plain, func(p *cluster.Pod) { p.Affinity = []cluster.Term{over(hostname, "a")} })}},
		"host ports":                              {pods: []cluster.Pod{with(plain, func(p *cluster.Pod) { p.HostPorts = []cluster.HostPort{{Port: 80}} })}},
		"a volume":                                {pods: []cluster.Pod{with(plain, func(p *cluster.Pod) { p.Volumes = []string{"x/data"} })}},
		"a pod that only kube-scheduler can bind": {pods: []cluster.Pod{plain}, change: func(in *podbinding.Input) { in.SchedulerOnly = map[string]bool{"x/a-1": true} }},
		"a node selector that the Node has": {pods: []cluster.Pod{with(plain, func(p *cluster.Pod) {
			p.Required = []requirements.Requirements{requirements.Exactly(requirements.Labels{"arch": "arm64"})}
		})}, bind: "[x/a-1]"},
		"a node selector that the Node has not": {pods: []cluster.Pod{with(plain, func(p *cluster.Pod) {
			p.Required = []requirements.Requirements{requirements.Exactly(requirements.Labels{"arch": "amd64"})}
		})}},
		"a taint": {pods: []cluster.Pod{plain}, change: func(in *podbinding.Input) {
			in.Taints = []requirements.Taint{{Key: "gpu", Effect: requirements.NoSchedule}}
		}},
		"a pod too large for what the Node has left": {pods: []cluster.Pod{pod("a", 1, 900), pod("a", 2, 1900), pod("a", 3, 1100)}, bind: "[x/a-1 x/a-3]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := podbinding.Input{Zone: "a", Labels: requirements.Labels{"arch": "arm64"}, Pods: c.pods, Room: room(2000)}
			for _, zone := range zones {
				in.Nodes = append(in.Nodes, podbinding.NodeInfo{Zone: zone, Labels: in.Labels})
			}
			if c.change != nil {
				c.change(&in)
			}
			got := podbinding.Decide(in)
			if c.bind == "" {
				c.bind = "[]"
			}
			if c.blocked == "" {
				c.blocked = "[]"
			}
			if fmt.Sprint(got.Bind) != c.bind || fmt.Sprint(got.Blocked) != c.blocked {
				t.Errorf("bind %v, blocked %v; want %s and %s", got.Bind, got.Blocked, c.bind, c.blocked)
			}
		})
	}
}

// TestDecideKeepsRules checks with random pods that the bound pods fit on the Node, and that their spreads hold after
// each binding.
func TestDecideKeepsRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := podbinding.Input{Zone: "a", Room: room(rapid.Int64Range(0, 4000).Draw(t, "room")),
			Nodes: []podbinding.NodeInfo{{Zone: "a"}, {Zone: "b"}}}
		inZones := map[string]map[string]int{} // number of pods by app and zone
		pods := map[string]cluster.Pod{}
		for _, app := range []string{"a", "b", "c"} {
			inZones[app] = map[string]int{}
			maxSkew := rapid.IntRange(0, 2).Draw(t, "maxSkew") // 0: no spread
			for _, zone := range []string{"a", "b"} {
				inZones[app][zone] = rapid.IntRange(0, 3).Draw(t, "bound")
				count(&in, app, zone, inZones[app][zone])
			}
			for i := range rapid.IntRange(0, 5).Draw(t, "pods") {
				p := pod(app, i, rapid.Int64Range(1, 20).Draw(t, "size")*100)
				if maxSkew > 0 {
					p = spread(p, maxSkew)
				}
				in.Pods, pods[p.ID()] = append(in.Pods, p), p
			}
		}
		d, room := podbinding.Decide(in), in.Room
		for _, id := range d.Bind {
			p := pods[id]
			counts := inZones[p.Labels["app"]]
			counts["a"]++
			if len(p.Spread) > 0 && counts["a"]-min(counts["a"], counts["b"]) > p.Spread[0].MaxSkew {
				t.Fatalf("after binding %v up to %s, the zones have %v pods, with maxSkew %d", d.Bind, id, counts, p.Spread[0].MaxSkew)
			}
			if room = room.Sub(p.Requests); room.IsNegative() {
				t.Fatalf("the pods %v up to %s do not fit on the Node", d.Bind, id)
			}
			delete(pods, id)
		}
		for _, id := range d.Blocked {
			p := pods[id]
			if counts := inZones[p.Labels["app"]]; counts["a"]+1-counts["b"] <= p.Spread[0].MaxSkew {
				t.Fatalf("pod %s is blocked, but its spread allows zone a: %v, maxSkew %d", id, counts, p.Spread[0].MaxSkew)
			}
		}
	})
}

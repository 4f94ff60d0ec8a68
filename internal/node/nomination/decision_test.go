package nomination_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/node/nomination"
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

// bound returns n bound pods of an app in a zone.
func bound(app, zone string, n int) []nomination.Bound {
	return slices.Repeat([]nomination.Bound{{Namespace: "x", Labels: map[string]string{"app": app}, Zone: zone}}, n)
}

func room(size int64) resources.Amounts {
	return resources.Amounts{CPU: size, Memory: 4 * size << 20, Pods: 10}
}

// over returns a required anti-affinity term, or the key of a spread, over the domains of a label to the app's pods.
func over(key, app string) cluster.Term {
	return cluster.Term{Key: key, Selector: cluster.Selector{Labels: requirements.Exactly(requirements.Labels{"app": app})}}
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
		change        func(*nomination.Input)
		bind, blocked string
	}{
		"a pod without rules":                     {pods: []cluster.Pod{plain}, bind: "[x/a-1]"},
		"the second pod of a spread":              {pods: []cluster.Pod{web(1), web(2)}, bind: "[x/web-1]", blocked: "[x/web-2]"},
		"a spread with pods in the other zones":   {pods: []cluster.Pod{web(1), web(2)}, bind: "[x/web-1 x/web-2]", change: func(in *nomination.Input) { in.Bound = slices.Concat(bound("web", "b", 1), bound("web", "c", 1)) }},
		"a preferred spread":                      {pods: []cluster.Pod{with(web(1), func(p *cluster.Pod) { p.Spread[0].Soft = true })}, bind: "[x/web-1]", change: func(in *nomination.Input) { in.Bound = bound("web", "a", 9) }},
		"a spread over another label":             {pods: []cluster.Pod{with(web(1), func(p *cluster.Pod) { p.Spread[0].Key = "rack" })}},
		"a spread over nodes":                     {pods: []cluster.Pod{perNode(1, 2), perNode(2, 2), perNode(3, 2)}, bind: "[x/log-1 x/log-2]"},
		"a spread over nodes, with a pod there":   {pods: []cluster.Pod{perNode(1, 1)}, change: func(in *nomination.Input) { in.OnNode = []cluster.Pod{perNode(2, 1)} }},
		"anti-affinity to each other":             {pods: []cluster.Pod{alone(1, hostname), alone(2, hostname)}, bind: "[x/db-1]"},
		"anti-affinity to a pod of the Node":      {pods: []cluster.Pod{alone(1, hostname)}, change: func(in *nomination.Input) { in.OnNode = []cluster.Pod{pod("db", 2, 1)} }},
		"a pod of the Node has anti-affinity":     {pods: []cluster.Pod{pod("db", 1, 500)}, change: func(in *nomination.Input) { in.OnNode = []cluster.Pod{alone(2, hostname)} }},
		"anti-affinity over zones":                {pods: []cluster.Pod{alone(1, catalog.LabelZone)}},
		"preferred anti-affinity over zones":      {pods: []cluster.Pod{with(alone(1, catalog.LabelZone), func(p *cluster.Pod) { p.AntiAffinity[0].Weight = 1 })}, bind: "[x/db-1]"},
		"affinity":                                {pods: []cluster.Pod{with(plain, func(p *cluster.Pod) { p.Affinity = []cluster.Term{over(hostname, "a")} })}},
		"host ports":                              {pods: []cluster.Pod{with(plain, func(p *cluster.Pod) { p.HostPorts = []cluster.HostPort{{Port: 80}} })}},
		"a volume":                                {pods: []cluster.Pod{with(plain, func(p *cluster.Pod) { p.Volumes = []string{"x/data"} })}},
		"a pod that only kube-scheduler can bind": {pods: []cluster.Pod{plain}, change: func(in *nomination.Input) { in.Indirect = map[string]bool{"x/a-1": true} }},
		"a node selector that the Node has": {pods: []cluster.Pod{with(plain, func(p *cluster.Pod) {
			p.Required = []requirements.Requirements{requirements.Exactly(requirements.Labels{"arch": "arm64"})}
		})}, bind: "[x/a-1]"},
		"a node selector that the Node has not": {pods: []cluster.Pod{with(plain, func(p *cluster.Pod) {
			p.Required = []requirements.Requirements{requirements.Exactly(requirements.Labels{"arch": "amd64"})}
		})}},
		"a taint": {pods: []cluster.Pod{plain}, change: func(in *nomination.Input) {
			in.Taints = []requirements.Taint{{Key: "gpu", Effect: requirements.NoSchedule}}
		}},
		"a pod too large for what the Node has left": {pods: []cluster.Pod{pod("a", 1, 900), pod("a", 2, 1900), pod("a", 3, 1100)}, bind: "[x/a-1 x/a-3]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := nomination.Input{Zone: "a", Zones: []string{"a", "b", "c"}, Labels: requirements.Labels{"arch": "arm64"},
				Pods: c.pods, Room: room(2000)}
			if c.change != nil {
				c.change(&in)
			}
			got := nomination.Decide(in)
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
		in := nomination.Input{Zone: "a", Zones: []string{"a", "b"}, Room: room(rapid.Int64Range(0, 4000).Draw(t, "room"))}
		inZones := map[string]map[string]int{} // number of pods by app and zone
		pods := map[string]cluster.Pod{}
		for _, app := range []string{"a", "b", "c"} {
			inZones[app] = map[string]int{}
			maxSkew := rapid.IntRange(0, 2).Draw(t, "maxSkew") // 0: no spread
			for _, zone := range in.Zones {
				inZones[app][zone] = rapid.IntRange(0, 3).Draw(t, "bound")
				in.Bound = append(in.Bound, bound(app, zone, inZones[app][zone])...)
			}
			for i := range rapid.IntRange(0, 5).Draw(t, "pods") {
				p := pod(app, i, rapid.Int64Range(1, 20).Draw(t, "size")*100)
				if maxSkew > 0 {
					p = spread(p, maxSkew)
				}
				in.Pods, pods[p.ID()] = append(in.Pods, p), p
			}
		}
		d, room := nomination.Decide(in), in.Room
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

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

func TestExchanges(t *testing.T) {
	t.Parallel()
	web := func(n int) cluster.Pod { return spread(pod("web", n, 1000), 1) }
	later := nomination.Node{Claim: "later", Pods: []cluster.Pod{pod("a", 1, 600), pod("a", 2, 400), pod("b", 1, 2000)}, Free: room(0)}
	for name, c := range map[string]struct {
		pods  []cluster.Pod
		later []nomination.Node
		bound []nomination.Bound
		want  []nomination.Exchange
	}{
		"the first pod of a spread is allowed":  {pods: []cluster.Pod{web(1)}, later: []nomination.Node{later}},
		"the second pod is not allowed":         {pods: []cluster.Pod{web(1), web(2)}, later: []nomination.Node{later}, want: []nomination.Exchange{{"later", "x/web-2", []string{"x/a-1", "x/a-2"}}}},
		"other zones have pods":                 {pods: []cluster.Pod{web(1), web(2)}, later: []nomination.Node{later}, bound: slices.Concat(bound("web", "b", 1), bound("web", "c", 1))},
		"this zone has a pod":                   {pods: []cluster.Pod{web(1)}, later: []nomination.Node{later}, bound: bound("web", "a", 1), want: []nomination.Exchange{{"later", "x/web-1", []string{"x/a-1", "x/a-2"}}}},
		"there is no later node":                {pods: []cluster.Pod{web(1), web(2)}},
		"pods of the later node have rules":     {pods: []cluster.Pod{web(1), web(2)}, later: []nomination.Node{{Claim: "later", Pods: []cluster.Pod{web(3)}, Free: room(0)}}},
		"pods of the later node are too large":  {pods: []cluster.Pod{web(1), web(2)}, later: []nomination.Node{{Claim: "later", Pods: []cluster.Pod{pod("b", 1, 2000)}, Free: room(0)}}},
		"the later node has room for the pod":   {pods: []cluster.Pod{web(1), web(2)}, later: []nomination.Node{{Claim: "later", Pods: []cluster.Pod{pod("b", 1, 2000)}, Free: room(1000)}}, want: []nomination.Exchange{{"later", "x/web-2", nil}}},
		"pods without spread keep their places": {pods: []cluster.Pod{pod("a", 7, 500)}, later: []nomination.Node{later}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := nomination.Exchanges(nomination.Input{Zone: "a", Zones: []string{"a", "b", "c"}, Later: c.later, Bound: c.bound,
				Node: nomination.Node{Claim: "now", Pods: c.pods, Free: room(0)}})
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("exchanges %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestExchangesFit checks with random nodes that no node gets more pods than it has room for, and that no pod gets lost.
func TestExchangesFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		number := 0
		draw := func(claim string) nomination.Node {
			n := nomination.Node{Claim: claim, Free: room(rapid.Int64Range(0, 1500).Draw(t, "free"))}
			for range rapid.IntRange(0, 6).Draw(t, "pods") {
				number++
				p := pod(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "app"), number, rapid.Int64Range(1, 20).Draw(t, "size")*100)
				if p.Owner != "ReplicaSet/a" {
					p = spread(p, rapid.IntRange(1, 2).Draw(t, "maxSkew"))
				}
				n.Pods = append(n.Pods, p)
			}
			return n
		}
		in := nomination.Input{Zone: "a", Zones: []string{"a", "b"}, Node: draw("now")}
		for i := range rapid.IntRange(0, 3).Draw(t, "later") {
			in.Later = append(in.Later, draw(fmt.Sprint("later-", i)))
		}
		free, pods := map[string]resources.Amounts{}, map[string]cluster.Pod{}
		at := map[string]string{} // claim by pod ID
		for _, n := range append(in.Later, in.Node) {
			free[n.Claim] = n.Free
			for _, p := range n.Pods {
				pods[p.ID()], at[p.ID()] = p, n.Claim
			}
		}
		move := func(id, from, to string) {
			if at[id] != from {
				t.Fatalf("pod %s is on %s, not on %s", id, at[id], from)
			}
			at[id] = to
			free[from], free[to] = free[from].Add(pods[id].Requests), free[to].Sub(pods[id].Requests)
		}
		for _, e := range nomination.Exchanges(in) {
			move(e.Out, "now", e.Claim)
			for _, id := range e.In {
				move(id, e.Claim, "now")
			}
			for claim, f := range free {
				if f.IsNegative() {
					t.Fatalf("after %+v, %s has room for %s", e, claim, f)
				}
			}
		}
	})
}

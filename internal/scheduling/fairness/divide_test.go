package fairness_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/fairness"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// plain returns a pod with resource requests only. The size depends on i, so each pod is a kind of its own.
func plain(namespace string, i int) cluster.Pod {
	name := fmt.Sprintf("pod-%05d", i)
	return cluster.Pod{Namespace: namespace, Name: name, UID: namespace + "/" + name, Created: noon,
		Requests: resources.Amounts{CPU: int64(100 + i), Pods: 1}}
}

// costlyPod returns a pod with n anti-affinity terms that no other pod has.
func costlyPod(namespace string, i, n int) cluster.Pod {
	p := plain(namespace, i)
	for x := range n {
		p.AntiAffinity = append(p.AntiAffinity, cluster.Term{Key: "kubernetes.io/hostname", Weight: 1, Namespaces: []string{namespace},
			Selector: cluster.Selector{Labels: requirements.Requirements{fmt.Sprintf("k%d", x): requirements.OneOf(fmt.Sprintf("v%d-%d", i, x))}}})
	}
	return p
}

func pods(n int, newPod func(i int) cluster.Pod) []cluster.Pod {
	var out []cluster.Pod
	for i := range n {
		out = append(out, newPod(i))
	}
	return out
}

func byNamespace(pods []cluster.Pod) map[string]int {
	out := map[string]int{}
	for i := range pods {
		out[pods[i].Namespace]++
	}
	return out
}

// rounds calls Divide until each pod was served, and returns the slices.
func rounds(t *testing.T, all []cluster.Pod, share fairness.Share) [][]cluster.Pod {
	t.Helper()
	turns := fairness.SliceState{Served: map[string]bool{}, Costs: map[string]int{}}
	for i := range all {
		turns.Costs[all[i].UID] = fairness.Cost(&all[i])
	}
	var out [][]cluster.Pod
	for {
		d := fairness.Divide(all, turns, share)
		if len(d.Slice) == 0 {
			return out
		}
		if len(d.Now)+len(d.Slice)+d.Later != len(all) {
			t.Fatalf("%d pods now, %d in the slice and %d later do not sum to %d pods", len(d.Now), len(d.Slice), d.Later, len(all))
		}
		for i := range d.Slice {
			if turns.Served[d.Slice[i].UID] {
				t.Fatalf("%s was served twice", d.Slice[i].ID())
			}
			turns.Served[d.Slice[i].UID] = true
		}
		turns.Last = d.Last
		out = append(out, d.Slice)
	}
}

// TestAllTogether checks that pods within the limit of a plan are planned together, whatever rules they have.
func TestAllTogether(t *testing.T) {
	t.Parallel()
	for name, all := range map[string][]cluster.Pod{
		"none":              nil,
		"5,000 kinds":       pods(5000, func(i int) cluster.Pod { return plain("a", i) }),
		"a few costly pods": pods(12, func(i int) cluster.Pod { return costlyPod("a", i, 50) }),
		"10,000 replicas of a costly pod": func() []cluster.Pod {
			costly := costlyPod("a", 0, 50)
			return pods(10_000, func(i int) cluster.Pod {
				p := costly
				p.Name = fmt.Sprintf("pod-%06d", i)
				p.UID = p.Name
				return p
			})
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := fairness.Divide(all, fairness.SliceState{}, fairness.DefaultShare())
			if len(d.Now) != len(all) || len(d.Slice) != 0 || d.Later != 0 {
				t.Errorf("%d of %d pods are planned now, %d in a slice, %d later; want all now", len(d.Now), len(all), len(d.Slice), d.Later)
			}
		})
	}
}

// TestCostlyPodsWait checks that costly pods do not delay other pods, and that each costly pod is served.
func TestCostlyPodsWait(t *testing.T) {
	t.Parallel()
	for name, newPod := range map[string]func(i int) cluster.Pod{
		"preferred anti-affinity": func(i int) cluster.Pod { return costlyPod("tenant", i, 50) },
		"host ports": func(i int) cluster.Pod {
			p := plain("tenant", i)
			for x := range 200 {
				p.HostPorts = append(p.HostPorts, cluster.HostPort{Port: int32(1 + (i*37+x*13)%60000), Protocol: "TCP"})
			}
			return p
		},
		"topology constraints": func(i int) cluster.Pod {
			p := plain("tenant", i)
			for x := range 1000 {
				p.Spread = append(p.Spread, cluster.Spread{Key: fmt.Sprintf("k%d-%d", i, x), MaxSkew: 1, Soft: true})
			}
			return p
		},
		"node affinity terms": func(i int) cluster.Pod {
			p := plain("tenant", i)
			for x := range 1_500 {
				p.Required = append(p.Required, requirements.Requirements{"k": requirements.OneOf(fmt.Sprintf("v%d-%d", i, x))})
			}
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := append(pods(20, func(i int) cluster.Pod { return plain("other", i) }), pods(100, newPod)...)
			d := fairness.Divide(all, fairness.SliceState{}, fairness.DefaultShare())
			if got := byNamespace(d.Now); got["other"] != 20 || got["tenant"] != 0 {
				t.Errorf("pods planned now, by namespace: %v, want the 20 pods of namespace other", got)
			}
			served := 0
			for _, s := range rounds(t, all, fairness.DefaultShare()) {
				served += len(s)
			}
			if served != 100 {
				t.Errorf("%d pods were served, want 100", served)
			}
		})
	}
}

// TestSoleResources checks that an extended resource adds to the cost of a pod only if no other pod requests the
// resource.
func TestSoleResources(t *testing.T) {
	t.Parallel()
	ask := func(namespace string, i int, name string) cluster.Pod {
		p := plain(namespace, i)
		p.Requests = p.Requests.With(name, 1)
		return p
	}
	sole := pods(4000, func(i int) cluster.Pod { return ask("tenant", i, fmt.Sprintf("example.com/r%d", i)) })
	shared := pods(4000, func(i int) cluster.Pod { return ask("other", i, "nvidia.com/gpu") })
	d := fairness.Divide(slices.Concat(shared, sole), fairness.SliceState{}, fairness.DefaultShare())
	// The pods of other cost 4,000 of 10,000. A pod of tenant costs 1+8, so 666 of them fit into the rest.
	if got := byNamespace(d.Now); got["other"] != 4000 || got["tenant"] == 0 || got["tenant"] > 700 || d.NowCost > fairness.DefaultShare().MaxPlanCost {
		t.Errorf("pods planned now, by namespace: %v, at a cost of %d; want all pods that request GPUs, and some of tenant", got, d.NowCost)
	}
}

// TestNamespacesShare checks that namespaces with very many pods get only the share that other namespaces do not need.
func TestNamespacesShare(t *testing.T) {
	t.Parallel()
	share := fairness.Share{MaxPlanCost: 1000, CostlyAbove: 40, MaxSliceCost: 100}
	all := slices.Concat(
		pods(5000, func(i int) cluster.Pod { return plain("a", i) }),
		pods(100, func(i int) cluster.Pod { return plain("b", i) }),
		pods(5000, func(i int) cluster.Pod { return plain("c", i) }),
	)
	d := fairness.Divide(all, fairness.SliceState{}, share)
	if got, want := byNamespace(d.Now), (map[string]int{"a": 450, "b": 100, "c": 450}); !reflect.DeepEqual(got, want) {
		t.Errorf("pods planned now, by namespace: %v, want %v", got, want)
	}
	if got := byNamespace(d.Slice); got["a"] != 50 || got["c"] != 50 {
		t.Errorf("pods in the slice, by namespace: %v, want 50 of a and 50 of c", got)
	}
}

// TestSlicesTakeTurns checks that all namespaces are served equally often, however many pods they have, and that each
// continues with its next pods.
func TestSlicesTakeTurns(t *testing.T) {
	t.Parallel()
	all := slices.Concat(
		pods(200, func(i int) cluster.Pod { return costlyPod("many", i, 50) }),
		pods(3, func(i int) cluster.Pod { return costlyPod("few", i, 50) }),
		pods(2, func(i int) cluster.Pod { return costlyPod("two", i, 50) }),
	)
	got := rounds(t, all, fairness.DefaultShare())
	if first := byNamespace(got[0]); first["few"] != 3 || first["two"] != 2 {
		t.Errorf("pods in the first slice, by namespace: %v, want all pods of few and two", first)
	}
	// With one pod for each slice, the namespaces take turns. 10 pods of many are enough.
	share := fairness.Share{MaxPlanCost: 100, CostlyAbove: 40, MaxSliceCost: 1}
	var order []string
	for _, s := range rounds(t, all[190:], share)[:6] {
		order = append(order, s[0].Namespace)
	}
	if want := []string{"few", "many", "two", "few", "many", "two"}; !slices.Equal(order, want) {
		t.Errorf("slices serve %v, want %v", order, want)
	}
}

// TestPriorityOrdersANamespace checks the order within a namespace: the highest priority first, then the oldest pod. A
// high priority in one namespace does not delay other namespaces.
func TestPriorityOrdersANamespace(t *testing.T) {
	t.Parallel()
	all := pods(5, func(i int) cluster.Pod { return costlyPod("a", i, 50) })
	all[3].Priority = 1000
	all[4].Created = noon.Add(-time.Hour)
	all = append(all, pods(2, func(i int) cluster.Pod { return costlyPod("b", i, 50) })...)
	var order []string // each slice has one pod, because every pod costs more than MaxSliceCost
	for _, s := range rounds(t, all, fairness.Share{MaxPlanCost: 1, CostlyAbove: 1, MaxSliceCost: 1}) {
		order = append(order, s[0].ID())
	}
	want := []string{"a/pod-00003", "b/pod-00000", "a/pod-00004", "b/pod-00001", "a/pod-00000", "a/pod-00001", "a/pod-00002"}
	if !slices.Equal(order, want) {
		t.Errorf("slices serve %v, want %v", order, want)
	}
}

// TestGangsStayTogether checks that pods with required affinity to each other are in one slice, as far as the slice
// holds them.
func TestGangsStayTogether(t *testing.T) {
	t.Parallel()
	all := pods(40, func(i int) cluster.Pod {
		p := costlyPod("a", i, 50)
		p.Labels = map[string]string{"pair": fmt.Sprint(i % 20)}
		p.Affinity = []cluster.Term{{Key: "kubernetes.io/hostname", Namespaces: []string{"a"},
			Selector: cluster.Selector{Labels: requirements.Requirements{"pair": requirements.OneOf(fmt.Sprint(i % 20))}}}}
		return p
	})
	for _, s := range rounds(t, all, fairness.Share{MaxPlanCost: 1000, CostlyAbove: 40, MaxSliceCost: 300}) {
		pairs := map[string]int{}
		for i := range s {
			pairs[s[i].Labels["pair"]]++
		}
		for pair, n := range pairs {
			if n != 2 {
				t.Errorf("%d pods of pair %s are in one slice, want 2", n, pair)
			}
		}
	}
}

// TestSameInAnyOrder checks that the order in which pods are listed does not matter.
func TestSameInAnyOrder(t *testing.T) {
	t.Parallel()
	all := slices.Concat(pods(50, func(i int) cluster.Pod { return costlyPod("a", i, 50) }),
		pods(500, func(i int) cluster.Pod { return plain("b", i) }))
	share := fairness.Share{MaxPlanCost: 1000, CostlyAbove: 40, MaxSliceCost: 300}
	want := fairness.Divide(all, fairness.SliceState{}, share)
	slices.Reverse(all)
	if got := fairness.Divide(all, fairness.SliceState{}, share); !reflect.DeepEqual(got, want) {
		t.Error("the division depends on the order of the pods, want the same in any order")
	}
}

// TestPace checks that limits shrink until plans are fast enough, and grow again when plans near the limit are fast.
func TestPace(t *testing.T) {
	t.Parallel()
	share := fairness.DefaultShare()
	// Plans take 100 ms for each unit of cost: 10 s at the minimum of MaxPlanCost, and 1 s for a slice that costs 10.
	for range 20 {
		share = share.AfterPlan(share.MaxPlanCost, time.Duration(share.MaxPlanCost)*100*time.Millisecond)
		share = share.AfterSlice(share.MaxSliceCost, time.Duration(share.MaxSliceCost)*100*time.Millisecond)
	}
	if share.MaxPlanCost != 100 || share.MaxSliceCost < 1 || share.MaxSliceCost > 10 {
		t.Errorf("the share is %+v after slow plans, want MaxPlanCost 100 and MaxSliceCost 1 to 10", share)
	}
	small := share.AfterPlan(share.MaxPlanCost/10, time.Millisecond)
	if small != share {
		t.Errorf("a small fast plan changed the share to %+v, want %+v", small, share)
	}
	for range 20 {
		share = share.AfterPlan(share.MaxPlanCost, time.Millisecond).AfterSlice(share.MaxSliceCost, time.Millisecond)
	}
	if share != fairness.DefaultShare() {
		t.Errorf("the share is %+v after fast plans, want %+v", share, fairness.DefaultShare())
	}
}

// TestSeated checks that nominated pods are counted on a copy of their node.
func TestSeated(t *testing.T) {
	t.Parallel()
	room := resources.Amounts{CPU: 1000, Pods: 10}
	nodes := []cluster.Node{{Name: "n", Claim: "claim", Allocatable: room}, {Name: "m", Allocatable: room}}
	waiting := pods(3, func(i int) cluster.Pod {
		p := plain("a", i)
		p.Requests.CPU = 600
		p.HostPorts = []cluster.HostPort{{Port: int32(80 + i), Protocol: "TCP"}}
		p.AntiAffinity = []cluster.Term{{Key: "zone"}, {Key: "host", Weight: 5}}
		return p
	})
	nominations := map[string]fairness.Nomination{}
	for i := range waiting {
		nominations[waiting[i].ID()] = fairness.NewNomination(&waiting[i], &nodes[0])
	}
	nominations[waiting[2].ID()] = fairness.Nomination{UID: "another pod with the same name", Node: "m"}
	got := fairness.CountNominated(nodes, waiting, nominations)
	if got[0].Requested.CPU != 600 || len(got[0].Pods) != 1 || len(got[0].HostPorts) != 1 {
		t.Errorf("the node is %+v, want only the first pod on it; the second does not fit", got[0])
	}
	if r := got[0].Residents; len(r) != 1 || len(r[0].RequiredAntiAffinity) != 1 || r[0].RequiredAntiAffinity[0].Key != "zone" {
		t.Errorf("residents are %+v, want the first pod with only its required anti-affinity", r)
	}
	if got[1].Requested.CPU != 0 || nodes[0].Requested.CPU != 0 {
		t.Error("a pod with another UID was counted, or the original node was changed; want neither")
	}
}

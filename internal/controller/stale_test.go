package controller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/provisioner"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// afterEachSolve calls change after each plan is computed, before the plan is carried out.
func (r *rig) afterEachSolve(change func()) {
	r.Provisioner.Solve = func(s cluster.Snapshot, m catalog.Market) packing.Plan {
		plan := provisioner.Plan(s, m)
		change()
		return plan
	}
}

func (r *rig) removePod(t *testing.T, name string) {
	t.Helper()
	if err := r.api.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}); err != nil {
		t.Fatal(err)
	}
}

// TestChangesDuringAPlan: of a plan, only the NodeClaims that are still needed are created.
func TestChangesDuringAPlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(t *testing.T, r *rig)
		want    int    // number of NodeClaims
		pods    string // of the first NodeClaim
		replans bool   // another plan is requested at once
	}{
		"no change":         {func(*testing.T, *rig) {}, 1, "ns/a,ns/b,ns/c", false},
		"all pods deleted":  {func(t *testing.T, r *rig) { r.removePod(t, "a"); r.removePod(t, "b"); r.removePod(t, "c") }, 0, "", false},
		"one pod deleted":   {func(t *testing.T, r *rig) { r.removePod(t, "b") }, 1, "ns/a,ns/c", false},
		"most pods deleted": {func(t *testing.T, r *rig) { r.removePod(t, "a"); r.removePod(t, "b") }, 0, "", true},
		"pods recreated with the same names": {func(t *testing.T, r *rig) {
			for _, name := range []string{"a", "b", "c"} {
				r.removePod(t, name)
				r.addPendingPod(t, name, "500m", "1Gi")
			}
		}, 0, "", false},
		"pods bound elsewhere": {func(t *testing.T, r *rig) {
			for _, name := range []string{"a", "b", "c"} {
				r.changeObject(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}},
					func(o client.Object) { o.(*corev1.Pod).Spec.NodeName = "elsewhere" })
			}
		}, 0, "", false},
		"pool deleted": {func(t *testing.T, r *rig) {
			if err := r.api.Delete(t.Context(), &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}); err != nil {
				t.Fatal(err)
			}
		}, 0, "", true},
		"pool tainted": {func(t *testing.T, r *rig) {
			r.changeObject(t, testPool(), func(o client.Object) {
				pool := o.(*karpv1.NodePool)
				pool.Spec.Template.Spec.Taints = append(pool.Spec.Template.Spec.Taints, corev1.Taint{Key: "new", Effect: corev1.TaintEffectNoSchedule})
			})
		}, 0, "", true},
		"launches of the pool on hold": {func(t *testing.T, r *rig) {
			r.Provisioner.LaunchBackoff.LaunchFailed(r.now(), "apps", "test")
		}, 0, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "m5.xlarge")
			r.reconcileClassAndPool(t)
			for _, pod := range []string{"a", "b", "c"} {
				r.addPendingPod(t, pod, "1", "1Gi")
			}
			r.afterEachSolve(func() { c.change(t, r) })
			r.plan(t)
			claims := r.claims(t)
			if len(claims) != c.want || c.want > 0 && claims[0].Annotations["joiner.sh/pods"] != c.pods {
				t.Fatalf("%d NodeClaims are created, want %d for %s\n%s", len(claims), c.want, c.pods, r.log)
			}
			if got := r.Provisioner.Batch.ClosesNow(); got != c.replans {
				t.Errorf("another plan is requested at once: %t, want %t", got, c.replans)
			}
			if c.want == 0 && !strings.Contains(r.log.String(), "did not create a part of a plan: the cluster changed while the plan was made") {
				t.Errorf("the log does not report the change:\n%s", r.log)
			}
		})
	}
}

func (r *rig) changeObject(t *testing.T, o client.Object, change func(client.Object)) {
	t.Helper()
	if err := r.api.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	change(o)
	if err := r.api.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// TestLatePlanAndNewNodes: a plan that took long creates no NodeClaims for pods that fit on a node that joined
// meanwhile.
func TestLatePlanAndNewNodes(t *testing.T) {
	t.Parallel()
	pod := func(name string, cpu int64) cluster.Pod {
		p := cluster.Pod{Namespace: "ns", Name: name, UID: "uid-" + name}
		p.Requests.CPU, p.Requests.Pods = cpu, 1
		return p
	}
	node := func(name, claim string, cpu int64) cluster.Node {
		n := cluster.Node{Name: name, Claim: claim}
		n.Allocatable.CPU, n.Allocatable.Pods = cpu, 10
		return n
	}
	pools := []cluster.Pool{{Name: "apps", UID: "1"}}
	before := cluster.Snapshot{Pools: pools, Pods: []cluster.Pod{pod("a", 1000)}, Nodes: []cluster.Node{node("claim-1", "claim-1", 100)}}
	plan := packing.Plan{PlannedNodes: []packing.PlannedNode{{Pool: "apps", Pods: []string{"ns/a"}, Offerings: []packing.Choice{{}}}}}
	for name, c := range map[string]struct {
		nodes  []cluster.Node // when the plan is ready
		isLate bool           // the plan took long
		want   int            // planned nodes that are still valid
	}{
		"a node joined":                 {[]cluster.Node{node("new", "", 2000)}, true, 0},
		"the new node is too small":     {[]cluster.Node{node("new", "", 900)}, true, 1},
		"the plan was fast":             {[]cluster.Node{node("new", "", 2000)}, false, 1},
		"a known NodeClaim joined":      {[]cluster.Node{node("ip-1", "claim-1", 2000)}, true, 1},
		"another NodeClaim was created": {[]cluster.Node{node("claim-2", "claim-2", 2000)}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := before
			after.Nodes = c.nodes
			got, dropped := provisioner.Review{Before: before, Now: after, IsLate: c.isLate}.Revalidate(plan)
			if len(got.PlannedNodes) != c.want || (dropped.Claims[provisioner.StaleRoom] == 1) != (c.want == 0) {
				t.Errorf("%d planned nodes are still valid, want %d; dropped: %s", len(got.PlannedNodes), c.want, dropped)
			}
		})
	}
}

// TestLatePlanAndLimits: nodes that a pool got while a plan was made count toward the limits of the pool.
func TestLatePlanAndLimits(t *testing.T) {
	t.Parallel()
	limit := 2
	pool := func(nodes int) []cluster.Pool {
		return []cluster.Pool{{Name: "apps", UID: "1", Nodes: nodes, Limits: cluster.Limits{Nodes: &limit}}}
	}
	pods := []cluster.Pod{{Namespace: "ns", Name: "a", UID: "a"}, {Namespace: "ns", Name: "b", UID: "b"}}
	plan := packing.Plan{PlannedNodes: []packing.PlannedNode{
		{Pool: "apps", Pods: []string{"ns/a"}, Offerings: []packing.Choice{{}}},
		{Pool: "apps", Pods: []string{"ns/b"}, Offerings: []packing.Choice{{}}},
	}}
	for nodes, want := range map[int]int{0: 2, 1: 1, 2: 0} {
		r := provisioner.Review{Before: cluster.Snapshot{Pools: pool(0), Pods: pods}, Now: cluster.Snapshot{Pools: pool(nodes), Pods: pods}}
		if got, _ := r.Revalidate(plan); len(got.PlannedNodes) != want {
			t.Errorf("with %d new nodes, %d planned nodes are still valid, want %d", nodes, len(got.PlannedNodes), want)
		}
	}
}

// TestProgress: a loop that works on one step for longer than StalledAfter is reported once, with that step, and fails
// its probe. A loop that waits passes its probe.
func TestProgress(t *testing.T) {
	t.Parallel()
	r := newRig(t, "m5.large")
	now := time.Now()
	p := &loop.Progress{Metrics: r.Provisioner.Metrics, Log: r.Provisioner.Log, Now: func() time.Time { return now }}
	ctx := p.With(t.Context())
	w := loop.Working(ctx, loop.LoopProvisioner, "a snapshot")
	now = now.Add(loop.StalledAfter)
	w.NextStep("a plan for 400 pods of tenant")
	p.Report()
	if err := p.Check(loop.LoopProvisioner)(nil); err != nil {
		t.Errorf("a loop that made a step just now fails the probe: %v", err)
	}
	now = now.Add(loop.StalledAfter + time.Second)
	p.Report()
	p.Report()
	if err := p.Check(loop.LoopProvisioner)(nil); err == nil || !strings.Contains(err.Error(), "provisioner") ||
		!strings.Contains(err.Error(), "400 pods of tenant") {
		t.Errorf("the probe returns %v, want the loop and its step", err)
	}
	if err := p.Check(loop.LoopMoves)(nil); err != nil {
		t.Errorf("a loop that waits fails its probe: %v", err)
	}
	if n := strings.Count(r.log.String(), "a loop makes no progress"); n != 1 {
		t.Errorf("the stalled loop is logged %d times, want once:\n%s", n, r.log)
	}
	w.End()
	p.Report()
	if err := p.Check(loop.LoopProvisioner)(nil); err != nil || !strings.Contains(r.log.String(), "the loop makes progress again") {
		t.Errorf("after the work, the probe returns %v, want nil, and a log line about progress\n%s", err, r.log)
	}
}

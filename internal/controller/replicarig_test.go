package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
)

// park is a rig with a fixed number of pods, which it binds where there is room, as a ReplicaSet and kube-scheduler do.
type park struct {
	*rig
	wanted int // pods
	cpu    string
	made   int
	slow   bool            // new instances do not join
	broken map[string]bool // AMIs with which no kubelet starts
	most   int             // largest number of nodes that were tainted at the same time

	// fresh: the loops of classes and drift run too, and limit how drifted nodes go.
	fresh bool
}

// newPark has nodes with one pod each, which requests most of a node at first, and cpu from now on.
func newPark(t *testing.T, nodes int, large, cpu string, types ...string) *park {
	t.Helper()
	return parkOn(t, newRig(t, types...), nodes, large, cpu)
}

// parkOn is newPark on a prepared rig.
func parkOn(t *testing.T, r *rig, nodes int, large, cpu string) *park {
	t.Helper()
	f := &park{rig: r, wanted: nodes, cpu: cpu, broken: map[string]bool{}}
	f.classes(t)
	for i := range nodes {
		f.pending(t, fmt.Sprintf("large-%d", i), large, "512Mi")
	}
	f.plan(t)
	f.work(t)
	f.join(t)
	f.work(t)
	claims := f.claims(t)
	if len(claims) != nodes {
		t.Fatalf("%d nodes for %d pods\n%s", len(claims), nodes, f.log)
	}
	for i := range claims {
		if !claims[i].StatusConditions().IsReady() {
			t.Fatalf("%s is not ready\n%s", claims[i].Name, f.log)
		}
		f.run(t, &claims[i])
	}
	for _, pod := range f.pods(t) {
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
		f.check(t, f.api.Update(t.Context(), &pod))
	}
	f.ahead += 2 * time.Minute // the launches for the bound pods count no longer
	f.Moves.Now = f.now
	return f
}

func (f *park) check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *park) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	f.check(t, f.api.List(t.Context(), &list))
	return list.Items
}

// round runs all loops and the simulated kubelets and schedulers once. Each pod must have a node at the end of it.
func (f *park) round(t *testing.T) {
	t.Helper()
	f.lead(t)
	f.plan(t)
	f.ahead += min(f.work(t), 5*time.Second)
	f.boot(t)
	f.schedule(t)
	closed := 0
	for _, n := range f.nodes(t) {
		if !nodestate.IsOpen(&n) {
			closed++
		}
	}
	f.most = max(f.most, closed)
	f.ahead += time.Second
}

// boot starts kubelets, except those of slow instances and broken AMIs.
func (f *park) boot(t *testing.T) {
	t.Helper()
	if f.slow {
		return
	}
	known := map[string]bool{}
	for _, n := range f.nodes(t) {
		known[n.Spec.ProviderID] = true
	}
	for _, c := range f.claims(t) {
		if c.Status.ProviderID != "" && !known[c.Status.ProviderID] && c.DeletionTimestamp == nil && !f.broken[c.Status.ImageID] {
			f.create(t, f.nodeOf(t, c))
		}
	}
}

// lead runs the loops that choose nodes to disrupt.
func (f *park) lead(t *testing.T) {
	t.Helper()
	if f.isDead() {
		return
	}
	f.Moves.Search.Next = time.Time{}
	if f.fresh {
		f.Moves.Drift = f.Drift
		_, _ = f.NodeClasses.Reconcile(t.Context(), named("default"))
		_, _ = f.Pools.Reconcile(t.Context(), named("apps"))
		_ = f.Drift.Pass(t.Context(), f.now())
	}
	_ = f.Emptiness.Pass(t.Context(), f.now())
	_ = f.Moves.Advance(t.Context())
	_ = f.Moves.Look(t.Context())
}

// schedule creates missing pods, and binds pending ones.
func (f *park) schedule(t *testing.T) {
	t.Helper()
	pods := f.pods(t)
	for n := len(pods); n < f.wanted; n++ {
		f.made++
		f.pending(t, fmt.Sprintf("small-%d", f.made), f.cpu, "512Mi")
	}
	used := map[string]int64{}
	for _, p := range pods {
		used[p.Spec.NodeName] += p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
	}
	nodes := f.nodes(t)
	for _, p := range f.pods(t) {
		if p.Spec.NodeName != "" {
			continue
		}
		cpu := p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		at := slices.IndexFunc(nodes, func(n corev1.Node) bool {
			return nodestate.IsReady(&n) && n.DeletionTimestamp == nil && !n.Spec.Unschedulable &&
				!slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key != "team" }) &&
				used[n.Name]+cpu <= n.Status.Allocatable.Cpu().MilliValue()
		})
		if at < 0 {
			t.Fatalf("pod %s has no place\n%s", p.Name, f.log)
		}
		used[nodes[at].Name] += cpu
		p.Spec.NodeName, p.Status = nodes[at].Name, corev1.PodStatus{Phase: corev1.PodRunning}
		f.check(t, f.api.Update(t.Context(), &p))
	}
}

// live runs rounds until nothing changes, or the process has ended.
func (f *park) live(t *testing.T) {
	t.Helper()
	calm := 0
	for range 200 {
		if f.isDead() {
			return
		}
		before := f.text(t)
		f.round(t)
		if f.text(t) == before && f.isWhole(t) == "" {
			if calm++; calm == 5 {
				return
			}
			continue
		}
		calm = 0
	}
	t.Fatalf("it does not converge: %s\n%s\n%s", f.isWhole(t), f.text(t), f.log)
}

// text describes the nodes, and the marks of moves on them.
func (f *park) text(t *testing.T) string {
	t.Helper()
	var out []string
	for _, c := range f.claims(t) {
		out = append(out, fmt.Sprint(c.Name, c.DeletionTimestamp != nil, c.StatusConditions().IsReady(), c.Annotations[nodestate.AnnotationMove]))
	}
	for _, n := range f.nodes(t) {
		out = append(out, fmt.Sprint(n.Name, nodestate.IsOpen(&n), n.DeletionTimestamp != nil))
	}
	for _, p := range f.pods(t) {
		out = append(out, p.Name+" on "+p.Spec.NodeName)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// isWhole returns the marks and taints of moves in progress; empty if there are none.
func (f *park) isWhole(t *testing.T) string {
	t.Helper()
	claims := f.claims(t)
	for _, c := range claims {
		switch _, why := c.StatusConditions().Find(karpv1.ConditionDisruptionReason); {
		case c.DeletionTimestamp != nil:
			return c.Name + " is being deleted"
		case c.Annotations[nodestate.AnnotationMove] != "" || why:
			return c.Name + " still bears the marks of a move"
		case !c.StatusConditions().IsReady():
			return c.Name + " is not ready"
		}
	}
	for _, n := range f.nodes(t) {
		if !nodestate.IsOpen(&n) {
			return n.Name + " takes no pods"
		}
	}
	if len(f.nodes(t)) != len(claims) || len(f.instances()) != len(claims) {
		return fmt.Sprintf("%d claims, %d nodes, %d instances", len(claims), len(f.nodes(t)), len(f.instances()))
	}
	for _, p := range f.pods(t) {
		if p.Spec.NodeName == "" {
			return p.Name + " waits"
		}
	}
	return ""
}

// change changes the pool.
func (f *park) change(t *testing.T, change func(*karpv1.NodePool)) {
	t.Helper()
	pool := &karpv1.NodePool{}
	f.check(t, f.api.Get(t.Context(), client.ObjectKey{Name: "apps"}, pool))
	change(pool)
	f.check(t, f.api.Update(t.Context(), pool))
}

// types counts the instances that cost money, by type: "2 t3.medium".
func (f *park) types() string {
	counts := map[string]int{}
	for _, i := range f.instances() {
		counts[i.Type]++
	}
	var out []string
	for name, n := range counts {
		out = append(out, fmt.Sprintf("%d %s", n, name))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

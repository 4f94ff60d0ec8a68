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

// replicaRig is a rig with a fixed number of pods. As a ReplicaSet and kube-scheduler do, it creates missing pods and
// binds them where there is room.
type replicaRig struct {
	*rig
	replicas    int             // number of pods
	cpu         string          // request of each new pod
	created     int             // number of pods that schedule created
	noJoin      bool            // new instances do not join
	broken      map[string]bool // AMIs with which no kubelet starts
	mostTainted int             // largest number of nodes that were tainted at the same time
	withDrift   bool            // the loops of class, pool and drift run too
}

// newReplicaRig returns a rig with the given number of nodes and one pod on each. The pods request firstCPU while their
// nodes are planned, and only laterCPU from then on, so that the nodes are underutilized.
func newReplicaRig(t *testing.T, nodes int, firstCPU, laterCPU string, types ...string) *replicaRig {
	t.Helper()
	return replicaRigOn(t, newRig(t, types...), nodes, firstCPU, laterCPU)
}

func replicaRigOn(t *testing.T, r *rig, nodes int, firstCPU, laterCPU string) *replicaRig {
	t.Helper()
	f := &replicaRig{rig: r, replicas: nodes, cpu: laterCPU, broken: map[string]bool{}}
	f.reconcileClassAndPool(t)
	for i := range nodes {
		f.addPendingPod(t, fmt.Sprintf("large-%d", i), firstCPU, "512Mi")
	}
	f.plan(t)
	f.reconcileClaims(t)
	f.join(t)
	f.reconcileClaims(t)
	claims := f.claims(t)
	if len(claims) != nodes {
		t.Fatalf("%d nodes, want %d, one for each pod\n%s", len(claims), nodes, f.log)
	}
	for i := range claims {
		if !claims[i].StatusConditions().IsReady() {
			t.Fatalf("%s is not ready\n%s", claims[i].Name, f.log)
		}
		f.bindPodsOf(t, &claims[i])
	}
	for _, pod := range f.pods(t) {
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(laterCPU)
		f.check(t, f.api.Update(t.Context(), &pod))
	}
	f.ahead += 2 * time.Minute // past bindTimeout of kube/snapshot: until then, planned pods count as running on the node
	f.Moves.Now = f.now
	return f
}

func (f *replicaRig) check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *replicaRig) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	f.check(t, f.api.List(t.Context(), &list))
	return list.Items
}

// round runs all loops and the simulated kubelets and schedulers once. At the end of a round, each pod must have a
// node.
func (f *replicaRig) round(t *testing.T) {
	t.Helper()
	f.runDisruption(t)
	f.plan(t)
	f.ahead += min(f.reconcileClaims(t), 5*time.Second)
	f.boot(t)
	f.schedule(t)
	tainted := 0
	for _, n := range f.nodes(t) {
		if !nodestate.IsOpen(&n) {
			tainted++
		}
	}
	f.mostTainted = max(f.mostTainted, tainted)
	f.ahead += time.Second
}

// boot creates the missing Nodes, as kubelets do: none if noJoin is set, and none of instances with a broken AMI.
func (f *replicaRig) boot(t *testing.T) {
	t.Helper()
	if f.noJoin {
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

// runDisruption runs the loops that disrupt nodes. It ignores errors, because a later round retries.
func (f *replicaRig) runDisruption(t *testing.T) {
	t.Helper()
	if f.isDead() {
		return
	}
	f.Moves.Scans.Next = time.Time{} // a scan is due
	if f.withDrift {
		f.Moves.Drift = f.Drift
		_, _ = f.NodeClasses.Reconcile(t.Context(), named("default"))
		_, _ = f.Pools.Reconcile(t.Context(), named("apps"))
		_ = f.Drift.Pass(t.Context(), f.now())
	}
	_ = f.Emptiness.Pass(t.Context(), f.now())
	_ = f.Moves.Advance(t.Context())
	_ = f.Moves.Search(t.Context())
}

// schedule creates the missing pods, and binds each pending pod to a Node with enough free CPU. The pods tolerate the
// taint "team" of the pool.
func (f *replicaRig) schedule(t *testing.T) {
	t.Helper()
	pods := f.pods(t)
	for n := len(pods); n < f.replicas; n++ {
		f.created++
		f.addPendingPod(t, fmt.Sprintf("small-%d", f.created), f.cpu, "512Mi")
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
			t.Fatalf("no node has room for pod %s\n%s", p.Name, f.log)
		}
		used[nodes[at].Name] += cpu
		p.Spec.NodeName, p.Status = nodes[at].Name, corev1.PodStatus{Phase: corev1.PodRunning}
		f.check(t, f.api.Update(t.Context(), &p))
	}
}

// converge runs rounds until nothing changes in five consecutive rounds, or the process has ended.
func (f *replicaRig) converge(t *testing.T) {
	t.Helper()
	unchanged := 0
	for range 200 {
		if f.isDead() {
			return
		}
		before := f.describe(t)
		f.round(t)
		if f.describe(t) == before && f.unfinished(t) == "" {
			if unchanged++; unchanged == 5 {
				return
			}
			continue
		}
		unchanged = 0
	}
	t.Fatalf("the nodes do not converge: %s\n%s\n%s", f.unfinished(t), f.describe(t), f.log)
}

func (f *replicaRig) describe(t *testing.T) string {
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

// unfinished describes a deletion, a move or a launch in progress, or a pod without a node; empty if there is none.
func (f *replicaRig) unfinished(t *testing.T) string {
	t.Helper()
	claims := f.claims(t)
	for _, c := range claims {
		switch _, hasReason := c.StatusConditions().Find(karpv1.ConditionDisruptionReason); {
		case c.DeletionTimestamp != nil:
			return c.Name + " is being deleted"
		case c.Annotations[nodestate.AnnotationMove] != "" || hasReason:
			return c.Name + " still has the marks of a move"
		case !c.StatusConditions().IsReady():
			return c.Name + " is not ready"
		}
	}
	for _, n := range f.nodes(t) {
		if !nodestate.IsOpen(&n) {
			return n.Name + " is tainted"
		}
	}
	if len(f.nodes(t)) != len(claims) || len(f.instances()) != len(claims) {
		return fmt.Sprintf("%d claims, %d nodes, %d instances", len(claims), len(f.nodes(t)), len(f.instances()))
	}
	for _, p := range f.pods(t) {
		if p.Spec.NodeName == "" {
			return p.Name + " has no node"
		}
	}
	return ""
}

func (f *replicaRig) changePool(t *testing.T, change func(*karpv1.NodePool)) {
	t.Helper()
	pool := &karpv1.NodePool{}
	f.check(t, f.api.Get(t.Context(), client.ObjectKey{Name: "apps"}, pool))
	change(pool)
	f.check(t, f.api.Update(t.Context(), pool))
}

func (f *replicaRig) typeCounts() string {
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

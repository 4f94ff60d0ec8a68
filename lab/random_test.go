package lab_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scenario"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
	"github.com/joiner-sh/joiner/lab"
)

// usualWorlds is the default of LAB_WORLDS, the number of worlds per run.
const usualWorlds = 24

// mostRounds is the maximum number of plans for pods that kube-scheduler, without restrictions, did not place as
// planned.
const mostRounds = 4

// TestRandomWorlds checks plans for random clusters with kube-scheduler. A plan is applied unchanged: its planned
// NodeClaims become Nodes of the real API server.
//
//  1. In some order, the scheduler binds each placed pod to its planned node, with all rules in effect.
//  2. Then another plan launches nothing, and the scheduler also finds no node for the pods that the plan rejects.
//  3. Without restrictions the scheduler packs differently. Joiner plans again for the pods that do not fit then, and after a few rounds only rejected pods are left.
//
// LAB_SEED is the seed of the first world, LAB_WORLDS the number of worlds. The files of a failed world are kept in a
// folder, which the failure names.
func TestRandomWorlds(t *testing.T) {
	l := shared(t)
	killController(l) // it would launch nodes for the same pods
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	offered, err := table.Catalog("us-east-1", catalog.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, l)
	first, worlds := numberFrom(t, "LAB_SEED", 1), numberFrom(t, "LAB_WORLDS", usualWorlds)
	var sum tally
	for seed := first; seed < first+worlds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s.T = t
			w := draw(seed, offered)
			defer s.clear(w)
			s.try(w, &sum)
		})
		if t.Context().Err() != nil {
			break
		}
	}
	t.Logf("%s", sum)
}

func numberFrom(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q: want a number", variable, text)
	}
	return n
}

// tally sums up the results of all worlds.
type tally struct {
	worlds, pods, instances, placed, refused int
	again, extra, later                      int
}

func (t tally) String() string {
	return fmt.Sprintf("%d worlds, %d pods: %d on %d new instances or existing nodes, %d refused. Left to itself the scheduler packed otherwise in %d worlds, "+
		"which took %d more instances. In %d worlds some refused pods had a place once the types and zones of the instances were known.",
		t.worlds, t.pods, t.placed, t.instances, t.refused, t.again, t.extra, t.later)
}

// trial is one world while it is checked.
type trial struct {
	*stage
	*randomWorld
	objects  snapshot.Objects // input of the first plan
	snapshot cluster.Snapshot
	plan     packing.Plan
	filled   []*corev1.Pod            // pending pods with the API server's defaults
	plans    []string                 // all plans, as scenarios
	claims   []*karpenterv1.NodeClaim // of the launched instances
	launched int
	said     []string // violations
}

func (s *stage) try(w *randomWorld, sum *tally) {
	x := &trial{stage: s, randomWorld: w}
	defer x.evidence()
	x.furnish(w)
	x.complete()

	// 1. Joiner plans from manifests, before the scheduler has tried the pods.
	x.objects = x.read(x.filled)
	x.snapshot = x.objects.Snapshot(snapshot.View{Now: time.Now(), Market: w.market})
	x.plan = x.solve(x.snapshot)
	if got := len(x.snapshot.Pods); got != len(w.pending) {
		x.wrong("%d pods wait, but the snapshot has %d", len(w.pending), got)
	}

	// 2. Every pod gets its planned node.
	names := x.launch(x.plan)
	where := placesOf(x.plan, names)
	bound, left := x.inPlace(where)
	for _, id := range slices.Sorted(maps.Keys(left)) {
		x.wrong("%s was planned onto %s, but is %s", id, where[id], left[id])
	}
	for _, id := range slices.Sorted(maps.Keys(bound)) {
		if bound[id].node != where[id] {
			x.wrong("%s was planned onto %s, but is %s", id, where[id], bound[id])
		}
	}

	// 3. The scheduler rejects the others, too.
	later := len(left) == 0 && x.refuses()

	// 4. The scheduler places pods without restrictions.
	x.remove(w.pending)
	rounds, extra := x.converge()

	sum.worlds++
	sum.pods += len(w.pending)
	sum.placed += len(where)
	sum.instances += len(x.plan.PlannedNodes)
	sum.refused += len(x.plan.Refusals)
	sum.extra += extra
	if rounds > 0 {
		sum.again++
	}
	if later {
		sum.later++
	}
	s.Logf("%d pods, %d DaemonSets and %d nodes: %d placed, %d instances launched, %d refused; %d more rounds, %d more instances",
		len(w.pending), len(w.daemons), len(w.nodes), len(where), len(x.plan.PlannedNodes), len(x.plan.Refusals), rounds, extra)
}

// solve makes a plan and runs the checker on it.
func (x *trial) solve(snapshot cluster.Snapshot) packing.Plan {
	x.Helper()
	plan := packing.Solve(snapshot, x.market, packing.Usual)
	x.plans = append(x.plans, scenario.Scenario{Snapshot: snapshot, Market: x.market, Expect: scenario.PlanText(plan)}.String())
	for _, broken := range verify.Check(snapshot, x.market, plan) {
		x.wrong("the checker, of plan %d: %s", len(x.plans), broken)
	}
	return plan
}

func (x *trial) wrong(format string, args ...any) {
	x.Helper()
	x.said = append(x.said, fmt.Sprintf(format, args...))
	x.Error(x.said[len(x.said)-1])
}

// complete lets the API server validate the world's objects and fill in defaults, as a dry run.
func (x *trial) complete() {
	x.Helper()
	all(x.stage, x.pools, func(ctx context.Context, p *karpenterv1.NodePool) error {
		return x.lab.Client.Create(ctx, p, client.DryRunAll)
	})
	filled := make([]*corev1.Pod, len(x.pending))
	indices := make([]int, len(x.pending))
	for i := range indices {
		indices[i] = i
	}
	all(x.stage, indices, func(ctx context.Context, i int) error {
		var err error
		filled[i], err = x.lab.Kube.CoreV1().Pods(x.pending[i].Namespace).Create(ctx, x.pending[i],
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	x.filled = filled
}

// read returns the objects of the cluster, with these pods added.
func (x *trial) read(more []*corev1.Pod) snapshot.Objects {
	x.Helper()
	core, storage := x.lab.Kube.CoreV1(), x.lab.Kube.StorageV1()
	o := snapshot.Objects{
		Pods:       read(x.stage, core.Pods("").List, func(l *corev1.PodList) []corev1.Pod { return l.Items }),
		Nodes:      read(x.stage, core.Nodes().List, func(l *corev1.NodeList) []corev1.Node { return l.Items }),
		Namespaces: read(x.stage, core.Namespaces().List, func(l *corev1.NamespaceList) []corev1.Namespace { return l.Items }),
		DaemonSets: read(x.stage, x.lab.Kube.AppsV1().DaemonSets("").List, func(l *appsv1.DaemonSetList) []appsv1.DaemonSet { return l.Items }),
		VolumeClaims: read(x.stage, core.PersistentVolumeClaims("").List,
			func(l *corev1.PersistentVolumeClaimList) []corev1.PersistentVolumeClaim { return l.Items }),
		Volumes: read(x.stage, core.PersistentVolumes().List,
			func(l *corev1.PersistentVolumeList) []corev1.PersistentVolume { return l.Items }),
		CSINodes: read(x.stage, storage.CSINodes().List, func(l *storagev1.CSINodeList) []storagev1.CSINode { return l.Items }),
		Pools:    x.pools, Claims: x.claims,
	}
	o.Classes = append(o.Classes, x.class)
	o.Pods = append(o.Pods, more...)
	return o
}

// launch creates a Node for each NodeClaim of a plan, and returns the Nodes' names by the NodeClaims' names.
func (x *trial) launch(plan packing.Plan) map[string]string {
	x.Helper()
	names, attachable := map[string]string{}, map[string]int64{}
	var nodes []*corev1.Node
	for i := range plan.PlannedNodes {
		m := &plan.PlannedNodes[i]
		pool := x.pools[slices.IndexFunc(x.pools, func(p *karpenterv1.NodePool) bool { return p.Name == m.Pool })]
		claim, err := conversion.ClaimFor(*m, pool)
		x.must(err)
		choice := m.Offerings[0]
		if x.largest {
			choice = m.Offerings[len(m.Offerings)-1]
		}
		x.launched++
		name := fmt.Sprintf("%s-instance-%d", x.name, x.launched)
		node, attaches := x.launchedNode(name, claim, choice)
		claim.Name, claim.CreationTimestamp = name, metav1.Now()
		claim.Annotations = nil // the scheduler must decide on its own
		claim.Status.ProviderID, claim.Status.NodeName = node.Spec.ProviderID, name
		claim.Status.Capacity, claim.Status.Allocatable = node.Status.Capacity, node.Status.Allocatable
		claim.StatusConditions().SetTrue(time.Now(), karpenterv1.ConditionRegistered)
		claim.StatusConditions().SetTrue(time.Now(), karpenterv1.ConditionInitialized)
		x.claims = append(x.claims, claim)
		nodes, names[m.Name], attachable[name] = append(nodes, node), name, attaches
	}
	x.join(nodes, attachable)
	return names
}

// launchedNode returns the node of an instance that was launched for the claim, without startup taints.
func (x *trial) launchedNode(name string, claim *karpenterv1.NodeClaim, choice packing.Choice) (*corev1.Node, int64) {
	x.Helper()
	types := x.market[x.class.Name].Types
	i := slices.IndexFunc(types, func(t catalog.Type) bool { return t.Name == choice.InstanceType })
	t := types[i]
	i = slices.IndexFunc(t.Offerings, func(o catalog.Offering) bool { return o.Zone == choice.Zone && o.CapacityType == choice.CapacityType })
	if i < 0 {
		x.Fatalf("EC2 does not offer %v", choice)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, labels := range []map[string]string{t.Labels, t.Offerings[i].Labels(), claim.Labels} {
		maps.Copy(node.Labels, labels)
	}
	maps.Copy(node.Labels, map[string]string{corev1.LabelHostname: name, karpenterv1.LabelRegistered: "true",
		karpenterv1.LabelInitialized: "true"})
	node.Spec.ProviderID = fmt.Sprintf("aws:///%s/i-%s", choice.Zone, name)
	node.Spec.Taints = claim.Spec.Taints
	node.Status.Capacity, node.Status.Allocatable = conversion.Quantities(t.Capacity), conversion.Quantities(t.Allocatable)
	return node, t.Volumes
}

// placesOf returns the name of each pod's planned Node.
func placesOf(plan packing.Plan, names map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range plan.PlannedNodes {
		for _, id := range m.Pods {
			out[id] = names[m.Name]
		}
	}
	for _, p := range plan.Placements {
		out[p.Pod] = p.Node
	}
	return out
}

// inPlace pins each placed pod to its planned node. According to the checker, there is an order in which the scheduler
// binds them all; inPlace tries several orders.
func (x *trial) inPlace(where map[string]string) (bound, left map[string]outcome) {
	x.Helper()
	var pods []*corev1.Pod
	for _, p := range x.pending {
		if node, ok := where[idOf(p)]; ok {
			pods = append(pods, pinned(p, node))
		}
	}
	for range 6 {
		bound, left = x.settle(pods)
		if len(left) == 0 || x.stage.Failed() {
			break
		}
		x.remove(pods)
		x.Logf("%d pods did not fit in where they were planned; trying in another order", len(left))
		slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { // those that were not bound first
			_, late := left[idOf(a)]
			_, also := left[idOf(b)]
			switch {
			case late == also:
				return 0
			case late:
				return -1
			}
			return 1
		})
	}
	return bound, left
}

func pinned(p *corev1.Pod, node string) *corev1.Pod {
	p = p.DeepCopy()
	r := &p.Spec.Containers[0].Resources
	for _, list := range []*corev1.ResourceList{&r.Requests, &r.Limits} {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[pinOf(node)] = resource.MustParse("1")
	}
	return p
}

// refuses checks that, once the plan is carried out, another plan launches nothing, and that it agrees with the
// scheduler about the rejected pods. It reports whether some of them fit now: an instance may be larger than needed, or
// its domain may be known now.
func (x *trial) refuses() (later bool) {
	x.Helper()
	var refused, waiting []*corev1.Pod
	why := map[string][]packing.Reason{}
	for _, r := range x.plan.Refusals {
		why[r.Pod] = r.Reasons
	}
	for i, p := range x.pending {
		if _, ok := why[idOf(p)]; ok {
			refused, waiting = append(refused, p), append(waiting, x.filled[i])
		}
	}
	objects := x.read(waiting)
	after := x.solve(objects.Snapshot(snapshot.View{Now: time.Now().Add(time.Minute), Market: x.market}))
	for _, m := range after.PlannedNodes {
		if !slices.ContainsFunc(m.Pods, func(id string) bool { return isOpen(why[id]) }) {
			x.wrong("a second plan launches an instance for %v, refused at first: %v", m.Pods, why[m.Pods[0]])
		}
	}
	bound, _ := x.settle(refused)
	if len(after.Placements) == 0 {
		for _, id := range slices.Sorted(maps.Keys(bound)) {
			x.wrong("%s was refused (%v), by a second plan too, but is %s", id, why[id], bound[id])
		}
	}
	if len(bound) == 0 && len(after.Placements) > 0 {
		x.wrong("a second plan places %v, which the scheduler leaves Pending", after.Placements)
	}
	return len(bound)+len(after.PlannedNodes) > 0
}

// isOpen reports whether the reasons may change once the instances of a plan are known: a small one uses less of a
// pool's limit, and one that could have been in either of two domains is in one of them.
func isOpen(reasons []packing.Reason) bool {
	return slices.ContainsFunc(reasons, func(r packing.Reason) bool {
		return r.Code == packing.LimitReached || r.Code == packing.TopologySpread
	})
}

// converge lets the scheduler place all pods without restrictions, and plans again for the remaining pods, until only
// rejected pods are left. It returns the number of plans that launched instances, and the number of instances.
func (x *trial) converge() (rounds, extra int) {
	x.Helper()
	_, left := x.settle(x.pending)
	for ; len(left) > 0; rounds++ {
		view := snapshot.View{Now: time.Now().Add(time.Minute), Live: true, Market: x.market}
		objects := x.read(nil)
		snapshot := objects.Snapshot(view)
		plan := x.solve(snapshot)
		if got := len(snapshot.Pods); got != len(left) {
			x.wrong("%d pods are Pending, but the snapshot has %d", len(left), got)
		}
		if len(plan.PlannedNodes) == 0 {
			for _, p := range plan.Placements {
				x.wrong("a later plan puts %s onto %s, which is there, but the scheduler leaves %v", p.Pod, p.Node, left)
			}
			return rounds, extra
		}
		if rounds == mostRounds {
			x.wrong("after %d rounds %d pods are left, and the plan launches %d instances for some of them", rounds, len(left),
				len(plan.PlannedNodes))
			return rounds, extra
		}
		extra += len(plan.PlannedNodes)
		x.Logf("left to itself, the scheduler leaves %d pods; for them:\n%s", len(left), scenario.PlanText(plan))
		var pods []*corev1.Pod
		for _, p := range x.pending {
			if _, ok := left[idOf(p)]; ok {
				pods = append(pods, p)
			}
		}
		x.remove(pods) // otherwise one of them may take the host port of a DaemonSet pod on a new instance
		x.launch(plan)
		_, left = x.settle(pods)
	}
	return rounds, extra
}

// evidence writes the violations, and files that explain them, into a folder.
func (x *trial) evidence() {
	if !x.stage.Failed() {
		return
	}
	dir, err := os.MkdirTemp("", "joiner-lab-"+x.name+"-")
	if err != nil {
		x.Error(err)
		return
	}
	files := map[string]string{
		"wrong.txt":     strings.Join(x.said, "\n") + "\n",
		"manifest.yaml": x.manifest(),
		"evidence.txt":  x.lab.Evidence(context.Background()),
	}
	for i, text := range x.plans {
		files[fmt.Sprintf("plan-%d.txt", i+1)] = text
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			x.Error(err)
		}
	}
	x.Errorf("see %s; to reproduce: LAB_SEED=%s LAB_WORLDS=1\n%s", dir, strings.TrimPrefix(x.name, "w"), scenario.PlanText(x.plan))
}

// manifest returns the input of the first plan, for joiner plan -f.
func (x *trial) manifest() string {
	var b strings.Builder
	scheme, err := lab.Scheme()
	x.must(err)
	write := func(object client.Object) {
		object = object.DeepCopyObject().(client.Object)
		object.SetManagedFields(nil)
		if kind, err := apiutil.GVKForObject(object, scheme); err == nil {
			object.GetObjectKind().SetGroupVersionKind(kind)
		}
		text, err := yaml.Marshal(object)
		x.must(err)
		fmt.Fprintf(&b, "---\n%s", text)
	}
	for _, o := range x.objects.Pools {
		write(o)
	}
	for _, o := range x.objects.Classes {
		write(o)
	}
	for _, o := range x.objects.Namespaces {
		write(o)
	}
	for _, o := range x.objects.Nodes {
		write(o)
	}
	for _, o := range x.objects.CSINodes {
		write(o)
	}
	for _, o := range x.objects.DaemonSets {
		write(o)
	}
	for _, o := range x.objects.Volumes {
		write(o)
	}
	for _, o := range x.objects.VolumeClaims {
		write(o)
	}
	for _, o := range x.objects.Pods {
		write(o)
	}
	return b.String()
}

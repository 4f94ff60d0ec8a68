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

// defaultWorlds is the default of LAB_WORLDS, the number of worlds per run.
const defaultWorlds = 24

// maxRounds is how many further plans may launch instances in step 3 of TestRandomWorlds.
const maxRounds = 4

// TestRandomWorlds checks plans for random clusters with kube-scheduler. A plan is applied unchanged: its planned
// NodeClaims become Nodes of the real API server.
//
//  1. Each placed pod is pinned to its planned node. kube-scheduler must be able to bind all of them, with all
//     other rules in effect.
//  2. Then a second plan launches nothing, and kube-scheduler finds no node for the pods that the first plan refuses.
//  3. Without pins, kube-scheduler packs differently. Joiner plans again for the pods that do not fit then. After at
//     most maxRounds more plans, only refused pods are left.
//
// LAB_SEED is the seed of the first world, LAB_WORLDS the number of worlds. The failure message of a world names the
// folder with its files.
func TestRandomWorlds(t *testing.T) {
	l := sharedLab(t)
	killController(l) // it would launch nodes for the same pods
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	offered, err := table.Catalog("us-east-1", catalog.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	s := newTestbed(t, l)
	first, worlds := numberFrom(t, "LAB_SEED", 1), numberFrom(t, "LAB_WORLDS", defaultWorlds)
	var sum worldTotals
	for seed := first; seed < first+worlds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s.T = t
			w := draw(seed, offered)
			defer s.clear(w)
			s.checkWorld(w, &sum)
		})
		if t.Context().Err() != nil {
			break
		}
	}
	t.Logf("%s", sum)
}

func numberFrom(t *testing.T, variable string, fallback uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q: want a number", variable, text)
	}
	return n
}

type worldTotals struct {
	worlds, pods, instances, placed, refused int
	repacked                                 int // worlds in which the pods without pins needed more instances
	extra                                    int // number of these additional instances
	fitLater                                 int // worlds in which pods that the first plan refused fit later
}

func (t worldTotals) String() string {
	return fmt.Sprintf("%d worlds, %d pods: %d placed, %d instances launched, %d refused. Without pins, kube-scheduler packed differently in %d worlds, "+
		"which took %d more instances. In %d worlds some refused pods fitted once the types and zones of the instances were known.",
		t.worlds, t.pods, t.placed, t.instances, t.refused, t.repacked, t.extra, t.fitLater)
}

// worldCheck is one world while it is checked.
type worldCheck struct {
	*testbed
	*randomWorld
	objects  snapshot.Objects // input of the first plan
	snapshot cluster.Snapshot
	plan     packing.Plan
	filled   []*corev1.Pod            // pending pods with the API server's defaults
	plans    []string                 // all plans so far, as scenarios
	claims   []*karpenterv1.NodeClaim // NodeClaims of the launched instances
	launched int                      // number of launched instances

	violations []string
}

// checkWorld checks a world in the steps of TestRandomWorlds, and adds the results to sum.
func (s *testbed) checkWorld(w *randomWorld, sum *worldTotals) {
	x := &worldCheck{testbed: s, randomWorld: w}
	defer x.writeEvidence()
	x.createExisting(w)
	x.fillDefaults()

	// Joiner plans from manifests, before kube-scheduler has tried the pods.
	x.objects = x.readObjects(x.filled)
	x.snapshot = x.objects.Snapshot(snapshot.View{Now: time.Now(), Market: w.market})
	x.plan = x.solve(x.snapshot)
	if got := len(x.snapshot.Pods); got != len(w.pending) {
		x.addViolation("%d pods are pending, but the snapshot has %d", len(w.pending), got)
	}

	// Step 1: kube-scheduler binds every placed pod to its planned node.
	names := x.launch(x.plan)
	where := placesOf(x.plan, names)
	bound, left := x.bindPinned(where)
	for _, id := range slices.Sorted(maps.Keys(left)) {
		x.addViolation("%s was planned onto %s, but is %s", id, where[id], left[id])
	}
	for _, id := range slices.Sorted(maps.Keys(bound)) {
		if bound[id].node != where[id] {
			x.addViolation("%s was planned onto %s, but is %s", id, where[id], bound[id])
		}
	}

	// Step 2: kube-scheduler finds no node for the refused pods.
	someFitLater := len(left) == 0 && x.checkRefusals()

	// Step 3: kube-scheduler places all pods without pins.
	x.remove(w.pending)
	rounds, extra := x.converge()

	sum.worlds++
	sum.pods += len(w.pending)
	sum.placed += len(where)
	sum.instances += len(x.plan.PlannedNodes)
	sum.refused += len(x.plan.Refusals)
	sum.extra += extra
	if rounds > 0 {
		sum.repacked++
	}
	if someFitLater {
		sum.fitLater++
	}
	s.Logf("%d pods, %d DaemonSets and %d nodes: %d placed, %d instances launched, %d refused; %d more rounds, %d more instances",
		len(w.pending), len(w.daemons), len(w.nodes), len(where), len(x.plan.PlannedNodes), len(x.plan.Refusals), rounds, extra)
}

func (x *worldCheck) solve(input cluster.Snapshot) packing.Plan {
	x.Helper()
	plan := packing.Solve(input, x.market, packing.DefaultEffort)
	x.plans = append(x.plans, scenario.Scenario{Snapshot: input, Market: x.market, Expect: scenario.PlanText(plan)}.String())
	for _, rule := range verify.Check(input, x.market, plan) {
		x.addViolation("plan %d violates a rule: %s", len(x.plans), rule)
	}
	return plan
}

func (x *worldCheck) addViolation(format string, args ...any) {
	x.Helper()
	x.violations = append(x.violations, fmt.Sprintf(format, args...))
	x.Error(x.violations[len(x.violations)-1])
}

// fillDefaults creates the world's NodePools and pending pods as a dry run: the API server validates them and fills in
// defaults.
func (x *worldCheck) fillDefaults() {
	x.Helper()
	forEach(x.testbed, x.pools, func(ctx context.Context, p *karpenterv1.NodePool) error {
		return x.lab.Client.Create(ctx, p, client.DryRunAll)
	})
	filled := make([]*corev1.Pod, len(x.pending))
	indices := make([]int, len(x.pending))
	for i := range indices {
		indices[i] = i
	}
	forEach(x.testbed, indices, func(ctx context.Context, i int) error {
		var err error
		filled[i], err = x.lab.Kube.CoreV1().Pods(x.pending[i].Namespace).Create(ctx, x.pending[i],
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	x.filled = filled
}

// readObjects returns the objects of the cluster, and the pods in more.
func (x *worldCheck) readObjects(more []*corev1.Pod) snapshot.Objects {
	x.Helper()
	core, storage := x.lab.Kube.CoreV1(), x.lab.Kube.StorageV1()
	o := snapshot.Objects{
		Pods:       read(x.testbed, core.Pods("").List, func(l *corev1.PodList) []corev1.Pod { return l.Items }),
		Nodes:      read(x.testbed, core.Nodes().List, func(l *corev1.NodeList) []corev1.Node { return l.Items }),
		Namespaces: read(x.testbed, core.Namespaces().List, func(l *corev1.NamespaceList) []corev1.Namespace { return l.Items }),
		DaemonSets: read(x.testbed, x.lab.Kube.AppsV1().DaemonSets("").List, func(l *appsv1.DaemonSetList) []appsv1.DaemonSet { return l.Items }),
		VolumeClaims: read(x.testbed, core.PersistentVolumeClaims("").List,
			func(l *corev1.PersistentVolumeClaimList) []corev1.PersistentVolumeClaim { return l.Items }),
		Volumes: read(x.testbed, core.PersistentVolumes().List,
			func(l *corev1.PersistentVolumeList) []corev1.PersistentVolume { return l.Items }),
		CSINodes: read(x.testbed, storage.CSINodes().List, func(l *storagev1.CSINodeList) []storagev1.CSINode { return l.Items }),
		Pools:    x.pools, Claims: x.claims,
	}
	o.Classes = append(o.Classes, x.class)
	o.Pods = append(o.Pods, more...)
	return o
}

// launch creates a Node for each NodeClaim of a plan, and returns the Nodes' names by the NodeClaims' names.
func (x *worldCheck) launch(plan packing.Plan) map[string]string {
	x.Helper()
	names, attachable := map[string]string{}, map[string]int64{}
	var nodes []*corev1.Node
	for i := range plan.PlannedNodes {
		planned := &plan.PlannedNodes[i]
		pool := x.pools[slices.IndexFunc(x.pools, func(p *karpenterv1.NodePool) bool { return p.Name == planned.Pool })]
		claim, err := conversion.ClaimFor(*planned, pool)
		x.must(err)
		choice := planned.Offerings[0]
		if x.mostExpensive {
			choice = planned.Offerings[len(planned.Offerings)-1]
		}
		x.launched++
		name := fmt.Sprintf("%s-instance-%d", x.name, x.launched)
		node, attaches := x.launchedNode(name, claim, choice)
		claim.Name, claim.CreationTimestamp = name, metav1.Now()
		claim.Annotations = nil // kube-scheduler must decide without the plan
		claim.Status.ProviderID, claim.Status.NodeName = node.Spec.ProviderID, name
		claim.Status.Capacity, claim.Status.Allocatable = node.Status.Capacity, node.Status.Allocatable
		claim.StatusConditions().SetTrue(time.Now(), karpenterv1.ConditionRegistered)
		claim.StatusConditions().SetTrue(time.Now(), karpenterv1.ConditionInitialized)
		x.claims = append(x.claims, claim)
		nodes, names[planned.Name], attachable[name] = append(nodes, node), name, attaches
	}
	x.join(nodes, attachable)
	return names
}

// launchedNode returns the Node of an instance that was launched for the claim, without startup taints, and the number
// of volumes that can be attached to it.
func (x *worldCheck) launchedNode(name string, claim *karpenterv1.NodeClaim, choice packing.Choice) (*corev1.Node, int64) {
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

// bindPinned pins each placed pod to its planned node. According to package verify, there is an order in which
// kube-scheduler can bind all of them; bindPinned tries up to six orders. Each
// order begins with the pods that were unbound in the previous one.
func (x *worldCheck) bindPinned(where map[string]string) (bound, left map[string]outcome) {
	x.Helper()
	var pods []*corev1.Pod
	for _, p := range x.pending {
		if node, ok := where[idOf(p)]; ok {
			pods = append(pods, pinned(p, node))
		}
	}
	for range 6 {
		bound, left = x.settle(pods)
		if len(left) == 0 || x.testbed.Failed() {
			break
		}
		x.remove(pods)
		x.Logf("%d pods did not fit on their planned nodes; trying another order", len(left))
		slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
			_, isALeft := left[idOf(a)]
			_, isBLeft := left[idOf(b)]
			switch {
			case isALeft == isBLeft:
				return 0
			case isALeft:
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
		(*list)[pinResource(node)] = resource.MustParse("1")
	}
	return p
}

// checkRefusals checks a second plan, after the first is carried out. The second plan may launch instances only for
// refusals whose reasons may change, and must agree with kube-scheduler about the refused pods. checkRefusals reports
// whether some of these pods fit now: a launched instance may be larger than needed, and its domain is known.
func (x *worldCheck) checkRefusals() (someFit bool) {
	x.Helper()
	var refused, refusedFilled []*corev1.Pod
	reasons := map[string][]packing.Reason{}
	for _, r := range x.plan.Refusals {
		reasons[r.Pod] = r.Reasons
	}
	for i, p := range x.pending {
		if _, ok := reasons[idOf(p)]; ok {
			refused, refusedFilled = append(refused, p), append(refusedFilled, x.filled[i])
		}
	}
	objects := x.readObjects(refusedFilled)
	after := x.solve(objects.Snapshot(snapshot.View{Now: time.Now().Add(time.Minute), Market: x.market}))
	for _, m := range after.PlannedNodes {
		if !slices.ContainsFunc(m.Pods, func(id string) bool { return mayChange(reasons[id]) }) {
			x.addViolation("a second plan launches an instance for %v, which the first plan refused: %v", m.Pods, reasons[m.Pods[0]])
		}
	}
	// If kube-scheduler and the plan both place pods, these may be different pods.
	bound, _ := x.settle(refused)
	if len(after.Placements) == 0 {
		for _, id := range slices.Sorted(maps.Keys(bound)) {
			x.addViolation("%s was refused (%v), also by a second plan, but is %s", id, reasons[id], bound[id])
		}
	}
	if len(bound) == 0 && len(after.Placements) > 0 {
		x.addViolation("a second plan places %v, but kube-scheduler leaves them Pending", after.Placements)
	}
	return len(bound)+len(after.PlannedNodes) > 0
}

// mayChange reports whether the reasons of a refusal may change once the instances of a plan are known: a small
// instance uses less of a pool's limit, and an instance that could have been in either of two domains is in one of
// them.
func mayChange(reasons []packing.Reason) bool {
	return slices.ContainsFunc(reasons, func(r packing.Reason) bool {
		return r.Code == packing.LimitReached || r.Code == packing.TopologySpread
	})
}

// converge lets kube-scheduler place all pods without pins, and plans again for the remaining pods, until only refused
// pods are left. It returns the number of plans that launched instances, and the number of these instances.
func (x *worldCheck) converge() (rounds, extra int) {
	x.Helper()
	_, left := x.settle(x.pending)
	for ; len(left) > 0; rounds++ {
		view := snapshot.View{Now: time.Now().Add(time.Minute), Live: true, Market: x.market}
		objects := x.readObjects(nil)
		input := objects.Snapshot(view)
		plan := x.solve(input)
		if got := len(input.Pods); got != len(left) {
			x.addViolation("%d pods are Pending, but the snapshot has %d", len(left), got)
		}
		if len(plan.PlannedNodes) == 0 {
			for _, p := range plan.Placements {
				x.addViolation("a later plan places %s on the existing node %s, but kube-scheduler leaves these pods Pending: %v", p.Pod, p.Node, left)
			}
			return rounds, extra
		}
		if rounds == maxRounds {
			x.addViolation("after %d rounds %d pods are left, and the plan launches %d instances for some of them", rounds, len(left),
				len(plan.PlannedNodes))
			return rounds, extra
		}
		extra += len(plan.PlannedNodes)
		x.Logf("without pins, kube-scheduler leaves %d pods Pending; the plan for them:\n%s", len(left), scenario.PlanText(plan))
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

// writeEvidence writes the violations of a failed world and their evidence into a folder.
func (x *worldCheck) writeEvidence() {
	if !x.testbed.Failed() {
		return
	}
	dir, err := os.MkdirTemp("", "joiner-lab-"+x.name+"-")
	if err != nil {
		x.Error(err)
		return
	}
	files := map[string]string{
		"wrong.txt":     strings.Join(x.violations, "\n") + "\n",
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
func (x *worldCheck) manifest() string {
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

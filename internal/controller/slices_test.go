package controller

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/controller/provisioner"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/fairness"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// addCostlyPod creates a pending pod of namespace tenant that is costly to plan: no other pod has its 50 anti-affinity
// terms.
func (r *rig) addCostlyPod(t *testing.T, i int, cpu string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: fmt.Sprintf("h-%03d", i)},
		Spec: corev1.PodSpec{
			Affinity:    &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}},
			Tolerations: []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(cpu)}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		}}},
	}
	for x := range 50 {
		pod.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(
			pod.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.WeightedPodAffinityTerm{
				Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{fmt.Sprintf("k%d", x): fmt.Sprintf("v%d-%d", i, x)},
				}},
			})
	}
	r.create(t, pod)
}

type planRecorder struct {
	mu    sync.Mutex
	plans [][]string // IDs of pods
}

func (p *planRecorder) solve(s cluster.Snapshot, m catalog.Market) packing.Plan {
	var ids []string
	for i := range s.Pods {
		ids = append(ids, s.Pods[i].ID())
	}
	p.mu.Lock()
	p.plans = append(p.plans, ids)
	p.mu.Unlock()
	return provisioner.Plan(s, m)
}

// planSlices plans slices until no costly pod needs one, without pauses in between. It returns the number of slices.
func (r *rig) planSlices(t *testing.T) int {
	t.Helper()
	p, n := r.Provisioner, 0
	for {
		p.Costly.Due = p.Now.Now()
		p.Slice(t.Context())
		if !p.Costly.Running {
			return n
		}
		<-p.Costly.Ended
		p.Collect(t.Context())
		n++
	}
}

// TestCostlyPodsDelayNoOthers: ordinary pods are planned at once, in one plan, and the costly pods of a tenant after
// them, in slices: plans for a few pods each. New ordinary pods do not wait for a slice. In the end, each pod has a
// node or a reason why it has none.
func TestCostlyPodsDelayNoOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, "m5.xlarge")
	r.reconcileClassAndPool(t)
	const costly, tooLarge = 40, 7 // the number of costly pods, and the one that fits on no node
	for i := range costly {
		cpu := "100m"
		if i == tooLarge {
			cpu = "100" // more than any instance type has
		}
		r.addCostlyPod(t, i, cpu)
	}
	r.addPendingPod(t, "a", "2", "1Gi")
	recorder := &planRecorder{}
	r.Provisioner.Solve = recorder.solve
	r.plan(t)
	if len(recorder.plans) != 1 || !slices.Equal(recorder.plans[0], []string{"ns/a"}) {
		t.Fatalf("plans are for %v, want one for the ordinary pod", recorder.plans)
	}
	if len(r.claims(t)) != 1 {
		t.Fatalf("%d NodeClaims for the ordinary pod, want 1", len(r.claims(t)))
	}

	// The plan of a slice waits for proceed. A new pod is planned meanwhile.
	started, proceed := make(chan struct{}), make(chan struct{})
	r.Provisioner.Solve = func(s cluster.Snapshot, m catalog.Market) packing.Plan {
		if s.Pods[0].Namespace == "tenant" {
			close(started)
			<-proceed
		}
		return recorder.solve(s, m)
	}
	r.Provisioner.Slice(t.Context())
	<-started
	r.addPendingPod(t, "b", "3", "1Gi")
	r.plan(t)
	if len(r.claims(t)) != 2 {
		t.Errorf("%d NodeClaims while a slice is planned, want 2", len(r.claims(t)))
	}
	close(proceed)
	<-r.Provisioner.Costly.Ended
	r.Provisioner.Collect(t.Context())

	r.Provisioner.Solve = recorder.solve
	n := r.planSlices(t)
	if n < 2 {
		t.Errorf("%d more slices, want at least 2", n)
	}
	for _, ids := range recorder.plans {
		if len(ids) > 1 && strings.HasPrefix(ids[0], "ns/") != strings.HasPrefix(ids[len(ids)-1], "ns/") {
			t.Errorf("one plan is for pods of both namespaces: %v", ids)
		}
		if ids[0] != "ns/a" && ids[0] != "ns/b" && len(ids) > 15 {
			t.Errorf("a slice has %d pods, want at most 15", len(ids))
		}
	}
	placed := map[string]int{}
	for _, c := range r.claims(t) {
		for id := range strings.SplitSeq(c.Annotations["joiner.sh/pods"], ",") {
			placed[id]++
		}
	}
	for id := range r.Provisioner.Costly.Seats { // placed on existing nodes or claims, not bound yet
		placed[id]++
	}
	for i := range costly {
		id := fmt.Sprintf("tenant/h-%03d", i)
		want := 1
		if i == tooLarge {
			want = 0
		}
		if placed[id] != want {
			t.Errorf("%s was placed %d times, want %d", id, placed[id], want)
		}
	}
	r.plan(t)
	if refused := r.Provisioner.Costly.Refusals(r.podsToPlan(t)); len(refused) != 1 || refused[0].Pod != "tenant/h-007" ||
		len(refused[0].Reasons) == 0 {
		t.Errorf("refused are %v, want only the pod that fits on no node", refused)
	}
}

func (r *rig) podsToPlan(t *testing.T) []cluster.Pod {
	t.Helper()
	s, err := r.Provisioner.Cluster.Snapshot(t.Context(), r.now(), r.Market.Market(r.now()))
	if err != nil {
		t.Fatal(err)
	}
	return s.Pods
}

// TestSlicesShareRoom: a slice does not use the room of pods that earlier slices have placed, on nodes or NodeClaims.
func TestSlicesShareRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t, "m5.xlarge")
	r.reconcileClassAndPool(t)
	for i := range 40 {
		r.addCostlyPod(t, i, "300m")
	}
	r.plan(t)
	r.planSlices(t)
	s, err := r.Provisioner.Cluster.Snapshot(t.Context(), r.now(), r.Market.Market(r.now()))
	if err != nil {
		t.Fatal(err)
	}
	seated := fairness.CountNominated(s.Nodes, s.Pods, r.Provisioner.Costly.Seats)
	n := 0
	for i := range seated {
		n += len(seated[i].Pods)
		if !seated[i].Requested.Fits(seated[i].Allocatable) {
			t.Errorf("node %s has %s allocatable, and pods that request %s are planned there", seated[i].Name,
				seated[i].Allocatable, seated[i].Requested)
		}
	}
	if n != 40 {
		t.Errorf("%d of 40 pods have a node, want all", n)
	}
	if len(seated) > 5 { // 12 pods fit on each
		t.Errorf("%d NodeClaims for 40 pods, want 4 or 5", len(seated))
	}
}

// TestBounded: a bounded plan, for loops that need only an approximate plan, refuses costly pods without planning them.
func TestBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, "m5.xlarge")
	r.reconcileClassAndPool(t)
	for i := range 40 {
		r.addCostlyPod(t, i, "100m")
	}
	r.addPendingPod(t, "a", "500m", "1Gi")
	recorder := &planRecorder{}
	s := cluster.Snapshot{Pods: r.podsToPlan(t)}
	plan := provisioner.BoundedSolver(recorder.solve)(s, r.Market.Market(r.now()))
	if len(recorder.plans) != 1 || !slices.Equal(recorder.plans[0], []string{"ns/a"}) {
		t.Errorf("plans are for %v, want one for the ordinary pod", recorder.plans)
	}
	refused := 0
	for _, f := range plan.Refusals {
		if f.Reasons[0].Code == packing.EffortSpent {
			refused++
		}
	}
	if refused != 40 {
		t.Errorf("%d pods are refused with EffortSpent, want 40", refused)
	}
}

// TestOmissionsAreLoggedOnce: the log reports once that preferences were left out of plans, not with each plan.
func TestOmissionsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, "m5.large")
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "a", "1", "1Gi")
	r.Provisioner.Solve = func(s cluster.Snapshot, m catalog.Market) packing.Plan {
		plan := provisioner.Plan(s, m)
		plan.PlannedNodes = nil // so that the pod stays pending
		plan.Omissions = []packing.Omission{{Pod: "ns/a", Preferences: 50}}
		return plan
	}
	r.plan(t)
	r.plan(t)
	if n := strings.Count(r.log.String(), "planned pods without some of their preferred affinity"); n != 1 {
		t.Errorf("the omission is logged %d times, want once:\n%s", n, r.log)
	}
}

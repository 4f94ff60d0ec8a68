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

// hostile creates a pod with 50 anti-affinity terms of its own.
func (r *rig) hostile(t *testing.T, i int, cpu string) {
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

// plans records which pods each plan was for.
type plans struct {
	mu  sync.Mutex
	all [][]string
}

func (p *plans) solve(s cluster.Snapshot, m catalog.Market) packing.Plan {
	var ids []string
	for i := range s.Pods {
		ids = append(ids, s.Pods[i].ID())
	}
	p.mu.Lock()
	p.all = append(p.all, ids)
	p.mu.Unlock()
	return provisioner.Plan(s, m)
}

// serve plans slice after slice until each costly pod was in one, and returns how many there were.
func (r *rig) serve(t *testing.T) int {
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

// TestCostlyPodsDelayNobody: ordinary pods are planned in one plan, at once; costly pods of a tenant after them, in slices. While a
// slice is planned, new pods are planned too. In the end each pod has a node or a reason.
func TestCostlyPodsDelayNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t, "m5.xlarge")
	r.classes(t)
	const hostile = 40
	for i := range hostile {
		cpu := "100m"
		if i == 7 {
			cpu = "100" // more than any instance type has
		}
		r.hostile(t, i, cpu)
	}
	r.pending(t, "a", "2", "1Gi")
	record := &plans{}
	r.Provisioner.Solve = record.solve
	r.plan(t)
	if len(record.all) != 1 || !slices.Equal(record.all[0], []string{"ns/a"}) {
		t.Fatalf("plans are for %v, want one for the ordinary pod", record.all)
	}
	if len(r.claims(t)) != 1 {
		t.Fatalf("%d NodeClaims for the ordinary pod", len(r.claims(t)))
	}

	// A slice is being planned, and does not end: a new pod does not wait for it.
	begun, goOn := make(chan struct{}), make(chan struct{})
	r.Provisioner.Solve = func(s cluster.Snapshot, m catalog.Market) packing.Plan {
		if s.Pods[0].Namespace == "tenant" {
			close(begun)
			<-goOn
		}
		return record.solve(s, m)
	}
	r.Provisioner.Slice(t.Context())
	<-begun
	r.pending(t, "b", "3", "1Gi")
	r.plan(t)
	if len(r.claims(t)) != 2 {
		t.Errorf("%d NodeClaims while a slice is planned, want one more for the new pod", len(r.claims(t)))
	}
	close(goOn)
	<-r.Provisioner.Costly.Ended
	r.Provisioner.Collect(t.Context())

	r.Provisioner.Solve = record.solve
	n := r.serve(t)
	if n < 2 {
		t.Errorf("%d more slices, want several", n)
	}
	for _, ids := range record.all {
		if len(ids) > 1 && strings.HasPrefix(ids[0], "ns/") != strings.HasPrefix(ids[len(ids)-1], "ns/") {
			t.Errorf("one plan is for pods of both namespaces: %v", ids)
		}
		if ids[0] != "ns/a" && ids[0] != "ns/b" && len(ids) > 15 {
			t.Errorf("a slice has %d pods", len(ids))
		}
	}
	placed := map[string]int{}
	for _, c := range r.claims(t) {
		for id := range strings.SplitSeq(c.Annotations["joiner.sh/pods"], ",") {
			placed[id]++
		}
	}
	for id := range r.Provisioner.Costly.Seats {
		placed[id]++
	}
	for i := range hostile {
		id := fmt.Sprintf("tenant/h-%03d", i)
		if want := map[bool]int{true: 0, false: 1}[i == 7]; placed[id] != want {
			t.Errorf("%s has %d places, want %d", id, placed[id], want)
		}
	}
	r.plan(t)
	if refused := r.Provisioner.Costly.Refusals(r.waiting(t)); len(refused) != 1 || refused[0].Pod != "tenant/h-007" ||
		len(refused[0].Reasons) == 0 {
		t.Errorf("refused are %v, want the pod that fits nowhere", refused)
	}
}

// waiting returns the pods that need a node.
func (r *rig) waiting(t *testing.T) []cluster.Pod {
	t.Helper()
	s, err := r.Provisioner.Cluster.Snapshot(t.Context(), r.now(), r.Market.Market(r.now()))
	if err != nil {
		t.Fatal(err)
	}
	return s.Pods
}

// TestSlicesDoNotTakeEachOthersRoom: the next slice counts the pods that the last slice placed on nodes and NodeClaims.
func TestSlicesDoNotTakeEachOthersRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t, "m5.xlarge")
	r.classes(t)
	for i := range 40 {
		r.hostile(t, i, "300m")
	}
	r.plan(t)
	r.serve(t)
	s, err := r.Provisioner.Cluster.Snapshot(t.Context(), r.now(), r.Market.Market(r.now()))
	if err != nil {
		t.Fatal(err)
	}
	seated := fairness.Seated(s.Nodes, s.Pods, r.Provisioner.Costly.Seats)
	n := 0
	for i := range seated {
		n += len(seated[i].Pods)
		if !seated[i].Requested.Fits(seated[i].Allocatable) {
			t.Errorf("node %s has room for %s, and %s is planned there", seated[i].Name, seated[i].Allocatable, seated[i].Requested)
		}
	}
	if n != 40 {
		t.Errorf("%d of 40 pods have room", n)
	}
	if len(seated) > 5 { // 12 fit on each
		t.Errorf("%d NodeClaims for 40 pods, want 4 or 5", len(seated))
	}
}

// TestBounded: loops that need only an approximate plan do not plan costly pods, and treat them as unplaced.
func TestBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, "m5.xlarge")
	r.classes(t)
	for i := range 40 {
		r.hostile(t, i, "100m")
	}
	r.pending(t, "a", "500m", "1Gi")
	record := &plans{}
	s := cluster.Snapshot{Pods: r.waiting(t)}
	plan := provisioner.Bounded(record.solve)(s, r.Market.Market(r.now()))
	if len(record.all) != 1 || !slices.Equal(record.all[0], []string{"ns/a"}) {
		t.Errorf("plans are for %v, want one for the ordinary pod", record.all)
	}
	spent := 0
	for _, f := range plan.Refusals {
		if f.Reasons[0].Code == packing.EffortSpent {
			spent++
		}
	}
	if spent != 40 {
		t.Errorf("%d pods are refused for their cost, want 40", spent)
	}
}

// TestOmissionsAreLoggedOnce: the log reports once that preferences were left out of plans, not with each plan.
func TestOmissionsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, "m5.large")
	r.classes(t)
	r.pending(t, "a", "1", "1Gi")
	r.Provisioner.Solve = func(s cluster.Snapshot, m catalog.Market) packing.Plan {
		plan := provisioner.Plan(s, m)
		plan.PlannedNodes = nil // so that the pod stays pending
		plan.Omissions = []packing.Omission{{Pod: "ns/a", Preferences: 50}}
		return plan
	}
	r.plan(t)
	r.plan(t)
	if n := strings.Count(r.log.String(), "planned pods without some of their preferred affinity"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, r.log)
	}
}

package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
	"github.com/joiner-sh/joiner/internal/kube/writer"
)

// evictionRecorder evicts pods for the rig, records their order, and simulates a PodDisruptionBudget and a webhook.
type evictionRecorder struct {
	nodeclaim.Evictor
	mu      sync.Mutex
	evicted []string        // names of pods, in the order in which they were evicted; with "!": pods deleted by force
	guarded map[string]bool // pods whose eviction a PodDisruptionBudget blocks
	denied  string          // the pod whose eviction a webhook denies
}

func (b *evictionRecorder) Evict(ctx context.Context, pod writer.PodRef) (writer.Eviction, error) {
	b.mu.Lock()
	isGuarded, isDenied := b.guarded[pod.Name], b.denied == pod.Name
	b.mu.Unlock()
	if isDenied {
		return writer.Eviction{}, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, pod.Name, errors.New("denied by a webhook"))
	}
	if isGuarded {
		return writer.Eviction{Result: writer.Blocked, Message: "the budget needs 1 healthy pod"}, nil
	}
	answer, err := b.Evictor.Evict(ctx, pod)
	b.record(pod.Name)
	return answer, err
}

func (b *evictionRecorder) DeletePod(ctx context.Context, pod writer.PodRef, grace int64) error {
	b.record("!" + pod.Name)
	return b.Evictor.DeletePod(ctx, pod, grace)
}

func (b *evictionRecorder) record(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.evicted = append(b.evicted, name)
}

func (b *evictionRecorder) order() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.evicted, " ")
}

// leavingNode creates a ready node with the pod "web" and the other pods, sets the grace period of its claim (nil:
// none), and deletes the claim. It returns its rig, the recorded evictions and the claim's name.
func leavingNode(t *testing.T, grace *karpv1.Duration, others ...*corev1.Pod) (*rig, *evictionRecorder, string) {
	t.Helper()
	r := newRig(t, "t3.medium")
	name := r.createServing(t, "web")[0].Name
	claim := r.claim(t, name)
	claim.Spec.TerminationGracePeriod = grace
	if err := r.api.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	for _, pod := range others {
		pod.Spec.NodeName, pod.Status.Phase = claim.Status.NodeName, corev1.PodRunning
		r.create(t, pod)
	}
	b := &evictionRecorder{Evictor: r.Claims.Evictor, guarded: map[string]bool{}}
	r.Claims.Evictor = b
	if err := r.api.Delete(t.Context(), r.claim(t, name)); err != nil {
		t.Fatal(err)
	}
	return r, b, name
}

// reconcileEachSecond lets the given number of seconds pass, and reconciles the claim every second.
func (r *rig) reconcileEachSecond(t *testing.T, name string, seconds int) {
	t.Helper()
	for range seconds {
		r.reconcileClaim(t, name)
		r.ahead += time.Second
	}
}

// resident returns a pod with an owner of the given kind and a priority class; each may be empty.
func resident(name, ownerKind, priorityClass string) *corev1.Pod {
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{PriorityClassName: priorityClass}}
	if ownerKind != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: ownerKind, Name: "owner", UID: "uid-owner",
			Controller: &yes}}
	}
	return pod
}

// TestDeniedEvictionHoldsUpNoOther: while a webhook denies the eviction of one pod, the evictions of other pods are
// tried as often as before, and an event reports the denial.
func TestDeniedEvictionHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	r, b, name := leavingNode(t, nil, resident("denied", "ReplicaSet", ""), resident("held", "ReplicaSet", ""))
	b.denied, b.guarded["held"] = "denied", true
	for range 6 {
		r.ahead += r.reconcileClaim(t, name)
	}
	if got := b.order(); got != "web" {
		t.Fatalf("evicted %s, want web\n%s", got, r.log)
	}
	b.mu.Lock()
	b.guarded["held"] = false
	b.mu.Unlock()
	wait := r.reconcileClaim(t, name)
	if got := b.order(); got != "web held" || wait > 5*time.Second {
		t.Errorf("evicted %s, reconciled again in %s; want web and held, and at most 5s\n%s", got, wait, r.log)
	}
	if r.events.find("Node/FailedDraining", "ns/denied cannot be evicted", "denied by a webhook") == "" {
		t.Errorf("no event reports the denied eviction: %v", r.events.emitted)
	}
}

// TestPodsAreEvictedInOrder: pods of applications are evicted first, then DaemonSet pods, then critical pods, then
// critical DaemonSet pods. Before the evictions, the node is tainted and excluded from load balancers.
func TestPodsAreEvictedInOrder(t *testing.T) {
	t.Parallel()
	r, b, name := leavingNode(t, nil,
		resident("agent", "DaemonSet", ""), resident("dns", "ReplicaSet", "system-cluster-critical"),
		resident("cni", "DaemonSet", "system-node-critical"),
		resident("static", "Node", "system-node-critical")) // a static pod: never evicted
	for range 4 {
		r.reconcileClaim(t, name)
	}
	node := r.nodes(t)[0]
	if node.Labels[karpv1.LabelExcludeFromLoadBalancers] != karpv1.ExcludedFromLoadBalancers ||
		!nodeclaim.HasTaint(&node, karpv1.TaintDisrupted) {
		t.Errorf("labels %v and taints %v do not take the node out of service", node.Labels, node.Spec.Taints)
	}
	r.reconcileEachSecond(t, name, 30)
	if got := b.order(); got != "web agent dns cni" {
		t.Errorf("pods were evicted in the order %q, want web agent dns cni\n%s", got, r.log)
	}
	if r.claim(t, name) != nil || len(r.instances()) != 0 {
		t.Errorf("the node was not removed\n%s", r.log)
	}
}

// TestPodDisruptionBudgetHoldsNode: without a grace period, the drain waits for a PodDisruptionBudget as long as
// necessary, and an event reports the wait.
func TestPodDisruptionBudgetHoldsNode(t *testing.T) {
	t.Parallel()
	r, b, name := leavingNode(t, nil)
	b.guarded["web"] = true
	r.reconcileEachSecond(t, name, 200)
	if b.order() != "" || len(r.instances()) != 1 {
		t.Fatalf("against the PodDisruptionBudget, %q were evicted or the instance was terminated\n%s", b.order(), r.log)
	}
	if r.events.find("Node/FailedDraining", "ns/web", "1 healthy pod") == "" {
		t.Error("no event reports what blocks the drain")
	}
	drained, _ := r.claim(t, name).StatusConditions().Find(karpv1.ConditionDrained)
	if drained.Status != metav1.ConditionUnknown || drained.Reason != karpv1.ReasonDraining {
		t.Errorf("the condition Drained of the claim is %+v, want Unknown with reason Draining", drained)
	}
	b.mu.Lock()
	b.guarded = nil
	b.mu.Unlock()
	r.reconcileEachSecond(t, name, 30)
	if b.order() != "web" || r.claim(t, name) != nil {
		t.Errorf("the node was not removed, or web was not evicted: %q\n%s", b.order(), r.log)
	}
}

// TestGracePeriodEndsAllProtection: PodDisruptionBudgets and annotations protect a pod only until the node's deadline,
// minus the pod's own grace period.
func TestGracePeriodEndsAllProtection(t *testing.T) {
	t.Parallel()
	kept := resident("kept", "ReplicaSet", "")
	kept.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "true"}
	odd := resident("odd", "ReplicaSet", "")
	odd.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "please"} // invalid: no protection
	brief := resident("brief", "ReplicaSet", "")
	brief.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "1m"} // from its start
	started := metav1.NewTime(time.Now())
	brief.Status.StartTime = &started
	r, b, name := leavingNode(t, &karpv1.Duration{Duration: 5 * time.Minute}, kept, odd, brief)
	b.guarded["web"] = true
	r.reconcileEachSecond(t, name, 3*60)
	if got := b.order(); got != "odd brief" {
		t.Fatalf("two minutes before the deadline %q were evicted, want odd brief\n%s", got, r.log)
	}
	if r.events.find("Pod/InvalidDoNotDisruptAnnotation", `"please"`) == "" || r.events.find("Node/FailedDraining", "ns/kept") == "" ||
		r.events.find("Pod/DoNotDisruptUntil") == "" || r.events.find("Pod/DoNotDisruptGracePeriodElapsed") == "" {
		t.Error("no event reports which pods are protected")
	}
	r.reconcileEachSecond(t, name, 2*60)
	if got := strings.Fields(b.order()); !slices.Contains(got, "!kept") || !slices.Contains(got, "!web") || r.claim(t, name) != nil {
		t.Errorf("evicted %v, want also !kept and !web, and then no claim\n%s", got, r.log)
	}
}

// TestVolumesAreDetachedFirst: the instance of a node stays until its volumes are detached, or its grace period is
// over.
func TestVolumesAreDetachedFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		grace          *karpv1.Duration
		detach         bool
		wantTerminated bool
	}{
		"attached":                       {nil, false, false},
		"detached":                       {nil, true, true},
		"attached, grace period is over": {&karpv1.Duration{Duration: 30 * time.Second}, false, true},
		"attached, grace period runs":    {&karpv1.Duration{Duration: time.Hour}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, name := leavingNode(t, c.grace)
			volume := "pv-1"
			attachment := &storagev1.VolumeAttachment{
				ObjectMeta: metav1.ObjectMeta{Name: "attached"},
				Spec: storagev1.VolumeAttachmentSpec{
					Attacher: "ebs.csi.aws.com", NodeName: r.nodes(t)[0].Name,
					Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
				},
			}
			r.create(t, attachment)
			r.reconcileEachSecond(t, name, 20)
			if len(r.instances()) != 1 {
				t.Fatalf("the instance was terminated with its volume attached\n%s", r.log)
			}
			if r.events.find("Node/AwaitingVolumeDetachment") == "" {
				t.Error("no event reports what the node waits for")
			}
			if c.detach {
				if err := r.api.Delete(t.Context(), attachment, client.GracePeriodSeconds(0)); err != nil {
					t.Fatal(err)
				}
			}
			r.reconcileEachSecond(t, name, 40)
			if terminated := len(r.instances()) == 0; terminated != c.wantTerminated {
				t.Errorf("the instance was terminated: %t, want %t\n%s", terminated, c.wantTerminated, r.log)
			}
		})
	}
}

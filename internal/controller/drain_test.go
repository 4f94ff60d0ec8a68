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

// bouncer evicts pods for the rig, records the order of evictions, and enforces PodDisruptionBudgets.
type bouncer struct {
	nodeclaim.Evictor
	mu     sync.Mutex
	left   []string
	guards map[string]bool // pods that a PodDisruptionBudget holds
	broken string          // the pod whose eviction a webhook refuses
}

func (b *bouncer) Evict(ctx context.Context, pod writer.PodRef) (writer.Eviction, error) {
	b.mu.Lock()
	held, isBroken := b.guards[pod.Name], b.broken == pod.Name
	b.mu.Unlock()
	if isBroken {
		return writer.Eviction{}, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, pod.Name, errors.New("denied by a webhook"))
	}
	if held {
		return writer.Eviction{Result: writer.Blocked, Message: "the budget needs 1 healthy pod"}, nil
	}
	answer, err := b.Evictor.Evict(ctx, pod)
	b.note(pod.Name)
	return answer, err
}

func (b *bouncer) DeletePod(ctx context.Context, pod writer.PodRef, grace int64) error {
	b.note("!" + pod.Name)
	return b.Evictor.DeletePod(ctx, pod, grace)
}

func (b *bouncer) note(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = append(b.left, name)
}

func (b *bouncer) order() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.left, " ")
}

// leavingNode creates a claim with a grace period (nil for none) and a ready node, with the pod "web" on it, and deletes the
// claim.
func leavingNode(t *testing.T, grace *karpv1.Duration, others ...*corev1.Pod) (*rig, *bouncer, string) {
	t.Helper()
	r := newRig(t, "t3.medium")
	name := r.servingNodes(t, "web")[0].Name
	claim := r.claim(t, name)
	claim.Spec.TerminationGracePeriod = grace
	if err := r.api.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	for _, pod := range others {
		pod.Spec.NodeName, pod.Status.Phase = claim.Status.NodeName, corev1.PodRunning
		r.create(t, pod)
	}
	b := &bouncer{Evictor: r.Claims.Evictor, guards: map[string]bool{}}
	r.Claims.Evictor = b
	if err := r.api.Delete(t.Context(), r.claim(t, name)); err != nil {
		t.Fatal(err)
	}
	return r, b, name
}

// visits lets the given number of seconds pass, and reconciles the claim every second.
func (r *rig) visits(t *testing.T, name string, seconds int) {
	t.Helper()
	for range seconds {
		r.visit(t, name)
		r.ahead += time.Second
	}
}

func resident(name, kind, class string) *corev1.Pod {
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{PriorityClassName: class}}
	if kind != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "owner", UID: "uid-owner", Controller: &yes}}
	}
	return pod
}

// TestPodThatCannotBeAskedHoldsUpNoOther: while a webhook refuses the eviction of one pod, the others are evicted as often
// as before, and an event reports the refusal.
func TestPodThatCannotBeAskedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	r, b, name := leavingNode(t, nil, resident("denied", "ReplicaSet", ""), resident("held", "ReplicaSet", ""))
	b.broken, b.guards["held"] = "denied", true
	for range 6 {
		r.ahead += r.visit(t, name)
	}
	if got := b.order(); got != "web" {
		t.Fatalf("evicted %s, want web\n%s", got, r.log)
	}
	b.mu.Lock()
	b.guards["held"] = false
	b.mu.Unlock()
	wait := r.visit(t, name)
	if got := b.order(); got != "web held" || wait > 5*time.Second {
		t.Errorf("evicted %s, reconciled again in %s\n%s", got, wait, r.log)
	}
	if r.events.has("Node/FailedDraining", "ns/denied cannot be evicted", "denied by a webhook") == "" {
		t.Errorf("it was not reported: %v", r.events.told)
	}
}

// TestPodsLeaveInOrder: applications go first, then their daemons, then critical pods, then critical daemons. The node has
// its taint and is out of load balancers before that.
func TestPodsLeaveInOrder(t *testing.T) {
	t.Parallel()
	r, b, name := leavingNode(t, nil,
		resident("agent", "DaemonSet", ""), resident("dns", "ReplicaSet", "system-cluster-critical"),
		resident("cni", "DaemonSet", "system-node-critical"), resident("static", "Node", "system-node-critical"))
	for range 4 {
		r.visit(t, name)
	}
	node := r.nodes(t)[0]
	if node.Labels[karpv1.LabelExcludeFromLoadBalancers] != karpv1.ExcludedFromLoadBalancers ||
		!nodeclaim.HasTaint(&node, karpv1.TaintDisrupted) {
		t.Errorf("the node is not out of service: %v %v", node.Labels, node.Spec.Taints)
	}
	r.visits(t, name, 30)
	if got := b.order(); got != "web agent dns cni" {
		t.Errorf("pods left in the order %q\n%s", got, r.log)
	}
	if r.claim(t, name) != nil || len(r.instances()) != 0 {
		t.Errorf("the node did not end\n%s", r.log)
	}
}

// TestBudgetHoldsNode: the drain waits for a PodDisruptionBudget without limit, and an event reports it.
func TestBudgetHoldsNode(t *testing.T) {
	t.Parallel()
	r, b, name := leavingNode(t, nil)
	b.guards["web"] = true
	r.visits(t, name, 200)
	if b.order() != "" || len(r.instances()) != 1 {
		t.Fatalf("the budget was broken: %q\n%s", b.order(), r.log)
	}
	if r.events.has("Node/FailedDraining", "ns/web", "1 healthy pod") == "" {
		t.Error("no event reports what blocks the drain")
	}
	drained, _ := r.claim(t, name).StatusConditions().Find(karpv1.ConditionDrained)
	if drained.Status != metav1.ConditionUnknown || drained.Reason != karpv1.ReasonDraining {
		t.Errorf("condition of the claim: %+v", drained)
	}
	b.mu.Lock()
	b.guards = nil
	b.mu.Unlock()
	r.visits(t, name, 30)
	if b.order() != "web" || r.claim(t, name) != nil {
		t.Errorf("the node did not end: %q\n%s", b.order(), r.log)
	}
}

// TestGracePeriodEndsAllProtection: budgets and annotations protect a pod until its own grace period just fits before the
// deadline.
func TestGracePeriodEndsAllProtection(t *testing.T) {
	t.Parallel()
	kept := resident("kept", "ReplicaSet", "")
	kept.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "true"}
	odd := resident("odd", "ReplicaSet", "")
	odd.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "please"}
	brief := resident("brief", "ReplicaSet", "")
	brief.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "1m"}
	started := metav1.NewTime(time.Now())
	brief.Status.StartTime = &started
	r, b, name := leavingNode(t, &karpv1.Duration{Duration: 5 * time.Minute}, kept, odd, brief)
	b.guards["web"] = true
	r.visits(t, name, 4*60)
	if got := b.order(); got != "odd brief" {
		t.Fatalf("%q left before the time\n%s", got, r.log)
	}
	if r.events.has("Pod/InvalidDoNotDisruptAnnotation", `"please"`) == "" || r.events.has("Node/FailedDraining", "ns/kept") == "" ||
		r.events.has("Pod/DoNotDisruptUntil") == "" || r.events.has("Pod/DoNotDisruptGracePeriodElapsed") == "" {
		t.Error("no event reports which pods are protected")
	}
	r.visits(t, name, 60)
	if got := strings.Fields(b.order()); !slices.Contains(got, "!kept") || !slices.Contains(got, "!web") || r.claim(t, name) != nil {
		t.Errorf("remaining: %v\n%s", got, r.log)
	}
}

// TestVolumesAreDetachedFirst: the instance of a node stays until its volumes are detached, or its grace period is over.
func TestVolumesAreDetachedFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		grace    *karpv1.Duration
		detach   bool
		wantEnds bool
	}{
		"attached":                {nil, false, false},
		"detached":                {nil, true, true},
		"attached, time is over":  {&karpv1.Duration{Duration: 30 * time.Second}, false, true},
		"attached, time is ahead": {&karpv1.Duration{Duration: time.Hour}, false, false},
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
			r.visits(t, name, 20)
			if len(r.instances()) != 1 {
				t.Fatalf("the instance ended with its volume attached\n%s", r.log)
			}
			if r.events.has("Node/AwaitingVolumeDetachment") == "" {
				t.Error("no event reports what the node waits for")
			}
			if c.detach {
				if err := r.api.Delete(t.Context(), attachment, client.GracePeriodSeconds(0)); err != nil {
					t.Fatal(err)
				}
			}
			r.visits(t, name, 40)
			if ended := len(r.instances()) == 0; ended != c.wantEnds {
				t.Errorf("the instance ended: %t\n%s", ended, r.log)
			}
		})
	}
}

package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/writer"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// joinNotReady creates the only claim's Node, which is not ready yet, and reconciles the claim.
func (r *rig) joinNotReady(t *testing.T) {
	t.Helper()
	node := r.nodeOf(t, r.claims(t)[0])
	node.Status.Conditions[0].Status = corev1.ConditionFalse
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	r.create(t, node)
	r.reconcileClaims(t)
}

// setReady sets the condition Ready of the only Node. It also removes the taint not-ready, unless keepTaint is true.
func (r *rig) setReady(t *testing.T, keepTaint bool) {
	t.Helper()
	node := r.nodes(t)[0]
	node.Status.Conditions[0].Status = corev1.ConditionTrue
	if err := r.api.Status().Update(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
	if keepTaint {
		return
	}
	node = r.nodes(t)[0]
	kept := node.Spec.Taints[:0]
	for _, taint := range node.Spec.Taints {
		if taint.Key != corev1.TaintNodeNotReady {
			kept = append(kept, taint)
		}
	}
	node.Spec.Taints = kept
	if err := r.api.Update(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) nominated(t *testing.T, pod string) string {
	t.Helper()
	var p corev1.Pod
	if err := r.api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: pod}, &p); err != nil {
		t.Fatal(err)
	}
	return p.Status.NominatedNodeName
}

// boundTo returns the name of the node that the pod is bound to; empty if it is pending.
func (r *rig) boundTo(t *testing.T, pod string) string {
	t.Helper()
	var p corev1.Pod
	if err := r.api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: pod}, &p); err != nil {
		t.Fatal(err)
	}
	return p.Spec.NodeName
}

// nominateOnly may nominate pods but not bind them.
type nominateOnly struct{ nodeclaim.Binder }

func (nominateOnly) Bind(_ context.Context, pod writer.PodRef, _ string) (bool, error) {
	return false, apierrors.NewForbidden(schema.GroupResource{Resource: "pods/binding"}, pod.Name, errors.New("no rule"))
}

// clearNominations clears the nominations of all pods, as kube-scheduler does if they do not fit on their nodes.
func (r *rig) clearNominations(t *testing.T) {
	t.Helper()
	for _, pod := range r.allPods(t) {
		pod.Status.NominatedNodeName = ""
		if err := r.api.Status().Update(t.Context(), &pod); err != nil {
			t.Fatal(err)
		}
	}
}

// addRules gives the pod anti-affinity and a spread over zones to pods with its labels.
func (r *rig) addRules(t *testing.T, pod string) {
	t.Helper()
	var p corev1.Pod
	if err := r.api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: pod}, &p); err != nil {
		t.Fatal(err)
	}
	p.Labels = map[string]string{"app": pod}
	selector := &metav1.LabelSelector{MatchLabels: p.Labels}
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: selector}}}}
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
		{TopologyKey: corev1.LabelTopologyZone, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector}}
	if err := r.api.Update(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
}

// nominationRig has one claim with a launched instance, for the pods web and db.
func nominationRig(t *testing.T, objects ...client.Object) *rig {
	t.Helper()
	r := newRig(t, "t3.medium")
	for _, o := range objects {
		r.create(t, o)
	}
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.addPendingPod(t, "db", "500m", "512Mi")
	r.addRules(t, "db")
	r.plan(t)
	r.reconcileClaims(t)
	if n := len(r.claims(t)); n != 1 {
		t.Fatalf("%d claims, want 1\n%s", n, r.log)
	}
	return r
}

// TestBindings: a Node that is not ready is closed for all pods except DaemonSet pods that tolerate everything. When it
// is ready and Kubernetes has removed the taint not-ready, the Node's pods are bound. Then it is opened.
func TestBindings(t *testing.T) {
	t.Parallel()
	testOpening(t, nominationRig(t), (*rig).boundTo)
}

// TestNominations: without the permission to bind pods, they are nominated.
func TestNominations(t *testing.T) {
	t.Parallel()
	r := nominationRig(t)
	r.Claims.Binder = nominateOnly{r.Claims.Binder}
	testOpening(t, r, (*rig).nominated)
}

// testOpening joins a Node that is not ready at first. placeOf returns the Node to which a pod is bound or nominated.
func testOpening(t *testing.T, r *rig, placeOf func(*rig, *testing.T, string) string) {
	t.Helper()
	r.joinNotReady(t)
	node := r.nodes(t)[0]
	if !nodeclaim.HasTaint(&node, conversion.TaintNominations) || nodeclaim.HasTaint(&node, karpv1.TaintUnregistered) {
		t.Fatalf("taints %v, want the one for nominations instead of the unregistered one", node.Spec.Taints)
	}
	if placeOf(r, t, "web") != "" {
		t.Error("a pod is bound or nominated before its node is ready")
	}
	r.setReady(t, true)
	r.reconcileClaims(t)
	if node = r.nodes(t)[0]; !nodeclaim.HasTaint(&node, conversion.TaintNominations) || placeOf(r, t, "web") != "" {
		t.Error("the Node is opened while it still has the taint not-ready")
	}
	r.setReady(t, false)
	r.reconcileClaims(t)
	node = r.nodes(t)[0]
	if nodeclaim.HasTaint(&node, conversion.TaintNominations) {
		t.Errorf("the ready Node is still closed: %v\n%s", node.Spec.Taints, r.log)
	}
	for _, pod := range []string{"web", "db"} {
		if got := placeOf(r, t, pod); got != node.Name {
			t.Errorf("pod %s is bound or nominated to %q, want %q", pod, got, node.Name)
		}
	}
	r.reconcileClaims(t)
	if claim := r.claims(t)[0]; !claim.StatusConditions().IsReady() {
		t.Errorf("the claim is not ready: %+v", claim.Status.Conditions)
	}
}

// blockedRig is nominationRig, and the spread of pod db over zones does not allow the Node's zone now: a pod with the same
// label runs in this zone, and none in another one.
func blockedRig(t *testing.T) *rig {
	t.Helper()
	r := nominationRig(t)
	zone := r.claims(t)[0].Labels[corev1.LabelTopologyZone]
	r.addForeignNode(t, "same", zone)
	r.addForeignNode(t, "other", "elsewhere")
	r.addBoundPod(t, "db-same", "same")
	return r
}

// addForeignNode creates a Node that Joiner did not launch.
func (r *rig) addForeignNode(t *testing.T, name, zone string) {
	t.Helper()
	r.create(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}}})
}

// addBoundPod creates a pod with the label of pod db.
func (r *rig) addBoundPod(t *testing.T, name, node string) {
	t.Helper()
	r.create(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": "db"}},
		Spec: corev1.PodSpec{NodeName: node}})
}

// launched returns the Node of the only claim.
func (r *rig) launched(t *testing.T) corev1.Node {
	t.Helper()
	for _, n := range r.nodes(t) {
		if n.Spec.ProviderID != "" {
			return n
		}
	}
	t.Fatal("there is no Node")
	return corev1.Node{}
}

// TestCordonForBlockedPods: when a Node is ready but one of its pods waits for another zone, a cordon replaces the taint
// within a second, so that DaemonSet pods can start. The Node opens when the pod is bound, after MaxCordon, or when
// a user uncordons it.
func TestCordonForBlockedPods(t *testing.T) {
	t.Parallel()
	cordoned := func(t *testing.T) *rig {
		t.Helper()
		r := blockedRig(t)
		node := r.nodeOf(t, r.claims(t)[0])
		r.create(t, node)
		for range 20 {
			r.reconcileClaims(t)
		}
		if n := r.launched(t); !conversion.IsCordonedForPods(&n) || r.boundTo(t, "web") != n.Name || r.boundTo(t, "db") != "" {
			t.Fatalf("unschedulable %t, taints %v, web on %q, db on %q; want a cordon, and only web on the Node\n%s", n.Spec.Unschedulable,
				n.Spec.Taints, r.boundTo(t, "web"), r.boundTo(t, "db"), r.log)
		}
		return r
	}
	wantOpen := func(t *testing.T, r *rig) {
		t.Helper()
		for range 5 {
			r.reconcileClaims(t)
			r.ahead += 100 * time.Millisecond
		}
		n := r.launched(t)
		if n.Spec.Unschedulable || nodeclaim.HasTaint(&n, conversion.TaintNominations) || !r.claims(t)[0].StatusConditions().IsReady() {
			t.Errorf("unschedulable %t, taints %v, want neither, and the claim ready\n%s", n.Spec.Unschedulable, n.Spec.Taints, r.log)
		}
	}
	t.Run("a pod in the other zone is bound", func(t *testing.T) {
		t.Parallel()
		r := cordoned(t)
		r.addBoundPod(t, "db-other", "other")
		wantOpen(t, r)
		if got := r.boundTo(t, "db"); got != r.launched(t).Name {
			t.Errorf("pod db is bound to %q, want the Node", got)
		}
	})
	t.Run("no pod comes to the other zone", func(t *testing.T) {
		t.Parallel()
		r := cordoned(t)
		r.ahead += lifecycle.MaxCordon
		wantOpen(t, r)
		if got := r.nominated(t, "db"); got != r.launched(t).Name {
			t.Errorf("pod db is nominated to %q, want the Node", got)
		}
	})
	t.Run("a user uncordons the Node", func(t *testing.T) {
		t.Parallel()
		r := cordoned(t)
		n := r.launched(t)
		n.Spec.Unschedulable = false
		if err := r.api.Update(t.Context(), &n); err != nil {
			t.Fatal(err)
		}
		wantOpen(t, r)
	})
	t.Run("the controller ends", func(t *testing.T) {
		t.Parallel()
		r := cordoned(t)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := r.Claims.OpenWhenStopped(ctx); err != nil {
			t.Fatal(err)
		}
		wantOpen(t, r)
	})
}

// TestNominationsDoNotWait: a second after a Node is ready, a cordon replaces the taint even if the Node still has the
// taint not-ready. The cordon ends after MaxCordon.
func TestNominationsDoNotWait(t *testing.T) {
	t.Parallel()
	r := nominationRig(t)
	r.joinNotReady(t)
	r.setReady(t, true)
	r.reconcileClaims(t)
	r.ahead += lifecycle.MaxNominationWait
	r.reconcileClaims(t)
	if node := r.nodes(t)[0]; !conversion.IsCordonedForPods(&node) {
		t.Errorf("the Node is not cordoned a second after it was ready: %v\n%s", node.Spec.Taints, r.log)
	}
	r.ahead += lifecycle.MaxCordon
	r.reconcileClaims(t)
	if node := r.nodes(t)[0]; nodeclaim.HasTaint(&node, conversion.TaintNominations) || node.Spec.Unschedulable {
		t.Errorf("the Node is still closed: unschedulable %t, taints %v\n%s", node.Spec.Unschedulable, node.Spec.Taints, r.log)
	}
}

func TestNotHeldForNominations(t *testing.T) {
	t.Parallel()
	tolerating := func(tolerations ...corev1.Toleration) client.Object {
		labels := map[string]string{"app": "network"}
		return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "network"}, Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Tolerations: tolerations,
					Containers: []corev1.Container{{Name: "c"}}}}}}
	}
	toleratesNotReady := corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists}
	for name, c := range map[string]struct {
		daemon client.Object
		isHeld bool
	}{
		"a DaemonSet that tolerates everything":          {tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}), true},
		"a DaemonSet that waits until a node is ready":   {tolerating(), true},
		"a DaemonSet that starts before a node is ready": {tolerating(toleratesNotReady), false},
		"the same, and it tolerates Joiner's taint": {tolerating(toleratesNotReady,
			corev1.Toleration{Key: conversion.TaintNominations, Operator: corev1.TolerationOpExists}), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := nominationRig(t, c.daemon)
			r.joinNotReady(t)
			if node := r.nodes(t)[0]; nodeclaim.HasTaint(&node, conversion.TaintNominations) != c.isHeld {
				t.Errorf("taints %v, want the one for nominations: %t", node.Spec.Taints, c.isHeld)
			}
		})
	}
	t.Run("a Node that is open when it registers", func(t *testing.T) {
		t.Parallel()
		r := nominationRig(t)
		node := r.nodeOf(t, r.claims(t)[0])
		node.Spec.Taints = nil
		r.create(t, node)
		r.reconcileClaims(t)
		if got := r.boundTo(t, "web") + r.nominated(t, "web"); got != "" {
			t.Errorf("the open Node was closed: pod web is bound or nominated to %s", got)
		}
	})
}

// TestBindingsOfReadyNode: the pods of a Node that is ready when it registers are bound, and the Node is opened.
func TestBindingsOfReadyNode(t *testing.T) {
	t.Parallel()
	r := nominationRig(t)
	node := r.nodeOf(t, r.claims(t)[0])
	node.Spec.Taints = []corev1.Taint{{Key: karpv1.TaintUnregistered, Effect: corev1.TaintEffectNoExecute}}
	r.create(t, node)
	r.reconcileClaims(t)
	if got := r.boundTo(t, "web"); got != node.Name {
		t.Errorf("pod web is bound to %q, want %q\n%s", got, node.Name, r.log)
	}
	if node := r.nodes(t)[0]; nodeclaim.HasTaint(&node, conversion.TaintNominations) {
		t.Errorf("the ready Node is still closed: %v\n%s", node.Spec.Taints, r.log)
	}
}

func TestOpenWhenStopped(t *testing.T) {
	t.Parallel()
	r := nominationRig(t)
	r.joinNotReady(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := r.Claims.OpenWhenStopped(ctx); err != nil {
		t.Fatal(err)
	}
	if node := r.nodes(t)[0]; nodeclaim.HasTaint(&node, conversion.TaintNominations) {
		t.Errorf("the Node is still closed: %v", node.Spec.Taints)
	}
	if log := r.log.String(); strings.Contains(log, "cannot open") {
		t.Error(log)
	}
}

// TestCrashWhileOpening ends the process after each of its writes in turn, from the registration of a Node to its
// initialization, and restarts it with an empty memory. In each case, the Node is open within 30 seconds, also if a pod
// of the Node is blocked.
func TestCrashWhileOpening(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rig    func(*testing.T) *rig
		writes int
	}{
		"bound":   {func(t *testing.T) *rig { t.Helper(); return nominationRig(t) }, 6},
		"blocked": {blockedRig, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crashAfterEachWrite(t, c.writes, func(t *testing.T, crashAfter int) int { t.Helper(); return openWithCrash(t, c.rig(t), crashAfter) })
		})
	}
}

// openWithCrash runs the loops from the registration of a Node to its initialization. The process ends after crashAfter
// writes, and the next one continues. It returns the number of writes of the first.
func openWithCrash(t *testing.T, r *rig, crashAfter int) int {
	t.Helper()
	r.fuse.set(crashAfter)
	node := r.nodeOf(t, r.claims(t)[0])
	node.Status.Conditions[0].Status = corev1.ConditionFalse
	r.create(t, node)
	r.reconcileClaims(t)
	joined := r.launched(t)
	joined.Status.Conditions[0].Status = corev1.ConditionTrue
	if err := r.api.Status().Update(t.Context(), &joined); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if !r.isDead() {
			r.reconcileClaims(t)
		}
	}
	if !r.isDead() {
		r.ahead += lifecycle.MaxCordon
		r.reconcileClaims(t)
	}
	writes := r.fuse.writes()
	if r.isDead() {
		r.restart(t)
		for range 10 {
			r.reconcileClaims(t)
			r.ahead += 3 * time.Second
		}
	}
	n := r.launched(t)
	if nodeclaim.HasTaint(&n, conversion.TaintNominations) || n.Spec.Unschedulable || !r.claims(t)[0].StatusConditions().IsReady() {
		t.Errorf("the Node is closed or not ready: unschedulable %t, taints %v, conditions %+v\n%s", n.Spec.Unschedulable, n.Spec.Taints,
			r.claims(t)[0].Status.Conditions, r.log)
	}
	return writes
}

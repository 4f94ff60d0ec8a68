package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
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

// TestNominations: a Node that is not ready is closed for all pods except DaemonSet pods that tolerate everything. When
// it is ready and Kubernetes has removed the taint not-ready, the Node's pods are nominated. Then it is opened.
func TestNominations(t *testing.T) {
	t.Parallel()
	r := nominationRig(t)
	r.joinNotReady(t)
	node := r.nodes(t)[0]
	if !nodeclaim.HasTaint(&node, conversion.TaintNominations) || nodeclaim.HasTaint(&node, karpv1.TaintUnregistered) {
		t.Fatalf("taints %v, want the one for nominations instead of the unregistered one", node.Spec.Taints)
	}
	if r.nominated(t, "web") != "" {
		t.Error("a pod is nominated before its node is ready: kube-scheduler would clear the nomination")
	}
	r.setReady(t, true)
	r.reconcileClaims(t)
	if node = r.nodes(t)[0]; !nodeclaim.HasTaint(&node, conversion.TaintNominations) || r.nominated(t, "web") != "" {
		t.Error("the Node is opened while it still has the taint not-ready")
	}
	r.setReady(t, false)
	r.reconcileClaims(t)
	node = r.nodes(t)[0]
	if nodeclaim.HasTaint(&node, conversion.TaintNominations) {
		t.Errorf("the ready Node is still closed: %v\n%s", node.Spec.Taints, r.log)
	}
	for _, pod := range []string{"web", "db"} {
		if got := r.nominated(t, pod); got != node.Name {
			t.Errorf("pod %s is nominated to %q, want %q", pod, got, node.Name)
		}
	}
	r.reconcileClaims(t)
	if claim := r.claims(t)[0]; !claim.StatusConditions().IsReady() {
		t.Errorf("the claim is not ready: %+v", claim.Status.Conditions)
	}
}

// TestNominationsDoNotWait: a ready Node is opened after a second, even if it still has the taint not-ready.
func TestNominationsDoNotWait(t *testing.T) {
	t.Parallel()
	r := nominationRig(t)
	r.joinNotReady(t)
	r.setReady(t, true)
	r.reconcileClaims(t)
	r.ahead += time.Second
	r.reconcileClaims(t)
	if node := r.nodes(t)[0]; nodeclaim.HasTaint(&node, conversion.TaintNominations) {
		t.Errorf("the Node is closed a second after it was ready: %v\n%s", node.Spec.Taints, r.log)
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
		if got := r.nominated(t, "web"); got != "" {
			t.Errorf("the open Node was closed: pod web is nominated to %s", got)
		}
	})
}

// TestNominationsOfReadyNode: the pods of a Node that is ready when it registers are nominated, and the Node is opened.
func TestNominationsOfReadyNode(t *testing.T) {
	t.Parallel()
	r := nominationRig(t)
	node := r.nodeOf(t, r.claims(t)[0])
	node.Spec.Taints = []corev1.Taint{{Key: karpv1.TaintUnregistered, Effect: corev1.TaintEffectNoExecute}}
	r.create(t, node)
	r.reconcileClaims(t)
	if got := r.nominated(t, "web"); got != node.Name {
		t.Errorf("pod web is nominated to %q, want %q\n%s", got, node.Name, r.log)
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
// initialization, and restarts it with an empty memory. In each case, the Node is open within 30 seconds.
func TestCrashWhileOpening(t *testing.T) {
	t.Parallel()
	crashAfterEachWrite(t, 6, openWithCrash)
}

// openWithCrash runs the loops from the registration of a Node to its initialization. The process ends after crashAfter
// writes, and the next one continues. It returns the number of writes of the first.
func openWithCrash(t *testing.T, crashAfter int) int {
	t.Helper()
	r := nominationRig(t)
	r.fuse.set(crashAfter)
	r.joinNotReady(t)
	r.setReady(t, false)
	r.reconcileClaims(t)
	writes := r.fuse.writes()
	if r.isDead() {
		r.restart(t)
		for range 10 {
			r.reconcileClaims(t)
			r.ahead += 3 * time.Second
		}
	}
	if node := r.nodes(t)[0]; nodeclaim.HasTaint(&node, conversion.TaintNominations) || !r.claims(t)[0].StatusConditions().IsReady() {
		t.Errorf("the Node is closed or not ready: taints %v, conditions %+v\n%s", node.Spec.Taints, r.claims(t)[0].Status.Conditions, r.log)
	}
	return writes
}

package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodepool"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/provisioner"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

func TestPoolProblem(t *testing.T) {
	t.Parallel()
	minValues := 2
	for name, c := range map[string]struct {
		change func(*karpv1.NodeClaimTemplate)
		want   string // empty: no problem
	}{
		"unchanged": {change: func(*karpv1.NodeClaimTemplate) {}},
		"reserved label": {func(n *karpv1.NodeClaimTemplate) { n.Labels = map[string]string{"karpenter.sh/nodepool": "x"} },
			"karpenter.sh/nodepool is set for you"},
		"reserved domain": {func(n *karpv1.NodeClaimTemplate) { n.Labels = map[string]string{"x.karpenter.sh/y": "x"} },
			"reserved for the controller"},
		"AWS domain": {func(n *karpv1.NodeClaimTemplate) { n.Labels = map[string]string{"karpenter.k8s.aws/y": "x"} },
			"reserved for the controller"},
		"usable AWS label": {func(n *karpv1.NodeClaimTemplate) {
			n.Labels = map[string]string{"karpenter.k8s.aws/instance-family": "m5"}
		}, ""},
		"bad label value": {func(n *karpv1.NodeClaimTemplate) { n.Labels = map[string]string{"a": "b c"} },
			"spec.template.metadata.labels: value"},
		"requirement of the hostname": {func(n *karpv1.NodeClaimTemplate) {
			n.Spec.Requirements = karpv1.Requirements{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpExists}}
		}, "cannot be known"},
		"startup taint that is also a taint": {func(n *karpv1.NodeClaimTemplate) {
			n.Spec.StartupTaints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
		}, "startupTaints: team:NoSchedule is listed twice"},
		"unknown taint effect": {func(n *karpv1.NodeClaimTemplate) { n.Spec.Taints = []corev1.Taint{{Key: "a", Effect: "Never"}} },
			`effect "Never"`},
		"In without values": {func(n *karpv1.NodeClaimTemplate) {
			n.Spec.Requirements = karpv1.Requirements{{Key: "a", Operator: corev1.NodeSelectorOpIn}}
		}, "requirements[0]: operator In needs"},
		"minValues above the number of values": {func(n *karpv1.NodeClaimTemplate) {
			n.Spec.Requirements = karpv1.Requirements{{Key: "a", Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}, MinValues: &minValues}}
		}, "minValues is 2"},
		"Gt with a word": {func(n *karpv1.NodeClaimTemplate) {
			n.Spec.Requirements = karpv1.Requirements{{Key: "a", Operator: corev1.NodeSelectorOpGt, Values: []string{"b"}}}
		}, "whole number"},
		"unknown operator": {func(n *karpv1.NodeClaimTemplate) {
			n.Spec.Requirements = karpv1.Requirements{{Key: "a", Operator: "Like"}}
		}, `operator "Like"`},
		"unknown capacity type": {func(n *karpv1.NodeClaimTemplate) {
			n.Spec.Requirements = karpv1.Requirements{{Key: karpv1.LabelCapacityType, Operator: corev1.NodeSelectorOpIn, Values: []string{"free"}}}
		}, "capacity type"},
	} {
		pool := testPool()
		c.change(&pool.Spec.Template)
		got := nodepool.PoolProblem(pool)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: the problem is %q, want %q in it", name, got, c.want)
		}
	}
}

// TestExplain: Explain names only the first reason, and omits a hint that repeats the reason.
func TestExplain(t *testing.T) {
	t.Parallel()
	broken := "its EC2NodeClass is not ready: not authorized to call ec2:DescribeImages, because no identity-based policy allows it"
	for want, r := range map[string]packing.Refusal{
		"No place for the pod (TypeMismatch): no offering has the value of kubernetes.io/arch that the pod asks for. Add arm64 to the NodePool": {
			Hint: "add arm64 to the NodePool", Reasons: []packing.Reason{
				{Code: packing.TypeMismatch, Count: 812, Detail: "kubernetes.io/arch"}, {Code: packing.NoPool, Count: 1},
			}},
		"No place for the pod (PoolUnusable): NodePool a cannot be used: " + broken: {
			Hint: "fix NodePool a, whose labels and taints suit the pod: " + broken, Reasons: []packing.Reason{
				{Code: packing.PoolUnusable, Detail: "a: " + broken}, {Code: packing.TaintUntolerated, Count: 90, Detail: "gpu:NoSchedule"},
				{Code: packing.LabelConflict, Count: 70, Detail: "team"},
			}},
		"No place for the pod (Unplannable): it is too odd": {Reasons: []packing.Reason{{Code: packing.Unplannable, Detail: "it is too odd"}}},
		"No place for the pod":                              {},
	} {
		if got := provisioner.Explain(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestRefusalSummary(t *testing.T) {
	t.Parallel()
	refusal := func(code packing.Code, detail string) packing.Refusal {
		return packing.Refusal{Reasons: []packing.Reason{{Code: code, Detail: detail}}}
	}
	got := provisioner.RefusalSummary([]packing.Refusal{refusal(packing.NoPool, ""), refusal(packing.TooSmall, "cpu"),
		refusal(packing.TooSmall, "cpu"), {}})
	if want := "TooSmall cpu: 2 pods; NoPool: 1 pod; no reason: 1 pod"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNewest: Of returns the last version that this process wrote until the cache has that version or a
// later one.
func TestNewest(t *testing.T) {
	t.Parallel()
	claim := func(id, version string) *karpv1.NodeClaim {
		return &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: loop.UID(id), ResourceVersion: version}}
	}
	var n loop.NewestVersions
	n.Note(claim("1", "10"))
	for _, step := range []struct{ uid, cached, want string }{
		{"1", "9", "10"}, {"1", "9", "10"}, {"1", "10", "10"},
		{"1", "9", "9"}, // version 10 in the cache has dropped the record
	} {
		if got := n.Of(claim(step.uid, step.cached)); got.ResourceVersion != step.want {
			t.Errorf("with version %s in the cache, %s is used, want %s", step.cached, got.ResourceVersion, step.want)
		}
	}
	n.Note(claim("1", "10"))
	if got := n.Of(claim("2", "3")); got.ResourceVersion != "3" {
		t.Errorf("a claim with the same name and another UID counts as the old one: version %s", got.ResourceVersion)
	}
	n.Note(claim("1", "x"))
	if got := n.Of(claim("1", "y")); got.ResourceVersion != "y" {
		t.Errorf("of versions that are no numbers, %s is used, want the cached one", got.ResourceVersion)
	}
}

// TestRecorderManyNamespaces: a queue with one event of each namespace keeps MaxQueuedEvents events and drops the
// others.
func TestRecorderManyNamespaces(t *testing.T) {
	t.Parallel()
	recorder := loop.NewRateLimitedRecorder(&events{})
	for i := range 2 * loop.MaxQueuedEvents {
		recorder.EmitLater(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint(i)}}, "Nominated", "x")
	}
	n := 0
	for _, ok := recorder.Next(); ok; _, ok = recorder.Next() {
		n++
	}
	if n != loop.MaxQueuedEvents {
		t.Errorf("%d events were emitted, want %d", n, loop.MaxQueuedEvents)
	}
}

func TestNeedsPlan(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(time.Now())
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}}
		change(p)
		return p
	}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"unschedulable":     {func(*corev1.Pod) {}, true},
		"bound":             {func(p *corev1.Pod) { p.Spec.NodeName = "n" }, false},
		"deleted":           {func(p *corev1.Pod) { p.DeletionTimestamp = &now }, false},
		"nominated":         {func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" }, true}, // the nominated node may be gone
		"gated":             {func(p *corev1.Pod) { p.Status.Conditions[0].Reason = corev1.PodReasonSchedulingGated }, false},
		"not scheduled yet": {func(p *corev1.Pod) { p.Status.Conditions = nil }, false},
		"finished":          {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
	} {
		if got := nodestate.NeedsPlan(pod(c.change)); got != c.want {
			t.Errorf("%s: NeedsPlan returns %t, want the opposite", name, got)
		}
	}
}

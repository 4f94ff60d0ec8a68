package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
)

func withDoNotDisrupt(value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: value}
	}
}

// budgetOf returns a PodDisruptionBudget of namespace a that selects the pods of the app, or all pods if app is "".
// allowed is the number of disruptions that its status allows now.
func budgetOf(name, app string, allowed int32, changes ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	selector := &metav1.LabelSelector{}
	if app != "" {
		selector.MatchLabels = map[string]string{"app": app}
	}
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector, MaxUnavailable: ptr.To(intstr.FromInt32(1))},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
	for _, change := range changes {
		change(b)
	}
	return b
}

func TestHolds(t *testing.T) {
	t.Parallel()
	notReady := func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
	alwaysAllow := func(b *policyv1.PodDisruptionBudget) {
		b.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
	}
	toleratesAll := func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }
	daemon := func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }
	finished := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	terminating := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: kubetest.BlockingTime} }
	const noRoom = "pod a/x has no room in PodDisruptionBudget a/b (0 allowed; owner Deployment a/web)"
	for name, c := range map[string]struct {
		pods    []*corev1.Pod
		budgets []*policyv1.PodDisruptionBudget
		want    string
	}{
		"a pod that nothing protects": {pods: []*corev1.Pod{kubetest.BoundPod("x", "web")}},
		"a budget with room": {pods: []*corev1.Pod{kubetest.BoundPod("x", "web")},
			budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 1)}},
		"a budget without room": {pods: []*corev1.Pod{kubetest.BoundPod("x", "web")},
			budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 0)}, want: noRoom},
		"a budget of other pods": {pods: []*corev1.Pod{kubetest.BoundPod("x", "web")},
			budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "api", 0)}},
		"a budget of all pods": {pods: []*corev1.Pod{kubetest.BoundPod("x", "web")},
			budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "", 0)}, want: noRoom},
		"a DaemonSet pod": {pods: []*corev1.Pod{kubetest.BoundPod("x", "web", daemon)},
			budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 0)},
			want:    "pod a/x has no room in PodDisruptionBudget a/b (0 allowed; owner DaemonSet a/web-5d4f)"},
		"a pod that tolerates every taint": {pods: []*corev1.Pod{kubetest.BoundPod("x", "web", toleratesAll)},
			budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 0)}},
		"a finished pod": {pods: []*corev1.Pod{kubetest.BoundPod("x", "web", finished)},
			budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 0)}},
		"a terminating pod": {pods: []*corev1.Pod{kubetest.BoundPod("x", "web", terminating, withDoNotDisrupt("true"))},
			budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 0)}},
		"not ready, eviction refused": {pods: []*corev1.Pod{kubetest.BoundPod("x", "web", notReady)},
			budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 0)}, want: noRoom},
		"not ready, eviction allowed": {pods: []*corev1.Pod{kubetest.BoundPod("x", "web", notReady)},
			budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 0, alwaysAllow)}},
		"ready, with AlwaysAllow": {pods: []*corev1.Pod{kubetest.BoundPod("x", "web")},
			budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 0, alwaysAllow)}, want: noRoom},
		"two budgets": {
			pods:    []*corev1.Pod{kubetest.BoundPod("x", "web")},
			budgets: []*policyv1.PodDisruptionBudget{budgetOf("c", "", 5), budgetOf("b", "web", 5)},
			want:    "pod a/x is selected by 2 PodDisruptionBudgets, a/b and a/c (the eviction API then refuses; owner Deployment a/web)",
		},
		"the annotation": {pods: []*corev1.Pod{kubetest.BoundPod("x", "web", withDoNotDisrupt("true"))},
			want: "pod a/x has the annotation karpenter.sh/do-not-disrupt (owner Deployment a/web)"},
		"the annotation on a pod that tolerates every taint": {
			pods: []*corev1.Pod{kubetest.BoundPod("x", "web", withDoNotDisrupt("true"), toleratesAll)},
			want: "pod a/x has the annotation karpenter.sh/do-not-disrupt (owner Deployment a/web)",
		},
		"a duration": {
			pods: []*corev1.Pod{kubetest.BoundPod("x", "web", withDoNotDisrupt("90m"))},
			want: "pod a/x has the annotation karpenter.sh/do-not-disrupt until 2026-03-01T12:30:00Z (owner Deployment a/web)",
		},
		"an expired duration": {pods: []*corev1.Pod{kubetest.BoundPod("x", "web", withDoNotDisrupt("1h"))}},
		"an invalid duration": {pods: []*corev1.Pod{kubetest.BoundPod("x", "web", withDoNotDisrupt("please"))}},
		"a block without an end is reported first": {
			pods: []*corev1.Pod{kubetest.BoundPod("a", "api", withDoNotDisrupt("2h")), kubetest.BoundPod("x", "web"),
				kubetest.BoundPod("y", "web")}, budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 0)}, want: noRoom,
		},
		"without owner": {
			pods:    []*corev1.Pod{kubetest.BoundPod("x", "web", func(p *corev1.Pod) { p.OwnerReferences = nil })},
			budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 0)}, want: "pod a/x has no room in PodDisruptionBudget a/b (0 allowed)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 2 { // in both orders
				got, ok := Objects{Pods: c.pods, Budgets: c.budgets}.BlockingPods(kubetest.BlockingTime)["n"]
				if ok != (c.want != "") || ok && got.String() != c.want {
					t.Errorf("blocked by %q, want %q (empty: not blocked)", got, c.want)
				}
				slices.Reverse(c.pods)
				slices.Reverse(c.budgets)
			}
		})
	}
}

func TestEvictionCosts(t *testing.T) {
	t.Parallel()
	deletion := func(text string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: text} }
	}
	priority := func(n int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &n } }
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   float64 // 1 + deletion cost/134217728 + priority/(1<<25), at least 0 and at most 10
	}{
		"ordinary":                 {func(*corev1.Pod) {}, 1},
		"a deletion cost":          {deletion("134217728"), 2},
		"a negative deletion cost": {deletion("-67108864"), 0.5},
		"the lowest deletion cost": {deletion("-2147483648"), 0},
		"an invalid deletion cost": {deletion("NaN"), 1},
		"a priority":               {priority(1 << 25), 2},
		"a negative priority":      {priority(-1 << 26), 0},
		"the highest priority":     {priority(2_000_001_000), 10},
		"a DaemonSet's pod":        {func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }, 0},
		"a finished pod":           {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, 0},
	} {
		if got := EvictionCost(kubetest.BoundPod("x", "web", c.change)); got != c.want {
			t.Errorf("%s costs %v, want %v", name, got, c.want)
		}
	}
}

func TestWorkloads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"of a Deployment":  {func(*corev1.Pod) {}, "Deployment a/web"},
		"of a ReplicaSet":  {func(p *corev1.Pod) { delete(p.Labels, "pod-template-hash") }, "ReplicaSet a/web-5d4f"},
		"of a StatefulSet": {func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "StatefulSet" }, "StatefulSet a/web-5d4f"},
		"without owner":    {func(p *corev1.Pod) { p.OwnerReferences = nil }, ""},
	} {
		if got := Workload(kubetest.BoundPod("x", "web", c.change)); got != c.want {
			t.Errorf("%s is %q, want %q", name, got, c.want)
		}
	}
}

func TestBlockers(t *testing.T) {
	t.Parallel()
	minAvailable := func(text string) func(*policyv1.PodDisruptionBudget) {
		return func(b *policyv1.PodDisruptionBudget) {
			b.Spec.MaxUnavailable, b.Spec.MinAvailable = nil, ptr.To(intstr.Parse(text))
		}
	}
	maxUnavailable := func(text string) func(*policyv1.PodDisruptionBudget) {
		return func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = ptr.To(intstr.Parse(text)) }
	}
	claim := &karpv1.NodeClaim{}
	claim.Status.NodeName = "n"
	twoPods := []*corev1.Pod{kubetest.BoundPod("x", "web"), kubetest.BoundPod("y", "web")}
	for name, c := range map[string]struct {
		pods    []*corev1.Pod
		budgets []*policyv1.PodDisruptionBudget
		want    []string // kind, budgets: why (workloads; pods)
	}{
		"a budget with room": {pods: twoPods, budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 1)}},
		"maxUnavailable 0": {pods: twoPods, budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 0, maxUnavailable("0"))},
			want: []string{"NeverAllows a/b: maxUnavailable 0 never allows a disruption (Deployment a/web; a/x a/y)"}},
		"maxUnavailable 0%": {pods: twoPods, budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 0, maxUnavailable("0%"))},
			want: []string{"NeverAllows a/b: maxUnavailable 0% never allows a disruption (Deployment a/web; a/x a/y)"}},
		"maxUnavailable 1%": {pods: twoPods, budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 1, maxUnavailable("1%"))}},
		"minAvailable 100%": {pods: twoPods, budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 0, minAvailable("100%"))},
			want: []string{"NeverAllows a/b: minAvailable 100% never allows a disruption (Deployment a/web; a/x a/y)"}},
		"minAvailable 2 of 2": {pods: twoPods, budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 0, minAvailable("2"))},
			want: []string{"NeedsAll a/b: minAvailable 2 requires all of its pods (2) (Deployment a/web; a/x a/y)"}},
		"minAvailable 1 of 2": {pods: twoPods, budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 1, minAvailable("1"))}},
		"minAvailable 50% of 1": {pods: twoPods[:1],
			budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 0, minAvailable("50%"))},
			want:    []string{"NeedsAll a/b: minAvailable 50% requires all of its pods (1) (Deployment a/web; a/x)"}},
		"minAvailable 2, and the status expects 3 pods": {
			pods: twoPods, budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 1, minAvailable("2"),
				func(b *policyv1.PodDisruptionBudget) { b.Status.ExpectedPods = 3 })},
		},
		"neither field is set": {
			pods: twoPods, budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 0,
				func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = nil })},
			want: []string{"NeverAllows a/b: a PodDisruptionBudget with neither minAvailable nor maxUnavailable never allows a disruption (Deployment a/web; a/x a/y)"},
		},
		"a budget of all pods": {
			pods: append(twoPods, kubetest.BoundPod("z", "api")), budgets: []*policyv1.PodDisruptionBudget{budgetOf("all", "", 0, maxUnavailable("0"))},
			want: []string{"NeverAllows a/all: maxUnavailable 0 never allows a disruption; a/all selects every pod of its namespace (Deployment a/api Deployment a/web; a/x a/y a/z)"},
		},
		"two budgets of one pod": {
			pods: twoPods, budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 1), budgetOf("all", "", 1)},
			want: []string{"SeveralGuard a/all a/b: the eviction API refuses to evict pods that more than one PodDisruptionBudget selects; a/all selects every pod of its namespace (Deployment a/web; a/x a/y)"},
		},
		"a pod is not ready, another has the annotation": {
			pods: []*corev1.Pod{kubetest.BoundPod("x", "web"), kubetest.BoundPod("y", "api", withDoNotDisrupt("1h30m"))},
			budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 0, func(b *policyv1.PodDisruptionBudget) {
				b.Status.CurrentHealthy, b.Status.DesiredHealthy, b.Status.ExpectedPods = 2, 2, 3
			})},
			want: []string{
				"AskedFor : pods have the annotation karpenter.sh/do-not-disrupt (Deployment a/api; a/y)",
				"NoRoomNow a/b: maxUnavailable 1: 2 of 3 pods are healthy, and it requires 2 (Deployment a/web; a/x)",
			},
		},
		"on a node that Joiner did not launch": {
			pods:    []*corev1.Pod{kubetest.BoundPod("x", "web", func(p *corev1.Pod) { p.Spec.NodeName = "theirs" })},
			budgets: []*policyv1.PodDisruptionBudget{budgetOf("b", "web", 0, maxUnavailable("0"))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, b := range (Objects{Pods: c.pods, Budgets: c.budgets, Claims: []*karpv1.NodeClaim{claim}}).Blockers(kubetest.BlockingTime) {
				got = append(got, fmt.Sprintf("%s %s: %s (%s; %s)", b.Kind, strings.Join(b.Budgets, " "), b.Why,
					strings.Join(b.Workloads, " "), strings.Join(b.Pods, " ")))
				if !slices.Equal(b.Nodes, []string{"n"}) || b.IsDeadlock() != (b.Fix != "") {
					t.Errorf("%+v: want the node n, and a fix only for a deadlock", b)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	counts := Deadlocks([]Blocker{{Kind: RequiresAllPods}, {Kind: TooFewHealthy}, {Kind: RequiresAllPods}})
	if !maps.Equal(counts, map[BlockerKind]int{RequiresAllPods: 2, NeverAllows: 0, MultipleBudgets: 0}) {
		t.Errorf("the deadlocks by kind are %v, want 2 RequiresAllPods and 0 of the two other kinds", counts)
	}
}

// TestWorkloadOfInvalidOwner: an owner reference may have any text as kind and name. It must reach events, conditions
// and command output only shortened and without control characters.
func TestWorkloadOfInvalidOwner(t *testing.T) {
	t.Parallel()
	const hostile = "x\n  fix    kubectl delete nodeclaim --all\x1b[2J\u202e"
	for _, ref := range []metav1.OwnerReference{{Kind: hostile, Name: "a"}, {Kind: "Job", Name: hostile},
		{Kind: "ReplicaSet", Name: hostile + "-5d4f"}, {Kind: strings.Repeat("x", 100_000), Name: "a"}} {
		pod := kubetest.BoundPod("web-1", "web", withDoNotDisrupt("true"), func(p *corev1.Pod) {
			ref.Controller = ptr.To(true)
			p.OwnerReferences = []metav1.OwnerReference{ref}
		})
		text := Objects{Pods: []*corev1.Pod{pod}}.BlockingPods(kubetest.BlockingTime)["n"].String()
		if len(text) > 500 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%.80q: the text is not one short printable line: %.300q", ref.Kind+ref.Name, text)
		}
	}
}

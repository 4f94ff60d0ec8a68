package snapshot

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Hold says why a pod blocks voluntary disruption of its node.
type Hold struct {
	Pod      string // "namespace/name"
	Workload string // as Workload returns it; empty for a pod without owner
	// Budgets are the PodDisruptionBudgets that block the eviction: one that allows no disruption now, or several,
	// which the eviction API refuses. "namespace/name", sorted; none if the pod's annotation blocks.
	Budgets []string
	// Uncompared means that a PodDisruptionBudget may block the eviction: the namespace has more budgets than are
	// compared with a pod.
	Uncompared bool
	// Until is when the protection by the annotation ends; zero if it has no end, or if a budget blocks.
	Until time.Time
}

// String describes the hold, for example: "pod a/b has no room in PodDisruptionBudget a/c (0 allowed; owner Deployment
// a/d)".
func (h Hold) String() string {
	owner := ""
	if h.Workload != "" {
		owner = "owner " + h.Workload
	}
	switch {
	case h.Uncompared:
		return fmt.Sprintf("pod %s may be selected by a PodDisruptionBudget: its namespace has more of them than Joiner compares with a pod (%s)", h.Pod, joined("use fewer", owner))
	case len(h.Budgets) == 1:
		return fmt.Sprintf("pod %s has no room in PodDisruptionBudget %s (%s)", h.Pod, h.Budgets[0], joined("0 allowed", owner))
	case len(h.Budgets) > 1:
		number := strconv.Itoa(len(h.Budgets))
		if len(h.Budgets) == maxSelecting {
			number += " or more"
		}
		return fmt.Sprintf("pod %s is selected by %s PodDisruptionBudgets, %s (%s)", h.Pod, number, strings.Join(h.Budgets, " and "),
			joined("the eviction API then refuses", owner))
	}
	text := "pod " + h.Pod + " has the annotation " + karpv1.AnnotationDoNotDisrupt
	if !h.Until.IsZero() {
		text += " until " + h.Until.UTC().Format(time.RFC3339)
	}
	if owner != "" {
		text += " (" + owner + ")"
	}
	return text
}

// joined joins the texts with a semicolon; owner may be empty.
func joined(what, owner string) string {
	if owner == "" {
		return what
	}
	return what + "; " + owner
}

// Holds returns by Node name the pod that blocks its voluntary disruption at now. If several pods block, it is one that
// blocks without end, else the one that blocks longest, then the first by name.
func (o Objects) Holds(now time.Time) map[string]Hold {
	guards := activeBudgets(o.Budgets)
	out := map[string]Hold{}
	for _, pod := range o.Pods {
		if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || conversion.IsFinished(pod) {
			continue
		}
		h, ok := guards.hold(pod, now)
		if !ok {
			continue
		}
		if before, ok := out[pod.Spec.NodeName]; !ok || h.isBefore(before) {
			out[pod.Spec.NodeName] = h
		}
	}
	return out
}

// isBefore reports whether h takes precedence over o.
func (h Hold) isBefore(o Hold) bool {
	switch {
	case h.Until.Equal(o.Until):
		return h.Pod < o.Pod
	case h.Until.IsZero() || o.Until.IsZero():
		return h.Until.IsZero()
	}
	return h.Until.After(o.Until)
}

// hold returns why the pod must not be evicted at now; false if it may be evicted.
func (g budgetIndex) hold(pod *corev1.Pod, now time.Time) (Hold, bool) {
	out := Hold{Pod: pod.Namespace + "/" + pod.Name, Workload: Workload(pod)}
	if conversion.IsProtected(pod, now) {
		out.Until = protectedUntil(pod)
		return out, true
	}
	if g[pod.Namespace] == nil || !isEvicted(pod) {
		return out, false
	}
	matching, isCut := g.of(pod)
	switch {
	case isCut && len(matching) < 2:
		out.Uncompared = true
		return out, true
	case len(matching) == 0:
		return out, false
	case len(matching) == 1 && !matching[0].refuses(pod):
		return out, false
	}
	for _, one := range matching {
		out.Budgets = append(out.Budgets, one.name)
	}
	return out, true
}

// refuses reports whether the budget currently blocks the eviction of the pod.
func (g indexedBudget) refuses(pod *corev1.Pod) bool {
	if g.object.Status.DisruptionsAllowed > 0 {
		return false
	}
	policy := g.object.Spec.UnhealthyPodEvictionPolicy
	return policy == nil || *policy != policyv1.AlwaysAllow || isPodReady(pod)
}

// isPodReady reports whether the condition Ready of the pod is true.
func isPodReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// isEvicted reports whether the pod is evicted when its node is drained. Pods that tolerate the disruption taint are
// not.
func isEvicted(pod *corev1.Pod) bool {
	taint := karpv1.DisruptedTaint()
	disrupted := requirements.Taint{Key: taint.Key, Effect: requirements.Effect(taint.Effect)}
	return !conversion.IsStatic(pod) && !requirements.Tolerated(disrupted, conversion.Tolerations(pod.Spec.Tolerations))
}

// protectedUntil returns when the duration of the pod's annotation ends. It is zero if the annotation has no duration
// or the pod has not started.
func protectedUntil(pod *corev1.Pod) time.Time {
	span, err := time.ParseDuration(pod.Annotations[karpv1.AnnotationDoNotDisrupt])
	if err != nil || pod.Status.StartTime == nil {
		return time.Time{}
	}
	return pod.Status.StartTime.Add(span)
}

// Workload returns the workload of a pod, for example "Deployment a/web" for a pod of one of its ReplicaSets; empty for
// a pod without owner. A pod and its successor have the same workload.
func Workload(pod *corev1.Pod) string {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return ""
	}
	if name, ok := strings.CutSuffix(ref.Name, "-"+pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]); ok &&
		ref.Kind == "ReplicaSet" && name != "" {
		return "Deployment " + pod.Namespace + "/" + named(name)
	}
	return named(ref.Kind) + " " + pod.Namespace + "/" + named(ref.Name)
}

// ownerForm matches a valid kind or name of an object.
var ownerForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,252}$`)

// named returns the kind or the name of an owner, quoted and cut if it is invalid: the API server accepts any text in
// an owner reference.
func named(text string) string {
	if ownerForm.MatchString(text) {
		return text
	}
	return fmt.Sprintf("%.60q", text)
}

// EvictionCost is the cost of moving the pod, from 0 to 10; an ordinary pod costs 1. As in Karpenter, the pod's
// deletion cost (controller.kubernetes.io/pod-deletion-cost) and priority raise or lower it. A pod that needs no other
// node costs 0.
func EvictionCost(pod *corev1.Pod) float64 {
	if !conversion.NeedsPlace(pod) {
		return 0
	}
	cost := 1.0
	if text, ok := pod.Annotations[corev1.PodDeletionCost]; ok {
		if deletion, err := strconv.ParseInt(text, 10, 32); err == nil {
			cost += float64(deletion) / (1 << 27)
		}
	}
	if pod.Spec.Priority != nil {
		cost += float64(*pod.Spec.Priority) / (1 << 25)
	}
	return min(max(cost, 0), 10)
}

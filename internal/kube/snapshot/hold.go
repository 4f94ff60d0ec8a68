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

// BlockingPod says why a pod blocks voluntary disruption of its node.
type BlockingPod struct {
	Pod      string // "namespace/name"
	Workload string // as Workload returns it; empty for a pod without owner
	// Budgets are the PodDisruptionBudgets that block the eviction, as "namespace/name", sorted. One budget blocks if
	// it allows no disruption now. Several budgets block because the eviction API refuses to evict a pod that more than
	// one selects. Budgets is empty if the pod's annotation blocks the eviction.
	Budgets []string
	// TooManyBudgets means that a PodDisruptionBudget may block the eviction. The pod's namespace has more of them than
	// Joiner compares with a pod.
	TooManyBudgets bool
	// Until is when the protection by the annotation ends; zero if the protection has no end, or if a budget blocks.
	Until time.Time
}

// String describes the pod, for example: "pod a/b has no room in PodDisruptionBudget a/c (0 allowed; owner Deployment
// a/d)".
func (h BlockingPod) String() string {
	owner := ""
	if h.Workload != "" {
		owner = "owner " + h.Workload
	}
	switch {
	case h.TooManyBudgets:
		return fmt.Sprintf("pod %s may be selected by a PodDisruptionBudget: its namespace has more PodDisruptionBudgets than Joiner compares with a pod (%s)", h.Pod, joined("use fewer", owner))
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

// joined returns "remark; owner", or the remark without an owner.
func joined(remark, owner string) string {
	if owner == "" {
		return remark
	}
	return remark + "; " + owner
}

// BlockingPods returns, by Node name, a pod that blocks voluntary disruption of the Node at the time now. Of several
// such pods, it returns one without a known end (Until is zero), else the one with the latest end, and among equals the
// first by name.
func (o Objects) BlockingPods(now time.Time) map[string]BlockingPod {
	budgets := activeBudgets(o.Budgets)
	out := map[string]BlockingPod{}
	for _, pod := range o.Pods {
		if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || conversion.IsFinished(pod) {
			continue
		}
		h, ok := budgets.hold(pod, now)
		if !ok {
			continue
		}
		if before, ok := out[pod.Spec.NodeName]; !ok || h.isBefore(before) {
			out[pod.Spec.NodeName] = h
		}
	}
	return out
}

// isBefore reports whether BlockingPods prefers h to other.
func (h BlockingPod) isBefore(other BlockingPod) bool {
	switch {
	case h.Until.Equal(other.Until):
		return h.Pod < other.Pod
	case h.Until.IsZero() || other.Until.IsZero():
		return h.Until.IsZero()
	}
	return h.Until.After(other.Until)
}

// hold returns why the pod blocks at the time now; false if it may be evicted, or stays on the node during a drain.
func (g budgetIndex) hold(pod *corev1.Pod, now time.Time) (BlockingPod, bool) {
	out := BlockingPod{Pod: pod.Namespace + "/" + pod.Name, Workload: Workload(pod)}
	if conversion.IsProtected(pod, now) {
		out.Until = protectedUntil(pod)
		return out, true
	}
	if g[pod.Namespace] == nil || !isEvicted(pod) {
		return out, false
	}
	matching, isPartial := g.selecting(pod)
	switch {
	case isPartial && len(matching) < 2:
		out.TooManyBudgets = true
		return out, true
	case len(matching) == 0:
		return out, false
	case len(matching) == 1 && !matching[0].blocks(pod):
		return out, false
	}
	for _, budget := range matching {
		out.Budgets = append(out.Budgets, budget.name)
	}
	return out, true
}

func (g indexedBudget) blocks(pod *corev1.Pod) bool {
	if g.object.Status.DisruptionsAllowed > 0 {
		return false
	}
	policy := g.object.Spec.UnhealthyPodEvictionPolicy
	return policy == nil || *policy != policyv1.AlwaysAllow || isPodReady(pod)
}

func isPodReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// isEvicted reports whether a drain evicts the pod: not if it is static or tolerates the disruption taint.
func isEvicted(pod *corev1.Pod) bool {
	taint := karpv1.DisruptedTaint()
	disrupted := requirements.Taint{Key: taint.Key, Effect: requirements.Effect(taint.Effect)}
	return !conversion.IsStatic(pod) && !requirements.Tolerated(disrupted, conversion.Tolerations(pod.Spec.Tolerations))
}

// protectedUntil returns when the duration in the pod's annotation ends; zero without a duration or start.
func protectedUntil(pod *corev1.Pod) time.Time {
	span, err := time.ParseDuration(pod.Annotations[karpv1.AnnotationDoNotDisrupt])
	if err != nil || pod.Status.StartTime == nil {
		return time.Time{}
	}
	return pod.Status.StartTime.Add(span)
}

// Workload returns the workload of a pod, for example "Deployment a/web" for a pod of one of its ReplicaSets; empty for
// a pod without owner. A pod and the pod that its controller creates in its place have the same workload.
func Workload(pod *corev1.Pod) string {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return ""
	}
	if name, ok := strings.CutSuffix(ref.Name, "-"+pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]); ok &&
		ref.Kind == "ReplicaSet" && name != "" {
		return "Deployment " + pod.Namespace + "/" + ownerText(name)
	}
	return ownerText(ref.Kind) + " " + pod.Namespace + "/" + ownerText(ref.Name)
}

// ownerForm matches a valid kind or name of an object.
var ownerForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,252}$`)

// ownerText returns the kind or the name of an owner for messages. An invalid text is quoted and shortened: the API
// server accepts any text in an owner reference.
func ownerText(text string) string {
	if ownerForm.MatchString(text) {
		return text
	}
	return fmt.Sprintf("%.60q", text)
}

// EvictionCost returns the cost of moving the pod, from 0 to 10. An ordinary pod costs 1. As in Karpenter, the pod's
// deletion cost (controller.kubernetes.io/pod-deletion-cost) and its priority raise or lower the cost. A pod that needs
// no other node costs 0.
func EvictionCost(pod *corev1.Pod) float64 {
	if !conversion.NeedsPlace(pod) {
		return 0
	}
	cost := 1.0
	if text, ok := pod.Annotations[corev1.PodDeletionCost]; ok {
		if deletion, err := strconv.ParseInt(text, 10, 32); err == nil {
			cost += float64(deletion) / (1 << 27) // Karpenter's divisor; adds from -16 to 16
		}
	}
	if pod.Spec.Priority != nil {
		cost += float64(*pod.Spec.Priority) / (1 << 25) // Karpenter's divisor; adds 30 for the highest priority of users
	}
	return min(max(cost, 0), 10)
}

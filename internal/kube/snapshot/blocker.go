package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// BlockerKind is the kind of a Blocker, one of the constants below.
type BlockerKind string

// The kinds of blockers. A deadlock ends only when a user changes something.
const (
	NeverAllows     BlockerKind = "NeverAllows"  // a deadlock: the budget's setting allows no disruption, for any number of pods
	RequiresAllPods BlockerKind = "NeedsAll"     // a deadlock: the budget requires as many healthy pods as exist
	MultipleBudgets BlockerKind = "SeveralGuard" // a deadlock: more than one budget selects the pods, or may select them
	TooFewHealthy   BlockerKind = "NoRoomNow"    // too few of the budget's pods are healthy now
	DoNotDisrupt    BlockerKind = "AskedFor"     // pods have the do-not-disrupt annotation
)

// Blocker is a cause that keeps Joiner from draining some of its nodes.
type Blocker struct {
	Kind    BlockerKind // kind of the blocker
	Budgets []string    // "namespace/name", sorted; none for DoNotDisrupt, or if it is unknown which budgets block
	// Why says why the pods cannot be evicted, in one sentence without a full stop. Fix says what the user must change;
	// empty if it is enough to wait.
	Why, Fix  string
	Workloads []string // the workloads of the pods, sorted: "Deployment a/web"
	Pods      []string // "namespace/name", sorted
	Nodes     []string // names of the Nodes, sorted
}

// IsDeadlock reports whether the nodes stay blocked until a user changes something.
func (b Blocker) IsDeadlock() bool { return b.Kind != TooFewHealthy && b.Kind != DoNotDisrupt }

// Blockers returns what blocks voluntary disruption of Joiner's nodes at the time now. Deadlocks come first. Among
// deadlocks, and among the others, a blocker of more nodes comes first.
func (o Objects) Blockers(now time.Time) []Blocker {
	hasClaim := map[string]bool{}
	for _, claim := range o.Claims {
		hasClaim[claim.Status.NodeName] = claim.Status.NodeName != "" // "" is also the node name of pending pods
	}
	found := blockers{budgets: activeBudgets(o.Budgets), matched: map[string]int{}, byKey: map[string]*Blocker{}}
	for _, pod := range o.Pods {
		if pod.DeletionTimestamp == nil && !conversion.IsFinished(pod) {
			matching, _ := found.budgets.selecting(pod)
			for _, budget := range matching {
				found.matched[budget.name]++
			}
		}
	}
	for _, pod := range o.Pods {
		if hasClaim[pod.Spec.NodeName] && pod.DeletionTimestamp == nil && !conversion.IsFinished(pod) {
			found.addPod(pod, now)
		}
	}
	var out []Blocker
	for _, b := range found.byKey {
		b.Workloads, b.Pods, b.Nodes = sortedUnique(b.Workloads), sortedUnique(b.Pods), sortedUnique(b.Nodes)
		out = append(out, *b)
	}
	slices.SortFunc(out, func(a, b Blocker) int {
		if a.IsDeadlock() != b.IsDeadlock() {
			return map[bool]int{true: -1, false: 1}[a.IsDeadlock()]
		}
		return cmp.Or(cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(a.Kind, b.Kind),
			slices.Compare(a.Budgets, b.Budgets), slices.Compare(a.Pods, b.Pods))
	})
	return out
}

// sortedUnique returns the list sorted and without duplicates. It changes the list.
func sortedUnique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

type blockers struct {
	budgets budgetIndex         // the PodDisruptionBudgets
	matched map[string]int      // number of pods that each budget selects, by "namespace/name" of the budget
	byKey   map[string]*Blocker // the blockers found so far, by kind and by the parameter key of add
}

func (f *blockers) addPod(pod *corev1.Pod, now time.Time) {
	if conversion.IsProtected(pod, now) {
		f.add("", pod, Blocker{Kind: DoNotDisrupt, Why: "pods have the annotation " + karpv1.AnnotationDoNotDisrupt})
	}
	if !isEvicted(pod) {
		return
	}
	matching, isPartial := f.budgets.selecting(pod)
	if isPartial && len(matching) < 2 {
		f.add(pod.Namespace, pod, Blocker{
			Kind: MultipleBudgets,
			Why:  "namespace " + pod.Namespace + " has more PodDisruptionBudgets, or more requirements in them, than Joiner compares with a pod, and several may select the pod",
			Fix:  "use fewer PodDisruptionBudgets with fewer requirements",
		})
		return
	}
	var names []string
	for _, budget := range matching {
		names = append(names, budget.name)
	}
	if len(matching) > 1 {
		f.add(strings.Join(names, ","), pod, Blocker{
			Kind: MultipleBudgets, Budgets: names,
			Why: "the eviction API refuses to evict pods that more than one PodDisruptionBudget selects" + f.selectAllNote(matching),
			Fix: "change the selectors so that only one of them selects each pod",
		})
		return
	}
	for _, budget := range matching {
		if b, ok := f.classify(budget); ok {
			f.add(budget.name, pod, b)
		}
	}
}

// selectAllNote returns the end of a sentence that names those budgets of the list that select all pods of their
// namespace; empty if there are none.
func (f *blockers) selectAllNote(list []indexedBudget) string {
	var out []string
	for _, budget := range list {
		if budget.selector.Empty() {
			out = append(out, budget.name)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "; " + strings.Join(out, " and ") + " selects every pod of its namespace"
}

// classify returns how the budget blocks the eviction of a pod that no other budget selects; false if it does not.
func (f *blockers) classify(budget indexedBudget) (Blocker, bool) {
	out := Blocker{Budgets: []string{budget.name}}
	pods := f.matched[budget.name]
	if s := budget.object.Status; s.ObservedGeneration == budget.object.Generation && s.ExpectedPods > 0 {
		pods = int(s.ExpectedPods) // may include replicas that do not exist yet
	}
	setting := settingOf(budget.object)
	switch {
	case neverAllows(budget.object), budget.object.Spec.MinAvailable == nil && budget.object.Spec.MaxUnavailable == nil:
		out.Kind, out.Why = NeverAllows, setting+" never allows a disruption"
		out.Fix = "set maxUnavailable to 1 or more"
	case budget.object.Spec.MinAvailable != nil && minHealthy(budget.object, pods) >= pods:
		out.Kind = RequiresAllPods
		out.Why = fmt.Sprintf("%s requires all of its pods (%d)", setting, pods)
		out.Fix = "run more pods than it requires, or set maxUnavailable: 1, which scales with the number of pods"
	case budget.object.Status.DisruptionsAllowed == 0:
		out.Kind = TooFewHealthy
		out.Why = fmt.Sprintf("%s: %d of %d pods are healthy, and it requires %d", setting, budget.object.Status.CurrentHealthy, pods,
			budget.object.Status.DesiredHealthy)
		return out, true
	default:
		return out, false
	}
	out.Why += f.selectAllNote([]indexedBudget{budget})
	return out, true
}

// minHealthy returns how many of this number of pods must be healthy according to the budget's minAvailable. A
// percentage is rounded up.
func minHealthy(b *policyv1.PodDisruptionBudget, pods int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(b.Spec.MinAvailable, pods, true)
	if err != nil {
		return 0 // the API server rejects such a value
	}
	return n
}

// settingOf returns the field of the budget that limits disruptions, with its value, for a message: "maxUnavailable 0".
func settingOf(b *policyv1.PodDisruptionBudget) string {
	switch {
	case b.Spec.MaxUnavailable != nil:
		return "maxUnavailable " + b.Spec.MaxUnavailable.String()
	case b.Spec.MinAvailable != nil:
		return "minAvailable " + b.Spec.MinAvailable.String()
	}
	return "a PodDisruptionBudget with neither minAvailable nor maxUnavailable"
}

// add adds the pod to the blocker with the kind of b and the key. If there is no such blocker yet, it adds b first. The
// key separates the blockers of one kind.
func (f *blockers) add(key string, pod *corev1.Pod, b Blocker) {
	key = string(b.Kind) + " " + key
	if f.byKey[key] == nil {
		f.byKey[key] = &b
	}
	blocker := f.byKey[key]
	if owner := Workload(pod); owner != "" {
		blocker.Workloads = append(blocker.Workloads, owner)
	}
	blocker.Pods = append(blocker.Pods, pod.Namespace+"/"+pod.Name)
	blocker.Nodes = append(blocker.Nodes, pod.Spec.NodeName)
}

// Deadlocks counts the deadlocks by kind. A kind without deadlocks has the count 0.
func Deadlocks(list []Blocker) map[BlockerKind]int {
	out := map[BlockerKind]int{NeverAllows: 0, RequiresAllPods: 0, MultipleBudgets: 0}
	for _, b := range list {
		if b.IsDeadlock() {
			out[b.Kind]++
		}
	}
	return out
}

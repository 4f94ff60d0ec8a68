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
	NeverAllows  BlockerKind = "NeverAllows"  // a deadlock: the budget's setting allows no disruption, whatever the number of pods
	NeedsAll     BlockerKind = "NeedsAll"     // a deadlock: the budget requires as many pods as there are
	SeveralGuard BlockerKind = "SeveralGuard" // a deadlock: pods are selected by more than one budget
	NoRoomNow    BlockerKind = "NoRoomNow"    // too few of the budget's pods are healthy now
	AskedFor     BlockerKind = "AskedFor"     // pods have the do-not-disrupt annotation
)

// Blocker is a cause that keeps nodes of Joiner from being drained.
type Blocker struct {
	Kind    BlockerKind // kind of the blocker
	Budgets []string    // "namespace/name", sorted; none for AskedFor
	// Why is a sentence without its full stop. Fix is the fix; empty if waiting is enough.
	Why, Fix  string
	Workloads []string // the workloads of the pods, sorted: "Deployment a/web"
	Pods      []string // "namespace/name", sorted
	Nodes     []string // names of the Nodes, sorted
}

// IsDeadlock reports whether the blocker ends only when a user changes something.
func (b Blocker) IsDeadlock() bool { return b.Kind != NoRoomNow && b.Kind != AskedFor }

// Blockers returns what blocks voluntary disruption of nodes at now: deadlocks first, then the blockers of most nodes.
func (o Objects) Blockers(now time.Time) []Blocker {
	ours := map[string]bool{}
	for _, claim := range o.Claims {
		ours[claim.Status.NodeName] = claim.Status.NodeName != ""
	}
	found := blockers{guards: activeBudgets(o.Budgets), matched: map[string]int{}, by: map[string]*Blocker{}}
	for _, pod := range o.Pods {
		if pod.DeletionTimestamp == nil && !conversion.IsFinished(pod) {
			matching, _ := found.guards.of(pod)
			for _, g := range matching {
				found.matched[g.name]++
			}
		}
	}
	for _, pod := range o.Pods {
		if ours[pod.Spec.NodeName] && pod.DeletionTimestamp == nil && !conversion.IsFinished(pod) {
			found.addPod(pod, now)
		}
	}
	var out []Blocker
	for _, b := range found.by {
		b.Workloads, b.Pods, b.Nodes = tidy(b.Workloads), tidy(b.Pods), tidy(b.Nodes)
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

// tidy returns the list sorted and without duplicates. It changes the list.
func tidy(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// blockers collects the result of Objects.Blockers.
type blockers struct {
	guards  budgetIndex         // the PodDisruptionBudgets
	matched map[string]int      // number of pods that each budget selects, by "namespace/name" of the budget
	by      map[string]*Blocker // by kind and budgets
}

// addPod adds the blockers of the pod to the report.
func (f *blockers) addPod(pod *corev1.Pod, now time.Time) {
	if conversion.IsProtected(pod, now) {
		f.add("", pod, Blocker{Kind: AskedFor, Why: "pods have the annotation " + karpv1.AnnotationDoNotDisrupt})
	}
	if !isEvicted(pod) {
		return
	}
	matching, isCut := f.guards.of(pod)
	if isCut && len(matching) < 2 {
		f.add(pod.Namespace, pod, Blocker{
			Kind: SeveralGuard,
			Why:  "namespace " + pod.Namespace + " has more PodDisruptionBudgets, or more requirements in them, than Joiner compares with a pod, and several may select the pod",
			Fix:  "use fewer PodDisruptionBudgets with fewer requirements",
		})
		return
	}
	var names []string
	for _, g := range matching {
		names = append(names, g.name)
	}
	if len(matching) > 1 {
		f.add(strings.Join(names, ","), pod, Blocker{
			Kind: SeveralGuard, Budgets: names,
			Why: "the eviction API refuses to evict pods that more than one PodDisruptionBudget selects" + f.selectsAll(matching),
			Fix: "change the selectors so that only one of them selects each pod",
		})
		return
	}
	for _, g := range matching {
		if b, ok := f.classify(g); ok {
			f.add(g.name, pod, b)
		}
	}
}

// selectsAll names the budgets that select all pods of their namespace.
func (f *blockers) selectsAll(list []indexedBudget) string {
	var out []string
	for _, g := range list {
		if g.selector.Empty() {
			out = append(out, g.name)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "; " + strings.Join(out, " and ") + " selects every pod of its namespace"
}

// classify returns the blocker of a budget that is the only one of its pods; false if the budget blocks nothing.
func (f *blockers) classify(g indexedBudget) (Blocker, bool) {
	out := Blocker{Budgets: []string{g.name}}
	pods := f.matched[g.name]
	if s := g.object.Status; s.ObservedGeneration == g.object.Generation && s.ExpectedPods > 0 {
		pods = int(s.ExpectedPods)
	}
	words := settingOf(g.object)
	switch {
	case isNever(g.object), g.object.Spec.MinAvailable == nil && g.object.Spec.MaxUnavailable == nil:
		out.Kind, out.Why = NeverAllows, words+" never allows a disruption"
		out.Fix = "set maxUnavailable to 1 or more"
	case g.object.Spec.MinAvailable != nil && leastOf(g.object, pods) >= pods:
		out.Kind = NeedsAll
		out.Why = fmt.Sprintf("%s requires all of its pods (%d)", words, pods)
		out.Fix = "run more pods than it requires, or set maxUnavailable: 1, which scales with the number of pods"
	case g.object.Status.DisruptionsAllowed == 0:
		out.Kind = NoRoomNow
		out.Why = fmt.Sprintf("%s: %d of %d pods are healthy, and it requires %d", words, g.object.Status.CurrentHealthy, pods,
			g.object.Status.DesiredHealthy)
		return out, true
	default:
		return out, false
	}
	out.Why += f.selectsAll([]indexedBudget{g})
	return out, true
}

// leastOf returns how many of the pods must be healthy by the budget's minAvailable; a percentage is rounded up.
func leastOf(b *policyv1.PodDisruptionBudget, pods int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(b.Spec.MinAvailable, pods, true)
	if err != nil {
		return 0 // the API server rejects such a value
	}
	return n
}

// settingOf returns the budget's setting for a message: "maxUnavailable 0".
func settingOf(b *policyv1.PodDisruptionBudget) string {
	switch {
	case b.Spec.MaxUnavailable != nil:
		return "maxUnavailable " + b.Spec.MaxUnavailable.String()
	case b.Spec.MinAvailable != nil:
		return "minAvailable " + b.Spec.MinAvailable.String()
	}
	return "a PodDisruptionBudget with neither minAvailable nor maxUnavailable"
}

// add adds a pod to the blocker with the kind of b and the key. If there is none yet, it adds b.
func (f *blockers) add(key string, pod *corev1.Pod, b Blocker) {
	key = string(b.Kind) + " " + key
	if f.by[key] == nil {
		f.by[key] = &b
	}
	at := f.by[key]
	if owner := Workload(pod); owner != "" {
		at.Workloads = append(at.Workloads, owner)
	}
	at.Pods = append(at.Pods, pod.Namespace+"/"+pod.Name)
	at.Nodes = append(at.Nodes, pod.Spec.NodeName)
}

// Deadlocks counts the deadlocks by kind. A kind without deadlocks has the count 0.
func Deadlocks(list []Blocker) map[BlockerKind]int {
	out := map[BlockerKind]int{NeverAllows: 0, NeedsAll: 0, SeveralGuard: 0}
	for _, b := range list {
		if b.IsDeadlock() {
			out[b.Kind]++
		}
	}
	return out
}

package snapshot

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// Limits of PodDisruptionBudgets. A user who can write to one namespace can create thousands, each with thousands of
// requirements, and each pod of the namespace is compared with all of them.
const (
	maxBudgetSize    = 1_000  // requirements and values of one budget
	maxNamespaceSize = 50_000 // requirements and values of all budgets of a namespace
	maxCompared      = 2_000  // requirements and values that are compared with one pod
	maxSelecting     = 16     // budgets of one pod: the eviction API already refuses two
)

// budgetIndex holds PodDisruptionBudgets by namespace.
type budgetIndex map[string]*namespaceBudgets

// namespaceBudgets are the budgets of a namespace.
type namespaceBudgets struct {
	all    []indexedBudget  // sorted by name
	byPair map[string][]int // by label, "key=value": indexes in all of the budgets that select only pods with that label
	others []int            // indexes in all of the other budgets
	// isUnread: the budgets exceed the limits and were not indexed, so each may select any pod.
	isUnread bool
}

// indexedBudget is a PodDisruptionBudget with its parsed selector.
type indexedBudget struct {
	name     string                        // "namespace/name"
	selector labels.Selector               // the parsed selector
	object   *policyv1.PodDisruptionBudget // the budget itself
	size     int                           // number of requirements and values of the selector
}

// activeBudgets indexes the budgets that are not being deleted.
func activeBudgets(list []*policyv1.PodDisruptionBudget) budgetIndex {
	return indexBudgets(slices.DeleteFunc(slices.Clone(list),
		func(b *policyv1.PodDisruptionBudget) bool { return b.DeletionTimestamp != nil }))
}

// indexBudgets indexes all budgets, including those that are being deleted.
func indexBudgets(list []*policyv1.PodDisruptionBudget) budgetIndex {
	out := budgetIndex{}
	sizes := map[string]int{}
	for _, b := range list {
		space := out[b.Namespace]
		if space == nil {
			space = &namespaceBudgets{byPair: map[string][]int{}}
			out[b.Namespace] = space
		}
		size := selectorSize(b.Spec.Selector)
		sizes[b.Namespace] += size
		if size > maxBudgetSize || sizes[b.Namespace] > maxNamespaceSize || b.Annotations[conversion.AnnotationOversized] != "" {
			space.isUnread = true
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			continue // the API server rejects such a selector; the budget selects no pod
		}
		space.all = append(space.all, indexedBudget{b.Namespace + "/" + b.Name, selector, b, size})
	}
	for _, space := range out {
		if space.isUnread {
			space.all = nil // which of them were indexed depends on their order
		}
		space.index()
	}
	return out
}

// selectorSize returns the number of requirements and values of a selector.
func selectorSize(s *metav1.LabelSelector) int {
	if s == nil {
		return 0
	}
	size := 1 + len(s.MatchLabels)
	for i := range s.MatchExpressions {
		size += 1 + len(s.MatchExpressions[i].Values)
	}
	return size
}

// index sorts the budgets, and finds for each a label that every pod it selects must have.
func (s *namespaceBudgets) index() {
	slices.SortFunc(s.all, func(a, b indexedBudget) int { return strings.Compare(a.name, b.name) })
	for i, g := range s.all {
		if pair, ok := pairOf(g.object.Spec.Selector); ok {
			s.byPair[pair] = append(s.byPair[pair], i)
		} else {
			s.others = append(s.others, i)
		}
	}
}

// pairOf returns the first label, as "key=value", that a pod must have to be selected.
func pairOf(s *metav1.LabelSelector) (pair string, ok bool) {
	if s == nil {
		return "", false
	}
	for key, value := range s.MatchLabels {
		if one := key + "=" + value; !ok || one < pair {
			pair, ok = one, true
		}
	}
	for i := range s.MatchExpressions {
		e := &s.MatchExpressions[i]
		if one := e.Key + "="; e.Operator == metav1.LabelSelectorOpIn && len(e.Values) == 1 && (!ok || one+e.Values[0] < pair) {
			pair, ok = one+e.Values[0], true
		}
	}
	return pair, ok
}

// of returns the budgets that select the pod, sorted by name. isCut reports that some budgets were not compared or not
// returned.
func (g budgetIndex) of(pod *corev1.Pod) (matching []indexedBudget, isCut bool) {
	space := g[pod.Namespace]
	if space == nil {
		return nil, false
	}
	candidates := slices.Clone(space.others)
	for key, value := range pod.Labels {
		candidates = append(candidates, space.byPair[key+"="+value]...)
	}
	slices.Sort(candidates)
	compared := 0
	for _, i := range candidates {
		one := space.all[i]
		if compared += one.size; compared > maxCompared || len(matching) == maxSelecting {
			return matching, true
		}
		if one.selector.Matches(labels.Set(pod.Labels)) {
			matching = append(matching, one)
		}
	}
	return matching, space.isUnread
}

// isNever reports whether the budget's setting allows no disruption, whatever the number of pods.
func isNever(b *policyv1.PodDisruptionBudget) bool {
	if most := b.Spec.MaxUnavailable; most != nil {
		return most.Type == intstr.Int && most.IntVal == 0 || most.Type == intstr.String && most.StrVal == "0%"
	}
	least := b.Spec.MinAvailable
	return least != nil && least.Type == intstr.String && least.StrVal == "100%"
}

// forbid reports whether the pod can never be evicted with the current budgets: one of them allows no disruption,
// several select the pod (which the eviction API refuses), or more exist than are compared.
func (g budgetIndex) forbid(pod *corev1.Pod) bool {
	matching, isCut := g.of(pod)
	return isCut || len(matching) > 1 || len(matching) == 1 && isNever(matching[0].object)
}

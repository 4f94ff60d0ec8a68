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

// Limits of PodDisruptionBudgets. They bound the work per pod, because a user with access to one namespace can create
// thousands of budgets, each with thousands of requirements.
const (
	maxBudgetSize    = 1_000  // requirements and values of one budget
	maxNamespaceSize = 50_000 // requirements and values of all budgets of a namespace
	maxCompared      = 2_000  // requirements and values that are compared with one pod
	maxSelecting     = 16     // budgets returned for one pod; the eviction API already refuses a pod with 2 budgets
)

type budgetIndex map[string]*namespaceBudgets // by namespace

type namespaceBudgets struct {
	sorted  []indexedBudget  // by name
	byLabel map[string][]int // by "key=value": the positions in sorted of budgets that select only pods with this label
	others  []int            // the positions in sorted of the budgets that are not in byLabel
	// isOverLimit means that the budgets exceed the limits and were not indexed: each pod of the namespace may be
	// selected by several budgets.
	isOverLimit bool
}

type indexedBudget struct {
	name     string          // "namespace/name"
	selector labels.Selector // the parsed selector
	object   *policyv1.PodDisruptionBudget
	size     int // selectorSize of the selector
}

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
			space = &namespaceBudgets{byLabel: map[string][]int{}}
			out[b.Namespace] = space
		}
		size := selectorSize(b.Spec.Selector)
		sizes[b.Namespace] += size
		if size > maxBudgetSize || sizes[b.Namespace] > maxNamespaceSize || b.Annotations[conversion.AnnotationOversized] != "" {
			space.isOverLimit = true // with the annotation, the cache has dropped the long selector
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			continue // the API server rejects such a selector; the budget selects no pod
		}
		space.sorted = append(space.sorted, indexedBudget{b.Namespace + "/" + b.Name, selector, b, size})
	}
	for _, space := range out {
		if space.isOverLimit {
			space.sorted = nil // which budgets were added depends on the order of list
		}
		space.index()
	}
	return out
}

// selectorSize returns 1 plus the number of requirements and values of a selector; 0 for nil.
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

func (s *namespaceBudgets) index() {
	slices.SortFunc(s.sorted, func(a, b indexedBudget) int { return strings.Compare(a.name, b.name) })
	for i, g := range s.sorted {
		if label, ok := requiredLabel(g.object.Spec.Selector); ok {
			s.byLabel[label] = append(s.byLabel[label], i)
		} else {
			s.others = append(s.others, i)
		}
	}
}

// requiredLabel returns the alphabetically first of the labels that every selected pod has, as "key=value". It returns
// false if there is no such label.
func requiredLabel(s *metav1.LabelSelector) (label string, ok bool) {
	if s == nil {
		return "", false
	}
	for key, value := range s.MatchLabels {
		if required := key + "=" + value; !ok || required < label {
			label, ok = required, true
		}
	}
	for i := range s.MatchExpressions {
		e := &s.MatchExpressions[i]
		if e.Operator != metav1.LabelSelectorOpIn || len(e.Values) != 1 {
			continue
		}
		if required := e.Key + "=" + e.Values[0]; !ok || required < label {
			label, ok = required, true
		}
	}
	return label, ok
}

// selecting returns the budgets that select the pod, sorted by name. isPartial means that more budgets may select the
// pod, because the limits ended the comparison.
func (g budgetIndex) selecting(pod *corev1.Pod) (matching []indexedBudget, isPartial bool) {
	space := g[pod.Namespace]
	if space == nil {
		return nil, false
	}
	candidates := slices.Clone(space.others)
	for key, value := range pod.Labels {
		candidates = append(candidates, space.byLabel[key+"="+value]...)
	}
	slices.Sort(candidates)
	compared := 0
	for _, i := range candidates {
		budget := space.sorted[i]
		if compared += budget.size; compared > maxCompared || len(matching) == maxSelecting {
			return matching, true
		}
		if budget.selector.Matches(labels.Set(pod.Labels)) {
			matching = append(matching, budget)
		}
	}
	return matching, space.isOverLimit
}

func neverAllows(b *policyv1.PodDisruptionBudget) bool {
	if most := b.Spec.MaxUnavailable; most != nil {
		return most.Type == intstr.Int && most.IntVal == 0 || most.Type == intstr.String && most.StrVal == "0%"
	}
	least := b.Spec.MinAvailable
	return least != nil && least.Type == intstr.String && least.StrVal == "100%"
}

// forbidEviction reports whether the current budgets never allow the eviction of the pod: its only budget never allows
// a disruption, or several budgets select the pod or may select it. The eviction API refuses to evict a pod that
// several budgets select.
func (g budgetIndex) forbidEviction(pod *corev1.Pod) bool {
	matching, isPartial := g.selecting(pod)
	return isPartial || len(matching) > 1 || len(matching) == 1 && neverAllows(matching[0].object)
}

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

// Limits of what PodDisruptionBudgets may ask of labels. A user who may write to one namespace can create thousands, each with thousands of
// requirements, and each pod of the namespace is held against all of them.
const (
	mostOfBudget  = 1_000  // requirements and values of one budget
	mostOfSpace   = 50_000 // of all budgets of a namespace
	mostCompared  = 2_000  // with one pod
	mostSelecting = 16     // budgets that are known to select a pod: two are as many as one eviction can bear
)

// guards are PodDisruptionBudgets by namespace.
type guards map[string]*guardedSpace

// guardedSpace are the budgets of a namespace.
type guardedSpace struct {
	all    []guard          // sorted by name
	byPair map[string][]int // those that select only pods with a certain label: "key=value"
	others []int
	// isUnread: they ask for more than is read, so that any may select any pod.
	isUnread bool
}

type guard struct {
	name     string // "namespace/name"
	selector labels.Selector
	object   *policyv1.PodDisruptionBudget
	size     int // requirements and values
}

// guardsOf returns the budgets that are not being deleted.
func guardsOf(list []*policyv1.PodDisruptionBudget) guards {
	return budgetsOf(slices.DeleteFunc(slices.Clone(list), func(b *policyv1.PodDisruptionBudget) bool { return b.DeletionTimestamp != nil }))
}

// budgetsOf returns all budgets.
func budgetsOf(list []*policyv1.PodDisruptionBudget) guards {
	out := guards{}
	sizes := map[string]int{}
	for _, b := range list {
		space := out[b.Namespace]
		if space == nil {
			space = &guardedSpace{byPair: map[string][]int{}}
			out[b.Namespace] = space
		}
		size := selectorSize(b.Spec.Selector)
		sizes[b.Namespace] += size
		if size > mostOfBudget || sizes[b.Namespace] > mostOfSpace || b.Annotations[conversion.AnnotationOversized] != "" {
			space.isUnread = true
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			continue // the server lets none in; it would select nothing
		}
		space.all = append(space.all, guard{b.Namespace + "/" + b.Name, selector, b, size})
	}
	for _, space := range out {
		if space.isUnread {
			space.all = nil // which of them were read depends on their order
		}
		space.index()
	}
	return out
}

// selectorSize is how many requirements and values a selector has.
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

// index sorts the budgets, and finds for each a label that all pods have which it selects.
func (s *guardedSpace) index() {
	slices.SortFunc(s.all, func(a, b guard) int { return strings.Compare(a.name, b.name) })
	for i, g := range s.all {
		if pair, ok := pairOf(g.object.Spec.Selector); ok {
			s.byPair[pair] = append(s.byPair[pair], i)
		} else {
			s.others = append(s.others, i)
		}
	}
}

// pairOf is the first label, as "key=value", that a pod must have to be selected.
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

// of returns the budgets that select the pod, sorted by name. isCut reports that not all were compared, or that there are more.
func (g guards) of(pod *corev1.Pod) (matching []guard, isCut bool) {
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
		if compared += one.size; compared > mostCompared || len(matching) == mostSelecting {
			return matching, true
		}
		if one.selector.Matches(labels.Set(pod.Labels)) {
			matching = append(matching, one)
		}
	}
	return matching, space.isUnread
}

func isNever(b *policyv1.PodDisruptionBudget) bool {
	if most := b.Spec.MaxUnavailable; most != nil {
		return most.Type == intstr.Int && most.IntVal == 0 || most.Type == intstr.String && most.StrVal == "0%"
	}
	least := b.Spec.MinAvailable
	return least != nil && least.Type == intstr.String && least.StrVal == "100%"
}

// forbid reports whether the pod can never be evicted as budgets are now: one of them allows nothing, or there are
// several, which the eviction API refuses, or more than are compared.
func (g guards) forbid(pod *corev1.Pod) bool {
	matching, isCut := g.of(pod)
	return isCut || len(matching) > 1 || len(matching) == 1 && isNever(matching[0].object)
}

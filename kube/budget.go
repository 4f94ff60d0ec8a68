package kube

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// budgets are PodDisruptionBudgets by namespace, with their selectors read.
type budgets map[string][]budget

type budget struct {
	selector labels.Selector
	never    bool // it allows no disruption, ever
}

func budgetsOf(list []*policyv1.PodDisruptionBudget) budgets {
	out := budgets{}
	for _, b := range list {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			continue // the server lets none in; it would select nothing
		}
		out[b.Namespace] = append(out[b.Namespace], budget{selector: selector, never: isNever(b)})
	}
	return out
}

func isNever(b *policyv1.PodDisruptionBudget) bool {
	if most := b.Spec.MaxUnavailable; most != nil {
		return most.Type == intstr.Int && most.IntVal == 0 || most.Type == intstr.String && most.StrVal == "0%"
	}
	least := b.Spec.MinAvailable
	return least != nil && least.Type == intstr.String && least.StrVal == "100%"
}

// forbid reports whether the pod can never be evicted as budgets are now: one
// of them allows nothing, or there are several, which the eviction API refuses.
func (b budgets) forbid(pod *corev1.Pod) bool {
	matching := 0
	for _, one := range b[pod.Namespace] {
		if !one.selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if one.never {
			return true
		}
		matching++
	}
	return matching > 1
}

package conversion

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// requiredAlternatives returns the alternatives that the node selector and the required node affinity allow; nil and no
// text if the pod has neither. If no alternative remains, or if there are too many, the text gives the reason.
//
// As in kube-scheduler, a term that no node can satisfy is not an alternative. This applies to an empty term, and to a
// term with an unknown operator or with a comparison to a text that is not a number.
func requiredAlternatives(spec *corev1.PodSpec) ([]requirements.Requirements, string) {
	base := make(requirements.Requirements, len(spec.NodeSelector))
	for k, v := range spec.NodeSelector {
		base.Narrow(StableKey(k), requirements.OneOf(v))
	}
	terms := RequiredNodeAffinity(spec)
	if terms == nil {
		if len(base) == 0 {
			return nil, ""
		}
		return []requirements.Requirements{base}, ""
	}
	if n := len(terms.NodeSelectorTerms); n > MaxAlternatives {
		return nil, fmt.Sprintf("its required node affinity has %d terms, more than %d", n, MaxAlternatives)
	}
	var out []requirements.Requirements
	reason := "its required node affinity has only empty terms, which no node satisfies"
	for i := range terms.NodeSelectorTerms {
		term := &terms.NodeSelectorTerms[i]
		narrowed, problem := narrow(base, term)
		switch {
		case problem != "":
			reason = problem
		case narrowed != nil:
			out = append(out, narrowed)
		}
	}
	if len(out) == 0 {
		return nil, reason
	}
	return out, ""
}

// RequiredNodeAffinity returns the required node affinity of a pod; nil if it has none.
func RequiredNodeAffinity(spec *corev1.PodSpec) *corev1.NodeSelector {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// narrow returns base narrowed by the term; nil if no node can satisfy the term. The text then names the requirement
// that is invalid; it is empty if the term is empty.
func narrow(base requirements.Requirements, term *corev1.NodeSelectorTerm) (requirements.Requirements, string) {
	if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
		return nil, ""
	}
	out := maps.Clone(base)
	for i := range term.MatchFields {
		f := &term.MatchFields[i]
		values, ok := nodeNames(f)
		if !ok {
			return nil, "its node affinity has a term that no node can satisfy: " +
				requirementText(f.Key, string(f.Operator), f.Values)
		}
		out.Narrow(corev1.LabelHostname, values)
	}
	for i := range term.MatchExpressions {
		e := &term.MatchExpressions[i]
		values, ok := NodeValues(e)
		if !ok {
			return nil, "its node affinity has a term that no node can satisfy: " +
				requirementText(e.Key, string(e.Operator), e.Values)
		}
		out.Narrow(StableKey(e.Key), values)
	}
	return out, ""
}

// nodeNames returns the host names that a requirement on fields accepts; false if Kubernetes would reject the
// requirement. The only supported field is the node's name, which kubelets also set as kubernetes.io/hostname. A
// planned node has no name yet, so the operator In rejects it, and NotIn accepts it.
func nodeNames(f *corev1.NodeSelectorRequirement) (requirements.Values, bool) {
	if f.Key != metav1.ObjectNameField || len(f.Values) != 1 ||
		f.Operator != corev1.NodeSelectorOpIn && f.Operator != corev1.NodeSelectorOpNotIn {
		return requirements.Values{}, false
	}
	return requirements.ValuesOf(requirements.Operator(f.Operator), f.Values...)
}

// NodeValues returns the values that a node selector requirement accepts; false if Kubernetes would reject the
// requirement, or if the requirement has more than maxValues values. NodeValues rejects Gte and Lte, which are
// operators of NodePools only.
func NodeValues(e *corev1.NodeSelectorRequirement) (requirements.Values, bool) {
	if len(e.Values) > maxValues {
		return requirements.Values{}, false
	}
	switch e.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(e.Values) == 0 {
			return requirements.Values{}, false
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(e.Values) > 0 {
			return requirements.Values{}, false
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
	default:
		return requirements.Values{}, false
	}
	return requirements.ValuesOf(requirements.Operator(e.Operator), e.Values...)
}

// preferences returns the pod's preferred node affinity, highest weight first. As in kube-scheduler, terms that no node
// can satisfy are left out.
func preferences(spec *corev1.PodSpec) []cluster.Preference {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	var out []cluster.Preference
	terms := spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	for i := range terms {
		reqs, _ := narrow(requirements.Requirements{}, &terms[i].Preference)
		if reqs != nil && terms[i].Weight > 0 { // the API server allows 1 to 100
			out = append(out, cluster.Preference{Weight: int(terms[i].Weight), Requirements: reqs})
		}
	}
	slices.SortStableFunc(out, func(a, b cluster.Preference) int { return cmp.Compare(b.Weight, a.Weight) })
	return out
}

// MaxAlternatives is the maximum number of alternatives of a pod: its node affinity terms times the topologies of its
// volumes. Real pods have a handful.
const MaxAlternatives = 256

// product returns the combinations of one alternative of a with one alternative of b, without those that conflict. An
// empty list a allows every node, as in cluster.Pod; b must not be empty. If no combination remains, or if there are
// too many, the text gives the reason.
func product(a, b []requirements.Requirements) ([]requirements.Requirements, string) {
	if len(a) == 0 {
		return b, ""
	}
	if len(a)*len(b) > MaxAlternatives {
		return nil, fmt.Sprintf("its node affinity and its volumes leave more than %d alternatives", MaxAlternatives)
	}
	var out []requirements.Requirements
	for _, x := range a {
		for _, y := range b {
			if x.Conflict(y) != "" {
				continue
			}
			both := maps.Clone(x)
			for k, v := range y {
				both.Narrow(k, v)
			}
			out = append(out, both)
		}
	}
	if len(out) == 0 {
		return nil, "its volumes exclude all nodes that its node selector, node affinity and other volumes allow"
	}
	return out, ""
}

// Tolerations converts tolerations to the type of package requirements.
func Tolerations(list []corev1.Toleration) []requirements.Toleration {
	if len(list) == 0 {
		return nil
	}
	out := make([]requirements.Toleration, len(list))
	for i, t := range list {
		out[i] = requirements.Toleration{
			Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: requirements.Effect(t.Effect),
		}
	}
	return out
}

// Taints converts taints to the type of package requirements.
func Taints(list []corev1.Taint) []requirements.Taint {
	if len(list) == 0 {
		return nil
	}
	out := make([]requirements.Taint, len(list))
	for i, t := range list {
		out[i] = requirements.Taint{Key: t.Key, Value: t.Value, Effect: requirements.Effect(t.Effect)}
	}
	return out
}

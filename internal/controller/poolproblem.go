package controller

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// poolProblem returns the problems of a pool's spec that the schema cannot find; empty without any.
func poolProblem(pool *karpv1.NodePool) string {
	var wrong []string
	template := pool.Spec.Template
	for _, key := range slices.Sorted(maps.Keys(template.Labels)) {
		wrong = append(wrong, labelProblems("spec.template.metadata.labels", key, template.Labels[key])...)
	}
	seen := map[string]bool{}
	for _, list := range []struct {
		field  string
		taints []corev1.Taint
	}{{"taints", template.Spec.Taints}, {"startupTaints", template.Spec.StartupTaints}} {
		for _, t := range list.taints {
			wrong = append(wrong, taintProblems("spec.template.spec."+list.field, t, seen)...)
		}
	}
	for i, r := range template.Spec.Requirements {
		wrong = append(wrong, requirementProblems(fmt.Sprintf("spec.template.spec.requirements[%d]", i), r)...)
	}
	return strings.Join(wrong, "; ")
}

func labelProblems(field, key, value string) []string {
	var wrong []string
	if text := restricted(key); text != "" {
		wrong = append(wrong, field+": "+text)
	}
	for _, text := range validation.IsQualifiedName(key) {
		wrong = append(wrong, fmt.Sprintf("%s: key %q: %s", field, key, text))
	}
	for _, text := range validation.IsValidLabelValue(value) {
		wrong = append(wrong, fmt.Sprintf("%s: value %q of %s: %s", field, value, key, text))
	}
	return wrong
}

// restricted returns why users must not set or require a label; empty if they may.
func restricted(key string) string {
	domain, _, _ := strings.Cut(key, "/")
	switch {
	case key == karpv1.LabelNodePool:
		return key + " is set for you: leave it out"
	case key == corev1.LabelHostname:
		return key + " cannot be known before there is a node: leave it out"
	case slices.Contains(awsv1.WellKnownLabels(), key):
		return ""
	case domain == karpv1.Group || strings.HasSuffix(domain, "."+karpv1.Group):
		return key + " is in a domain that is kept for the controller"
	case (domain == awsv1.Group || strings.HasSuffix(domain, "."+awsv1.Group)) && !slices.Contains(awsv1.UsableLabels(), key):
		return key + " is in a domain that is kept for the controller"
	}
	return ""
}

func taintProblems(field string, t corev1.Taint, seen map[string]bool) []string {
	var wrong []string
	for _, text := range validation.IsQualifiedName(t.Key) {
		wrong = append(wrong, fmt.Sprintf("%s: key %q: %s", field, t.Key, text))
	}
	if t.Value != "" {
		for _, text := range validation.IsValidLabelValue(t.Value) {
			wrong = append(wrong, fmt.Sprintf("%s: value %q of %s: %s", field, t.Value, t.Key, text))
		}
	}
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute, ""}
	if !slices.Contains(effects, t.Effect) {
		wrong = append(wrong, fmt.Sprintf("%s: effect %q of %s is none of NoSchedule, PreferNoSchedule, NoExecute", field, t.Effect, t.Key))
	}
	id := t.Key + ":" + string(t.Effect)
	if seen[id] {
		wrong = append(wrong, field+": "+id+" is there twice")
	}
	seen[id] = true
	return wrong
}

func requirementProblems(field string, r karpv1.Requirement) []string {
	var wrong []string
	if text := restricted(r.Key); text != "" {
		wrong = append(wrong, field+": "+text)
	}
	for _, text := range validation.IsQualifiedName(r.Key) {
		wrong = append(wrong, fmt.Sprintf("%s: key %q: %s", field, r.Key, text))
	}
	for _, value := range r.Values {
		for _, text := range validation.IsValidLabelValue(value) {
			wrong = append(wrong, fmt.Sprintf("%s: value %q: %s", field, value, text))
		}
	}
	if text := arity(r); text != "" {
		wrong = append(wrong, field+": "+text)
	}
	if r.Key == karpv1.LabelCapacityType && r.Operator == corev1.NodeSelectorOpIn {
		known := []string{karpv1.CapacityTypeSpot, karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeReserved}
		if !slices.ContainsFunc(r.Values, func(v string) bool { return slices.Contains(known, v) }) {
			wrong = append(wrong, fmt.Sprintf("%s: none of %v is a capacity type: use %s", field, r.Values, strings.Join(known, ", ")))
		}
	}
	return wrong
}

// arity returns what is wrong with the operator of a requirement or the number of its values.
func arity(r karpv1.Requirement) string {
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		if len(r.Values) == 0 {
			return "operator In needs at least one value"
		}
		if r.MinValues != nil && len(r.Values) < *r.MinValues {
			return fmt.Sprintf("minValues is %d and there are %d values", *r.MinValues, len(r.Values))
		}
	case corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt, karpv1.OperatorGte, karpv1.OperatorLte:
		if len(r.Values) != 1 {
			return fmt.Sprintf("operator %s needs exactly one value", r.Operator)
		}
		if n, err := strconv.ParseInt(r.Values[0], 10, 64); err != nil || n < 0 {
			return fmt.Sprintf("operator %s needs a whole number not below 0, not %q", r.Operator, r.Values[0])
		}
	default:
		return fmt.Sprintf("operator %q is unknown", r.Operator)
	}
	return ""
}

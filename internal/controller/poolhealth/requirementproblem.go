package poolhealth

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// WhyRestricted returns why users must not set or require a label; empty if users may do so.
func WhyRestricted(key string) string {
	domain, _, _ := strings.Cut(key, "/")
	isIn := func(group string) bool { return domain == group || strings.HasSuffix(domain, "."+group) }
	switch {
	case key == karpv1.LabelNodePool:
		return key + " is set for you: leave it out"
	case key == corev1.LabelHostname:
		return key + " cannot be known before there is a node: leave it out"
	case slices.Contains(awsv1.WellKnownLabels(), key):
		return ""
	case isIn(karpv1.Group):
		return key + " is in a domain that is reserved for the controller"
	case isIn(awsv1.Group) && !slices.Contains(awsv1.UsableLabels(), key):
		return key + " is in a domain that is reserved for the controller"
	}
	return ""
}

// RequirementProblems returns the problems of a requirement, one sentence per problem; nil if there are none.
func RequirementProblems(field string, r karpv1.Requirement) []string {
	var wrong []string
	if text := WhyRestricted(r.Key); text != "" {
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
	if text := OperatorProblem(r); text != "" {
		wrong = append(wrong, field+": "+text)
	}
	if r.Key == karpv1.LabelCapacityType && r.Operator == corev1.NodeSelectorOpIn {
		valid := []string{karpv1.CapacityTypeSpot, karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeReserved}
		if !slices.ContainsFunc(r.Values, func(v string) bool { return slices.Contains(valid, v) }) {
			wrong = append(wrong, fmt.Sprintf("%s: none of %v is a capacity type: use %s", field, r.Values, strings.Join(valid, ", ")))
		}
	}
	return wrong
}

// OperatorProblem returns what is wrong with the requirement's operator, or with the number of its values; empty if
// both are valid.
func OperatorProblem(r karpv1.Requirement) string {
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		if len(r.Values) == 0 {
			return "operator In needs at least one value"
		}
		if r.MinValues != nil && len(r.Values) < *r.MinValues {
			return fmt.Sprintf("minValues is %d, but there are only %d values", *r.MinValues, len(r.Values))
		}
	case corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt, karpv1.OperatorGte, karpv1.OperatorLte:
		if len(r.Values) != 1 {
			return fmt.Sprintf("operator %s needs exactly one value", r.Operator)
		}
		if n, err := strconv.ParseInt(r.Values[0], 10, 64); err != nil || n < 0 {
			return fmt.Sprintf("operator %s needs a whole number of 0 or more, not %q", r.Operator, r.Values[0])
		}
	default:
		return fmt.Sprintf("operator %q is unknown", r.Operator)
	}
	return ""
}

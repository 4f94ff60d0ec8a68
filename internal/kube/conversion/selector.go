package conversion

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// maxValues is the maximum number of values of one requirement. A list of all instance types, about 1,300, fits.
const maxValues = 4096

// selectorOf converts a selector. problem says why kube-scheduler would reject the selector; empty if it would not.
// The caller puts the selector's path before problem. A nil selector selects nothing.
func selectorOf(s *metav1.LabelSelector) (out cluster.Selector, problem string) {
	if s == nil {
		return cluster.Selector{MatchesNothing: true}, ""
	}
	reqs := make(requirements.Requirements, len(s.MatchLabels)+len(s.MatchExpressions))
	for key, value := range s.MatchLabels {
		if !isLabelKey(key) || !isLabelValue(value) {
			return cluster.Selector{}, fmt.Sprintf(".matchLabels has %s, which no label can be", quotedInvalid(s.MatchLabels))
		}
		reqs.Narrow(key, oneValue(value))
	}
	for i := range s.MatchExpressions {
		e := &s.MatchExpressions[i]
		values, ok := labelValues(e)
		if !ok {
			return cluster.Selector{}, fmt.Sprintf(".matchExpressions[%d] is invalid: %s", i,
				requirementText(e.Key, string(e.Operator), e.Values))
		}
		reqs.Narrow(e.Key, values)
	}
	return cluster.Selector{Labels: reqs}, ""
}

// labelValues returns the values that a requirement of a label selector accepts; false if Kubernetes would reject the
// requirement, or if it has more than maxValues values.
func labelValues(e *metav1.LabelSelectorRequirement) (requirements.Values, bool) {
	needsValues := e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn
	switch {
	case !isLabelKey(e.Key), needsValues != (len(e.Values) > 0), len(e.Values) > maxValues:
		return requirements.Values{}, false
	}
	for _, value := range e.Values {
		if !isLabelValue(value) {
			return requirements.Values{}, false
		}
	}
	switch e.Operator {
	case metav1.LabelSelectorOpIn:
		return requirements.OneOf(e.Values...), true
	case metav1.LabelSelectorOpNotIn:
		return requirements.NoneOf(e.Values...), true
	case metav1.LabelSelectorOpExists:
		return requirements.Any(), true
	case metav1.LabelSelectorOpDoesNotExist:
		return requirements.Missing(), true
	}
	return requirements.Values{}, false
}

// oneValue is requirements.OneOf for one value, without sorting.
func oneValue(value string) requirements.Values { return requirements.Values{Listed: []string{value}} }

// narrowSelector narrows s by label keys of the pod with the given labels. It changes s, which the caller must own.
//
//   - If same is true (matchLabelKeys), s then selects only pods that have the same value for each key.
//   - If same is false (mismatchLabelKeys), s then selects only pods that lack each key or have another value for it.
//
// Keys that the labels lack are ignored. A selector that selects nothing is not changed.
func narrowSelector(s *cluster.Selector, keys []string, labels requirements.Labels, same bool) {
	if s.MatchesNothing {
		return
	}
	for _, key := range keys {
		value, ok := labels[key]
		switch {
		case !ok:
		case same:
			s.Labels.Narrow(key, oneValue(value))
		default:
			s.Labels.Narrow(key, requirements.NoneOf(value))
		}
	}
}

// requirementText returns a requirement as short text, even if it has thousands of values.
func requirementText(key, operator string, values []string) string {
	const maxShown = 8
	text := quotedUnlessKey(key) + " " + quotedUnlessKey(operator)
	if len(values) > maxShown {
		return fmt.Sprintf("%s with %d values", text, len(values))
	}
	return fmt.Sprintf("%s %.100q", text, values)
}

func quotedUnlessKey(text string) string {
	if isLabelKey(text) {
		return text
	}
	return fmt.Sprintf("%.100q", text)
}

// quotedInvalid returns a pair that is not a valid label, quoted for a message; empty if all pairs are valid.
func quotedInvalid(labels map[string]string) string {
	for key, value := range labels {
		if !isLabelKey(key) || !isLabelValue(value) {
			return fmt.Sprintf("%.100q: %.100q", key, value)
		}
	}
	return ""
}

// isLabelKey reports whether the text is a valid label key: "name" or "example.com/name". It accepts the same texts as
// k8s.io/apimachinery's IsQualifiedName, but without regular expressions, because it runs for every pod.
func isLabelKey(key string) bool {
	prefix, name, ok := strings.Cut(key, "/")
	if !ok {
		name = prefix
	} else if !isDomain(prefix) {
		return false
	}
	return name != "" && isLabelValue(name)
}

func isLabelValue(value string) bool {
	if len(value) > 63 {
		return false
	}
	for i := range len(value) {
		c := value[i]
		edge := i == 0 || i == len(value)-1
		if !isAlphanumeric(c) && (edge || c != '-' && c != '_' && c != '.') {
			return false
		}
	}
	return true
}

func isDomain(text string) bool {
	if len(text) > 253 {
		return false
	}
	for part := range strings.SplitSeq(text, ".") {
		if part == "" || part[0] == '-' || part[len(part)-1] == '-' {
			return false
		}
		for i := range len(part) {
			if c := part[i]; c != '-' && (!isAlphanumeric(c) || c >= 'A' && c <= 'Z') {
				return false
			}
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

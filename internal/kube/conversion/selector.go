package conversion

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// maxValues is how many values one requirement may list. There are about 1,300 instance types.
const maxValues = 4096

// selectorOf returns the selector, or why kube-scheduler could not read it, as the
// rest of a sentence that begins with the selector's path. None at all selects nothing.
func selectorOf(s *metav1.LabelSelector) (cluster.Selector, string) {
	if s == nil {
		return cluster.Selector{Nothing: true}, ""
	}
	reqs := make(requirements.Requirements, len(s.MatchLabels)+len(s.MatchExpressions))
	for key, value := range s.MatchLabels {
		if !isLabelKey(key) || !isLabelValue(value) {
			return cluster.Selector{}, fmt.Sprintf(".matchLabels has %s, which no label can be", quoted(s.MatchLabels))
		}
		reqs.Narrow(key, just(value))
	}
	for i := range s.MatchExpressions {
		e := &s.MatchExpressions[i]
		values, ok := selected(e)
		if !ok {
			return cluster.Selector{}, fmt.Sprintf(".matchExpressions[%d] means nothing: %s", i,
				expression(e.Key, string(e.Operator), e.Values))
		}
		reqs.Narrow(e.Key, values)
	}
	return cluster.Selector{Labels: reqs}, ""
}

// selected returns what a requirement of a label selector accepts; false if
// Kubernetes would not understand it.
func selected(e *metav1.LabelSelectorRequirement) (requirements.Values, bool) {
	listed := e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn
	switch {
	case !isLabelKey(e.Key), listed != (len(e.Values) > 0), len(e.Values) > maxValues:
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

// just accepts the one value: constraint.OneOf, without sorting.
func just(value string) requirements.Values { return requirements.Values{Listed: []string{value}} }

// narrowSelector leaves of what the selector selects, for each key that the pod's labels
// have, what has the same value, or what has not. A selector of nothing stays one.
// It changes s, which the caller must own.
func narrowSelector(s *cluster.Selector, keys []string, labels requirements.Labels, same bool) {
	if s.Nothing {
		return
	}
	for _, key := range keys {
		value, ok := labels[key]
		switch {
		case !ok:
		case same:
			s.Labels.Narrow(key, just(value))
		default:
			s.Labels.Narrow(key, requirements.NoneOf(value))
		}
	}
}

// expression words a requirement, short even where it has thousands of values.
func expression(key, operator string, values []string) string {
	const most = 8
	text := word(key) + " " + word(operator)
	if len(values) > most {
		return fmt.Sprintf("%s with %d values", text, len(values))
	}
	return fmt.Sprintf("%s %.100q", text, values)
}

// word is the text as it is if it could be a label's name, else in quotes.
func word(text string) string {
	if isLabelKey(text) {
		return text
	}
	return fmt.Sprintf("%.100q", text)
}

func quoted(labels map[string]string) string {
	for key, value := range labels {
		if !isLabelKey(key) || !isLabelValue(value) {
			return fmt.Sprintf("%.100q: %.100q", key, value)
		}
	}
	return ""
}

// isLabelKey reports whether a label can be called so: "name" or "example.com/name".
// It asks the same as k8s.io/apimachinery's IsQualifiedName, without expressions,
// because it is asked for every pod.
func isLabelKey(key string) bool {
	prefix, name, ok := strings.Cut(key, "/")
	if !ok {
		name = prefix
	} else if !isDomain(prefix) {
		return false
	}
	return name != "" && isLabelValue(name)
}

// isLabelValue reports whether a label can have the value.
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

// isDomain reports whether the text is a DNS subdomain.
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
